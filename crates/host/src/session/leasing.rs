//! A session whose home is a lease: what its keeper is told, and what the keeper says.

use super::Session;
use crate::leases::{Claim, boottime_ms, without_store};
use crate::notes::About;
use holdfast_abi::protocol::{FromKeeper, LEASE_HARD, LEASE_STILL, ToKeeper};
use holdfast_abi::start::StartLease;
use holdfast_authority::{Input, Leased};
use holdfast_lease::{Found, Standing};
use holdfast_session::Outside;
use holdfast_types::{Offset, TimeMs};
use holdfast_wire::leases::{LeaseState, LeaseView, Leasing};
use holdfast_wire::params::Life;
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// How long a keeper may take to say that the tree goes on.
const THAW_WAIT: Duration = Duration::from_secs(3);

/// What is kept of a session's lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecLease {
    /// The fence under which its record was written last.
    pub fence: u64,
    /// The kernel kills a keeper that does not stop the session in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
    /// It stands still because the lease was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Who claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
}

impl SpecLease {
    /// Of a session that is about to be claimed.
    pub fn of(leasing: Leasing) -> SpecLease {
        SpecLease { fence: 0, hard: leasing.hard, stopped: false, claimed_by: None }
    }
}

/// What a host knows of it besides.
#[derive(Debug, Default)]
pub(crate) struct HeldLease {
    /// Until when, as the keeper was told.
    pub until_ms: u64,
    /// Where the output stood when it was renewed last.
    pub renewed_at: Offset,
    /// So late it was stopped, and so many processes were not.
    pub stopped: Option<(u32, u32)>,
    /// How often the keeper said how it stands.
    pub said: u64,
    /// The directory of the cgroup that the keeper freezes; empty: none.
    pub cgroup: Vec<u8>,
    /// Its processes stand still for a checkpoint or a move.
    pub stands: bool,
}

impl Session {
    /// Claims the record for the next life, where the session is leased. Nothing of that life may begin before.
    pub(crate) async fn claim(
        &self,
        leases: Option<&crate::leases::Leases>,
        lease: Option<&SpecLease>,
        incarnation: u32,
    ) -> Result<Option<Claim>, Fault> {
        if lease.is_none() {
            return Ok(None);
        }
        let leases = leases.ok_or_else(|| without_store(self))?;
        if self.settle_passing().await? {
            self.must_be_home()?;
        }
        let claimed = leases.claim(self.id, incarnation).await;
        let claimed =
            claimed.map_err(|fault| Fault { message: format!("{}: {}", self.name(), fault.message), ..fault });
        claimed.map(Some)
    }

    /// The lease with which a keeper starts.
    pub(crate) fn start_lease(&self, lease: &mut Option<SpecLease>, claim: Option<Claim>) -> Option<StartLease> {
        let (lease, claim) = lease.as_mut().zip(claim)?;
        (lease.fence, lease.stopped, lease.claimed_by) = (claim.fence, false, None);
        let renewed_at = self.state.borrow().head();
        self.state.borrow_mut().lease = HeldLease { until_ms: claim.until_ms, renewed_at, ..HeldLease::default() };
        let cgroup = self.cgroup_of(std::process::id());
        let flags = if lease.hard { LEASE_HARD } else { 0 };
        Some(StartLease { fence: claim.fence, until_ms: claim.until_ms, flags, cgroup })
    }

    fn cgroup_of(&self, keeper: u32) -> Vec<u8> {
        self.freezer.directory(keeper).map(|dir| dir.into_os_string().into_vec()).unwrap_or_default()
    }

    /// A keeper is connected: it is told what is known, or that is asked for.
    pub(crate) fn lease_connected(&self) {
        let Some(lease) = self.state.borrow().spec.lease.clone() else { return };
        if self.portable().is_some() && !self.is_whole_here() {
            // What stands still here is settled first, see `portable::mend`.
            return;
        }
        self.lease_taken_up(&lease);
    }

    /// No move was begun whose end is not known, and its home is this host.
    fn is_whole_here(&self) -> bool {
        self.moved().is_none() && matches!(crate::moving::home::intended(&self.dir), Ok(None))
    }

