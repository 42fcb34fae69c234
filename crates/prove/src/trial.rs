//! One experiment while it runs: what it saw, and why it stopped.

use crate::place::{Place, Program};
use crate::report::{Finding, Outcome, Step};
use std::time::{Duration, Instant};

/// How long an experiment waits for one thing: far beyond what any of them takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a condition is looked at: below what a person notices, and cheap.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// An experiment.
pub struct Experiment {
    /// Its id, for `--only`.
    pub id: &'static str,
    /// What it shows, as a sentence.
    pub claim: &'static str,
    /// Carries it out.
    pub run: fn(&mut Trial) -> Result<(), Stop>,
}

/// Why an experiment ended before its end.
#[derive(Debug)]
pub enum Stop {
    /// The claim does not hold.
    Broken(String),
    /// This machine or this program does not provide it.
    NotProvided(String),
}

/// An experiment under way.
pub struct Trial<'a> {
    program: &'a Program,
    began: Instant,
    steps: Vec<Step>,
    figures: Vec<(String, String)>,
}

/// Carries an experiment out, and says how it went.
pub fn carry_out(experiment: &Experiment, program: &Program) -> Finding {
    let mut trial = Trial { program, began: Instant::now(), steps: Vec::new(), figures: Vec::new() };
    let outcome = match (experiment.run)(&mut trial) {
        Ok(()) => Outcome::Held,
        Err(Stop::Broken(why)) => Outcome::Broken { why },
        Err(Stop::NotProvided(why)) => Outcome::NotProvided { why },
    };
    Finding {
        id: experiment.id.into(),
        claim: experiment.claim.into(),
        outcome,
        steps: trial.steps,
        figures: trial.figures.into_iter().collect(),
        took_ms: millis(trial.began.elapsed()),
    }
}

impl<'a> Trial<'a> {
    /// The program under test.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// A home of its own, with a human.
    pub fn place(&self) -> Result<Place, Stop> {
        Place::new(self.program)
    }

    /// Notes something that was observed.
    pub fn saw(&mut self, what: impl Into<String>) {
        self.steps.push(Step { at_ms: millis(self.began.elapsed()), saw: what.into() });
    }

    /// Notes a part that this machine does not provide, and why.
    pub fn lacks(&mut self, what: &str, why: impl std::fmt::Display) {
        self.saw(format!("not provided: {what} ({why})"));
    }

    /// Notes a figure.
    pub fn figure(&mut self, name: &str, value: impl std::fmt::Display) {
        self.figures.push((name.into(), value.to_string()));
    }

    /// Notes `what` where it is so; otherwise the claim is broken.
    pub fn check(&mut self, what: &str, holds: bool, otherwise: impl std::fmt::Display) -> Result<(), Stop> {
        if !holds {
            return Err(Stop::Broken(format!("not true: {what} ({otherwise})")));
        }
        self.saw(what);
        Ok(())
    }
}

/// Waits until something is so.
pub fn wait(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Stop> {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() >= deadline {
            return Err(Stop::Broken(format!("not within {} s: {what}", PATIENCE.as_secs())));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Something that the experiment itself needs did not work.
pub fn broken(what: &str, why: impl std::fmt::Display) -> Stop {
    Stop::Broken(format!("{what}: {why}"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
