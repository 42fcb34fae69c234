//! A prompt in one line: what is typed while it is open is for it, and not for the session.
//!
//! Understands keys however the terminal encodes them, as the chord does. Pure: bytes in, what was decided out.

use super::notice::{columns, visible};
use holdfast_types::Handle;

/// Longest text, in characters: a reason is a line for people.
pub const TEXT_MAX: usize = 200;
/// An escape sequence longer than this is none of a key's.
const SEQUENCE_MAX: usize = 64;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To whom the turn goes.
    Give,
    /// Why the turn was seized a moment ago, and whether the tree is to stand still.
    Seize {
        /// It does.
        freeze: bool,
    },
    /// What the answer to a question is.
    Answer,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// Give the turn to this one.
    Give(Handle),
    /// It was seized for this reason.
    Seize {
        /// And the tree stands still.
        freeze: bool,
        /// Why; nothing where only the tree is to stand still.
        reason: String,
    },
    /// Answer the question.
    Answer(String),
    /// None of it.
    Nothing,
}

/// An open prompt.
#[derive(Debug)]
pub struct Prompt {
    purpose: Purpose,
    /// What stands before the text.
    label: String,
    text: String,
    /// Why Enter did not do.
    hint: String,
    /// Bytes of a key that has not come whole.
    partial: Vec<u8>,
    pasting: bool,
    /// What it asks about has been done.
    done: bool,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Char(char),
    Control(u8),
    Escape,
    Paste(bool),
    Other,
}

impl Prompt {
    /// An empty one.
    pub fn new(purpose: Purpose) -> Prompt {
        Prompt::labelled(purpose, String::new())
    }

    /// An empty one behind a text that shows what it is about.
    pub fn labelled(purpose: Purpose, label: String) -> Prompt {
        Prompt {
            purpose,
            label,
            text: String::new(),
            hint: String::new(),
            partial: Vec::new(),
            pasting: false,
            done: false,
        }
    }

    /// The turn is ours; the reason is still asked for.
    pub fn seized(mut self) -> Prompt {
        self.done |= self.is_about_seizure();
        self
    }

    /// It asks why the turn is seized.
    pub fn is_about_seizure(&self) -> bool {
        matches!(self.purpose, Purpose::Seize { .. })
    }

    /// Offers an answer, where none was typed yet.
    pub fn offer(&mut self, handle: &Handle) {
        if self.purpose == Purpose::Give && self.text.is_empty() {
            self.text = handle.to_string();
        }
    }

    /// Takes keys as they come; what follows a decision is dropped.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Decided> {
        let mut bytes = [std::mem::take(&mut self.partial), bytes.to_vec()].concat();
        while !bytes.is_empty() {
            let Some((key, length)) = first_key(&bytes) else {
                if bytes.len() <= SEQUENCE_MAX {
                    self.partial = bytes;
                }
                return None;
            };
            bytes.drain(..length);
            if let Some(decided) = self.press(key) {
                return Some(decided);
            }
        }
        None
    }

    fn press(&mut self, key: Key) -> Option<Decided> {
        match key {
            Key::Char(c) => self.insert(c),
            Key::Control(b'\r' | b'\n' | b'\t') if self.pasting => self.insert(' '),
            Key::Control(b'\r' | b'\n') => return self.enter(),
            Key::Control(0x08 | 0x7f) => {
                self.text.pop();
                self.hint.clear();
            }
            Key::Control(0x15) => {
                self.text.clear();
                self.hint.clear();
            }
            Key::Control(0x06) => {
                if let Purpose::Seize { freeze } = &mut self.purpose {
                    *freeze = !*freeze;
                }
            }
            Key::Escape | Key::Control(0x03) => return Some(Decided::Nothing),
            Key::Paste(on) => self.pasting = on,
            Key::Control(_) | Key::Other => {}
        }
        None
    }

    fn insert(&mut self, c: char) {
        self.hint.clear();
        if self.text.chars().count() < TEXT_MAX {
            self.text.push(c);
        }
    }

    fn enter(&mut self) -> Option<Decided> {
        let text = self.text.trim();
        match self.purpose {
            Purpose::Give => match text.parse() {
                Ok(handle) => return Some(Decided::Give(handle)),
                Err(error) => self.hint = format!("{error}"),
            },
            Purpose::Seize { freeze } if freeze || !text.is_empty() => {
                return Some(Decided::Seize { freeze, reason: text.to_owned() });
            }
            // Nothing more to say.
            Purpose::Seize { .. } => return Some(Decided::Nothing),
            Purpose::Answer if !text.is_empty() => return Some(Decided::Answer(text.to_owned())),
            Purpose::Answer => self.hint = "Esc cancels".into(),
        }
        None
    }

    /// What to show, at most so many columns; of a long text its end.
    pub fn line(&self, width: usize) -> String {
        let label = match self.purpose {
            Purpose::Give => " give the turn to: ",
            Purpose::Seize { freeze: false } if self.done => " you have the turn · Ctrl-F freezes · why? ",
            Purpose::Seize { freeze: true } if self.done => " [freeze] you have the turn · why? ",
            Purpose::Seize { freeze: false } => " seizing the turn · Ctrl-F freezes · why? ",
            Purpose::Seize { freeze: true } => " [freeze] seizing the turn · why? ",
            Purpose::Answer => &self.label,
        };
        let hint = if self.hint.is_empty() { String::new() } else { format!("· {} ", self.hint) };
        let text = visible(&self.text);
        let room = width.saturating_sub(columns(label) + columns(&hint) + 2);
        let mut shown = text.as_str();
        while columns(shown) > room {
            let mut rest = shown.chars();
            rest.next();
            shown = rest.as_str();
        }
        format!("{label}{shown}_ {hint}")
    }
}

