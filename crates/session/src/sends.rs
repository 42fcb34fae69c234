//! Bytes on their way to the terminal, on behalf of somebody: exactly once per stream and seq, and never in another's turn.
//!
//! Each goes through stages: an earlier host may have typed it (the keeper knows); a secret waits for the terminal's word that
//! it will not be shown; the shell is moved to where its processes are known by the writer; the authority decides; the keeper
//! writes. Those of one stream are handed to the keeper in the order of their numbers.

use crate::core::{Asker, Core, Now};
use crate::decide::Undecided;
use crate::outside::{Outside, Probed};
use crate::typing::{is_reserved_stream, own_stream, secret_stream};
use holdfast_abi::protocol::{ToKeeper, refused};
use holdfast_authority::{Caller, Input, Refusal, Reply};
use holdfast_types::{Actor, Fence, Offset, Right};
use std::collections::BTreeMap;

/// How long typed bytes may wait for a program that does not read before we say so.
const WRITTEN_WAIT_MS: u64 = 5_000;
/// How long a full queue is waited for.
const ROOM_WAIT_MS: u64 = 5_000;
/// And how often it is tried.
const FULL_PAUSE_MS: u64 = 5;
/// A keeper answers at once; one that is stopped is not waited for longer than this.
const PROBE_WAIT_MS: u64 = 2_000;
/// How long a move of the shell is waited for: nobody's keys wait for a kernel that is stuck.
const MOVE_WAIT_MS: u64 = 1_000;
/// Streams remembered as typing through this host; beyond it, one more question to the keeper is the price.
const STREAMS_MAX: usize = 1024;

/// The caller's number for bytes it wants typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Bytes to type.
#[derive(Debug, Clone)]
pub struct Send {
    /// For whom.
    pub by: Caller,
    /// The fence the sender believes to be the newest; none: it follows no fences.
    pub fence: Option<Fence>,
    /// The sender's stream.
    pub stream: u64,
    /// Its number there, which grows.
    pub seq: u64,
    /// The bytes, at most what one frame takes.
    pub bytes: Vec<u8>,
    /// Recorded as a length, and typed only where the terminal does not show it.
    pub secret: bool,
    /// Typed also where it will be shown.
    pub force: bool,
}

impl Send {
    /// Typed only where the terminal does not show it.
    fn is_guarded(&self) -> bool {
        self.secret && !self.force
    }
}

/// What became of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// They are in the terminal, at this output offset.
    Written {
        /// The offset.
        at: Offset,
        /// The fence they were written under.
        fence: Fence,
    },
    /// The keeper has them; the program does not read yet.
    Queued {
        /// The fence they were accepted under.
        fence: Fence,
    },
    /// The authority refused them, or they cannot be recorded.
    Refused(Undecided),
    /// A secret would be shown: the terminal's echo is on.
    EchoOn,
    /// The keeper does not say whether the terminal's echo is off.
    EchoUnknown,
    /// The keeper has no room: the program does not read. The keeper's code.
    Full(u8),
    /// The stream is one of the host's own: another must be chosen.
    ReservedStream,
    /// Whether they were typed before is not known: the program does not read what came before.
    Unknown,
    /// The keeper's connection broke. Sent again with the same number they are written once.
    Lost,
}

/// What the keeper says of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Written(Offset),
    Refused(u8),
}

/// What bytes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Those of the same stream before it.
    InLine,
    /// Whether an earlier host typed them.
    Before { until: u64 },
    /// The terminal's word: whether it would show them, and whether it waits for a person.
    Probing { until: u64 },
    /// The shell's move.
    Placing { until: u64 },
    /// The keeper's word.
    Typing { fence: Fence, until: u64 },
    /// A little, until there may be room.
    Pausing { fence: Fence, until: u64 },
}

#[derive(Debug)]
struct Sending {
    ticket: Ticket,
    send: Send,
    /// Already decided, under this fence: the keys of a run.
    decided: Option<Fence>,
    room_until: u64,
    stage: Stage,
}

impl Sending {
    /// The stream as the keeper knows it. A client's is its own there too: it may send the same number to the keeper directly.
    fn stream(&self) -> u64 {
        match self.decided {
            Some(_) => own_stream(self.send.stream),
            None if self.send.secret => secret_stream(self.send.stream),
            None => self.send.stream,
        }
    }

    /// The keeper has it, or had it.
    fn is_handed_over(&self) -> bool {
        matches!(self.stage, Stage::Typing { .. } | Stage::Pausing { .. })
    }

