//! What a session's shell says of itself, and the runs in it: marks in, states out.
//!
//! A run's end is believed only under its token, which nobody knew before the shell printed it. While a run is on, all other
//! marks are a program's output and mean nothing. Between runs they are only a hint: who types asks the kernel too.
//!
//! Marks may be told again, from any place on: what is known stays known. So nothing of this needs saving but the runs
//! themselves; the ring tells the rest after a crash.
//!
//! Knows nothing of terminals, files or clocks.

mod reports;
mod run;
mod typed;

pub use run::Run;
pub use typed::TypedLine;

use holdfast_screen::{Mark, ShellMark};
use holdfast_types::{Exit, Offset, TimeMs};
use holdfast_wire::runs::{RunEnd, RunId, RunState};
use std::collections::VecDeque;

/// Runs remembered per session: a day of an agent that runs something each five minutes.
pub const RUNS_MAX: usize = 256;
/// Bytes of a command that are kept to be shown.
pub const COMMAND_SHOWN_BYTES_MAX: usize = 4096;

/// What the shell does, as its marks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShellState {
    /// It said nothing yet.
    #[default]
    Unknown,
    /// A prompt is being printed.
    Prompting,
    /// It reads a command.
    Prompt {
        /// Where the prompt ended.
        at: Offset,
    },
    /// It wants the rest of a command.
    More,
    /// A command runs.
    Busy,
}

/// What is known of the line the shell reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Empty for certain: nothing was typed, or a command started since.
    Empty,
    /// What was typed last ended a line, and a prompt came since; or it threw the line away. It may still be on its way.
    Ended,
    /// Something may stand there.
    Unsure,
}

/// Something typed that was no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Typed {
    at: Offset,
    last: LastKey,
}

/// What the last key of something typed does to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastKey {
    /// It stands there, or nobody knows.
    Other,
    /// It ends the line.
    Enter,
    /// It throws the line away, at a prompt; an empty one without a word in fish.
    Interrupt,
}

impl LastKey {
    /// Of these keys.
    pub fn of(keys: &[u8]) -> LastKey {
        match keys.last() {
            Some(b'\r' | b'\n') => LastKey::Enter,
            Some(0x03) => LastKey::Interrupt,
            Some(_) | None => LastKey::Other,
        }
    }
}

/// The shell wrote what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Into which of its files.
    pub file: u8,
    /// Where the prompt began that says so.
    pub prompt_at: Offset,
    /// Where the command before it started, if that was told.
    pub started_at: Option<Offset>,
    /// Where the shell is.
    pub cwd: Option<String>,
}

/// The runs of a session, and what its shell does.
#[derive(Debug, Default)]
pub struct Tracker {
    shell: ShellState,
    cwd: Option<String>,
    /// Where the last command started.
    command_at: Option<Offset>,
    /// Where the last prompt was announced.
    prompt_at: Option<Offset>,
    typed: Option<Typed>,
    /// What was typed lately, and where the output stood.
    keys: VecDeque<typed::Keyed>,
    /// The shell says what its line holds when it is asked by a key.
    asks: bool,
    /// What it said last, and where.
    answered: Option<(Offset, bool)>,
    runs: VecDeque<Run>,
    current: Option<RunId>,
    /// Ended; its directory is told with the next prompt.
    unsettled: Option<RunId>,
    unsaved: Vec<RunId>,
    /// Over, and nobody was told.
    untold: Vec<RunId>,
    /// Something was told while somebody waits for it.
    news: bool,
    /// The shell wants more of what was typed, and nobody will type it.
    incomplete: bool,
    /// Its keys may have been thrown away, so its token was taken back; and whether a command started without one since.
    flushed: Option<(RunId, bool)>,
    /// How many wait for a prompt.
    expected: u32,
    /// Where the command started whose prompt has not come yet.
    started_at: Option<Offset>,
    /// The state files that were written, the last time for each.
    written: Vec<Written>,
    /// Where the shell read command lines lately.
    lines: VecDeque<ReadLine>,
}

