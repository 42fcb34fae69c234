//! The examples of `sdk/examples`: frameworks of others that run commands in sessions, each with a scripted model.

use std::path::Path;

use anyhow::Result;

use crate::step::{must, program};
use crate::test::npm;
use crate::world::World;
use crate::{python, typescript, venv};

/// Where they are.
const DIR: &str = "sdk/examples";

/// Runs every example to its end, against this `holdfast` program.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(DIR);
    let sdk = root.join(python::DIR);
    let bin = venv::programs(root, "examples", &dir.join("requirements.lock"), Some(&sdk))?;
    npm(&dir, DIR)?;
    typescript::build(root)?;
    let world = World::new(holdfast, "exa")?;
    let node = program("node", root).get_program().to_owned();
    for (tool, script) in [(bin.join("python"), "try.py"), (node.into(), "try.mjs")] {
        let mut user = world.run(&tool);
        user.env("HOLDFAST_BIN", holdfast).env("PYTHONDONTWRITEBYTECODE", "1");
        must(user.arg(dir.join(script)))?;
    }
    Ok(())
}
