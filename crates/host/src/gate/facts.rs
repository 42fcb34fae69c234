//! Facts about an act, collected where it would happen.

use super::live::{Live, real};
use super::{Act, Gate, Holding, syntax};
use crate::origins::{Background, Wanted, shapers_of};
use crate::shells::Kind;
use holdfast_authority::{Gate as Note, Said};
use holdfast_gate::{
    Action, Facts, Line, Outcome, Places, Principal, Promised, Request, Resource, Seen, Surroundings, Verdict, look,
    look_at_write,
};
use holdfast_types::{Actor, ActorClass, Hash, SessionId, SessionName, Shaper};
use holdfast_wire::contracts::Contract;
use holdfast_wire::gate::{ApprovalId, ApprovalState, EXPIRES_MS, OPEN};
use holdfast_wire::{Code, Fault};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A file system that does not answer within this time does not hold anybody up.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// Longest line that the shell itself is asked about.
const UNREADABLE_BYTES_MAX: usize = 64 * 1024;
/// Files whose content an approval is about.
const FILES_MAX: usize = 64;
/// Of a longer file length and times count in place of its content.
const HASHED_BYTES_MAX: u64 = 1024 * 1024;
/// Entries of a directory that an approval is about.
const ENTRIES_MAX: usize = 2_000;

/// Of what could not be looked at. It is never the same as anything.
const UNKNOWN_HASH: Hash = Hash([0; 32]);

/// What belongs to Holdfast below its state directory, which may have other things in it.
const OWN_STATE: [&str; 24] = [
    "sessions",
    "prepared",
    "hooks",
    "runs",
    "shells",
    "actors",
    "bin",
    "tokens.json",
    "http.json",
    "browsers.key",
    "hosts.json",
    "host.log",
    "approvals",
    "journal",
    "writes",
    "records",
    "host.key",
    "relays.json",
    "devices.json",
    "direct.json",
    "lease.json",
    "arriving",
    "bots",
    "flows.db",
];
const OWN_CONFIG: [&str; 2] = ["config.toml", super::POLICY_DIR];

/// Where an act would happen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub cwd: String,
    pub home: String,
    /// Where its session began.
    pub start: Option<String>,
    pub session: Option<(SessionId, SessionName)>,
    /// `idle`, `busy`, `new`, `unknown`.
    pub state: &'static str,
    /// Humans that are attached.
    pub humans: u32,
    /// Its shell, where that is an integrated one.
    pub shell: Option<Kind>,
    /// What is known of who shaped it; none: nobody looks for that.
    pub past: Option<Arc<Background>>,
}

/// What would be done.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    /// A shell reads this line.
    Line(String),
    /// A program is started with these words.
    Words(Vec<String>),
    /// It is a line at a prompt, and only the shell knows which.
    Hidden(&'static str),
    /// A file is written: its path without links, and the hash of what it shall have in it; none: it is removed.
    Write(String, Option<Hash>),
    /// It is no command.
    None,
}

impl Text {
    /// The command line, where it is one.
    fn line(&self) -> String {
        match self {
            Text::Write(..) => String::new(),
            Text::Line(_) | Text::Words(_) | Text::Hidden(_) | Text::None => self.shown(),
        }
    }

    /// As people read it.
    pub fn shown(&self) -> String {
        match self {
            Text::Line(line) => line.clone(),
            Text::Words(words) => words.join(" "),
            Text::Write(path, Some(hash)) => format!("write {path} (sha256 {hash})"),
            Text::Write(path, None) => format!("remove {path}"),
            Text::Hidden(_) | Text::None => String::new(),
        }
    }
}

/// An act, before it is judged.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub by: Actor,
    /// The host vouches for it as a human.
    pub is_human: bool,
    pub action: Action,
    pub text: Text,
    pub place: Place,
    pub signal: Option<u8>,
    pub intent: Option<String>,
    /// What it promises.
    pub contract: Option<Box<Contract>>,
}

/// An act, and what the policy says of it.
#[derive(Debug)]
pub(crate) struct Considered {
    pub asked: Asked,
    pub found: Found,
    pub verdict: Verdict,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub request: Request,
    /// What an approval of it would be about.
    pub hash: Hash,
    /// Who else shaped it, and by what.
    pub shapers: Vec<Shaper>,
}

