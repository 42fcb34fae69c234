//! `cargo xtask release-notes`: what changed, from CHANGELOG.md, with the packages and their checksums where they were made.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::VERSION;
use crate::step::target;

/// Prints them: of a version that CHANGELOG.md has, or of what is unreleased as this one.
pub fn run(root: &Path, version: Option<&str>) -> Result<ExitCode> {
    let changes = std::fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    let sums = std::fs::read_to_string(target(root).join("package/SHA256SUMS")).unwrap_or_default();
    print!("{}", notes(&changes, version, &sums)?);
    Ok(ExitCode::SUCCESS)
}

fn notes(changes: &str, version: Option<&str>, sums: &str) -> Result<String> {
    let part = |name: &str| {
        let mut lines = changes.lines().skip_while(|line| {
            line.strip_prefix("## ").and_then(|title| title.split_whitespace().next()) != Some(name)
        });
        lines.next()?;
        let text: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
        Some(text.join("\n").trim().to_owned())
    };
    let found = match version {
        Some(version) => part(version),
        None => part(VERSION).or_else(|| part("Unreleased")),
    };
    let version = version.unwrap_or(VERSION);
    let text = found.with_context(|| format!("CHANGELOG.md has no part `## {version}`"))?;
    let mut out = format!("# Holdfast {version}\n\n{text}\n");
    let ours: Vec<&str> = sums.lines().filter(|line| line.contains(version)).collect();
    if !ours.is_empty() {
        out += &format!(
            "\n## Packages\n\nSHA-256, as in SHA256SUMS. docs/install.md says how to install each.\n\n```\n{}\n```\n",
            ours.join("\n")
        );
    }
    out += "\n## Upgrade\n\n`holdfast upgrade` restarts the host with the new program. Sessions keep running; it lists those whose keepers are of an earlier build.\n";
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: &str =
        "# Changes\n\n## Unreleased\n\n- new\n\n## 0.0.9 (2026-01-01)\n\n- old\n  goes on\n\n## 0.0.8\n\n- older\n";

    #[test]
    fn the_notes_of_a_version_are_its_part_of_the_changelog() {
        let old = notes(CHANGES, Some("0.0.9"), "").unwrap();
        assert!(old.starts_with("# Holdfast 0.0.9\n\n- old\n  goes on\n\n## Upgrade"), "{old}");
        let next = notes(CHANGES, None, &format!("abc  holdfast_{VERSION}-1_amd64.deb\ndef  PKGBUILD\n")).unwrap();
        assert!(
            next.contains("- new\n\n## Packages") && next.contains("abc  holdfast_") && !next.contains("PKGBUILD"),
            "{next}"
        );
        assert!(notes(CHANGES, Some("9.9.9"), "").is_err());
    }
}
