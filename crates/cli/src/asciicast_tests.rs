use super::*;
use serde_json::Value;

fn anchors(pairs: &[(Offset, TimeMs)]) -> Times {
    Times::new(pairs.iter().map(|(at, time_ms)| Anchor { at: *at, time_ms: *time_ms }).collect())
}

fn chunk(from: Offset, bytes: &[u8]) -> Chunk {
    Chunk { from, bytes: bytes.to_vec() }
}

fn mark(at: Offset, time_ms: Option<TimeMs>, text: &str) -> Mark {
    Mark { at, time_ms, code: Code::Marker, data: text.into() }
}

/// Milliseconds, code and data of each event.
fn told(events: &[Event]) -> Vec<String> {
    let code = |event: &Event| serde_json::to_value(event.code).unwrap().as_str().unwrap().to_owned();
    events
        .iter()
        .map(|event| format!("{} {} {}", event.time_us / 1000, code(event), event.data.escape_debug()))
        .collect()
}

#[test]
fn bytes_come_evenly_between_two_anchors_and_at_once_beyond_them() {
    let times = anchors(&[(0, 1000), (100, 2000), (100, 5000), (300, 5001)]);
    let cases =
        [(0, 1_000_000), (50, 1_500_000), (99, 1_990_000), (100, 5_000_000), (200, 5_000_500), (900, 5_001_000)];
    for (offset, us) in cases {
        assert_eq!(times.at_us(offset), us, "{offset}");
    }
    assert_eq!(anchors(&[(10, 7)]).at_us(3), 7000);
    assert_eq!(anchors(&[]).at_us(3), 0);
}

#[test]
fn an_anchor_that_goes_back_is_left_out_and_huge_numbers_do_not_overflow() {
    let times = anchors(&[(0, 0), (100, 10), (50, 20), (200, 20)]);
    assert_eq!(times.at_us(150), 15_000);
    let far = anchors(&[(0, 0), (u64::MAX, u64::MAX / 1000)]);
    assert!(far.at_us(u64::MAX / 2) <= u64::MAX / 2);
}

#[test]
fn output_is_cut_at_line_ends_and_marks_stand_before_what_they_caused() {
    let events = events(
        &[chunk(0, b"$ ls\r\na b\r\n$ ")],
        &anchors(&[(0, 0), (2, 1000), (13, 1110)]),
        vec![mark(13, Some(2000), "last"), mark(2, Some(1000), "ann: typed \"ls\"")],
    );
    let expected =
        ["0 o $ ", "1000 m ann: typed \\\"ls\\\"", "1000 o ls\\r\\n", "1040 o a b\\r\\n", "1090 o $ ", "2000 m last"];
    assert_eq!(told(&events), expected);
}

#[test]
fn no_piece_ends_inside_a_character_or_an_escape_sequence() {
    let bytes = "é漢😀\x1b[1;31mred\x1b]0;a\nb\x07x\x1bP1\n\x1b\\y\x1b(B".as_bytes();
    let every: Vec<Offset> = (0..bytes.len() as Offset).collect();
    let parts: Vec<&str> =
        pieces(bytes, 0, &every).into_iter().map(|piece| std::str::from_utf8(&bytes[piece]).unwrap()).collect();
    let expected =
        ["é", "漢", "😀", "\x1b[1;31m", "r", "e", "d", "\x1b]0;a\nb\x07", "x", "\x1bP1\n\x1b\\", "y", "\x1b(B"];
    assert_eq!(parts, expected);
}

#[test]
fn a_long_line_and_an_endless_sequence_are_cut_all_the_same_and_nothing_is_lost() {
    let lengths = |bytes: &[u8]| -> Vec<usize> { pieces(bytes, 0, &[]).iter().map(ExactSizeIterator::len).collect() };
    assert_eq!(lengths(&[b'a'; 10_000]), [4096, 4096, 1808]);
    let endless = [b"\x1b]0;".as_slice(), &"é".repeat(100_000).into_bytes()].concat();
    let cut = lengths(&endless);
    assert!(cut.len() > 2 && cut.iter().sum::<usize>() == endless.len(), "{cut:?}");
    assert!(pieces(&endless, 0, &[]).into_iter().all(|piece| std::str::from_utf8(&endless[piece]).is_ok()));
}

#[test]
fn invalid_bytes_become_replacement_characters() {
    let events = events(&[chunk(0, b"a\xff\xc3\nb\xc3")], &anchors(&[(0, 0)]), vec![]);
    assert_eq!(told(&events), ["0 o a\u{fffd}\u{fffd}\\n", "0 o b\u{fffd}"]);
}

#[test]
fn time_never_goes_back_and_intervals_add_up_to_the_whole() {
    let marks = vec![mark(0, Some(5000), "late"), mark(1, Some(4000), "early"), mark(9, Some(9001), "end")];
    let events = events(&[chunk(0, b"abc\ndef\n")], &anchors(&[(0, 1000), (8, 2000)]), marks);
    assert!(events.is_sorted_by_key(|event| event.time_us));
    let header = Header { size: Size::default(), command: "sh -c 'x'".into(), title: "work".into() };
    let text = file(Version::V3, &header, &events, None);
    let sum_us: u64 = intervals(&text).iter().sum();
    assert_eq!(sum_us, 9_001_000 - 5_000_000);
    let capped = intervals(&file(Version::V3, &header, &events, Some(250_000)));
    assert_eq!(capped.iter().max(), Some(&250_000));
}

#[test]
fn version_2_counts_from_the_beginning_and_has_neither_comments_nor_an_end() {
    let mut events = events(&[chunk(0, b"abc\ndef\n")], &anchors(&[(0, 1000), (8, 3000)]), vec![]);
    let time_us = 9_000_000;
    events.push(Event { time_us, code: Code::Exit, data: "0".into() });
    let header = Header { size: Size::default(), command: "sh".into(), title: "work".into() };
    let text = file(Version::V2, &header, &events, Some(500_000));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]), (&2.into(), &80.into(), &24.into()));
    let times: Vec<f64> = lines[1..].iter().map(|event| event[0].as_f64().unwrap()).collect();
    assert_eq!(times, [0.0, 0.5], "a pause of a second is cut to half of one");
}

/// The pause before each event, in microseconds, of a file that must be asciicast v3.
fn intervals(text: &str) -> Vec<u64> {
    let mut lines = text.lines();
    let header: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!((&header["version"], &header["term"]["cols"]), (&3.into(), &80.into()));
    let events = lines.filter(|line| !line.starts_with('#'));
    let interval = |line: &str| {
        let event: (f64, String, String) = serde_json::from_str(line).unwrap();
        assert!(["o", "i", "m", "r", "x"].contains(&event.1.as_str()) && event.0 >= 0.0, "{line}");
        (event.0 * 1e6).round() as u64
    };
    events.map(interval).collect()
}

#[test]
fn behind_a_gap_a_recording_begins_with_a_whole_line() {
    let cut = chunk(100, b"1;31mred\x1b[m\r\nwhole\r\n");
    assert_eq!(cut.without_cut_line(), chunk(113, b"whole\r\n"));
    let endless = chunk(7, b"no line end");
    assert_eq!(endless.clone().without_cut_line(), endless);
}