    fn lease_taken_up(&self, lease: &SpecLease) {
        let Some(leases) = &self.leases else {
            let note = "it is leased, and this host has no store of leases: it stands still when its lease is over";
            return self.set_note(note.into());
        };
        if let Some(by) = &lease.claimed_by {
            // A host that was killed before it had ended the life here.
            let (this, by) = (self.this.upgrade(), by.clone());
            let ours = lease.fence;
            tokio::task::spawn_local(async move {
                if let Some(this) = this {
                    this.end_claimed(ours).await;
                    tracing::info!(session = %this.id, "ended: {by} has claimed it");
                }
            });
            return;
        }
        // Where the keeper is it stays: looked at once, and not with each renewal.
        let cgroup = self.cgroup_of(self.state.borrow().keeper_pid);
        self.state.borrow_mut().lease.cgroup = cgroup;
        match leases.held(self.id) {
            Some((fence, until_ms)) => self.lease_until(fence, until_ms),
            None => {
                let (session, fence, incarnation) = (self.id, lease.fence, self.incarnation());
                leases.hear(holdfast_lease::Input::TakenUp { session, fence, incarnation });
            }
        }
    }

    /// Its lease was renewed: the keeper is told until when.
    pub(crate) fn lease_until(&self, fence: u64, until_ms: u64) {
        if !self.is_live() {
            return;
        }
        {
            let mut state = self.state.borrow_mut();
            let Some(lease) = &mut state.spec.lease else { return };
            if lease.claimed_by.is_some() {
                return;
            }
            let is_new = std::mem::replace(&mut lease.fence, fence) != fence;
            if is_new {
                let saved = state.spec.save(&self.dir);
                state.notes.wrote(About::Spec, "the lease's fence could not be kept", &saved);
            }
            state.lease.until_ms = until_ms;
            state.lease.renewed_at = state.head();
        }
        self.say_lease();
    }

    /// Tells the keeper until when it may run, and whether it is frozen besides. A host that has just come does not know until when: the keeper
    /// has that from the host before, and is told with the first renewal.
    fn say_lease(&self) {
        let mut state = self.state.borrow_mut();
        if state.lease.until_ms == 0 {
            return;
        }
        let is_frozen = state.core.is_frozen() || state.lease.stands;
        let Some(lease) = &state.spec.lease else { return };
        let flags = if lease.hard { LEASE_HARD } else { 0 } | if is_frozen { LEASE_STILL } else { 0 };
        let (fence, until_ms, cgroup) = (lease.fence, state.lease.until_ms, state.lease.cgroup.clone());
        state.held.say(ToKeeper::Lease { fence, until_ms, flags, cgroup: &cgroup });
    }

    /// Its processes are about to stand still for a checkpoint or a move (true), or may go on. Of a leased session the keeper alone lets them,
    /// since the lease may be over by then. False where the session is not leased.
    pub(crate) fn lease_stands(&self, stands: bool) -> bool {
        {
            let mut state = self.state.borrow_mut();
            if state.spec.lease.is_none() {
                return false;
            }
            state.lease.stands = stands;
        }
        // A host that does not know until when says it with the first renewal.
        self.say_lease();
        true
    }

    /// It was frozen by an actor: only the keeper lets it go on from now.
    pub(crate) fn lease_still(&self) {
        if self.state.borrow().spec.lease.is_some() {
            self.say_lease();
        }
    }

    /// Has the keeper of a leased session let it go on: no host may, since the lease may be over by the time it gets to it. False where the
    /// session is not leased.
    pub(crate) async fn thaw_by_keeper(&self) -> Result<bool, Fault> {
        if self.state.borrow().spec.lease.is_none() {
            return Ok(false);
        }
        if self.state.borrow().lease.until_ms == 0 {
            // The first renewal says it.
            return Ok(true);
        }
        let said = self.state.borrow().lease.said;
        self.say_lease();
        let heard = || {
            let state = self.state.borrow();
            (state.lease.said > said || !matches!(state.life, Life::Running)).then_some(state.lease.stopped.is_none())
        };
        match self.until(Some(THAW_WAIT), heard).await {
            Some(true) => Ok(true),
            Some(false) | None if self.is_stopped() => Err(self.lease_fault()),
            // It was not frozen for the keeper.
            Some(false) | None => Ok(true),
        }
    }

