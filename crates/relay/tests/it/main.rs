//! Relays on real sockets, one alone and several with a real etcd.

#![allow(clippy::unwrap_used)]

mod direct;
mod directory;
mod etcd;
mod joining;
mod world;
