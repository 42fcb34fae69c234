//! Environments of Python under `target`, each made from a lock file and made anew when that changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::step::{must, program, say, target, works};
use crate::test::packages;

/// What `python3 -m venv` needs, which Debian keeps in a package of its own.
const VENV_PACKAGE: &str = "python3-venv";

/// The directory with the programs of the environment `name`, which has what `lock` lists and, where it is said, the package in
/// a directory, in place.
pub fn programs(root: &Path, name: &str, lock: &Path, package: Option<&Path>) -> Result<PathBuf> {
    let at = target(root).join("venv").join(name);
    let mark = at.join("made-from");
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let project = package.map(|dir| read(&dir.join("pyproject.toml"))).transpose()?.unwrap_or_default();
    let wanted = made_from(&read(lock)?, &project, root);
    if read(&mark).is_ok_and(|made| made == wanted) {
        return Ok(at.join("bin"));
    }
    say(&format!("the Python environment {name}:"));
    if !works(program("python3", root).args(["-c", "import ensurepip, venv"])) {
        packages(root, &[VENV_PACKAGE])?;
    }
    must(program("python3", root).args(["-m", "venv", "--clear"]).arg(&at))?;
    let pip = |args: &[&str], path: &Path| {
        let mut command = std::process::Command::new(at.join("bin/python"));
        command.current_dir(root).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        must(command.args(args).arg(path))
    };
    pip(&["-r"], lock)?;
    if let Some(dir) = package {
        pip(&["--no-deps", "--no-build-isolation", "-e"], dir)?;
    }
    std::fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(at.join("bin"))
}

/// What an environment was made from: another lock file, or another place, needs another one.
fn made_from(lock: &str, project: &str, root: &Path) -> String {
    format!("{}\n{lock}\n{project}", root.display())
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
