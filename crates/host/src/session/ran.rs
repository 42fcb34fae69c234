//! What is shown of runs: where they stand, and their output by offsets and as text.

use super::Session;
use crate::shells::{self, Kind};
use holdfast_abi::ring::{Copied, Ring};
use holdfast_abi::start::Start;
use holdfast_screen::{PlainText, SettledText};
use holdfast_session::Run;
use holdfast_store::stderr;
use holdfast_types::Offset;
use holdfast_wire::params::Gap;
use holdfast_wire::runs::{
    OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES, RunAnswer, RunId, RunOutputAnswer, RunOutputParams, RunView,
};
use holdfast_wire::{Code, Fault};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// Most bytes in one answer.
const OUTPUT_BYTES_MAX: u32 = 1024 * 1024;

/// What zsh prints behind a command is as long as the terminal is wide.
const LINE_MARK_BYTES_MAX: u64 = 4096;
/// An echo is looked through this far: longer commands come in a file, and their line is short.
const ECHO_BYTES_MAX: u64 = 32 * 1024;

/// How long what a run wrote last may take from its end to the file; and between two looks.
const STDERR_WAIT_MS: u64 = 2_000;
const STDERR_PAUSE: Duration = Duration::from_millis(5);

impl Session {
    /// A run as clients see it.
    pub(crate) fn run_view(&self, run: &Run) -> RunView {
        let (from, to) = run.range(self.seen_of(run));
        let to = self.without_line_mark(run, to);
        let from = if run.was_never_told() { self.behind_echo(from, to) } else { from };
        let state = self.state.borrow();
        let until = run.ended_ms.unwrap_or_else(crate::now_ms);
        RunView {
            id: run.id,
            session: self.id,
            name: state.spec.name.clone(),
            key: run.key.clone(),
            command: run.command.clone(),
            actor: run.actor.clone(),
            act: run.act,
            state: run.state,
            exit_code: run.exit_code,
            end: run.end,
            started_ms: run.started_ms,
            ended_ms: run.ended_ms,
            duration_ms: until.saturating_sub(run.started_ms),
            from,
            to,
            cwd_before: run.cwd_before.clone(),
            cwd: run.cwd_after.clone(),
            own_session: run.own,
            outcome: None,
            attempt: None,
        }
    }

    /// Up to where the output is known for a run: where its end is a mark in the output, nothing counts before it was parsed.
    fn seen_of(&self, run: &Run) -> Offset {
        let state = self.state.borrow();
        let head = state.ring.as_ref().map_or(run.from, Ring::head);
        if run.token.is_empty() { head } else { head.min(state.picture.seen_of_commands()) }
    }

    /// Where a run's output ends, before what zsh prints behind every command; while it runs, before what may become that.
    fn without_line_mark(&self, run: &Run, to: Offset) -> Offset {
        if self.state.borrow().spec.shell != Some(Kind::Zsh) || run.own {
            return to;
        }
        let (_, bytes) = self.bytes_between(run.from.max(to.saturating_sub(LINE_MARK_BYTES_MAX)), to);
        let output = match run.to {
            Some(_) => shells::without_line_mark(&bytes),
            None => shells::before_line_mark(&bytes),
        };
        to - (bytes.len() - output.len()) as u64
    }

    /// Where the output begins of a run whose shell never told its start, because it did not parse the line, does not print that
    /// mark, or went away: behind the line that was typed.
    fn behind_echo(&self, from: Offset, to: Offset) -> Offset {
        let (at, bytes) = self.bytes_between(from, to.min(from + ECHO_BYTES_MAX));
        match bytes.iter().position(|byte| *byte == b'\n') {
            // Its beginning is gone, and the echo with it.
            _ if at > from => from,
            Some(end) => at + end as u64 + 1,
            None if bytes.len() as u64 == ECHO_BYTES_MAX => from,
            None => to,
        }
    }

    /// Waits until there is output of a run from an offset on, or it is over.
    pub(crate) async fn run_grown(&self, id: RunId, params: &RunOutputParams) {
        let has_grown = || {
            self.run(id).is_none_or(|run| {
                let view = self.run_view(&run);
                run.state.is_over() || view.to > params.from.unwrap_or(view.from).max(view.from)
            })
        };
        // What is said of it holds for all output so far, whether a wake told of it or not.
        if self.run(id).is_some_and(|run| !run.state.is_over()) {
            self.look();
        }
        if params.wait_ms > 0 && !has_grown() {
            let _watcher = self.await_output();
            self.until(Some(Duration::from_millis(params.wait_ms)), || has_grown().then_some(())).await;
        }
    }

    /// The run that is on.
    pub(crate) fn run_on(&self) -> Option<Run> {
        self.state.borrow().core.runs.current().cloned()
    }

    /// The runs that have a key.
    pub(crate) fn keyed_runs(&self) -> Vec<Run> {
        self.state.borrow().core.runs.runs().filter(|run| run.key.is_some()).cloned().collect()
    }

    /// All runs that are remembered, oldest first.
    pub(crate) fn run_views(&self) -> Vec<RunView> {
        let runs: Vec<Run> = self.state.borrow().core.runs.runs().cloned().collect();
        runs.iter().map(|run| self.with_contract(self.run_view(run))).collect()
    }

