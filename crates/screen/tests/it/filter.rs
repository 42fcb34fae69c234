//! Queries and what sets the clipboard are taken out of a stream and nothing else is; plain text is what is left of output.

use crate::streams::{Flavour, Random, corpus, random_bytes};
use holdfast_screen::{PlainText, QueryFilter};

fn filtered(parts: &[&[u8]]) -> Vec<u8> {
    let (mut filter, mut out) = (QueryFilter::new(), Vec::new());
    parts.iter().for_each(|part| filter.feed(part, &mut out));
    out
}

fn plain(parts: &[&[u8]]) -> String {
    let (mut plain, mut out) = (PlainText::new(), Vec::new());
    parts.iter().for_each(|part| plain.feed(part, &mut out));
    String::from_utf8(out).unwrap()
}

const QUERIES: [&[u8]; 44] = [
    b"\x05",
    b"\x1bZ",
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[>0c",
    b"\x1b[=c",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[?15n",
    b"\x1b[x",
    b"\x1b[1x",
    b"\x1b[4$p",
    b"\x1b[?2026$p",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[?4m",
    b"\x1b[?1;1;0S",
    b"\x1b[14t",
    b"\x1b[16t",
    b"\x1b[18t",
    b"\x1b[21t",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[1$w",
    b"\x1b]4;1;?\x07",
    b"\x1b]4;1;?\x1b\\",
    b"\x1b]5;0;?\x07",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]12;?\x07",
    b"\x1b]17;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]52;c;?\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bP$qm\x1b\\",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
    b"\x1b]21;foreground=?\x1b\\",
    b"\x1b]22;?__current__\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1b[20t",
    b"\x1b[&u",
];

const OTHERS: [&[u8]; 23] = [
    b"text",
    b"\r\n\t\x07\x08",
    b"\x1b[31m",
    b"\x1b[?25l",
    b"\x1b[?1049h",
    b"\x1b[2J",
    b"\x1b[1;1H",
    b"\x1b[>4;2m",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b[=1;1u",
    b"\x1b[22;0t",
    b"\x1b[8;24;80t",
    b"\x1b[2 q",
    b"\x1b[!p",
    b"\x1b]0;what? a title\x07",
    b"\x1b]4;1;#ff0000\x07",
    b"\x1b]11;#000\x1b\\",
    b"\x1b]8;;http://a?b\x1b\\",
    b"\x1bP1;1q#0~~\x1b\\",
    b"\x1b_Ga=T,f=100;AAAA\x1b\\",
    b"\x1b(0",
    "漢é".as_bytes(),
];

/// A terminal whose person does not write must not do these: a program, or who types there, would set its clipboard.
const CLIPBOARD: [&[u8]; 11] = [
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;c;aGVsbG8=\x1b\\",
    b"\x1b]52;;!\x07",
    b"\x1b]052;c;aGVsbG8=\x07",
    b"\x1b]5\x002;c;aGVsbG8=\x07",
    b"\x1b\x00]52;c;aGVsbG8=\x07",
    b"\x1b]1337;Copy=:aGVsbG8=\x07",
    b"\x1b]1337;CopyToClipboard=general\x07",
    b"\x1b]1337;EndCopy\x07",
    b"\x1b]5522;type=write\x1b\\",
    b"\xc2\x9d",
];

#[test]
fn no_form_of_setting_the_clipboard_passes_however_long_or_wrapped() {
    for padding in [&b"A"[..], b"\0"] {
        let before = if padding == b"A" { &b"\x1b]52;c;"[..] } else { b"\x1b]" };
        let stream = [b"before", before, &padding.repeat(9000), b"52;c;aGVsbG8=\x07after"].concat();
        assert_eq!(filtered(&stream.chunks(777).collect::<Vec<_>>()), b"beforeafter");
    }
    // Passed on by tmux and screen to the terminal around them.
    for wrapped in [&b"\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\x07\x1b\\"[..], b"\x1bP\x1b]52;c;aGVsbG8=\x07\x1b\\"] {
        assert!(!filtered(&[wrapped]).windows(3).any(|part| part == b"52;"));
    }
    // The end of a string as one character: what follows would be a sequence of its own.
    let hidden = filtered(&[b"\x1b]0;title\xc2\x9c\xc2\x9d52;c;aGVsbG8=\x07"]);
    assert_eq!(hidden, b"\x1b]0;title52;c;aGVsbG8=\x07");
    assert_eq!(filtered(&[b"a\xc2", b"\xa9b \xc2\x9b6n"]), "a\u{a9}b 6n".as_bytes());
}

#[test]
fn each_query_goes_and_each_other_sequence_stays_wherever_the_stream_is_cut() {
    for (sequences, stay) in [(&QUERIES[..], false), (&CLIPBOARD[..], false), (&OTHERS[..], true)] {
        for sequence in sequences {
            let mut stream = b"before".to_vec();
            stream.extend_from_slice(sequence);
            stream.extend_from_slice(b"after\x1b[m");
            let expected = if stay { stream.clone() } else { b"beforeafter\x1b[m".to_vec() };
            for at in 0..=stream.len() {
                let got = filtered(&[&stream[..at], &stream[at..]]);
                assert_eq!(got, expected, "{:?} cut at {at}", String::from_utf8_lossy(sequence));
            }
        }
    }
}

#[test]
fn long_strings_pass_through_and_long_queries_do_not() {
    let mut image = b"\x1b_Ga=T,f=100;".to_vec();
    image.resize(100_000, b'A');
    image.extend_from_slice(b"\x1b\\after");
    assert_eq!(filtered(&image.chunks(777).collect::<Vec<_>>()), image);
    let mut query = b"\x1bP+q".to_vec();
    query.resize(100_000, b'4');
    query.extend_from_slice(b"\x1b\\after");
    assert_eq!(filtered(&query.chunks(777).collect::<Vec<_>>()), b"after");
}

#[test]
fn filtering_does_not_depend_on_how_a_stream_is_cut() {
    for seed in 1..=200 {
        let mut random = Random::new(seed);
        let bytes = random_bytes(&mut random, 80, Flavour::Wild);
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(filtered(&bytewise), filtered(&[&bytes]), "seed {seed}");
        assert_eq!(plain(&bytewise), plain(&[&bytes]), "seed {seed}");
    }
}

#[test]
fn recordings_without_queries_are_passed_on_byte_for_byte() {
    let mut equal = 0;
    for case in corpus() {
        for step in &case.steps {
            if let crate::streams::Step::Write(bytes) = step {
                let out = filtered(&[bytes]);
                assert!(out.len() <= bytes.len());
                equal += usize::from(out == *bytes);
            }
        }
    }
    assert!(equal > 30, "{equal}");
}

#[test]
fn plain_text_is_what_a_person_would_read() {
    for (output, text) in [
        ("a\r\nb\r\n", "a\nb\n"),
        ("\x1b[1;31mred\x1b[m \x1b]0;title\x07\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\r\n", "red link\n"),
        ("10%\r20%\r30%\r\ndone\r\n", "10%\n20%\n30%\ndone\n"),
        ("\r\r\na", "\na"),
        ("tab\there\x08\x07\n", "tab\there\n"),
        ("漢字 é\n", "漢字 é\n"),
        ("\x1bPq#0~~\x1b\\after", "after"),
        ("\x1b[31", ""),
    ] {
        assert_eq!(plain(&[output.as_bytes()]), text, "{output:?}");
        assert_eq!(plain(&output.as_bytes().chunks(1).collect::<Vec<_>>()), text, "{output:?}");
    }
    assert_eq!(plain(&[b"a\xffb\xe6\xbcc"]), "a\u{fffd}b\u{fffd}c");
}
