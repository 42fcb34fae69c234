//! Building for other processors and systems than this machine's: zig, which brings C libraries of many, as C compiler and linker, and
//! Rust's standard library, built from Debian's sources where the toolchain has none for a target.
//!
//! Everything lies in `target/elsewhere`; nothing is installed.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::build::{has_std, own_triple};
use crate::step::{cargo, must, on_path, program, say, target};
use crate::venv;

/// Which zig: a package of Python.
const ZIG_LOCK: &str = "packaging/elsewhere/requirements.txt";
/// Debian's Rust for browsers: newer than its ordinary one. Unpacked, not installed, for it would push out the one that is.
const DEBIAN: [&str; 3] = ["rustc-web", "rust-web-src", "libstd-rust-web-dev"];

/// What of a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// A program that runs: the standard library is built once, and kept.
    Linked,
    /// Nothing is linked; cargo looks at the standard library's sources itself.
    Checked,
}

/// What cargo is given to build for a target.
#[derive(Debug, Default)]
pub struct Cross {
    /// Variables.
    pub variables: Vec<(String, OsString)>,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Paths of this machine, and what stands for them in the program.
    pub remap: Vec<(PathBuf, &'static str)>,
}

/// What zig calls a target of Rust.
fn zig_target(triple: &str) -> Result<&'static str> {
    const KNOWN: [(&str, &str); 6] = [
        ("x86_64-unknown-linux-musl", "x86_64-linux-musl"),
        ("aarch64-unknown-linux-musl", "aarch64-linux-musl"),
        ("aarch64-apple-darwin", "aarch64-macos"),
        ("x86_64-apple-darwin", "x86_64-macos"),
        ("x86_64-pc-windows-gnu", "x86_64-windows-gnu"),
        // Only to be checked: zig has no headers of Cygwin, and nothing is linked.
        ("x86_64-pc-cygwin", "x86_64-windows-gnu"),
    ];
    let known = KNOWN.iter().find(|(known, _)| *known == triple).map(|(_, zig)| *zig);
    known.with_context(|| format!("{triple} is none of {}", KNOWN.map(|(known, _)| known).join(", ")))
}

/// What builds for a target. This machine's own needs nothing.
pub fn prepare(root: &Path, triple: &str, depth: Depth) -> Result<Cross> {
    if own_triple(root)? == triple {
        return Ok(Cross::default());
    }
    let zig_name = zig_target(triple)?;
    let dir = target(root).join("elsewhere");
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    let venv = venv::programs(root, "elsewhere", &root.join(ZIG_LOCK), None)?;
    let python = venv.join("python");
    let cc = script(&bin, &format!("cc-{triple}"), &cc_script(&python, zig_name))?;
    let ar = script(&bin, "ar", &format!("#!/bin/sh\nexec '{}' -m ziglang ar \"$@\"\n", python.display()))?;
    let (lower, upper) = (triple.replace('-', "_"), triple.replace('-', "_").to_uppercase());
    let mut cross = Cross {
        variables: vec![
            (format!("CC_{lower}"), cc.clone().into()),
            (format!("AR_{lower}"), ar.into()),
            (format!("CARGO_TARGET_{upper}_LINKER"), cc.into()),
            ("ZIG_GLOBAL_CACHE_DIR".into(), dir.join("zig").into()),
        ],
        ..Cross::default()
    };
    if triple.contains("apple") {
        // Nothing is asked of Xcode: zig has the headers.
        cross.variables.push(("SDKROOT".into(), dir.clone().into()));
    }
    let rustc = |name: &str, begin: String| script(&bin, name, &rustc_script(&begin));
    if has_std(root, triple)? {
        cross.variables.push(("RUSTC".into(), rustc("rustc-own", "exec rustc".into())?.into()));
        return Ok(cross);
    }
    let rust = debian(root, &dir)?;
    let libraries = rust.join("lib/x86_64-linux-gnu");
    let begin = format!("LD_LIBRARY_PATH='{}' exec '{}/bin/rustc'", libraries.display(), rust.display());
    cross.variables.push(("RUSTC".into(), rustc("rustc", begin)?.into()));
    cross.remap.push((rust.join("lib/rustlib/src/rust"), "/rust"));
    cross.remap.push((rust.join("src"), "/rust-src"));
    match depth {
        Depth::Checked => {
            cross.variables.push(("RUSTC_BOOTSTRAP".into(), "1".into()));
            cross.arguments.push("-Zbuild-std=std,panic_unwind".into());
        }
        Depth::Linked => standard_library(&dir, &rust, triple, &cross)?,
    }
    Ok(cross)
}

/// The C library is zig's, not one that came with Rust. Only targets of musl may be told so. And the crate by which the keeper aborts
/// aborts itself, which Rust's own build says too.
fn rustc_script(begin: &str) -> String {
    format!(
        "#!/bin/sh\ncase \"$*\" in *--target*-linux-musl*) set -- \"$@\" -Clink-self-contained=no ;; esac\n\
         case \"$*\" in *'--crate-name panic_abort '*) set -- \"$@\" -Cpanic=abort ;; esac\n{begin} \"$@\"\n"
    )
}

/// Drops what rustc and the crate `cc` say of the target in names that zig does not know.
fn cc_script(python: &Path, zig_name: &str) -> String {
    format!(
        "#!/bin/sh\nn=$#\nwhile [ $n -gt 0 ]; do\n  a=$1; shift; n=$((n - 1))\n  case $a in\n    --target=* | -m64 | -march=armv8-a | -arch | \
         arm64 | -mmacosx-version-min=* | -gfull) ;;\n    *) set -- \"$@\" \"$a\" ;;\n  esac\ndone\nexec '{}' -m ziglang cc -target {zig_name} \
         \"$@\"\n",
        python.display()
    )
}

