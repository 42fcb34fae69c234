//! Keys reach the program exactly as they were typed, but for the chord.

use holdfast_harness::{CHORD, Client, DETACH, Home, Random, Terminal, until};

/// A session that writes every byte typed to it into the file `typed`.
fn recorder() -> (Home, Terminal, Client) {
    let home = Home::new();
    home.session("s", "stty raw -echo; echo ready; exec cat > typed");
    home.until_screen_shows("s", "ready");
    let (terminal, client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("ready");
    (home, terminal, client)
}

#[track_caller]
fn until_typed(home: &Home, expected: &[u8]) {
    let typed = || std::fs::read(home.join("typed")).unwrap();
    holdfast_harness::poll(|| (typed() == expected).then_some(())).unwrap_or_else(|| {
        let typed = typed();
        let at = typed.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let part = |bytes: &[u8]| String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 40)]).into_owned();
        panic!(
            "{} bytes, not {}; from {at} on {:?}, not {:?}",
            typed.len(),
            expected.len(),
            part(&typed),
            part(expected)
        )
    });
}

#[test]
fn the_chord_twice_types_one_and_other_keys_pass() {
    let (home, terminal, mut client) = recorder();
    let mut expected: Vec<u8> = (0..=255u8).filter(|byte| *byte != CHORD[0]).collect();
    terminal.types(&expected);
    until_typed(&home, &expected);
    terminal.types([CHORD, CHORD].concat());
    expected.push(CHORD[0]);
    until_typed(&home, &expected);
    for keys in [&b"\x1b[A"[..], b"\x1bOP", b"\x1b", b"\x03", b"\x1a", "ü漢".as_bytes(), b"\x1b[200~pasted\x1b[201~"]
    {
        terminal.types(keys);
        expected.extend_from_slice(keys);
        until_typed(&home, &expected);
    }
    terminal.types([b"before", CHORD, CHORD, CHORD, CHORD, b"after"].concat());
    expected.extend_from_slice(b"before\x1c\x1cafter");
    until_typed(&home, &expected);
    // Cut between the chord and its key.
    terminal.types(CHORD);
    terminal.types("d");
    assert_eq!(client.wait(), 0);
    until_typed(&home, &expected);
}

#[test]
fn the_chord_as_the_kitty_keyboard_encodes_it_detaches_too() {
    let (home, terminal, mut client) = recorder();
    terminal.types("\x1b[92;5u");
    terminal.types("d");
    assert_eq!(client.wait(), 0);
    until_typed(&home, b"");
}

#[test]
fn an_unknown_key_behind_the_chord_types_nothing_and_shows_help_that_goes_away() {
    let (home, terminal, _client) = recorder();
    terminal.types([CHORD, b"?"].concat());
    // The whole of it, in 80 columns.
    terminal.wait_text("d detach w all z stop t turn g give r drop s seize u thaw o who a reply ?");
    terminal.types("x");
    terminal.wait_for("the help to go", |seen| !seen.shows("d detach"));
    until_typed(&home, b"x");
    terminal.settle(&home, "s");
}

#[test]
fn a_paste_of_100_kilobytes_arrives_exactly() {
    let (home, terminal, mut client) = recorder();
    let mut random = Random::from_seed();
    let text: Vec<u8> = random.bytes(100_000).into_iter().map(|byte| 32 + byte % 95).collect();
    terminal.types(&text);
    until_typed(&home, &text);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_paste_with_chords_in_it_and_a_host_killed_meanwhile_arrives_exactly() {
    let (home, terminal, _client) = recorder();
    let mut random = Random::from_seed();
    let mut expected = Vec::new();
    for round in 0..40 {
        let piece: Vec<u8> = random.bytes(500).into_iter().map(|byte| 32 + byte % 95).collect();
        terminal.types(&piece);
        expected.extend_from_slice(&piece);
        terminal.types([CHORD, CHORD].concat());
        expected.push(CHORD[0]);
        if round % 13 == 5 {
            home.kill_host();
        }
    }
    until_typed(&home, &expected);
}

#[test]
fn two_people_typing_at_once_lose_and_double_nothing() {
    let (home, one, _client) = recorder();
    let (two, _other) = Terminal::attached(&home, "s", "80x24");
    std::thread::scope(|scope| {
        scope.spawn(|| (0..300).for_each(|n| one.types(format!("<a{n}>"))));
        scope.spawn(|| (0..300).for_each(|n| two.types(format!("<b{n}>"))));
    });
    let all = until("all keys", || {
        let typed = std::fs::read_to_string(home.join("typed")).unwrap();
        (typed.matches(['a', 'b']).count() >= 600).then_some(typed)
    });
    for person in ["a", "b"] {
        // Keys of two people may interleave; the keys of one stay in order.
        let own: Vec<&str> = all.split('<').filter(|key| key.starts_with(person)).collect();
        assert!(own.len() >= 300, "{person}: {}", own.len());
    }
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
    let expected: String = (0..300).map(|n| format!("{n}{n}")).collect();
    until("the last key", || {
        let typed = std::fs::read_to_string(home.join("typed")).unwrap();
        (digits(&typed) == digits(&expected) && typed.matches('>').count() == 600).then_some(())
    });
}
