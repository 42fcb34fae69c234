//! What a terminal sends by itself: answers to queries, focus and mouse reports.

/// Whether these bytes are such reports alone: nobody typed them.
pub fn are_all_of(keys: &[u8]) -> bool {
    let mut rest = keys;
    while let Some(after) = rest.strip_prefix(b"\x1b") {
        let end = match after.first() {
            // An old mouse report has three bytes behind it.
            Some(b'[') if after[1..].starts_with(b"M") => Some(4).filter(|end| *end < after.len()),
            Some(b'[') => {
                let end = after[1..].iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|end| end + 1);
                let by_itself = |end: &usize| match &after[1..=*end] {
                    b"I" | b"O" => true,
                    [b'?', ..] => true,
                    [b'<', .., b'M' | b'm'] => true,
                    [.., last] => b"cnRyt".contains(last),
                    [] => false,
                };
                end.filter(by_itself)
            }
            Some(b']' | b'P' | b'_') => after
                .iter()
                .position(|byte| *byte == 7)
                .or_else(|| after.windows(2).position(|w| w == b"\x1b\\").map(|at| at + 1)),
            _ => None,
        };
        let Some(end) = end else { return false };
        rest = &after[end + 1..];
    }
    !keys.is_empty() && rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_terminals_are_told_from_keys() {
        for answer in ["\x1b[I\x1b[O", "\x1b[<0;3;4M\x1b[<0;3;4m", "\x1b[M !!"] {
            assert!(are_all_of(answer.as_bytes()), "{answer:?}");
        }
        for answer in ["\x1b[?62;4c", "\x1b[1;1R", "\x1b]11;rgb:0/0/0\x1b\\", "\x1bP1+r\x1b\\\x1b[?1u", "\x1b]10;x\x07"]
        {
            assert!(are_all_of(answer.as_bytes()), "{answer:?}");
        }
        for keys in [
            "",
            "a",
            "\x1b",
            "\x1b[A",
            "\x1b[?62;4ca",
            "\x1bb",
            "\x1b[200~ls\x1b[201~",
            "\x1b[M !",
            "\x1bOP",
            "\x1b[1;2I",
        ] {
            assert!(!are_all_of(keys.as_bytes()), "{keys:?}");
        }
    }
}