/// Writes a program, unless it is there: what was built with it stays fresh.
fn script(bin: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = bin.join(name);
    if std::fs::read_to_string(&path).ok().as_deref() != Some(text) {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

/// Debian's Rust with its sources, unpacked once.
fn debian(root: &Path, dir: &Path) -> Result<PathBuf> {
    let rust = dir.join("rust");
    if rust.is_dir() {
        return Ok(rust.join("usr"));
    }
    if on_path("apt-get").is_none() || on_path("dpkg-deb").is_none() || cfg!(not(target_arch = "x86_64")) {
        bail!(
            "this toolchain has no standard library of Rust for that target, and Debian's sources of it are fetched only on Debian for \
             x86-64; get it with: rustup target add TRIPLE"
        );
    }
    say("Debian's Rust, which has sources of the standard library (unpacked into target/elsewhere, not installed):");
    let part = dir.join("rust.part");
    let _ = std::fs::remove_dir_all(&part);
    let debs = part.join("debs");
    std::fs::create_dir_all(&debs)?;
    let asked = |args: &[&str]| -> Result<String> {
        let output = program("apt-cache", root).args(args).output().context("cannot run apt-cache")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let shown = asked(&["show", "--no-all-versions", DEBIAN[0]])?;
    let library = library_of(&shown).context("Debian's package lists have no rustc-web; try: apt-get update")?;
    let llvm = llvm_of(&asked(&["depends", &library])?).with_context(|| format!("{library} names no libllvm"))?;
    let mut fetch = program("apt-get", &debs);
    must(fetch.args(["download", "-q"]).args(DEBIAN).args([&library, &llvm]))?;
    for deb in std::fs::read_dir(&debs)?.flatten() {
        must(program("dpkg-deb", &part).arg("-x").arg(deb.path()).arg(&part))?;
    }
    std::fs::remove_dir_all(&debs)?;
    std::fs::rename(&part, &rust).context("cannot keep Debian's Rust")?;
    Ok(rust.join("usr"))
}

/// The package with the library that a compiler of this version runs with: `libstd-rust-web-1.96`.
fn library_of(shown: &str) -> Option<String> {
    let version = shown.lines().find_map(|line| line.strip_prefix("Version: "))?;
    let mut parts = version.split('.');
    Some(format!("libstd-rust-web-{}.{}", parts.next()?, parts.next()?))
}

fn llvm_of(depends: &str) -> Option<String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.into_iter().find(|name| name.starts_with("libllvm")).map(str::to_owned)
}

/// Builds the standard library for a target and puts it where this rustc looks for it, once.
fn standard_library(dir: &Path, rust: &Path, triple: &str, cross: &Cross) -> Result<()> {
    let into = rust.join("lib/rustlib").join(triple).join("lib");
    if into.is_dir() {
        return Ok(());
    }
    say(&format!("the standard library of Rust for {triple}, which is kept:"));
    let crate_dir = dir.join("std");
    std::fs::create_dir_all(crate_dir.join("src"))?;
    std::fs::write(crate_dir.join("src/lib.rs"), "")?;
    let manifest = "[package]\nname = \"nothing\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(crate_dir.join("Cargo.toml"), manifest)?;
    let mut build = cargo(&crate_dir);
    build.args(["build", "--release", "-Zbuild-std=std,panic_abort,panic_unwind", "--target", triple]);
    build.arg("--target-dir").arg(crate_dir.join("target"));
    build.envs(cross.variables.iter().map(|(key, value)| (key, value))).env("RUSTC_BOOTSTRAP", "1");
    // With bitcode, for link-time optimisation of what uses it.
    let mut flags = vec!["-Cembed-bitcode=yes".to_owned()];
    flags.extend(cross.remap.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
    build.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    must(&mut build)?;
    let part = into.with_extension("part");
    std::fs::create_dir_all(&part)?;
    let mut count = 0;
    for file in std::fs::read_dir(crate_dir.join("target").join(triple).join("release/deps"))?.flatten() {
        let (path, name) = (file.path(), file.file_name().to_string_lossy().into_owned());
        if name.ends_with(".rlib") && !name.starts_with("libnothing-") {
            std::fs::copy(&path, part.join(&name)).with_context(|| format!("cannot copy {name}"))?;
            count += 1;
        }
    }
    ensure!(count > 5, "the standard library for {triple} came out with {count} crates");
    std::fs::rename(&part, &into).context("cannot keep the standard library")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_that_a_compiler_needs_are_read_from_the_lists() {
        let shown = "Package: rustc-web\nVersion: 1.96.0+dfsg1-1~deb12u2\nDepends: libc6\n";
        assert_eq!(library_of(shown).as_deref(), Some("libstd-rust-web-1.96"));
        assert_eq!(library_of(""), None);
        let depends = "libstd-rust-web-1.96\n  Depends: libc6\n  Depends: libllvm22\n  Conflicts: <rustup>\n";
        assert_eq!(llvm_of(depends).as_deref(), Some("libllvm22"));
    }

    #[test]
    fn a_target_that_zig_does_not_build_for_is_told_with_those_it_does() {
        assert_eq!(zig_target("aarch64-unknown-linux-musl").unwrap(), "aarch64-linux-musl");
        assert!(zig_target("mips").unwrap_err().to_string().contains("x86_64-apple-darwin"));
    }
}
