//! `cargo xtask ci`: every step, its time, and a verdict.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::step::{cargo, exit_code, failed, failures, keep_failures, longest, say, status};
use crate::{fuzz, lint, package, soak, test, tidy};

/// One step: its name, and what runs it.
type Step = (&'static str, fn(&Path) -> Result<ExitCode>);

const STEPS: &[Step] = &[
    ("fmt", |root| Ok(exit_code(status(cargo(root).args(["fmt", "--all", "--check"]))?))),
    ("clippy", |root| {
        let args = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
        Ok(exit_code(status(cargo(root).args(args))?))
    }),
    ("rustdoc", |root| {
        let mut doc = cargo(root);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        Ok(exit_code(status(doc.args(["doc", "--locked", "--workspace", "--no-deps"]))?))
    }),
    ("tidy", tidy::run),
    ("lint", lint::run),
    ("test", |root| test::run(root, &[])),
    ("packages", |root| package::run(root, &["--check".into()])),
    ("soak", soak::in_ci),
    ("fuzz-smoke", |root| fuzz::run(root, None)),
];

/// Commands whose time is shown at the end: where CI's time goes.
const LONGEST: usize = 25;

/// Runs all steps, also after a failed one: a round of CI should tell everything it can, and at its end, where people look.
pub fn run(root: &Path) -> Result<ExitCode> {
    keep_failures();
    let mut outcomes = vec![];
    for (name, step) in STEPS {
        say(&format!("== {name}"));
        let began = Instant::now();
        let passed = match step(root) {
            Ok(code) => code == ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("xtask: {error:#}");
                failed(format!("{name}: {error:#}"));
                false
            }
        };
        outcomes.push((*name, passed, began.elapsed()));
    }
    for failure in failures() {
        print!("\n== failed: {}\n", failure.trim_end());
    }
    println!("\nthe longest commands:");
    for (took, line) in longest(LONGEST) {
        println!("{:>8.1} s  {line}", took.as_secs_f64());
    }
    print!("{}", summary(&outcomes));
    Ok(if outcomes.iter().all(|(_, passed, _)| *passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(outcomes: &[(&str, bool, Duration)]) -> String {
    let mut text = String::from("\n");
    for (name, passed, took) in outcomes {
        text += &format!("{name:<12}{:<8}{:>8.1} s\n", if *passed { "ok" } else { "FAILED" }, took.as_secs_f64());
    }
    let failed = outcomes.iter().filter(|(_, passed, _)| !passed).count();
    let verdict = if failed == 0 { "ok".into() } else { format!("{failed} bad") };
    let total: Duration = outcomes.iter().map(|(_, _, took)| *took).sum();
    text + &format!("{:<12}{verdict:<8}{:>8.1} s\n", "total", total.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_every_step_its_time_and_the_total() {
        let ms = Duration::from_millis;
        assert_eq!(
            summary(&[("fmt", true, ms(1500)), ("test", false, ms(60_000))]),
            "\nfmt         ok           1.5 s\ntest        FAILED      60.0 s\ntotal       1 bad       61.5 s\n"
        );
    }
}
