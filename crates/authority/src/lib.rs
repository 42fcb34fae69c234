//! Who may do what in a session now, and the record of who did.
//!
//! [`Authority`] is one session's state machine: inputs (what happened) in, effects (what to do, in order) out. Its state
//! changes only by the [`Record`]s it emits, so replaying them gives the same state: that is how a host comes back after a
//! crash. The [`journal`] is those records as hash-chained lines; [`identity`] says who a process is taken for.
//!
//! Nobody owns a session: there are class defaults, grants and revocations, and the turn. A spawner is an actor with a first
//! grant, which can be revoked like any other.
//!
//! Knows nothing of sockets, storage, clocks or randomness. The caller passes the moment and the bytes of keys, and performs
//! the effects in order.

mod act;
mod authority;
mod command;
mod deed;
mod effect;
mod grants;
pub mod identity;
pub mod journal;
mod pace;
pub mod proof;
mod refusal;
mod turn;

pub use act::{Act, Ask, Burst, By, Change, Forked, Gate, Keys, Lapse, Leased, Outcome, Record, Restored, Revoke};
pub use authority::{Authority, GRANTS, OPEN_MAX, OPERATORS, Operator, QUEUE, State};
pub use command::{RECORDED_BYTES_MAX, recorded};
pub use deed::{AfterKill, Deed, DeedId, Ending, Open};
pub use effect::{Answer, Audience, Caller, Effect, Input, Moment, Reply, Said, Source, Token};
pub use grants::{Grant, GrantId, Policy};
pub use refusal::{Refusal, Rule};
pub use turn::{Frozen, Hold, How, OperatorId, TURN_GRACE_MS, TURN_IDLE_MS, TURN_PASSING_MS, Turn, Waiting};
