//! Deciding on behalf of clients: the core's decisions, refusals as they are sent, the journal on its way to the disk.

use super::held::word;
use super::{Session, State};
use crate::disk::at_disk;
use crate::notes::About;
use holdfast_authority::{Audience, Input, Refusal};
use holdfast_session::{Decided, Undecided};
use holdfast_types::{Fence, Notice};
use holdfast_wire::events::Event;
use holdfast_wire::turns::{FrozenView, HolderView, TurnView};
use holdfast_wire::{Body, Code, Fault, Message};
use std::time::Duration;
use tokio::time::Instant;

/// Records reach the disk for certain within this time and the disk's own: the cost of a sync is shared by all acts within.
const SYNC_AFTER: Duration = Duration::from_millis(20);

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

    /// Sees to it that what was written reaches the disk, off this thread.
    pub(super) fn sync_soon(&self) {
        if !self.state.borrow().journal.is_unsynced() || self.syncing.replace(true) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            tokio::time::sleep(SYNC_AFTER).await;
            this.syncing.set(false);
            let next = || this.state.borrow_mut().journal.unsynced();
            // The segment, and where it is new the directory that has its name. A disk syncs one after the other anyway.
            let _turn = this.syncs.acquire().await;
            while let Some(path) = next() {
                let began = Instant::now();
                let synced = at_disk(move || std::fs::File::open(path)?.sync_data()).await;
                if synced.is_ok() {
                    this.metrics.synced(began.elapsed());
                }
                this.state.borrow_mut().notes.wrote(About::Sync, "the journal may not survive a crash", &synced);
            }
            let ahead = this.state.borrow_mut().journal.archives();
            if let Some(ahead) = ahead {
                let done = at_disk(move || ahead.run()).await;
                this.state.borrow_mut().journal.archived(done);
            }
        });
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
