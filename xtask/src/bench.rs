//! `cargo xtask bench`: the release program beside its neighbours, measured by a harness that is not part of this tree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::step::{cargo, exit_code, must, program, status};

/// Where the harness is unless `HOLDFAST_BENCH` says otherwise, seen from the repository.
const HARNESS: &str = "../shared/bench/run.sh";

/// Builds and measures.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let harness = harness(root, std::env::var_os("HOLDFAST_BENCH"))?;
    if !harness.is_file() {
        bail!(
            "no benchmark at {}: put the harness (its run.sh) there, or name it with HOLDFAST_BENCH=PATH",
            harness.display()
        );
    }
    must(cargo(root).args(["build", "--release", "--locked", "--package", "holdfast"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let mut bench = program(&harness.to_string_lossy(), root);
    bench.arg("--bin").arg(format!("holdfast={}", target.join("release/holdfast").display()));
    Ok(exit_code(status(bench.args(args))?))
}

fn harness(root: &Path, chosen: Option<OsString>) -> Result<PathBuf> {
    Ok(match chosen {
        Some(path) => std::path::absolute(path)?,
        None => root.join(HARNESS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_another_harness() {
        assert_eq!(harness(Path::new("/r"), None).unwrap(), Path::new("/r/../shared/bench/run.sh"));
        assert_eq!(harness(Path::new("/r"), Some("/b/run.sh".into())).unwrap(), Path::new("/b/run.sh"));
    }
}
