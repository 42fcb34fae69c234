//! The core alone: every rule about who types what, with an outside that only remembers.

#![allow(clippy::unwrap_used)] // a test that cannot go on says where

mod answers;
mod deeds;
mod runs;
mod sends;
mod typed;
mod world;