    fn until(&self) -> Option<u64> {
        match self.stage {
            Stage::InLine => None,
            Stage::Before { until }
            | Stage::Probing { until }
            | Stage::Placing { until }
            | Stage::Typing { until, .. }
            | Stage::Pausing { until, .. } => Some(until),
        }
    }
}

/// All bytes on their way.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    all: Vec<Sending>,
    /// Streams that typed through this host, with the last number each.
    streams: BTreeMap<u64, u64>,
}

impl Core {
    /// Bytes are on their way.
    #[must_use]
    pub fn has_sends(&self) -> bool {
        !self.sends.all.is_empty()
    }

    /// Types bytes on behalf of somebody; what became of them comes by [`Outside::sent`].
    pub fn send(&mut self, out: &mut impl Outside, now: Now, ticket: Ticket, send: Send) {
        if is_reserved_stream(send.stream) {
            return out.sent(ticket, Sent::ReservedStream);
        }
        self.queue(
            out,
            now,
            Sending { ticket, send, decided: None, room_until: now.clock_ms + ROOM_WAIT_MS, stage: Stage::InLine },
        );
    }

    /// Types what was decided about already, under that decision's fence and in one piece.
    pub fn type_decided(
        &mut self,
        out: &mut impl Outside,
        now: Now,
        ticket: Ticket,
        by: Caller,
        fence: Fence,
        bytes: Vec<u8>,
    ) {
        let send = Send { by, fence: Some(fence), stream: out.random(), seq: 1, bytes, secret: false, force: false };
        self.queue(
            out,
            now,
            Sending {
                ticket,
                send,
                decided: Some(fence),
                room_until: now.clock_ms + ROOM_WAIT_MS,
                stage: Stage::InLine,
            },
        );
    }

    fn queue(&mut self, out: &mut impl Outside, now: Now, sending: Sending) {
        self.sends.all.push(sending);
        self.go_on_sending(out, now);
    }

    /// The shell was moved, or somebody else has the turn: whatever waited for that goes on.
    pub fn go_on_sending(&mut self, out: &mut impl Outside, now: Now) {
        let mut at = 0;
        while at < self.sends.all.len() {
            // Deciding about one may drop others: each is found again by its ticket.
            let ticket = self.sends.all[at].ticket;
            self.step(out, now, at);
            if self.sends.all.get(at).is_some_and(|sending| sending.ticket == ticket) {
                at += 1;
            }
        }
        self.timers.sends = self.sends.all.iter().filter_map(Sending::until).min();
    }

    /// Whether one of the same stream with a smaller number has not been handed to the keeper yet.
    fn is_behind(&self, at: usize) -> bool {
        let me = &self.sends.all[at];
        let (stream, seq) = (me.send.stream, me.send.seq);
        let mut others = self.sends.all.iter().enumerate();
        others.any(|(n, other)| {
            n != at
                && other.decided.is_none()
                && other.send.stream == stream
                && other.send.seq < seq
                && !other.is_handed_over()
        })
    }

    /// One goes as far as it can now.
    fn step(&mut self, out: &mut impl Outside, now: Now, at: usize) {
        let over = |until: u64| until <= now.clock_ms;
        match self.sends.all[at].stage {
            Stage::InLine if self.is_behind(at) => {}
            Stage::InLine if self.sends.all[at].decided.is_some() => self.place(out, now, at),
            Stage::InLine => self.begin_send(out, now, at),
            Stage::Before { until } if over(until) => {
                let stream = self.sends.all[at].send.stream;
                self.sends.streams.remove(&stream);
                self.finish(out, at, Sent::Unknown);
            }
            Stage::Probing { until } if over(until) && self.sends.all[at].send.is_guarded() => {
                self.finish(out, at, Sent::EchoUnknown);
            }
            Stage::Probing { until } if over(until) => self.place(out, now, at),
            Stage::Placing { until } => {
                if over(until) || !out.is_moving() || !self.is_placing_sensible(at) {
                    out.nobody_expected();
                    self.allow(out, now, at);
                }
            }
            Stage::Typing { fence, until } if over(until) => self.finish(out, at, Sent::Queued { fence }),
            Stage::Pausing { fence, until } if over(until) => self.hand_over(out, now, at, fence),
            Stage::Before { .. } | Stage::Probing { .. } | Stage::Typing { .. } | Stage::Pausing { .. } => {}
        }
    }

