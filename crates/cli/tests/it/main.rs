//! The program as a person and a script meet it: the real binary, a real host, a home of its own for each test.
//!
//! One binary for all of them, so that linking is paid for once. Every module stands on [`holdfast_harness::Home`].
#![allow(clippy::unwrap_used)] // a test's failure is its message

/// What relays are tested with too.
#[allow(dead_code)]
#[path = "../../../relay/tests/it/etcd.rs"]
mod etcds;
/// What that waits with.
mod world {
    pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        holdfast_harness::until(what, || is_so().then_some(()));
    }
}

mod abuse;
mod activation;
mod actors;
mod agents;
mod approvals;
mod attaching;
mod automatic;
mod bad_requests;
mod bad_sockets;
mod cgroups;
mod config;
mod contracts;
mod env;
mod everywhere;
mod files;
mod files_attacked;
mod files_moved;
mod flows;
mod follow;
mod forks;
mod gate;
mod grants;
mod graph;
mod guide;
mod habits;
mod help;
mod homes;
mod hostile;
mod hosts;
mod http;
mod http_tokens;
mod inside;
mod journal;
mod killed;
mod leases;
mod lines;
mod links;
mod logging;
mod machines;
mod mcp;
mod metrics;
mod modes;
mod notify;
mod on_exit;
mod origins;
mod outcomes;
mod output;
mod places;
mod port;
mod portable;
mod previews;
mod previous;
mod prove;
mod questions;
mod reaping;
mod recover;
mod remote;
mod run_events;
mod run_keys;
mod runs;
mod schema;
mod seam;
mod secrets;
mod sessions;
mod slow;
mod states;
mod token_ends;
mod turns;
mod typing;
mod upgraded;
mod wall;
mod watching;
mod websocket;
