//! How fast the screen is: `cargo run --release -p holdfast-screen --example speed`.
// A bench needs a clock; the crate itself has none.
#![allow(clippy::disallowed_methods)]

use holdfast_screen::Screen;
use holdfast_types::Size;
use std::hint::black_box;
use std::time::Instant;

/// What one read of the ring hands over.
const FEED_BYTES: usize = 64 * 1024;

/// Best of a few runs, because other work shares the core.
fn best(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..40).map(|_| time(&mut run)).fold(f64::MAX, f64::min)
}

fn stream(name: &str, piece: impl Fn(usize) -> String) {
    let mut bytes = Vec::new();
    for n in 0.. {
        bytes.extend_from_slice(piece(n).as_bytes());
        if bytes.len() > 16 << 20 {
            break;
        }
    }
    let seconds = best(|| {
        let mut screen = Screen::new(Size::clamped(120, 40), 0);
        let mut history = Vec::new();
        for part in bytes.chunks(FEED_BYTES) {
            screen.feed(part);
            history.clear();
            black_box(screen.drain_history(&mut history));
        }
        black_box(screen.cursor());
    });
    println!("{name:<28} {:>7.0} MB/s", bytes.len() as f64 / seconds / 1e6);
}

fn full_screen(n: usize) -> String {
    let mut out = String::from("\x1b[H");
    for row in 0..40 {
        out += &format!("\x1b[{};1H\x1b[38;5;{}m{:>5} \x1b[m", row + 1, (n + row) % 256, n * 40 + row);
        out += "fn some_code(with: Arguments) -> \x1b[1mResult\x1b[22m<\x1b[32m\"text\"\x1b[39m> {\x1b[K";
    }
    out
}

fn main() {
    stream("ASCII lines, 80 columns", |n| {
        format!("{n:>8} {}\r\n", "the quick brown fox jumps over the lazy dog 0123456789 and runs")
    });
    stream("ASCII lines, 12 columns", |n| format!("{n:>10}\r\n"));
    stream("ASCII lines, 300 columns", |n| format!("{n:>8} {}\r\n", "x".repeat(290)));
    stream("SGR lines", |n| {
        format!(
            "\x1b[32m{n:>8}\x1b[0m \x1b[1;34mmodule::path\x1b[0m: \x1b[33mwarning\x1b[0m something of note \x1b[38;5;208mhere\x1b[0m\r\n"
        )
    });
    stream("UTF-8 lines", |n| format!("{n:>8} — größere Änderungen → über 漢字 und mehr\r\n"));
    stream("line feeds", |_| "\n".into());
    stream("TUI, 120x40", full_screen);
    keyframes();
}

fn keyframes() {
    for (name, lines) in [("full of text", 400), ("full of text, 5 lines of history", 45)] {
        let mut screen = Screen::new(Size::clamped(120, 40), 0);
        for n in 0..lines {
            screen.feed(format!("\x1b[3{}m{n}\x1b[m {}\r\n", n % 8, "words of a line ".repeat(6)).as_bytes());
        }
        let frame = screen.keyframe();
        let rounds = 200;
        let write = best(|| (0..rounds).for_each(|_| drop(black_box(screen.keyframe())))) / f64::from(rounds);
        let read = best(|| (0..rounds).for_each(|_| drop(black_box(Screen::restore(&frame))))) / f64::from(rounds);
        let paint = best(|| (0..rounds).for_each(|_| drop(black_box(screen.repaint(None))))) / f64::from(rounds);
        let [write, read, paint] = [write, read, paint].map(|seconds| seconds * 1e6);
        println!("{name}: keyframe {} bytes, {write:.0} µs; restore {read:.0} µs; repaint {paint:.0} µs", frame.len());
    }
    let mut screen = Screen::new(Size::clamped(120, 40), 0);
    let lines: Vec<u8> =
        (0..400).flat_map(|n| format!("{n} {}\r\n", "words of a line ".repeat(6)).into_bytes()).collect();
    screen.feed(&lines);
    let mut wide = false;
    let resize = best(|| {
        wide = !wide;
        screen.resize(Size::clamped(if wide { 80 } else { 120 }, 40));
    });
    println!("resize {:.0} µs", resize * 1e6);
}
