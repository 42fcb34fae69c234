//! The web client: its build, its size, its tests in a real browser against the program that was just built.

use std::path::Path;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::{npm, programs};

/// Where it lies.
const DIR: &str = "web";

/// What its tests drive: a browser, a terminal for a human's key, an editor; and who makes a certificate.
const PROGRAMS: &[(&str, &str)] =
    &[("chromium", "chromium"), ("script", "bsdutils"), ("vim", "vim"), ("openssl", "openssl")];

/// Tests the page inside this program, which was built after it.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    programs(root, PROGRAMS)?;
    let dir = root.join(DIR);
    let mut tests = program("npm", &dir);
    must(tests.args(["test", "--silent"]).env("HOLDFAST_BIN", holdfast).env("HOLDFAST_WEB", "host"))
}

/// Installs what it needs, checks and builds it, and fails where its JavaScript has grown too large.
pub fn build(root: &Path) -> Result<()> {
    let dir = root.join(DIR);
    npm(&dir, DIR)?;
    for script in ["typecheck", "build", "size"] {
        must(program("npm", &dir).args(["run", "--silent", script]))?;
    }
    Ok(())
}
