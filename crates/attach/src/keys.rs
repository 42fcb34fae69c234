//! Keys: of the terminal that writes the keeper reads them; here they are ours, for a chord or where it may or can not.
//!
//! What we type goes one message at a time, each answered before the next: to the keeper under our fence while we are the
//! writer, else to the host, which judges. A message that may have been written goes again under the same number, one that was
//! refused takes all that waits behind it along: nothing appears later.

use super::chord::{Chord, Meaning};
use super::inputs::{Answer, AttachEnd, Request, Tag};
use super::machine::Attached;
use super::notice;
use super::output::View;
use super::reports::without_reports;
use holdfast_abi::protocol::{INPUT_BYTES_MAX, PATTERNS_MAX, TTY_KEYS, TTY_PAINT, ToKeeper, refused};
use holdfast_wire::{Code, Fault};
use std::collections::VecDeque;

/// How long until a message that found no room is sent again.
const RETRY_MS: u64 = 10;
/// Messages kept for a program that does not read, or a host that is away; more keys are left in the terminal.
const OUTBOX_MAX: usize = 16;

/// Which way the message under way went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Keeper { fence: u64 },
    Host { tag: Tag },
}

/// What is to be done about the keys that wait.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Nothing waits.
    Idle,
    /// Not now: a message is under way, it is too early, or there is no host to ask.
    Wait,
    /// The first message goes to the keeper, under our fence.
    Keeper { fence: u64, stream: u64, seq: u64, bytes: Vec<u8> },
    /// It goes to the host.
    Host { stream: u64, seq: u64, bytes: Vec<u8> },
}

/// Whose the keys are, and what of them is under way.
#[derive(Debug)]
pub struct Keys {
    chord: Chord,
    read_only: bool,
    /// We are the writer, under the newest fence we know.
    pub writes: bool,
    fence: u64,
    /// The keeper reads the terminal, under these flags.
    with_keeper: Option<u8>,
    /// It may write to the terminal while we sleep.
    pub keeper_paints: bool,
    /// So often it was asked to give the keys back and has not answered.
    backs: u32,
    /// It said it cannot open the terminal.
    refused: bool,
    outbox: VecDeque<Vec<u8>>,
    in_flight: Option<Way>,
    /// The first message was sent before: its bytes are its number's.
    tried: bool,
    retry_at: Option<u64>,
    stream: u64,
    /// Messages of the stream that are done; the first in the outbox has the next number.
    seq: u64,
}

impl Keys {
    /// Nothing typed yet.
    pub fn new(chord: Chord, read_only: bool, writes: bool, fence: u64, random: u64) -> Keys {
        Keys {
            chord,
            read_only,
            writes: writes && !read_only,
            fence,
            with_keeper: None,
            keeper_paints: false,
            backs: 0,
            refused: false,
            outbox: VecDeque::new(),
            in_flight: None,
            tried: false,
            retry_at: None,
            stream: random,
            seq: 0,
        }
    }

    /// We should read the terminal.
    pub fn are_ours(&self) -> bool {
        self.with_keeper.is_none() && self.outbox.len() < OUTBOX_MAX
    }

    /// The keeper was given them.
    pub fn is_read_by_keeper(&self) -> bool {
        self.with_keeper.is_some()
    }

    /// The keeper does not read them, and no hand-back is on its way.
    pub fn are_certainly_ours(&self) -> bool {
        self.with_keeper.is_none() && self.backs == 0
    }

    /// When to try again.
    pub fn retry_at(&self) -> Option<u64> {
        self.retry_at
    }

    /// What waits, and what is under way.
    pub fn unsent(&self) -> impl Iterator<Item = &[u8]> {
        self.outbox.iter().map(Vec::as_slice)
    }

    /// What the host says of our writing; false where it is older than what we know.
    pub fn adopt(&mut self, writes: bool, fence: u64) -> bool {
        if fence < self.fence {
            return false;
        }
        self.fence = fence;
        self.writes = writes && !self.read_only;
        true
    }

    /// Keys that wait to be sent; those behind a message that was never sent go with it.
    fn push(&mut self, keys: &[u8]) {
        for keys in keys.chunks(INPUT_BYTES_MAX) {
            let open = self.outbox.len() > usize::from(self.tried);
            match self.outbox.back_mut().filter(|last| open && last.len() + keys.len() <= INPUT_BYTES_MAX) {
                Some(last) => last.extend_from_slice(keys),
                None => self.outbox.push_back(keys.to_vec()),
            }
        }
    }

