//! The session's program and its terminal's two buffers.
//!
//! It says lines, colours, titles, full screens and floods, and asks the terminal things: every question has a number of its
//! own (a mode nobody knows), so every answer tells what it answers. What is typed is made of tokens that tell who typed
//! them and which one they are.

use crate::ctx::Ctx;
use crate::shell::{SHELL_PID, Shell};
use std::collections::VecDeque;

/// What the kernel holds of output before the program must wait.
const OUT_BYTES_MAX: usize = 32 * 1024;
/// What the kernel holds of input before the keeper must wait.
const INPUT_BYTES_MAX: usize = 4096;
/// The first query's number; modes below mean something.
pub(crate) const QUERY_FIRST: u16 = 10_000;

/// One key of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token {
    pub source: u8,
    pub number: u32,
}

impl Token {
    /// A leading byte says who, three following ones which.
    pub fn encode(self, out: &mut Vec<u8>) {
        let six = |shift: u32| 0x80 | (self.number >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xc0 | self.source, six(12), six(6), six(0)]);
    }
}

/// Puts tokens together from bytes, whatever stands between them.
#[derive(Debug, Default)]
pub(crate) struct TokenReader {
    begun: Option<(u8, u32, u32)>,
}

impl TokenReader {
    /// The token that this byte completes.
    fn feed(&mut self, byte: u8) -> Option<Token> {
        match (byte, self.begun) {
            (0xc0.., _) => self.begun = Some((byte & 0x3f, 0, 0)),
            (0x80..=0xbf, Some((source, number, count))) => {
                let number = number << 6 | u32::from(byte & 0x3f);
                self.begun = (count < 2).then_some((source, number, count + 1));
                return (count == 2).then_some(Token { source, number });
            }
            (0x80..=0xbf, None) | (0..=0x7f, _) => {}
        }
        None
    }
}

/// What a terminal answers to query `id`.
pub(crate) fn reply(id: u16) -> Vec<u8> {
    format!("\x1b[?{id};0$y").into_bytes()
}

/// The tokens among some keys.
pub(crate) fn tokens(keys: &[u8]) -> Vec<Token> {
    let mut reader = TokenReader::default();
    keys.iter().filter_map(|byte| reader.feed(*byte)).collect()
}

/// Keys without the answers to queries among them, and which queries those answer.
pub(crate) fn replies(keys: &[u8]) -> (Vec<u8>, Vec<u16>) {
    let (mut kept, mut answered) = (Vec::new(), Vec::new());
    let mut rest = keys;
    while let Some(first) = rest.first() {
        let end = if *first == 0x1b { memchr::memchr(b'y', rest) } else { None };
        let digits = end.and_then(|end| std::str::from_utf8(&rest[3..end - 3]).ok());
        match (end, digits.and_then(|digits| digits.parse().ok())) {
            (Some(end), Some(id)) => {
                answered.push(id);
                rest = &rest[end + 1..];
            }
            (Some(_) | None, _) => {
                kept.push(*first);
                rest = &rest[1..];
            }
        }
    }
    (kept, answered)
}

/// The session's terminal as the kernel has it.
#[derive(Debug, Default)]
pub(crate) struct Pty {
    pub out: VecDeque<u8>,
    pub input: VecDeque<u8>,
    pub echo_off: bool,
    /// The terminal edits lines: no line editor reads.
    pub reads_lines: bool,
    /// Who has the terminal.
    pub foreground: u32,
    /// What the program has read of a token, and of an answer.
    tokens: TokenReader,
    answer: Vec<u8>,
}

