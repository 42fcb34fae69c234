//! The gate as the host holds it: the policy in force, and acts that wait for a human.
//!
//! The policy is one that comes with the program and the files in `policy/` of the configuration. They are looked at again when
//! something is judged, so an idle host does nothing for it. A broken file never replaces what is in force. Where the host begins
//! with one, a rule may be missing: then everything that is not a human's is asked about.

mod answer;
mod facts;
mod held;
mod live;
mod release;
mod start;
mod syntax;

pub(crate) use facts::{Asked, Considered, Found, Place, Text, class_of, look_soon, real_text, time_of_day};
pub(crate) use held::{Act, Held, Holding};
pub(crate) use release::follow;
pub(crate) use start::{Line as StartLine, is_bare_shell};

use crate::origins::{Spans, Writes};
use holdfast_authority::{Gate as Note, Said};
use holdfast_gate::{Judge, Origin, Outcome, Policy, Problem, Request, Risk, Seen, Source, Verdict};
use holdfast_types::{Home, TimeMs};
use holdfast_wire::gate::{ApprovalId, ApprovalState, PolicyView, RuleView};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;

/// The directory of a person's own policy files, in the configuration's.
pub const POLICY_DIR: &str = "policy";
/// Files of rules: more is a mistake.
const FILES_MAX: usize = 32;
/// How often the files are looked at while programs start: a changed rule counts for them this much later at most.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The rule that asks while files cannot be loaded and none were before.
const BROKEN_RULE: &str = "gate.broken";

/// Which policy the host goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One that comes with the program, and files of one's own.
    Ready(&'static str),
    /// Nothing is judged.
    Off,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice::Ready("solo")
    }
}

impl Choice {
    /// Its word in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Choice::Ready(name) => name,
            Choice::Off => "off",
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let ready = holdfast_gate::READY.iter().find(|(name, _)| *name == text).map(|(name, _)| Choice::Ready(name));
        let off = || (text == "off").then_some(Choice::Off);
        ready.or_else(off).ok_or_else(|| format!("unknown policy {text:?}; expected solo, careful, locked or off"))
    }
}

/// What a file was when it was read.
type Stamp = (PathBuf, Option<SystemTime>, u64);

/// The gate.
#[derive(Debug)]
pub(crate) struct Gate {
    choice: Choice,
    home: Home,
    in_force: RefCell<Option<InForce>>,
    /// What was said of programs, and when the files were looked at for that last.
    programs: RefCell<Programs>,
    /// Acts that wait for a human.
    pub held: RefCell<Held>,
    /// Those that were approved and are to be done now.
    pub released: RefCell<Vec<ApprovalId>>,
    /// How actors' runs under contracts came out.
    pub records: RefCell<crate::contracts::Records>,
    /// What runs under contracts do is measured here.
    pub meter: crate::contracts::Measures,
    /// One of them was answered, or is over.
    pub stirred: Notify,
    /// Which actor wrote which file.
    pub writes: Arc<Mutex<Writes>>,
    /// When runs of all sessions were on.
    pub spans: RefCell<Spans>,
    judged: Cell<u64>,
    asked: Cell<u64>,
    denied: Cell<u64>,
}

/// What was said of programs that start.
#[derive(Debug, Default)]
struct Programs {
    looked: Option<Instant>,
    is_plain: bool,
    said: HashMap<(&'static str, BTreeSet<Risk>), Verdict>,
}

#[derive(Debug)]
struct InForce {
    judge: Judge,
    files: Vec<String>,
    /// The files as they were looked at last, whether they are in force or not.
    looked: Vec<Stamp>,
    problems: Vec<Problem>,
    /// Files were broken from the beginning: what they forbid is not known.
    lacks: bool,
}

impl Gate {
    /// When the next act that waits is given up.
    fn next_lapse(&self) -> Option<TimeMs> {
        let held = self.held.borrow();
        held.iter().filter(|one| one.state == ApprovalState::Open).map(|one| one.expires_at_ms).min()
    }