impl Gate {
    /// Collects what is known of an act.
    pub async fn facts(&self, asked: &Asked) -> Found {
        let Asked { by, is_human, action, text, place, signal, intent, contract } = asked;
        let own = self.own_paths();
        let (text_there, there, kind) = (text.clone(), place.clone(), action.word());
        let (who, is_person, promised) = (by.clone(), *is_human, contract.clone());
        let work = move || Ok(look_there(&text_there, &there, &own, kind, (&who, is_person), promised.as_deref()));
        let looked = tokio::time::timeout(LOOK_MAX, crate::off_thread(work)).await;
        let Looked { seen, hash, shapers, promised } = match looked {
            Ok(Ok(looked)) => looked,
            Ok(Err(_)) | Err(_) => Looked {
                seen: Seen::hidden("the file system does not answer"),
                hash: UNKNOWN_HASH,
                shapers: Vec::new(),
                promised: None,
            },
        };
        // What a human approved once for this actor is not asked about again: a hand-over is one question.
        let approved_ms = self.held.borrow().shaped_until(by.id, place.session.as_ref().map(|(id, _)| *id));
        let open = || shapers.iter().filter(|shaper| shaper.at_ms > approved_ms);
        let class = class_of(by, *is_human);
        let resource = match &place.session {
            Some((id, name)) => Resource { id: id.to_string(), name: name.to_string() },
            None => Resource { id: String::new(), name: String::new() },
        };
        let (hour, weekday) = time_of_day();
        let facts = Facts {
            line: text.line(),
            seen,
            cwd: place.cwd.clone(),
            home: place.home.clone(),
            state: place.state.into(),
            humans: place.humans,
            hour,
            weekday,
            intent: intent.clone(),
            signal: *signal,
            program: None,
            shapers: open().filter_map(|shaper| Some(shaper.actor.as_ref()?.handle.to_string())).collect(),
            shaped: open().map(|shaper| format!("{} {}", shaper.by.word(), shaper.name)).collect(),
            contract: promised,
            record: self.records.borrow().standing(by.id, Some(&crate::contracts::action_of(&text.line()))),
        };
        let record = self.records.borrow().standing(by.id, None);
        let principal = Principal { handle: by.handle.to_string(), class: class.into(), record };
        Found { request: Request { principal, action: *action, resource, facts }, hash, shapers }
    }

    /// The same without links.
    pub fn own_paths_real(&self) -> Vec<String> {
        Reals::default().of_own(&self.own_paths())
    }

    pub fn own_paths(&self) -> Vec<PathBuf> {
        let state = OWN_STATE.iter().map(|name| self.home.state.join(name));
        let config = OWN_CONFIG.iter().map(|name| self.home.config.join(name));
        state.chain(config).chain([self.home.run.clone()]).collect()
    }

    /// What the policy says of an act; none where nothing is judged. Nothing is held yet.
    pub async fn consider(&self, asked: Asked) -> Option<Considered> {
        if self.is_off() {
            return self.unjudged(asked).await;
        }
        let found = self.facts(&asked).await;
        let verdict = self.judge(&found.request)?;
        let verdict = self.or_unreadable(verdict, &asked, &found).await;
        Some(Considered { asked, found, verdict })
    }

    /// Where nothing is judged: who shaped it goes on record all the same.
    async fn unjudged(&self, asked: Asked) -> Option<Considered> {
        asked.place.past.as_ref()?;
        let found = self.facts(&asked).await;
        let verdict = Verdict { outcome: Outcome::Allow, rule: "off".into(), why: String::new(), rules: Vec::new() };
        (!found.shapers.is_empty()).then_some(Considered { asked, found, verdict })
    }

    /// A line that a human would be asked about only because nobody can read it, not even its shell, is refused: nothing would run.
    async fn or_unreadable(&self, verdict: Verdict, asked: &Asked, found: &Found) -> Verdict {
        let (Text::Line(line), Some(shell)) = (&asked.text, asked.place.shell) else { return verdict };
        if verdict.outcome != Outcome::Ask || found.request.facts.seen.parsed || line.len() > UNREADABLE_BYTES_MAX {
            return verdict;
        }
        let line = line.clone();
        // Whoever only asks what it may do starts a process by this too: so many at once, and no more.
        let look = crate::shares::aside(move || Ok(syntax::refused(&line, shell)));
        match tokio::time::timeout(LOOK_MAX, look).await {
            Ok(Ok(Some(said))) => Verdict {
                outcome: Outcome::Deny,
                rule: syntax::RULE.into(),
                why: format!("nothing ran: the shell cannot read this line: {said}"),
                rules: vec![syntax::RULE.into()],
            },
            Ok(Ok(None) | Err(_)) | Err(_) => verdict,
        }
    }

