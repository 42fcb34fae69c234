//! Real trees of processes, frozen and thawed. As root: the cgroup is made where the tests run.

#![allow(clippy::unwrap_used)] // the helpers are tests too, which clippy cannot know

mod effects;
mod events;
mod freezing;
mod graph;
mod harness;
mod pty;
mod residency;
mod spared;
mod terminal;
mod turns;
mod waiting;
mod walking;
