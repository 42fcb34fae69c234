//! Names of keys, as people write them, and the bytes a terminal sends for them.
//!
//! Cursor keys without modifiers have two forms; the program in the session says which one it wants.

use std::fmt;
use std::str::FromStr;

/// What a key sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

impl Key {
    /// A cursor key, which a program may want in its application form.
    #[must_use]
    pub fn has_two_forms(&self) -> bool {
        matches!(self.0.as_slice(), [0x1b, b'[', b'A'..=b'D' | b'F' | b'H'])
    }

    /// What to send.
    #[must_use]
    pub fn bytes(&self, application: bool) -> Vec<u8> {
        match self.0.as_slice() {
            [escape, _, key] if application && self.has_two_forms() => vec![*escape, b'O', *key],
            other => other.to_vec(),
        }
    }
}

/// A text that names no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no such key; keys are like C-c, M-x, Enter, Tab, Esc, Space, BSpace, Up, Home, PgUp, Delete, F1, or a character"
        )
    }
}

impl std::error::Error for KeyError {}

/// The modifiers of a key, as the bits xterm counts from 1.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    shift: bool,
    meta: bool,
    control: bool,
}

impl Held {
    fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.control)
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Key, KeyError> {
        let mut held = Held::default();
        let mut rest = text;
        // `C--` is Control and a hyphen: a prefix counts only where a key follows it.
        while let Some((prefix, key)) = rest.split_at_checked(2).filter(|(_, key)| !key.is_empty()) {
            match prefix {
                "C-" | "c-" => held.control = true,
                "M-" | "m-" => held.meta = true,
                "S-" | "s-" => held.shift = true,
                _ => break,
            }
            rest = key;
        }
        named(rest, held).or_else(|| character(rest, held)).map(Key).ok_or(KeyError)
    }
}

/// The control byte of a character: `C-a` is 1, `C-\` is 28.
#[must_use]
pub fn control(c: char) -> Option<u8> {
    match c {
        '@' | ' ' => Some(0),
        'a'..='z' | 'A'..='Z' | '[' | '\\' | ']' | '^' | '_' => Some(c as u8 & 0x1f),
        // What terminals send for Ctrl-/: the same as for C-_.
        '/' => Some(0x1f),
        '?' => Some(0x7f),
        _ => None,
    }
}

fn character(text: &str, held: Held) -> Option<Vec<u8>> {
    let mut chars = text.chars();
    let (Some(c), None) = (chars.next(), chars.next()) else { return None };
    let mut out = if held.meta { vec![0x1b] } else { vec![] };
    if held.control {
        out.push(control(c)?);
    } else {
        let c = if held.shift { c.to_ascii_uppercase() } else { c };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(out)
}

fn named(name: &str, held: Held) -> Option<Vec<u8>> {
    let simple = |byte: u8| Some(if held.meta { vec![0x1b, byte] } else { vec![byte] });
    // `CSI letter`, or `CSI 1 ; modifiers letter`.
    let letter = |letter: char| match held.parameter() {
        1 => Some(format!("\x1b[{letter}").into_bytes()),
        modifiers => Some(format!("\x1b[1;{modifiers}{letter}").into_bytes()),
    };
    let tilde = |number: u8| match held.parameter() {
        1 => Some(format!("\x1b[{number}~").into_bytes()),
        modifiers => Some(format!("\x1b[{number};{modifiers}~").into_bytes()),
    };
    match name.to_ascii_lowercase().as_str() {
        "enter" | "return" | "cr" => simple(b'\r'),
        "tab" if held.shift => Some(b"\x1b[Z".to_vec()),
        "tab" => simple(b'\t'),
        "btab" => Some(b"\x1b[Z".to_vec()),
        "esc" | "escape" => simple(0x1b),
        "space" if held.control => simple(0),
        "space" => simple(b' '),
        "bspace" | "backspace" => simple(0x7f),
        "up" => letter('A'),
        "down" => letter('B'),
        "right" => letter('C'),
        "left" => letter('D'),
        "home" => letter('H'),
        "end" => letter('F'),
        "insert" | "ic" => tilde(2),
        "delete" | "dc" => tilde(3),
        "pgup" | "pageup" | "ppage" => tilde(5),
        "pgdn" | "pagedown" | "npage" => tilde(6),
        other => function(other.strip_prefix('f')?.parse().ok()?, held.parameter()),
    }
}

fn function(number: u8, modifiers: u8) -> Option<Vec<u8>> {
    let text = match (number, modifiers) {
        (1..=4, 1) => format!("\x1bO{}", (b'O' + number) as char),
        (1..=4, _) => format!("\x1b[1;{modifiers}{}", (b'O' + number) as char),
        (5..=12, _) => {
            let code = [15, 17, 18, 19, 20, 21, 23, 24][usize::from(number - 5)];
            if modifiers == 1 { format!("\x1b[{code}~") } else { format!("\x1b[{code};{modifiers}~") }
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_send_what_a_terminal_would() {
        let keys: &[(&str, &[u8])] = &[
            ("C-c", b"\x03"),
            ("c-C", b"\x03"),
            ("C-\\", b"\x1c"),
            ("C-Space", b"\0"),
            ("C-?", b"\x7f"),
            ("Enter", b"\r"),
            ("tab", b"\t"),
            ("S-Tab", b"\x1b[Z"),
            ("Esc", b"\x1b"),
            ("Space", b" "),
            ("BSpace", b"\x7f"),
            ("Up", b"\x1b[A"),
            ("C-Left", b"\x1b[1;5D"),
            ("PgUp", b"\x1b[5~"),
            ("S-Delete", b"\x1b[3;2~"),
            ("F1", b"\x1bOP"),
            ("F4", b"\x1bOS"),
            ("F5", b"\x1b[15~"),
            ("F12", b"\x1b[24~"),
            ("C-F1", b"\x1b[1;5P"),
            ("M-x", b"\x1bx"),
            ("C-M-x", b"\x1b\x18"),
            ("M-Enter", b"\x1b\r"),
            ("x", b"x"),
            ("-", b"-"),
            ("é", "é".as_bytes()),
        ];
        for (name, bytes) in keys {
            assert_eq!(name.parse(), Ok(Key(bytes.to_vec())), "{name}");
        }
    }

    #[test]
    fn what_names_no_key_is_refused() {
        for name in ["", "C-", "C-é", "F0", "F13", "Foo", "ab", "M-"] {
            assert_eq!(name.parse::<Key>(), Err(KeyError), "{name}");
        }
    }
}
