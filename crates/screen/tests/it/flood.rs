//! The fast way of plain lines ends in the same state as the slow one.

use crate::streams::Random;
use holdfast_screen::Screen;
use holdfast_types::Size;

/// Lines that are mostly fit for the fast way, and some that are not.
fn lines(random: &mut Random, count: usize, odd_percent: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..count {
        for _ in 0..random.below(5) {
            piece(random, &mut out);
        }
        if random.chance(odd_percent) {
            let odd = random.pick(&[
                "\x1b[5;5H",
                "\x1b[K",
                "\x08",
                "\x07",
                "\x1b[?1049h",
                "\x1b[?1049l",
                "\rover",
                "\x1b[2;6r",
                "\x1b[r\x1b[99;1H",
                "\x1b[4h",
                "\x1b[4l",
                "\x1b[44m",
                "\x1b]0;t\x07",
                "e\u{301}",
                "\x1b(0",
                "\x1b(B",
                "\x1b[3g",
                "\x1bc",
                "\x1b[99;1H",
                "\x1b[5A",
                "\x1b[b",
            ]);
            out.extend_from_slice(odd.as_bytes());
        }
        let ends: [&str; 8] = ["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\x1b[m\r\n"];
        out.extend_from_slice(random.pick(&ends).as_bytes());
    }
    out
}

fn piece(random: &mut Random, out: &mut Vec<u8>) {
    match random.below(8) {
        0 | 1 => (0..random.below(20)).for_each(|_| out.push(b'!' + random.below(90) as u8)),
        2 => (0..random.below(9)).for_each(|_| out.push(b' ')),
        3 => out.extend_from_slice(random.pick(&["漢字", "é", "→ ", "한 글", "─│", "e\u{301}", "\u{301}", "漢\u{3099}", " \u{308}"]).as_bytes()),
        4 => out.push(b'\t'),
        5 => {
            let codes = [
                "",
                "0",
                "1",
                "31",
                "39",
                "7",
                "27",
                "38;5;99",
                "38;2;9;8;7",
                "4:3",
                "58:5:2",
                "59",
                "49",
                "1;4;32",
                "22",
                "24",
            ];
            out.extend_from_slice(format!("\x1b[{}m", random.pick(&codes)).as_bytes());
        }
        6 => {
            // A background that ends before the line does.
            out.extend_from_slice(
                format!("\x1b[4{}m{}\x1b[49m", random.below(8), " x ".repeat(random.below(4))).as_bytes(),
            );
        }
        _ => out.extend_from_slice(&b"long and longer words "[..random.below(22)]),
    }
}

#[test]
fn a_flood_fed_at_once_and_bit_by_bit_is_the_same() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let size = Size::clamped(2 + random.below(50) as u16, 1 + random.below(12) as u16);
        let odd = [0, 1, 5, 30][random.below(4)];
        let bytes = lines(&mut random, 300, odd);
        let mut fast = Screen::new(size, 0);
        fast.feed(&bytes);
        let mut slow = Screen::new(size, 0);
        // Too short for the fast way.
        bytes.chunks(100).for_each(|part| slow.feed(part));
        let same = fast.keyframe() == slow.keyframe();
        if !same {
            let text = |screen: &Screen| String::from_utf8_lossy(&screen.open_history()).into_owned();
            let (fast_text, slow_text) = (text(&fast), text(&slow));
            let differs = fast_text.lines().zip(slow_text.lines()).position(|(a, b)| a != b);
            if let Some(at) = differs {
                let line = |text: &str| text.lines().nth(at).map(str::to_owned);
                panic!("seed {seed} {size}: line {at}\nfast {:?}\nslow {:?}", line(&fast_text), line(&slow_text));
            }
            assert_eq!(fast_text.len(), slow_text.len(), "seed {seed} {size}");
            assert_eq!((fast.rows_ansi(), fast.cursor()), (slow.rows_ansi(), slow.cursor()), "seed {seed} {size}");
            panic!("seed {seed} {size}: hidden state differs");
        }
    }
}
