//! What a session is doing, as data: the states, and what they are decided by.
//!
//! The deciding itself is `observe`'s, who sees processes. Here is what travels.

mod choice;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is known about a session's terminal: the keeper's probe, and what its output said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalFacts {
    /// The process group that has the terminal.
    pub foreground: u32,
    /// `c_iflag` of termios(3).
    pub iflag: u32,
    /// `c_oflag`.
    pub oflag: u32,
    /// `c_lflag`.
    pub lflag: u32,
    /// Bytes of input that no program has taken; of whole lines in canonical mode.
    pub unread: u32,
    /// Major and minor of the pty's slave.
    pub device: (u32, u32),
    /// The programs' output switched to the alternate screen.
    pub alternate_screen: bool,
    /// Whether the shell is at its prompt by its own marks (OSC 133); `None` if it makes none.
    pub shell_prompt: Option<bool>,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A line that shows while it is typed.
    Line,
    /// A line that does not.
    Password,
    /// Keys, on the main screen: a program with its own line editor.
    Repl,
    /// One of a few answers; only by [`Doing::with_screen`].
    Choice,
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blind {
    /// No live process has the terminal.
    Nobody,
    /// The process is another user's, or hides itself (sudo, ssh-agent). If the terminal is canonical without echo, a
    /// password is likely; the caller has the flags.
    Unreadable,
    /// What it waits for cannot be seen: io_uring, or a 32-bit program.
    Opaque,
    /// There is too much to look at, and what was looked at says nothing.
    TooMany,
    /// Its keeper does not answer, or is of a version this host does not know.
    Keeper,
    /// Its files cannot be read.
    Damaged,
}

/// What a session is doing, and which process says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "doing", rename_all = "snake_case")]
pub enum Doing {
    /// The shell waits for a command.
    IdlePrompt {
        /// The shell.
        pid: u32,
    },
    /// A process in the foreground works.
    Running {
        /// One that does.
        pid: u32,
    },
    /// A program waits for input.
    Waiting {
        /// Who.
        pid: u32,
        /// For what.
        kind: Kind,
    },
    /// A program has the whole screen, and waits for keys.
    FullScreen {
        /// Who.
        pid: u32,
    },
    /// Every process waits for something other than the terminal: time, a child, a network.
    BlockedElsewhere {
        /// The first of them.
        pid: u32,
    },
    /// The job in the foreground is stopped or traced.
    Stopped {
        /// The first of them.
        pid: u32,
    },
    /// No guess.
    Unknown {
        /// Who cannot be seen.
        pid: Option<u32>,
        /// Why.
        why: Blind,
    },
}

impl Doing {
    /// The process that says so, if one does.
    pub fn pid(self) -> Option<u32> {
        match self {
            Doing::IdlePrompt { pid }
            | Doing::Running { pid }
            | Doing::Waiting { pid, .. }
            | Doing::FullScreen { pid }
            | Doing::BlockedElsewhere { pid }
            | Doing::Stopped { pid } => Some(pid),
            Doing::Unknown { pid, .. } => pid,
        }
    }

    /// Adds what the screen shows: a wait for a line or for keys is for a [`Kind::Choice`] if the text before the
    /// cursor ends with a list of answers that has a yes or a no in it: `[Y/n]`, `(yes/no)`, `[y,n,q,?]?`.
    #[must_use]
    pub fn with_screen(self, before_cursor: &str) -> Doing {
        match self {
            Doing::Waiting { pid, kind: Kind::Line | Kind::Repl } if choice::ends_with_answers(before_cursor) => {
                Doing::Waiting { pid, kind: Kind::Choice }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_tells_a_choice_from_a_line() {
        let (line, repl) = (Doing::Waiting { pid: 1, kind: Kind::Line }, Doing::Waiting { pid: 1, kind: Kind::Repl });
        let choice = Doing::Waiting { pid: 1, kind: Kind::Choice };
        assert_eq!(line.with_screen("Do you want to continue? [Y/n] "), choice);
        assert_eq!(line.with_screen("Name: "), line);
        assert_eq!(repl.with_screen(">>> "), repl);
        assert_eq!(repl.with_screen("Stage this hunk [y,n,q,?]? "), choice);
        let password = Doing::Waiting { pid: 1, kind: Kind::Password };
        assert_eq!(password.with_screen("[Y/n]"), password);
    }
}
