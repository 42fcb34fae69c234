//! What the core does for its keeper: frames in, deadlines, the screen kept ahead of the ring's overwriting.
//!
//! Awake or asleep: while no attached terminal answers queries, or somebody waits for output, the keeper wakes us at the
//! next byte; otherwise only when a quarter of the ring is unseen. After a large wake we look away for a few milliseconds,
//! so that a flood is taken in large bites.

use crate::clients::Client;
use crate::core::{Asker, Core, Now};
use crate::outside::{Event, Outside, Probed};
use crate::sends::Heard;
use holdfast_abi::protocol::{FromKeeper, INPUT_BYTES_MAX, RIGHT_WRITE, ToKeeper};
use holdfast_authority::{Input, OperatorId};
use holdfast_screen::Reply;
use holdfast_types::{Offset, Size};

/// After a large wake, this long until the next: a flood is taken in bites of half a ring.
const FLOOD_PAUSE_MS: u64 = 6;
/// What counts as a large wake.
const FLOOD_BYTES: u64 = 8 * 1024;
/// A screen nobody looked at and nothing changed for this long goes to disk.
const REST_AFTER_MS: u64 = 150;
/// The screen is at most this far behind, however large the ring: a look must not take long.
const BEHIND_BYTES_MAX: u64 = 1024 * 1024;
/// How long a terminal that lost the turn may take to say that it no longer answers queries: what programs ask meanwhile waits.
const ANSWERS_OFF_MS: u64 = 1000;
/// How long a client that outlived the last host may take to report back: as long as it may take to find the next one.
const REPORT_MS: u64 = 15_000;
/// Slices fed before other sessions get their turn.
const SLICES_AT_ONCE: u32 = 4;

impl Core {
    /// The keeper said something.
    pub fn frame(&mut self, out: &mut impl Outside, now: Now, frame: FromKeeper<'_>) {
        match frame {
            FromKeeper::Wake { .. } => self.timers.rearm = Some(now.clock_ms),
            FromKeeper::Written { stream, seq, head } => self.heard(out, now, stream, seq, Heard::Written(head)),
            FromKeeper::Refused { code, stream, seq, .. } => {
                if stream == self.reply_stream {
                    // A program that asks and does not read loses answers; the keeper lets none overtake a refused one,
                    // so later ones go another way.
                    self.reply_stream = crate::typing::own_stream(out.random());
                }
                if (stream, seq) == (0, 0) {
                    // A size, perhaps: it is asked for again when somebody writes.
                    self.asked_size = self.size;
                    self.clients.not_sized();
                }
                self.heard(out, now, stream, seq, Heard::Refused(code));
            }
            FromKeeper::Resized { cols, rows, .. } => {
                self.size = Size::clamped(cols, rows);
                // The log alone would remember it; the keyframe must too before the log is overwritten.
                self.timers.rest = Some(now.clock_ms + REST_AFTER_MS);
                self.timers.rearm = Some(now.clock_ms);
                self.appoint(out, now);
            }
            FromKeeper::Joined { connection, pid, token, rights } => {
                self.joined(out, now, connection, pid, token, rights);
            }
            FromKeeper::Left { connection, acked } => self.left(out, now, connection, acked),
            FromKeeper::Logged { .. } => self.logged_more(now),
            // The first one is for us, whoever asked: there are as many as were asked for.
            FromKeeper::Probed { .. } if self.clients.is_unsettled() => {
                let due = self.clients.settled();
                self.type_replies(out, due);
                self.timers.rearm = Some(now.clock_ms);
            }
            FromKeeper::Probed { foreground, iflag, oflag, lflag, unread } => {
                let probed = Probed { foreground, iflag, oflag, lflag, unread };
                match self.probes.pop_front() {
                    Some(Asker::Send(ticket)) => self.send_probed(out, now, ticket, probed),
                    Some(Asker::Lent) => self.lent_probed(out, now, probed.hides()),
                    Some(Asker::Outside) => out.probed(probed),
                    None => {}
                }
            }
            // The end follows an exit; the ring's header has it all.
            FromKeeper::Exited { .. } | FromKeeper::Welcome(_) | FromKeeper::Keys { .. } => {}
            // Its lease is the host's affair.
            FromKeeper::Fenced { .. } => {}
        }
    }

    /// Asks what the terminal says of itself; the answer comes by [`Outside::probed`], in order.
    pub fn probe(&mut self, out: &mut impl Outside) {
        self.probes.push_back(Asker::Outside);
        out.say(ToKeeper::Probe);
    }

