//! The terms of every operation: who may ask for it, with which right, what it needs of the turn, what bounds its cost, on
//! which thread it is answered, and whether a journal has it.
//!
//! This is the one place that says so. The rows of `wire`, what `authority` asks of an actor, what a token must carry, the
//! host's dispatch and the written protocol all take it from here. An operation that is not in the table does not compile.

use crate::rights::Right::*;
use crate::rights::{Right, Rights, WRITING};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an operation asks of whoever wants it, and what it costs the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Its name on the wire.
    pub name: &'static str,
    /// Who may ask.
    pub who: Who,
    /// One of these is needed in the session that is named, and a token must carry one of them; empty: none. What names no
    /// session needs them of the token alone, but for [`Right::Start`], which its actor's class holds.
    pub rights: Rights,
    /// What it needs of the turn.
    pub turn: TurnNeed,
    /// What bounds its cost.
    pub cost: Cost,
    /// Where it is answered.
    pub thread: Thread,
    /// What is left of it.
    pub trace: Trace,
}

/// Who may ask for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Anybody, without saying who it is.
    Anybody,
    /// An actor that has proven its key.
    Proven,
    /// An actor the host knows.
    Known,
    /// An actor that holds one of the rights in the session.
    Holder,
    /// The same. For what is the actor's own (a grant it gave or got, a terminal it attached) it needs no right.
    Owner,
}

impl Who {
    /// It concerns the host, and no session in particular.
    #[must_use]
    pub fn is_hosts(self) -> bool {
        match self {
            Who::Anybody | Who::Proven | Who::Known => true,
            Who::Holder | Who::Owner => false,
        }
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Who::Anybody => "anybody",
            Who::Proven => "proven",
            Who::Known => "known",
            Who::Holder => "holder",
            Who::Owner => "owner",
        }
    }
}

/// What an act needs of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnNeed {
    /// It writes: its actor has the turn, and takes it where it is free.
    Takes,
    /// It is refused while another actor has the turn, and takes nothing.
    Respects,
    /// It has nothing to do with the turn.
    Ignores,
    /// Only the actor that has the turn does it.
    Holds,
    /// It asks for the turn itself, by rules of its own.
    Asks,
}

impl TurnNeed {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TurnNeed::Takes => "takes",
            TurnNeed::Respects => "respects",
            TurnNeed::Ignores => "ignores",
            TurnNeed::Holds => "holds",
            TurnNeed::Asks => "asks",
        }
    }
}

/// What bounds the work of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Nothing grows: the work is the same each time.
    Fixed,
    /// The bytes of the request, at most `wire::frame::REQUEST_BYTES_MAX`.
    Request,
    /// The bytes of the answer, at most `wire::frame::FRAME_BYTES_MAX`, and less where the request says so.
    Answer,
    /// The output since the screen was last looked at, at most the ring, and the history that is asked for.
    Screen,
    /// The number of sessions.
    Sessions,
    /// The processes of the sessions it is about, `graph::PROCESSES_MAX` each.
    Processes,
    /// The length of a list that has a limit of its own: grants, questions, tokens, actors.
    Listed,
}

impl Cost {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Cost::Fixed => "fixed",
            Cost::Request => "request",
            Cost::Answer => "answer",
            Cost::Screen => "screen",
            Cost::Sessions => "sessions",
            Cost::Processes => "processes",
            Cost::Listed => "listed",
        }
    }
}

/// Where an operation is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    /// On the host's own thread alone.
    Host,
    /// What takes long in it (reading `/proc`, a sync, stopping a tree) is done on another one.
    Other,
}

impl Thread {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Thread::Host => "host",
            Thread::Other => "other",
        }
    }
}

/// What is left of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// It changes nothing, so there is nothing to record.
    Looks,
    /// The journal of the session has it, before it takes effect.
    Journal,
    /// It changes something that no journal has: a question, a token, an actor, what a connection is pushed, the host itself.
    Elsewhere,
}

impl Trace {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trace::Looks => "looks",
            Trace::Journal => "journal",
            Trace::Elsewhere => "elsewhere",
        }
    }
}