    /// What is to be done about it: what a rule asks about is held, unless it was approved. A new holding is given too.
    pub fn said(
        &self,
        considered: Considered,
        act: Act,
        released: Option<ApprovalId>,
    ) -> Result<(Said, Option<Holding>), Fault> {
        let said = self.settle(considered, act, released)?;
        self.count(&said.0);
        Ok(said)
    }

    fn settle(
        &self,
        Considered { asked, found, verdict }: Considered,
        act: Act,
        released: Option<ApprovalId>,
    ) -> Result<(Said, Option<Holding>), Fault> {
        let Verdict { outcome, rule, why, .. } = verdict;
        match outcome {
            Outcome::Allow => {
                // What was asked about may be what a human has just approved.
                let is_approved = |id: &ApprovalId| {
                    self.held.borrow().get(*id).is_some_and(|known| known.state == ApprovalState::Approved)
                };
                let approval = released.filter(is_approved).map(|id| id.to_string());
                return Ok((Said::Allow(Note { rule, approval, shaped: found.shapers }), None));
            }
            Outcome::Deny => return Ok((Said::Deny { rule, why }, None)),
            Outcome::Ask => {}
        }
        let now = crate::now_ms();
        let holding = self.holding(&asked, act, &found, (&rule, &why));
        let held = self.held.borrow();
        if let Some(id) = released {
            let approved = held.get(id).filter(|known| known.state == ApprovalState::Approved);
            let is_known = holding.hash != UNKNOWN_HASH;
            if is_known && approved.is_some_and(|known| known.hash == holding.hash && known.rule == rule) {
                let note = Note { rule, approval: Some(id.to_string()), shaped: found.shapers };
                return Ok((Said::Allow(note), None));
            }
            // What it was asked about has changed.
            let mut again = Holding { id, again: true, ..holding };
            if let Some(known) = held.get(id) {
                again = Holding { asked_ms: known.asked_ms, run: known.run, act: known.act.clone(), ..again };
            }
            drop(held);
            self.keep(again.clone())?;
            return Ok((Said::Hold { rule, why, approval: id.to_string() }, Some(again)));
        }
        if let Some(pass) = held.pass_for(&holding, now) {
            let note = Note { rule, approval: Some(pass.id.to_string()), shaped: found.shapers };
            return Ok((Said::Allow(note), None));
        }
        if let Some(open) = held.same_open(&holding) {
            return Ok((Said::Hold { rule, why, approval: open.id.to_string() }, None));
        }
        if let Some(denied) = held.lately_denied(&holding, now) {
            return Ok((Said::Deny { rule, why: denied.denial() }, None));
        }
        drop(held);
        self.admit(&asked)?;
        self.keep(holding.clone())?;
        Ok((Said::Hold { rule, why, approval: holding.id.to_string() }, Some(holding)))
    }

    /// Whether one more act of an actor may wait.
    pub fn admit(&self, asked: &Asked) -> Result<(), Fault> {
        let askers = self.held.borrow().askers();
        OPEN.admit(&asked.by.id, asked.is_human, askers).map_err(|full| {
            let (what, max) = (full.of("acts that wait for approval"), full.max());
            Fault::new(Code::TooMany, format!("too many {what}, at most {max}"))
                .hint("wait until one is answered: holdfast approvals ls")
        })
    }

    /// What is held of an act that a rule asks about.
    pub fn holding_of(&self, Considered { asked, found, verdict }: &Considered, act: Act) -> Holding {
        self.holding(asked, act, found, (&verdict.rule, &verdict.why))
    }

