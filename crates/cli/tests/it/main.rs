//! The program as a person and a script meet it: the real binary, a real host, a home of its own for each test.
//!
//! One binary for all of them, so that linking is paid for once. Every module stands on [`holdfast_harness::Home`].
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod abuse;
mod actors;
mod attaching;
mod bad_requests;
mod bad_sockets;
mod cgroups;
mod config;
mod env;
mod follow;
mod grants;
mod graph;
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
mod lines;
mod links;
mod logging;
mod mcp;
mod metrics;
mod modes;
mod notify;
mod on_exit;
mod outcomes;
mod output;
mod places;
mod port;
mod prove;
mod questions;
mod recover;
mod remote;
mod run_events;
mod run_keys;
mod runs;
mod schema;
mod secrets;
mod sessions;
mod states;
mod token_ends;
mod turns;
mod typing;
mod upgraded;
mod watching;
mod websocket;
