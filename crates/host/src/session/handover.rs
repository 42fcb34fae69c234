//! The past of a line, and of a turn: who shaped what is about to run, and what others changed since an actor wrote last.

use super::Session;
use super::gated::entered;
use crate::journal::{others_since, wrote_before};
use crate::origins::{Background, SHAPERS_MAX, Wanted, changed_files, shapers_of};
use crate::shells::ledger::Ledger;
use holdfast_authority::{Ask, Audience, Gate as Note, Input, OperatorId, Said};
use holdfast_gate::{Line, Surroundings};
use holdfast_session::Written;
use holdfast_types::{Actor, Channel, Notice, Right, Shaper, TimeMs, TurnNeed};
use holdfast_wire::env::EnvEntry;
use holdfast_wire::handover::{HandoverAnswer, HandoverChange};
use holdfast_wire::params::Life;
use holdfast_wire::{Code, Fault};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A file system that does not answer in this time holds nobody up who takes the turn.
const HANDOVER_WAIT: Duration = Duration::from_millis(1500);
/// Changes of one kind that the line names.
const NAMED_MAX: usize = 3;
/// Processes that are told one by one.
const JOBS_MAX: usize = 32;
/// Characters of a process's words.
const COMMAND_CHARS_MAX: usize = 80;

impl Session {
    /// What is known of the past when this actor's line is judged. `staged` are those who typed what stands there already.
    pub(crate) async fn past_for(&self, actor: &Actor, staged: Vec<Actor>) -> Arc<Background> {
        let is_alone = self.state.borrow().place.alone().is_some_and(|alone| alone.id == actor.id);
        let changes = if is_alone { Arc::default() } else { self.shell_changes().await };
        Arc::new(self.background(changes, staged))
    }

    /// The same for a program: only who wrote its file.
    pub(crate) fn files_past(&self) -> Arc<Background> {
        Arc::new(self.background(Arc::default(), Vec::new()))
    }

    fn background(&self, changes: Arc<Vec<EnvEntry>>, staged: Vec<Actor>) -> Background {
        let state = self.state.borrow();
        Background {
            session: self.id,
            changes,
            staged,
            since_ms: state.spec.created_ms,
            journal: state.journal.files(),
            spans: self.gate.spans.borrow().all(),
            writes: Arc::clone(&self.gate.writes),
        }
    }

    /// Who else typed what stands at the prompt.
    pub(super) fn staged_for(&self, actor: &Actor) -> Vec<Actor> {
        let state = self.state.borrow();
        let runs = &state.core.runs;
        let stands = runs.keys_at_prompt().map(|keys| entered(Some(String::new()), &keys).1);
        if matches!(stands, Some(Some(text)) if text.is_empty()) {
            return Vec::new();
        }
        runs.typists_at_prompt().into_iter().flatten().filter(|other| other.id != actor.id).collect()
    }

