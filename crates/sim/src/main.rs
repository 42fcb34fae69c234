//! Replays a run: `cargo run -p holdfast-sim -- --seed N --steps M`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let (seed, steps) = (number("--seed"), number("--steps").unwrap_or(holdfast_sim::STEPS.into()));
    let (Some(seed), Ok(steps)) = (seed, u32::try_from(steps)) else {
        eprintln!("usage: holdfast-sim --seed N [--steps M]");
        return ExitCode::from(2);
    };
    let mut outcome = holdfast_sim::run(seed, steps);
    print!("{}", outcome.log);
    for (name, count) in outcome.counts.fields_mut() {
        println!("{name:>28} {count}");
    }
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            eprintln!("seed {seed}: {failure}");
            ExitCode::FAILURE
        }
    }
}
