//! Output as bounded text: its beginning and its end, and the offsets of what is left out.

use holdfast_screen::SettledText;
use holdfast_types::Offset;
use schemars::JsonSchema;
use serde::Serialize;

/// Most output in one answer unless said otherwise: two thousand tokens, which an agent can afford for each of many commands.
pub const OUTPUT_BYTES: u32 = 8 * 1024;
/// Most output in one answer whatever is said.
pub const OUTPUT_BYTES_MAX: u32 = 64 * 1024;
/// Longest line in the answer of a command: a minified file must not take the room of what follows it.
const LINE_CHARS_MAX: usize = 1000;

/// How many bytes are given, by what was asked for.
pub fn bounded(asked: Option<u32>) -> u32 {
    asked.unwrap_or(OUTPUT_BYTES).clamp(1, OUTPUT_BYTES_MAX)
}

/// Output that is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Span {
    /// Offset of its first byte.
    pub from: Offset,
    /// Offset behind its last byte.
    pub to: Offset,
}

impl From<holdfast_wire::params::Gap> for Span {
    fn from(gap: holdfast_wire::params::Gap) -> Span {
        Span { from: gap.from, to: gap.to }
    }
}

/// What of a range is read when at most `max` bytes may be shown: a quarter from its beginning, the rest from its end, where
/// errors stand.
pub fn parts(range: Span, max: u32) -> (Span, Option<Span>) {
    let max = u64::from(max);
    if range.to.saturating_sub(range.from) <= max {
        return (range, None);
    }
    let head = Span { from: range.from, to: range.from + max / 4 };
    (head, Some(Span { from: range.to - (max - max / 4), to: range.to }))
}

/// Bytes as text as a terminal of so many columns leaves it, and whether some were no UTF-8.
pub fn text(bytes: &[u8], cols: u16) -> (String, bool) {
    let whole = whole_characters(bytes);
    let out = SettledText::of(cols, whole);
    let lossy = std::str::from_utf8(whole).is_err();
    (String::from_utf8_lossy(&out).into_owned(), lossy)
}

/// So much before a cut is looked at for the escape sequence that the cut may be in: titles and the marks of shells are shorter.
pub const LOOK_BACK_BYTES: u32 = 1024;

/// Where text can begin at a cut or behind it: not within an escape sequence, whose rest would be taken for text.
pub fn beginning(bytes: &[u8], cut: usize) -> usize {
    const ESC: u8 = 0x1b;
    let Some(escape) = bytes[..cut].iter().rposition(|byte| *byte == ESC) else { return cut };
    let rest = bytes.get(escape + 2..).unwrap_or_default();
    let ends = match bytes.get(escape + 1) {
        Some(b'[') => rest.iter().position(|byte| (0x40..=0x7e).contains(byte)),
        // A string: to BEL, or to ESC and a backslash.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = rest.iter().position(|byte| matches!(*byte, 0x07 | ESC));
            end.map(|at| if rest[at] == ESC { at + 1 } else { at })
        }
        Some(0x20..=0x2f) => rest.iter().position(|byte| !(0x20..=0x2f).contains(byte)),
        Some(_) | None => return cut.max(escape + 2).min(bytes.len()),
    };
    // One without an end is none.
    ends.map_or(cut, |at| cut.max(escape + 2 + at + 1).min(bytes.len()))
}

/// Without the halves of characters that a cut left at either end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &u8| byte & 0xc0 == 0x80;
    let front = bytes.iter().take(3).take_while(|byte| continues(byte)).count();
    let bytes = &bytes[front..];
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        // A half at the end behind something that is wrong anyway.
        Ok(_) | Err(_) => bytes,
    }
}

/// A text without the ends of very long lines.
pub fn with_short_lines(text: String) -> String {
    if text.lines().all(|line| line.len() <= LINE_CHARS_MAX) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.char_indices().nth(LINE_CHARS_MAX) {
            Some((cut, _)) => {
                let more = line[cut..].trim_end_matches('\n').chars().count();
                out.push_str(&format!("{}… [{more} more characters: read_output shows them]", &line[..cut]));
                out.push_str(if line.ends_with('\n') { "\n" } else { "" });
            }
            None => out.push_str(line),
        }
    }
    out
}

/// How the text shows the part that is left out.
pub fn omission(span: Span) -> String {
    let count = span.to.saturating_sub(span.from);
    format!("\n[… {count} bytes left out: read_output from {} to {} …]\n", span.from, span.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_range_is_shown_from_both_ends_and_a_short_one_whole() {
        let whole = Span { from: 100, to: 1100 };
        assert_eq!(parts(whole, 1000), (whole, None));
        let (head, tail) = parts(whole, 400);
        assert_eq!((head, tail), (Span { from: 100, to: 200 }, Some(Span { from: 800, to: 1100 })));
    }

    #[test]
    fn text_does_not_begin_within_an_escape_sequence() {
        let from = |bytes: &'static str, cut: usize| &bytes[beginning(bytes.as_bytes(), cut)..];
        for cut in 1..11 {
            assert_eq!(from("\x1b]133;A=1\x07prompt", cut), "prompt", "{cut}");
            assert_eq!(from("\x1b]133;A=\x1b\\prompt", cut), "prompt", "{cut}");
        }
        for cut in 1..5 {
            assert_eq!(from("\x1b[31mred", cut), "red", "{cut}");
        }
        assert_eq!((from("\x1b(Bx", 1), from("\x1b(Bx", 2), from("\x1b7x", 1)), ("x", "x", "x"));
        assert_eq!((from("plain", 2), from("\x1b[31mred", 6), from("", 0)), ("ain", "ed", ""));
        // Not a sequence: nothing ends it.
        assert_eq!(from("\x1b]0;a title without an end", 6), "title without an end");
    }

    #[test]
    fn text_has_no_sequences_and_says_when_bytes_were_lost() {
        assert_eq!(text(b"\x1b[1mok\x1b[0m\r\n", 80), ("ok\n".into(), false));
        assert_eq!(text(b"1%\r99%\r100%\r\n", 80).0, "100%\n");
        assert!(text(b"a\xffb", 80).1);
        // Cut in the middle of characters on both sides.
        assert_eq!(text(&"äöü".as_bytes()[1..5], 80), ("ö".into(), false));
    }

    #[test]
    fn what_is_asked_for_is_bounded() {
        assert_eq!((bounded(None), bounded(Some(0)), bounded(Some(u32::MAX))), (8_192, 1, 65_536));
        assert_eq!(bounded(Some(60)), 60);
    }

    #[test]
    fn a_very_long_line_is_cut_and_says_so() {
        let long = format!("a\n{}\nb", "ü".repeat(LINE_CHARS_MAX + 7));
        let short = with_short_lines(long);
        assert!(short.starts_with("a\nü") && short.ends_with("\nb") && short.contains("[7 more characters"), "{short}");
        assert_eq!(with_short_lines("a\nb\n".into()), "a\nb\n");
    }
}
