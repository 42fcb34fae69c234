//! The program that goes into packages: how it is built, and what it needs of the machine it runs on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::cross::Cross;
use crate::step::{self, cargo, must, say};

/// Builds the program in a tree, and says where it lies.
pub fn program(root: &Path, target: &Path, triple: &str, profile: &str, cross: &Cross) -> Result<PathBuf> {
    // A directory of its own: what is built with other flags must not push out what tests use.
    let dir = target.join("package-build");
    let mut build = cargo(root);
    build.args(["build", "--locked", "--package", "holdfast", "--target", triple, "--profile", profile]);
    build.arg("--target-dir").arg(&dir).env_remove("RUSTFLAGS");
    // The bytes must not say where they were made, those of C in dependencies neither.
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![remap(&home()?, "/cargo"), remap(root, "/holdfast"), remap(&dir, "/target")];
    flags.extend(cross.remap.iter().map(|(from, to)| remap(from, to)));
    build.envs(cross.variables.iter().map(|(key, value)| (key, value))).args(&cross.arguments);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let prefix = |from: &Path, to: &str| format!("-ffile-prefix-map={}={to}", from.display());
    build.env("CFLAGS", [prefix(&dir, "/target"), prefix(&home()?, "/cargo")].join(" "));
    must(&mut build)?;
    let profile = if profile == "dev" { "debug" } else { profile };
    Ok(dir.join(triple).join(profile).join("holdfast"))
}

/// Where cargo keeps sources of dependencies.
fn home() -> Result<PathBuf> {
    let below_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(below_home).context("neither CARGO_HOME nor HOME is set")
}

/// Whether this toolchain can build for a target.
pub fn has_std(root: &Path, triple: &str) -> Result<bool> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut asked = std::process::Command::new(rustc);
    let output = asked.current_dir(root).args(["--print", "target-libdir", "--target", triple]).output();
    let output = output.context("cannot run rustc")?;
    ensure!(output.status.success(), "rustc knows no target {triple}");
    let dir = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let files = std::fs::read_dir(&dir).map(|files| files.flatten().map(|file| file.file_name()).collect::<Vec<_>>());
    Ok(files.unwrap_or_default().iter().any(|name| name.to_string_lossy().starts_with("libstd-")))
}

/// The target of this machine.
pub fn own_triple(root: &Path) -> Result<String> {
    let output = step::program("rustc", root).arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc does not say its target")
}

/// What a program needs of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but the kernel.
    Nothing,
    /// The C library of GNU in this version or later, and other libraries by name.
    Libraries {
        /// The version.
        glibc: (u32, u32),
        /// The other ones.
        others: Vec<String>,
    },
}

/// Reads it from the program itself.
pub fn needs(root: &Path, file: &Path) -> Result<Needs> {
    let objdump = |flag: &str| -> Result<String> {
        let output = step::program("objdump", root).arg(flag).arg(file).output();
        let output = output.context("cannot run objdump (Debian: binutils)")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let found = read_needs(&objdump("-p")?, &objdump("-T")?)?;
    say(&match &found {
        Needs::Nothing => "the program needs no library".to_owned(),
        Needs::Libraries { glibc: (major, minor), others } => {
            format!("the program needs glibc {major}.{minor} or later and {}", others.join(", "))
        }
    });
    Ok(found)
}

fn read_needs(headers: &str, symbols: &str) -> Result<Needs> {
    let needed: Vec<&str> =
        headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).map(str::trim).collect();
    if needed.is_empty() {
        return Ok(Needs::Nothing);
    }
    let versions = symbols.split(['(', ')', ' ']).filter_map(|word| word.strip_prefix("GLIBC_"));
    let newest = versions.filter_map(|version| {
        let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((parts.next()?, parts.next()?))
    });
    let Some(glibc) = newest.max() else { bail!("the program is linked, and names no version of glibc") };
    let others = needed.into_iter().filter(|name| !is_of_glibc(name)).map(str::to_owned).collect();
    Ok(Needs::Libraries { glibc, others })
}

fn is_of_glibc(library: &str) -> bool {
    ["libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux"]
        .iter()
        .any(|own| library.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_says_which_glibc_is_needed() {
        let headers = "  NEEDED               libgcc_s.so.1\n  NEEDED               libc.so.6\n";
        let symbols = "0 DF *UND* 0 (GLIBC_2.2.5) read\n0 DF *UND* 0 (GLIBC_2.34) stat\n0 DF *UND* 0 (GLIBC_2.9) pipe2\n0 (GCC_3.0) x\n";
        let wanted = Needs::Libraries { glibc: (2, 34), others: vec!["libgcc_s.so.1".into()] };
        assert_eq!(read_needs(headers, symbols).unwrap(), wanted);
        assert_eq!(read_needs("", "").unwrap(), Needs::Nothing);
        assert!(read_needs(headers, "").is_err());
    }
}
