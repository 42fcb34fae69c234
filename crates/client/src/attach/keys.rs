//! Keys: usually the keeper reads them from the terminal; here they are ours, for a chord or where it cannot.
//!
//! What we type goes one frame at a time, each acknowledged before the next, so that a frame that was refused for want of
//! room is never overtaken.

use super::chord::{Chord, Meaning};
use super::output::View;
use super::run::Attached;
use super::{AttachEnd, AttachError};
use holdfast_abi::protocol::{INPUT_BYTES_MAX, PATTERNS_MAX, TTY_KEYS, TTY_PAINT, ToKeeper};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long until a frame that found no room is sent again.
const RETRY: Duration = Duration::from_millis(10);
/// How long a line of help stays.
const NOTICE: Duration = Duration::from_secs(3);
/// Keys kept for a program that does not read; more are left in the terminal.
const OUTBOX_MAX: usize = 16;

/// Whose the keys are, and what of them is under way.
#[derive(Debug)]
pub struct Keys {
    chord: Chord,
    read_only: bool,
    /// The keeper reads the terminal, under these flags.
    with_keeper: Option<u8>,
    /// It was asked to give the terminal back.
    asked_back: bool,
    /// It said it cannot.
    refused: bool,
    outbox: VecDeque<Vec<u8>>,
    in_flight: bool,
    retry_at: Option<Instant>,
    stream: u64,
    seq: u64,
    fence: u64,
}

impl Keys {
    /// Nothing typed yet.
    pub fn new(chord: Chord, read_only: bool, fence: u64) -> Keys {
        let mut stream = [0; 8];
        getrandom::fill(&mut stream).expect("the kernel gives random bytes");
        Keys {
            chord,
            read_only,
            with_keeper: None,
            asked_back: false,
            refused: false,
            outbox: VecDeque::new(),
            in_flight: false,
            retry_at: None,
            stream: u64::from_le_bytes(stream),
            seq: 0,
            fence,
        }
    }

    /// We should read the terminal.
    pub fn are_ours(&self) -> bool {
        self.with_keeper.is_none() && self.outbox.len() < OUTBOX_MAX
    }

    /// When to try again.
    pub fn retry_in(&self) -> Option<Duration> {
        self.retry_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// The keeper has written it.
    pub fn written(&mut self, seq: u64) {
        if self.in_flight && seq == self.seq {
            self.outbox.pop_front();
            self.in_flight = false;
        }
    }

    /// It was not taken now.
    pub fn refused(&mut self, seq: u64, fence: u64) {
        if self.in_flight && seq == self.seq {
            self.in_flight = false;
            // The number was not used up: the next attempt takes it again.
            self.seq -= 1;
            self.fence = self.fence.max(fence);
            self.retry_at = Some(Instant::now() + RETRY);
        }
    }

    /// The keeper cannot open this terminal: keys stay with us.
    pub fn terminal_refused(&mut self) {
        self.refused = true;
        self.with_keeper = None;
    }
}

impl Attached<'_> {
    /// Lets the keeper read the keys, and paint small output where this terminal answers queries.
    pub(super) fn hand_over_keys(&mut self) -> Result<(), AttachError> {
        let keys = &self.keys;
        let idle = keys.outbox.is_empty() && !keys.in_flight && !keys.chord.is_open();
        // A paint that is on its way decides what the keeper may do with the terminal.
        if keys.read_only || keys.refused || !idle || self.notice_until.is_some() || self.wanted.is_some() {
            return Ok(());
        }
        let Some(path) = self.terminal.path.clone() else { return Ok(()) };
        let paints = self.answers && matches!(self.view, View::Raw(None));
        let flags = TTY_KEYS | if paints { TTY_PAINT } else { 0 };
        if let Some(given) = self.keys.with_keeper {
            // Never handed over twice: a hand-back that crosses the second would leave two readers of one terminal.
            if given != flags && !self.keys.asked_back {
                self.keys.asked_back = true;
                self.tell_keeper(|_| ToKeeper::TtyBack)?;
            }
            return Ok(());
        }
        let forms = self.keys.chord.forms().to_vec();
        let mut patterns: [&[u8]; PATTERNS_MAX] = [&[]; PATTERNS_MAX];
        for (slot, form) in patterns.iter_mut().zip(&forms) {
            *slot = form;
        }
        self.tell_keeper(|_| ToKeeper::Tty { flags, path: &path, patterns })?;
        self.keys.with_keeper = Some(flags);
        Ok(())
    }

    /// The keeper saw a chord, or may not write: the terminal's keys are ours again.
    pub(super) fn keys_handed_back(&mut self, bytes: &[u8]) -> Result<(), AttachError> {
        (self.keys.with_keeper, self.keys.asked_back) = (None, false);
        self.typed(bytes)
    }

    /// Reads keys ourselves.
    pub(super) fn read_keys(&mut self) -> Result<(), AttachError> {
        let mut buffer = [0; INPUT_BYTES_MAX];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => self.end = Some(AttachEnd::HungUp),
            Ok(count) => self.typed(&buffer[..count])?,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.end = Some(AttachEnd::HungUp),
        }
        Ok(())
    }

    fn typed(&mut self, bytes: &[u8]) -> Result<(), AttachError> {
        if self.notice_until.take().is_some() {
            self.wanted.get_or_insert(false);
        }
        for meaning in self.keys.chord.feed(bytes) {
            match meaning {
                Meaning::Detach => {
                    self.end = Some(AttachEnd::Detached);
                    return Ok(());
                }
                Meaning::Type(_) if self.keys.read_only => {}
                Meaning::Type(keys) => self.keys.outbox.push_back(keys),
                Meaning::Help | Meaning::Nothing => self.show_help(),
            }
        }
        self.retry_keys()
    }

    /// Sends the next keys if it is their time, and gives the terminal back to the keeper when all are sent.
    pub(super) fn retry_keys(&mut self) -> Result<(), AttachError> {
        let keys = &mut self.keys;
        if keys.in_flight || keys.retry_at.is_some_and(|at| at > Instant::now()) {
            return Ok(());
        }
        keys.retry_at = None;
        let Some(bytes) = keys.outbox.front().cloned() else {
            return self.hand_over_keys();
        };
        keys.seq += 1;
        keys.in_flight = true;
        let (fence, stream, seq) = (keys.fence, keys.stream, keys.seq);
        self.tell_keeper(|_| ToKeeper::Input { fence, stream, seq, bytes: &bytes })
    }

    fn show_help(&mut self) {
        let detach = char::from(self.options.detach_key);
        let chord = char::from(self.options.chord + 64);
        let text = format!(
            " holdfast: Ctrl-{chord} {detach} detaches · Ctrl-{chord} twice types one · Ctrl-{chord} ? this line "
        );
        let text: String = text.chars().take(usize::from(self.size.cols())).collect();
        let line = format!("\x1b7\x1b[{};1H\x1b[0;7m{text}\x1b[0m\x1b[K\x1b8", self.size.rows());
        if self.terminal.write(line.as_bytes()).is_ok() {
            self.notice_until = Some(Instant::now() + NOTICE);
        }
    }
}
