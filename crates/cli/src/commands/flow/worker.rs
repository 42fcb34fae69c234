//! `holdfast flow worker` and `flow test`: start the worker of the language that a file is written in.

use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::who;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the Python interpreter where it is another one.
const PYTHON: &str = "HOLDFAST_PYTHON";
/// Names the program that runs JavaScript where it is another one.
const NODE: &str = "HOLDFAST_NODE";
/// Runs the worker of the package that the flow's own file imports: both must mean the same one.
const NODE_WORKER: &str = r#"
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
const words = process.argv.slice(1);
let found;
try {
  found = createRequire(resolve(words.at(-1))).resolve("@holdfast/client/flow");
} catch {
  console.error("error: " + words.at(-1) + " cannot import @holdfast/client/flow");
  console.error("hint: install it beside the file: npm install PATH/sdk/typescript, after npm install and npm run build there");
  process.exit(1);
}
const { main } = await import(pathToFileURL(found).href);
process.exit(await main(words));
"#;

/// Becomes the worker, which gets these options.
pub fn worker(here: &Here, file: &Path, options: &[&str]) -> Result<u8, Failure> {
    let mut command = command(here, file, options)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let error = command.exec();
    let hint = format!("name it in {}", if file.extension().is_some_and(|one| one == "py") { PYTHON } else { NODE });
    Err(Failure::io(format!("cannot start {program}"), error).hint(hint))
}

/// What starts the worker of the language that a file is written in.
pub fn command(here: &Here, file: &Path, options: &[&str]) -> Result<Command, Failure> {
    // What was kept is not read from where it lay.
    let is_kept = options.first() == Some(&"--kept");
    if !is_kept && !file.is_file() {
        return Err(Failure::new("usage", format!("cannot read {}", file.display())).status(STATUS_USAGE));
    }
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    let (program, first): (OsString, &[&str]) = match ending.as_ref() {
        "py" => (python()?, &["-m", "holdfast.flow"]),
        // What follows `--` is the worker's, whatever it looks like.
        "mjs" | "js" | "ts" | "mts" => (named(NODE, "node"), &["--input-type=module", "-e", NODE_WORKER, "--"]),
        _ => {
            let message = format!("no worker for {}", file.display());
            return Err(Failure::new("usage", message)
                .hint(
                    "write flows in a .py, .mjs, .js or .ts file; a .yaml file needs no worker: holdfast flow start FILE",
                )
                .status(STATUS_USAGE));
        }
    };
    let mut command = Command::new(&program);
    command.args(first).args(options).arg(file).env("HOLDFAST_BIN", &here.program);
    if !is_kept {
        command.env(who::VARIABLE, here.who()?.actor().handle.to_string());
    }
    Ok(command)
}

/// The interpreter of a file, as a path that means the same everywhere.
pub fn interpreter(here: &Here, file: &Path) -> Result<String, Failure> {
    let command = command(here, file, &[])?;
    let program = command.get_program();
    let tells = match file.extension().is_some_and(|one| one == "py") {
        true => ["-c", "import sys; print(sys.executable)"],
        false => ["-p", "process.execPath"],
    };
    let told = Command::new(program).args(tells).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let told = told.map_err(|e| Failure::io(format!("cannot start {}", program.to_string_lossy()), e))?;
    let path = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    match Path::new(&path).is_absolute() {
        true => Ok(path),
        false => Err(Failure::new("no_client", format!("{} does not say where it is", program.to_string_lossy()))),
    }
}

fn named(variable: &str, default: &str) -> OsString {
    std::env::var_os(variable).filter(|name| !name.is_empty()).unwrap_or_else(|| default.into())
}

/// An interpreter that has our package.
fn python() -> Result<OsString, Failure> {
    let python = named(PYTHON, "python3");
    let shown = python.to_string_lossy().into_owned();
    let has_client = Command::new(&python)
        .args(["-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('holdfast') is None)"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| Failure::io(format!("cannot start {shown}"), e))?;
    match has_client.success() {
        true => Ok(python),
        false => Err(Failure::new("no_client", format!("{shown} does not have the holdfast package")).hint(format!(
            "install it from sdk/python: pip install ./sdk/python; or name another interpreter in {PYTHON}"
        ))),
    }
}
