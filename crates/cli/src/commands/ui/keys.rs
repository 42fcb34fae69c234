//! Keys of the picker: bytes in, keys out.

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with Ctrl, in lower case.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    /// Any other one.
    Other,
}

/// A sequence longer than this is none of a key's.
const SEQUENCE_MAX: usize = 32;

/// Takes the keys from the front of what was read; what is left is the beginning of one.
pub fn take_keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((key, length)) = first(bytes) {
        bytes.drain(..length);
        keys.push(key);
    }
    if bytes.len() > SEQUENCE_MAX {
        bytes.clear();
    }
    keys
}

fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes {
        [] => None,
        // A lone escape is the escape key.
        [0x1b] | [0x1b, 0x1b, ..] => Some((Key::Escape, 1)),
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            Some((sequence(&rest[..end], rest[end]), end + 3))
        }
        [0x1b, b'O'] => None,
        [0x1b, b'O', last, ..] => Some((sequence(b"", *last), 3)),
        [0x1b, _, ..] => Some((Key::Other, 2)),
        [b'\r' | b'\n', ..] => Some((Key::Enter, 1)),
        [b'\t', ..] => Some((Key::Tab, 1)),
        [0x08 | 0x7f, ..] => Some((Key::Backspace, 1)),
        [control @ 0x01..=0x1a, ..] => Some((Key::Ctrl(char::from(control + 0x60)), 1)),
        [0..=0x1f, ..] => Some((Key::Other, 1)),
        _ => character(bytes),
    }
}

fn sequence(body: &[u8], last: u8) -> Key {
    match (body, last) {
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'H') | (b"1" | b"7", b'~') => Key::Home,
        (_, b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        _ => Key::Other,
    }
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let beginning = &bytes[..bytes.len().min(4)];
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()?,
        // Its rest is to come.
        Err(error) if error.error_len().is_none() => return None,
        Err(_) => return Some((Key::Other, 1)),
    };
    let c = text.chars().next()?;
    Some((if c.is_control() { Key::Other } else { Key::Char(c) }, c.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_whole_and_in_pieces() {
        let mut bytes = b"a\xc3\xbc\x1b[A\x1bOB\x1b[5~\x1b[6~\x0e\x7f\r\t\x1b[1;5C\xff".to_vec();
        let keys = take_keys(&mut bytes);
        let expected = [
            Key::Char('a'),
            Key::Char('ü'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Ctrl('n'),
            Key::Backspace,
            Key::Enter,
            Key::Tab,
            Key::Other,
            Key::Other,
        ];
        assert_eq!(keys, expected);
        let mut bytes = b"\x1b[".to_vec();
        assert_eq!(take_keys(&mut bytes), []);
        bytes.extend_from_slice(b"B\xe2\x82");
        assert_eq!(take_keys(&mut bytes), [Key::Down]);
        bytes.push(0xac);
        assert_eq!(take_keys(&mut bytes), [Key::Char('€')]);
        assert_eq!(take_keys(&mut b"\x1b".to_vec()), [Key::Escape]);
        let mut endless = [b"\x1b[".to_vec(), vec![b'1'; 100]].concat();
        assert_eq!((take_keys(&mut endless), endless.len()), (vec![], 0));
    }
}
