//! Temporary: counts.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]
use holdfast_screen::Screen;
use holdfast_types::Size;
use std::hint::black_box;
fn main() {
    let mut args = std::env::args().skip(1);
    let bytes = std::fs::read(args.next().unwrap()).unwrap();
    let rounds: usize = args.next().unwrap().parse().unwrap();
    let chunk: usize = args.next().map_or(128 * 1024, |n| n.parse().unwrap());
    let mut screen = Screen::new(Size::clamped(120, 40), 0);
    let mut history = Vec::new();
    for _ in 0..rounds {
        for part in bytes.chunks(chunk) {
            screen.feed(part);
            history.clear();
            black_box(screen.drain_history(&mut history));
        }
    }
    black_box(screen.cursor());
}
