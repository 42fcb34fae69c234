//! What is known of an act when it is judged.

use crate::guess::{Hit, hits, is_sink, risks};
use crate::line::{Command, Line};
use crate::places::Places;
use crate::risk::Risk;
use crate::targets::{Does, targets};
use crate::word::Word;
use crate::wrappers::SHELLS;
use std::collections::BTreeSet;

/// Paths that are named one by one: a person reads no more.
const PATHS_MAX: usize = 200;

/// Stands in a list of paths for those that only the live shell knows.
pub(crate) const UNKNOWN_PATH: &str = "?";

/// Where a line would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The shell's directory, resolved.
    pub cwd: String,
    /// The home directory of the user whose shell it is.
    pub home: String,
    /// Directories that belong to the work: the shell's and the session's, unless they are a home or the system's.
    pub inside: Vec<String>,
    /// Holdfast's own directories.
    pub own: Vec<String>,
}

impl Surroundings {
    /// A shell in this directory. The session began in `start`.
    #[must_use]
    pub fn new(cwd: &str, home: &str, start: Option<&str>, own: Vec<String>) -> Surroundings {
        let is_work = |dir: &&str| {
            let depth = dir.split('/').filter(|part| !part.is_empty()).count();
            let is_system = ["/etc", "/usr", "/bin", "/sbin", "/lib", "/boot", "/dev", "/proc", "/sys", "/var/lib"]
                .iter()
                .any(|system| crate::places::is_below(dir, system));
            depth > 0 && !is_system && !crate::places::is_below(home, dir)
        };
        let mut inside: Vec<String> =
            [Some(cwd), start].into_iter().flatten().filter(is_work).map(str::to_owned).collect();
        inside.dedup();
        Surroundings { cwd: cwd.to_owned(), home: home.to_owned(), inside, own }
    }
}

/// What a line would do, as far as it can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// It was understood.
    pub parsed: bool,
    /// What only the live shell knows.
    pub opaque: BTreeSet<String>,
    /// Every command name in it, wrappers and what they run.
    pub names: BTreeSet<String>,
    /// What it risks.
    pub risks: BTreeSet<Risk>,
    /// Paths it writes; `?` for what only the live shell knows.
    pub writes: BTreeSet<String>,
    /// Paths it deletes; likewise.
    pub deletes: BTreeSet<String>,
    /// Variables it sets.
    pub sets: BTreeSet<String>,
}

impl Seen {
    /// Nothing in it is hidden from the gate.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.parsed && self.opaque.is_empty()
    }

    /// A line of which nothing is known, and why.
    #[must_use]
    pub fn hidden(why: &str) -> Seen {
        Seen { parsed: true, opaque: [why.to_owned()].into(), ..Seen::default() }
    }

    /// What is no command: a signal, an end.
    #[must_use]
    pub fn nothing() -> Seen {
        Seen { parsed: true, ..Seen::default() }
    }
}

/// Everything a policy may know of an act.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The line, where it is one.
    pub line: String,
    /// What it would do.
    pub seen: Seen,
    /// Where.
    pub cwd: String,
    /// The home directory.
    pub home: String,
    /// What the session does: `idle`, `busy`, `new`, `unknown`.
    pub state: String,
    /// Humans that are attached.
    pub humans: u32,
    /// The hour by the host's clock, 0 to 23 (UTC).
    pub hour: u8,
    /// The day of the week, 0 is Monday (UTC).
    pub weekday: u8,
    /// Why the actor wants it, in its own words.
    pub intent: Option<String>,
    /// For a signal: its number.
    pub signal: Option<u8>,
    /// For a program that is started: its file, without links.
    pub program: Option<String>,
    /// Actors other than this one that shaped what is run: `agent:a`.
    pub shapers: BTreeSet<String>,
    /// By what: `alias ls`, `file /srv/x.sh`; also where nobody knows who.
    pub shaped: BTreeSet<String>,
    /// What a run promises, where it does.
    pub contract: Option<Promised>,
    /// How the actor's runs of this command came out.
    pub record: Standing,
}

/// What a run promises.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promised {
    /// The kinds of effects it promises something about: `files`, `ports`, `processes`, `network`.
    pub promises: BTreeSet<String>,
    /// Exit statuses that count as success.
    pub exit: BTreeSet<i32>,
    /// Files it may change: patterns, absolute and without links.
    pub may_change: BTreeSet<String>,
    /// Ports it may listen on.
    pub ports: BTreeSet<u16>,
    /// Processes it may leave behind.
    pub processes: Option<u32>,
    /// Where it may connect to.
    pub network: BTreeSet<String>,
    /// Running it twice does no more than once.
    pub idempotent: bool,
    /// How often it is run again.
    pub retries: u32,
}

