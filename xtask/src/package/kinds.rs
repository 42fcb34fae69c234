//! Each kind of package: its files, its own documents, and its name.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::archive::{Files, ar, gzip};
use super::build::Needs;
use super::content::{DEBIAN, PREFIX, files};

/// What all kinds are made from.
pub struct Source<'a> {
    /// The repository.
    pub root: &'a Path,
    /// The program.
    pub program: &'a Path,
    /// The same, as it runs on this machine.
    pub speaker: &'a Path,
    /// What it needs.
    pub needs: &'a Needs,
    /// Its version.
    pub version: &'a str,
    /// The processor, as rustc calls it.
    pub arch: &'a str,
    /// Seconds since 1970 that all files are of.
    pub time: u64,
}

/// A package: the file's name, and its bytes.
pub type Package = (String, Vec<u8>);

const SUMMARY: &str = "Keeps terminal sessions alive, for people and agents";
const ABOUT: &str = "A shell, an editor, a build: what runs in a session goes on when the terminal, the connection or the daemon goes away.";

/// A name of this processor in another world.
fn called<'a>(arch: &'a str, names: &[(&str, &'a str)]) -> &'a str {
    names.iter().find(|(known, _)| *known == arch).map_or(arch, |(_, name)| name)
}

/// The Debian package.
pub fn deb(source: &Source<'_>) -> Result<Package> {
    let arch = called(source.arch, &[("x86_64", "amd64"), ("aarch64", "arm64")]);
    let mut data = files(source.root, source.program, source.speaker, &DEBIAN)?.below("usr/");
    let changes = std::fs::read(source.root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    data.add("usr/share/doc/holdfast/changelog.gz", gzip(&changes)?);
    data.add("usr/share/doc/holdfast/copyright", COPYRIGHT);
    let data = data.below("./");
    let mut control = Files::default();
    control.add("./control", deb_control(source.version, arch, source.needs, data.size().div_ceil(1024)));
    let (control, data) = (control.tar_gz(source.time)?, data.tar_gz(source.time)?);
    let members: [(&str, &[u8]); 3] =
        [("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    Ok((format!("holdfast_{}-1_{arch}.deb", source.version), ar(&members, source.time)))
}

const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: holdfast

Files: *
Copyright: the authors of Holdfast
License: Apache-2.0 or MIT
 The texts are in LICENSE-APACHE and LICENSE-MIT beside this file.
";

fn deb_control(version: &str, arch: &str, needs: &Needs, kib: u64) -> String {
    let depends = match needs {
        Needs::Nothing => String::new(),
        Needs::Libraries { glibc: (major, minor), others } => {
            let gcc = if others.iter().any(|name| name.starts_with("libgcc_s")) { ", libgcc-s1" } else { "" };
            format!("Depends: libc6 (>= {major}.{minor}){gcc}\n")
        }
    };
    format!(
        "Package: holdfast\nVersion: {version}-1\nArchitecture: {arch}\nMaintainer: Holdfast <packages@holdfast.invalid>\n\
         Installed-Size: {kib}\n{depends}Suggests: openssh-client, criu\nSection: utils\nPriority: optional\n\
         Description: {SUMMARY}\n {ABOUT}\n"
    )
}

/// What one unpacks anywhere.
pub fn tarball(source: &Source<'_>) -> Result<Package> {
    let stem = stem(source);
    let mut all = files(source.root, source.program, source.speaker, &PREFIX)?;
    all.add("README.md", std::fs::read(source.root.join("README.md")).context("cannot read README.md")?);
    Ok((format!("{stem}.tar.gz"), all.below(&format!("{stem}/")).tar_gz(source.time)?))
}

/// The name of the tarball and of its directory.
pub fn stem(source: &Source<'_>) -> String {
    let libc = if *source.needs == Needs::Nothing { "static" } else { "gnu" };
    format!("holdfast-{}-{}-linux-{libc}", source.version, source.arch)
}

/// The npm package: npm links its one program into the path.
pub fn npm(source: &Source<'_>) -> Result<Package> {
    let cpu = called(source.arch, &[("x86_64", "x64"), ("aarch64", "arm64")]);
    let mut all = files(source.root, source.program, source.speaker, &PREFIX)?;
    let manifest = json!({
        "name": "@holdfast/cli",
        "version": source.version,
        "description": SUMMARY,
        "license": "Apache-2.0 OR MIT",
        "bin": { "holdfast": "bin/holdfast" },
        "man": "./share/man/man1/holdfast.1",
        "os": ["linux"],
        "cpu": [cpu],
        "libc": match source.needs { Needs::Nothing => json!(["glibc", "musl"]), Needs::Libraries { .. } => json!(["glibc"]) },
        "files": ["bin", "share", "lib", "install.md", "LICENSE-APACHE", "LICENSE-MIT"],
    });
    all.add("package.json", format!("{manifest:#}\n"));
    all.add(
        "README.md",
        format!("# Holdfast\n\n{SUMMARY}. {ABOUT}\n\n    npx @holdfast/cli new work\n\nSee install.md.\n"),
    );
    Ok((format!("holdfast-cli-{}-{cpu}.tgz", source.version), all.below("package/").tar_gz(source.time)?))
}

/// The wheel: pip puts its one program beside Python's.
pub fn wheel(source: &Source<'_>) -> Result<Package> {
    let (version, arch) = (source.version, source.arch);
    let tags = match source.needs {
        Needs::Nothing => format!("manylinux_2_17_{arch}.manylinux2014_{arch}.musllinux_1_1_{arch}"),
        Needs::Libraries { glibc: (major, minor), .. } => format!("manylinux_{major}_{minor}_{arch}"),
    };
    let content = files(source.root, source.program, source.speaker, &PREFIX)?;
    let mut all = Files::default();
    let (data, info) = (format!("holdfast_cli-{version}.data/"), format!("holdfast_cli-{version}.dist-info/"));
    for (path, file) in content.iter() {
        match path {
            "bin/holdfast" => all.add_program(format!("{data}scripts/holdfast"), file.bytes.clone()),
            _ if path.starts_with("share/") => all.add(format!("{data}data/{path}"), file.bytes.clone()),
            _ if path.starts_with("LICENSE") => all.add(format!("{info}licenses/{path}"), file.bytes.clone()),
            // Units of a virtual environment would be found by nobody.
            _ => {}
        }
    }
    all.add(
        format!("{info}METADATA"),
        format!(
            "Metadata-Version: 2.4\nName: holdfast-cli\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: Apache-2.0 OR MIT\n\
             License-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\nRequires-Python: >=3.7\n\n{ABOUT}\n\nThe client library is the \
             package `holdfast`.\n"
        ),
    );
    let mut wheel = "Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags.split('.') {
        wheel += &format!("Tag: py3-none-{tag}\n");
    }
    all.add(format!("{info}WHEEL"), wheel);
    let mut record = String::new();
    for (path, file) in all.iter() {
        record += &format!("{path},sha256={},{}\n", digest(&file.bytes), file.bytes.len());
    }
    all.add(format!("{info}RECORD"), format!("{record}{info}RECORD,,\n"));
    Ok((format!("holdfast_cli-{version}-py3-none-{tags}.whl"), all.zip(source.time)?))
}

/// SHA-256 as RECORD has it.
fn digest(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}

/// A template with its places filled; one without a value is an error.
pub fn filled(template: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut text: Vec<&str> = template.lines().filter(|line| !line.starts_with("# A template:")).collect();
    text.push("");
    let mut text = text.join("\n");
    for (key, value) in values {
        text = text.replace(&format!("@{key}@"), value);
    }
    let left = text
        .split('@')
        .skip(1)
        .step_by(2)
        .find(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    left.map_or(Ok(text.clone()), |left| anyhow::bail!("the template has @{left}@, which nothing fills"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheels_record_has_base64_for_addresses() {
        // What `printf abc | openssl dgst -sha256 -binary | basenc --base64url` prints, without the padding.
        assert_eq!(digest(b"abc"), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
    }

    #[test]
    fn a_debian_package_depends_on_the_libraries_that_the_program_needs() {
        let needs = Needs::Libraries { glibc: (2, 34), others: vec!["libgcc_s.so.1".into()] };
        assert!(deb_control("1.2.3", "amd64", &needs, 7).contains("\nDepends: libc6 (>= 2.34), libgcc-s1\n"));
        let alone = deb_control("1.2.3", "amd64", &Needs::Nothing, 7);
        assert!(!alone.contains("Depends") && alone.ends_with(".\n"), "{alone}");
    }

    #[test]
    fn a_place_that_nothing_fills_is_an_error() {
        let template = "# A template: x\nversion @VERSION@\n";
        assert_eq!(filled(template, &[("VERSION", "1")]).unwrap(), "version 1\n");
        assert!(filled(template, &[]).is_err());
    }
}