/// Output between which the shell's own line editor read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadLine {
    from: Offset,
    /// None: it still reads.
    to: Option<Offset>,
    /// Where a line was ended: what was typed behind it, and before the shell asked for more, is for whoever reads next.
    ended: Option<Offset>,
}

/// Command lines remembered: what was typed is asked about within seconds.
const LINES_MAX: usize = 32;

impl Tracker {
    /// With the runs an earlier host left.
    pub fn resume(runs: Vec<Run>) -> Tracker {
        let current = runs.iter().rev().find(|run| !run.state.is_over()).map(|run| run.id);
        Tracker { runs: runs.into(), current, ..Tracker::default() }
    }

    /// A shell that can be asked is back at the prompt where it stood, with whatever stands in its line: only the shell knows.
    pub fn taken_back(&mut self, at: Offset) {
        self.shell = ShellState::Prompt { at };
        self.asks = true;
        self.keys.push_back(typed::Keyed { from: at, keys: None, by: None });
        self.typed(at, LastKey::Other);
    }

    /// What the shell does.
    pub fn shell(&self) -> ShellState {
        self.shell
    }

    /// Where the shell is.
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// All runs that are remembered, oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// A run by its id.
    pub fn get(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// The run that is on.
    pub fn current(&self) -> Option<&Run> {
        self.current.and_then(|id| self.get(id))
    }

    /// Its directory is not known yet, and will be in a moment.
    pub fn is_unsettled(&self, id: RunId) -> bool {
        self.unsettled == Some(id)
    }

    /// Whether output must be looked at as it comes.
    pub fn is_followed(&self) -> bool {
        self.expected > 0 || self.unsettled.is_some() || self.current().is_some_and(|run| !run.own)
    }

    /// Runs that changed since the last call, as they are now.
    pub fn take_unsaved(&mut self) -> Vec<Run> {
        let ids = std::mem::take(&mut self.unsaved);
        ids.into_iter().filter_map(|id| self.get(id).cloned()).collect()
    }

    /// The same, and the next call gives them again.
    pub(crate) fn unsaved(&self) -> Vec<Run> {
        self.unsaved.iter().filter_map(|id| self.get(*id).cloned()).collect()
    }

    /// Runs that are over since the last call; each is given once.
    pub fn take_over(&mut self) -> Vec<Run> {
        let ids = std::mem::take(&mut self.untold);
        ids.into_iter().filter_map(|id| self.get(id).cloned()).collect()
    }

    /// Whether something was told since the last call that somebody may wait for.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether a run is to be taken back: half a command was typed.
    pub fn take_incomplete(&mut self) -> bool {
        std::mem::take(&mut self.incomplete)
    }

    /// Which of its state files the shell has written since the last call, in that order.
    pub fn take_written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }

    /// The shell wants the rest of a command, and does not say so.
    pub fn wants_more(&mut self) {
        self.shell = ShellState::More;
    }

    /// So many more wait for a prompt.
    pub fn expect(&mut self, by: i32) {
        self.expected = self.expected.saturating_add_signed(by);
    }

    /// A run begins; it has not been typed yet.
    pub fn begin(&mut self, run: Run) {
        if self.runs.len() >= RUNS_MAX {
            // Those with a key last: somebody may still ask how it ended. Never one that is on: its key would be free.
            let oldest = forgotten_first(self.runs.iter());
            self.runs.remove(oldest);
        }
        self.unsettled = None;
        self.current = Some(run.id);
        self.changed(run.id);
        self.runs.push_back(run);
    }

    /// It was not typed after all.
    pub fn refuse(&mut self, id: RunId, now: TimeMs) {
        self.finish(id, |run| run.over(RunEnd::NotStarted, None, run.from, now));
    }

    /// Somebody interrupts it.
    pub fn cancel(&mut self, id: RunId) {
        self.change(id, |run| run.cancelled = true);
    }

