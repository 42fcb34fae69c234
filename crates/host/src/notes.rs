//! What a person should know of a session, one sentence at a time.
//!
//! What is told of a file that cannot be written goes when the next write succeeds. What happened to the past stays.

use std::fmt::Display;

/// What a note is about, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Why it is not served.
    Life,
    /// Something that was lost or damaged.
    Past,
    /// Who judges its programs.
    Seam,
    /// The journal's files.
    Journal,
    /// Whether the journal would survive a power cut.
    Sync,
    /// How it ended.
    Spec,
    /// What became of runs.
    Runs,
    /// Checkpoints that the host makes by itself.
    Checkpoints,
    /// What its shell is made of.
    Shell,
    /// The variables of the last client.
    Variables,
}

const KINDS: usize = About::Variables as usize + 1;

/// A session's notes.
#[derive(Debug, Default)]
pub struct Notes([Option<String>; KINDS]);

impl Notes {
    /// With something about the past, where there is something.
    pub fn of_past(note: Option<String>) -> Notes {
        let mut notes = Notes::default();
        notes.0[About::Past as usize] = note;
        notes
    }

    /// Notes something.
    pub fn add(&mut self, about: About, note: impl Into<String>) {
        self.0[about as usize] = Some(note.into());
    }

    /// Something was written, or could not be: then `what` and why are noted until it can.
    pub fn wrote<T, E: Display>(&mut self, about: About, what: &str, result: &Result<T, E>) {
        self.0[about as usize] = result.as_ref().err().map(|error| format!("{what}: {error}"));
    }

    /// The gravest.
    pub fn first(&self) -> Option<&str> {
        self.0.iter().flatten().next().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_file_is_told_until_a_write_succeeds_and_the_past_stays() {
        let mut notes = Notes::of_past(None);
        assert_eq!(notes.first(), None);
        notes.wrote(About::Runs, "runs cannot be written", &Err::<(), _>("full"));
        notes.wrote(About::Journal, "the journal cannot be written", &Err::<(), _>("full"));
        assert_eq!(notes.first(), Some("the journal cannot be written: full"));
        notes.wrote(About::Journal, "the journal cannot be written", &Ok::<(), &str>(()));
        assert_eq!(notes.first(), Some("runs cannot be written: full"));
        notes.add(About::Past, "it was damaged");
        notes.wrote(About::Runs, "runs cannot be written", &Ok::<(), &str>(()));
        assert_eq!(notes.first(), Some("it was damaged"));
    }
}
