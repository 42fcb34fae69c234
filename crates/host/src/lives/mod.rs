//! A session's lives: what is kept of one for the next, how it is known that one is over, and how another begins.
//!
//! | file | what it has | when it is written |
//! |---|---|---|
//! | `birth` | what the command was started with; of variables most have their name alone | once |
//! | `life` | this life's keeper, and what its processes were and held | when the session did something, a few times a minute at most |
//! | `life.json` | what its processes may know of this life: fence, number, what was cut | before the first of them runs |
//! | `ring.before` | the ring of the life before, while another one begins | by `recover` |
//!
//! A session has at most one life. The keeper holds a lock on its ring for as long as it lives; another life begins only in the
//! hands of a host that got this lock ([`dead`]), and a keeper that finds its ring locked or moved does not start. So it does
//! not matter when a host is killed in between, or which of two is asked.

pub(crate) mod begin;
mod dead;
pub(crate) mod kept;
mod look;
mod policy;
mod preface;
mod told;
mod why;

pub(crate) use begin::next_base;
pub(crate) use dead::{is_locked, keeper_of};
pub(crate) use look::{Looking, boot_id};
pub(crate) use policy::{Lives, WINDOW_MS, follow};
pub(crate) use told::{Began, LIFE, tell, token};
pub(crate) use why::{Known, survivors, why};

/// Where the ring of the life before lies while another begins.
pub(crate) const RING_BEFORE: &str = "ring.before";
