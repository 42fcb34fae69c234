//! No line is lost, none is doubled, and none changes on its way into the history.

use crate::streams::{Flavour, Random, random_bytes};
use holdfast_screen::{Screen, history_ansi, history_text};
use holdfast_types::Size;

fn screen(cols: u16, rows: u16) -> Screen {
    Screen::new(Size::clamped(cols, rows), 0)
}

/// All that was ever written, as lines: drained, not drained, still on the screen.
fn everything(screen: &mut Screen, drained: &[u8]) -> Vec<String> {
    let mut all = drained.to_vec();
    all.extend(screen.open_history());
    let mut text = history_text(&all);
    text.push_str(&screen.rows_text().join("\n"));
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn every_line_of_a_flood_comes_out_once_and_in_order() {
    for feed in [1, 7, 100, 4096, 1 << 20] {
        let mut screen = screen(20, 5);
        let bytes: Vec<u8> = (0..3000).flat_map(|n| format!("line {n}\r\n").into_bytes()).collect();
        let mut drained = Vec::new();
        let mut count = 0;
        for part in bytes.chunks(feed) {
            screen.feed(part);
            count += screen.drain_history(&mut drained);
        }
        assert_eq!(count as usize, drained.iter().filter(|b| **b == b'\n').count());
        assert_eq!(count, 3000 + 1 - 5 - 100, "the newest hundred stay");
        let lines = everything(&mut screen, &drained);
        let expected: Vec<String> = (0..3000).map(|n| format!("line {n}")).collect();
        assert_eq!(lines[..3000], expected[..], "fed {feed} at a time");
    }
}

#[test]
fn a_flood_of_line_feeds_is_a_flood_of_empty_lines() {
    let mut screen = screen(80, 24);
    screen.feed(&b"\n".repeat(100_000));
    let mut drained = Vec::new();
    let count = screen.drain_history(&mut drained);
    assert_eq!(count, 100_000 - 23 - 100);
    assert!(drained.iter().all(|b| *b == b'\n'));
}

#[test]
fn a_wrapped_line_is_one_line() {
    let mut screen = screen(10, 3);
    let long = "0123456789abcdefghijABCDEFGHIJ--end";
    screen.feed(format!("{long}\r\nnext\r\n1\r\n2\r\n3\r\n").as_bytes());
    assert_eq!(history_text(&screen.open_history()), format!("{long}\nnext\n1\n"));
}

#[test]
fn a_line_whose_end_is_on_the_screen_stays_open() {
    let mut screen = screen(4, 2);
    screen.feed(b"abcdefghij");
    assert_eq!(screen.open_history(), b"abcd");
    assert_eq!(screen.rows_text(), ["efgh", "ij"]);
    assert_eq!(screen.drain_history(&mut Vec::new()), 0);
}

#[test]
fn a_wide_character_at_the_edge_leaves_no_blank_behind() {
    let mut screen = screen(5, 2);
    screen.feed("漢字漢字漢字\r\n\n".as_bytes());
    assert_eq!(history_text(&screen.open_history()), "漢字漢字漢字\n");
}

#[test]
fn a_line_starts_and_ends_with_default_attributes() {
    let mut screen = screen(20, 2);
    screen.feed(b"\x1b[1;31mred\r\nstill\x1b[m\r\nplain\r\n\x1b]8;;http://a\x07link\x1b]8;;\x07\r\n\n\n");
    let expected =
        "\x1b[0;1;31mred\x1b[m\n\x1b[0;1;31mstill\x1b[m\nplain\n\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n\n";
    assert_eq!(String::from_utf8(screen.open_history()).unwrap(), expected);
    let mut ansi = Vec::new();
    history_ansi(b"a\nb\n", &mut ansi);
    assert_eq!(ansi, b"a\r\nb\r\n");
}

#[test]
fn an_endless_line_is_cut_into_pieces() {
    let mut screen = screen(100, 3);
    let mut drained = Vec::new();
    for _ in 0..100 {
        screen.feed(&[b'y'; 64 * 1024]);
        screen.drain_history(&mut drained);
    }
    drained.extend(screen.open_history());
    let longest = drained.split(|b| *b == b'\n').map(<[u8]>::len).max().unwrap();
    assert!(longest <= 65 * 1024, "{longest}");
    let shown: usize = screen.rows_text().iter().map(String::len).sum();
    assert_eq!(drained.iter().filter(|b| **b == b'y').count() + shown, 100 * 64 * 1024);
}

#[test]
fn history_has_no_controls_but_its_own() {
    for seed in 1..=60 {
        let mut random = Random::new(seed);
        let mut screen = screen(3 + random.below(30) as u16, 1 + random.below(6) as u16);
        for _ in 0..4 {
            screen.feed(&random_bytes(&mut random, 60, Flavour::Wild));
            screen.resize(Size::clamped(3 + random.below(30) as u16, 1 + random.below(6) as u16));
        }
        let history = screen.open_history();
        let mut rest = &history[..];
        while let Some(at) = rest.iter().position(|b| *b < 0x20 && *b != b'\n') {
            rest = &rest[at..];
            let sgr = rest.starts_with(b"\x1b[") && rest.iter().position(|b| *b == b'm').is_some();
            let link = rest.starts_with(b"\x1b]8;");
            assert!(sgr || link || rest.starts_with(b"\x1b\\"), "seed {seed}: {:?}", String::from_utf8_lossy(rest));
            rest = &rest[1..];
        }
    }
}

#[test]
fn a_screen_that_grows_takes_its_newest_lines_back() {
    let mut screen = screen(20, 4);
    for n in 0..10 {
        screen.feed(format!("line {n}\r\n").as_bytes());
    }
    assert_eq!(history_text(&screen.open_history()).lines().count(), 7);
    screen.resize(Size::clamped(20, 8));
    assert_eq!(screen.rows_text()[..3], ["line 3", "line 4", "line 5"]);
    assert_eq!(history_text(&screen.open_history()).lines().count(), 3);
    screen.resize(Size::clamped(20, 4));
    assert_eq!(history_text(&screen.open_history()).lines().count(), 7);
    assert_eq!(screen.rows_text(), ["line 7", "line 8", "line 9", ""]);
}

#[test]
fn resizes_neither_lose_nor_double_text() {
    for seed in 1..=100 {
        let mut random = Random::new(seed);
        let mut screen = screen(40, 6);
        let mut expected = String::new();
        for n in 0..40 {
            let line = format!("<{n}>{}", "x".repeat(random.below(120)));
            screen.feed(format!("{line}\r\n").as_bytes());
            expected.push_str(&line);
            if random.chance(30) {
                screen.resize(Size::clamped(2 + random.below(80) as u16, 2 + random.below(12) as u16));
            }
        }
        let text: String = everything(&mut screen, b"").concat();
        assert_eq!(text, expected, "seed {seed}");
    }
}
