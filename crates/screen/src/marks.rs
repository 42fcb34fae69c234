//! What a program told the terminal on the side: prompts, commands, directories, bells, questions.

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