    /// What was typed was thrown away, perhaps the keys of the run that is starting: its token must be taken back then.
    #[must_use]
    pub fn flushed(&mut self) -> Option<RunId> {
        let starts = |run: &&Run| run.state == RunState::Starting && !run.own && !run.token.is_empty();
        let id = self.current().filter(starts)?.id;
        self.flushed = Some((id, false));
        Some(id)
    }

    /// The terminal shows that it is over.
    pub fn inferred(&mut self, id: RunId, to: Offset, now: TimeMs) {
        self.finish(id, |run| run.over(RunEnd::Inferred, None, to, now));
    }

    /// Nobody will know what became of it; whether its command can have started is said.
    pub fn lose(&mut self, id: RunId, can_have_started: bool, to: Offset, now: TimeMs) {
        let end = if can_have_started { RunEnd::Unknown } else { RunEnd::NotStarted };
        self.finish(id, |run| {
            run.over(end, None, to, now);
            run.state = RunState::Lost;
        });
    }

    /// Whether keys were typed at the shell's prompt: from the first to the last while its line editor read.
    pub fn is_command_line(&self, from: Offset, to: Offset) -> bool {
        let read = |line: &&ReadLine| line.from <= from && line.to.is_none_or(|end| to < end);
        self.lines.iter().rev().find(read).is_some_and(|line| line.ended.is_none_or(|ended| ended > from))
    }

