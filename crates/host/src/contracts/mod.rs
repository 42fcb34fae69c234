//! Runs under contracts: what they promise is checked before anything runs, what they do is measured, and both are compared when they
//! are over.
//!
//! A contract is on disk before the first key is typed ([`kept`]), so a host that is killed leaves it to the next one, which compares
//! what is known and says what is not. Measuring is done on other threads, and only for such runs ([`measure`]). How an actor's runs
//! came out is its record ([`records`]), which policies can use; only the host writes it, from what it saw itself.

mod answer;
pub(crate) mod follow;
mod kept;
mod measure;
mod records;

pub(crate) use kept::{Book, Trace};
pub(crate) use measure::{Measures, Measuring};
pub(crate) use records::Records;

use holdfast_gate::{Line, Promised};
use holdfast_wire::contracts::{Contract, INTENT_BYTES_MAX};
use holdfast_wire::runs::RunStartParams;
use holdfast_wire::{Code, Fault};

/// Longest name of a command in a record.
const ACTION_CHARS_MAX: usize = 64;

/// Refuses a contract that cannot be kept by anybody, or not here. Nothing of the run is done by then.
pub(crate) fn check(params: &RunStartParams) -> Result<(), Fault> {
    let bad = |message: String| Err(Fault::new(Code::BadRequest, message));
    if params.intent.as_ref().is_some_and(|intent| intent.len() > INTENT_BYTES_MAX) {
        return bad(format!("`intent` may have at most {INTENT_BYTES_MAX} bytes"));
    }
    let Some(contract) = &params.contract else { return Ok(()) };
    if let Some(problem) = contract.problem() {
        return bad(format!("the contract is not valid: {problem}"));
    }
    if params.intent.is_some() && contract.intent.is_some() && params.intent != contract.intent {
        return bad("the run and its contract have two different intents".into());
    }
    if contract.retries > 0 && params.new.is_some() {
        return Err(Fault::new(Code::BadRequest, "`retries` is for a run in a session's shell")
            .hint("name a session in place of `new`, or run it again yourself"));
    }
    if contract.retries > 0 && params.on_exit.is_some() {
        return Err(Fault::new(Code::BadRequest, "`on_exit` tells of one attempt, and `retries` asks for several")
            .hint("leave one of them out; `run.get` waits for the last attempt"));
    }
    Ok(())
}

/// Why it is run: as the run says, or its contract.
pub(crate) fn intent_of(params: &RunStartParams) -> Option<String> {
    let said = || params.contract.as_ref().and_then(|contract| contract.intent.clone());
    params.intent.clone().or_else(said)
}

/// What a line counts as in a record: its first command.
pub(crate) fn action_of(line: &str) -> String {
    let read = Line::read(line);
    let name = read.commands.first().and_then(|command| command.name.clone()).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "?".to_owned() } else { name.chars().take(ACTION_CHARS_MAX).collect() }
}

/// A contract as policies see it, for a run in a directory without links. Blocks.
pub(crate) fn promised(contract: &Contract, cwd: &str) -> Promised {
    let expect = &contract.expect;
    Promised {
        promises: contract.promises().into_iter().map(str::to_owned).collect(),
        exit: expect.exit.iter().copied().collect(),
        may_change: patterns(contract, cwd).into_iter().collect(),
        ports: expect.ports.iter().flatten().copied().collect(),
        processes: expect.processes,
        network: expect.network.iter().flatten().cloned().collect(),
        idempotent: contract.idempotent,
        retries: contract.retries,
    }
}

/// The patterns of files, absolute, and without links as far as they name one directory. Blocks.
pub(crate) fn patterns(contract: &Contract, cwd: &str) -> Vec<String> {
    let whole = |pattern: &String| {
        let pattern = match (pattern.starts_with('/'), pattern.strip_prefix("~/")) {
            (true, _) => pattern.clone(),
            (false, Some(below)) => format!("{}/{below}", crate::birth::home()),
            (false, None) => format!("{cwd}/{}", pattern.strip_prefix("./").unwrap_or(pattern)),
        };
        let beginning = beginning_of(&pattern);
        let rest = pattern[beginning.len()..].to_owned();
        // The last name is what is changed, a link too.
        match (rest.is_empty(), beginning.rsplit_once('/')) {
            (true, Some((dir, name))) => format!("{}/{name}", crate::gate::real_text(dir).trim_end_matches('/')),
            (true, None) => pattern,
            (false, _) => format!("{}{rest}", crate::gate::real_text(beginning).trim_end_matches('/')),
        }
    };
    contract.expect.may_change.iter().flatten().map(whole).collect()
}

/// The directory that a pattern is about, up to its first part that stands for several.
pub(crate) fn beginning_of(pattern: &str) -> &str {
    let Some(star) = pattern.find(['*', '?']) else { return pattern };
    &pattern[..pattern[..star].rfind('/').unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_as_its_first_command() {
        for (line, action) in [
            ("make -j8 test", "make"),
            ("/usr/bin/git push && rm x", "git"),
            ("X=1 cargo build", "cargo"),
            ("$X", "?"),
            ("", "?"),
        ] {
            assert_eq!(action_of(line), action, "{line}");
        }
    }

    #[test]
    fn patterns_are_whole_and_without_links() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink("real", real.join("link")).unwrap();
        let may_change = ["out/**", "*.o", "link/x*", "link", "/etc/*.conf"].map(str::to_owned).to_vec();
        let mut contract = Contract::default();
        contract.expect.may_change = Some(may_change);
        let cwd = real.to_str().unwrap();
        let below = |rest: &str| format!("{cwd}/{rest}");
        let found = patterns(&contract, cwd);
        assert_eq!(found, [below("out/**"), below("*.o"), below("real/x*"), below("link"), "/etc/*.conf".to_owned()]);
    }
}