    fn joined(&mut self, out: &mut impl Outside, now: Now, connection: u32, pid: u32, token: [u8; 16], rights: u8) {
        if let Some(client) = self.clients.by_token(&token) {
            client.connection = Some(connection);
            let id = client.id;
            self.record_joined(out, now, id);
            if self.writer(out) == Some(id) {
                self.say_writer(out);
            }
            return;
        }
        // It was there before this host: it will report back.
        let id = self.clients.nameless();
        self.clients.add(Client {
            id,
            actor: None,
            told_writes: None,
            late: false,
            pid,
            tty: String::new(),
            size: None,
            read_only: rights & RIGHT_WRITE == 0,
            remote: false,
            // One that does says so when it reports back.
            draws: false,
            sizes: rights & RIGHT_WRITE != 0,
            since_ms: now.time_ms,
            token,
            connection: Some(connection),
            peer: None,
        });
        self.timers.reports.get_or_insert(now.clock_ms + REPORT_MS);
    }

    /// By which connection a client types: recorded before it may.
    pub(crate) fn record_joined(&mut self, out: &mut impl Outside, now: Now, id: u32) {
        let client = self.clients.iter().find(|client| client.id == id && !client.read_only);
        if let Some(connection) = client.and_then(|client| client.connection) {
            let _ = self.handle(out, now, Input::Joined { operator: OperatorId(id), connection });
        }
    }

    fn left(&mut self, out: &mut impl Outside, now: Now, connection: u32, acked: Offset) {
        let known = self.clients.by_connection(connection).map(|c| (c.id, c.is_doubtful()));
        let Some((id, doubtful)) = known else { return };
        let answered = doubtful || self.clients.answers(id);
        // A client that typed at an offset has seen everything before it, acknowledged or not.
        self.drain_log(out, now, true);
        let typed_at = self.authority.state().wrote_at();
        let acked = if answered { acked.max(typed_at) } else { acked };
        if answered {
            // What it answered must be behind the screen before the host answers again.
            self.look(out, now);
        }
        let due = self.clients.remove(id, Some(acked));
        let mut operators = self.authority.state().operators();
        let here = operators.any(|(operator, o)| operator.0 == id && o.away_since.is_none());
        drop(operators);
        if answered {
            out.save_screen(false);
        }
        self.timers.rearm = Some(now.clock_ms);
        self.type_replies(out, due);
        if here {
            // It did not say that it leaves.
            let _ = self.decide(out, now, Input::CutOff { operator: OperatorId(id) });
        }
        self.appoint(out, now);
    }

    /// Asks the writer's terminal to answer queries where none does.
    pub fn appoint(&mut self, out: &mut impl Outside, now: Now) {
        let candidate =
            |core: &Core, out: &_| core.clients.candidate(core.size, core.writer(out)).map(|client| client.id);
        if candidate(self, out).is_none() {
            return;
        }
        // What was asked so far the host answers, and from there on the terminal does.
        self.look(out, now);
        let Some(id) = candidate(self, out) else { return };
        let from = out.seen();
        self.clients.start_answering(id, from);
        if let Some(peer) = self.clients.get(id).and_then(|client| client.peer) {
            out.tell(peer, id, Event::Answer { from });
        }
    }

    /// Looks whether the terminal that answers still has the turn. One that does not says so, or is relieved in a moment.
    pub(crate) fn watch_answerer(&mut self, out: &impl Outside, now: Now) {
        let hold = self.authority.state().turn().hold();
        let holder = hold.and_then(|hold| hold.operator).map(|operator| operator.0);
        let since = self.timers.answers.unwrap_or(now.clock_ms + ANSWERS_OFF_MS);
        self.timers.answers = self.clients.turn_is(holder, out.head()).then_some(since);
    }

    /// A terminal that lost the turn has not said that it no longer answers: the host does, or the next writer's terminal.
    fn relieve_answerer(&mut self, out: &mut impl Outside, now: Now) {
        self.timers.answers = None;
        let Some(lost) = self.clients.lost_turn() else { return };
        // Whoever typed at an offset has seen, and answered, what was before it.
        self.drain_log(out, now, true);
        self.look(out, now);
        let due = self.clients.stop_answering(lost.max(self.authority.state().wrote_at()));
        self.answer_instead(out, now, due);
    }

    fn answer_instead(&mut self, out: &mut impl Outside, now: Now, due: Vec<Reply>) {
        self.timers.rearm = Some(now.clock_ms);
        self.type_replies(out, due);
        self.appoint(out, now);
    }