    /// A line that somebody typed at the prompt has run: who else shaped it goes on record. `before` is what the shell was made of.
    pub(super) async fn note_typed_line(&self, before: &Ledger, written: &Written) {
        let Some(started) = written.started_at else { return };
        if self.state.borrow().place.alone().is_some() {
            return;
        }
        self.drain_log();
        let (line, journal) = {
            let state = self.state.borrow();
            let is_run =
                state.core.runs.runs().any(|run| {
                    run.typed_at < started && run.to.is_none_or(|to| started <= to) && !run.token.is_empty()
                });
            (state.core.runs.typed_line(started).filter(|_| !is_run), state.journal.files())
        };
        let Some(line) = line else { return };
        let Some(Some(by)) = line.by.last().cloned() else { return };
        let mut staged: Vec<Actor> = line.by.iter().flatten().filter(|other| other.id != by.id).cloned().collect();
        staged.dedup();
        let text = line.keys.and_then(|keys| entered(Some(String::new()), &keys).0.pop().flatten()).unwrap_or_default();
        let past = self.background(Arc::new(before.entries(false)), staged);
        let place = self.place_of_acts();
        let (is_human, me) = (self.is_human(&by), by.clone());
        let looked = crate::off_thread(move || {
            let around = Surroundings::new(&place.cwd, &place.home, None, Vec::new());
            let line = Line::read(&text);
            let wanted = Wanted { by: &me, is_human, line: &line, text: &text, around: &around };
            Ok((shapers_of(&wanted, &past), wrote_before(&journal, started).map(|act| act.seq)))
        });
        let Ok((shaped, act)) = looked.await else { return };
        if shaped.is_empty() {
            return;
        }
        let detail = act.map_or_else(|| "a line".to_owned(), |act| format!("the line of act {act}"));
        let (name, right, turn) = ("session.line".to_owned(), Right::Observe, TurnNeed::Ignores);
        let ask = Ask::Operation { name, right, turn, detail };
        let said = Said::Allow(Note { rule: "typed".into(), approval: None, shaped });
        if let Ok(decided) = self.decide(Input::Judged { by: self.caller(&by, None), ask, proof: None, said }) {
            self.begun(&decided).over(&Ok::<(), String>(()));
        }
    }

    /// What others changed since this actor wrote last.
    pub(crate) async fn handover(&self, actor: &Actor) -> Result<HandoverAnswer, Fault> {
        let changes = self.shell_changes().await;
        self.drain_log();
        let staged = self.staged_for(actor);
        let tree = if self.view_life() == Life::Running { self.tree().await.ok() } else { None };
        let (name, root, cwd) = {
            let place = self.place_of_acts();
            let state = self.state.borrow();
            (state.spec.name.clone(), state.pid, place.cwd)
        };
        let past = self.background(changes, staged);
        let (session, me) = (self.id, actor.clone());
        let looked = crate::shares::aside(move || {
            let (mine, from) = others_since(&past.journal, &me);
            let since_ms = mine.map_or(past.since_ms, |(_, at_ms)| at_ms);
            let mut changed = names_since(&past, &me, since_ms);
            let scanned = changed_files(Path::new(&cwd), since_ms, &past, &me);
            changed.extend(scanned.files.into_iter().map(|what| HandoverChange { what, gone: false }));
            changed.extend(past.staged.iter().map(|actor| HandoverChange { what: staged_by(actor), gone: false }));
            let mut missing = Vec::new();
            if !scanned.is_whole {
                missing.push(format!("{cwd} has more files than are looked at"));
            }
            let jobs = tree.map(|tree| tree.belongings()).transpose();
            match jobs {
                Ok(jobs) => changed.extend(
                    jobs.into_iter()
                        .flatten()
                        .filter_map(|job| {
                            let is_its = job.id.pid != root && job.actor.id != me.id;
                            is_its.then(|| HandoverChange { what: job_of(&job), gone: false })
                        })
                        .take(JOBS_MAX),
                ),
                Err(error) => missing.push(format!("processes: {error}")),
            }
            let summary = summary(&changed);
            let (since_act, from) = (mine.map(|(seq, _)| seq), from.into_iter().map(|actor| actor.handle).collect());
            Ok(HandoverAnswer { session, name, since_act, since_ms, from, changed, summary, missing })
        });
        looked.await.map_err(|error| {
            Fault::new(Code::Internal, format!("cannot read what changed in {}: {error}", self.name()))
        })
    }

    /// The same in a line, for who takes the turn; none where nobody else was here, or nothing changed.
    pub(super) async fn handover_line(&self, actor: &Actor) -> Option<String> {
        if self.state.borrow().place.alone().is_some_and(|alone| alone.id == actor.id) {
            return None;
        }
        let answer = tokio::time::timeout(HANDOVER_WAIT, self.handover(actor)).await.ok()?.ok()?;
        (!answer.summary.is_empty() && !answer.from.is_empty()).then_some(answer.summary)
    }

