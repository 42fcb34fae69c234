//! A session as asciicast: one JSON header, then one event a line, `[seconds, code, data]`. In version 3 the seconds are those since the
//! event before, in version 2 those since the beginning; version 2 has no event for the end.
//!
//! Output has offsets and no times; acts have both. Each act says that at this moment the output had come so far, and
//! between two such anchors bytes are taken to have come evenly. Pieces end at line ends, and never inside a character; not
//! inside an escape sequence either unless one is longer than any real one.
//!
//! Knows nothing of hosts and journals: it is given chunks, anchors and marks.

use holdfast_types::{Offset, Size, TimeMs};
use serde::Serialize;
use serde_json::json;

/// Longest piece without a line end: a player draws it at once.
const PIECE_BYTES_MAX: usize = 4 * 1024;
/// Here a piece ends even inside an escape sequence: pictures are such, and an unended one would swallow the rest.
const SEQUENCE_BYTES_MAX: usize = 64 * 1024;

/// Output that is there, without a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its first byte.
    pub from: Offset,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Without its beginning up to the first line end: behind a gap that may be the rest of an escape sequence or of a character.
    pub fn without_cut_line(mut self) -> Chunk {
        let within = &self.bytes[..self.bytes.len().min(SEQUENCE_BYTES_MAX)];
        if let Some(end) = within.iter().position(|byte| *byte == b'\n') {
            self.bytes.drain(..=end);
            self.from += end as Offset + 1;
        }
        self
    }
}

/// At this moment the output had come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The output head.
    pub at: Offset,
    /// When.
    pub time_ms: TimeMs,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Code {
    /// Output.
    #[serde(rename = "o")]
    Output,
    /// Input.
    #[serde(rename = "i")]
    Input,
    /// A named point.
    #[serde(rename = "m")]
    Marker,
    /// Another size.
    #[serde(rename = "r")]
    Resize,
    /// The end, with its status.
    #[serde(rename = "x")]
    Exit,
}

/// Something that is not output, and where in the output it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Before this byte.
    pub at: Offset,
    /// When; none: when that byte came.
    pub time_ms: Option<TimeMs>,
    /// What.
    pub code: Code,
    /// Its data.
    pub data: String,
}

/// One event in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the epoch.
    pub time_us: u64,
    /// What.
    pub code: Code,
    /// Its data.
    pub data: String,
}

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The size at the beginning.
    pub size: Size,
    /// What was run.
    pub command: String,
    /// The recording's name.
    pub title: String,
}

/// When each byte came, as far as acts tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    anchors: Vec<Anchor>,
}

impl Times {
    /// From anchors in any order; one that contradicts those before it is left out.
    pub fn new(mut anchors: Vec<Anchor>) -> Times {
        anchors.sort_by_key(|anchor| (anchor.time_ms, anchor.at));
        let mut head = 0;
        anchors.retain(|anchor| {
            let fits = anchor.at >= head;
            head = head.max(anchor.at);
            fits
        });
        Times { anchors }
    }

    /// When the byte at an offset came, in microseconds since the epoch.
    pub fn at_us(&self, offset: Offset) -> u64 {
        let next = self.anchors.partition_point(|anchor| anchor.at <= offset);
        match (next.checked_sub(1).map(|i| &self.anchors[i]), self.anchors.get(next)) {
            (None, None) => 0,
            (None, Some(only)) | (Some(only), None) => only.time_ms.saturating_mul(1000),
            (Some(before), Some(after)) => {
                let (bytes, all) = (u128::from(offset - before.at), u128::from(after.at - before.at));
                let all_us = u128::from(after.time_ms - before.time_ms) * 1000;
                // Smaller than `all_us`, which came from 64 bits times a thousand.
                before.time_ms.saturating_mul(1000).saturating_add((all_us * bytes / all) as u64)
            }
        }
    }
}

/// All events, in order.
pub fn events(chunks: &[Chunk], times: &Times, mut marks: Vec<Mark>) -> Vec<Event> {
    let time_us = |mark: &Mark| mark.time_ms.map_or_else(|| times.at_us(mark.at), |ms| ms.saturating_mul(1000));
    marks.sort_by_key(|mark| (mark.at, time_us(mark)));
    let mut all: Vec<Event> = Vec::new();
    let mut push = |time_us: u64, code: Code, data: String| {
        // Time only goes on: an act that was recorded late must not turn it back.
        let time_us = all.last().map_or(time_us, |last: &Event| last.time_us.max(time_us));
        all.push(Event { time_us, code, data });
    };
    let mut waiting = marks.iter().peekable();
    for chunk in chunks {
        let wanted: Vec<Offset> = marks.iter().map(|mark| mark.at).filter(|at| *at > chunk.from).collect();
        for piece in pieces(&chunk.bytes, chunk.from, &wanted) {
            while let Some(mark) = waiting.next_if(|mark| mark.at <= chunk.from + piece.start as Offset) {
                push(time_us(mark), mark.code, mark.data.clone());
            }
            let data = String::from_utf8_lossy(&chunk.bytes[piece.clone()]).into_owned();
            push(times.at_us(chunk.from + piece.start as Offset), Code::Output, data);
        }
    }
    waiting.for_each(|mark| push(time_us(mark), mark.code, mark.data.clone()));
    all
}

