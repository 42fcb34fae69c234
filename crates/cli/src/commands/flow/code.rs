//! Flows in code, as the service gets them: the file goes to it, and it starts workers with that.

use super::{ask, read, worker};
use crate::args::FlowDecideArgs;
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::show::visible;
use holdfast_flow::Hosted;
use holdfast_flows::protocol::{Kept, Request};
use std::path::Path;

/// A file that the service has, and which flow of it is meant.
pub struct Meant {
    pub code: String,
    pub hosted: Hosted,
    pub name: String,
}

/// Whether a file has flows in code.
pub fn is_code(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    path.is_file() && ["py", "mjs", "js", "ts", "mts"].contains(&ending.as_ref())
}

/// Gives a file to the service.
pub fn file(here: &Here, path: &Path) -> Result<(String, Hosted), Failure> {
    let names = names(here, path)?;
    let program = worker::interpreter(here, path)?;
    let absolute = std::path::absolute(path).map_err(|e| Failure::io("cannot find the current directory", e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kept: Kept = ask(here, &Request::Keep { text: read(path)?, file: name })?;
    Ok((kept.code, Hosted { program, file: absolute.display().to_string(), names }))
}

/// Gives a file to the service for one of its flows: the only one, or that which is named.
pub fn kept(here: &Here, path: &Path, flow: Option<&str>) -> Result<Meant, Failure> {
    let (code, hosted) = file(here, path)?;
    let name = one_of(&hosted.names, flow)?;
    Ok(Meant { code, hosted, name })
}

/// The flows of a file.
pub fn names(here: &Here, path: &Path) -> Result<Vec<String>, Failure> {
    let listed = worker::command(here, path, &["--names"])?.output();
    let listed = listed.map_err(|e| Failure::io("cannot start the worker", e))?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(Failure::new("invalid_definition", visible(said.trim())));
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect())
}

/// The flow that is named, or the only one.
pub fn one_of(names: &[String], flow: Option<&str>) -> Result<String, Failure> {
    match (flow, names) {
        (Some(name), names) if names.iter().any(|one| one == name) => Ok(name.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (Some(_) | None, names) => {
            let message = format!("which flow? it has {}", names.join(", "));
            Err(Failure::new("usage", message).hint("name it: --flow NAME").status(STATUS_USAGE))
        }
    }
}

/// `holdfast flow worker`.
pub fn worker(here: &Here, args: &FlowDecideArgs) -> Result<u8, Failure> {
    match &args.kept {
        Some(code) => worker::worker(here, &args.of.file, &["--kept", code]),
        None => worker::worker(here, &args.of.file, &[]),
    }
}
