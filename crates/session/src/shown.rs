//! Whether a terminal showed what was typed: the text in both, without what only steers.

/// What is text in keys or in output: escape sequences and control characters left out.
pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = bytes;
    while let [first, more @ ..] = rest {
        rest = match first {
            0x1b => after_escape(more),
            0..0x20 | 0x7f => more,
            _ => {
                text.push(*first);
                more
            }
        };
    }
    text
}

/// Behind an escape sequence, whose first byte is gone. One that is cut off is all of the rest.
fn after_escape(bytes: &[u8]) -> &[u8] {
    let behind = |end: Option<usize>| end.map_or(&[][..], |end| &bytes[end + 1..]);
    match bytes {
        [b'[', ..] => behind(bytes.iter().skip(1).position(|b| (0x40..0x7f).contains(b)).map(|at| at + 1)),
        // Texts for the terminal: up to BEL, or ESC and a backslash.
        [b']' | b'P' | b'X' | b'^' | b'_', ..] => {
            let bel = bytes.iter().position(|b| *b == 7);
            let st = bytes.windows(2).position(|pair| pair == b"\x1b\\").map(|at| at + 1);
            behind(match (bel, st) {
                (Some(bel), Some(st)) => Some(bel.min(st)),
                (bel, st) => bel.or(st),
            })
        }
        [b'O' | b' '..=b'/', ..] => behind((bytes.len() > 1).then_some(1)),
        [_, more @ ..] => more,
        [] => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_steers_is_no_text() {
        let cases: [(&[u8], &str); 8] = [
            (b"ls -l\r", "ls -l"),
            (b"\x1b[A\x1bOB\x1b[200~paste\x1b[201~", "paste"),
            (b"l\x1b[32ms\x1b[0m\x08 \x08", "ls "),
            (b"\x1b]133;A\x07$ \x1b]2;title\x1b\\ls", "$ ls"),
            (b"\x1b(Bx", "x"),
            (b"\x03\x04\r", ""),
            (b"\x1b[31", ""),
            (b"\x1b", ""),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(String::from_utf8(text(bytes)).unwrap(), wanted);
        }
    }
}