    fn begin_send(&mut self, out: &mut impl Outside, now: Now, at: usize) {
        if self.is_new(at) {
            return self.ask_terminal(out, now, at);
        }
        // Under a fence that never was nothing is written; what was written is told whatever the fence.
        self.say_input(out, at, Fence(u64::MAX), false);
        self.sends.all[at].stage = Stage::Before { until: now.clock_ms + WRITTEN_WAIT_MS };
    }

    /// Whether this can never have been typed: by its number, and by who was host before.
    fn is_new(&mut self, at: usize) -> bool {
        let (stream, seq) = (self.sends.all[at].send.stream, self.sends.all[at].send.seq);
        let streams = &mut self.sends.streams;
        if streams.len() >= STREAMS_MAX {
            streams.clear();
        }
        let last = streams.get(&stream).copied();
        streams.insert(stream, seq.max(last.unwrap_or(0)));
        // A number that is new here may have been typed through the last host, if there was one.
        last.is_none_or(|last| seq > last) && (last.is_some() || self.authority.state().restarts() == 0)
    }

    /// A secret goes to a program that reads a line without showing it, and nowhere else unless that was asked for. A program's turn
    /// is lent to a human for whom such a program waits.
    fn ask_terminal(&mut self, out: &mut impl Outside, now: Now, at: usize) {
        let send = &self.sends.all[at].send;
        // An actor that may not type is refused by the authority, and learns nothing of the terminal.
        let guards = send.is_guarded() && self.authority.rights(&send.by.actor, now.time_ms).has(Right::Type);
        if guards || self.may_lend_to(&send.by.actor, now) {
            self.probes.push_back(Asker::Send(self.sends.all[at].ticket));
            out.say(ToKeeper::Probe);
            self.sends.all[at].stage = Stage::Probing { until: now.clock_ms + PROBE_WAIT_MS };
        } else {
            self.place(out, now, at);
        }
    }

    pub(crate) fn send_probed(&mut self, out: &mut impl Outside, now: Now, ticket: Ticket, probed: Probed) {
        let waits = |s: &Sending| s.ticket == ticket && matches!(s.stage, Stage::Probing { .. });
        let Some(at) = self.sends.all.iter().position(waits) else { return };
        if self.sends.all[at].send.is_guarded() && !probed.hides() {
            self.finish(out, at, Sent::EchoOn);
        } else {
            let by = self.sends.all[at].send.by.clone();
            self.lend(out, now, by, probed.hides());
            // The decision may have let others go on.
            if let Some(at) = self.sends.all.iter().position(waits) {
                self.place(out, now, at);
            }
        }
        self.go_on_sending(out, now);
    }

    /// Before it is decided about bytes of an actor that has the turn or will take it, the shell is where it belongs then. An
    /// actor that will be refused waits for nothing.
    fn place(&mut self, out: &mut impl Outside, now: Now, at: usize) {
        let actor = self.sends.all[at].send.by.actor.id;
        if self.is_placing_sensible(at) && out.place_for(actor, self.placing()) {
            self.sends.all[at].stage = Stage::Placing { until: now.clock_ms + MOVE_WAIT_MS };
        } else {
            out.nobody_expected();
            self.allow(out, now, at);
        }
    }

    /// Whether the bytes have a chance to be written.
    fn is_placing_sensible(&self, at: usize) -> bool {
        let sending = &self.sends.all[at];
        let state = self.authority.state();
        match sending.decided {
            Some(fence) => fence == state.fence(),
            None => {
                let actor = &sending.send.by.actor;
                state.frozen().is_none() && state.turn().hold().is_none_or(|hold| hold.by.id == actor.id)
            }
        }
    }

    /// Asks the authority, and hands the bytes to the keeper. Nothing comes between the two.
    fn allow(&mut self, out: &mut impl Outside, now: Now, at: usize) {
        if let Some(fence) = self.sends.all[at].decided {
            return self.hand_over(out, now, at, fence);
        }
        let (ticket, by, fence) = {
            let sending = &self.sends.all[at];
            (sending.ticket, sending.send.by.clone(), sending.send.fence)
        };
        let decided = self.decide(out, now, Input::Types { by, fence });
        // The decision may have let others go on.
        let Some(at) = self.sends.all.iter().position(|sending| sending.ticket == ticket) else { return };
        match decided {
            Ok(decided) => {
                let fence = match decided.reply {
                    Reply::Turn { fence } => fence,
                    Reply::Done | Reply::Waiting { .. } | Reply::Granted(_) | Reply::Revoked(_) => self.fence(),
                };
                self.hand_over(out, now, at, fence);
            }
            Err(undecided) => self.finish(out, at, Sent::Refused(undecided)),
        }
    }

