//! The three policies that come with the program.

use crate::policy::{Origin, Source};

/// One person and their agents: the default.
pub const SOLO: &str = include_str!("../policy/solo.cedar");
/// Agents are asked before they reach beyond their directory.
pub const CAREFUL: &str = include_str!("../policy/careful.cedar");
/// Agents run only what is listed.
pub const LOCKED: &str = include_str!("../policy/locked.cedar");

/// Their names and texts.
pub const READY: [(&str, &str); 3] = [("solo", SOLO), ("careful", CAREFUL), ("locked", LOCKED)];

impl Source {
    /// A policy that comes with the program, by its name.
    #[must_use]
    pub fn ready(name: &str) -> Option<Source> {
        let (name, text) = READY.into_iter().find(|(known, _)| *known == name)?;
        Some(Source { file: format!("{name}.cedar"), text: text.to_owned(), origin: Origin::Ready })
    }
}