    fn done(&mut self) {
        self.seq += 1;
        self.outbox.pop_front();
        (self.in_flight, self.tried) = (None, false);
    }

    /// What becomes of the first message now. `host`: there is one that knows us.
    fn next(&mut self, now_ms: u64, host: bool) -> Next {
        if self.in_flight.is_some() || self.retry_at.is_some_and(|at| at > now_ms) {
            return Next::Wait;
        }
        self.retry_at = None;
        let Some(bytes) = self.outbox.front().cloned() else { return Next::Idle };
        let (stream, seq, fence) = (self.stream, self.seq + 1, self.fence);
        if self.writes {
            (self.in_flight, self.tried) = (Some(Way::Keeper { fence }), true);
            return Next::Keeper { fence, stream, seq, bytes };
        }
        if !host {
            return Next::Wait;
        }
        self.tried = true;
        Next::Host { stream, seq, bytes }
    }

    fn again(&mut self, now_ms: u64) {
        self.in_flight = None;
        self.retry_at = Some(now_ms + RETRY_MS);
    }

    /// Everything that waits is dropped. What is typed next begins anew: the number may be used up, or be waited for, and one
    /// that was ever sent must not stand for other bytes.
    pub fn drop_all(&mut self) {
        (self.stream, self.seq) = (following(self.stream), 0);
        self.outbox.clear();
        (self.in_flight, self.tried, self.retry_at) = (None, false, None);
    }

    /// The keeper has written it.
    pub fn written(&mut self, stream: u64, seq: u64) {
        if matches!(self.in_flight, Some(Way::Keeper { .. })) && (stream, seq) == (self.stream, self.seq + 1) {
            self.done();
        }
    }

    /// The keeper did not take it; true where that says that we are no longer the writer.
    fn refused(&mut self, code: u8, fence: u64, stream: u64, seq: u64, now_ms: u64) -> bool {
        let Some(Way::Keeper { fence: sent }) = self.in_flight else { return false };
        if (stream, seq) != (self.stream, self.seq + 1) {
            return false;
        }
        if code == refused::FULL {
            self.again(now_ms);
            return false;
        }
        // It was sent under an older fence than we know by now, or the keeper has not heard of ours yet.
        let outdated = self.writes && (sent < self.fence || fence < self.fence);
        self.again(now_ms);
        if !outdated {
            self.retry_at = None;
            self.fence = self.fence.max(fence);
        }
        !outdated
    }

    /// The keeper cannot open this terminal: keys stay with us.
    pub fn terminal_refused(&mut self) {
        self.refused = true;
        (self.with_keeper, self.keeper_paints) = (None, false);
    }

    /// The host went away, perhaps with a message; and with it the keeper, where the session is elsewhere.
    pub fn host_gone(&mut self, far: bool) {
        if far {
            // The next host gives another client number: it says anew whether that one writes.
            self.writes = false;
        }
        if far || matches!(self.in_flight, Some(Way::Host { .. })) {
            self.in_flight = None;
        }
    }

    /// Nobody else had the turn since we last heard of it: the fence is the same, or went up by the one that gave us, who had it,
    /// another client number.
    pub fn kept_the_turn(&self, writes: bool, fence: u64) -> bool {
        fence == self.fence || (writes && fence == self.fence + 1)
    }

    /// It is the answer to what we typed.
    pub fn was_sent_as(&self, tag: Tag) -> bool {
        self.in_flight == Some(Way::Host { tag })
    }

    fn may_go_to_keeper(&self) -> bool {
        let idle = self.outbox.is_empty() && self.in_flight.is_none() && !self.chord.is_open();
        self.writes && !self.refused && self.backs == 0 && idle
    }
}

/// The stream after this one, by SplitMix64: as random as the first one was, so nobody else's.
fn following(stream: u64) -> u64 {
    let mut next = stream.wrapping_add(0x9e37_79b9_7f4a_7c15);
    next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    next ^ (next >> 31)
}