    fn hand_over(&mut self, out: &mut impl Outside, now: Now, at: usize, fence: Fence) {
        self.say_input(out, at, fence, true);
        self.sends.all[at].stage = Stage::Typing { fence, until: now.clock_ms + WRITTEN_WAIT_MS };
    }

    fn say_input(&self, out: &mut impl Outside, at: usize, fence: Fence, with_bytes: bool) {
        let sending = &self.sends.all[at];
        let bytes = if with_bytes { sending.send.bytes.as_slice() } else { b"" };
        out.say(ToKeeper::Input { fence: fence.0, stream: sending.stream(), seq: sending.send.seq, bytes });
    }

    /// The keeper answered.
    pub(crate) fn heard(&mut self, out: &mut impl Outside, now: Now, stream: u64, seq: u64, heard: Heard) {
        let asked = |s: &Sending| {
            matches!(s.stage, Stage::Before { .. } | Stage::Typing { .. }) && (s.stream(), s.send.seq) == (stream, seq)
        };
        let Some(at) = self.sends.all.iter().position(asked) else { return };
        let sending = &self.sends.all[at];
        let has_time = now.clock_ms < sending.room_until;
        match (sending.stage, heard) {
            (stage, Heard::Written(offset)) => {
                let fence = if let Stage::Typing { fence, .. } = stage { fence } else { self.fence() };
                self.finish(out, at, Sent::Written { at: offset, fence });
                // Sent again while it waited: the keeper answers both at once.
                while let Some(again) = self.sends.all.iter().position(asked) {
                    self.finish(out, again, Sent::Written { at: offset, fence });
                }
            }
            (Stage::Typing { fence, .. }, Heard::Refused(refused::FULL)) if has_time => {
                // The log or the queue has no room: make some, then try the same seq again.
                self.drain_log(out, now, true);
                self.sends.all[at].stage = Stage::Pausing { fence, until: now.clock_ms + FULL_PAUSE_MS };
            }
            // The turn changed on the way. It ran out, or is still this actor's at another terminal, or the bytes die here: they must
            // not stand behind what somebody else wrote meanwhile.
            (Stage::Typing { fence, .. }, Heard::Refused(refused::STALE))
                if has_time && sending.decided.is_none() && self.had_nobody_else(&sending.send.by.actor, fence) =>
            {
                self.place(out, now, at);
            }
            (Stage::Typing { .. }, Heard::Refused(refused::STALE)) => {
                let refusal = self.why_stale(&self.sends.all[at].send.by.actor);
                self.finish(out, at, Sent::Refused(Undecided::Refused(refusal)));
            }
            (Stage::Typing { .. }, Heard::Refused(code)) => self.finish(out, at, Sent::Full(code)),
            (_, Heard::Refused(_)) => self.ask_terminal(out, now, at),
        }
        self.go_on_sending(out, now);
    }

    /// Why bytes under an old fence were not written: what the authority would say of the next ones, if it has something to say.
    pub(crate) fn why_stale(&self, actor: &Actor) -> Refusal {
        let state = self.authority.state();
        let holder = state.turn().hold().map(|hold| &hold.by).filter(|by| by.id != actor.id);
        match (state.frozen(), holder) {
            (Some(frozen), _) => Refusal::Frozen { by: frozen.by.clone() },
            (None, Some(by)) => Refusal::TurnHeld { by: by.clone() },
            (None, None) => Refusal::FenceStale { newest: self.fence() },
        }
    }

    /// Whether the turn is this actor's or free, and was nobody else's since that fence.
    pub(crate) fn had_nobody_else(&self, actor: &Actor, since: Fence) -> bool {
        let state = self.authority.state();
        state.turn().hold().is_none_or(|hold| hold.by.id == actor.id) && !state.was_anothers(actor.id, since)
    }

    fn finish(&mut self, out: &mut impl Outside, at: usize, sent: Sent) {
        let sending = self.sends.all.remove(at);
        out.sent(sending.ticket, sent);
    }

    /// The keeper's connection broke: what it has of them is not known.
    pub(crate) fn drop_sends(&mut self, out: &mut impl Outside) {
        for sending in std::mem::take(&mut self.sends.all) {
            out.sent(sending.ticket, Sent::Lost);
        }
    }
}
