//! The corpus, and random streams from a seed.

use base64::Engine;
use holdfast_screen::Screen;
use holdfast_types::Size;
use std::path::Path;

/// One thing that happens to a terminal.
#[derive(Clone, Debug)]
pub enum Step {
    Write(Vec<u8>),
    Resize(u16, u16),
}

/// A named stream for a terminal of a size.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub cols: u16,
    pub rows: u16,
    pub steps: Vec<Step>,
}

impl Case {
    pub fn screen(&self) -> Screen {
        Screen::new(Size::clamped(self.cols, self.rows), 0)
    }

    pub fn play(&self) -> Screen {
        let mut screen = self.screen();
        for step in &self.steps {
            apply(&mut screen, step);
        }
        screen
    }
}

pub fn apply(screen: &mut Screen, step: &Step) {
    match step {
        Step::Write(bytes) => screen.feed(bytes),
        Step::Resize(cols, rows) => screen.resize(Size::clamped(*cols, *rows)),
    }
}

/// Every stream of `tests/corpus`, sorted by name.
pub fn corpus() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut cases = Vec::new();
    for folder in ["hand", "real"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).unwrap();
            cases.push(if name.ends_with(".json") { hand_made(&name, &bytes) } else { recording(&name, bytes) });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() > 30, "the corpus is missing");
    cases
}

fn hand_made(name: &str, bytes: &[u8]) -> Case {
    let json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as u16;
    let step = |step: &serde_json::Value| match step["w"].as_str() {
        Some(text) => Step::Write(base64::engine::general_purpose::STANDARD.decode(text).unwrap()),
        None => Step::Resize(number(&step["r"][0]), number(&step["r"][1])),
    };
    Case {
        name: name.trim_end_matches(".json").to_owned(),
        cols: number(&json["cols"]),
        rows: number(&json["rows"]),
        steps: json["steps"].as_array().unwrap().iter().map(step).collect(),
    }
}

/// `name.COLSxROWS.bin`.
fn recording(name: &str, bytes: Vec<u8>) -> Case {
    let mut parts = name.split('.');
    let short = parts.next().unwrap().to_owned();
    let (cols, rows) = parts.next().unwrap().split_once('x').unwrap();
    Case { name: short, cols: cols.parse().unwrap(), rows: rows.parse().unwrap(), steps: vec![Step::Write(bytes)] }
}

/// xorshift64*: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Which ingredients a random stream has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// What programs write. Not in it: saved cursors, which xterm.js lets scroll with the text; links, which it forgets with
    /// the row they began in; and SU, whose rows we record (as xterm does) and xterm.js does not.
    Sane,
    /// That, and malformed sequences, binary garbage, huge numbers.
    Wild,
}

/// A random stream of about `pieces` pieces.
pub fn random_bytes(random: &mut Random, pieces: usize, flavour: Flavour) -> Vec<u8> {
    random_pieces(random, pieces, flavour).concat()
}

/// The same, piece by piece.
pub fn random_pieces(random: &mut Random, pieces: usize, flavour: Flavour) -> Vec<Vec<u8>> {
    let piece = |_| {
        let mut out = Vec::new();
        let kinds = if flavour == Flavour::Wild { 14 } else { 10 };
        match random.below(kinds) {
            0..=2 => text(random, &mut out),
            3 => out.extend_from_slice(b"\r\n"),
            4 => sgr(random, &mut out),
            5 | 6 => csi(random, flavour, &mut out),
            7 => wide_text(random, &mut out),
            8 => control(random, flavour, &mut out),
            9 => string(random, flavour, &mut out),
            10 => (0..random.below(12)).for_each(|_| out.push(random.next() as u8)),
            11 => torn(random, &mut out),
            12 => mode(random, &mut out),
            _ => huge(random, &mut out),
        }
        out
    };
    (0..pieces).map(piece).collect()
}

fn text(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..1 + random.below(30) {
        out.push(b' ' + random.below(95) as u8);
    }
}

fn wide_text(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..1 + random.below(8) {
        let c = random.pick(&["é", "漢", "字", "ß", "→", "e\u{301}", "한", "─", "█", "ñ"]);
        out.extend_from_slice(c.as_bytes());
    }
}

