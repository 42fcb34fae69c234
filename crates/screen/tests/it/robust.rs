//! No stream panics, and none makes a screen grow without bound.

use crate::streams::{Flavour, Random, random_bytes};
use holdfast_screen::{PlainText, QueryFilter, Screen, Viewport, history_text};
use holdfast_types::Size;

fn size(random: &mut Random) -> Size {
    match random.below(10) {
        0 => Size::clamped(2, 1),
        1 => Size::clamped(2, 40),
        2 => Size::clamped(300, 1),
        _ => Size::clamped(2 + random.below(60) as u16, 1 + random.below(30) as u16),
    }
}

#[test]
fn random_bytes_and_sizes_never_panic() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut lines = 0;
    for seed in first..first + 200 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut screen = Screen::new(size(&mut random), 0);
        let (mut viewport, mut out) = (Viewport::new(size(&mut random)), Vec::new());
        for _ in 0..12 {
            let bytes = if random.chance(20) {
                (0..random.below(300)).map(|_| random.next() as u8).collect()
            } else {
                random_bytes(&mut random, 30, Flavour::Wild)
            };
            screen.feed(&bytes);
            QueryFilter::new().feed(&bytes, &mut Vec::new());
            PlainText::new().feed(&bytes, &mut Vec::new());
            if random.chance(40) {
                screen.resize(size(&mut random));
            }
            if random.chance(20) {
                viewport.resize(size(&mut random));
            }
            viewport.render(&screen);
            lines += screen.drain_history(&mut out);
            screen = Screen::restore(&screen.keyframe()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(!screen.repaint(Some(&out)).is_empty());
            let _ = history_text(&screen.open_history());
            assert_eq!(screen.rows_text().len(), usize::from(screen.size().rows()));
        }
    }
    assert!(lines > 0);
}

#[test]
fn the_worst_cases_we_know_of_stay_small_and_quick() {
    let wide = "漢".repeat(2000);
    let mut screen = Screen::new(Size::clamped(1000, 1000), 0);
    screen.feed(wide.as_bytes());
    screen.resize(Size::clamped(1, 1));
    screen.resize(Size::clamped(60000, 60000));
    let mut screen = Screen::new(Size::clamped(80, 24), 0);
    screen.feed(b"a");
    screen.feed("\u{301}".repeat(100_000).as_bytes());
    assert!(screen.keyframe().len() < 2000, "combining marks are bounded");
    screen.feed(b"\x1b]2;");
    for _ in 0..100 {
        screen.feed(&[b'x'; 100_000]);
    }
    assert!(screen.keyframe().len() < 70_000, "an endless string is bounded");
    let mut screen = Screen::new(Size::clamped(80, 24), 0);
    screen.feed(b"a\x1b[99999999b\x1b[65535S\x1b[65535L\x1b[65535@");
    for _ in 0..10_000 {
        screen.feed(b"\x1b[22t\x1b[>1u");
    }
    let length = screen.keyframe().len();
    assert!(length < 10_000, "stacks are bounded: {length}");
}