/// Which form a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// For asciinema before 3, and most players.
    V2,
    /// For asciinema 3.
    V3,
}

/// The whole file. No pause is longer than the limit.
pub fn file(version: Version, header: &Header, events: &[Event], idle_limit_us: Option<u64>) -> String {
    let began_us = events.first().map_or(0, |event| event.time_us);
    let (cols, rows) = (header.size.cols(), header.size.rows());
    let mut text = match version {
        Version::V2 => json!({
            "version": 2,
            "width": cols,
            "height": rows,
            "env": {"TERM": "xterm-256color"},
            "timestamp": began_us / 1_000_000,
            "command": header.command,
            "title": header.title,
        }),
        Version::V3 => json!({
            "version": 3,
            "term": {"cols": cols, "rows": rows, "type": "xterm-256color"},
            "timestamp": began_us / 1_000_000,
            "command": header.command,
            "title": header.title,
        }),
    }
    .to_string();
    text.push('\n');
    if version == Version::V3 {
        // Version 2 knows no comments.
        text.push_str("# times between acts are interpolated: output has no times of its own\n");
    }
    let (mut before_us, mut played_us) = (began_us, 0);
    for event in events.iter().filter(|event| version == Version::V3 || event.code != Code::Exit) {
        let pause_us = (event.time_us - before_us).min(idle_limit_us.unwrap_or(u64::MAX));
        before_us = event.time_us;
        played_us += pause_us;
        let shown_us = if version == Version::V2 { played_us } else { pause_us };
        let (seconds, micros) = (shown_us / 1_000_000, shown_us % 1_000_000);
        let (code, data) = (json!(event.code), json!(event.data));
        text.push_str(&format!("[{seconds}.{micros:06}, {code}, {data}]\n"));
    }
    text
}

/// Cuts bytes behind line ends and at the wanted offsets, wherever the nearest safe place behind them is.
fn pieces(bytes: &[u8], from: Offset, wanted: &[Offset]) -> Vec<std::ops::Range<usize>> {
    let mut wanted = wanted.iter().map(|at| (at - from) as usize).peekable();
    let mut scanner = Scanner::default();
    let mut all = Vec::new();
    let mut start = 0;
    for (i, byte) in bytes.iter().enumerate() {
        scanner.take(*byte);
        let (end, length) = (i + 1, i + 1 - start);
        let is_wanted = wanted.peek().is_some_and(|at| *at <= end);
        let is_safe = scanner.is_between() && (*byte == b'\n' || is_wanted || length >= PIECE_BYTES_MAX);
        if is_safe || (length >= SEQUENCE_BYTES_MAX && scanner.character_left == 0) {
            all.push(start..end);
            start = end;
            while wanted.next_if(|at| *at <= end).is_some() {}
        }
    }
    if start < bytes.len() {
        all.push(start..bytes.len());
    }
    all
}

/// Whether a stream of output stands between characters and escape sequences.
#[derive(Debug, Default)]
struct Scanner {
    inside: Inside,
    /// Bytes the character still lacks.
    character_left: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    /// Behind ESC.
    Escape,
    /// A control sequence.
    Control,
    /// A string up to BEL or ST.
    Text,
    /// Behind ESC in a string.
    TextEscape,
}

impl Scanner {
    fn is_between(&self) -> bool {
        self.inside == Inside::Nothing && self.character_left == 0
    }

    fn take(&mut self, byte: u8) {
        self.character_left = match byte {
            0x80..=0xbf => self.character_left.saturating_sub(1),
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        self.inside = match (self.inside, byte) {
            (Inside::Text, 0x1b) => Inside::TextEscape,
            (_, 0x1b) => Inside::Escape,
            (Inside::Nothing, _) => Inside::Nothing,
            (Inside::Escape, b'[') => Inside::Control,
            (Inside::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Inside::Text,
            (Inside::Escape, 0x20..=0x2f) => Inside::Escape,
            (Inside::Escape, _) => Inside::Nothing,
            (Inside::Control, 0x40..=0x7e | 0x18 | 0x1a) => Inside::Nothing,
            (Inside::Control, _) => Inside::Control,
            (Inside::Text, 0x07 | 0x18 | 0x1a) => Inside::Nothing,
            (Inside::Text, _) => Inside::Text,
            // ST, or something else that ended the string.
            (Inside::TextEscape, _) => Inside::Nothing,
        };
    }
}

#[cfg(test)]
#[path = "asciicast_tests.rs"]
mod tests;
