//! The web client: its build, its size, its tests in a real browser against the program that was just built.

use std::path::Path;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::{npm, programs};

/// Where it lies.
const DIR: &str = "web";

/// What its tests drive: a browser, a terminal for a human's key, an editor.
const PROGRAMS: &[(&str, &str)] = &[("chromium", "chromium"), ("script", "bsdutils"), ("vim", "vim")];

/// Installs what it needs, checks and builds it, weighs it, and tests it with this program.
///
/// The tests show the page that was just built: the program's own where it was built after it, else through a small server.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    programs(root, PROGRAMS)?;
    build(root)?;
    let dir = root.join(DIR);
    must(program("npm", &dir).args(["test", "--silent"]).env("HOLDFAST_BIN", holdfast))
}

/// Checks and builds it, and fails where its JavaScript has grown too large.
pub fn build(root: &Path) -> Result<()> {
    let dir = root.join(DIR);
    npm(&dir, DIR)?;
    for script in ["typecheck", "build", "size"] {
        must(program("npm", &dir).args(["run", "--silent", script]))?;
    }
    Ok(())
}