impl Attached {
    /// Lets the keeper read the writer's keys, and paint small output where this terminal answers queries.
    pub(crate) fn hand_over_keys(&mut self) {
        let paints = self.answers && matches!(self.view, View::Raw(None));
        let flags = TTY_KEYS | if paints { TTY_PAINT } else { 0 };
        // A paint that is on its way decides what the keeper may do with the terminal.
        let busy = self.line.needs_terminal() || self.wanted.is_some() || self.duty.stop;
        if self.keys.with_keeper == Some(flags) || busy || !self.keys.may_go_to_keeper() {
            return;
        }
        // Never handed over twice: a hand-back that crosses the second would leave two readers of one terminal.
        if self.keys.with_keeper.is_some() {
            return self.ask_keys_back();
        }
        let Some(path) = self.options.path.clone() else { return };
        let forms = self.keys.chord.forms().to_vec();
        let mut patterns: [&[u8]; PATTERNS_MAX] = [&[]; PATTERNS_MAX];
        for (slot, form) in patterns.iter_mut().zip(&forms) {
            *slot = form;
        }
        self.tell_keeper(ToKeeper::Tty { flags, path: &path, patterns });
        (self.keys.with_keeper, self.keys.keeper_paints) = (Some(flags), paints);
    }

    /// Asks the keeper for the terminal; with the keys comes the baton, if it has that.
    pub(crate) fn ask_keys_back(&mut self) {
        if self.keys.backs > 0 {
            return;
        }
        self.baton_asked |= !self.baton;
        self.tty_back()
    }

    /// Every one of these is answered by a hand-back.
    pub(crate) fn tty_back(&mut self) {
        self.keys.backs += 1;
        self.tell_keeper(ToKeeper::TtyBack)
    }

    /// The keeper was asked, saw a chord, or may not write for us: the terminal's keys are ours again.
    pub(crate) fn keys_handed_back(&mut self, bytes: &[u8]) {
        self.keys.with_keeper = None;
        let chord = self.keys.chord.forms().iter().any(|form| bytes.starts_with(form));
        if !chord && self.keys.backs > 0 {
            self.keys.backs -= 1;
        } else if !chord {
            // Somebody else writes now. Until the host says otherwise the keeper would only hand them back again.
            self.lost_writing();
            // A hand-over of ours may be on its way to it still: its keys must be ours before the next one.
            self.ask_keys_back();
        }
        self.typed(bytes)
    }

    /// The keeper refused what we typed.
    pub(crate) fn input_refused(&mut self, code: u8, fence: u64, stream: u64, seq: u64) {
        if self.keys.refused(code, fence, stream, seq, self.now_ms) {
            self.lost_writing();
        }
    }

    /// Keys were read, by us or by the keeper.
    pub(crate) fn typed(&mut self, bytes: &[u8]) {
        // A client without the turn waits for the host to accept its keys first: the row does not flicker.
        if !bytes.is_empty() && self.keys.writes {
            self.hide_line();
        }
        for meaning in self.keys.chord.feed(bytes) {
            match meaning {
                Meaning::Detach => return self.end(AttachEnd::Detached),
                Meaning::Suspend => return self.end(AttachEnd::Suspended),
                Meaning::Switch => return self.end(AttachEnd::Switches),
                Meaning::Type(keys) if self.line.prompt.is_some() => self.prompt_typed(&keys),
                Meaning::Type(keys) if self.keys.read_only => self.watcher_typed(&keys),
                Meaning::Type(keys) if self.keys.writes => self.keys.push(&keys),
                Meaning::Type(keys) => self.keys.push(&without_reports(&keys, !self.answers)),
                act => self.chord_pressed(&act),
            }
        }
        self.retry_keys()
    }

    /// Somebody who only watches pressed a key: it is told why nothing happens. What the terminal says of itself is no key.
    fn watcher_typed(&mut self, keys: &[u8]) {
        let keys = without_reports(keys, true);
        let is_mouse = keys.starts_with(b"\x1b[<") || keys.starts_with(b"\x1b[M");
        if !keys.is_empty() && !is_mouse {
            let text = notice::read_only(self.chord_sign(), self.options.detach_key);
            self.say(text);
        }
    }