    /// A run, and what it printed.
    pub(crate) fn run_answer(&self, run: &Run, existing: bool) -> RunAnswer {
        let view = self.run_view(run);
        let (from, to) = (view.from, view.to);
        let omitted = (to - from > OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES)
            .then(|| Gap { from: from + OUTPUT_HEAD_BYTES, to: to - OUTPUT_TAIL_BYTES });
        let output = match omitted {
            None => self.settled_between(from, to),
            Some(gap) => {
                format!("{}\n[…]\n{}", self.settled_between(from, gap.from), self.settled_between(gap.to, to))
            }
        };
        let truncated = omitted.is_some() || self.oldest() > from;
        let stderr = if run.own { self.stderr_of_run() } else { None };
        RunAnswer { run: self.with_contract(view), existing, output, truncated, omitted, stderr }
    }

    /// Starts the session's command with a standard error of its own.
    pub(crate) fn separate_stderr(&self, start: &mut Start) -> Result<(), Fault> {
        let program = crate::program().map_err(|error| {
            Fault::new(Code::CannotStart, format!("cannot find the holdfast program itself: {error}"))
        })?;
        let file = self.dir.join(stderr::NAME).into_os_string().into_vec();
        let argv0 = std::mem::take(&mut start.argv0);
        let words = [program.into_os_string().into_vec(), b"session".to_vec(), b"stderr".to_vec(), file, argv0];
        start.argv.splice(0..0, words);
        Ok(())
    }

    /// What the session's own run wrote to its standard error, where that is kept apart.
    fn stderr_of_run(&self) -> Option<String> {
        let kept = stderr::read(&self.dir.join(stderr::NAME), OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES).ok()??;
        let text = |bytes: &[u8]| {
            let mut text = Vec::new();
            PlainText::new().feed(bytes, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let begin = text(&kept.begin);
        Some(match kept.left_out {
            0 => begin,
            count => format!("{begin}\n[… {count} bytes left out …]\n{}", text(&kept.end)),
        })
    }

    /// Waits a moment for what a run that is over wrote to its standard error last. What it left behind may write more later.
    pub(crate) async fn stderr_whole(&self, id: RunId) {
        let file = self.dir.join(stderr::NAME);
        let ended_ms = self.run(id).filter(|run| run.own && run.state.is_over()).and_then(|run| run.ended_ms);
        let Some(until) = ended_ms.map(|at| at + STDERR_WAIT_MS).filter(|_| file.exists()) else { return };
        while !stderr::is_whole(&file) && crate::now_ms() < until {
            tokio::time::sleep(STDERR_PAUSE).await;
        }
    }

    fn oldest(&self) -> Offset {
        let state = self.state.borrow();
        let ended_ring = if state.ring.is_none() { self.open_ring().ok() } else { None };
        state.ring.as_ref().or(ended_ring.as_ref()).map_or(0, Ring::oldest)
    }

    /// Output as text, as far as it is kept.
    pub(super) fn text_between(&self, from: Offset, to: Offset) -> String {
        let (_, bytes) = self.bytes_between(from, to);
        let mut text = Vec::new();
        PlainText::new().feed(&bytes, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Output as the terminal left it: a progress bar is one line.
    fn settled_between(&self, from: Offset, to: Offset) -> String {
        let (_, bytes) = self.bytes_between(from, to);
        let cols = self.state.borrow().core.size.cols();
        String::from_utf8_lossy(&SettledText::of(cols, &bytes)).into_owned()
    }

    /// Output bytes, as far as they are kept, and where they begin.
    fn bytes_between(&self, from: Offset, to: Offset) -> (Offset, Vec<u8>) {
        let state = self.state.borrow();
        let ended_ring = if state.ring.is_none() { self.open_ring().ok() } else { None };
        let Some(ring) = state.ring.as_ref().or(ended_ring.as_ref()) else { return (from, Vec::new()) };
        let mut at = from.max(ring.oldest());
        loop {
            let mut bytes = vec![0; to.min(ring.head()).saturating_sub(at) as usize];
            match ring.copy(at, &mut bytes) {
                Copied::Bytes(count) => {
                    bytes.truncate(count);
                    return (at, bytes);
                }
                Copied::Lapped { oldest } => at = oldest,
                Copied::Ahead { .. } => return (from, Vec::new()),
            }
        }
    }

    /// A run's output bytes.
    pub(crate) fn run_output(&self, run: &Run, params: &RunOutputParams) -> (RunOutputAnswer, Vec<u8>) {
        let view = self.run_view(run);
        let from = params.from.unwrap_or(view.from).clamp(view.from, view.to);
        let wanted = u64::from(params.max.unwrap_or(OUTPUT_BYTES_MAX).clamp(1, OUTPUT_BYTES_MAX));
        // From the oldest on that is kept, if that lies behind.
        let from_kept = from.max(self.oldest()).min(view.to);
        let (at, bytes) = self.bytes_between(from_kept, view.to.min(from_kept + wanted));
        let to = at + bytes.len() as u64;
        let gap = (at > from).then_some(Gap { from, to: at });
        (RunOutputAnswer { gap, from: at, to, end: run.state.is_over() && to >= view.to }, bytes)
    }
}
