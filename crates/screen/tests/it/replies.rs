//! Answers to queries, and marks.

use holdfast_screen::{MarkKind, Screen, TerminalColors, leave};
use holdfast_types::Size;

/// What the screen answers to `bytes`.
fn answer(bytes: &str) -> String {
    let mut screen = Screen::new(Size::clamped(80, 24), 0);
    screen.feed(bytes.as_bytes());
    let replies: Vec<u8> = screen.take_replies().into_iter().flat_map(|reply| reply.bytes).collect();
    String::from_utf8(replies).unwrap()
}

#[test]
fn each_query_has_its_answer() {
    let version = env!("CARGO_PKG_VERSION");
    for (query, expected) in [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;100;0c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[5n", "\x1b[0n"),
        ("ab\r\nc\x1b[6n", "\x1b[2;2R"),
        ("ab\x1b[?6n", "\x1b[?1;3R"),
        ("\x1b[5;10r\x1b[?6h\x1b[2;3H\x1b[6n", "\x1b[2;3R"),
        ("\x1b[>q", &format!("\x1bP>|holdfast {version}\x1b\\")),
        ("\x1b]10;?\x07", "\x1b]10;rgb:d8d8/d8d8/d8d8\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:1818/1818/1818\x1b\\"),
        ("\x1b]11;#ff0080\x07\x1b]11;?\x07", "\x1b]11;rgb:ffff/0000/8080\x07"),
        ("\x1b]11;#ff0080\x07\x1b]111\x07\x1b]11;?\x07", "\x1b]11;rgb:1818/1818/1818\x07"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;1;rgb:1/2/3\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:1111/2222/3333\x07"),
        ("\x1b]4;231;?\x07", "\x1b]4;231;rgb:ffff/ffff/ffff\x07"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?7$p", "\x1b[?7;1$y"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b[4h\x1b[4$p", "\x1b[4;1$y"),
        (
            "\x1bP+q544e;436f;524742\x1b\\",
            "\x1bP1+r544e=787465726d2d323536636f6c6f72\x1b\\\x1bP1+r436f=323536\x1b\\\x1bP1+r524742=382f382f38\x1b\\",
        ),
        ("\x1bP+q4141\x1b\\", "\x1bP0+r4141\x1b\\"),
        ("\x1b[1;31m\x1bP$qm\x1b\\", "\x1bP1$r0;1;31m\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
        ("\x1b[3;9r\x1bP$qr\x1b\\", "\x1bP1$r3;9r\x1b\\"),
        ("\x1b[4 q\x1bP$q q\x1b\\", "\x1bP1$r4 q\x1b\\"),
        ("\x1bP$qzz\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1b[14t", "\x1b[4;384;640t"),
        ("\x1b[16t", "\x1b[6;16;8t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[?u", "\x1b[?0u"),
        ("\x1b[>5u\x1b[?u", "\x1b[?5u"),
        ("\x1b[>5u\x1b[>1u\x1b[<u\x1b[?u", "\x1b[?5u"),
        ("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"),
        ("\x1b[?62;22c\x1b[0n\x1b[1;1R text \x1b[m", ""),
    ] {
        assert_eq!(answer(query), expected, "{query:?}");
    }
}

#[test]
fn an_answer_says_where_its_query_ended() {
    let mut screen = Screen::new(Size::default(), 1000);
    screen.feed(b"ab\x1b[");
    screen.feed(b"6n cd \x1b[c");
    let at: Vec<u64> = screen.take_replies().iter().map(|reply| reply.at).collect();
    assert_eq!(at, [1006, 1013]);
    assert!(screen.take_replies().is_empty());
}

#[test]
fn colours_can_be_told_and_withheld() {
    let mut screen = Screen::new(Size::default(), 0);
    screen.set_colors(TerminalColors { foreground: Some([1, 2, 3]), background: None, cursor: None });
    screen.feed(b"\x1b]10;?\x07\x1b]11;?\x07");
    let replies = screen.take_replies();
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0].bytes, b"\x1b]10;rgb:0101/0202/0303\x07");
}

#[test]
fn replies_and_marks_are_bounded() {
    let mut screen = Screen::new(Size::default(), 0);
    screen.feed(&b"\x1b[c\x07".repeat(5000));
    assert_eq!(screen.take_replies().len(), 1024);
    let marks = screen.take_marks();
    assert_eq!((marks.len(), marks[1023].at), (1024, 20_000), "the newest stay");
}

#[test]
fn a_shell_that_marks_its_prompts_is_understood() {
    let mut screen = Screen::new(Size::default(), 0);
    screen.feed(
        b"\x1b]7;file://host/home/a%20b\x07\x1b]133;A;k=i\x07$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07x\r\n\x1b]133;D;130;aid=1\x07\x07\
          \x1b]9;done\x07\x1b]9;4;1;50\x07\x1b]777;notify;Title;Body; all\x1b\\\x1b]133;D\x07",
    );
    let kinds: Vec<MarkKind> = screen.take_marks().into_iter().map(|mark| mark.kind).collect();
    assert_eq!(
        kinds,
        [
            MarkKind::Directory("/home/a b".into()),
            MarkKind::PromptStart("k=i".into()),
            MarkKind::CommandStart(String::new()),
            MarkKind::OutputStart(String::new()),
            MarkKind::CommandEnd { status: Some(130), parameters: "130;aid=1".into() },
            MarkKind::Bell,
            MarkKind::Notification { title: String::new(), body: "done".into() },
            MarkKind::Notification { title: "Title".into(), body: "Body; all".into() },
            MarkKind::CommandEnd { status: None, parameters: String::new() },
        ]
    );
    assert_eq!(screen.cwd(), Some("/home/a b"));
}

#[test]
fn leaving_brings_a_terminal_back_to_its_defaults() {
    let messes = "\x1b[?1049h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b=\x1b[>5u\x1b[>4;2m\x1b[3;9r\x1b[?6h\x1b[4h\x1b(0\x0e\
                  \x1b[?25l\x1b[5 q\x1b]8;;http://a\x07\x1b[1;31;44m\x1b[?2026h\x1b[?7l\x1b]2;t\x07half \x1b]0;open";
    let mut screen = Screen::new(Size::clamped(80, 24), 0);
    screen.feed(messes.as_bytes());
    screen.feed(&leave(true));
    let mut clean = Screen::new(Size::clamped(80, 24), 0);
    clean.feed(b"\x1b]2;t\x07\x1b[9999;1H\r\n");
    assert!(!screen.alternate() && !screen.bracketed_paste() && !screen.application_cursor());
    let strip = |screen: &Screen| {
        let text = String::from_utf8(screen.repaint(None)).unwrap();
        // The saved cursor is nobody's concern.
        text.split("\x1b7").last().unwrap().to_owned()
    };
    assert!(!strip(&screen).contains("\x1b[?"), "{:?}", strip(&screen));
}
