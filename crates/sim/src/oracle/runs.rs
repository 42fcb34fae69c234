//! The truth about runs: which commands the shell ran under which token, and what the host says of them.

use crate::ctx::Ctx;
use crate::program::Token;
use holdfast_session::Run;
use holdfast_wire::runs::{RunEnd, RunState};
use std::collections::{BTreeMap, BTreeSet};

/// What is so.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Commands of runs that the shell ran.
    ran: BTreeSet<String>,
    /// How commands ended, by their tokens.
    ended: BTreeMap<String, i32>,
    /// Commands that are lost and cannot have started, as the host says.
    refused: BTreeSet<String>,
    /// Who wants which command to run.
    pub(crate) wanted_by: BTreeMap<String, crate::cast::Who>,
}

impl Ctx {
    /// The shell runs a line, of which the plain keys came behind these tokens. A run's own actor may type there meanwhile; nobody
    /// else can have.
    pub fn command_starts(&mut self, line: &str, token: &str, behind: &[Token]) {
        self.note(format_args!("shell: runs {line:?} under {token:?}"));
        let Some(by) = self.oracle.runs.wanted_by.get(line).copied() else { return };
        let typist = |token: &Token| self.oracle.typists[usize::from(token.source)];
        if let Some(other) = behind.iter().find(|token| typist(token) != by) {
            self.fail(format!("a run of {by:?} was typed behind {other:?}"));
        }
        self.counts.runs_executed += 1;
        if self.oracle.runs.refused.contains(line) {
            self.fail(format!("{line:?} runs, and it is said to be lost without having started"));
        }
        if !self.oracle.runs.ran.insert(line.to_owned()) {
            self.fail(format!("{line:?} ran twice"));
        }
    }

    /// A command is over.
    pub fn command_ended(&mut self, token: &str, status: i32) {
        if !token.is_empty() {
            self.oracle.runs.ended.insert(token.to_owned(), status);
        }
    }

    /// The host says that a run is over.
    pub fn run_is_over(&mut self, run: &Run) {
        self.note(format_args!("host: {:?} is over: {:?} {:?} {:?}", run.command, run.state, run.end, run.exit_code));
        let ended = self.oracle.runs.ended.get(&run.token).copied();
        match (run.state, run.end) {
            (_, Some(RunEnd::Exact)) if ended.is_none() || ended != run.exit_code => {
                self.fail(format!(
                    "{:?} is said to have ended with {:?}, and did with {ended:?}",
                    run.command, run.exit_code
                ));
            }
            (_, Some(RunEnd::Exact)) => self.counts.runs_exact += 1,
            (RunState::Lost, Some(RunEnd::NotStarted)) => {
                self.counts.runs_lost += 1;
                self.is_not_started(&run.command, "lost");
                self.oracle.runs.refused.insert(run.command.clone());
            }
            (RunState::Lost, _) => self.counts.runs_lost += 1,
            (_, Some(RunEnd::NotStarted)) => self.is_not_started(&run.command, "not started"),
            (_, _) => {}
        }
    }

    fn is_not_started(&mut self, command: &str, why: &'static str) {
        if self.oracle.runs.ran.contains(command) {
            self.fail(format!("{command:?} ran, and is said to be {why}"));
        }
    }
}
