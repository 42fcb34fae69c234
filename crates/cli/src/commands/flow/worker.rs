//! `holdfast flow worker` and `flow test`: start the worker of the language that a file is written in.

use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::who;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the Python interpreter where it is another one.
const PYTHON: &str = "HOLDFAST_PYTHON";

/// Becomes the worker, which gets these options.
pub fn worker(here: &Here, file: &Path, options: &[&str]) -> Result<u8, Failure> {
    if !file.is_file() {
        return Err(Failure::new("usage", format!("cannot read {}", file.display())).status(STATUS_USAGE));
    }
    if file.extension().is_none_or(|ending| ending != "py") {
        let message = format!("no worker for {}", file.display());
        return Err(Failure::new("usage", message)
            .hint("write flows in a .py file; a .yaml file needs no worker: holdfast flow start FILE")
            .status(STATUS_USAGE));
    }
    let python = std::env::var_os(PYTHON).filter(|python| !python.is_empty()).unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy().into_owned();
    let has_client = Command::new(&python)
        .args(["-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('holdfast') is None)"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| Failure::io(format!("cannot start {shown}"), e))?;
    if !has_client.success() {
        return Err(Failure::new("no_client", format!("{shown} does not have the holdfast package")).hint(format!(
            "install it from sdk/python: pip install ./sdk/python; or name another interpreter in {PYTHON}"
        )));
    }
    let handle = here.who()?.actor().handle.to_string();
    let error = Command::new(&python)
        .args(["-m", "holdfast.flow"])
        .args(options)
        .arg(file)
        .env(who::VARIABLE, handle)
        .env("HOLDFAST_BIN", &here.program)
        .exec();
    Err(Failure::io(format!("cannot start {shown}"), error))
}
