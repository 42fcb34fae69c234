//! `cargo xtask fuzz-smoke`: every fuzz target for a short while, so that none rots and shallow bugs show in CI. `cargo xtask
//! fuzz-smoke SECONDS` searches anew each time, for as long as it may.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::step::{cargo, cargo_has, must, program, say, shown, works};
use crate::test::programs;

/// Inputs per target in CI, always from the same seed: one tree gives one outcome.
const SMOKE_RUNS: u32 = 100_000;

/// Memory a target may take: an input that makes us allocate without end is a finding, not a dead CI machine.
const MEMORY_MIB_MAX: u32 = 2048;

/// Runs the targets of `fuzz/`, if there is one: for so many seconds each, or the same inputs each time.
pub fn run(root: &Path, seconds: Option<u32>) -> Result<ExitCode> {
    if !root.join("fuzz/Cargo.toml").exists() {
        say("there is no fuzz/: nothing to run");
        return Ok(ExitCode::SUCCESS);
    }
    programs(root, &[("c++", "g++")])?;
    cargo_has(root, "fuzz")?;
    let nightly = works(program("rustup", root).args(["run", "nightly", "cargo", "--version"]));
    if !nightly {
        say("no nightly toolchain (`rustup toolchain install nightly`): fuzzing without the address sanitizer");
    }
    let targets = targets(root, nightly)?;
    must(fuzz(root, nightly, "build").args(sanitizer(nightly)))?;
    for target in &targets {
        let mut command = fuzz(root, nightly, "run");
        command.args(sanitizer(nightly)).args([target, "--"]);
        command.args(extent(seconds)).arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        must(command.args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"]))
            .with_context(|| format!("{target} found something; the input is under fuzz/artifacts/{target}/"))?;
    }
    say(&format!("{} fuzz targets, {}: nothing found", targets.len(), extent(seconds).join(" ")));
    Ok(ExitCode::SUCCESS)
}

fn extent(seconds: Option<u32>) -> Vec<String> {
    match seconds {
        Some(seconds) => vec![format!("-max_total_time={seconds}")],
        None => vec!["-seed=1".to_owned(), format!("-runs={SMOKE_RUNS}")],
    }
}

/// `cargo fuzz VERB` with the toolchain there is.
fn fuzz(root: &Path, nightly: bool, verb: &str) -> Command {
    let mut command = if nightly { program("rustup", root) } else { cargo(root) };
    if nightly {
        // Our own toolchain's variables would outweigh the one asked for.
        command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
        command.args(["run", "nightly", "cargo"]);
    }
    command.args(["fuzz", verb]);
    command
}

fn sanitizer(nightly: bool) -> [&'static str; 2] {
    ["--sanitizer", if nightly { "address" } else { "none" }]
}

fn targets(root: &Path, nightly: bool) -> Result<Vec<String>> {
    let mut list = fuzz(root, nightly, "list");
    let output = list.output().with_context(|| format!("cannot run `{}`", shown(&list)))?;
    let targets: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    if !output.status.success() || targets.is_empty() {
        bail!("`{}` names no target: {}", shown(&list), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sanitizer_is_used_where_the_toolchain_has_it() {
        let line = |nightly| {
            let mut command = fuzz(Path::new("."), nightly, "build");
            shown(command.args(sanitizer(nightly)))
        };
        assert_eq!(line(true), "rustup run nightly cargo fuzz build --sanitizer address");
        assert_eq!(line(false), "cargo fuzz build --sanitizer none");
    }

    #[test]
    fn a_tree_without_targets_has_nothing_to_run() {
        let empty = std::env::temp_dir().join("xtask-no-such-tree");
        assert_eq!(run(&empty, None).unwrap(), ExitCode::SUCCESS);
    }
}
