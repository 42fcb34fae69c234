//! The screen: bytes in, state out.

use crate::fast::Flood;
use crate::marks::{Mark, Reply, TerminalColors};
use crate::parse::{Boundary, Csi, Decoded, ESC, State, ascii_run, controls_within, decode, is_cancelled};
use crate::vt::{Modes, Vt, kept_lines};
use holdfast_types::{Offset, Size};

/// Longest sequence that takes effect. Titles, links and queries are far shorter; images are not ours to draw.
pub(crate) const SEQUENCE_BYTES_MAX: usize = 64 * 1024;
/// Feeds shorter than this are drawn as they come.
const FLOOD_BYTES_MIN: usize = 1024;
/// How much of a feed is looked at for the end of a sequence that an earlier feed began.
const RESUME_BYTES: usize = 4096;

/// The state of a terminal at an absolute output offset.
///
/// Feed it every byte of the output in order. Between two feeds it is at rest at a byte boundary of your choice: an unfinished
/// escape sequence or character waits, as bytes, for its rest.
pub struct Screen {
    pub(crate) vt: Vt,
    pub(crate) offset: Offset,
    /// The beginning of a sequence or character whose end was not fed yet.
    pub(crate) pending: Vec<u8>,
    /// How far `pending` was searched for its end, when it is a sequence.
    pub(crate) boundary: Option<Boundary>,
    /// A sequence beyond the limit is being thrown away.
    pub(crate) skipping: Option<State>,
}

impl Screen {
    /// A blank screen; the first byte fed to it is the one at `at`.
    #[must_use]
    pub fn new(size: Size, at: Offset) -> Screen {
        Screen { vt: Vt::new(size), offset: at, pending: Vec::new(), boundary: None, skipping: None }
    }

    /// Every byte before this one has been fed.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// The beginning of an escape sequence whose end was not fed yet; empty where there is none.
    #[must_use]
    pub fn unfinished_sequence(&self) -> &[u8] {
        if self.boundary.is_some() { &self.pending } else { &[] }
    }

    /// Columns and rows.
    #[must_use]
    pub fn size(&self) -> Size {
        self.vt.size
    }

    /// Takes the next bytes of the output.
    pub fn feed(&mut self, bytes: &[u8]) {
        let end = self.offset + bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() && (self.skipping.is_some() || !self.pending.is_empty()) {
            rest = self.resume(rest, end);
        }
        self.run(rest, end);
        self.offset = end;
    }

    /// Changes the size, as the terminal's window would.
    pub fn resize(&mut self, size: Size) {
        self.vt.resize(size);
    }

