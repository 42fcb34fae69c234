//! `cargo xtask lint`: what Ruff says of our Python and ESLint of our TypeScript and JavaScript.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::{npm, programs};
use crate::{python, venv};

/// Where ESLint and its rules are.
const ESLINT: &str = "tests/lint";

/// Runs both over the whole tree, the second also where the first has found something.
pub fn run(root: &Path) -> Result<ExitCode> {
    let outcomes = [("ruff", ruff(root)), ("eslint", eslint(root))];
    let failed = outcomes.into_iter().filter_map(|(name, outcome)| Some((name, outcome.err()?)));
    let count = failed.inspect(|(name, error)| eprintln!("xtask: {name}: {error:#}")).count();
    Ok(if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ruff(root: &Path) -> Result<()> {
    let dir = root.join(python::DIR);
    let bin = venv::programs(root, "sdk", &dir.join("requirements.lock"), Some(&dir))?;
    must(std::process::Command::new(bin.join("ruff")).current_dir(root).args(["check", "--no-cache", "--quiet", "."]))
}

fn eslint(root: &Path) -> Result<()> {
    programs(root, &[("node", "nodejs"), ("npm", "npm")])?;
    npm(&root.join(ESLINT), ESLINT)?;
    let (program_path, config) =
        (format!("{ESLINT}/node_modules/eslint/bin/eslint.js"), format!("{ESLINT}/eslint.config.js"));
    must(program("node", root).args([&program_path, "--config", &config, "--max-warnings", "0", "."]))
}
