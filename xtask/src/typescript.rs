//! The TypeScript client: its generated types, its build, its tests against the program that was just built.

use std::path::Path;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::npm;

/// Where it lies.
pub const DIR: &str = "sdk/typescript";

/// Installs what it needs, checks that its types are those of the schema, builds it and tests it with this program.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(DIR);
    build(root)?;
    must(program("npm", &dir).args(["test", "--silent"]).env("HOLDFAST_BIN", holdfast))
}

/// Installs what it needs, checks it and builds it, for others too.
pub fn build(root: &Path) -> Result<()> {
    let dir = root.join(DIR);
    npm(&dir, DIR)?;
    // The typecheck reads the tests too, which the build leaves out.
    for script in ["check-types", "typecheck", "build"] {
        must(program("npm", &dir).args(["run", "--silent", script]))?;
    }
    Ok(())
}
