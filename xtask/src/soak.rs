//! `cargo xtask soak`: many sessions with real programs, many operators of all kinds, and everything that can be killed is killed.
//!
//! One seed decides who does what; the moments are those of the machine. What must hold is checked all the time and once more
//! at the end ([`checks`]); each thing that does not hold is a line of the summary, and the exit code is not 0. What this machine
//! cannot do (a full disk without root) is named as not provided.

mod acts;
mod chaos;
mod checks;
mod clients;
mod dice;
mod log;
mod place;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::step::{cargo, must, target};
pub use clients::{Mcp, Sdks, http};
pub use log::Log;
pub use place::{HUMAN, Place, Ran, memory_kib, signal};

/// How much of it, and for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    pub length: Duration,
    pub seed: u64,
    pub sessions: usize,
    pub operators: usize,
    /// Built here where it is not named.
    pub program: Option<PathBuf>,
    /// Between two kills of the host.
    pub kill_every: Duration,
    /// Whether the home has a disk that can be filled and a clock that can be set.
    pub chaos: bool,
}

/// What CI runs: two minutes of a few of everything. Longer runs are for a night.
pub fn in_ci(root: &Path) -> Result<ExitCode> {
    let args = ["--minutes", "2", "--sessions", "18", "--operators", "8", "--kill-every", "10"].map(str::to_owned);
    run(root, &args)
}

/// Soaks.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let plan = plan(args)?;
    let program = match &plan.program {
        Some(program) => std::path::absolute(program)?,
        None => {
            // As for the tests, with the same features: what they built is used again.
            must(cargo(root).args(["test", "--locked", "--workspace", "--no-run", "--quiet"]))?;
            target(root).join("debug/holdfast")
        }
    };
    println!(
        "soak: seed {}, {} sessions, {} operators, {} s; again with --seed {}",
        plan.seed,
        plan.sessions,
        plan.operators,
        plan.length.as_secs(),
        plan.seed
    );
    let log = Arc::new(Log::default());
    let place = Arc::new(Place::new(&program, &plan, Sdks::ready(root, &log), &log)?);
    soak(&plan, &place, &log)?;
    let place = Arc::into_inner(place).context("somebody still works in the soak's home")?;
    place.end(&log);
    print!("{}", log.summary());
    Ok(if log.clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(plan: &Plan, place: &Arc<Place>, log: &Arc<Log>) -> Result<()> {
    let began = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let mut threads = vec![];
    for number in 0..plan.operators {
        let (place, log, over) = (Arc::clone(place), Arc::clone(log), Arc::clone(&over));
        let dice = dice::Dice::new(plan.seed ^ (0x5851_f42d_4c95_7f2d_u64.wrapping_mul(number as u64 + 1)));
        threads.push(std::thread::spawn(move || acts::operate(number, &place, &log, dice, &over)));
    }
    let reader = {
        let (place, log, over) = (Arc::clone(place), Arc::clone(log), Arc::clone(&over));
        std::thread::spawn(move || checks::read_along(&place, &log, &over))
    };
    chaos::rage(plan, place, log, began);
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        if thread.join().is_err() {
            log.violation("an operator of the soak panicked".into());
        }
    }
    let counted = reader.join().unwrap_or_default();
    checks::at_the_end(place, log, counted)
}

fn plan(args: &[String]) -> Result<Plan> {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let mut plan = Plan {
        length: Duration::from_secs(120),
        seed: nanos as u64 % 1_000_000_007,
        sessions: 200,
        operators: 50,
        program: None,
        kill_every: Duration::from_secs(30),
        chaos: true,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let value = args.next().with_context(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<f64>().ok().filter(|n| *n > 0.0).with_context(|| format!("{flag} {value}"));
        match flag.as_str() {
            "--minutes" => plan.length = Duration::from_secs_f64(number()?.min(100_000.0) * 60.0),
            "--seed" => plan.seed = value.parse().with_context(|| format!("--seed {value}"))?,
            "--sessions" => plan.sessions = (number()? as usize).clamp(place::KINDS.len(), 2000),
            "--operators" => plan.operators = (number()? as usize).clamp(1, 500),
            "--kill-every" => plan.kill_every = Duration::from_secs_f64(number()?.min(86_400.0)),
            "--program" => plan.program = Some(value.into()),
            _ => bail!("`soak` does not take {flag}"),
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_how_much_and_for_how_long() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let plan = plan(&words("--minutes 0.5 --seed 7 --sessions 20 --operators 3 --kill-every 9")).unwrap();
        assert_eq!((plan.length, plan.seed, plan.sessions, plan.operators), (Duration::from_secs(30), 7, 20, 3));
        assert_eq!(plan.kill_every, Duration::from_secs(9));
        for wrong in ["--minutes", "--minutes 0", "--seed x", "--hours 3"] {
            assert!(super::plan(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
