//! What a program reported to the terminal on the side: prompts, commands, directories, bells, questions.

use holdfast_types::Offset;

/// An answer to a query in the output, to be written to the session's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Where the query ended.
    pub at: Offset,
    /// What to write.
    pub bytes: Vec<u8>,
}

/// Something worth noting at a place in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where the sequence ended.
    pub at: Offset,
    /// What it said.
    pub kind: MarkKind,
}

/// The kinds of [`Mark`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// OSC 133 A: a prompt begins here; with its parameters.
    PromptStart(String),
    /// OSC 133 B: what the user types begins here.
    CommandStart(String),
    /// OSC 133 C: the command's output begins here.
    OutputStart(String),
    /// OSC 133 D: the command ended.
    CommandEnd {
        /// Its exit status if the shell said so.
        status: Option<i32>,
        /// All parameters as written.
        parameters: String,
    },
    /// OSC 7: the working directory, as a path (or as given when it is no `file:` URL).
    Directory(String),
    /// BEL.
    Bell,
    /// OSC 9 or OSC 777: a notification.
    Notification {
        /// Its title; OSC 9 has none.
        title: String,
        /// Its text.
        body: String,
    },
}

/// The colours an absent terminal is said to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalColors {
    /// Text.
    pub foreground: Option<[u8; 3]>,
    /// Behind it.
    pub background: Option<[u8; 3]>,
    /// The cursor.
    pub cursor: Option<[u8; 3]>,
}

impl Default for TerminalColors {
    /// Light on dark: most terminals are, and programs that ask mostly want to know just that.
    fn default() -> TerminalColors {
        TerminalColors {
            foreground: Some([0xd8, 0xd8, 0xd8]),
            background: Some([0x18, 0x18, 0x18]),
            cursor: Some([0xd8, 0xd8, 0xd8]),
        }
    }
}

/// Longest token of a run: the host writes 32 hexadecimal digits.
pub const TOKEN_BYTES_MAX: usize = 64;

/// A mark as the shell integration writes it: the host's own parameters taken apart.
///
/// Says nothing of who wrote it: any program can print any of them. Only a token that was still secret proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellMark<'a> {
    /// A prompt is about to be printed: no command runs.
    PromptStart {
        /// `$?` as the prompt sees it; after a line that did not parse, what the shell says of it.
        last: Option<i32>,
        /// The file with the shell's state, if this is the first prompt or a command ended since the last.
        state: Option<u8>,
        /// It has bound the key that asks what its line holds.
        asks: bool,
    },
    /// The shell wants the rest of a command: a quote or a block is open.
    Continuation,
    /// The prompt is printed, the line editor reads.
    PromptEnd,
    /// The line editor was asked what its line holds.
    Line {
        /// Nothing.
        empty: bool,
    },
    /// A command starts, or (again) its output does. Without a token: not a run's.
    CommandStart {
        /// The token of the run.
        token: Option<&'a str>,
    },
    /// A command ended.
    CommandEnd {
        /// `$?`.
        status: Option<i32>,
        /// The token of the run; none for what a person typed.
        token: Option<&'a str>,
    },
    /// The shell's working directory.
    Cwd(&'a str),
}

impl MarkKind {
    /// The mark, if it is one of our shell integration's: others lack the parameter `hf`.
    #[must_use]
    pub fn shell(&self) -> Option<ShellMark<'_>> {
        let parameters = match self {
            MarkKind::PromptStart(text) | MarkKind::CommandStart(text) | MarkKind::OutputStart(text) => text,
            MarkKind::CommandEnd { parameters, .. } => parameters,
            MarkKind::Directory(path) => return Some(ShellMark::Cwd(path)),
            MarkKind::Bell | MarkKind::Notification { .. } => return None,
        };
        let own = parameter(parameters, "hf")?;
        let token = Some(own)
            .filter(|t| (1..=TOKEN_BYTES_MAX).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_alphanumeric()));
        Some(match self {
            MarkKind::PromptStart(_) if parameter(parameters, "k") == Some("s") => ShellMark::Continuation,
            MarkKind::PromptStart(_) => ShellMark::PromptStart {
                last: parameter(parameters, "last").and_then(|n| n.parse().ok()),
                state: parameter(parameters, "state").and_then(|n| n.parse().ok()).filter(|n| *n < 3),
                asks: parameter(parameters, "ask").is_some(),
            },
            MarkKind::CommandStart(_) => match parameter(parameters, "line") {
                Some(characters) => ShellMark::Line { empty: characters == "0" },
                None => ShellMark::PromptEnd,
            },
            MarkKind::OutputStart(_) => ShellMark::CommandStart { token },
            MarkKind::CommandEnd { status, .. } => ShellMark::CommandEnd { status: *status, token },
            MarkKind::Directory(_) | MarkKind::Bell | MarkKind::Notification { .. } => return None,
        })
    }
}

/// The value of a parameter in `a;b=c;…`; empty if it has none.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split(';').find_map(|part| {
        let rest = part.strip_prefix(name)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('=') }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_our_integration_are_taken_apart_and_others_left_alone() {
        let end = |parameters: &str| MarkKind::CommandEnd {
            status: parameters.split(';').next().and_then(|n| n.parse().ok()),
            parameters: parameters.into(),
        };
        let cases = [
            (MarkKind::PromptStart("hf".into()), Some(ShellMark::PromptStart { last: None, state: None, asks: false })),
            (
                MarkKind::PromptStart("hf;last=2;state=1;ask".into()),
                Some(ShellMark::PromptStart { last: Some(2), state: Some(1), asks: true }),
            ),
            (
                MarkKind::PromptStart("hf;last=x;state=7".into()),
                Some(ShellMark::PromptStart { last: None, state: None, asks: false }),
            ),
            (MarkKind::PromptStart("hf;k=s".into()), Some(ShellMark::Continuation)),
            (MarkKind::PromptStart("k=i;aid=3".into()), None),
            (MarkKind::PromptStart("hfx".into()), None),
            (MarkKind::CommandStart("hf".into()), Some(ShellMark::PromptEnd)),
            (MarkKind::CommandStart("hf;line=0".into()), Some(ShellMark::Line { empty: true })),
            (MarkKind::CommandStart("hf;line=12".into()), Some(ShellMark::Line { empty: false })),
            (MarkKind::CommandStart("hf;line".into()), Some(ShellMark::Line { empty: false })),
            (MarkKind::OutputStart("hf=".into()), Some(ShellMark::CommandStart { token: None })),
            (MarkKind::OutputStart("hf=ab12".into()), Some(ShellMark::CommandStart { token: Some("ab12") })),
            (MarkKind::OutputStart("hf=a b".into()), Some(ShellMark::CommandStart { token: None })),
            (
                MarkKind::OutputStart(format!("hf={}", "a".repeat(TOKEN_BYTES_MAX + 1))),
                Some(ShellMark::CommandStart { token: None }),
            ),
            (end("130;hf=ab12"), Some(ShellMark::CommandEnd { status: Some(130), token: Some("ab12") })),
            (end(";hf="), Some(ShellMark::CommandEnd { status: None, token: None })),
            (end("0;aid=1"), None),
            (MarkKind::Directory("/a b".into()), Some(ShellMark::Cwd("/a b"))),
            (MarkKind::Bell, None),
        ];
        for (mark, expected) in &cases {
            assert_eq!(mark.shell(), *expected, "{mark:?}");
        }
    }
}
