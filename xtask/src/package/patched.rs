//! Crates that do not know a system yet, with the one line each that they lack. Only to be checked: nothing is linked with them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::step::{cargo, must, program};

/// A change in a file of a crate, for a target.
struct Patch {
    target: &'static str,
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const PATCHES: [Patch; 2] = [
    // Its random numbers come from crate `getrandom`, which knows Cygwin.
    Patch {
        target: "x86_64-pc-cygwin",
        name: "ring",
        file: "src/rand.rs",
        from: "    target_os = \"dragonfly\",\n",
        to: "    target_os = \"cygwin\",\n    target_os = \"dragonfly\",\n",
    },
    // Cygwin has login_tty(3), and crate `libc` does not say so. Nobody calls it.
    Patch {
        target: "x86_64-pc-cygwin",
        name: "rustix-openpty",
        file: "src/lib.rs",
        from: "any(target_os = \"fuchsia\", target_os = \"illumos\", target_os = \"solaris\")",
        to: "any(target_os = \"cygwin\", target_os = \"fuchsia\", target_os = \"illumos\", target_os = \"solaris\")",
    },
];

/// What cargo is told so that it takes such crates of a target from here.
pub fn arguments(root: &Path, triple: &str, dir: &Path) -> Result<Vec<String>> {
    let wanted: Vec<&Patch> = PATCHES.iter().filter(|patch| patch.target == triple).collect();
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    let mut asked = cargo(root);
    let output = asked.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", triple]).output();
    let output = output.context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let mut paths = vec![];
    for patch in wanted {
        let of = packages.iter().find(|package| package["name"] == patch.name);
        let manifest = of.and_then(|package| package["manifest_path"].as_str());
        let manifest = manifest.with_context(|| format!("{} is no dependency any more: drop its patch", patch.name))?;
        let source = Path::new(manifest).parent().context("a manifest lies in a directory")?;
        paths.push(copied(root, source, patch, dir)?);
    }
    let quoted: Vec<String> = paths.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
    Ok(vec!["--config".into(), format!("paths=[{}]", quoted.join(","))])
}

/// A copy of the crate with the change. One that is there stays: what was built with it stays fresh.
fn copied(root: &Path, source: &Path, patch: &Patch, dir: &Path) -> Result<PathBuf> {
    let name = source.file_name().context("a crate's directory has a name")?;
    let to = dir.join(name);
    if to.is_dir() {
        return Ok(to);
    }
    let part = dir.join("part");
    let _ = std::fs::remove_dir_all(&part);
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    must(program("cp", root).arg("-r").arg(source).arg(&part))?;
    let edit = |file: &str, change: &dyn Fn(&str) -> Result<String>| -> Result<()> {
        let path = part.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        std::fs::write(&path, change(&text)?).with_context(|| format!("cannot write {}", path.display()))
    };
    edit(patch.file, &|text| changed(text, patch))?;
    // Cargo takes it for ours, and shows its warnings.
    edit("src/lib.rs", &|text| Ok(format!("#![allow(warnings)]\n{text}")))?;
    std::fs::rename(&part, &to).context("cannot keep the changed crate")?;
    Ok(to)
}

fn changed(text: &str, patch: &Patch) -> Result<String> {
    ensure!(text.contains(patch.from), "{} of {} is another by now: look at its patch again", patch.file, patch.name);
    Ok(text.replace(patch.from, patch.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_that_no_longer_fits_is_told() {
        let patch = &PATCHES[0];
        let fits = changed(&format!("#[cfg(any(\n{})]", patch.from), patch).unwrap();
        assert!(fits.contains("target_os = \"cygwin\",\n    target_os = \"dragonfly\""), "{fits}");
        assert!(changed("", patch).unwrap_err().to_string().contains("src/rand.rs of ring"));
    }

    #[test]
    fn a_target_that_needs_no_patch_has_none() {
        let none = Path::new("/nowhere");
        assert!(arguments(none, "aarch64-apple-darwin", none).unwrap().is_empty());
    }
}