    /// Tells the terminal of who has just taken the turn what the last holders changed.
    pub(super) fn tell_handover(&self, to: Actor, operator: OperatorId) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move { Rc::clone(&this).told_handover(to, operator).await });
    }

    async fn told_handover(self: Rc<Session>, to: Actor, operator: OperatorId) {
        if let Some(text) = self.handover_line(&to).await {
            self.tell(Audience::One(operator), &Notice::Handover { to: to.handle, text });
        }
    }
}

/// What of the shell others changed since a moment.
fn names_since(past: &Background, me: &Actor, since_ms: TimeMs) -> Vec<HandoverChange> {
    let of_others = |entry: &&EnvEntry| {
        entry
            .changed
            .as_ref()
            .is_some_and(|by| by.at_ms > since_ms && by.actor.as_ref().is_none_or(|actor| actor.id != me.id))
    };
    let change = |entry: &EnvEntry| {
        let by = entry.changed.as_ref()?;
        let what = Shaper {
            by: entry.category.channel(),
            name: entry.name.clone(),
            actor: by.actor.clone(),
            act: by.act,
            known: by.known.word().into(),
            at_ms: by.at_ms,
        };
        Some(HandoverChange { what, gone: entry.gone })
    };
    past.changes.iter().filter(of_others).filter_map(change).collect()
}

fn staged_by(actor: &Actor) -> Shaper {
    let (name, at_ms) = ("text at the prompt".to_owned(), crate::now_ms());
    Shaper { by: Channel::Line, name, actor: Some(actor.clone()), act: None, known: "log".into(), at_ms }
}

fn job_of(job: &super::Owned) -> Shaper {
    let words: String = job.command.chars().take(COMMAND_CHARS_MAX).collect();
    let name = format!("{} {words}", job.id.pid);
    let (actor, known) = (Some(job.actor.clone()), job.known.word().to_owned());
    Shaper { by: Channel::Job, name, actor, act: job.act, known, at_ms: crate::now_ms() }
}

/// Changes in a line: `agent:a: alias ls, PATH; 2 files (x.sh, Makefile); 1 job`.
fn summary(changed: &[HandoverChange]) -> String {
    let mut actors: Vec<Option<&Actor>> = Vec::new();
    for change in changed {
        if !actors.contains(&change.what.actor.as_ref()) {
            actors.push(change.what.actor.as_ref());
        }
    }
    actors.sort_by_key(Option::is_none);
    let of = |actor: Option<&Actor>| {
        let own =
            || changed.iter().filter(move |change| change.what.actor.as_ref() == actor).map(|change| &change.what);
        let mut parts: Vec<String> = Vec::new();
        let names: Vec<String> = own().filter_map(named).collect();
        if !names.is_empty() {
            let more = names.len().saturating_sub(NAMED_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            parts.push(format!("{}{more}", names[..names.len().min(NAMED_MAX)].join(", ")));
        }
        let count = |by: Channel| own().filter(|what| what.by == by).count();
        for (by, one, many) in [(Channel::File, "file", "files"), (Channel::Job, "job", "jobs")] {
            match count(by) {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                n => parts.push(format!("{n} {many}")),
            }
        }
        if count(Channel::Line) > 0 {
            parts.push("text at the prompt".into());
        }
        let who = actor.map_or_else(|| "unknown".to_owned(), |actor| actor.handle.to_string());
        format!("{who}: {}", parts.join(", "))
    };
    actors.into_iter().take(SHAPERS_MAX).map(of).collect::<Vec<_>>().join(" · ")
}

/// What a change of the shell's names is called in a line.
fn named(what: &Shaper) -> Option<String> {
    match what.by {
        Channel::Directory => Some("directory".into()),
        Channel::Variable => Some(what.name.clone()),
        Channel::File | Channel::Job | Channel::Line => None,
        by => Some(format!("{} {}", by.word(), what.name)),
    }
}
