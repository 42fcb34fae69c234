//! Which host is a session's home, for sessions that may have another one.
//!
//! A host has one lease in a store, which it renews for all of its sessions at once. A session has one [`Record`] there: the lease of its
//! home and its incarnation; the record's revision is its fence. All of it changes in one transaction, a [`Change`], which says what must
//! be true of the store for it to happen. Nobody takes a record from a lease that lives.
//!
//! What makes it safe, without any clock in common: the holder counts its time from the moment it *sent* a renewal, so its own deadline
//! ([`Tenancy`]) lies before the store's by at least the time the message took, and by a margin for what comes late. The store lets nobody
//! claim before its own count is over. So the old life stands still when the next begins, if the holder's clock does not lose more than
//! the margin within one lease.
//!
//! Knows no sockets, no etcd, no keepers and no clock: the caller passes the time and performs the effects in order. [`Book`] is the least
//! that a store must do; tests and `sim` run against it.

mod book;
mod record;
mod tenancy;

pub use book::Book;
pub use record::{Answer, Change, Expect, Found, LeaseId, Record, Refusal};
pub use tenancy::{Effect, Input, Standing, Tenancy, Terms};