macro_rules! terms {
    ($( $name:literal: $who:ident $rights:expr, $turn:ident, $cost:ident, $thread:ident, $trace:ident; )*) => {
        /// All of them, in the order of the reference.
        pub const TERMS: &[Terms] = &[ $( Terms {
            name: $name,
            who: Who::$who,
            rights: $rights,
            turn: TurnNeed::$turn,
            cost: Cost::$cost,
            thread: Thread::$thread,
            trace: Trace::$trace,
        }, )* ];
    };
}

const NONE: Rights = Rights::NONE;

const fn one(right: Right) -> Rights {
    Rights::of(&[right])
}

terms! {
    "hello": Anybody NONE, Ignores, Fixed, Other, Looks;
    "identify": Anybody NONE, Ignores, Fixed, Other, Elsewhere;
    "session.new": Known one(Start), Ignores, Fixed, Other, Journal;
    "session.list": Proven one(Observe), Ignores, Sessions, Host, Looks;
    "session.get": Holder one(Observe), Ignores, Screen, Host, Looks;
    "session.attach": Holder one(Observe), Ignores, Screen, Other, Journal;
    "session.paint": Holder one(Observe), Ignores, Screen, Other, Looks;
    // The size of the terminal that has the turn becomes the session's, which is an act; that of any other is only remembered.
    "session.update": Holder one(Observe), Ignores, Fixed, Host, Journal;
    "session.leave": Holder one(Observe), Ignores, Fixed, Host, Journal;
    "session.screen": Holder one(Observe), Ignores, Screen, Other, Looks;
    "session.read": Holder one(Observe), Ignores, Answer, Host, Looks;
    // What a connection is pushed is that connection's own, and as much as it grants.
    "session.follow": Holder one(Observe), Ignores, Answer, Host, Elsewhere;
    "session.credit": Proven one(Observe), Ignores, Fixed, Host, Elsewhere;
    "session.unfollow": Proven one(Observe), Ignores, Fixed, Host, Elsewhere;
    // Where a program types a line at a prompt, the paths in it are looked at on another thread.
    "session.send": Holder one(Type), Takes, Request, Other, Journal;
    // On the host's thread: 50 µs, which another thread would cost too, and a few milliseconds at most, whatever runs there.
    "session.state": Holder one(Observe), Ignores, Fixed, Host, Looks;
    "session.watch": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "session.env": Holder one(Observe), Ignores, Answer, Other, Looks;
    "session.handover": Holder one(Observe), Ignores, Processes, Other, Looks;
    "session.wait": Holder one(Observe), Ignores, Processes, Other, Looks;
    "session.resize": Holder one(Type), Respects, Fixed, Host, Journal;
    "session.signal": Holder one(Signal), Respects, Processes, Other, Journal;
    "session.rename": Holder one(Configure), Ignores, Sessions, Host, Journal;
    "session.keep": Holder one(Configure), Ignores, Fixed, Host, Journal;
    "session.detach": Owner one(Configure), Ignores, Listed, Host, Journal;
    "session.end": Holder one(End), Ignores, Processes, Other, Journal;
    // Whoever may run a command there may have its shell started again.
    "session.recover": Holder one(Run), Ignores, Fixed, Other, Journal;
    "session.restore": Holder one(Checkpoint), Ignores, Fixed, Other, Journal;
    "session.fork": Holder one(Fork), Ignores, Processes, Other, Journal;
    // It ends its processes here: the right to end is looked at too.
    "session.move": Holder one(Checkpoint), Ignores, Processes, Other, Journal;
    // As much as to run commands as root: humans alone, by a path that narrows nothing.
    "session.arrive": Known one(Start), Ignores, Request, Other, Elsewhere;
    // Which files; what is in them needs the right to fork as well.
    "fork.diff": Holder one(Observe), Ignores, Answer, Other, Looks;
    // A human's: it writes to files outside of the branch.
    "fork.keep": Holder one(Fork), Ignores, Answer, Other, Journal;
    "fork.discard": Holder one(End), Ignores, Processes, Other, Journal;
    "checkpoint.check": Holder one(Observe), Ignores, Processes, Other, Looks;
    "checkpoint.make": Holder one(Checkpoint), Ignores, Processes, Other, Journal;
    "checkpoint.list": Holder one(Observe), Ignores, Sessions, Other, Looks;
    "checkpoint.remove": Holder one(Checkpoint), Ignores, Fixed, Other, Journal;
    "session.journal": Holder one(Observe), Ignores, Answer, Other, Looks;
    "session.cost": Holder one(Observe), Ignores, Processes, Other, Looks;
    "graph.get": Holder one(Observe), Ignores, Processes, Other, Looks;
    "graph.ports": Holder one(Observe), Ignores, Processes, Other, Looks;
    "graph.watch": Holder one(Observe), Ignores, Answer, Host, Looks;
    "files.list": Holder one(FilesRead), Ignores, Answer, Other, Looks;
    "files.read": Holder one(FilesRead), Ignores, Answer, Other, Looks;
    // Programs respect the turn; a human who drops a file does not have to wait for it.
    "files.write": Holder one(FilesWrite), Respects, Request, Other, Journal;
    "files.edit": Holder one(FilesWrite), Respects, Request, Other, Journal;
    "files.upload": Holder one(FilesWrite), Respects, Request, Other, Journal;
    "files.undo": Holder one(FilesWrite), Respects, Fixed, Other, Journal;
    "files.changes": Holder one(FilesRead), Ignores, Listed, Other, Looks;
    "files.diff": Holder one(FilesRead), Ignores, Answer, Other, Looks;
    "run.start": Holder one(Run), Takes, Request, Other, Journal;
    "run.get": Holder one(Observe), Ignores, Answer, Host, Looks;
    "run.output": Holder one(Observe), Ignores, Answer, Host, Looks;
    "run.list": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "run.cancel": Holder one(Run), Respects, Fixed, Host, Journal;
    "run.trace": Holder one(Observe), Ignores, Answer, Host, Looks;
    "question.ask": Holder one(Observe), Ignores, Sessions, Host, Elsewhere;
    "question.get": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "question.list": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "question.answer": Holder one(Type), Ignores, Sessions, Host, Journal;
    "question.withdraw": Holder one(Observe), Ignores, Sessions, Host, Elsewhere;
    // Who may approve is told by session, and for an act that starts one by class: humans, and never who asked.
    "approval.answer": Holder one(Approve), Ignores, Sessions, Other, Journal;
    "approval.get": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "approval.list": Holder one(Observe), Ignores, Sessions, Host, Looks;
    "policy.get": Known NONE, Ignores, Listed, Other, Looks;
    "policy.may": Known NONE, Ignores, Request, Other, Looks;
    // A flow acts for weeks by all that its starter may do: see `tokens::allows`.
    "flow.start": Known one(Start), Ignores, Request, Other, Elsewhere;
    "flow.list": Known one(Observe), Ignores, Listed, Other, Looks;
    "flow.get": Known one(Observe), Ignores, Answer, Other, Looks;
    "flow.signal": Known one(Run), Ignores, Request, Other, Elsewhere;
    "flow.answer": Known one(Run), Ignores, Request, Other, Elsewhere;
    "flow.cancel": Known one(Run), Ignores, Request, Other, Elsewhere;
    "flow.retry": Known one(Run), Ignores, Request, Other, Elsewhere;
    "turn.get": Holder one(Observe), Ignores, Fixed, Host, Looks;
    // Who takes it is told what others changed, which is looked for on another thread.
    "turn.take": Holder WRITING, Asks, Processes, Other, Journal;
    "turn.request": Holder WRITING, Asks, Processes, Other, Journal;
    "turn.withdraw": Holder WRITING, Asks, Fixed, Host, Journal;
    "turn.give": Holder WRITING, Holds, Fixed, Host, Journal;
    "turn.release": Holder WRITING, Holds, Fixed, Host, Journal;
    "turn.seize": Holder one(Seize), Asks, Processes, Other, Journal;
    "turn.thaw": Holder one(Seize), Ignores, Processes, Other, Journal;
    "grant.list": Holder one(Observe), Ignores, Listed, Host, Looks;
    "grant.add": Holder one(Grant), Ignores, Listed, Host, Journal;
    "grant.revoke": Owner one(Grant), Ignores, Listed, Host, Journal;
    "token.new": Known one(Grant), Ignores, Listed, Other, Elsewhere;
    "token.list": Known NONE, Ignores, Listed, Host, Looks;
    "token.revoke": Known one(Grant), Ignores, Listed, Other, Elsewhere;
    "login.new": Known one(Grant), Ignores, Fixed, Host, Elsewhere;
    "actor.me": Proven NONE, Ignores, Fixed, Host, Looks;
    "actor.list": Known NONE, Ignores, Sessions, Host, Looks;
    "actor.record": Known NONE, Ignores, Listed, Host, Looks;
    "actor.remove": Known one(Configure), Ignores, Sessions, Host, Journal;
    "relay.add": Known one(Configure), Ignores, Listed, Other, Elsewhere;
    "relay.direct": Known one(Configure), Ignores, Listed, Other, Elsewhere;
    "relay.list": Known NONE, Ignores, Listed, Host, Looks;
    "relay.remove": Known one(Configure), Ignores, Listed, Other, Elsewhere;
    // Who shares a session holds `grant` there; who shares the host is a human.
    "invite.new": Known one(Grant), Ignores, Listed, Other, Elsewhere;
    "invite.list": Known NONE, Ignores, Listed, Host, Looks;
    "invite.revoke": Known one(Grant), Ignores, Listed, Other, Elsewhere;
    "invite.accept": Anybody NONE, Ignores, Listed, Other, Elsewhere;
    "device.list": Known NONE, Ignores, Listed, Host, Looks;
    "device.revoke": Known one(Grant), Ignores, Sessions, Other, Elsewhere;
    "page.get": Proven NONE, Ignores, Fixed, Host, Looks;
    "host.metrics": Known NONE, Ignores, Sessions, Host, Looks;
    "host.status": Anybody NONE, Ignores, Sessions, Host, Looks;
    "host.stop": Known one(Configure), Ignores, Sessions, Host, Elsewhere;
}

