//! A keyframe taken at any byte restores to the same screen, and nothing else restores.

use crate::streams::{Case, Flavour, Random, Step, apply, corpus, random_bytes};
use holdfast_screen::{KeyframeError, Screen};
use holdfast_types::Size;

/// Everything that can be seen of a screen.
fn dump(screen: &Screen) -> String {
    format!(
        "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?}",
        screen.offset(),
        screen.size(),
        screen.cursor(),
        screen.alternate(),
        screen.title(),
        screen.cwd(),
        screen.rows_ansi(),
        screen.open_history(),
        screen.repaint(Some(b"")),
    )
}

fn restored(screen: &Screen, what: &str) -> Screen {
    let frame = screen.keyframe();
    let again = Screen::restore(&frame).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(again.keyframe(), frame, "{what}: a keyframe's keyframe is itself");
    again
}

/// Cuts the stream at each of `cuts` and checks that the restored screen cannot be told from the one that went on.
fn check_cuts(case: &Case, stride: usize) -> usize {
    let mut screen = case.screen();
    let mut followers: Vec<Screen> = Vec::new();
    let mut count = 0;
    for step in &case.steps {
        let Step::Write(bytes) = step else {
            apply(&mut screen, step);
            followers.iter_mut().for_each(|follower| apply(follower, step));
            continue;
        };
        for (at, byte) in bytes.iter().enumerate() {
            screen.feed(&[*byte]);
            followers.iter_mut().for_each(|follower| follower.feed(&[*byte]));
            if at % stride == 0 {
                count += 1;
                let what = format!("{} byte {}", case.name, screen.offset());
                let again = restored(&screen, &what);
                let expected = dump(&screen);
                assert_eq!(dump(&again), expected, "{what}");
                // A few go on with the rest of the stream; all of them would take quadratic time.
                if followers.len() < 6 {
                    followers.push(again);
                } else if at % 7 == 0 {
                    let place = at % followers.len();
                    check_follower(&followers[place], &screen, &what);
                    followers[place] = again;
                }
            }
        }
    }
    for follower in &followers {
        check_follower(follower, &screen, &case.name);
    }
    count
}

fn check_follower(follower: &Screen, screen: &Screen, what: &str) {
    assert_eq!(dump(follower), dump(screen), "{what}: behaved otherwise after a restore");
    assert_eq!(follower.keyframe(), screen.keyframe(), "{what}: behaved otherwise after a restore");
}

#[test]
fn every_cut_of_the_corpus_restores_to_the_same_screen() {
    let mut cuts = 0;
    for case in corpus() {
        let long = case.steps.iter().any(|step| matches!(step, Step::Write(bytes) if bytes.len() > 2000));
        cuts += check_cuts(&case, if long { 61 } else { 1 });
    }
    assert!(cuts > 1500, "{cuts}");
}

#[test]
fn every_cut_of_random_streams_restores_to_the_same_screen() {
    for seed in 1..=25 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut steps = Vec::new();
        for _ in 0..3 {
            steps.push(Step::Write(random_bytes(&mut random, 12, Flavour::Wild)));
            steps.push(Step::Resize(2 + random.below(30) as u16, 1 + random.below(8) as u16));
        }
        steps.push(Step::Write(random_bytes(&mut random, 12, Flavour::Wild)));
        let case = Case {
            name: format!("seed {seed}"),
            cols: 2 + random.below(30) as u16,
            rows: 1 + random.below(9) as u16,
            steps,
        };
        assert!(check_cuts(&case, 1) > 20, "seed {seed}");
    }
}

#[test]
fn a_stream_means_the_same_however_it_is_cut() {
    for seed in 1..=150 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let bytes = random_bytes(&mut random, 60, Flavour::Wild);
        let mut whole = Screen::new(Size::clamped(20, 6), 0);
        whole.feed(&bytes);
        let mut parts = Screen::new(Size::clamped(20, 6), 0);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (part, more) = rest.split_at(1 + random.below(rest.len().min(40)));
            parts.feed(part);
            rest = more;
        }
        assert_eq!(parts.keyframe(), whole.keyframe(), "seed {seed}");
        assert_eq!(parts.take_replies(), whole.take_replies(), "seed {seed}");
        assert_eq!(parts.take_marks(), whole.take_marks(), "seed {seed}");
    }
}

