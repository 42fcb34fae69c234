//! What a terminal says of itself among the keys: focus, and answers to queries.
//!
//! No person pressed those: from a terminal that does not write they must neither take the turn nor be refused aloud. Pure.

/// The keys without focus reports, and without answers where this terminal should give none.
pub fn without_reports(keys: &[u8], answers_too: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(keys.len());
    let mut rest = keys;
    while let Some(first) = rest.first() {
        let length = report(rest, answers_too);
        if length == 0 {
            out.push(*first);
        }
        rest = &rest[length.max(1)..];
    }
    out
}

/// How many bytes the report at the beginning takes; 0: it is none, or not whole.
fn report(keys: &[u8], answers_too: bool) -> usize {
    match keys {
        [0x1b, b'[', b'I' | b'O', ..] => 3,
        [0x1b, b'[', rest @ ..] if answers_too => {
            let Some(end) = rest.iter().position(|b| (0x40..=0x7e).contains(b)) else { return 0 };
            if is_answer(&rest[..end], rest[end]) { end + 3 } else { 0 }
        }
        [0x1b, b']' | b'P' | b'_', rest @ ..] if answers_too => string_end(rest).map_or(0, |end| end + 2),
        _ => 0,
    }
}

fn is_answer(body: &[u8], last: u8) -> bool {
    match last {
        b'c' | b'n' | b't' => true,
        b'y' => body.ends_with(b"$"),
        b'u' | b'm' | b'S' => body.starts_with(b"?") || body.starts_with(b">"),
        // A cursor in the first row looks like F3 with a modifier.
        b'R' => body.contains(&b';') && !body.starts_with(b"1;"),
        _ => false,
    }
}

/// Where a string ends, by BEL or ST.
fn string_end(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|b| matches!(b, 0x07 | 0x1b))?;
    match &text[end..] {
        [0x07, ..] => Some(end + 1),
        [0x1b, b'\\', ..] => Some(end + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn focus_reports_go_and_keys_stay() {
        assert_eq!(without_reports(b"\x1b[I", false), b"");
        assert_eq!(without_reports(b"\x1b[Oa\x1b[Ib\x1b[A", false), b"ab\x1b[A");
        for keys in
            [&b"ls\r"[..], b"\x1b", b"\x1b[", b"\x1bO", b"\x1bOP", b"\x1b[1;2R", b"\x1b[<0;1;1M", b"\x1b]", b"\x1bP"]
        {
            assert_eq!(without_reports(keys, true), keys, "{keys:?}");
        }
    }

    #[test]
    fn answers_go_only_where_none_should_be_given() {
        let answers: [&[u8]; 9] = [
            b"\x1b[?62;4c",
            b"\x1b[>1;10;0c",
            b"\x1b[24;80R",
            b"\x1b[0n",
            b"\x1b[8;24;80t",
            b"\x1b[?2026;2$y",
            b"\x1b[?1u",
            b"\x1b]11;rgb:0000/0000/0000\x07",
            b"\x1bP1+r544e=78\x1b\\",
        ];
        for answer in answers {
            let keys = [b"a", answer, b"b"].concat();
            assert_eq!(without_reports(&keys, true), b"ab", "{answer:?}");
            assert_eq!(without_reports(&keys, false), keys);
        }
    }
}
