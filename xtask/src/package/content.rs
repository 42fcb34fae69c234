//! What a package has beside the program: completions, the manual page, units, licences. The program writes what is its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::{Files, gzip};

/// Where a system looks for what.
pub struct Layout {
    /// The directory of units of users.
    pub units: &'static str,
    /// Zsh's directory for what packages bring.
    pub zsh: &'static str,
    /// Documents.
    pub doc: &'static str,
    /// Whether pages are compressed, as Debian has them.
    pub gz: bool,
}

/// Below `/usr`, on Debian.
pub const DEBIAN: Layout =
    Layout { units: "lib/systemd/user/", zsh: "share/zsh/vendor-completions/", doc: "share/doc/holdfast/", gz: true };
/// Below any prefix.
pub const PREFIX: Layout = Layout { units: "lib/systemd/user/", zsh: "share/zsh/site-functions/", doc: "", gz: false };

/// Everything, with the program's own parts made by `speaker`: the same program, as it runs on this machine.
pub fn files(root: &Path, file: &Path, speaker: &Path, layout: &Layout) -> Result<Files> {
    let read = |path: &str| std::fs::read(root.join(path)).with_context(|| format!("cannot read {path}"));
    let mut files = Files::default();
    files.add_program("bin/holdfast", std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    files.add("share/bash-completion/completions/holdfast", said(speaker, &["completions", "bash"])?);
    files.add(format!("{}_holdfast", layout.zsh), said(speaker, &["completions", "zsh"])?);
    files.add("share/fish/vendor_completions.d/holdfast.fish", said(speaker, &["completions", "fish"])?);
    let page = said(speaker, &["man"])?;
    match layout.gz {
        true => files.add("share/man/man1/holdfast.1.gz", gzip(&page)?),
        false => files.add("share/man/man1/holdfast.1", page),
    }
    for unit in ["holdfast-host.socket", "holdfast-host.service"] {
        files.add(format!("{}{unit}", layout.units), read(&format!("packaging/systemd/{unit}"))?);
    }
    for page in ["docs/install.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        let name = page.rsplit('/').next().unwrap_or(page);
        files.add(format!("{}{name}", layout.doc), read(page)?);
    }
    Ok(files)
}

/// What the program prints, in a home that is nobody's.
fn said(speaker: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(speaker).args(args).env("HOLDFAST_HOME", "/nonexistent").output();
    let output = output.with_context(|| format!("cannot run {}", speaker.display()))?;
    ensure!(output.status.success() && !output.stdout.is_empty(), "`holdfast {}` failed", args.join(" "));
    Ok(output.stdout)
}
