//! No stream panics, hangs or can be told apart after a keyframe.
#![no_main]

use holdfast_screen::{PlainText, QueryFilter, Screen, Viewport};
use holdfast_types::Size;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [cols, rows, cut, bytes @ ..] = input else { return };
    let size = Size::clamped(u16::from(*cols % 64), u16::from(*rows % 16));
    let mut whole = Screen::new(size, 0);
    whole.feed(bytes);
    let (first, rest) = bytes.split_at(bytes.len() * usize::from(*cut) / 256);
    let mut early = Screen::new(size, 0);
    early.feed(first);
    let mut restored = Screen::restore(&early.keyframe()).expect("an own keyframe restores");
    restored.feed(rest);
    assert_eq!(restored.keyframe(), whole.keyframe());
    let (mut filtered, mut text) = (Vec::new(), Vec::new());
    QueryFilter::new().feed(bytes, &mut filtered);
    PlainText::new().feed(bytes, &mut text);
    assert!(std::str::from_utf8(&text).is_ok());
    let resized = Size::clamped(u16::from(*rows % 64), u16::from(*cols % 16));
    Viewport::new(resized).render(&whole);
    whole.resize(resized);
    assert!(!whole.repaint(Some(b"")).is_empty());
    assert!(Screen::restore(&whole.keyframe()).is_ok());
});
