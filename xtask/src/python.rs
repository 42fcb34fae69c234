//! The Python client: what is generated in it, its checks and its tests, against the program that was just built.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::{must, target};
use crate::venv;

/// Where the client lies.
pub const DIR: &str = "sdk/python";

/// Checks that what is generated is fresh, then types and tests, against this `holdfast` program.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(DIR);
    let bin = venv::programs(root, "sdk", &dir.join("requirements.lock"), Some(&dir))?;
    let python = bin.join("python");
    must(in_dir(&python, &dir).args(["generate.py", "--check"]))?;
    must(in_dir(&bin.join("mypy"), &dir).arg("--cache-dir").arg(target(root).join("mypy")))?;
    must(in_dir(&python, &dir).args(["-m", "pytest", "-q"]).env("HOLDFAST_BIN", holdfast))
}

fn in_dir(name: &Path, dir: &Path) -> Command {
    let mut command = Command::new(name);
    // Its caches go with the environment, not into the tree.
    command.current_dir(dir).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