    /// The answers to queries met since the last call; at most the newest 1024.
    pub fn take_replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.vt.replies)
    }

    /// What happened on the side since the last call; at most the newest 1024.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.vt.marks)
    }

    /// The colours that queries are answered with until a program changes them.
    pub fn set_colors(&mut self, colors: TerminalColors) {
        self.vt.colors = colors;
    }

    /// Appends the complete lines that scrolled off, oldest first, and returns how many. The newest ones (twice the rows, at
    /// least 100) stay until later ones push them out. Undrained lines are kept without bound: drain after each large feed.
    pub fn drain_history(&mut self, out: &mut Vec<u8>) -> u32 {
        let keep = kept_lines(self.vt.rows());
        self.vt.history.drain(keep, out)
    }

    /// Whether the program threw its history away since the last call: then nothing that was drained before is part of it.
    pub fn take_cleared(&mut self) -> bool {
        std::mem::take(&mut self.vt.history.cleared)
    }

    /// How many complete lines scrolled off and were not drained.
    #[must_use]
    pub fn undrained_lines(&self) -> usize {
        self.vt.history.lines
    }

    /// The newest of them.
    #[must_use]
    pub fn newest_lines(&self, count: usize) -> &[u8] {
        self.vt.history.newest(count)
    }

    /// The lines that scrolled off and were not drained; the last one is unterminated if its rest is still on the screen.
    #[must_use]
    pub fn open_history(&self) -> Vec<u8> {
        self.vt.history.bytes.clone()
    }

    /// The newest of them, and the unterminated one.
    #[must_use]
    pub fn newest_open_history(&self, count: usize) -> &[u8] {
        self.vt.history.newest_open(count)
    }

    /// Column and row of the cursor, from zero.
    #[must_use]
    pub fn cursor(&self) -> (u16, u16) {
        let (column, row, _) = self.vt.place();
        (column as u16, row as u16)
    }

    /// Is the alternate screen shown?
    #[must_use]
    pub fn alternate(&self) -> bool {
        self.vt.alternate
    }

    /// The window title, empty if none was set.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.vt.title
    }

    /// The working directory as the shell last reported it (OSC 7).
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.vt.cwd.as_deref()
    }

    /// Does the program want pasted text in brackets?
    #[must_use]
    pub fn bracketed_paste(&self) -> bool {
        self.vt.modes.has(Modes::BRACKETED_PASTE)
    }

    /// Does the program want application cursor keys?
    #[must_use]
    pub fn application_cursor(&self) -> bool {
        self.vt.modes.has(Modes::APP_CURSOR)
    }

    /// Goes on with what an earlier feed left unfinished and returns the bytes that are left.
    fn resume<'a>(&mut self, rest: &'a [u8], end: Offset) -> &'a [u8] {
        if let Some(state) = self.skipping {
            let mut boundary = Boundary::within(state);
            return match boundary.find(rest) {
                Some(length) => {
                    self.skipping = None;
                    &rest[length..]
                }
                None => {
                    self.skipping = Some(boundary.state);
                    &[]
                }
            };
        }
        let before = self.pending.len();
        let Some(mut boundary) = self.boundary else { return self.resume_char(rest) };
        let taken = rest.len().min(RESUME_BYTES);
        self.pending.extend_from_slice(&rest[..taken]);
        match boundary.find(&self.pending) {
            Some(length) => {
                let sequence = std::mem::take(&mut self.pending);
                self.boundary = None;
                let rest = &rest[length - before..];
                self.vt.at = end - rest.len() as u64;
                self.execute(boundary.state, &sequence[..length]);
                rest
            }
            None => {
                self.boundary = Some(boundary);
                if self.pending.len() > SEQUENCE_BYTES_MAX {
                    self.skip(boundary.state);
                }
                &rest[taken..]
            }
        }
    }

    fn skip(&mut self, state: State) {
        self.pending = Vec::new();
        self.boundary = None;
        self.skipping = Some(state);
    }

    fn resume_char<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let before = self.pending.len();
        let taken = rest.len().min(4 - before.min(3));
        self.pending.extend_from_slice(&rest[..taken]);
        let length = match decode(&self.pending) {
            Decoded::Char(c, length) => {
                self.char(c);
                length
            }
            Decoded::Invalid(length) => {
                self.vt.print('\u{fffd}');
                length
            }
            Decoded::Incomplete => return &rest[taken..],
        };
        self.pending.clear();
        &rest[length - before..]
    }

    /// Executes everything in `bytes`; what is unfinished at their end becomes pending.
    pub(crate) fn run(&mut self, bytes: &[u8], end: Offset) {
        let mut at = 0;
        // A flood is looked for behind a line feed, and not twice in the same place.
        let (mut flood_from, mut pause) = (0, FLOOD_BYTES_MIN);
        while at < bytes.len() {
            let rest = &bytes[at..];
            match rest[0] {
                0x20..=0x7e => {
                    let length = ascii_run(rest);
                    self.vt.print_ascii(&rest[..length]);
                    at += length;
                }
                ESC => {
                    if let Some((csi, length)) = Csi::plain(rest).filter(|(_, length)| *length <= SEQUENCE_BYTES_MAX) {
                        at += length;
                        self.vt.at = end - (bytes.len() - at) as u64;
                        self.vt.csi(&csi);
                        self.vt.last_char = None;
                        continue;
                    }
                    let mut boundary = Boundary::new();
                    let Some(length) = boundary.find(rest) else {
                        self.hold(rest, boundary);
                        return;
                    };
                    at += length;
                    self.vt.at = end - (bytes.len() - at) as u64;
                    self.execute(boundary.state, &rest[..length]);
                }
                control @ (0..=0x1f | 0x7f) => {
                    at += 1;
                    self.vt.at = end - (bytes.len() - at) as u64;
                    self.vt.control(control);
                    if control == b'\n' && at >= flood_from && bytes.len() - at >= FLOOD_BYTES_MIN {
                        match self.take_flood(&bytes[at..]) {
                            Flood::Took(taken) => {
                                at += taken;
                                (flood_from, pause) = (at, FLOOD_BYTES_MIN);
                            }
                            Flood::NotHere => {
                                flood_from = at + pause;
                                pause *= 2;
                            }
                            Flood::TooShort => flood_from = bytes.len(),
                        }
                    }
                }
                0x80.. => match decode(rest) {
                    Decoded::Char(c, length) => {
                        self.char(c);
                        at += length;
                    }
                    Decoded::Invalid(length) => {
                        self.vt.print('\u{fffd}');
                        at += length;
                    }
                    Decoded::Incomplete => {
                        self.pending.extend_from_slice(rest);
                        return;
                    }
                },
            }
        }
    }

    fn hold(&mut self, rest: &[u8], boundary: Boundary) {
        if rest.len() > SEQUENCE_BYTES_MAX {
            self.skip(boundary.state);
        } else {
            self.pending.extend_from_slice(rest);
            self.boundary = Some(boundary);
        }
    }

    #[inline]
    fn char(&mut self, c: char) {
        match c {
            '\u{84}' => self.vt.index(),
            '\u{85}' => self.vt.escape(b"\x1bE"),
            '\u{88}' => self.vt.set_tab(),
            '\u{80}'..='\u{9f}' => {}
            _ => self.vt.print(c),
        }
    }

    /// Executes one complete sequence.
    fn execute(&mut self, state: State, sequence: &[u8]) {
        if sequence.len() > SEQUENCE_BYTES_MAX {
            return;
        }
        let vt = &mut self.vt;
        if state == State::Csi {
            vt.csi_sequence(sequence);
            vt.last_char = None;
            return;
        }
        vt.last_char = None;
        match state {
            State::Csi => {}
            State::Escape | State::Intermediate => {
                controls_within(sequence).for_each(|control| vt.control(control));
                if !is_cancelled(sequence) {
                    vt.escape(sequence);
                }
            }
            State::Osc | State::Text => {
                let Some(start) = sequence.iter().skip(1).position(|b| *b >= 0x20) else { return };
                let (before, text) = sequence.split_at(start + 1);
                controls_within(before).for_each(|control| vt.control(control));
                if is_cancelled(sequence) {
                    return;
                }
                match (text[0], text[1..].strip_suffix(b"\x07")) {
                    (b']', Some(text)) => vt.osc(text, b"\x07"),
                    (b']', None) => vt.osc(&text[1..], b""),
                    (b'P', _) => vt.dcs(&text[1..]),
                    _ => {}
                }
            }
        }
    }
}
