//! The Python client: an environment under `target`, what it needs from its lock file, its checks and its tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{must, program, say, works};
use crate::test::packages;

/// Where the client lies.
const DIR: &str = "sdk/python";
/// What `python3 -m venv` needs, which Debian keeps in a package of its own.
const VENV_PACKAGE: &str = "python3-venv";

/// Checks that what is generated is fresh, then lints, types and tests, against this `holdfast` program.
pub fn test(root: &Path, holdfast: &Path) -> Result<()> {
    let dir = root.join(DIR);
    let bin = environment(root, &dir)?;
    let python = bin.join("python");
    must(in_dir(&python, &dir).args(["generate.py", "--check"]))?;
    must(in_dir(&bin.join("ruff"), &dir).args(["check", "--quiet", "."]))?;
    must(in_dir(&bin.join("mypy"), &dir).arg("--cache-dir").arg(root.join("target/mypy")))?;
    let holdfast = std::path::absolute(holdfast).context("the path of the holdfast program")?;
    must(in_dir(&python, &dir).args(["-m", "pytest", "-q"]).env("HOLDFAST_BIN", holdfast))
}

fn in_dir(name: &Path, dir: &Path) -> Command {
    let mut command = Command::new(name);
    // Its caches go with the environment, not into the tree.
    command.current_dir(dir).env("PYTHONDONTWRITEBYTECODE", "1").env("RUFF_NO_CACHE", "true");
    command
}

/// Makes the environment unless it is the one of this lock file; gives the directory of its programs.
fn environment(root: &Path, dir: &Path) -> Result<PathBuf> {
    let at = root.join("target/python");
    let mark = at.join("made-from");
    let read = |path: &Path| std::fs::read_to_string(path);
    let (lock, project) = (dir.join("requirements.lock"), dir.join("pyproject.toml"));
    let wanted = made_from(&read(&lock).context("requirements.lock")?, &read(&project).context("pyproject.toml")?, dir);
    if read(&mark).is_ok_and(|made| made == wanted) {
        return Ok(at.join("bin"));
    }
    say(&format!("in {DIR}:"));
    if !works(program("python3", root).args(["-c", "import ensurepip, venv"])) {
        packages(root, &[VENV_PACKAGE])?;
    }
    must(program("python3", root).args(["-m", "venv", "--clear"]).arg(&at))?;
    let pip = |args: &[&str]| {
        let mut command = in_dir(&at.join("bin/python"), dir);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(args);
        must(&mut command)
    };
    pip(&["-r", "requirements.lock"])?;
    pip(&["--no-deps", "--no-build-isolation", "-e", "."])?;
    std::fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(at.join("bin"))
}

/// What an environment was made from: another lock file, or another place, needs another one.
fn made_from(lock: &str, project: &str, dir: &Path) -> String {
    format!("{}\n{lock}\n{project}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_made_anew_when_what_it_was_made_from_changes() {
        let made = |lock, project, dir: &str| made_from(lock, project, Path::new(dir));
        assert_eq!(made("a==1", "p", "x"), made("a==1", "p", "x"));
        for other in [made("a==2", "p", "x"), made("a==1", "q", "x"), made("a==1", "p", "y")] {
            assert_ne!(made("a==1", "p", "x"), other);
        }
    }
}
