//! `holdfast prove`: the contract of a continuity layer as experiments, run against the installed program.
//!
//! Each experiment makes a home of its own, does what people and agents do, and looks at what can be observed from outside: process
//! ids and start times, a ledger that the job itself writes, exit codes, answers, the journal. It uses public surfaces only (the
//! command line, the socket's protocol, HTTP, WebSocket, MCP), so that it can be pointed at another implementation of `spec/`.
//!
//! An experiment holds, is broken, or is not provided on this machine, with the reason. Nothing is skipped in silence.

mod browser;
mod experiments;
mod job;
mod mcp;
mod place;
mod report;
mod rivals;
mod sdk;
mod socket;
mod ssh;
mod terminal;
mod trial;
mod web;

pub use report::{Finding, Outcome, Report};

use place::Program;
use std::path::PathBuf;
use std::time::Instant;

/// What to run.
pub struct Plan {
    /// The program to prove.
    pub program: PathBuf,
    /// Experiments by id; all where there is none.
    pub only: Vec<String>,
}

/// An experiment's id, and what it claims.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    /// Its id, for `--only`.
    pub id: &'static str,
    /// What it shows, as a sentence.
    pub claim: &'static str,
}

/// Every experiment, in the order in which they run.
pub fn list() -> Vec<Listed> {
    experiments::ALL.iter().map(|experiment| Listed { id: experiment.id, claim: experiment.claim }).collect()
}

/// Runs the experiments of a plan, one after the other.
///
/// `begins` is called before each one with its number, how many there are, and the experiment itself.
///
/// # Errors
///
/// An id that no experiment has.
pub fn run(plan: &Plan, begins: &mut dyn FnMut(usize, usize, Listed)) -> Result<Report, UnknownExperiment> {
    if let Some(unknown) = plan.only.iter().find(|id| !experiments::ALL.iter().any(|known| known.id == **id)) {
        return Err(UnknownExperiment { id: unknown.clone() });
    }
    let chosen: Vec<_> =
        experiments::ALL.iter().filter(|one| plan.only.is_empty() || plan.only.iter().any(|id| id == one.id)).collect();
    let program = Program::new(plan.program.clone());
    let began = Instant::now();
    let findings = chosen
        .iter()
        .enumerate()
        .map(|(n, experiment)| {
            begins(n + 1, chosen.len(), Listed { id: experiment.id, claim: experiment.claim });
            trial::carry_out(experiment, &program)
        })
        .collect();
    Ok(Report::new(program.version(), findings, began.elapsed()))
}

/// `--only` names an experiment that does not exist.
#[derive(Debug)]
pub struct UnknownExperiment {
    /// The name that was given.
    pub id: String,
}

impl std::fmt::Display for UnknownExperiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no experiment `{}`", self.id)
    }
}

impl std::error::Error for UnknownExperiment {}
