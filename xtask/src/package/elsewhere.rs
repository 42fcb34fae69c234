//! `cargo xtask package --elsewhere`: whether the client compiles for systems where no session runs. It is not run: there is none of them here.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::cross::{self, Depth};
use super::patched;
use crate::step::{cargo, exit_code, say, status, target};

/// Systems the client is meant for: the other kind of Mac differs in nothing that the client sees, and Windows is met through Cygwin.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-cygwin"];

/// Checks the program for each of them, or for one.
pub fn run(root: &Path, only: Option<&str>) -> Result<ExitCode> {
    for triple in TARGETS.into_iter().filter(|triple| only.is_none_or(|only| only == *triple)) {
        let cross = match cross::prepare(root, triple, Depth::Checked) {
            Ok(cross) => cross,
            Err(why) => bail!("cannot check the client for {triple}: {why:#}"),
        };
        let mut check = cargo(root);
        check.args(["check", "--locked", "--package", "holdfast", "--target", triple]).args(&cross.arguments);
        check.args(patched::arguments(root, triple, &target(root).join("elsewhere/patched"))?);
        check.arg("--target-dir").arg(target(root).join("elsewhere/check"));
        check.envs(cross.variables.iter().map(|(key, value)| (key, value)));
        let checked = status(&mut check)?;
        if !checked.success() {
            return Ok(exit_code(checked));
        }
        say(&format!("{triple}: the client compiles"));
    }
    Ok(ExitCode::SUCCESS)
}
