//! The web client: its build into `web/dist`, its size, its tests in a real browser against the program that was just built.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::stamp;
use crate::step::{must, program, say};
use crate::test::{npm, programs};

/// Where it lies.
const DIR: &str = "web";

/// What its tests drive: a browser, a terminal for a human's key, an editor; who makes a certificate; and networks that stand for machines.
const PROGRAMS: &[(&str, &str)] = &[
    ("chromium", "chromium"),
    ("script", "bsdutils"),
    ("vim", "vim"),
    ("openssl", "openssl"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
];

/// Tests the page inside this program, which was built after it.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    ready(root)?;
    // What is committed must be what the sources make today.
    run(root, &["pack", "--", "--check"])?;
    let dir = root.join(DIR);
    let mut tests = program("npm", &dir);
    must(tests.args(["test", "--silent"]).env("HOLDFAST_BIN", holdfast).env("HOLDFAST_WEB", "host"))
}

/// Installs what its tests need, and builds the page they compare with what the program serves.
pub fn ready(root: &Path) -> Result<()> {
    programs(root, PROGRAMS)?;
    check(root)
}

/// `cargo xtask web-build`: builds the page, packs it into `web/dist`, and stamps it with its sources.
pub fn build(root: &Path) -> Result<ExitCode> {
    programs(root, &[("node", "nodejs"), ("npm", "npm")])?;
    check(root)?;
    run(root, &["pack"])?;
    let hash = stamp::of(root).context("cannot read the sources of the page")?;
    std::fs::write(root.join(stamp::FILE), format!("{hash}\n")).context("cannot write the stamp of the page")?;
    say("the page in web/dist is that of web/src; commit it, and build the program");
    Ok(ExitCode::SUCCESS)
}

/// The same, where it is older than its sources.
pub fn build_if_stale(root: &Path) -> Result<()> {
    if let Some(complaint) = stamp::complaint(root).context("cannot read the sources of the page")? {
        say(complaint);
        build(root)?;
    }
    Ok(())
}

/// Installs what it needs, checks and builds it, and fails where its JavaScript has grown too large.
fn check(root: &Path) -> Result<()> {
    npm(&root.join(DIR), DIR)?;
    ["typecheck", "build", "size"].iter().try_for_each(|script| run(root, &[script]))
}

fn run(root: &Path, script: &[&str]) -> Result<()> {
    must(program("npm", &root.join(DIR)).args(["run", "--silent"]).args(script))
}
