//! What outlives versions: the ring file's layout (version 2, and 1 for reading) and keeper protocol v1.
//!
//! A keeper started today must be understood by every later host, and a host of today by the clients that follow
//! the ring beside it. So everything both sides agree on is here, in two files, and nothing else is: [`ring`] is what
//! lies on disk, [`protocol`] is what goes over the keeper's socket. Both are frozen: frames and fields may be added where
//! the spec says how an old side takes them; none may change its meaning. The two versions are numbered apart: protocol 1
//! goes with rings 1 and 2.
//!
//! Does not know how a keeper works, who a host is, or what the bytes mean.

pub mod address;
pub mod log;
pub mod protocol;
pub mod ring;
pub mod start;
mod take;