    /// Whether its keeper stopped it because the lease was over.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.borrow().lease.stopped.is_some()
    }

    /// How often its keeper has said how the lease stands: where that is the same, the tree was neither stopped for it nor let go on.
    pub(crate) fn lease_said(&self) -> u64 {
        self.state.borrow().lease.said
    }

    /// Refused while its keeper has stopped it.
    pub(crate) fn lease_must_hold(&self) -> Result<(), Fault> {
        if self.is_stopped() { Err(self.lease_fault()) } else { Ok(()) }
    }

    fn lease_fault(&self) -> Fault {
        Fault::new(Code::Frozen, format!("{} stands still: its lease could not be renewed", self.name()))
            .hint(format!("it goes on by itself once the store of leases answers; see: holdfast info {}", self.name()))
    }

    /// The keeper says how it stands.
    pub(crate) fn heard_lease(&self, frame: FromKeeper<'_>) {
        let FromKeeper::Fenced { fenced, late_ms, left, .. } = frame else { return };
        let (was, renewed_at, fence) = {
            let mut state = self.state.borrow_mut();
            state.lease.said += 1;
            state.lease.stopped = (fenced != 0).then_some((late_ms, left));
            let renewed_at = state.lease.renewed_at;
            let Some(lease) = &mut state.spec.lease else { return };
            let was = std::mem::replace(&mut lease.stopped, fenced != 0);
            let fence = lease.fence;
            if was != (fenced != 0) {
                let saved = state.spec.save(&self.dir);
                state.notes.wrote(About::Spec, "how its lease stands could not be kept", &saved);
            }
            (was, renewed_at, fence)
        };
        let leased = match (was, fenced != 0) {
            (false, true) => Some(Leased::Stopped { late_ms, left, renewed_at }),
            (true, false) => Some(Leased::WentOn { fence }),
            (true, true) | (false, false) => None,
        };
        if let Some(leased) = leased {
            tracing::warn!("lease: {leased:?}");
            let _ = self.decide(Input::Leased(leased));
        }
        self.changed.notify_waiters();
    }

    /// Another host has claimed it: what runs here ends, and what it did since the last renewal is on record.
    pub(crate) async fn claimed_elsewhere(&self, by: Option<Found>) {
        let (host, fence) = by.map_or_else(Default::default, |found| (found.record.host, found.fence));
        let ours = {
            let mut state = self.state.borrow_mut();
            let Some(lease) = &mut state.spec.lease else { return };
            lease.claimed_by = Some(host.clone());
            let ours = lease.fence;
            // Nothing brings it back by itself.
            state.spec.end_asked = true;
            let saved = state.spec.save(&self.dir);
            state.notes.wrote(About::Spec, "that another host claimed it could not be kept", &saved);
            let (renewed_at, at) = (state.lease.renewed_at, state.head());
            drop(state);
            let _ = self.decide(Input::Leased(Leased::Claimed { by: host.clone(), fence, ours, renewed_at, at }));
            ours
        };
        tracing::warn!(session = %self.id, "{host} claimed it under fence {fence}: its life here ends");
        self.end_claimed(ours).await;
    }

    /// Stops and ends the tree here. A connection that is being taken up comes to this again.
    async fn end_claimed(&self, fence: u64) {
        let Ok(link) = self.running().await else { return };
        let _ = link.send(ToKeeper::Lease { fence, until_ms: 0, flags: 0, cgroup: &[] });
        let _ = link.send(ToKeeper::End { grace_ms: 0 });
    }

    /// It has ended for good: nobody needs its record.
    pub(crate) fn release_lease(&self) {
        let lease = self.state.borrow().spec.lease.clone();
        let (Some(lease), Some(leases)) = (lease, &self.leases) else { return };
        let session = self.id;
        if self.view_life() == Life::Lost {
            // Whoever gives it another life claims it; until this host's lease is over that is this host.
            return leases.hear(holdfast_lease::Input::Passed { session });
        }
        if leases.standing(session).is_none() {
            let (fence, incarnation) = (lease.fence, self.incarnation());
            leases.hear(holdfast_lease::Input::TakenUp { session, fence, incarnation });
        }
        leases.hear(holdfast_lease::Input::Ended { session });
    }

    /// As clients see it.
    pub(crate) fn lease_view(&self, now_ms: TimeMs) -> Option<Box<LeaseView>> {
        let state = self.state.borrow();
        let lease = state.spec.lease.as_ref()?;
        let standing = self.leases.as_ref().and_then(|leases| leases.standing(self.id));
        let own = self.leases.as_ref().map(|leases| leases.host.clone()).unwrap_or_default();
        let (lease_state, host) = match (&lease.claimed_by, standing) {
            (Some(by), _) => (LeaseState::Claimed, by.clone()),
            (None, Some(Standing::Held { .. })) if state.lease.stopped.is_none() => (LeaseState::Held, own),
            (None, _) => (LeaseState::Unknown, own),
        };
        let is_held = lease_state == LeaseState::Held;
        let left_ms = state.lease.until_ms.saturating_sub(boottime_ms());
        Some(Box::new(LeaseView {
            state: lease_state,
            host,
            fence: lease.fence,
            until_ms: (is_held && state.life == Life::Running).then_some(now_ms + left_ms),
            stopped_late_ms: state.lease.stopped.map(|(late_ms, _)| late_ms),
            hard: lease.hard,
            why: self.leases.as_ref().filter(|_| !is_held).and_then(|leases| leases.why()),
        }))
    }
}
