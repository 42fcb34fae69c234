//! The seam at which programs start (`new --gate exec`): every `execve` of a session's processes is judged before it happens.
//!
//! The keeper starts `holdfast session gate`, which puts the filter on itself, hands the listener to the session's warden and
//! becomes the command. The warden tells the host what a process is about to become (`link`); the host finds whose process that is
//! (`doer`), judges it (`judge`), and where a rule asks, the process waits in its call until a human has answered.
//!
//! No jail: a process's words can be changed by another thread of it between the look and the call. It is a guard rail, and says who
//! started what.

mod asked;
mod doer;
mod filter;
mod judge;
mod link;
mod listener;
mod start;
mod talk;
mod target;
mod warden;

pub(crate) use asked::ExecAct;
pub(crate) use link::Seamed;
pub use start::{can_here, hand_over};
pub(crate) use start::{put_up, with_its_seam};
pub use warden::warden;
