//! What a run promises: options and a file become one contract.

use crate::args::{ContractArgs, RunStartArgs};
use crate::failure::{Failure, STATUS_USAGE};
use holdfast_wire::contracts::Contract;
use std::path::Path;

/// The word for an empty list.
const NOTHING: &str = "nothing";
/// Longest file: a contract has some kilobytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;

fn usage(message: String) -> Failure {
    Failure::new("usage", message).status(STATUS_USAGE)
}

/// The contract that a run is started with.
pub fn given(args: &RunStartArgs) -> Result<Option<Box<Contract>>, Failure> {
    let options = &args.contract;
    if !options.is_given() {
        return Ok(None);
    }
    let mut contract = match &options.contract {
        Some(file) => read(file)?,
        None => Contract::default(),
    };
    add(&mut contract, options)?;
    // What counts as success is said once.
    let exits = args.expect.expect.iter().filter_map(|expect| expect.exits()).flatten();
    contract.expect.exit.extend(exits.copied());
    match contract.problem() {
        Some(problem) => Err(usage(format!("the contract is not valid: {problem}"))),
        None => Ok(Some(Box::new(contract))),
    }
}

fn read(file: &Path) -> Result<Contract, Failure> {
    let failed = |error| Failure::io(format!("cannot read the contract in {}", file.display()), error);
    if std::fs::metadata(file).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(usage(format!("{} is too long for a contract", file.display())));
    }
    let text = std::fs::read_to_string(file).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| {
        usage(format!("{}: {error}", file.display()))
            .hint(r#"a contract looks like {"expect": {"may_change": ["src/**"]}}; see docs/contracts.md"#)
    })
}

fn add(contract: &mut Contract, options: &ContractArgs) -> Result<(), Failure> {
    let expect = &mut contract.expect;
    list(&mut expect.may_change, "--may-change", &options.may_change, |text| Ok(text.to_owned()))?;
    list(&mut expect.network, "--may-connect", &options.may_connect, |text| Ok(text.to_owned()))?;
    list(&mut expect.ports, "--may-listen", &options.may_listen, |text| {
        text.parse()
            .map_err(|_| usage(format!("invalid value {text:?} for --may-listen; expected a port or `nothing`")))
    })?;
    expect.processes = options.may_leave.or(expect.processes);
    contract.idempotent |= options.idempotent;
    contract.retries = options.retries.unwrap_or(contract.retries);
    contract.backoff_ms = options.backoff.map(|pause| pause.ms).or(contract.backoff_ms);
    Ok(())
}

fn list<T>(
    into: &mut Option<Vec<T>>,
    option: &str,
    given: &[String],
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<(), Failure> {
    if given.is_empty() {
        return Ok(());
    }
    let nothing = given.iter().filter(|text| *text == NOTHING).count();
    if nothing > 0 && given.len() > 1 {
        return Err(usage(format!("{option} {NOTHING} goes with no other {option}")));
    }
    let all = into.get_or_insert_default();
    for text in given.iter().filter(|text| *text != NOTHING) {
        all.push(read(text)?);
    }
    Ok(())
}
