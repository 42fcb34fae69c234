//! Who shaped what an actor runs: the alias, the variable, the script that somebody else made.

use crate::{Actor, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// By what somebody shapes what another actor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// An alias, or an abbreviation of fish.
    Alias,
    /// A function of the shell.
    Function,
    /// A variable: `LD_PRELOAD`, `GIT_SSH_COMMAND`, `PROMPT_COMMAND`, or one that the line uses.
    Variable,
    /// A directory in `PATH` that has a program of that name.
    Path,
    /// A trap: `DEBUG`, `ERR`.
    Trap,
    /// A key of the line editor.
    Binding,
    /// A builtin that was switched off or on.
    Builtin,
    /// A program that the shell remembers under another path (`hash -p`).
    Hash,
    /// A limit of the shell's: its umask.
    Setting,
    /// A file that is executed: a script, a Makefile, a module, a git hook, an rc file.
    File,
    /// Text that stood at the prompt already.
    Line,
    /// A process that goes on in the background.
    Job,
    /// The working directory.
    Directory,
    /// An option of the shell.
    Option,
}

impl Channel {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Channel::Alias => "alias",
            Channel::Function => "function",
            Channel::Variable => "variable",
            Channel::Path => "path",
            Channel::Trap => "trap",
            Channel::Binding => "binding",
            Channel::Builtin => "builtin",
            Channel::Hash => "hash",
            Channel::Setting => "setting",
            Channel::File => "file",
            Channel::Line => "line",
            Channel::Job => "job",
            Channel::Directory => "directory",
            Channel::Option => "option",
        }
    }
}

/// One thing that shapes what is run, and who made it so.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Shaper {
    /// By what.
    pub by: Channel,
    /// Its name, or path.
    pub name: String,
    /// Who; none: it cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// By which act of the session's journal, where that is known and the session is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// How that is known: `run`, `time`, `cgroup`, `lineage`, `log`, `kernel`, `written` or `unknown`.
    pub known: String,
    /// When.
    pub at_ms: TimeMs,
}

impl fmt::Display for Shaper {
    /// `alias ls, act 41`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.by.word(), self.name)?;
        self.act.map_or(Ok(()), |act| write!(f, ", act {act}"))
    }
}

/// Shapers in a line, by actor: `agent:a (alias ls, act 41; file x.sh), unknown (file y.sh)`.
#[must_use]
pub fn shapers_text(shapers: &[Shaper]) -> String {
    let mut actors: Vec<Option<&Actor>> = shapers.iter().map(|shaper| shaper.actor.as_ref()).collect();
    actors.sort_by_key(|actor| actor.map(|actor| actor.handle.to_string()));
    actors.dedup();
    // Those who are known first.
    actors.sort_by_key(Option::is_none);
    let of = |actor: Option<&Actor>| {
        let own = shapers.iter().filter(|shaper| shaper.actor.as_ref() == actor);
        let all: Vec<String> = own.map(ToString::to_string).collect();
        let who = actor.map_or_else(|| "unknown".to_owned(), |actor| actor.handle.to_string());
        format!("{who} ({})", all.join("; "))
    };
    actors.into_iter().map(of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ActorId;

    #[test]
    fn shapers_are_told_by_actor_and_what_is_not_known_comes_last() {
        let a = Actor { id: ActorId([1; 32]), handle: "agent:a".parse().unwrap() };
        let one = |by, name: &str, actor: Option<&Actor>, act| Shaper {
            by,
            name: name.into(),
            actor: actor.cloned(),
            act,
            known: "run".into(),
            at_ms: 1,
        };
        let all = [
            one(Channel::File, "y.sh", None, None),
            one(Channel::Alias, "ls", Some(&a), Some(41)),
            one(Channel::File, "x.sh", Some(&a), None),
        ];
        assert_eq!(shapers_text(&all), "agent:a (alias ls, act 41; file x.sh), unknown (file y.sh)");
        assert_eq!(shapers_text(&[]), "");
    }
}
