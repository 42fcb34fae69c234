//! `cargo xtask package --check`: the packages as a user of a fresh Debian meets them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::Wanted;
use super::build::{Needs, needs};
use crate::step::{self, cargo, must, on_path, program, say, target};
use crate::test::{is_root, programs};

/// What makes and enters the root, and strips the program.
const PROGRAMS: &[(&str, &str)] = &[
    ("/usr/sbin/debootstrap", "debootstrap"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("strip", "binutils"),
    ("npm", "npm"),
];
/// Beside the smallest Debian: what runs npm and pip.
const INCLUDE: &str = "nodejs,python3-venv";
/// The npm that is put into the root: Debian's own has hundreds of packages. It runs with Debian's Node.
const NPM: &str = "npm@10.9.2";
/// Runs the units, as a user's: also where the machine itself runs without it.
const SYSTEMD: &str = "/usr/lib/systemd/systemd";
/// Which Debian, where this machine has another system.
const SUITE: &str = "bookworm";

/// Makes packages of the program that tests use, or of this one, and has them installed and used.
pub fn run(root: &Path, given: Option<&Path>) -> Result<ExitCode> {
    if !is_root() {
        say("not checked: only root can enter a fresh root; try: sudo -E cargo xtask package --check");
        return Ok(ExitCode::SUCCESS);
    }
    programs(root, PROGRAMS)?;
    let dir = target(root).join("clean-root");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let base = base(root, &dir)?;
    let built = match given {
        Some(given) => given.to_owned(),
        None => {
            // As for the tests, with the same features: what they built is used again.
            must(cargo(root).args(["test", "--locked", "--workspace", "--no-run", "--quiet"]))?;
            target(root).join("debug/holdfast")
        }
    };
    // Hundreds of megabytes for debuggers would be compressed four times.
    let small = dir.join("holdfast");
    must(program("strip", root).arg("-o").arg(&small).arg(&built))?;
    let mut wanted: Wanted = super::wanted(root, &[])?;
    wanted.program = Some(small);
    wanted.time = super::time(root)?;
    let packages = dir.join("packages");
    super::make(root, &target(root), &wanted, &packages)?;
    must(program("dpkg-deb", &packages).args(["--info", "--"]).args(deb_in(&packages)?))?;
    for kind in ["deb", "wheel", "npm"] {
        let mut enter = program("unshare", root);
        enter.args(["--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "packaging/check/enter.sh"]);
        must(enter.arg(&base).arg(dir.join("work")).arg(&packages).arg(kind))?;
    }
    let program = wanted.program.context("it was set above")?;
    if needs(root, &program)? == Needs::Nothing {
        programs(root, &[("busybox", "busybox-static")])?;
        let shell = on_path("busybox").context("busybox is not in PATH")?;
        must(step::program("sh", root).arg("packaging/check/static.sh").arg(&program).arg(shell))?;
    }
    if Path::new(SYSTEMD).exists() {
        must(step::program("sh", root).arg("packaging/check/systemd.sh").arg(program))?;
    } else {
        say(&format!("NOT CHECKED: the systemd units: {SYSTEMD} is not there (Debian: systemd)"));
    }
    Ok(ExitCode::SUCCESS)
}

fn deb_in(packages: &Path) -> Result<Option<PathBuf>> {
    let files = std::fs::read_dir(packages)?.flatten().map(|file| file.path());
    Ok(files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb")))
}

/// A fresh Debian with Node and Python, made once.
fn base(root: &Path, dir: &Path) -> Result<PathBuf> {
    let base = dir.join("base");
    if base.is_dir() {
        return Ok(base);
    }
    say("making a fresh Debian, which is kept:");
    let part = dir.join("base.part");
    let _ = std::fs::remove_dir_all(&part);
    let mut make = program("/usr/sbin/debootstrap", root);
    make.args(["--variant=minbase", &format!("--include={INCLUDE}"), &suite()]);
    must(make.arg(&part))?;
    must(program("npm", dir).args(["pack", "--silent", NPM]))?;
    let opt = part.join("opt");
    must(program("tar", dir).args(["-xzf", &format!("{}.tgz", NPM.replace('@', "-")), "-C"]).arg(&opt))?;
    std::fs::rename(opt.join("package"), opt.join("npm"))?;
    std::os::unix::fs::symlink("/opt/npm/bin/npm-cli.js", part.join("usr/local/bin/npm"))?;
    std::fs::rename(&part, &base).context("cannot keep the fresh root")?;
    Ok(base)
}

/// This machine's release where it is a Debian: the program is linked with its C library.
fn suite() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"').to_owned())
    };
    match value("ID=").as_deref() {
        Some("debian") => value("VERSION_CODENAME=").unwrap_or_else(|| SUITE.into()),
        _ => SUITE.into(),
    }
}