#[test]
fn a_string_beyond_the_limit_is_dropped_however_it_is_cut() {
    for (length, kept) in [(60_000, true), (70_000, false)] {
        let mut bytes = b"\x1b]2;".to_vec();
        bytes.resize(length, b'x');
        bytes.extend_from_slice(b"\x07after");
        for part in [1 << 20, 4096, 1000] {
            let mut screen = Screen::new(Size::default(), 0);
            for part in bytes.chunks(part) {
                screen.feed(part);
                screen = restored(&screen, "in the middle of a string");
            }
            assert_eq!(screen.title().is_empty(), !kept, "{length} in parts of {part}");
            assert_eq!(screen.rows_text()[0], "after");
        }
    }
}

#[test]
fn damaged_keyframes_are_refused() {
    let mut screen = Screen::new(Size::clamped(30, 5), 7);
    screen.feed("\x1b[31mred 漢字\x1b]8;;http://a\x07link\r\n\n\n\n\n\n\nmore\x1b[?1049hx\x1b[".as_bytes());
    let frame = screen.keyframe();
    assert!(Screen::restore(&frame).is_ok());
    for at in 0..frame.len() {
        assert!(Screen::restore(&frame[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut bad = frame.clone();
            bad[at] ^= 1 << bit;
            assert!(Screen::restore(&bad).is_err(), "bit {bit} of byte {at}");
        }
    }
    assert_eq!(Screen::restore(b"").err(), Some(KeyframeError::NotAKeyframe));
    assert_eq!(Screen::restore(b"HFKF\x09aaaaaaaaaaaaaaa").err(), Some(KeyframeError::Version(9)));
}

#[test]
fn garbage_with_a_right_checksum_never_panics() {
    // The checksum is no secret: whoever can write the file can make it right.
    let mut screen = Screen::new(Size::clamped(12, 4), 0);
    screen.feed("ab漢e\u{301}\x1b[1;31mc\r\nd\x1b]8;;http://a\x07l\r\n\n\n\n\n\x1b[2;3r\x1b7\x1b[?1049h\x1b[3g\x1b]4;1;#123456\x07".as_bytes());
    let frame = screen.keyframe();
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..=6_000 {
        let mut random = Random::new(seed);
        let mut bad = frame[..frame.len() - 8].to_vec();
        for _ in 0..1 + random.below(4) {
            let at = 5 + random.below(bad.len() - 5);
            bad[at] = random.next() as u8;
        }
        let bad = holdfast_screen::sign_keyframe_for_tests(bad);
        match Screen::restore(&bad) {
            Ok(mut screen) => {
                accepted += 1;
                screen.feed(&random_bytes(&mut random, 10, Flavour::Wild));
                screen.resize(Size::clamped(7, 3));
                let _ = screen.repaint(Some(b""));
                restored(&screen, &format!("seed {seed}"));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} {refused}");
}

#[test]
fn a_keyframe_with_controls_in_its_history_grows_into_a_screen_without() {
    // Found by fuzzing: an open line full of NULs came back onto the screen, whose own keyframe was then refused.
    let mut body = b"HFKF\x01".to_vec();
    body.extend_from_slice(&[255, 255, 255, 255, 255, 95, 10, 1]);
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 54]);
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0]);
    let mut screen =
        Screen::restore(&holdfast_screen::sign_keyframe_for_tests(body)).expect("nothing wrong with its form");
    screen.resize(Size::clamped(33, 7));
    restored(&screen, "after growing");

    // And a link with a control in its address. The last bytes of a frame are the history's length, the history, how the open line
    // looks, and the checksum; the same number of bytes is put in place of the address.
    let mut screen = Screen::new(Size::clamped(4, 2), 0);
    screen.feed(b"\x1b]8;;http://a\x07linked\x1b]8;;\x07\r\n\n\n");
    let mut body = screen.keyframe();
    body.truncate(body.len() - 8);
    let at = body.windows(8).rposition(|part| part == b"http://a").expect("the link is in the history");
    body[at + 3] = 7;
    let mut screen =
        Screen::restore(&holdfast_screen::sign_keyframe_for_tests(body)).expect("nothing wrong with its form");
    screen.resize(Size::clamped(33, 7));
    restored(&screen, "after growing");
}
