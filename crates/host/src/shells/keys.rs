//! What to type so that a shell executes exactly this text, once.
//!
//! | text | way |
//! |---|---|
//! | one short line of printable characters, or any short text with bracketed paste in fish | typed, as a person would paste it |
//! | several lines, control characters, `!` where it calls up history, what paste plugins rewrite, long text | in the file `run`, read by a short line |
//!
//! Several lines go by file because bash and zsh end a command at each line of a paste. The file is read by `.` at the shell's
//! own level, so that `cd`, aliases, `declare` and `exit` do what they would do if typed; its first line shows the text in
//! place of the line that reads it and puts it into the history (not in fish, which has no way to).
//!
//! Knows nothing of the terminal: that the prompt is idle and its line empty is for the caller to know.

use super::Kind;

/// Longest text that is typed: with its frame it fits twice into the 4,096 bytes a terminal holds for a shell that is late.
pub const TYPED_BYTES_MAX: usize = 2_000;

/// Longest command: ten times what anybody was seen to send, and still read by a shell in a moment.
pub const COMMAND_BYTES_MAX: usize = 1 << 20;

/// The line that reads `run`. The space keeps it out of histories that ask for it.
const READ_RUN: &str = " . \"$__holdfast/run\"";

/// Columns of that line: shown in place only where it does not wrap.
pub const READ_RUN_COLUMNS: u16 = READ_RUN.len() as u16;

/// The key to which an integrated shell answers whether its line is empty: one that no keyboard has. Without the letters `y` and `n`,
/// which a shell may be asking for.
pub const ASK_LINE: &[u8] = b"\x1b[7133~";

/// How to enter a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What to write to the terminal.
    pub keys: Vec<u8>,
    /// What to write to `run` before that.
    pub run: Option<Vec<u8>>,
}

/// Why a text cannot be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTypable {
    /// No shell can hold one.
    #[error("the command has a NUL byte at {at}")]
    Nul {
        /// Its place.
        at: usize,
    },
    /// The shell would execute nothing, and say nothing.
    #[error("the command is empty")]
    Empty,
    /// See [`COMMAND_BYTES_MAX`].
    #[error("the command has {bytes} bytes, more than {COMMAND_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// How to enter `command`. `column` is where the typed line will begin, from 1, if the line that reads `run` fits behind it.
pub fn keys_for(command: &str, shell: Kind, bracketed_paste: bool, column: Option<u16>) -> Result<Entry, NotTypable> {
    let text = command.trim_end_matches('\n');
    if let Some(at) = text.find('\0') {
        return Err(NotTypable::Nul { at });
    }
    if text.trim().is_empty() {
        return Err(NotTypable::Empty);
    }
    if text.len() > COMMAND_BYTES_MAX {
        return Err(NotTypable::TooLong { bytes: text.len() });
    }
    if !typable(text, shell, bracketed_paste) {
        let column = column.map(|column| column.to_string()).unwrap_or_default();
        return Ok(Entry {
            keys: frame(READ_RUN, bracketed_paste),
            run: Some(format!("__holdfast_entered '{column}'\n{text}\n").into_bytes()),
        });
    }
    Ok(Entry { keys: frame(text, bracketed_paste), run: None })
}

fn typable(text: &str, shell: Kind, bracketed_paste: bool) -> bool {
    let plain = |c: char| !c.is_control() || (c == '\n' && shell == Kind::Fish && bracketed_paste);
    let as_it_is = match shell {
        // History expansion, and quick substitution.
        Kind::Bash => !text.contains('!') && !text.starts_with('^'),
        // The same, and the paste function that many use quotes what is special in addresses.
        Kind::Zsh => !text.contains('!') && !text.starts_with('^') && !text.contains("://"),
        Kind::Fish => true,
    };
    text.len() <= TYPED_BYTES_MAX && as_it_is && text.chars().all(plain)
}

fn frame(text: &str, bracketed_paste: bool) -> Vec<u8> {
    // Terminals send a return for each line of a paste.
    let text = text.replace('\n', "\r");
    if bracketed_paste { format!("\x1b[200~{text}\x1b[201~\r").into_bytes() } else { format!("{text}\r").into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_plain_lines_are_typed_and_all_else_is_read_from_a_file() {
        let long = "a".repeat(TYPED_BYTES_MAX + 1);
        let cases: [(&str, Kind, bool, bool); 14] = [
            ("ls -l", Kind::Bash, true, true),
            ("ls -l\n", Kind::Bash, false, true),
            ("echo ä", Kind::Zsh, true, true),
            ("a\nb", Kind::Bash, true, false),
            ("a\nb", Kind::Zsh, true, false),
            ("a\nb", Kind::Fish, true, true),
            ("a\nb", Kind::Fish, false, false),
            ("a\tb", Kind::Bash, true, false),
            ("a \x1b[201~ b", Kind::Fish, true, false),
            ("echo hi!", Kind::Bash, true, false),
            ("echo hi!", Kind::Fish, true, true),
            ("^a^b", Kind::Zsh, true, false),
            ("curl http://a/?b", Kind::Zsh, true, false),
            (&long, Kind::Bash, true, false),
        ];
        for (text, shell, paste, typed) in cases {
            let entry = keys_for(text, shell, paste, Some(3)).expect("typable");
            assert_eq!(entry.run.is_none(), typed, "{text:?} {shell:?}");
            let escapes = entry.keys.iter().filter(|b| **b == 0x1b).count();
            assert_eq!((escapes, entry.keys.last()), (if paste { 2 } else { 0 }, Some(&b'\r')), "{text:?}");
        }
    }

    #[test]
    fn what_no_shell_can_execute_is_refused() {
        assert_eq!(keys_for("a\0b", Kind::Bash, true, None), Err(NotTypable::Nul { at: 1 }));
        assert_eq!(keys_for(" \n\n", Kind::Fish, true, None), Err(NotTypable::Empty));
        let bytes = COMMAND_BYTES_MAX + 1;
        assert_eq!(keys_for(&"x".repeat(bytes), Kind::Zsh, true, None), Err(NotTypable::TooLong { bytes }));
    }
}
