//! The fast way of plain lines ends in the same state as the slow one; only the history may say the same in other bytes.

use crate::streams::Random;
use holdfast_screen::{Screen, history_text};
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
                "\x1b]8;;http://a\x07",
                "\x1b]8;;\x07",
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
        3 => out.extend_from_slice(
            random
                .pick(&["漢字", "é", "→ ", "한 글", "─│", "e\u{301}", "\u{301}", "漢\u{3099}", " \u{308}"])
                .as_bytes(),
        ),
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
                "22;39",
                "38:2::1:2:3",
                "48:5:9",
                "49;0",
                "53",
                "38;5",
                "00",
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

/// A number as a keyframe holds it, and its length.
fn number(bytes: &[u8]) -> (usize, usize) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    (bytes[..length].iter().rev().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f)), length)
}

/// A keyframe without its history: what comes before that, and the open line's attributes.
fn state(screen: &Screen) -> (Vec<u8>, Vec<u8>) {
    let (frame, history) = (screen.keyframe(), screen.open_history());
    let open = history.rsplit(|byte| *byte == b'\n').next().unwrap();
    let body = &frame[..frame.len() - 8];
    // At least the mark of an open line follows.
    for at in (0..body.len() - 1).rev() {
        let (count, length) = number(&body[at..]);
        let from = at + length;
        if count == history.len() && body.get(from..from + count) == Some(&history[..]) {
            let mut rest = body[from + count..].to_vec();
            if rest[0] == 1 {
                let (start, length) = number(&rest[1..]);
                assert_eq!(start, history.len() - open.len());
                rest.drain(1..1 + length);
            } else {
                assert_eq!(rest, [0]);
            }
            return (body[..at].to_vec(), rest);
        }
    }
    panic!("no history in the keyframe");
}

/// What a history line means: its text with all blanks, and its cells with their attributes; and that nothing of it stays
/// behind its end.
fn meaning(line: &[u8], ended: bool, what: &str) -> (String, Vec<u8>) {
    let mut screen = Screen::new(Size::clamped(1000, 2), 0);
    screen.feed(line);
    let rows = screen.rows_ansi();
    assert!(rows[1].is_empty(), "{what}: longer than a row");
    if ended {
        screen.feed(b"\r\nx");
        assert_eq!(screen.rows_ansi()[1], b"x", "{what}: {:?} ends in attributes", String::from_utf8_lossy(line));
    }
    (history_text(line), rows[0].clone())
}

fn check_same(fast: &Screen, slow: &Screen, what: &str) -> usize {
    assert_eq!((fast.rows_ansi(), fast.cursor()), (slow.rows_ansi(), slow.cursor()), "{what}");
    let (fast_history, slow_history) = (fast.open_history(), slow.open_history());
    let lines = |history: &[u8]| history.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (fast_lines, slow_lines) = (lines(&fast_history), lines(&slow_history));
    assert_eq!(fast_lines.len(), slow_lines.len(), "{what}: lines");
    let mut raw = 0;
    for (at, (fast, slow)) in fast_lines.iter().zip(&slow_lines).enumerate() {
        if fast != slow {
            raw += 1;
            let what = format!("{what}: line {at}");
            let [fast_text, slow_text] = [fast, slow].map(|line| String::from_utf8_lossy(line));
            let ended = at + 1 < fast_lines.len();
            let same = meaning(fast, ended, &what) == meaning(slow, ended, &what);
            assert!(same, "{what}\nfast {fast_text:?}\nslow {slow_text:?}");
        }
    }
    assert!(state(fast) == state(slow), "{what}: hidden state differs");
    raw
}

#[test]
fn a_flood_fed_at_once_and_bit_by_bit_means_the_same() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    let mut raw = 0;
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
        let what = format!("seed {seed} {size}");
        raw += check_same(&fast, &slow, &what);
        let painted = [&fast, &slow].map(|screen| {
            let mut fresh = Screen::new(size, 0);
            screen.repaint(Some(b"")).chunks(100).for_each(|part| fresh.feed(part));
            fresh
        });
        let [fast_painted, slow_painted] = painted.each_ref().map(|screen| history_text(&screen.open_history()));
        assert_eq!(fast_painted, slow_painted, "{what} painted");
        assert_eq!(painted[0].rows_ansi(), painted[1].rows_ansi(), "{what} painted");
        // Growing takes lines back from the history.
        let grown = Size::clamped(size.cols() + 3, size.rows() + 20);
        fast.resize(grown);
        slow.resize(grown);
        check_same(&fast, &slow, &format!("{what} grown"));
    }
    assert!(raw > 0 || count < 100, "no line went the fast way with attributes");
}

#[test]
fn a_line_that_went_the_fast_way_starts_and_ends_in_default_attributes() {
    for (line, expected) in [
        ("\x1b[31mred\x1b[0m  ", "\x1b[31mred\x1b[m"),
        ("a \x1b[1m\x1b[22m  ", "a"),
        ("\x1b[4:3;58:5:2mcurl\x1b[m.", "\x1b[4:3;58:5:2mcurl\x1b[m."),
        // What we do not know must not reach the next line either.
        ("\x1b[53mover", "\x1b[53mover\x1b[m"),
        ("\x1b[7m \x1b[27m ", "\x1b[7m \x1b[m"),
        ("\x1b[41mx\x1b[49m\ty\t", "\x1b[41mx\x1b[49m       y"),
        ("é \x1b[m", "é"),
    ] {
        let mut screen = Screen::new(Size::clamped(20, 4), 0);
        screen.feed(b"\n\n\n\n");
        screen.feed(format!("{line}\r\n").repeat(400).as_bytes());
        let history = String::from_utf8(screen.open_history()).unwrap();
        assert_eq!(history.lines().nth(100), Some(expected), "{line:?}");
    }
    let mut screen = Screen::new(Size::clamped(20, 4), 0);
    screen.feed(b"\n\n\n\n\x1b[1m\x1b]8;;http://a\x07");
    screen.feed("a\x1b[m b\x1b[31m\r\n".repeat(400).as_bytes());
    let history = String::from_utf8(screen.open_history()).unwrap();
    let expected = "\x1b[0;31m\x1b]8;;http://a\x1b\\a\x1b[m b\x1b[m\x1b]8;;\x1b\\";
    assert_eq!(history.lines().nth(100), Some(expected));
}