    /// Sends the next keys if it is their time, and gives the terminal back to the keeper when all are sent.
    pub(crate) fn retry_keys(&mut self) {
        // Without a host they wait, and until it has said as whom we go on.
        let host = self.host && self.resume_asked.is_none();
        match self.keys.next(self.now_ms, host) {
            Next::Idle => self.hand_over_keys(),
            Next::Wait => {}
            Next::Keeper { fence, stream, seq, bytes } => {
                self.tell_keeper(ToKeeper::Input { fence, stream, seq, bytes: &bytes });
            }
            Next::Host { stream, seq, bytes } => {
                let tag = self.ask_host(Request::Send { client: self.client, stream, seq, bytes });
                self.keys.in_flight = Some(Way::Host { tag });
            }
        }
    }

    /// What the host says to what we typed.
    pub(crate) fn sent(&mut self, answer: Result<Answer, Fault>) {
        match answer {
            Ok(answer) => {
                self.keys.done();
                self.hide_line();
                // Typed by this client, so it is the writer, unless something newer was heard.
                if let Answer::Sent(fence) = answer {
                    self.told_writes(true, fence);
                }
            }
            Err(fault) if fault.code == Code::Busy => self.keys.again(self.now_ms),
            Err(fault) => {
                self.keys.drop_all();
                self.keys_refused(&fault);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(writes: bool) -> Keys {
        Keys::new(Chord::new(Some(0x1c), b'd'), false, writes, 5, 1)
    }

    fn direct(keys: &mut Keys) -> u64 {
        (keys.in_flight, keys.tried) = (Some(Way::Keeper { fence: keys.fence }), true);
        keys.seq + 1
    }

    #[test]
    fn what_was_sent_keeps_its_bytes_and_what_waits_is_gathered() {
        let mut keys = keys(false);
        keys.push(b"a");
        keys.push(b"b");
        keys.tried = true;
        keys.push(b"c");
        keys.push(b"d");
        assert_eq!(keys.outbox, [b"ab".to_vec(), b"cd".to_vec()]);
        keys.push(&[b'x'; INPUT_BYTES_MAX]);
        assert_eq!(keys.outbox.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, INPUT_BYTES_MAX]);
        for _ in 0..2 * OUTBOX_MAX {
            keys.push(&[b'x'; INPUT_BYTES_MAX]);
        }
        assert!(!keys.are_ours(), "no more is read");
    }

    #[test]
    fn a_refusal_under_the_newest_fence_ends_our_writing_and_the_number_is_used_again() {
        let mut keys = keys(true);
        keys.push(b"a");
        let (stream, seq) = (keys.stream, direct(&mut keys));
        assert!(!keys.refused(refused::STALE, 6, stream, seq + 1, 0), "another message's");
        assert!(!keys.refused(refused::FULL, 5, stream, seq, 0));
        direct(&mut keys);
        assert!(keys.refused(refused::STALE, 6, stream, seq, 0));
        assert_eq!((keys.seq + 1, keys.outbox.len(), keys.in_flight), (seq, 1, None));
    }

    #[test]
    fn a_refusal_that_crossed_a_newer_word_of_the_host_is_only_tried_again() {
        let mut keys = keys(true);
        keys.push(b"a");
        let (stream, seq) = (keys.stream, direct(&mut keys));
        assert!(keys.adopt(true, 7));
        assert!(!keys.refused(refused::STALE, 7, stream, seq, 0), "sent under 5, 7 is ours");
        direct(&mut keys);
        assert!(!keys.refused(refused::STALE, 6, stream, seq, 0), "the keeper has not heard of 7");
        assert!(!keys.adopt(false, 6) && keys.writes, "an older word counts for nothing");
    }

    #[test]
    fn a_dropped_messages_number_never_stands_for_other_bytes() {
        let mut keys = keys(false);
        let stream = keys.stream;
        keys.push(b"a");
        keys.tried = true;
        keys.drop_all();
        assert_eq!((keys.seq, keys.outbox.len(), keys.tried), (0, 0, false));
        assert_ne!(keys.stream, stream);
    }

    #[test]
    fn who_only_watches_never_writes() {
        let mut keys = Keys::new(Chord::new(Some(0x1c), b'd'), true, true, 5, 1);
        assert!(!keys.writes);
        keys.adopt(true, 6);
        assert!(!keys.writes);
    }
}
