//! Moving a portable session to another host.
//!
//! Who moves it is connected to both hosts and carries what one says to the other (`wire/src/moves.rs` has the steps), so that a move goes
//! by every route that a client has, and each host knows who asks. Hosts do not speak to each other.
//!
//! At most one life, whoever dies when:
//!
//! - Until the commit ([`home`]) the session stands still at its old host, and goes on there as soon as its mover is gone or silent, or
//!   when the next host comes up. The other host has nothing but files.
//! - The commit is one record on disk. The old host gives the key out only behind it, and the other one begins nothing without the key.
//! - Of a leased session the commit is a transaction of the store of leases. What is asked of it is on disk before, so that the next host can
//!   find out whether it happened; until that is known the session stands still.
//! - Behind it the other host has everything that it needs, synced: whoever comes with the key finishes the move.
//!
//! | file | what it has |
//! |---|---|
//! | `sessions/<id>/moved` | at the old host: where the session's home is, and the key |
//! | `sessions/<id>/passing` | at the old host: the same of a leased session, before the store of leases is asked |
//! | `sessions/<id>/moving/` | at the old host: copies of what is sent, while it stands still |
//! | `arriving/<id>/` | at the other host: what was sent; with `parcel` beside it, all of it is there |
//! | `sessions/<id>/carried` | at the other host: where output and input stood, until its first life there has begun |

pub(crate) mod arrive;
pub(crate) mod carried;
pub(crate) mod home;
mod leave;
mod needs;
mod sent;

pub(crate) use arrive::Arrivals;
pub(crate) use leave::Moving;
pub(crate) use needs::Sums;

use crate::serve::{Answer, Server, plain, with};
use crate::session::Session;
use holdfast_door::Path;
use holdfast_types::{Actor, Rights};
use holdfast_wire::moves::{ArriveParams, ArriveStep, MoveParams, MoveStep, MovedView};
use holdfast_wire::{Call, Code, Fault};
use sha2::{Digest, Sha256};

/// Hosts whose keys a session has with it: it may come back to any of them.
const HOMES_MAX: usize = 16;

/// Where sessions arrive.
fn place(state: &std::path::Path) -> std::path::PathBuf {
    state.join("arriving")
}

/// What a key is known by before it is given out.
fn lock_of(key: &str) -> String {
    holdfast_types::hex_text(&Sha256::digest(key.as_bytes()))
}

impl Server {
    /// One step of a move.
    pub(crate) async fn answer_moves(&self, call: Call, bytes: Vec<u8>, actor: &Actor, path: &Path) -> Answer {
        match call {
            Call::Move(params) => self.answer_move(&params, actor).await,
            Call::Arrive(params) => self.answer_arrive(params, bytes, actor, path).await,
            other => Err(Fault::new(Code::Internal, format!("{} is no step of a move", other.row().name))),
        }
    }

    /// One step at the host that has the session.
    async fn answer_move(&self, params: &MoveParams, actor: &Actor) -> Answer {
        let registry = &self.registry;
        let session = registry.may_move(params, actor)?;
        match &params.step {
            MoveStep::Offer => plain(registry.move_offer(&session).await?),
            MoveStep::Hold { to, home } => {
                plain(registry.move_hold(&session, to, home.as_ref(), actor, params.proof).await?)
            }
            MoveStep::Read { file, from } => with(session.move_read(actor, *file, *from).await?),
            MoveStep::Commit => plain(session.move_commit(actor).await?),
            MoveStep::Done => plain(session.move_done().await?),
            MoveStep::GiveUp => plain(session.move_give_up(actor).await?),
        }
    }

    /// One step at the host to which a session is moved. What arrives is given to CRIU, which is root: it takes as much as to run commands
    /// here.
    async fn answer_arrive(&self, params: ArriveParams, bytes: Vec<u8>, actor: &Actor, path: &Path) -> Answer {
        let registry = &self.registry;
        registry.may_start(actor)?;
        let narrows = path.cap().is_some_and(|cap| !cap.can.covers(Rights::ALL));
        if !registry.shared.policy_is_human(actor) || narrows {
            return Err(Fault::new(Code::Denied, format!("{actor} may not move a session to this host"))
                .hint("only a human with all rights here may: it takes as much trust as running commands as root"));
        }
        match params.step {
            ArriveStep::Check { offer } => plain(registry.arrive_check(*offer).await?),
            ArriveStep::Begin { parcel } => plain(registry.arrive_begin(*parcel, actor).await?),
            ArriveStep::Write { session, file, from } => {
                plain(registry.arrive_write(session, file, from, bytes, actor).await?)
            }
            ArriveStep::Whole { session } => plain(registry.arrive_whole(session, actor).await?),
            ArriveStep::Finish { session, key } => plain(registry.arrive_finish(session, &key, actor).await?),
            ArriveStep::GiveUp { session } => plain(registry.arrive_give_up(session, actor).await?),
        }
    }
}

impl Session {
    /// Where it was moved.
    pub(crate) fn moved(&self) -> Option<MovedView> {
        let state = self.state.borrow();
        state.spec.portable.as_ref().and_then(|portable| portable.moved.as_deref().cloned())
    }

    /// Its home is this host.
    pub(crate) fn must_be_home(&self) -> Result<(), Fault> {
        let Some(MovedView { host, .. }) = self.moved() else { return Ok(()) };
        let name = self.name();
        Err(Fault::new(Code::Lost, format!("session {name} was moved to {host}: it lives there, and never again here"))
            .hint(format!(
                "go on there: holdfast attach {host}/{name}; to bring it back: holdfast move {host}/{name} here"
            )))
    }

    /// Nothing is changed in a session that stands still to be moved: the other host would not know.
    pub(crate) fn must_not_be_moving(&self) -> Result<(), Fault> {
        if !self.state.borrow().core.is_moving {
            return Ok(());
        }
        Err(Fault::new(Code::Busy, format!("session {} is being moved to another host", self.name()))
            .hint("try again in a moment"))
    }
}