/// What `run.start` needs besides where the run has a session of its own: it starts one.
pub const RUN_NEW: Rights = one(Start);

/// An operation's terms. One that has none does not compile where this is a constant.
#[must_use]
pub const fn terms_of(name: &str) -> &'static Terms {
    let mut at = 0;
    while at < TERMS.len() {
        if is_same(TERMS[at].name.as_bytes(), name.as_bytes()) {
            return &TERMS[at];
        }
        at += 1;
    }
    panic!("an operation that is not in the table of terms")
}

/// `==` is not for constants yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_the_whole_name_alone() {
        for (i, terms) in TERMS.iter().enumerate() {
            assert_eq!(terms_of(terms.name), terms);
            assert!(TERMS[..i].iter().all(|other| other.name != terms.name), "{} is there twice", terms.name);
        }
        assert!(std::panic::catch_unwind(|| terms_of("turn.giv")).is_err());
        assert!(std::panic::catch_unwind(|| terms_of("turn.give.")).is_err());
    }

    #[test]
    fn what_concerns_a_session_needs_a_right_and_more_than_to_observe_where_it_writes() {
        for terms in TERMS {
            let needs_none = terms.rights.is_empty();
            assert!(!needs_none || terms.who.is_hosts(), "{}", terms.name);
            assert!(terms.who != Who::Anybody || needs_none, "{}: anybody holds nothing", terms.name);
            let observes = terms.rights.has(Right::Observe);
            match terms.turn {
                TurnNeed::Takes | TurnNeed::Respects | TurnNeed::Holds | TurnNeed::Asks => {
                    assert!(!observes && !needs_none && terms.trace == Trace::Journal, "{}", terms.name);
                }
                TurnNeed::Ignores => {}
            }
            // Whoever only looks needs no right but to observe, and for files to read them.
            let looking = Rights::of(&[Right::Observe, Right::FilesRead]);
            let only_observes = terms.rights.without(looking).is_empty();
            assert!(terms.trace != Trace::Looks || only_observes, "{}", terms.name);
        }
    }
}