    /// With what an earlier host left waiting. Policies are read when something is to be judged.
    pub fn new(choice: Choice, home: &Home) -> Gate {
        Gate {
            choice,
            home: home.clone(),
            in_force: RefCell::default(),
            programs: RefCell::default(),
            held: RefCell::new(Held::load(&home.state)),
            released: RefCell::default(),
            records: RefCell::new(crate::contracts::Records::load(&home.state)),
            meter: crate::contracts::Measures::default(),
            stirred: Notify::new(),
            writes: Arc::new(Mutex::new(Writes::load(&home.state))),
            spans: RefCell::default(),
            judged: Cell::default(),
            asked: Cell::default(),
            denied: Cell::default(),
        }
    }

    pub fn is_off(&self) -> bool {
        self.choice == Choice::Off
    }

    /// What the policy says of an act; none where nothing is judged.
    pub fn judge(&self, request: &Request) -> Option<Verdict> {
        if self.is_off() {
            return None;
        }
        self.refresh();
        let mut in_force = self.in_force.borrow_mut();
        let in_force = in_force.as_mut()?;
        let verdict = in_force.judge.decide(request);
        if in_force.lacks && verdict.outcome == Outcome::Allow && request.principal.class != "human" {
            let why = "a policy file of this host has errors, so its rules are not known".to_owned();
            return Some(Verdict { outcome: Outcome::Ask, rule: BROKEN_RULE.into(), why, rules: Vec::new() });
        }
        Some(verdict)
    }

    /// What the policy says of a program that starts. Rules that come with the program know of it by class and risks alone; what they said
    /// once they say again. With rules of a person's own, and in `locked`, each is judged.
    pub fn judge_exec(&self, class: &'static str, seen: &Seen, request: impl FnOnce() -> Request) -> Verdict {
        let free = || Verdict { outcome: Outcome::Allow, rule: "off".into(), why: String::new(), rules: Vec::new() };
        if self.is_off() {
            return free();
        }
        let is_due = self.programs.borrow().looked.is_none_or(|at| at.elapsed() >= LOOK_AGAIN);
        if is_due {
            self.refresh();
            let mut programs = self.programs.borrow_mut();
            programs.looked = Some(Instant::now());
            let in_force = self.in_force.borrow();
            let is_plain =
                |known: &InForce| known.files.is_empty() && !known.lacks && self.choice != Choice::Ready("locked");
            programs.is_plain = in_force.as_ref().is_some_and(is_plain);
            programs.said.clear();
        }
        let is_plain = self.programs.borrow().is_plain && seen.is_clear();
        if !is_plain {
            return self.judge(&request()).unwrap_or_else(free);
        }
        let key = (class, seen.risks.clone());
        if let Some(said) = self.programs.borrow().said.get(&key) {
            return said.clone();
        }
        let said = self.judge(&request()).unwrap_or_else(free);
        self.programs.borrow_mut().said.insert(key, said.clone());
        said
    }

    /// Whether programs are judged by class and risks alone, as it was when one was judged last.
    pub fn judges_plainly(&self) -> bool {
        self.programs.borrow().is_plain
    }

    /// Waits until one is answered or over, and says how; none: it is forgotten.
    pub async fn until_over(&self, id: ApprovalId) -> Option<Holding> {
        loop {
            let stirred = self.stirred.notified();
            tokio::pin!(stirred);
            stirred.as_mut().enable();
            let known = self.held.borrow().get(id).cloned()?;
            if known.state != ApprovalState::Open {
                return Some(known);
            }
            stirred.await;
        }
    }

    /// Counts what came of an act.
    pub fn count(&self, said: &Said) {
        let one_more = |cell: &Cell<u64>| cell.set(cell.get() + 1);
        one_more(&self.judged);
        match said {
            Said::Allow(Note { .. }) => {}
            Said::Deny { .. } => one_more(&self.denied),
            Said::Hold { .. } => one_more(&self.asked),
        }
    }

