//! `holdfast handover`: what others changed in a session since the caller wrote there last. Names, never values.

use crate::args::HandoverArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{now_ms, print, print_json, span, visible};
use holdfast_types::{Channel, TimeMs};
use holdfast_wire::handover::{HandoverAnswer, HandoverChange};
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionParams;

/// `holdfast handover`.
pub fn handover(here: &Here, args: &HandoverArgs) -> Result<u8, Failure> {
    let params = SessionParams { session: args.of.session.clone() };
    let answer = here.link()?.call::<op::Handover>(&params)?;
    if here.json {
        print_json(&answer)?;
    } else {
        print(text(&answer, now_ms(), args.diff))?;
    }
    Ok(0)
}

fn text(answer: &HandoverAnswer, now: TimeMs, diff: bool) -> String {
    let name = visible(answer.name.as_str());
    let since = span(now.saturating_sub(answer.since_ms));
    let since = match answer.since_act {
        Some(act) => format!("since your last act ({act}, {since} ago)"),
        None => format!("since {name} started ({since} ago)"),
    };
    let mut out = if answer.changed.is_empty() {
        format!("nobody else changed anything {since}\n")
    } else if diff {
        let lines: Vec<String> = answer.changed.iter().map(line).collect();
        format!("--- {name}, {since}\n+++ {name}, now\n{}\n", lines.join("\n"))
    } else {
        format!("{since}: {}\nsee each change: holdfast handover {name} --diff\n", visible(&answer.summary))
    };
    for missing in &answer.missing {
        out.push_str(&format!("not told: {}\n", visible(missing)));
    }
    out
}

/// One change: gone, or made.
fn line(change: &HandoverChange) -> String {
    let sign = if change.gone { '-' } else { '+' };
    let what = &change.what;
    let who = what.actor.as_ref().map_or_else(|| "unknown".to_owned(), |actor| actor.handle.to_string());
    let act = what.act.map_or_else(String::new, |act| format!(", act {act}"));
    let name = match what.by {
        Channel::Directory => String::new(),
        _ => format!(" {}", visible(&what.name)),
    };
    format!("{sign} {}{name}  ({who}{act}, by {})", what.by.word(), what.known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId, SessionId, Shaper};

    #[test]
    fn changes_are_a_line_or_a_diff_and_nothing_of_them_is_obeyed() {
        let actor = Actor { id: ActorId([1; 32]), handle: "agent:a".parse().unwrap() };
        let change = |by, name: &str, gone, actor: Option<&Actor>| HandoverChange {
            what: Shaper {
                by,
                name: name.into(),
                actor: actor.cloned(),
                act: Some(41),
                known: "run".into(),
                at_ms: 1_000,
            },
            gone,
        };
        let answer = HandoverAnswer {
            session: SessionId::from_random_bits(1),
            name: "work".parse().unwrap(),
            since_act: Some(7),
            since_ms: 1_000,
            from: vec![actor.handle.clone()],
            changed: vec![
                change(Channel::Alias, "ls\x1b[2J", false, Some(&actor)),
                change(Channel::Function, "f", true, Some(&actor)),
                change(Channel::File, "/w/x.sh", false, None),
            ],
            summary: "agent:a: alias ls, function f · unknown: 1 file".into(),
            missing: vec![],
        };
        assert_eq!(
            text(&answer, 61_000, true),
            "--- work, since your last act (7, 1m ago)\n+++ work, now\n+ alias ls\\u{1b}[2J  (agent:a, act 41, by run)\n\
             - function f  (agent:a, act 41, by run)\n+ file /w/x.sh  (unknown, act 41, by run)\n"
        );
        assert!(text(&answer, 61_000, false).contains("handover work --diff"));
        let none = HandoverAnswer { changed: vec![], since_act: None, ..answer };
        assert_eq!(text(&none, 61_000, false), "nobody else changed anything since work started (1m ago)\n");
    }
}