/// The first key and how many bytes it takes; none: it is not whole yet.
fn first_key(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes {
        // A lone escape is the escape key.
        [0x1b] | [0x1b, 0x1b, ..] => Some((Key::Escape, 1)),
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|b| (0x40..=0x7e).contains(b))?;
            let body = std::str::from_utf8(&rest[..end]).unwrap_or("");
            Some((encoded(body, rest[end]), end + 3))
        }
        [0x1b, b'O', ..] => (bytes.len() > 2).then_some((Key::Other, 3)),
        [0x1b, _, ..] => Some((Key::Other, 2)),
        [control @ (..=0x1f | 0x7f), ..] => Some((Key::Control(*control), 1)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let beginning = &bytes[..bytes.len().min(4)];
    let whole = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).expect("valid up to there")
        }
        Err(error) if error.error_len().is_none() => return None,
        Err(_) => return Some((Key::Other, 1)),
    };
    let c = whole.chars().next()?;
    let key = if c.is_control() { Key::Other } else { Key::Char(c) };
    Some((key, c.len_utf8()))
}

/// A key as an escape sequence: the kitty protocol's, modifyOtherKeys', or another one, which means nothing here.
fn encoded(body: &str, last: u8) -> Key {
    let number = |text: &str| text.split(':').next().and_then(|n| n.parse::<u32>().ok());
    let fields: Vec<&str> = body.split(';').collect();
    let (code, modifiers) = match (last, fields.as_slice()) {
        (b'~', ["200"]) => return Key::Paste(true),
        (b'~', ["201"]) => return Key::Paste(false),
        (b'~', ["27", modifiers, code]) => (number(code), *modifiers),
        (b'u', [code]) => (number(code), ""),
        (b'u', [code, modifiers, ..]) => (number(code), *modifiers),
        _ => return Key::Other,
    };
    let Some(c) = code.and_then(char::from_u32) else { return Key::Other };
    let (shift, ctrl) = match number(modifiers).unwrap_or(1).saturating_sub(1) {
        bits if modifiers.ends_with(":3") || bits & 0b10_1010 != 0 => return Key::Other,
        bits => (bits & 1 != 0, bits & 4 != 0),
    };
    match c {
        '\x1b' => Key::Escape,
        c if ctrl && c.is_ascii_alphabetic() => Key::Control(c as u8 & 0x1f),
        c if ctrl || ('\u{e000}'..='\u{f8ff}').contains(&c) => Key::Other,
        c if c.is_ascii_control() => Key::Control(c as u8),
        c if c.is_control() => Key::Other,
        c if shift => Key::Char(c.to_uppercase().next().unwrap_or(c)),
        c => Key::Char(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seize(chunks: &[&[u8]]) -> (Option<Decided>, String) {
        let mut prompt = Prompt::new(Purpose::Seize { freeze: false });
        let decided = chunks.iter().find_map(|chunk| prompt.feed(chunk));
        (decided, prompt.line(80))
    }

    fn seized(freeze: bool, reason: &str) -> Option<Decided> {
        Some(Decided::Seize { freeze, reason: reason.into() })
    }

    #[test]
    fn a_reason_is_typed_corrected_and_entered() {
        assert_eq!(seize(&[b"it lops", b"\x7f\x7f\x7foops", b"\r"]).0, seized(false, "it loops"));
        assert_eq!(seize(&[b"nonsense\x15it loops\x06\r"]).0, seized(true, "it loops"));
        assert_eq!(seize(&[b"\x06\x06x\n"]).0, seized(false, "x"));
        assert_eq!(seize(&[b"x\x06"]).1, " [freeze] seizing the turn · why? x_ ");
        assert_eq!(seize(&[b"\x06\r"]).0, seized(true, ""), "the tree stands still at once");
    }

    #[test]
    fn a_reason_may_be_left_out() {
        let prompt = Prompt::new(Purpose::Seize { freeze: false }).seized();
        assert_eq!(prompt.line(80), " you have the turn · Ctrl-F freezes · why? _ ");
        assert_eq!(seize(&[b"  \r"]).0, Some(Decided::Nothing));
        for cancel in [&b"\x1b"[..], b"\x1b\x1b", b"\x03", b"\x1b[27u", b"\x1b[27;1u", b"\x1b[99;5u"] {
            assert_eq!(seize(&[b"why", cancel]).0, Some(Decided::Nothing), "{cancel:?}");
        }
    }

    #[test]
    fn characters_and_sequences_may_come_in_pieces() {
        assert_eq!(seize(&[b"\xc3", b"\xbcber\xff \xe2\x82", b"\xac\r"]).0, seized(false, "über €"));
        assert_eq!(seize(&[b"a\x1b[", b"Db\x1bOA\x1bxc\r"]).0, seized(false, "abc"), "other keys mean nothing");
        assert_eq!(seize(&[b"\x1b[97u\x1b[98;2u\x1b[99;1:3u\x1b[102;5u\x1b[27;5;102~\x1b[13u"]).0, seized(false, "aB"));
        assert_eq!(
            seize(&[b"\x1b[200~two\r\nlines\x1b[201~\r"]).0,
            seized(false, "two  lines"),
            "a paste enters nothing"
        );
    }

    #[test]
    fn a_text_is_bounded_and_its_end_is_shown() {
        let (decided, line) = seize(&[&[b'x'; 500], b"yz\r"]);
        assert_eq!(decided, seized(false, &"x".repeat(TEXT_MAX)));
        assert_eq!(columns(&line), 80);
        let mut prompt = Prompt::new(Purpose::Seize { freeze: false });
        prompt.feed("a long reason that ends 終わり".as_bytes());
        assert_eq!(prompt.line(51), " seizing the turn · Ctrl-F freezes · why?  終わり_ ");
        assert!(prompt.feed(&[b"\x1b[".to_vec(), vec![b'1'; 100]].concat()).is_none());
        assert_eq!(
            prompt.feed(b"!\r"),
            seized(false, "a long reason that ends 終わり!"),
            "endless sequences are let go"
        );
    }

    #[test]
    fn an_answer_is_typed_behind_its_question() {
        let mut prompt = Prompt::labelled(Purpose::Answer, " agent:bot asks: go? ".into());
        assert_eq!(prompt.feed(b"\r"), None);
        assert_eq!(prompt.line(80), " agent:bot asks: go? _ · Esc cancels ");
        assert_eq!(prompt.feed(b"yes"), None);
        assert_eq!(prompt.line(80), " agent:bot asks: go? yes_ ");
        assert_eq!(prompt.feed(b"\r"), Some(Decided::Answer("yes".into())));
    }

    #[test]
    fn a_handle_is_offered_and_must_be_one() {
        let (claude, ann): (Handle, Handle) = ("agent:claude".parse().unwrap(), "human:ann".parse().unwrap());
        let mut prompt = Prompt::new(Purpose::Give);
        prompt.offer(&claude);
        prompt.offer(&ann);
        assert_eq!(prompt.line(80), " give the turn to: agent:claude_ ");
        assert_eq!(prompt.feed(b"\x15claude\r"), None);
        assert!(prompt.line(200).contains("expected CLASS:NAME"), "{}", prompt.line(200));
        assert_eq!(prompt.feed(b"\x15human:ann\rrm"), Some(Decided::Give(ann)));
    }
}
