//! Policy before effect: facts about an act in; allow, ask or deny out.
//!
//! A command line is taken apart ([`Line`]), its words are resolved against the live directory ([`Places`], which the caller brings),
//! and what it would do gets names ([`Risk`]). Those facts go to a [`Policy`], which is written in Cedar under the schema in
//! `spec/gate.cedarschema`: deny before ask before allow. What cannot be known is never "no match": a line that cannot be parsed,
//! a command that only the live shell knows, and a rule that fails while it is evaluated are never an allow for an agent.
//!
//! Knows no clock, file or socket: the caller collects the facts and performs what was decided.

mod facts;
mod find;
mod guess;
#[cfg(feature = "cedar")]
mod judge;
mod line;
mod origins;
mod places;
#[cfg(feature = "cedar")]
mod policy;
#[cfg(feature = "cedar")]
mod ready;
mod remote;
mod risk;
mod targets;
mod walk;
mod word;
mod wrappers;

pub use facts::{Facts, Promised, Seen, Standing, Surroundings, look, look_at_write};
#[cfg(feature = "cedar")]
pub use judge::{Action, Judge, OPAQUE_RULE, Outcome, Principal, Request, Resource, Verdict};
pub use line::{Command, LINE_BYTES_MAX, Line};
pub use origins::{Named, files_of, shapes};
pub use places::{Lexical, Places, is_below};
#[cfg(feature = "cedar")]
pub use policy::{Origin, Policy, Problem, Rule, SCHEMA, Source};
#[cfg(feature = "cedar")]
pub use ready::{CAREFUL, LOCKED, READY, SOLO};
pub use risk::Risk;
pub use targets::{Does, Target};
pub use word::{Head, Word};
