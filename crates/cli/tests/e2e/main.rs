//! Holdfast as a hostile and careful person meets it: real terminals, real programs, processes killed at bad moments.
//!
//! One binary. [`home`] runs the program in a home of its own, [`terminal`] is the person's terminal. Everything waits for
//! a condition with a generous deadline; random tests print their seed and take another one from `HOLDFAST_SEED`.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod alien;
mod changes;
mod crowd;
mod damage;
mod ends;
mod environment;
mod graphs;
mod home;
mod keys;
mod leaving;
mod limits;
mod noise;
mod programs;
mod queries;
mod random;
mod ringing;
mod scrollback;
mod secrets;
mod storm;
mod stuck;
mod terminal;
mod thousand;
mod versions;
