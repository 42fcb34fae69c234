//! Answering the session's queries: the terminal that writes does, from an offset on which the host and it agree.
//!
//! The host answers what lies before, and what this terminal filtered out between the host's request and its start.

use super::machine::Attached;
use super::output::View;
use holdfast_screen::QueryFilter;
use holdfast_wire::params::Answers;

/// What is to change about answering.
#[derive(Debug, Default)]
pub struct Duty {
    /// The host asked us to answer from this offset on.
    pub begin: Option<u64>,
    /// We write no longer, so we answer no longer.
    pub stop: bool,
}

impl Attached {
    /// The host wants this terminal to answer from an offset on.
    pub(crate) fn told_to_answer(&mut self, from: u64) {
        if std::mem::take(&mut self.duty.stop) && self.answers {
            // It never came to stopping: everything has reached the terminal as it was.
            self.update(None, Some(Answers { on: true, left: from, from }));
        } else if !self.answers {
            self.duty.begin = Some(from);
        }
    }

    /// Begins or stops, as soon as it is known what is on the terminal.
    pub(crate) fn settle_duty(&mut self) {
        if self.duty.stop {
            if self.take_terminal() {
                self.stop_answering();
            }
        } else if self.duty.begin.is_some() && !self.answers && self.take_terminal() {
            self.begin_answering();
        }
    }

    /// Begins where the output stands, if that is far enough. The terminal must be ours.
    pub(crate) fn begin_answering(&mut self) {
        let Some(from) = self.duty.begin.filter(|_| !self.answers) else { return };
        let drawn = matches!(self.view, View::Drawn { .. });
        if drawn || self.wanted.is_some() || self.paint_asked.is_some() {
            // A paint is where we begin then; it reports. What is drawn cannot answer, and says so then.
            self.answers = true;
            self.wanted.get_or_insert(false);
            return;
        }
        let View::Raw(Some(filter)) = &mut self.view else { return };
        if self.position < from {
            return;
        }
        // Within a string that is being dropped the rest must go too: a little later, then.
        let Some(held) = filter.give_up() else { return };
        self.put(held);
        self.view = View::Raw(None);
        self.answers = true;
        self.duty.begin = None;
        self.update(None, Some(Answers { on: true, left: from, from: self.position }));
    }

    fn stop_answering(&mut self) {
        let left = self.duty.begin.take().unwrap_or(self.position);
        self.duty.stop = false;
        self.answers = false;
        if let View::Raw(filter @ None) = &mut self.view {
            *filter = Some(QueryFilter::new());
        }
        self.update(None, Some(Answers { on: false, left, from: left.max(self.position) }));
    }
}