fn sgr(random: &mut Random, out: &mut Vec<u8>) {
    let codes = [
        "",
        "0",
        "1",
        "2",
        "3",
        "4",
        "7",
        "9",
        "22",
        "24",
        "27",
        "31",
        "42",
        "38;5;200",
        "48;5;17",
        "38;2;1;2;3",
        "4:3",
        "39",
        "49",
        "1;33;44",
        "97",
        "103",
        "58:5:3",
        "5",
        "8",
        "28",
    ];
    out.extend_from_slice(format!("\x1b[{}m", random.pick(&codes)).as_bytes());
}

fn csi(random: &mut Random, flavour: Flavour, out: &mut Vec<u8>) {
    const COMMON: [&str; 23] = [
        "H", "A", "B", "C", "D", "E", "F", "G", "d", "J", "K", "L", "M", "P", "X", "@", "T", "r", "b", "I", "Z", "a",
        "e",
    ];
    let last = match flavour {
        Flavour::Wild if random.chance(10) => random.pick(&["s", "u", "S"]),
        _ => random.pick(&COMMON),
    };
    let mut params = String::new();
    for at in 0..random.below(3) {
        if at > 0 {
            params.push(';');
        }
        params.push_str(&random.below(if matches!(last, "J" | "K") { 3 } else { 14 }).to_string());
    }
    out.extend_from_slice(format!("\x1b[{params}{last}").as_bytes());
}

fn control(random: &mut Random, flavour: Flavour, out: &mut Vec<u8>) {
    let choice = match flavour {
        Flavour::Sane if random.chance(20) => random.pick(&["\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f"]),
        Flavour::Wild if random.chance(20) => {
            random.pick(&["\x1b7", "\x1b8", "\x1b(0", "\x1b)0", "\x0e", "\x0f", "\x07"])
        }
        _ => random.pick(&["\n", "\r", "\t", "\x08", "\x1bM", "\x1bD", "\x1bE", "\x1bH", "\x0b"]),
    };
    out.extend_from_slice(choice.as_bytes());
}

fn string(random: &mut Random, flavour: Flavour, out: &mut Vec<u8>) {
    let links = ["\x1b]8;;http://example.org\x1b\\", "\x1b]8;id=a;http://example.net\x1b\\", "\x1b]8;;\x1b\\"];
    let others = [
        "\x1b]0;a title\x07",
        "\x1b]2;another\x1b\\",
        "\x1b]133;A\x07",
        "\x1bP+q544e\x1b\\",
        "\x1b_Gi=1;AAAA\x1b\\",
        "\x1b]7;file://h/tmp\x07",
    ];
    let choice = if flavour == Flavour::Wild && random.chance(50) { random.pick(&links) } else { random.pick(&others) };
    out.extend_from_slice(choice.as_bytes());
}

fn mode(random: &mut Random, out: &mut Vec<u8>) {
    let number =
        random.pick(&["1", "6", "7", "25", "45", "47", "1000", "1006", "1047", "1048", "1049", "2004", "2026"]);
    let letter = random.pick(&["h", "l"]);
    out.extend_from_slice(format!("\x1b[?{number}{letter}").as_bytes());
    let plain = random.pick(&["\x1b[4h", "\x1b[4l", "\x1b[20l", "\x1b[!p", "\x1b[>1u", "\x1b[<u", "\x1b[5 q", "\x1bc"]);
    out.extend_from_slice(plain.as_bytes());
}

fn torn(random: &mut Random, out: &mut Vec<u8>) {
    let choices: [&[u8]; 12] = [
        b"\x1b",
        b"\x1b[",
        b"\x1b[3",
        b"\x1b[3\n1m",
        b"\x1b]0;no end",
        b"\x1bP1$q",
        b"\xe6\xbc",
        b"\xff\xfe",
        b"\x1b\x18",
        b"\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34m",
        b"\x1b#8",
        b"\x1b[?1;2;3$p",
    ];
    out.extend_from_slice(random.pick(&choices));
}

fn huge(random: &mut Random, out: &mut Vec<u8>) {
    let last = random.pick(&["A", "B", "C", "D", "H", "S", "T", "L", "M", "P", "@", "X", "b", "r", "I", "Z", "m"]);
    let number = random.pick(&["65535", "99999999999", "0", "1000"]);
    out.extend_from_slice(format!("\x1b[{number};{number}{last}").as_bytes());
}
