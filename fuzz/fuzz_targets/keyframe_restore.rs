//! No bytes make a keyframe panic or allocate without bound, the right checksum included.
#![no_main]

use holdfast_screen::{Screen, sign_keyframe_for_tests};
use holdfast_types::Size;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    assert!(Screen::restore(input).is_err() || input.starts_with(b"HFKF"));
    let mut body = b"HFKF\x01".to_vec();
    body.extend_from_slice(input);
    if let Ok(mut screen) = Screen::restore(&sign_keyframe_for_tests(body)) {
        screen.feed(b"text\r\n\x1b[5;5H\x1b[K\x1b[L\x1b[M\x1b[P\x1b[@\x1b[Z\t\x08");
        screen.resize(Size::clamped(33, 7));
        let again = screen.keyframe();
        assert_eq!(Screen::restore(&again).expect("an own keyframe restores").keyframe(), again);
        assert!(!screen.repaint(Some(b"")).is_empty());
    }
});
