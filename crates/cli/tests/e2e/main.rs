//! Holdfast as a hostile and careful person meets it: real terminals, real programs, processes killed at bad moments.
//!
//! One binary, on [`holdfast_harness`]: its `Home` runs the program, its `Terminal` is the person's. Everything waits for
//! a condition with a generous deadline; random tests print their seed and take another one from `HOLDFAST_SEED`.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod alien;
mod changes;
mod crowd;
mod damage;
mod direct;
mod elsewhere;
mod ends;
mod environment;
#[allow(dead_code)]
#[path = "../../../relay/tests/it/etcd.rs"]
mod etcds;
/// What that waits with.
mod world {
    pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        holdfast_harness::until(what, || is_so().then_some(()));
    }
}
mod graphs;
mod keys;
mod leaving;
mod limits;
mod moves;
mod moves_leased;
mod namespaces;
mod noise;
mod other_user;
mod own;
mod programs;
mod queries;
mod relays;
mod ringing;
mod same_user;
mod scrollback;
mod secrets;
mod storm;
mod stuck;
mod thousand;
mod transfers;
mod versions;
mod whereabouts;
