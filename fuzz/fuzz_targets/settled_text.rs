//! Output as settled lines: any bytes, however they are cut, give the same text, which is UTF-8 without escape sequences and within a
//! bound; what is given early is given once.
#![no_main]

use holdfast_screen::SettledText;
use libfuzzer_sys::fuzz_target;

/// A step to the right pads a line up to its row's end: so many cells for each byte at most.
const PADDING_MAX: usize = 16 * 1024;

fuzz_target!(|input: &[u8]| {
    let [cols, cut, bytes @ ..] = input else { return };
    let cols = u16::from(*cols);
    let whole = SettledText::of(cols, bytes);
    let text = std::str::from_utf8(&whole).expect("text is UTF-8");
    assert!(text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{text:?}");
    assert!(whole.len() <= (bytes.len() + 1).saturating_mul(PADDING_MAX));
    let (first, second) = bytes.split_at(bytes.len() * usize::from(*cut) / 256);
    let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
    settled.feed(first, &mut out);
    settled.feed(second, &mut out);
    settled.finish(&mut out);
    assert_eq!(out, whole, "cut at {cut}");
    // Given early: still text, and nothing is left over.
    let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
    settled.feed(first, &mut out);
    settled.flush(&mut out);
    assert!(!settled.holds_text());
    settled.feed(second, &mut out);
    settled.finish(&mut out);
    assert!(std::str::from_utf8(&out).is_ok());
});