impl Pty {
    /// The keeper writes; gives how many bytes were taken.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(INPUT_BYTES_MAX - self.input.len());
        self.input.extend(&bytes[..count]);
        count
    }

    /// Drops what the program has not read, and `queued` behind it; gives the tokens and the answers that are lost.
    pub fn flush(&mut self, queued: impl Iterator<Item = u8>) -> (Vec<Token>, Vec<u16>) {
        let dropped: Vec<u8> = self.input.drain(..).chain(queued).collect();
        let lost = dropped.iter().filter_map(|byte| self.tokens.feed(*byte)).collect();
        self.tokens = TokenReader::default();
        (lost, replies(&[std::mem::take(&mut self.answer), dropped].concat()).1)
    }

    /// The keeper reads.
    pub fn read(&mut self, room: usize) -> Vec<u8> {
        let count = room.min(self.out.len());
        self.out.drain(..count).collect()
    }
}

/// The program.
#[derive(Debug)]
pub(crate) struct Program {
    saying: VecDeque<u8>,
    /// Bytes it may still say in this run.
    budget: usize,
    flood_left: usize,
    line: u32,
    next_query: u16,
    deaf_until: u64,
    /// It is a shell, and what it says comes from its commands.
    shell: Option<Shell>,
}

impl Program {
    pub fn new(ctx: &mut Ctx, budget: usize, is_shell: bool) -> Program {
        (ctx.pty.reads_lines, ctx.pty.foreground) = (true, SHELL_PID);
        let mut saying = VecDeque::new();
        let shell = is_shell.then(|| Shell::new(&mut saying));
        Program { saying, budget, flood_left: 0, line: 0, next_query: QUERY_FIRST, deaf_until: 0, shell }
    }

    /// The shell's turn: whether a command runs, which thinks of something to say.
    fn shell_turn(&mut self, ctx: &mut Ctx, ends: bool) -> bool {
        // What it says comes in order: the end of a command behind what the command said.
        if self.saying.is_empty()
            && self.flood_left == 0
            && let Some(shell) = &mut self.shell
        {
            let printed = shell.turn(ctx, ends);
            self.saying.extend(printed);
        }
        self.shell.as_ref().is_none_or(Shell::is_running)
    }

    /// It reads a little, thinks of something to say, and says what its terminal takes.
    pub fn turn(&mut self, ctx: &mut Ctx) {
        if ctx.frozen {
            return;
        }
        self.listen(ctx, false);
        if self.shell_turn(ctx, false) && self.saying.is_empty() && self.flood_left == 0 {
            self.think(ctx);
        }
        self.speak(ctx);
    }

    /// It reads everything and says nothing new.
    pub fn settle(&mut self, ctx: &mut Ctx) {
        if ctx.frozen {
            return;
        }
        self.flood_left = 0;
        self.listen(ctx, true);
        self.shell_turn(ctx, true);
        self.speak(ctx);
    }

    /// Whether everything thought of is said.
    pub fn is_silent(&self) -> bool {
        self.saying.is_empty() && self.flood_left == 0 && !self.shell.as_ref().is_some_and(Shell::is_running)
    }

    fn think(&mut self, ctx: &mut Ctx) {
        if self.budget == 0 {
            return;
        }
        let mut text = Vec::new();
        match ctx.rng.u32(..100) {
            0..20 => self.say_lines(ctx, &mut text),
            20..30 => text.extend_from_slice(format!("\x1b[1;3{}mcolour\x1b[0m ", ctx.rng.u32(1..8)).as_bytes()),
            30..36 => {
                let (row, column) = (ctx.rng.u32(1..30), ctx.rng.u32(1..90));
                text.extend_from_slice(format!("\x1b[{row};{column}Hh\u{e9}llo \u{4e16}\x1b[K").as_bytes());
            }
            36..38 => text.extend_from_slice(b"\x1b[?1049h\x1b[2J\x1b[Hfull screen"),
            38..40 => text.extend_from_slice(b"\x1b[?1049l"),
            40..44 => text.extend_from_slice(format!("\x1b]2;title {}\x07", self.line).as_bytes()),
            44..70 => self.ask(ctx, &mut text),
            70..75 if self.budget > 0 => {
                self.flood_left = ctx.rng.usize(8_000..400_000).min(self.budget);
                ctx.note(format_args!("program: floods {} bytes", self.flood_left));
            }
            75..78 => {
                ctx.pty.echo_off = !ctx.pty.echo_off;
            }
            78..80 => {
                self.deaf_until = ctx.now + ctx.rng.u64(50..1500);
                ctx.note(format_args!("program: reads nothing until {}", self.deaf_until));
            }
            _ => {}
        }
        self.budget = self.budget.saturating_sub(text.len());
        self.saying.extend(text);
    }