    /// Brings the screen up to the head.
    pub fn look(&mut self, out: &mut impl Outside, now: Now) {
        let mut replies = Vec::new();
        // Up to where the head is now: a program that writes faster than we draw must not keep everybody waiting.
        let head = out.head();
        let mut more = true;
        // One step where everything is seen: a size may have come at the head.
        while more && out.seen() <= head {
            let fed = out.feed(1);
            self.runs.told_all(&fed.marks, now.time_ms);
            replies.extend(fed.replies);
            more = fed.more;
        }
        let due = self.clients.sort(replies);
        self.timers.rest = Some(now.clock_ms + REST_AFTER_MS);
        self.type_replies(out, due);
    }

    /// Does what is due, and sets when to be back.
    pub fn tick(&mut self, out: &mut impl Outside, now: Now) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now.clock_ms);
        let timers = self.timers;
        if due(timers.drain) {
            self.drain_log(out, now, false);
        }
        if due(timers.rule) {
            let _ = self.decide(out, now, Input::Tick);
        }
        if due(timers.sends) {
            self.go_on_sending(out, now);
        }
        if due(timers.lent) {
            self.look_at_lent(out, now);
        }
        if due(timers.answers) {
            self.relieve_answerer(out, now);
        }
        if due(timers.reports) {
            self.timers.reports = None;
            // What they answered, if anything, must be behind the screen before the host answers.
            self.look(out, now);
            let due = self.clients.give_up_waiting();
            self.answer_instead(out, now, due);
        }
        if due(timers.rearm) {
            self.advance(out, now);
        } else if due(timers.rest) {
            self.timers.rest = None;
            out.save_screen(true);
            out.say(ToKeeper::Ack { position: out.saved() });
        }
    }

    /// Feeds the screen where that is due, and arranges for the next wake.
    fn advance(&mut self, out: &mut impl Outside, now: Now) {
        if out.log_head().is_none() {
            return;
        }
        let (head, before) = (out.head(), out.seen());
        let quarter = (out.ring_bytes() / 4).min(BEHIND_BYTES_MAX);
        // A run's end is in the output.
        let answering = !self.clients.someone_answers() || self.runs.is_followed();
        let unseen = head.saturating_sub(before);
        let mut more = false;
        if (answering && unseen > 0) || unseen >= quarter {
            let fed = out.feed(SLICES_AT_ONCE);
            self.runs.told_all(&fed.marks, now.time_ms);
            more = fed.more;
            let due = self.clients.sort(fed.replies);
            self.type_replies(out, due);
        }
        if out.seen().saturating_sub(out.saved()) >= quarter {
            out.save_screen(false);
            out.say(ToKeeper::Ack { position: out.saved() });
        }
        let seen = out.seen();
        if out.is_screen_live() {
            self.timers.rest = Some(now.clock_ms + REST_AFTER_MS);
        }
        if more {
            self.timers.rearm = Some(now.clock_ms);
            return;
        }
        // Right after a large bite nobody needs the next byte at once: queries come in small output.
        if seen.saturating_sub(before) >= FLOOD_BYTES
            && self.timers.rearm.is_some_and(|at| now.clock_ms < at + FLOOD_PAUSE_MS)
            && answering
        {
            self.timers.rearm = Some(now.clock_ms + FLOOD_PAUSE_MS);
            return;
        }
        self.timers.rearm = None;
        let eager = answering || out.waits_for_output();
        let wake_at = if eager { head.max(seen) + 1 } else { seen.max(out.saved()) + quarter };
        out.say(ToKeeper::Sleep { position: out.saved(), wake_at });
    }

    /// Types the answers to the session's queries on behalf of an absent terminal.
    pub fn type_replies(&mut self, out: &mut impl Outside, replies: Vec<Reply>) {
        if !self.is_running {
            return;
        }
        if self.is_frozen() {
            // The terminal of a frozen session is left alone: it would echo, and queue.
            self.late_replies.extend(replies);
            return;
        }
        let fence = self.fence().0;
        for reply in replies {
            for bytes in reply.bytes.chunks(INPUT_BYTES_MAX) {
                // Numbered by its place in the output: after a crash the next host meets the same queries, and the keeper
                // knows which ones were answered.
                self.reply_seq = (self.reply_seq + 1).max(reply.at << 8);
                let (stream, seq) = (self.reply_stream, self.reply_seq);
                out.say(ToKeeper::Input { fence, stream, seq, bytes });
            }
        }
    }

    /// The tree goes on: answers that waited for that are typed.
    pub fn thawed(&mut self, out: &mut impl Outside) {
        let late = std::mem::take(&mut self.late_replies);
        self.type_replies(out, late);
    }
}
