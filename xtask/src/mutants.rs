//! `cargo xtask mutants`: the code of pure crates is changed in one place at a time, and the crate's own tests must notice.
//!
//! A change that no test notices is a survivor. Survivors that are known and explained are in [`LIST`], which may only
//! shrink: a new one fails the task, and so does one on the list that a test notices by now.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, must, program, say, shown, target, works};

/// The version everybody uses: another one makes other changes, and the list would not fit.
const VERSION: &str = "26.2.0";
/// The crates it is for: they need nothing but their own tests, and those are fast.
const CRATES: &[&str] = &["types", "wire", "authority", "screen", "abi", "session"];
/// Known survivors: `path | change | how often | why`, one a line.
const LIST: &str = "xtask/mutants.txt";
/// What the tests of a changed crate may take at least before they are taken to hang: a busy machine needs its time.
const TEST_SECONDS_MIN: &str = "60";

/// What to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    crates: Vec<String>,
    /// `K/N`: one part of N.
    shard: Option<String>,
    /// Stop after this long, whatever is left.
    minutes: Option<u32>,
}

/// How many changes there were by place and kind, as lines of cargo-mutants tell them.
type Changes = BTreeMap<(String, String), usize>;

/// What cargo-mutants found.
#[derive(Debug, Default)]
struct Found {
    missed: Changes,
    noticed: Changes,
    /// Every change of the crates asked for was tried.
    whole: bool,
}

/// Runs it and compares with the list.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    let mut wanted = Wanted::parse(args)?;
    let is_there = |name: &&str| root.join("crates").join(name).join("Cargo.toml").exists();
    if wanted.crates.is_empty() {
        wanted.crates = CRATES.iter().filter(|name| is_there(name)).map(|name| (*name).to_owned()).collect();
    }
    let listed = parse(&std::fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?)?;
    if !works(cargo(root).args(["mutants", "--version"])) {
        must(cargo(root).args(["install", "--locked", "cargo-mutants", "--version", VERSION]))?;
    }
    let found = try_all(root, &wanted)?;
    let problems = compare(&listed, &found, &wanted.crates);
    problems.iter().for_each(|problem| println!("{problem}"));
    let count = |changes: &Changes| changes.values().sum::<usize>();
    say(&format!(
        "{}: {} changes noticed, {} survived, {} on the list{}",
        wanted.crates.join(", "),
        count(&found.noticed),
        count(&found.missed),
        count(&listed),
        if found.whole { "" } else { "; not all of them were tried" }
    ));
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Wanted> {
        let mut wanted = Wanted::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match (arg.as_str(), args.as_slice().first()) {
                ("--shard", Some(shard)) => wanted.shard = Some(shard.clone()),
                ("--minutes", Some(minutes)) => {
                    wanted.minutes = Some(minutes.parse().with_context(|| format!("--minutes {minutes}"))?);
                }
                (name, _) if CRATES.contains(&name) => {
                    wanted.crates.push(name.to_owned());
                    continue;
                }
                (other, _) => bail!("{other} is not one of {}", CRATES.join(", ")),
            }
            args.next();
        }
        Ok(wanted)
    }
}

/// Lets cargo-mutants try its changes, in a copy of the tree.
fn try_all(root: &Path, wanted: &Wanted) -> Result<Found> {
    let out = target(root).join("mutants");
    std::fs::create_dir_all(&out)?;
    let mut command = match wanted.minutes {
        // Interrupted, it still writes down what it found.
        Some(minutes) => {
            let mut command = program("timeout", root);
            command.args(["--signal=INT", &format!("{minutes}m"), "cargo"]);
            command
        }
        None => cargo(root),
    };
    command.args(["mutants", "--jobs", "1", "--no-shuffle", "--colors", "never"]);
    command.args(["--minimum-test-timeout", TEST_SECONDS_MIN, "--output"]).arg(&out);
    command.args(wanted.crates.iter().map(|name| format!("--package=holdfast-{name}")));
    command.args(wanted.shard.iter().map(|shard| format!("--shard={shard}")));
    let status = crate::step::status(&mut command)?;
    // Its codes: all noticed, some survived, some hung; and timeout's for "time is up".
    let is_over = matches!(status.code(), Some(0 | 2 | 3));
    let is_stopped = wanted.minutes.is_some() && matches!(status.code(), Some(124 | 130) | None);
    if !is_over && !is_stopped {
        bail!("`{}` failed: {status}", shown(&command));
    }
    let lines = |name: &str| -> Changes {
        let text = std::fs::read_to_string(out.join("mutants.out").join(name)).unwrap_or_default();
        count(text.lines().filter_map(change))
    };
    let mut noticed = lines("caught.txt");
    for (change, times) in lines("timeout.txt") {
        *noticed.entry(change).or_default() += times;
    }
    Ok(Found { missed: lines("missed.txt"), noticed, whole: is_over && wanted.shard.is_none() })
}

