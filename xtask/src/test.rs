//! `cargo xtask test`: what the tests need, then the tests.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::step::{cargo, cargo_has, exit_code, must, on_path, program, say, status};
use crate::{clients, web};

/// Programs the tests drive or are driven by, and the Debian package of each.
const PROGRAMS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("vim", "vim"),
    ("less", "less"),
    ("htop", "htop"),
    ("nano", "nano"),
    ("dialog", "dialog"),
    ("whiptail", "whiptail"),
    ("gdb", "gdb"),
    ("cc", "gcc"),
    ("make", "make"),
    ("curl", "curl"),
    ("tmux", "tmux"),
    ("ssh", "openssh-client"),
    ("/usr/sbin/sshd", "openssh-server"),
    ("python3", "python3"),
    ("ps", "procps"),
    ("ip", "iproute2"),
    ("etcd", "etcd-server"),
    ("perl", "perl"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// Directories whose JavaScript packages the tests use; each has a package-lock.json.
pub const NPM_DIRS: &[&str] = &[
    "crates/screen/tests/xterm",
    "sdk/examples",
    "sdk/typescript",
    "tests/lint",
    "tests/mcp",
    "tests/openapi/clients",
    "web",
];

/// Makes the tests runnable and runs them.
pub fn run(root: &Path, filters: &[String]) -> Result<ExitCode> {
    programs(root, PROGRAMS)?;
    for dir in NPM_DIRS {
        npm(&root.join(dir), dir)?;
    }
    criu(root)?;
    cargo_has(root, "nextest")?;
    // The page goes into the program: every test has the same one.
    web::build_if_stale(root)?;

    let built = status(cargo(root).args(["nextest", "run", "--workspace", "--no-run"]))?;
    if !built.success() {
        return Ok(exit_code(built));
    }
    // The build's gigabytes reach the disk first: tests that sync, and wait for what does, must not wait behind them.
    must(&mut program("sync", root))?;
    let tests = status(cargo(root).args(["nextest", "run", "--workspace"]).args(filters))?;
    let mut doc = cargo(root);
    doc.args(["test", "--quiet", "--doc", "--workspace"]);
    if !filters.is_empty() {
        doc.arg("--").args(filters);
    }
    let doc_tests = status(&mut doc)?;
    let clients = if filters.is_empty() { clients::run(root, &[])? } else { ExitCode::SUCCESS };
    Ok(match (tests.success(), doc_tests.success()) {
        (false, _) => exit_code(tests),
        (true, false) => exit_code(doc_tests),
        (true, true) => clients,
    })
}

/// Fetches CRIU for the tests of portable sessions, once. Root alone can use it: they say so where they are run by somebody else.
fn criu(root: &Path) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), std::path::PathBuf::from);
    let prefix = std::path::absolute(target.join("criu"))?;
    if prefix.join("criu").is_file() || std::env::var_os("HOLDFAST_CRIU").is_some() {
        return Ok(());
    }
    say("fetching CRIU:");
    must(program("sh", root).arg("crates/cli/src/commands/doctor/get-criu.sh").arg(prefix))
}

/// Installs the Debian packages of missing programs, or says how to.
pub fn programs(root: &Path, wanted: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> =
        wanted.iter().filter(|(name, _)| on_path(name).is_none()).map(|(_, package)| *package).collect();
    packages(root, &missing)
}

/// Installs Debian packages, or says how to.
pub fn packages(root: &Path, missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let debian = Path::new("/etc/debian_version").exists() && on_path("apt-get").is_some();
    if let Some(advice) = advice(missing, debian, is_root()) {
        bail!("{advice}");
    }
    // An old package list names versions that are gone from the archive.
    must(program("apt-get", root).args(["update", "-q"]))?;
    let mut install = program("apt-get", root);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    must(install.args(["install", "-q", "-y", "--no-install-recommends"]).args(missing))
}

/// What to tell where we may not install; nothing where we may.
fn advice(missing: &[&str], debian: bool, root: bool) -> Option<String> {
    let list = missing.join(" ");
    match (debian, root) {
        (true, true) => None,
        (true, false) => Some(format!("the tests need: {list}\nget them with: sudo apt-get install -y {list}")),
        (false, _) => Some(format!(
            "the tests need these programs, named here as Debian packages: {list}\ninstall them with this system's package \
             manager, then run `cargo xtask test` again"
        )),
    }
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0)
}

/// Installs one directory's npm packages unless they are as new as its lock file.
pub fn npm(dir: &Path, shown: &str) -> Result<()> {
    let changed = |file: &str| std::fs::metadata(dir.join(file)).and_then(|meta| meta.modified()).ok();
    if npm_is_fresh(changed("package-lock.json"), changed("node_modules/.package-lock.json")) {
        return Ok(());
    }
    say(&format!("in {shown}:"));
    must(program("npm", dir).args(["ci", "--no-audit", "--no-fund"]))
}

fn npm_is_fresh(lock: Option<SystemTime>, installed: Option<SystemTime>) -> bool {
    match (lock, installed) {
        (None, _) => true, // nothing to install; tidy complains about a directory without a lock file
        (Some(_), None) => false,
        (Some(lock), Some(installed)) => installed >= lock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_on_debian_installs_and_everybody_else_is_told_the_command() {
        assert_eq!(advice(&["fish"], true, true), None);
        assert!(advice(&["fish", "zsh"], true, false).unwrap().contains("sudo apt-get install -y fish zsh"));
        for root in [true, false] {
            assert!(advice(&["fish"], false, root).unwrap().contains("fish"));
        }
    }

    #[test]
    fn packages_are_installed_when_missing_or_older_than_the_lock_file() {
        let (old, new) = (SystemTime::UNIX_EPOCH, SystemTime::now());
        assert!(!npm_is_fresh(Some(new), None));
        assert!(!npm_is_fresh(Some(new), Some(old)));
        assert!(npm_is_fresh(Some(old), Some(new)));
        assert!(npm_is_fresh(None, None));
    }

    #[test]
    fn a_program_that_is_there_needs_no_package() {
        programs(Path::new("."), &[("sh", "no-such-package")]).unwrap();
    }
}
