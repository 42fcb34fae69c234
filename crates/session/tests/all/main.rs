//! The core alone: every rule about who types what, with an outside that only remembers.

mod sends;
mod typed;
mod world;
