//! The core's state, and how it begins with a keeper.

use crate::clients::Clients;
use crate::outside::{Outside, Placing};
use crate::runs::Tracker;
use crate::sends::Sends;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FOLLOW_SCREEN, ToKeeper, Welcome};
use holdfast_authority::{Authority, Caller, How, Input};
use holdfast_screen::Reply;
use holdfast_types::{Actor, Fence, SessionId, Size, TimeMs};
use holdfast_wire::runs::RunId;
use std::collections::VecDeque;

/// How often it is looked whether a lent turn is still needed: a program that waits for it does not notice.
const LENT_LOOK_MS: u64 = 250;

/// When something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the wall clock: what records say.
    pub time_ms: TimeMs,
    /// By a clock that never jumps: what deadlines follow.
    pub clock_ms: u64,
}

/// Whether a session is new or was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Started by this host.
    New,
    /// Of an earlier host.
    Found,
}

/// When the core has to do something by itself, by the clock that never jumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timers {
    /// Feed the screen where that is due, and tell the keeper to wake us again.
    pub rearm: Option<u64>,
    /// Look at the log.
    pub drain: Option<u64>,
    /// Save the screen and let it go.
    pub rest: Option<u64>,
    /// Something passes by itself: a grace, a grant.
    pub rule: Option<u64>,
    /// Bytes on their way have waited long enough for something.
    pub sends: Option<u64>,
    /// A terminal that lost the turn has had the time to say that it answers no longer.
    pub answers: Option<u64>,
    /// Clients that outlived the last host have had the time to report back.
    pub reports: Option<u64>,
    /// Look whether the human to whom a program's turn was lent is still waited for.
    pub lent: Option<u64>,
}

impl Timers {
    /// The first of them.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let all = [self.rearm, self.drain, self.rest, self.rule, self.sends, self.answers, self.reports, self.lent];
        all.into_iter().flatten().min()
    }
}

/// Who asked for a probe of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Bytes on their way.
    Send(crate::sends::Ticket),
    /// A lent turn, whether it is still needed.
    Lent,
    /// Somebody outside.
    Outside,
}

/// One session's core.
#[derive(Debug)]
pub struct Core {
    pub(crate) session: SessionId,
    pub(crate) authority: Authority,
    /// Who is attached.
    pub clients: Clients,
    /// The terminal's size.
    pub size: Size,
    /// The size the keeper was asked for last: what it will have.
    pub asked_size: Size,
    /// Its runs, and what its shell says of itself.
    pub runs: Tracker,
    /// When to be back.
    pub timers: Timers,
    /// It runs: its terminal takes input.
    pub is_running: bool,
    /// It stands still to be moved: nobody writes meanwhile, and what is sent is refused.
    pub is_moving: bool,
    /// A run that was starting when what was typed was thrown away, and is to be looked after.
    pub(crate) flushed_run: Option<RunId>,
    /// The process at the terminal.
    pub(crate) child: u32,
    /// A question to its humans is open.
    pub asks_humans: bool,
    pub(crate) first_link: Option<Origin>,
    /// This host started this life: it knows everything that was typed in it.
    pub(crate) knows_all_typing: bool,
    pub(crate) connection: u32,
    pub(crate) sends: Sends,
    pub(crate) probes: VecDeque<Asker>,
    /// Answers to queries that came while the session was frozen.
    pub(crate) late_replies: Vec<Reply>,
    /// Log position up to which everything was looked at.
    pub(crate) log_seen: u64,
    /// The stream of answers to queries, the same for every host.
    pub(crate) reply_stream: u64,
    pub(crate) reply_seq: u64,
}

impl Core {
    /// A session that has no connection to its keeper yet, with the runs that an earlier host left. `reply_stream` is the same
    /// for every host of the session.
    #[must_use]
    pub fn new(
        session: SessionId,
        authority: Authority,
        size: Size,
        origin: Origin,
        reply_stream: u64,
        runs: Tracker,
    ) -> Core {
        Core {
            session,
            authority,
            clients: Clients::default(),
            size,
            asked_size: size,
            runs,
            timers: Timers::default(),
            is_running: true,
            is_moving: false,
            flushed_run: None,
            child: 0,
            asks_humans: false,
            first_link: Some(origin),
            knows_all_typing: origin == Origin::New,
            connection: 0,
            sends: Sends::default(),
            probes: VecDeque::new(),
            late_replies: Vec::new(),
            log_seen: 0,
            reply_stream: crate::typing::own_stream(reply_stream),
            reply_seq: 0,
        }
    }

    /// Who may do what.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Who may do what, to change the host's policy. Follow it with [`Input::Tick`].
    pub fn authority_mut(&mut self) -> &mut Authority {
        &mut self.authority
    }

