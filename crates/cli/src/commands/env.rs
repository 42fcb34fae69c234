//! `holdfast env`: who changed what in a session's shell since it started. Names, never values.

use crate::args::EnvArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{columns, now_ms, print, print_json, span, table, visible};
use holdfast_types::TimeMs;
use holdfast_wire::env::{Category, Changed, EnvAnswer, EnvEntry, EnvParams};
use holdfast_wire::operations::op;

/// `holdfast env`.
pub fn env(here: &Here, args: &EnvArgs) -> Result<u8, Failure> {
    let params = EnvParams { session: args.of.session.clone(), all: args.all };
    let answer = here.link()?.call::<op::Env>(&params)?;
    if here.json {
        print_json(&answer)?;
    } else {
        print(text(&answer, now_ms(), columns()))?;
    }
    Ok(0)
}

fn text(answer: &EnvAnswer, now: TimeMs, width: Option<usize>) -> String {
    let name = visible(answer.name.as_str());
    if !answer.integration {
        return format!(
            "{name} does not report changes: its command is not a bash, zsh or fish with shell integration\n\
             start one that does: holdfast new -- bash (without --no-integration)\n"
        );
    }
    if answer.since_ms.is_none() {
        return format!("the shell of {name} has not shown a prompt yet, so there is nothing to compare with\n");
    }
    let mut out = if answer.entries.is_empty() {
        "nothing has changed since the shell started\n".to_owned()
    } else {
        let head = ["KIND", "NAME", "NOW", "CHANGED BY", "WHEN", "ACT"].map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(answer.entries.iter().map(|entry| row(entry, now))).collect();
        table(&rows, width).iter().map(|line| format!("{line}\n")).collect()
    };
    if answer.partial {
        out.push_str("the shell has more names than Holdfast keeps: some changes may be missing\n");
    }
    out
}

fn row(entry: &EnvEntry, now: TimeMs) -> Vec<String> {
    let state = match (&entry.changed, entry.gone) {
        (_, true) => "gone",
        (Some(_), false) => "set",
        (None, false) => "since start",
    };
    let none = || "-".to_owned();
    let (who, when, act) = entry.changed.as_ref().map_or_else(
        || (none(), none(), none()),
        |changed| {
            let who = changed.actor.as_ref().map_or_else(|| "unknown".to_owned(), |actor| visible(&actor.to_string()));
            (who, format!("{} ago", span(now.saturating_sub(changed.at_ms))), act(changed))
        },
    );
    vec![kind(entry.category).to_owned(), visible(&entry.name), state.to_owned(), who, when, act]
}

/// What did it: the run, and its number in the journal.
fn act(changed: &Changed) -> String {
    match (changed.run, changed.act) {
        (Some(run), _) => run.to_string(),
        (None, Some(act)) => format!("#{act}"),
        (None, None) => "-".to_owned(),
    }
}

fn kind(category: Category) -> &'static str {
    match category {
        Category::Variable => "variable",
        Category::Alias => "alias",
        Category::Function => "function",
        Category::Option => "option",
        Category::Cwd => "directory",
        Category::Path => "path",
        Category::Trap => "trap",
        Category::Binding => "key",
        Category::Builtin => "builtin",
        Category::Hash => "hash",
        Category::Setting => "setting",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId, SessionId};
    use holdfast_wire::env::Known;

    fn answer(entries: Vec<EnvEntry>) -> EnvAnswer {
        EnvAnswer {
            session: SessionId::from_random_bits(1),
            name: "work".parse().unwrap(),
            integration: true,
            since_ms: Some(1),
            partial: false,
            entries,
        }
    }

    #[test]
    fn names_are_shown_with_their_last_changer_and_nothing_of_them_is_obeyed() {
        let actor = Actor { id: ActorId([1; 32]), handle: "agent:bot".parse().unwrap() };
        let by = Changed { known: Known::Time, act: Some(7), run: None, key: None, actor: Some(actor), at_ms: 1_000 };
        let entry = |name: &str, gone, changed: Option<&Changed>| EnvEntry {
            category: Category::Variable,
            name: name.into(),
            hash: None,
            gone,
            changed: changed.cloned(),
        };
        let unnamed = Changed { actor: None, act: None, ..by.clone() };
        let entries = vec![
            entry("A\x1b]0;x\x07", false, Some(&by)),
            entry("B", true, Some(&unnamed)),
            entry("PATH", false, None),
        ];
        let shown = text(&answer(entries), 61_000, None);
        assert_eq!(
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>(),
            [
                "KIND NAME NOW CHANGED BY WHEN ACT",
                "variable A\\u{1b}]0;x\\u{7} set agent:bot 1m ago #7",
                "variable B gone unknown 1m ago -",
                "variable PATH since start - - -",
            ]
        );
    }

    #[test]
    fn a_shell_that_says_nothing_is_told_apart_from_one_that_changed_nothing() {
        let same = text(&answer(vec![]), 0, None);
        let unseen = text(&EnvAnswer { since_ms: None, ..answer(vec![]) }, 0, None);
        let silent = text(&EnvAnswer { integration: false, ..answer(vec![]) }, 0, None);
        assert!(same.starts_with("nothing has changed") && unseen.contains("not shown a prompt yet"), "{same}{unseen}");
        assert!(silent.contains("holdfast new -- bash"), "{silent}");
    }
}