    fn holding(&self, asked: &Asked, act: Act, found: &Found, (rule, why): (&str, &str)) -> Holding {
        let now = crate::now_ms();
        let seen = &found.request.facts.seen;
        let (session, name) = asked.place.session.clone().unzip();
        let command = asked.text.shown();
        Holding {
            id: ApprovalId::from_random_bits(u128::from_le_bytes(crate::random_token())),
            session,
            name,
            by: asked.by.clone(),
            kind: asked.action.word().into(),
            command,
            cwd: asked.place.cwd.clone(),
            intent: asked.intent.clone(),
            rule: rule.to_owned(),
            why: why.to_owned(),
            risks: seen.risks.iter().map(|risk| risk.word().to_owned()).collect(),
            writes: seen.writes.iter().cloned().collect(),
            deletes: seen.deletes.iter().cloned().collect(),
            shapers: found.shapers.clone(),
            hash: found.hash,
            again: false,
            asked_ms: now,
            expires_at_ms: now.saturating_add(EXPIRES_MS),
            state: ApprovalState::Open,
            answered_by: None,
            answered_ms: None,
            reason: None,
            until_ms: None,
            run: act.run(),
            error: None,
            act,
        }
    }

    /// On disk, then known.
    pub fn keep(&self, holding: Holding) -> Result<(), Fault> {
        self.held.borrow_mut().keep(holding).map_err(|error| {
            Fault::new(Code::Unrecorded, format!("cannot write the approvals: {error}"))
                .hint("is the disk full? check with: holdfast doctor")
        })?;
        self.stirred.notify_waiters();
        Ok(())
    }
}

/// What an actor is to policies.
pub(crate) fn class_of(by: &Actor, is_human: bool) -> &'static str {
    match by.handle.class() {
        // Whoever calls itself human and is not known as one is treated as a program.
        ActorClass::Human if !is_human => "unknown",
        ActorClass::Human => "human",
        ActorClass::Agent => "agent",
        ActorClass::Service => "service",
        ActorClass::Device => "device",
    }
}

/// The hour, and the day of the week, 0 is Monday; both in UTC.
pub(crate) fn time_of_day() -> (u8, u8) {
    let now = crate::now_ms() / 3_600_000;
    // The first day of the epoch was a Thursday.
    ((now % 24) as u8, ((now / 24 + 3) % 7) as u8)
}

/// A path without links. Blocks.
pub(crate) fn real_text(path: &str) -> String {
    real(Path::new(path)).to_string_lossy().into_owned()
}

/// Looks with the live file system, on another thread; none where that does not answer in time.
pub(crate) async fn look_soon(work: impl FnOnce(&dyn Places) -> Seen + Send + 'static) -> Option<Seen> {
    let looked = crate::off_thread(move || Ok(work(&Live::default())));
    tokio::time::timeout(LOOK_MAX, looked).await.ok()?.ok()
}

/// Paths without links, each looked at once for one act: to resolve one asks the file system about all its parts.
#[derive(Default)]
struct Reals(Vec<(PathBuf, PathBuf)>);

impl Reals {
    /// Blocks.
    fn of(&mut self, path: &Path) -> PathBuf {
        if let Some((_, real)) = self.0.iter().find(|(known, _)| known == path) {
            return real.clone();
        }
        let found = real(path);
        self.0.push((path.to_owned(), found.clone()));
        found
    }

    /// Holdfast's own paths lie in few directories, and are seldom links themselves. Blocks.
    fn of_own(&mut self, own: &[PathBuf]) -> Vec<String> {
        let mut one = |path: &PathBuf| match (path.parent(), path.file_name()) {
            (Some(dir), Some(name)) if !path.is_symlink() => self.of(dir).join(name),
            _ => self.of(path),
        };
        own.iter().map(|path| one(path).to_string_lossy().into_owned()).collect()
    }
}

/// What was found where something would be done.
struct Looked {
    seen: Seen,
    hash: Hash,
    shapers: Vec<Shaper>,
    promised: Option<Promised>,
}