/// How runs under contracts came out: counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// All of them.
    pub runs: u64,
    /// Those that stayed within what they promised.
    pub valid: u64,
    /// Those that ended as expected.
    pub succeeded: u64,
    /// Those with effects beyond the contract.
    pub unexpected: u64,
    /// Those of which it is not known.
    pub unknown: u64,
}

/// Looks at a line: what would it do there?
#[must_use]
pub fn look(line: &Line, around: &Surroundings, places: &dyn Places) -> Seen {
    let mut seen =
        Seen { parsed: line.parsed, opaque: line.opaque.clone(), sets: line.sets.clone(), ..Seen::default() };
    let mut found: BTreeSet<Risk> = BTreeSet::new();
    if !line.bombs.is_empty() {
        found.insert(Risk::ForkBomb);
    }
    if line.far.iter().any(|far| destroys(far, around)) {
        found.insert(Risk::DestroysElsewhere);
    }
    // Files that the line downloads before it runs them.
    let mut downloaded: BTreeSet<String> = BTreeSet::new();
    for command in &line.commands {
        seen.names.extend(command.via.iter().cloned());
        seen.names.extend(command.name.iter().filter(|name| !name.is_empty()).cloned());
        found.extend(crate::remote::risks(command));
        let downloads =
            command.fed_by.iter().any(|name| matches!(name.as_str(), "curl" | "wget" | "aria2c" | "fetch" | "http"));
        let name = command.name();
        let reads_code = SHELLS.contains(&name)
            || matches!(name, "eval" | "source" | ".")
            || is_interpreter(name) && reads_what_it_is_fed(command);
        let runs = [Some(name.to_owned()), command.operand(0).filter(|_| is_interpreter(name) || reads_code)];
        let was_downloaded = runs.iter().flatten().any(|file| downloaded.contains(file_name(file)));
        if downloads && reads_code || was_downloaded {
            found.insert(Risk::RunsDownload);
        }
        downloaded.extend(crate::targets::downloads(command).iter().map(|file| file_name(file).to_owned()));
        for target in targets(command) {
            for hit in hits(command, &target, around, places) {
                risks(&hit, around, &mut |risk| {
                    found.insert(risk);
                });
                note(&mut seen, hit);
            }
        }
    }
    let wider: Vec<Risk> = found.iter().filter_map(|risk| risk.wider()).collect();
    found.extend(wider);
    seen.risks = found;
    seen
}

/// Looks at a write to one resolved path, by no command at all.
#[must_use]
pub fn look_at_write(path: &str, around: &Surroundings) -> Seen {
    let mut seen = Seen::nothing();
    let does = Does::Writes;
    let hit = Hit { path: Some(path.to_owned()), does, whole: false, below: false, certain: true, everything: false };
    risks(&hit, around, &mut |risk| {
        seen.risks.extend([Some(risk), risk.wider()].into_iter().flatten());
    });
    note(&mut seen, hit);
    seen
}

/// Whether a line would do something catastrophic on another machine, of which nothing is known.
fn destroys(line: &Line, around: &Surroundings) -> bool {
    let there = Surroundings { cwd: around.home.clone(), home: around.home.clone(), ..Surroundings::default() };
    let seen = look(line, &there, &crate::places::Lexical);
    seen.risks.iter().any(|risk| matches!(risk, Risk::Unthinkable | Risk::Catastrophic))
}

/// An interpreter gets its program from a pipe, or from what a substitution prints.
fn reads_what_it_is_fed(command: &Command) -> bool {
    let first = command.operands().next();
    if command.piped && first.is_none() {
        return true;
    }
    let is_option = |word: &Word| matches!(word.beginning().as_str(), "-c" | "-e" | "-r" | "--eval");
    let programs = command.words.windows(2).filter(|pair| is_option(&pair[0])).map(|pair| &pair[1]);
    first.is_some_and(|word| word.raw.starts_with("<("))
        || programs.into_iter().any(|word| word.raw.contains("$(") || word.raw.contains('`'))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_interpreter(name: &str) -> bool {
    name.starts_with("python") || matches!(name, "perl" | "ruby" | "node" | "php" | "lua" | "deno" | "bun")
}

fn note(seen: &mut Seen, hit: Hit) {
    let paths = match hit.does {
        Does::Writes => &mut seen.writes,
        Does::Deletes => &mut seen.deletes,
    };
    let path = match hit.path {
        Some(path) if is_sink(&path) => return,
        Some(path) if hit.everything || hit.below => format!("{}/*", path.trim_end_matches('/')),
        Some(path) => path,
        None => UNKNOWN_PATH.to_owned(),
    };
    if paths.len() < PATHS_MAX {
        paths.insert(path);
    } else {
        paths.insert(UNKNOWN_PATH.to_owned());
    }
}