    fn reads_line(&mut self, from: Offset) {
        if self.lines.back().is_some_and(|last| last.from >= from) {
            return;
        }
        self.lines.push_back(ReadLine { from, to: None, ended: None });
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
        }
    }

    fn line_is_read(&mut self, at: Offset) {
        if let Some(last) = self.lines.back_mut().filter(|last| last.to.is_none() && last.from < at) {
            last.to = Some(at);
        }
    }

    /// Something other than a run was typed where the output stood at `at`.
    pub fn typed(&mut self, at: Offset, last: LastKey) {
        if last == LastKey::Enter
            && let Some(line) = self.lines.iter_mut().rev().find(|line| line.from <= at)
        {
            line.ended = line.ended.max(Some(at));
        }
        if self.typed.is_none_or(|typed| typed.at <= at) {
            self.typed = Some(Typed { at, last });
        }
    }

    /// Whether the shell's line is empty, as far as is known from what was typed.
    pub fn line(&self) -> Line {
        let Some(Typed { at, last }) = self.typed else { return Line::Empty };
        let started_since = self.command_at.is_some_and(|started| at < started);
        let prompt_since = self.prompt_at.is_some_and(|prompt| at < prompt);
        match last {
            LastKey::Other => Line::Unsure,
            LastKey::Enter | LastKey::Interrupt if started_since => Line::Empty,
            LastKey::Enter if !prompt_since => Line::Unsure,
            LastKey::Enter | LastKey::Interrupt => Line::Ended,
        }
    }

    /// Whether this host was there when something was typed last: what it knows of the line is then all there is to know.
    pub fn has_seen_typing(&self) -> bool {
        self.typed.is_some()
    }

    /// Whether the shell can be asked what its line holds.
    pub fn can_be_asked(&self) -> bool {
        self.asks
    }

    /// What the shell answered behind `asked_at`: where, and whether its line is empty.
    pub fn answer_behind(&self, asked_at: Offset) -> Option<(Offset, bool)> {
        self.answered.filter(|(at, _)| *at > asked_at)
    }

    /// The shell itself said that nothing of what was typed up to here stands in its line.
    pub fn line_is_empty(&mut self, at: Offset) {
        self.typed = self.typed.filter(|typed| typed.at > at);
    }

    /// An interrupt was typed last, and the shell has not answered with another prompt.
    pub fn is_interrupted(&self) -> bool {
        self.typed.is_some_and(|typed| typed.last == LastKey::Interrupt && Some(typed.at) >= self.prompt_at)
            && self.line() == Line::Ended
    }

    /// The shell said something, or somebody who pretends to be one.
    pub fn told_all(&mut self, marks: &[Mark], now: TimeMs) {
        for (at, mark) in marks.iter().filter_map(|mark| Some((mark.at, mark.kind.shell()?))) {
            self.told(at, mark, now);
        }
    }

    /// The shell said something.
    pub fn told(&mut self, at: Offset, mark: ShellMark<'_>, now: TimeMs) {
        self.news |= self.is_followed();
        // One that is watched, or a session's own, is told by no mark: they say what the shell does, as ever.
        let state = self.current().filter(|run| !run.token.is_empty()).map(|run| run.state);
        match (state, mark) {
            (Some(RunState::Running), ShellMark::CommandStart { token }) => self.started_again(at, token),
            (Some(RunState::Running), ShellMark::CommandEnd { status, token: Some(token) }) => {
                self.ended(at, status, token, now);
            }
            // What a program prints.
            (Some(RunState::Running), _) => {}
            (Some(RunState::Starting), mark) if self.current().is_some_and(|run| at > run.typed_at) => {
                self.told_starting(at, mark, now);
            }
            (_, mark) => self.told_idle(at, mark),
        }
    }

    fn told_starting(&mut self, at: Offset, mark: ShellMark<'_>, now: TimeMs) {
        let Some(id) = self.current else { return };
        let is_its = |token: Option<&str>| self.get(id).is_some_and(|run| token == Some(&run.token));
        match mark {
            // Of a run that may never have been typed: whose command this is, nobody knows.
            ShellMark::CommandStart { token } if self.is_flushed(id) && !is_its(token) => {
                self.flushed = Some((id, true));
                self.told_idle(at, mark);
            }
            ShellMark::PromptStart { .. } if self.flushed == Some((id, true)) => {
                self.lose(id, true, at, now);
                self.told_idle(at, mark);
            }
            ShellMark::CommandStart { .. } => {
                self.change(id, |run| {
                    run.state = RunState::Running;
                    run.from = at;
                });
                self.told_idle(at, mark);
            }
            // Where its start could not be told.
            ShellMark::CommandEnd { status, token: Some(token) } => self.ended(at, status, token, now),
            ShellMark::PromptStart { last, .. } => {
                self.finish(id, |run| {
                    run.from = run.typed_at;
                    // What a shell says of the line before is nothing to go by.
                    run.over(RunEnd::NotStarted, last.filter(|status| *status != 0), at, now);
                });
                self.told_idle(at, mark);
            }
            ShellMark::Continuation => {
                self.incomplete = true;
                self.told_idle(at, mark);
            }
            ShellMark::CommandEnd { .. } | ShellMark::PromptEnd | ShellMark::Line { .. } | ShellMark::Cwd(_) => {
                self.told_idle(at, mark);
            }
        }
    }

    fn is_flushed(&self, id: RunId) -> bool {
        self.flushed.is_some_and(|(flushed, _)| flushed == id)
    }

    fn told_idle(&mut self, at: Offset, mark: ShellMark<'_>) {
        match mark {
            ShellMark::PromptStart { state, asks, .. } => {
                self.asks = asks;
                if let Some(file) = state {
                    let started_at = self.started_at.take().filter(|started| *started < at);
                    self.written.retain(|other| other.file != file);
                    self.written.push(Written { file, prompt_at: at, started_at, cwd: self.cwd.clone() });
                }
                self.prompt_at = self.prompt_at.max(Some(at));
                self.line_is_read(at);
                self.shell = ShellState::Prompting;
                self.unsettled = None;
            }
            ShellMark::PromptEnd => {
                self.shell = ShellState::Prompt { at };
                self.reads_line(at);
                self.unsettled = None;
            }
            ShellMark::Line { empty } => self.answered = Some((at, empty)),
            ShellMark::Continuation => {
                self.shell = ShellState::More;
                self.line_is_read(at);
                self.reads_line(at);
            }
            ShellMark::CommandStart { .. } => {
                self.shell = ShellState::Busy;
                self.line_is_read(at);
                self.command_at = self.command_at.max(Some(at));
                // The first since the last prompt: what a program prints comes later.
                self.started_at = Some(self.started_at.map_or(at, |first| first.min(at)));
            }
            ShellMark::CommandEnd { .. } => self.shell = ShellState::Prompting,
            ShellMark::Cwd(path) => {
                self.cwd = Some(path.to_owned());
                if let Some(id) = self.unsettled {
                    self.change(id, |run| run.cwd_after = Some(path.to_owned()));
                }
            }
        }
    }

    /// A command that came in a file is shown first: its output begins behind that. An old bash does not know the token yet; this is
    /// its own mark all the same, since nothing of the command is executed before it.
    fn started_again(&mut self, at: Offset, token: Option<&str>) {
        let Some(id) = self.current else { return };
        let is_its = |run: &Run| token.is_none_or(|token| run.token == token);
        if self.get(id).is_some_and(|run| run.by_file && is_its(run) && run.from < at) {
            self.change(id, |run| {
                run.from = at;
                run.by_file = false;
            });
        }
    }

    fn ended(&mut self, at: Offset, status: Option<i32>, token: &str, now: TimeMs) {
        let Some(run) = self.current().filter(|run| run.token == token) else { return };
        let (id, to) = (run.id, at.saturating_sub(end_mark_bytes(status, token)));
        self.finish(id, |run| run.over(RunEnd::Exact, status, to, now));
        self.unsettled = Some(id);
        self.shell = ShellState::Prompting;
    }

    /// Everything the ring still has was told; `lapped`: not everything since the run was typed.
    pub fn caught_up(&mut self, lapped: bool, head: Offset, now: TimeMs) {
        if let (true, Some(id), ShellState::Prompt { .. }) = (lapped, self.current, self.shell) {
            self.finish(id, |run| run.over(RunEnd::Unknown, None, head, now));
        }
    }

    /// The session is over, and with it what runs there.
    pub fn session_ended(&mut self, exit: Exit, head: Offset, now: TimeMs) {
        let Some((id, state, own)) = self.current().map(|run| (run.id, run.state, run.own)) else { return };
        match (exit, state) {
            (Exit::Lost, _) => self.lose(id, true, head, now),
            (Exit::Code(_) | Exit::Signal(_), RunState::Starting) if !own => {
                self.finish(id, |run| run.over(RunEnd::Unknown, None, head, now));
            }
            (Exit::Code(_) | Exit::Signal(_), _) => {
                let status = i32::from(exit.as_status());
                self.finish(id, |run| run.over(RunEnd::Exact, Some(status), head, now));
            }
        }
    }

    fn finish(&mut self, id: RunId, how: impl FnOnce(&mut Run)) {
        if self.current == Some(id) {
            self.current = None;
            self.untold.push(id);
            self.change(id, how);
        }
    }

    fn change(&mut self, id: RunId, how: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == id) {
            how(run);
            self.changed(id);
        }
    }

    fn changed(&mut self, id: RunId) {
        if !self.unsaved.contains(&id) {
            self.unsaved.push(id);
        }
    }
}

/// Which of so many runs is forgotten before the others.
pub fn forgotten_first<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> usize {
    let over = || runs.clone().enumerate().filter(|(_, run)| run.state.is_over());
    let unkeyed = over().find(|(_, run)| run.key.is_none());
    unkeyed.or_else(|| over().next()).map_or(0, |(at, _)| at)
}

/// What the sequence begins with that tells a command's end.
const END_MARK: &[u8] = b"\x1b]133;D;";

/// Whether the beginning of a sequence may become one that tells an end.
pub fn may_tell_an_end(unfinished: &[u8]) -> bool {
    END_MARK.iter().zip(unfinished).all(|(mark, found)| mark == found)
}

/// Bytes of the sequence that told the end.
fn end_mark_bytes(status: Option<i32>, token: &str) -> u64 {
    let status = status.map_or(0, |status| status.to_string().len());
    ("\x1b]133;D;;hf=\x07".len() + status + token.len()) as u64
}

#[cfg(test)]
mod tests;
