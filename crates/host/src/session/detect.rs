//! `--detect`: ends of runs whose shell does not tell, inferred from what the terminal shows and reported as inferred.

use super::Session;
use holdfast_types::Offset;
use holdfast_wire::runs::{Detect, RunId};
use holdfast_wire::{Code, Fault};
use regex::Regex;
use std::time::Duration;
use tokio::time::Instant;

/// Of output, so much is looked at for the last line.
const LAST_LINE_BYTES: u64 = 4096;
/// Largest expression, and what it may be compiled to: a person's prompt needs a few KiB. The worst of this size takes a tenth of
/// a second for a line.
const PATTERN_BYTES_MAX: usize = 4096;
const REGEX_BYTES_MAX: usize = 256 << 10;

enum End {
    Quiet(Duration),
    Prompt(Regex),
}

/// Whether a way to notice the end can be used.
pub(crate) fn check(detect: &Detect) -> Result<(), Fault> {
    End::new(detect).map(|_| ())
}

impl End {
    fn new(detect: &Detect) -> Result<End, Fault> {
        match detect {
            Detect::Quiet(ms) if *ms > 0 => Ok(End::Quiet(Duration::from_millis(*ms))),
            Detect::Quiet(_) => Err(Fault::new(Code::BadRequest, "`--detect quiet` needs a duration above 0")),
            Detect::Prompt(text) if text.len() > PATTERN_BYTES_MAX => Err(Fault::new(
                Code::BadRequest,
                format!("the expression in `--detect prompt` may have at most {PATTERN_BYTES_MAX} bytes"),
            )),
            Detect::Prompt(text) => {
                regex::RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build().map(End::Prompt).map_err(|error| {
                    Fault::new(Code::BadRequest, format!("invalid regular expression in `--detect prompt`: {error}"))
                })
            }
        }
    }
}

impl Session {
    /// Follows a run until the terminal shows its end.
    pub(crate) fn watch_for_end(&self, id: RunId, detect: &Detect) -> Result<(), Fault> {
        let end = End::new(detect)?;
        let Some((this, run)) = self.this.upgrade().zip(self.run(id)) else { return Ok(()) };
        tokio::task::spawn_local(async move {
            let mut seen = run.typed_at;
            let is_on = || this.is_live() && this.run(id).is_some_and(|run| !run.state.is_over());
            while is_on() {
                let quiet = match &end {
                    End::Quiet(quiet) => Some(*quiet),
                    End::Prompt(_) => None,
                };
                let began = Instant::now();
                let more = this.until(quiet, || (this.heads().0 > seen || !is_on()).then_some(())).await;
                let head = this.heads().0;
                let over = match &end {
                    End::Quiet(quiet) => more.is_none() && began.elapsed() >= *quiet,
                    End::Prompt(regex) => match this.last_line(run.typed_at, head) {
                        Some(line) => {
                            let regex = regex.clone();
                            // One search at a time for each run, and never on this thread.
                            let searched = tokio::task::spawn_blocking(move || regex.is_match(&line));
                            searched.await.unwrap_or(false)
                        }
                        None => false,
                    },
                };
                seen = head;
                if over {
                    this.state.borrow_mut().core.runs.inferred(id, head, crate::now_ms());
                    this.save_runs();
                }
            }
        });
        Ok(())
    }

    /// What stands behind the last line feed since `from`, if there is one: the line that was typed is not the answer to it.
    fn last_line(&self, from: Offset, head: Offset) -> Option<String> {
        let text = self.text_between(from.max(head.saturating_sub(LAST_LINE_BYTES)), head);
        text.rsplit_once('\n').map(|(_, line)| line.to_owned())
    }
}