/// Looks at what would be done, at what it would be done to, and at who shaped it. What a contract says that it may change counts as what it would
/// write. Blocks.
fn look_there(
    text: &Text,
    place: &Place,
    own: &[PathBuf],
    kind: &str,
    (by, is_human): (&Actor, bool),
    contract: Option<&Contract>,
) -> Looked {
    let (live, mut reals) = (Live::default(), Reals::default());
    let mut shown = |path: &str| reals.of(Path::new(path)).to_string_lossy().into_owned();
    let cwd = shown(&place.cwd);
    let home = shown(&place.home);
    let start = place.start.as_ref().map(|start| shown(start));
    let own = reals.of_own(own);
    let around = Surroundings::new(&cwd, &home, start.as_deref(), own);
    let (line, mut seen) = match text {
        Text::Line(line) => {
            let line = if place.shell == Some(Kind::Fish) { Line::read_fish(line) } else { Line::read(line) };
            let seen = look(&line, &around, &live);
            (Some(line), seen)
        }
        Text::Words(words) => {
            let line = Line::of_words(words);
            let seen = look(&line, &around, &live);
            (Some(line), seen)
        }
        Text::Write(path, _) => (None, look_at_write(path, &around)),
        Text::Hidden(why) => (None, Seen::hidden(why)),
        Text::None => (None, Seen::nothing()),
    };
    let shapers = match (&place.past, &line) {
        (Some(past), Some(line)) => {
            let text = text.line();
            let mut all = shapers_of(&Wanted { by, is_human, line, text: &text, around: &around }, past);
            // Without a session there is no beginning: most files are nobody's.
            all.retain(|shaper| shaper.actor.is_some() || place.session.is_some());
            all
        }
        (Some(_) | None, _) => Vec::new(),
    };
    let promised = contract.map(|contract| crate::contracts::promised(contract, &cwd));
    for pattern in promised.iter().flat_map(|promised| &promised.may_change) {
        let wide = look_at_write(crate::contracts::beginning_of(pattern), &around);
        seen.risks.extend(wide.risks);
    }
    // What the line names, besides what it writes and deletes: a script that is run is part of what is approved.
    let mut files: BTreeSet<PathBuf> = seen.writes.iter().chain(&seen.deletes).map(PathBuf::from).collect();
    for command in line.iter().flat_map(|line| &line.commands) {
        let words = command.words.iter().filter_map(holdfast_gate::Word::text).chain(command.name.clone());
        files.extend(words.map(|word| Path::new(&cwd).join(word)).filter(|path| path.is_file()));
    }
    let mut sum = Sha256::new();
    let said = contract.and_then(|contract| serde_json::to_string(contract).ok());
    for part in [kind, &text.shown(), &cwd].into_iter().chain(said.as_deref()) {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part.as_bytes());
    }
    for file in files.iter().take(FILES_MAX) {
        mark(&mut sum, file);
    }
    for shaper in &shapers {
        sum.update(shaper.to_string().as_bytes());
        sum.update(shaper.at_ms.to_le_bytes());
    }
    Looked { seen, hash: Hash(sum.finalize().into()), shapers, promised }
}

/// What a file is now.
fn mark(sum: &mut Sha256, path: &Path) {
    let name = path.to_string_lossy();
    sum.update((name.len() as u64).to_le_bytes());
    sum.update(name.as_bytes());
    // Everything in a directory.
    let path = name.strip_suffix("/*").map_or(path, Path::new);
    let Ok(meta) = path.symlink_metadata() else { return sum.update(b"none") };
    let mut content = Vec::new();
    if meta.is_file() && meta.len() <= HASHED_BYTES_MAX {
        let read = std::fs::File::open(path).and_then(|file| file.take(HASHED_BYTES_MAX).read_to_end(&mut content));
        if read.is_ok() {
            sum.update(b"file");
            return sum.update(&content);
        }
    }
    if meta.is_dir() {
        let names = std::fs::read_dir(path).into_iter().flatten().flatten().take(ENTRIES_MAX);
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        sum.update(b"dir");
        for name in names {
            sum.update(name.as_encoded_bytes());
            sum.update([0]);
        }
        return;
    }
    use std::os::unix::fs::MetadataExt;
    sum.update(b"other");
    for number in [meta.len(), meta.ino(), meta.mtime() as u64, meta.mtime_nsec() as u64] {
        sum.update(number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn own_paths_are_resolved_as_each_would_be_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (state, elsewhere) = (dir.path().join("state"), dir.path().join("elsewhere"));
        std::fs::create_dir_all(state.join("sessions")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&state, dir.path().join("way")).unwrap();
        symlink(&elsewhere, state.join("hooks")).unwrap();
        symlink("nowhere", state.join("runs")).unwrap();
        let way = dir.path().join("way");
        let own = ["sessions", "hooks", "runs", "missing", "missing/deeper"].map(|name| way.join(name));
        let alone = own.each_ref().map(|path| real(path).to_string_lossy().into_owned());
        assert_eq!(Reals::default().of_own(&own), alone);
        assert!(alone[1].ends_with("elsewhere") && alone[0].ends_with("state/sessions"), "{alone:?}");
    }
}