/// `path:line:column: what` without its line, which moves with every edit above it.
fn change(line: &str) -> Option<(String, String)> {
    let (place, what) = line.split_once(": ")?;
    Some((place.split(':').next()?.to_owned(), what.trim().to_owned()))
}

fn count(all: impl Iterator<Item = (String, String)>) -> Changes {
    let mut changes = Changes::new();
    all.for_each(|change| *changes.entry(change).or_default() += 1);
    changes
}

/// Reads the list. The change is all between the first bar and the last but one: some have bars of their own.
fn parse(list: &str) -> Result<Changes> {
    let mut listed = Changes::new();
    for (i, line) in list.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let bad = || format!("{LIST}:{}: not `path | change | how often | why`", i + 1);
        let (rest, why) = line.rsplit_once(" | ").with_context(bad)?;
        let (rest, times) = rest.rsplit_once(" | ").with_context(bad)?;
        let (path, what) = rest.split_once(" | ").with_context(bad)?;
        let times = times.trim().parse().ok().filter(|times| *times > 0).with_context(bad)?;
        if why.trim().is_empty() || listed.insert((path.trim().into(), what.trim().into()), times).is_some() {
            bail!("{LIST}:{}: no reason, or listed twice", i + 1);
        }
    }
    Ok(listed)
}

/// What is wrong with the code, or with the list.
fn compare(listed: &Changes, found: &Found, crates: &[String]) -> Vec<String> {
    let mut problems = vec![];
    for ((path, what), times) in &found.missed {
        let known = listed.get(&(path.clone(), what.clone())).copied().unwrap_or(0);
        if *times > known {
            problems.push(format!("{path}: no test notices: {what} ({times}, listed {known})"));
        }
    }
    let is_asked = |path: &str| crates.iter().any(|name| path.starts_with(&format!("crates/{name}/")));
    for (change, times) in listed.iter().filter(|((path, _), _)| is_asked(path)) {
        let missed = found.missed.get(change).copied().unwrap_or(0);
        let (path, what) = change;
        // Of a part it is only known that a change was tried if it was noticed.
        if missed < *times && (found.whole || (missed == 0 && found.noticed.contains_key(change))) {
            problems.push(format!("{LIST}: {path}: {what}: {missed} of {times} left; change the line or take it off"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "crates/abi/src/log.rs:57:9: replace | with & in Record::decode";
    const LISTED: &str = "crates/abi/src/log.rs | replace | with & in Record::decode | 1 | both are the same there";

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn found(missed: &[&str], noticed: &[&str], whole: bool) -> Found {
        let changes = |lines: &[&str]| count(lines.iter().filter_map(|line| change(line)));
        Found { missed: changes(missed), noticed: changes(noticed), whole }
    }

    #[test]
    fn a_new_survivor_is_a_problem_and_a_listed_one_is_not() {
        let (listed, abi) = (parse(LISTED).unwrap(), words("abi"));
        assert_eq!(compare(&listed, &found(&[LINE], &[], true), &abi), [""; 0]);
        assert_eq!(compare(&listed, &found(&[LINE, LINE], &[], true), &abi).len(), 1);
        assert_eq!(compare(&Changes::new(), &found(&[LINE], &[], false), &abi).len(), 1);
    }

    #[test]
    fn a_line_whose_change_is_noticed_or_gone_must_go() {
        let (listed, abi) = (parse(LISTED).unwrap(), words("abi"));
        assert_eq!(compare(&listed, &found(&[], &[LINE], true), &abi).len(), 1);
        assert_eq!(compare(&listed, &found(&[], &[], true), &abi).len(), 1, "the code is another one");
        assert_eq!(compare(&listed, &found(&[], &[LINE], false), &abi).len(), 1);
        assert_eq!(compare(&listed, &found(&[], &[], false), &abi), [""; 0], "it was not tried");
        assert_eq!(compare(&listed, &found(&[], &[], true), &words("types")), [""; 0], "another crate's");
    }

    #[test]
    fn the_list_is_well_formed_and_every_line_has_a_reason() {
        parse(include_str!("../mutants.txt")).unwrap();
        assert!(parse("crates/abi/src/log.rs | a change | 1 | ").is_err());
        assert!(parse("crates/abi/src/log.rs | a change | often | why").is_err());
        assert!(parse(&format!("{LISTED}\n{LISTED}")).is_err());
    }

    #[test]
    fn crates_a_part_and_a_time_can_be_asked_for() {
        let wanted = Wanted::parse(&words("abi --shard 1/4 --minutes 9 types")).unwrap();
        let crates = words("abi types");
        assert_eq!(wanted, Wanted { crates, shard: Some("1/4".into()), minutes: Some(9) });
        assert!(Wanted::parse(&words("host")).is_err());
        assert!(Wanted::parse(&words("--minutes soon")).is_err());
    }
}
