//! Text that a chat shows as it is: no control, nothing that turns text around, nothing that leaves its block.

/// Whether a terminal or a chat would obey a character instead of showing it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A text whose lines stay, and in which nothing is obeyed.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' => {}
            c if is_obeyed(c) => out.push('·'),
            c => out.push(c),
        }
    }
    out
}

/// The same in one line of at most so many characters.
pub fn line(text: &str, chars_max: usize) -> String {
    let text = harmless(text).replace('\n', " ");
    if text.chars().count() <= chars_max {
        return text;
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// How the services count.
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The end of a text that fits so many units, from the beginning of a line where there is one; whether something was left out.
pub fn tail(text: &str, units_max: usize) -> (&str, bool) {
    if units(text) <= units_max {
        return (text, false);
    }
    let mut left = units_max;
    let mut from = text.len();
    for (at, c) in text.char_indices().rev() {
        if c.len_utf16() > left {
            break;
        }
        left -= c.len_utf16();
        from = at;
    }
    let cut = &text[from..];
    let whole = cut.find('\n').filter(|at| *at < cut.len() / 2).map_or(cut, |at| &cut[at + 1..]);
    (whole, true)
}

/// The beginning of a text that fits.
pub fn head(text: &str, units_max: usize) -> &str {
    let mut left = units_max;
    for (at, c) in text.char_indices() {
        if c.len_utf16() > left {
            return &text[..at];
        }
        left -= c.len_utf16();
    }
    text
}

/// For Telegram's HTML.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// For a block of Discord's Markdown: no run of backticks ends it.
pub fn fenced(text: &str) -> String {
    text.replace('`', "`\u{200b}")
}

/// For words outside a block of Discord's Markdown.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\*_~`|>#[]<@".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hostile_is_obeyed() {
        assert_eq!(harmless("a\x1b[31mb\u{202e}c\r\n\td\0"), "a·[31mb·c\n    d·");
        assert_eq!(html("</pre><b>&"), "&lt;/pre&gt;&lt;b&gt;&amp;");
        assert!(!fenced("```\n@everyone ``````").contains("``"));
        assert_eq!(line("a\nb", 9), "a b");
        assert_eq!(line("abcdef", 3), "ab…");
    }

    #[test]
    fn a_tail_fits_and_begins_with_a_line() {
        assert_eq!(tail("ab\ncd", 9), ("ab\ncd", false));
        assert_eq!(tail("aaaa\nbb\ncccc", 9), ("bb\ncccc", true));
        let wide = "🦀".repeat(100);
        let (cut, _) = tail(&wide, 11);
        assert_eq!(units(cut), 10);
        assert_eq!(units(head(&wide, 11)), 10);
    }
}
