//! Deciding on behalf of clients: the core's decisions, and refusals as they are sent.

use super::held::word;
use super::{Session, State};
use holdfast_authority::{Audience, Input, Refusal};
use holdfast_session::{Decided, Undecided};
use holdfast_types::{Fence, Notice};
use holdfast_wire::events::Event;
use holdfast_wire::turns::{FrozenView, HolderView, TurnView};
use holdfast_wire::{Body, Code, Fault, Message};

/// A refusal as it is sent.
pub(crate) fn fault(refusal: &Refusal) -> Fault {
    let code = match refusal {
        Refusal::TurnHeld { .. } => Code::TurnHeld,
        Refusal::FenceStale { .. } => Code::FenceStale,
        Refusal::Denied { .. } | Refusal::Forbidden { .. } => Code::Denied,
        Refusal::ApprovalNeeded { .. } => Code::ApprovalNeeded,
        Refusal::Frozen { .. } => Code::Frozen,
        Refusal::NotFrozen => Code::NotFrozen,
        Refusal::NotHolder => Code::NotHolder,
        Refusal::NotAttached => Code::NotAttached,
        Refusal::NoSuchGrant { .. } => Code::NoSuchGrant,
        Refusal::TooWide { .. } => Code::TooWide,
        Refusal::TooLong { .. } => Code::TooLong,
        Refusal::EmptyGrant => Code::EmptyGrant,
        Refusal::TooMany { .. } => Code::TooMany,
        Refusal::TooFast { .. } => Code::TooFast,
    };
    let mut fault = Fault::new(code, refusal.to_string()).hint(refusal.hint());
    fault.details = serde_json::to_value(refusal).ok().map(Box::new);
    fault
}

/// The word under which a refusal is counted: that of its code on the wire.
pub(crate) fn counted(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Forbidden { .. } => "denied",
        other => other.code(),
    }
}

impl Session {
    /// Decides about what happened: records it, performs the effects, and says what came of it.
    pub(crate) fn decide(&self, input: Input) -> Result<Decided, Fault> {
        self.with_core(|core, held, now| core.decide(held, now, input)).map_err(|undecided| {
            if let Undecided::Refused(refusal) = &undecided {
                self.metrics.refused(counted(refusal));
            }
            self.undecided(&undecided)
        })
    }

    /// Why something does not happen, as it is sent.
    pub(super) fn undecided(&self, undecided: &Undecided) -> Fault {
        match undecided {
            Undecided::Refused(refusal) => fault(refusal),
            Undecided::Unrecorded(error) => {
                Fault::new(Code::Unrecorded, format!("the journal of {} cannot be written: {}", self.name(), error.0))
                    .hint("is the disk full? the host does nothing that it cannot record")
            }
        }
    }

    /// Brings what was typed so far into the journal.
    pub(crate) fn drain_log(&self) {
        self.with_core(|core, held, now| core.drain_log(held, now, true));
    }

    /// Tells the keeper under which fence who writes.
    pub(super) fn say_writer(&self) {
        self.with_core(|core, held, _| core.say_writer(held));
    }

    /// Tells clients something.
    pub(crate) fn tell(&self, to: Audience, notice: &Notice) {
        self.with_core(|core, held, _| core.tell(held, to, notice));
    }

    /// The newest fence.
    pub(crate) fn fence(&self) -> Fence {
        self.state.borrow().core.fence()
    }

    /// Who may write now, and who waits.
    pub fn turn(&self) -> TurnView {
        self.state.borrow().turn_view()
    }
}

impl State {
    pub(crate) fn turn_view(&self) -> TurnView {
        let state = self.core.authority().state();
        let holder = state.turn().hold().map(|hold| HolderView {
            actor: hold.by.clone(),
            client: hold.operator.map(|operator| operator.0),
            since_ms: hold.since,
            active_ms: hold.active,
            ends_ms: hold.ends,
            how: word(hold.how).into(),
        });
        TurnView {
            holder,
            fence: state.fence(),
            queue: state.queue().map(|waiting| waiting.by.handle.clone()).collect(),
            frozen: state.frozen().map(|frozen| FrozenView { by: frozen.by.clone(), since_ms: frozen.since }),
        }
    }
}

/// An event for a client.
pub(crate) fn event<E: Event>(params: &E) -> Box<Message> {
    let params = serde_json::to_value(params).expect("texts and numbers always serialise");
    Box::new(Message::plain(Body::Event { method: E::ROW.name.into(), params }))
}
