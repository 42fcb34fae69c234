//! What was typed lately, by whom, and what of it stands at the prompt.

use super::{LastKey, Line, ShellState, Tracker, reports};
use holdfast_authority::Burst;
use holdfast_types::{Actor, Offset};

/// Bursts of typing that are remembered, and keys of a line: a person types fewer at one prompt.
const BURSTS_MAX: usize = 256;
const KEYS_BYTES_MAX: usize = 16 * 1024;

/// Something that was typed.
#[derive(Debug, Clone)]
pub(super) struct Keyed {
    /// Where the output stood.
    pub(super) from: Offset,
    /// None: only the shell knows.
    pub(super) keys: Option<Vec<u8>>,
    /// By whom; none: nobody knows.
    pub(super) by: Option<Actor>,
}

/// A line that was entered at the prompt, key by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedLine {
    /// All keys since the prompt; none: only the shell knows what stood there.
    pub keys: Option<Vec<u8>>,
    /// Who typed, in order; who ended the line is last.
    pub by: Vec<Option<Actor>>,
}

impl Tracker {
    /// Somebody typed.
    pub(crate) fn saw_typing(&mut self, burst: &Burst, by: Option<Actor>) {
        let keys = burst.keys.as_ref().map(|keys| keys.0.as_slice());
        let kept = keys.filter(|keys| keys.len() <= KEYS_BYTES_MAX).map(<[u8]>::to_vec);
        self.keys.push_back(Keyed { from: burst.from, keys: kept, by });
        if self.keys.len() > BURSTS_MAX {
            self.keys.pop_front();
        }
        if !keys.is_some_and(reports::are_all_of) {
            self.typed(burst.to, keys.map_or(LastKey::Other, LastKey::of));
        }
    }

    /// The keys that were typed at the prompt so far, by whomever. None: there is no prompt, or only the shell knows what stands
    /// there.
    #[must_use]
    pub fn keys_at_prompt(&self) -> Option<Vec<u8>> {
        let ShellState::Prompt { at } = self.shell else { return None };
        let here = self.keys.iter().filter(|typed| typed.from >= at);
        let before = self.keys.iter().rev().find(|typed| typed.from < at);
        // What was typed ahead and not entered stands at this prompt.
        let is_over = |keys: &Option<Vec<u8>>| keys.as_ref().is_some_and(|keys| LastKey::of(keys) != LastKey::Other);
        let is_fresh = before.is_none_or(|typed| is_over(&typed.keys)) || self.line() == Line::Empty;
        let is_whole = self.keys.len() < BURSTS_MAX || before.is_some();
        let mut all = Vec::new();
        for typed in here {
            all.extend_from_slice(typed.keys.as_ref()?);
        }
        (is_fresh && is_whole && all.len() <= KEYS_BYTES_MAX).then_some(all)
    }

    /// Who typed at the prompt so far.
    #[must_use]
    pub fn typists_at_prompt(&self) -> Vec<Option<Actor>> {
        let ShellState::Prompt { at } = self.shell else { return Vec::new() };
        let mut all: Vec<Option<Actor>> = Vec::new();
        for typed in self.keys.iter().filter(|typed| typed.from >= at) {
            if !all.contains(&typed.by) {
                all.push(typed.by.clone());
            }
        }
        all
    }

    /// The line by which a command was started, where it was typed and is still remembered.
    #[must_use]
    pub fn typed_line(&self, started: Offset) -> Option<TypedLine> {
        let line =
            self.lines.iter().rev().find(|line| line.from < started && line.to.is_none_or(|to| to >= started))?;
        let typed = || self.keys.iter().filter(|typed| typed.from >= line.from && typed.from < started);
        let by: Vec<Option<Actor>> = typed().map(|typed| typed.by.clone()).collect();
        let keys = typed().map(|typed| typed.keys.clone()).collect::<Option<Vec<_>>>().map(|all| all.concat());
        (!by.is_empty()).then_some(TypedLine { keys, by })
    }
}