    fn say_lines(&mut self, ctx: &mut Ctx, text: &mut Vec<u8>) {
        for _ in 0..ctx.rng.u32(1..6) {
            self.line += 1;
            let width = ctx.rng.usize(0..120);
            text.extend_from_slice(format!("line {} {}\r\n", self.line, "-".repeat(width)).as_bytes());
        }
    }

    fn ask(&mut self, ctx: &mut Ctx, text: &mut Vec<u8>) {
        for _ in 0..ctx.rng.u32(1..4) {
            text.extend_from_slice(format!("\x1b[?{}$p", self.next_query).as_bytes());
            self.next_query += 1;
            ctx.counts.queries += 1;
        }
    }

    fn speak(&mut self, ctx: &mut Ctx) {
        let room = OUT_BYTES_MAX - ctx.pty.out.len();
        let count = room.min(self.saying.len());
        // Where a write is cut is the kernel's whim.
        let count = if count > 1 && ctx.chance(30) { ctx.rng.usize(1..count) } else { count };
        ctx.pty.out.extend(self.saying.drain(..count));
        while self.saying.is_empty() && self.flood_left > 0 && ctx.pty.out.len() + 128 < OUT_BYTES_MAX {
            self.line += 1;
            let line = format!("flood {:>8} all work and no play makes a dull terminal, they say\r\n", self.line);
            self.flood_left = self.flood_left.saturating_sub(line.len());
            self.budget = self.budget.saturating_sub(line.len());
            ctx.pty.out.extend(line.as_bytes());
        }
    }

    fn listen(&mut self, ctx: &mut Ctx, all: bool) {
        if !all && ctx.now < self.deaf_until {
            return;
        }
        let waiting = ctx.pty.input.len();
        let count = if all || waiting == 0 { waiting } else { ctx.rng.usize(1..=waiting) };
        let bytes: Vec<u8> = ctx.pty.input.drain(..count).collect();
        for byte in &bytes {
            if *byte >= 0x80 {
                if let Some(token) = ctx.pty.tokens.feed(*byte) {
                    ctx.arrived(token);
                    let echo = self.shell.as_mut().map_or(&b""[..], |shell| shell.token(token));
                    self.saying.extend(echo);
                }
            } else if let Some(shell) = self.shell.as_mut().filter(|_| ctx.pty.answer.is_empty() && *byte != 0x1b) {
                let printed = shell.key(ctx, *byte);
                self.saying.extend(printed);
            } else {
                answer_byte(ctx, *byte);
            }
        }
        if !bytes.is_empty() && !ctx.pty.echo_off && !all && self.budget > 0 && self.shell.is_none() {
            self.saying.extend(b"*".repeat(bytes.len().min(8)));
        }
    }
}

fn answer_byte(ctx: &mut Ctx, byte: u8) {
    let answer = &mut ctx.pty.answer;
    if byte == 0x1b {
        answer.clear();
    }
    answer.push(byte);
    if byte == b'y' {
        let answer = std::mem::take(answer);
        let digits = answer.iter().skip(3).take_while(|b| b.is_ascii_digit()).map(|b| char::from(*b));
        let id: String = digits.collect();
        match id.parse() {
            Ok(id) => ctx.answered(id),
            Err(_) => ctx.fail(format!("an answer to nothing that was asked: {id:?}")),
        }
    }
}
