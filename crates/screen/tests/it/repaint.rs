//! A repaint leads a fresh terminal of ours to the same state, and the stream may go on behind it.

use crate::streams::{Flavour, Random, corpus, random_bytes};
use holdfast_screen::Screen;
use holdfast_types::Size;

/// What a repaint shows of a state, in the order to read it in when it differs.
fn picture(screen: &Screen) -> (Vec<String>, (u16, u16), String) {
    let rows = screen.rows_ansi().into_iter().map(|row| String::from_utf8(row).unwrap()).collect();
    (rows, screen.cursor(), String::from_utf8_lossy(&screen.repaint(None)).into_owned())
}

fn check(screen: &Screen, what: &str) {
    let mut fresh = Screen::new(screen.size(), 0);
    fresh.feed(&screen.repaint(None));
    assert_eq!(picture(&fresh), picture(screen), "{what}");
}

#[test]
fn the_corpus_repaints_to_itself() {
    for case in corpus() {
        check(&case.play(), &case.name);
    }
}

#[test]
fn a_placeholder_keeps_the_looks_of_a_wide_character_that_was_overwritten() {
    for (before, then) in [("44", "m"), ("1;4", "45m"), ("41", "42m"), ("", "43m")] {
        for bottom in ["", "\n\n\n\n\n"] {
            let mut screen = Screen::new(Size::clamped(5, 3), 0);
            screen.feed(format!("{bottom}\x1b[{before}mabcd漢\x1b[{then}\r字e\u{301}\x1b[m").as_bytes());
            check(&screen, &format!("{before} {then} {bottom:?}"));
        }
    }
}

#[test]
fn random_streams_repaint_to_themselves_at_any_byte() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let mut alternate = 0;
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let mut screen = Screen::new(Size::clamped(3 + random.below(30) as u16, 2 + random.below(9) as u16), 0);
        let bytes = random_bytes(&mut random, 50, Flavour::Wild);
        let cut = random.below(bytes.len());
        screen.feed(&bytes[..cut]);
        check(&screen, &format!("seed {seed}"));
        alternate += usize::from(screen.alternate());
    }
    assert!(alternate > 0, "no stream ended on the alternate screen");
}