    /// The newest fence.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.authority.state().fence()
    }

    /// How far the keeper's log is in the journal.
    pub(crate) fn logged(&self) -> u64 {
        self.authority.state().logged()
    }

    /// Up to where the keeper's log was read.
    pub(crate) fn log_read(&self) -> u64 {
        self.logged().max(self.log_seen)
    }

    /// Whether the session is frozen.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.authority.state().frozen().is_some()
    }

    /// The client that writes now, if it is one: nobody writes into what is frozen, or before the shell is in its place.
    pub fn writer(&self, out: &impl Outside) -> Option<u32> {
        self.writes_next().filter(|_| !out.is_writer_awaited())
    }

    /// The client that writes now, or once the shell was moved.
    #[must_use]
    pub fn writes_next(&self) -> Option<u32> {
        let state = self.authority.state();
        let operator = state.turn().hold().and_then(|hold| hold.operator);
        operator.filter(|_| state.frozen().is_none() && !self.is_moving).map(|operator| operator.0)
    }

    /// Whether it may wait for this human while a program has the turn: where it does, the turn is lent.
    #[must_use]
    pub fn may_lend_to(&self, by: &Actor, now: Now) -> bool {
        self.authority.lends_to(by, now.time_ms)
    }

    /// Lends a program's turn to a human, if the session waits for one.
    pub fn lend(&mut self, out: &mut impl Outside, now: Now, by: Caller, hides: bool) {
        if hides || self.asks_humans {
            // Where it cannot be recorded, it is not lent, and the human is refused as before.
            let _ = self.decide(out, now, Input::Awaited { by });
        }
    }

    /// A turn that is lent is looked after until it goes back.
    pub(crate) fn watch_lent(&mut self, now: Now) {
        let hold = self.authority.state().turn().hold().filter(|hold| hold.how == How::Lent);
        let rests = hold.map(|hold| now.clock_ms + hold.lent_rests_at().saturating_sub(now.time_ms));
        self.timers.lent = rests.map(|at| self.timers.lent.unwrap_or(at));
    }

    /// Looks whether the terminal still hides what is typed.
    pub(crate) fn look_at_lent(&mut self, out: &mut impl Outside, now: Now) {
        self.timers.lent = Some(now.clock_ms + LENT_LOOK_MS);
        // One at a time: a keeper that does not answer costs nothing.
        if !self.probes.contains(&Asker::Lent) {
            self.probes.push_back(Asker::Lent);
            out.say(ToKeeper::Probe);
        }
    }

    /// What the terminal says of itself while a turn is lent.
    pub(crate) fn lent_probed(&mut self, out: &mut impl Outside, now: Now, hides: bool) {
        if !hides {
            let _ = self.decide(out, now, Input::Unawaited);
        }
    }

    /// What the outside may know while it looks where the shell belongs.
    #[must_use]
    pub fn placing(&self) -> Placing<'_> {
        Placing { authority: &self.authority, writes_next: self.writes_next(), run: self.runs.current() }
    }

    /// Takes over a keeper's connection, once its ring can be read: what either of the two does not know of the other is
    /// settled. Gives whether the tree is to stand still, where that has to be said again, and whether typing was lost.
    pub fn connected(&mut self, out: &mut impl Outside, now: Now, welcome: &Welcome) -> Connected {
        self.size = Size::clamped(welcome.cols, welcome.rows);
        self.asked_size = self.size;
        self.child = welcome.child_pid;
        self.log_seen = 0;
        let logged = self.logged().max(out.log_base());
        let lost_typing = welcome.log_head.saturating_sub(logged) > out.log_bytes();
        if lost_typing {
            // Only without its journal: what was typed and drained is known no more.
            self.log_seen = welcome.log_head;
            self.knows_all_typing = false;
        }
        self.connection = welcome.connection;
        self.clients.unsettle();
        let first = self.first_link.take();
        let still = self.take_up_turn(out, now, Fence(welcome.fence), first);
        Connected { still, lost_typing, is_found: first == Some(Origin::Found) }
    }

    fn take_up_turn(
        &mut self,
        out: &mut impl Outside,
        now: Now,
        keeper_fence: Fence,
        first: Option<Origin>,
    ) -> Option<bool> {
        let (connection, logged) = (self.connection, self.logged());
        // Not by `decide`: what was typed meanwhile counts after the news that there is a host again.
        let decided = if first == Some(Origin::Found) || keeper_fence > self.fence() {
            self.handle(out, now, Input::Restarted { keeper_fence, connection })
        } else {
            let linked = self.handle(out, now, Input::Linked { connection, log: logged });
            self.say_writer(out);
            // What lies in the terminal of a keeper that was just started is what a checkpoint had there: nobody else could write yet.
            if self.authority.state().owes_flush(keeper_fence) && first != Some(Origin::New) {
                self.flush(out, self.fence());
            }
            linked
        };
        self.drain_log(out, now, true);
        if first == Some(Origin::Found) {
            // Queries before that were answered by the terminal that typed there, or by the last host.
            self.clients.answered_until(self.authority.state().wrote_at());
            self.take_up_deeds(out, now);
        }
        self.after_decision(out, now);
        decided.ok().and_then(|decided| decided.still)
    }

    /// Says the first words to a keeper that was taken over.
    pub fn begin(&mut self, out: &mut impl Outside, now: Now) {
        out.say(ToKeeper::Drained { position: self.logged() });
        // Its answer comes behind the names of all who are there.
        out.say(ToKeeper::Probe);
        out.say(ToKeeper::Follow { position: out.saved(), flags: FOLLOW_HOLDS | FOLLOW_SCREEN });
        self.timers.rearm = Some(now.clock_ms);
    }

    /// The keeper's connection is gone: what waits for its answer waits in vain.
    pub fn unlinked(&mut self, out: &mut impl Outside) {
        self.probes.clear();
        self.timers = Timers::default();
        self.clients.unlinked();
        self.drop_sends(out);
    }
}

/// What came of taking over a keeper's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// The tree is to stand still (true) or to go on: said again, in case the last host did not come to it.
    pub still: Option<bool>,
    /// What was typed before is neither in the log nor in the journal.
    pub lost_typing: bool,
    /// The session was started by an earlier host.
    pub is_found: bool,
}
