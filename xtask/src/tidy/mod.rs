//! `cargo xtask tidy`: the rules about this tree that no compiler checks.
//!
//! Each check takes the tree's texts and returns problems; each problem says where it is and what to do about it. The
//! checks read no files themselves, so that their tests can show them small broken trees.

mod documents;
mod frames;
mod long;
mod npm;
mod portable;
mod purity;
mod reasons;
mod rust;
mod tree;
mod words;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::stamp;
use crate::step::{cargo, say};
use tree::Tree;

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// A file, or a file and a line.
    at: String,
    /// What is wrong, and what to do.
    what: String,
}

impl Problem {
    fn new(at: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { at: at.into(), what: what.into() }
    }
}

/// Runs every check and prints every problem.
pub fn run(root: &Path) -> Result<ExitCode> {
    let tree = Tree::read(root)?;
    let metadata = metadata(root)?;
    let sources = rust::parse(&tree);
    let checks: [(&str, Vec<Problem>); 10] = [
        ("rust", sources.problems()),
        ("purity", purity::check(&tree, &metadata)),
        ("portable", portable::check(&tree)),
        ("reasons", reasons::check(&tree)),
        ("long", long::check(&tree, &sources)),
        ("frames", frames::check(&tree)),
        ("words", words::check(&tree, &sources)),
        ("documents", documents::check(&tree)),
        ("page", page(root)?),
        ("npm", npm::check(&tree, crate::test::NPM_DIRS)),
    ];
    let mut count = 0;
    for (name, problems) in &checks {
        count += problems.len();
        for problem in problems {
            eprintln!("{name}: {}: {}", problem.at, problem.what);
        }
    }
    if count > 0 {
        eprintln!("xtask: tidy: {count} problems");
        return Ok(ExitCode::FAILURE);
    }
    say("tidy: nothing to complain about");
    Ok(ExitCode::SUCCESS)
}

/// The page in `web/dist` is the one of today's sources.
fn page(root: &Path) -> Result<Vec<Problem>> {
    let complaint = stamp::complaint(root).context("cannot read the sources of the page")?;
    Ok(complaint.map(|what| Problem::new(stamp::FILE, what)).into_iter().collect())
}

/// Lowers the numbers in the list of long things to today's.
pub fn shrink(root: &Path) -> Result<ExitCode> {
    let tree = Tree::read(root)?;
    let list = long::shrunk(&tree, &rust::parse(&tree));
    std::fs::write(root.join(long::LIST), list).with_context(|| format!("cannot write {}", long::LIST))?;
    run(root)
}

/// What cargo knows of the workspace's own crates.
fn metadata(root: &Path) -> Result<serde_json::Value> {
    let output = cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .context("cannot run `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("`cargo metadata` gave no JSON")
}
