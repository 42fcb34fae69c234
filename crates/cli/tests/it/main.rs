//! The program as a person and a script meet it: the real binary, a real host, a home of its own for each test.
//!
//! One binary for all of them, so that linking is paid for once. [`home`] is what every module stands on.

mod attaching;
mod config;
mod help;
mod home;
mod hosts;
mod output;
mod sessions;
mod typing;
