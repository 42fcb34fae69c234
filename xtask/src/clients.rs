//! `cargo xtask clients`: the program as clients in other languages, and those of others, meet it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::step::{cargo, must, say, target};
use crate::{eval, examples, mcp, openapi, python, typescript, web};

/// What tests the program from outside, by its name.
type Client = (&'static str, fn(&Path, &Path) -> Result<()>);

const CLIENTS: &[Client] = &[
    ("python", python::test),
    ("typescript", typescript::test),
    ("openapi", openapi::test),
    ("mcp", mcp::test),
    ("eval", eval::test),
    ("examples", examples::test),
    ("web", web::test),
];

/// Builds the program and tests it with these clients, all where none is named, also after one that failed.
pub fn run(root: &Path, names: &[String]) -> Result<ExitCode> {
    if let Some(odd) = names.iter().find(|name| CLIENTS.iter().all(|(known, _)| known != name)) {
        let known: Vec<_> = CLIENTS.iter().map(|(name, _)| *name).collect();
        bail!("there is no client {odd}; there are {}", known.join(", "));
    }
    // The page first: the program has it inside.
    web::build_if_stale(root)?;
    // As for the tests, with the same features: what they built is used again.
    must(cargo(root).args(["test", "--locked", "--workspace", "--no-run", "--quiet"]))?;
    let holdfast = target(root).join("debug/holdfast");
    let mut failed = vec![];
    for (name, test) in CLIENTS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name))
    {
        say(&format!("-- {name}"));
        if let Err(error) = test(root, &holdfast) {
            eprintln!("xtask: {name}: {error:#}");
            crate::step::failed(format!("{name}: {error:#}"));
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("xtask: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}
