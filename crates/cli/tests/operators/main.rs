//! Operators on one live session, over the host's real socket: who may write when, whatever the others do and however often
//! the host is killed.
//!
//! One binary, on [`holdfast_harness`]: its `World` is a home with a host of its own, its `Operator` an actor with its key on a
//! connection. [`linear`] checks recorded histories against the sequential [`turnmodel`]. Random tests print their seed and
//! take another one from `HOLDFAST_SEED`.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod abused;
mod asking;
mod clients;
mod crashing;
mod deeds;
mod edges;
mod flushing;
mod grants;
mod linear;
mod nobody_owns;
mod observers;
mod operators_calls;
mod operators_table;
mod proofs;
mod racing;
mod seizing;
mod starting;
mod storm;
mod strangers;
mod turnmodel;
mod writers;