    /// Judged, asked and denied since the host began.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.judged.get(), self.asked.get(), self.denied.get())
    }

    /// Reads the files again where they have changed.
    fn refresh(&self) {
        let dir = self.home.config.join(POLICY_DIR);
        let stamps = stamps(&dir);
        if self.in_force.borrow().as_ref().is_some_and(|known| known.looked == stamps) {
            return;
        }
        let Choice::Ready(name) = self.choice else { return };
        let mut problems = Vec::new();
        let mut sources: Vec<Source> = Source::ready(name).into_iter().collect();
        let mut files = Vec::new();
        for (path, _, _) in &stamps {
            let file = path.display().to_string();
            // It says what may be run.
            match holdfast_store::trust::read_ours(path) {
                Ok(Some(text)) => sources.push(Source { file: file.clone(), text, origin: Origin::Own }),
                Ok(None) => continue,
                Err(error) => problems.push(whole(&file, error.to_string())),
            }
            files.push(file);
        }
        if stamps.len() > FILES_MAX {
            problems.push(whole(&dir.display().to_string(), format!("more than {FILES_MAX} files")));
        }
        let loaded = if problems.is_empty() { Policy::load(&sources) } else { Err(problems) };
        let mut in_force = self.in_force.borrow_mut();
        match loaded {
            Ok(policy) => {
                let judge = Judge::new(policy);
                *in_force = Some(InForce { judge, files, looked: stamps, problems: Vec::new(), lacks: false });
            }
            Err(problems) => {
                problems.iter().for_each(|problem| tracing::error!("policy not loaded: {problem}"));
                match in_force.as_mut() {
                    Some(known) => {
                        known.looked = stamps;
                        known.problems = problems;
                    }
                    None => {
                        let ready: Vec<Source> = Source::ready(name).into_iter().collect();
                        let policy =
                            Policy::load(&ready).expect("a test loads the policies that come with the program");
                        let judge = Judge::new(policy);
                        *in_force = Some(InForce { judge, files: Vec::new(), looked: stamps, problems, lacks: true });
                    }
                }
            }
        }
    }

    /// The policy in force, for people.
    pub fn view(&self) -> PolicyView {
        if !self.is_off() {
            self.refresh();
        }
        let in_force = self.in_force.borrow();
        let rule = |rule: &holdfast_gate::Rule| RuleView {
            id: rule.id.clone(),
            kind: rule.kind.into(),
            why: rule.why.clone(),
            file: rule.file.clone(),
            line: rule.line as u64,
            text: rule.text.clone(),
        };
        let (judged, asked, denied) = self.counts();
        PolicyView {
            policy: self.choice.word().into(),
            dir: self.home.config.join(POLICY_DIR).display().to_string(),
            files: in_force.as_ref().map(|known| known.files.clone()).unwrap_or_default(),
            rules: in_force.iter().flat_map(|known| known.judge.policy().rules().iter().map(rule)).collect(),
            problems: in_force.iter().flat_map(|known| known.problems.iter().map(ToString::to_string)).collect(),
            judged,
            asked,
            denied,
        }
    }
}

fn whole(file: &str, message: String) -> Problem {
    Problem { file: file.to_owned(), line: 0, column: 0, message, help: String::new() }
}

/// The policy files there are, by name. One more than may be shows that there are too many.
fn stamps(dir: &std::path::Path) -> Vec<Stamp> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let cedar = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "cedar"));
    let mut all: Vec<Stamp> = cedar
        .take(FILES_MAX + 1)
        .map(|path| {
            let meta = std::fs::metadata(&path).ok();
            let (time, length) = (meta.as_ref().and_then(|m| m.modified().ok()), meta.map_or(0, |m| m.len()));
            (path, time, length)
        })
        .collect();
    all.sort();
    all
}
