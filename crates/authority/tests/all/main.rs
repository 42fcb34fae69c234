//! What the authority promises, played through on the real code.

#![allow(clippy::unwrap_used)] // a test that cannot go on says where

mod claims;
mod explore;
mod grants;
mod journal;
mod long_run;
mod model;
mod terms;
mod world;
