//! What it takes to keep a copy of a live tree, and to bring it back.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::ratios::{Row, succeeds};
use crate::soak::{HUMAN, Place};

/// A shell with a Python prompt in it.
const NAME: &str = "portable";

/// Checkpoint, restore, fork and recovery, by the command line; the start of the program is in each of them.
pub fn measure(place: &Place, count: usize) -> Result<Vec<Row>> {
    let mut rows = vec![recover(place, count)?];
    let what = "a checkpoint of bash and a Python prompt, which goes on";
    let new = place.run(HUMAN, &["new", "-d", "-n", NAME, "--portable", "--", "bash", "--norc"])?;
    if new.status != 0 {
        rows.push(Row::not_provided(what, new.err.lines().next().unwrap_or_default().to_owned()));
        return Ok(rows);
    }
    succeeds(place.run(HUMAN, &["send", NAME, "--enter", "exec 3</dev/null; python3 -q"])?)?;
    succeeds(place.run(HUMAN, &["wait", NAME, "--for", "text:>>>", "--from", "0", "--timeout", "30"])?)?;
    let mut kept = vec![];
    for _ in 0..count {
        let began = std::time::Instant::now();
        let made = place.run(HUMAN, &["--json", "checkpoint", NAME, "--keep-running"])?;
        kept.push(began.elapsed().as_secs_f64() * 1e3);
        remove(place, &made)?;
    }
    rows.push(Row::alone(what, super::ratios::median(kept)?));
    let mut back = vec![];
    for _ in 0..count {
        let made = place.run(HUMAN, &["--json", "checkpoint", NAME])?;
        let began = std::time::Instant::now();
        succeeds(place.run(HUMAN, &["restore", NAME])?)?;
        back.push(began.elapsed().as_secs_f64() * 1e3);
        remove(place, &made)?;
    }
    rows.push(Row::alone("its restore", super::ratios::median(back)?));
    let mut forks = vec![];
    for _ in 0..count {
        let began = std::time::Instant::now();
        succeeds(place.run(HUMAN, &["fork", NAME, "-n", "2"])?)?;
        forks.push(began.elapsed().as_secs_f64() * 1e3);
        for branch in ["portable-1", "portable-2"] {
            succeeds(place.run(HUMAN, &["fork", "discard", branch])?)?;
        }
    }
    rows.push(Row::alone("a fork of it in two", super::ratios::median(forks)?));
    succeeds(place.run(HUMAN, &["end", NAME, "--grace", "0"])?)?;
    Ok(rows)
}

/// Removes the checkpoint that a command made: a session keeps only a few.
fn remove(place: &Place, made: &crate::soak::Ran) -> Result<()> {
    ensure!(made.status == 0, "{}", made.err);
    let made: Value = serde_json::from_str(&made.out)?;
    let id = made["id"].as_str().context("a checkpoint has no id")?;
    succeeds(place.run(HUMAN, &["checkpoints", "rm", id])?)
}

/// A new life for a session whose keeper was killed.
fn recover(place: &Place, count: usize) -> Result<Row> {
    succeeds(place.run(HUMAN, &["new", "-d", "-n", "gone", "--", "bash", "--norc"])?)?;
    let mut times = vec![];
    for _ in 0..count {
        let info: Value = serde_json::from_str(&place.run(HUMAN, &["--json", "info", "gone"])?.out)?;
        let pid = |field: &str| info[field].as_u64().and_then(|pid| u32::try_from(pid).ok());
        for pid in [pid("keeper_pid"), pid("pid")].into_iter().flatten() {
            crate::soak::signal(pid, "KILL");
        }
        succeeds(place.run(HUMAN, &["wait", "gone", "--for", "exit", "--timeout", "30"])?).ok();
        let began = std::time::Instant::now();
        let ran = place.run(HUMAN, &["recover", "gone"])?;
        ensure!(ran.status == 0, "{}", ran.err);
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Row::alone("a recovery of a lost shell", super::ratios::median(times)?))
}
