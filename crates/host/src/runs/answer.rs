//! What clients ask about runs: which session is meant, whether a key was used, and the answer.

use super::OwnRun;
use super::index::{self, Whose};
use crate::birth::Birth;
use crate::connection::while_asked;
use crate::contracts::{self, Measuring, follow};
use crate::gate::{Act, StartLine};
use crate::hooks::{self, Hook};
use crate::registry;
use crate::serve::Server;
use crate::session::{Entered, Session, begun, fault, take_key, unkept};
use holdfast_authority::{Refusal, recorded};
use holdfast_session::Run;
use holdfast_types::{Actor, Right, SessionId};
use holdfast_wire::gate::{ApprovalId, ApprovalState};
use holdfast_wire::params::{Gap, NewParams};
use holdfast_wire::runs::{
    KEY_BYTES_MAX, RunAnswer, RunCancelParams, RunEnd, RunId, RunListParams, RunOutputAnswer, RunOutputParams,
    RunParams, RunRef, RunStartParams, RunState, RunView,
};
use holdfast_wire::{Code, Fault};
use std::path::Path;
use std::rc::Rc;

/// Runs in one answer: more than a person reads, and some milliseconds of work. The newest.
const LISTED_MAX: usize = 1000;

impl Server {
    /// Starts a run, or finds the one its key stands for. Where a human must approve it, waits for that as long as its asker does.
    pub(crate) async fn run_start(&self, params: &RunStartParams, actor: &Actor) -> Result<RunAnswer, Fault> {
        // An id of its own: an approval stands for this run, and for no other.
        let run = params.run.unwrap_or_else(|| RunId::from_random_bits(u128::from_le_bytes(crate::random_token())));
        let params = &RunStartParams { run: Some(run), ..params.clone() };
        let needed = match self.run_begin(params, actor, None).await {
            Err(fault) if fault.code == Code::ApprovalNeeded && params.approval_wait_ms > 0 => fault,
            other => return other,
        };
        self.run_approved(params, actor, needed).await
    }

    /// Waits for a human's answer to a run.
    async fn run_approved(&self, params: &RunStartParams, actor: &Actor, needed: Fault) -> Result<RunAnswer, Fault> {
        let approval = needed.details.as_ref().and_then(|details| details["approval"].as_str()?.parse().ok());
        let Some(approval) = approval else { return Err(needed) };
        while_asked(self.approval_until(approval, params.approval_wait_ms, ApprovalState::is_over)).await;
        let held = self.gate().held.borrow().get(approval).cloned();
        let Some(held) = held else { return Err(needed) };
        match (held.state, held.run) {
            (ApprovalState::Done, Some(run)) => {
                let again = RunParams { run: run.into(), wait_ms: params.wait_ms };
                self.run_get(&again, actor).await.map(|answer| RunAnswer { existing: false, ..answer })
            }
            (ApprovalState::Denied | ApprovalState::Expired, _) => {
                Err(fault(&Refusal::Forbidden { rule: held.rule.clone(), why: held.denial() }))
            }
            (ApprovalState::Failed, _) => {
                let error = held.error.unwrap_or_default();
                Err(Fault::new(Code::Busy, format!("it was approved, and could not be run: {error}"))
                    .hint("run it again"))
            }
            (ApprovalState::Open | ApprovalState::Approved | ApprovalState::Done, _) => Err(needed),
        }
    }

    /// Starts a run that the gate allows, or that was approved.
    pub(crate) async fn run_begin(
        &self,
        params: &RunStartParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<RunAnswer, Fault> {
        if params.new.is_some() {
            // Before its key or its hook leaves a trace.
            self.must_be_known(actor)?;
            self.registry.may_start(actor)?;
        }
        contracts::check(params)?;
        let named = called(params)?;
        let params = named.as_ref().unwrap_or(params);
        let whose = Whose::of(actor, params.shared);
        let state_dir = &self.registry.shared.home.state;
        // Whoever comes second with a key under which a session is being made finds that one.
        let alone = match (&params.key, &params.new) {
            (Some(key), Some(_)) => Some(self.keys.take(&whose.name(key)).await),
            (Some(_) | None, _) => None,
        };
        if let Some(on_exit) = &params.on_exit {
            hooks::check(on_exit)?;
        }
        if params.separate_stderr && params.new.as_ref().is_none_or(|new| new.user.is_some()) {
            return Err(Fault::new(
                Code::BadRequest,
                "`separate_stderr` is for a run with a session of its own, as the host's user",
            )
            .hint("give `new` without `user`, or redirect in the command: 2> FILE"));
        }
        if params.shared && params.key.is_none() {
            return Err(Fault::new(Code::BadRequest, "`shared` says whose the key is, and there is none")
                .hint("give a `key`, or leave `shared` out"));
        }
        if let Some(key) = &params.key {
            check_key(key)?;
            if let Some(entry) = index::find(state_dir, whose, key).map_err(|e| unkept(&e))?
                && !self.was_never_typed(&entry, params)
            {
                drop(alone);
                return self.run_again(&entry, params, actor).await;
            }
        }
        match (&params.session, &params.new) {
            (Some(session), None) => {
                let session = self.registry.find_acting(session, actor)?;
                if let Some(id) = params.run
                    && self.is_there(id, &session, actor)?
                {
                    return self.run_answer(&session, id, params.wait_ms, true).await;
                }
                match session.enter(params, actor, state_dir, released).await? {
                    Entered::Begun(id) => {
                        if let Some(detect) = &params.detect {
                            session.watch_for_end(id, detect)?;
                        }
                        self.run_answer(&session, id, params.wait_ms, false).await
                    }
                    Entered::There(id) => self.run_answer(&session, id, params.wait_ms, true).await,
                    Entered::Taken(entry) => self.run_again(&entry, params, actor).await,
                }
            }
            (None, Some(new)) => self.run_new(params, (**new).clone(), actor, alone, released).await,
            (Some(_), Some(_)) | (None, None) => {
                Err(Fault::new(Code::BadRequest, "a run has either a session or makes one of its own"))
            }
        }
    }

    /// Whether this actor entered a run of this id into the session already. Nobody else's id is taken.
    fn is_there(&self, id: RunId, session: &Session, actor: &Actor) -> Result<bool, Fault> {
        let found = self.registry.all().into_iter().find_map(|s| s.run(id).map(|run| (s.id, run)));
        match found {
            None => Ok(false),
            Some((place, run)) if place == session.id && run.actor == *actor && !run.own => {
                self.registry.find_for(&place.to_string(), actor, Right::Run).map(|_| true)
            }
            Some(_) => Err(another_runs()),
        }
    }

    /// A key stands for a run in this very session that nobody typed: it is looked at again where runs are entered.
    fn was_never_typed(&self, entry: &index::Entry, params: &RunStartParams) -> bool {
        let session = params.session.as_ref().and_then(|wanted| self.registry.find(wanted).ok());
        session.is_some_and(|session| session.never_typed(entry))
    }

    /// Runs a command as a session of its own.
    async fn run_new(
        &self,
        params: &RunStartParams,
        new: NewParams,
        actor: &Actor,
        alone: Option<index::Taken<'_>>,
        released: Option<ApprovalId>,
    ) -> Result<RunAnswer, Fault> {
        if params.command.is_empty() {
            return Err(Fault::new(Code::BadRequest, "the command is empty"));
        }
        let (id, state_dir) = (registry::new_id(), &self.registry.shared.home.state);
        let birth = Birth::of(new, Some(&params.command), &self.registry.shared.config)?;
        let cwd_before = Some(birth.cwd.clone());
        let run = Run { own: true, state: RunState::Running, cwd_before, ..begun(params, actor, birth.base.output) };
        let number = run.id;
        let hook = params.on_exit.as_ref().map(|on_exit| Hook::of(on_exit, id, &run));
        if let Some(session) = self.registry.all().into_iter().find(|session| session.run(number).is_some()) {
            // Asked again, where the first answer was lost.
            if session
                .run(number)
                .is_some_and(|there| there.own && there.actor == run.actor && there.command == run.command)
            {
                return self.run_answer(&session, number, params.wait_ms, true).await;
            }
            return Err(another_runs());
        }
        let judging = std::time::Instant::now();
        let line = StartLine {
            text: &params.command,
            intent: contracts::intent_of(params),
            contract: params.contract.clone(),
        };
        self.registry.judge_start(actor, &birth, Act::Run(Box::new(params.clone())), Some(line), released).await?;
        let (trace, measuring) = self.measured(params, (number, actor), &birth.cwd, judging.elapsed()).await.unzip();
        let own = OwnRun { run, keep: params.keep, separate_stderr: params.separate_stderr, trace };
        let hooks = &self.registry.shared.hooks;
        // Before the key: who asks again and is told that the run is there can rely on being told of its end.
        if let Some(hook) = &hook {
            hooks.record(hook).await?;
        }
        if let Some(key) = params.key.clone() {
            let command = recorded(&params.command).into_owned();
            let (created_ms, by) = (crate::now_ms(), Some(actor.clone()));
            let (run, shared) = (number, params.shared);
            let entry =
                index::Entry { key, session: id, run, command, own: true, created_ms, actor: by, ended: None, shared };
            let taken = take_key(state_dir, entry).await;
            if !matches!(taken, Ok(None)) {
                hooks.forget(number);
            }
            if let Some(first) = taken? {
                drop(alone);
                return self.run_again(&first, params, actor).await;
            }
            holdfast_pause::task_point("run.own_key_taken").await;
        }
        if let Err(fault) = self.registry.start_as(id, Some(own), birth, actor).await {
            // Nothing was started.
            hooks.forget(number);
            if let Some(key) = &params.key {
                index::give_back(state_dir, Whose::of(actor, params.shared), key);
            }
            return Err(fault);
        }
        hook.into_iter().for_each(|hook| hooks.arm(hook));
        let session = self.registry.find(&id.to_string())?;
        if let Some(measuring) = measuring {
            measuring.root(session.state.borrow().pid);
            session.follow_contract(number, measuring);
        }
        // Whoever has the same key need not wait for its end.
        drop(alone);
        self.run_answer(&session, number, params.wait_ms, false).await
    }

    /// Begins to measure a run that gets a session of its own, where it has a contract.
    async fn measured(
        &self,
        params: &RunStartParams,
        who: (RunId, &Actor),
        cwd: &str,
        judged: std::time::Duration,
    ) -> Option<(contracts::Trace, Measuring)> {
        let contract = params.contract.as_ref()?;
        let gate = &self.registry.shared.gate;
        let measuring = Measuring::begin(gate, None, cwd.to_owned(), contract, Vec::new()).await;
        let decision = Some(follow::decision(None, judged));
        Some((follow::opened(params, contract, who, &measuring, decision), measuring))
    }

    /// The run a key stands for, if it is the same command in the same place.
    async fn run_again(
        &self,
        entry: &index::Entry,
        params: &RunStartParams,
        actor: &Actor,
    ) -> Result<RunAnswer, Fault> {
        let conflict = |what: &str| {
            let mut fault = Fault::new(Code::KeyConflict, format!("the key {:?} belongs to {what}", entry.key))
                .hint("use another key");
            fault.details = Some(Box::new(serde_json::json!({ "run": entry.run })));
            fault
        };
        let session = self.registry.find(&entry.session.to_string()).ok();
        if let Some(session) = &session {
            // Whoever may not see the session learns nothing but that the key is used.
            self.registry.find_for(&session.id.to_string(), actor, Right::Run).map_err(|_| conflict("another run"))?;
        }
        if entry.command != recorded(&params.command) {
            return Err(conflict("another command"));
        }
        let same = match &params.session {
            Some(wanted) => !entry.own && self.registry.find(wanted).is_ok_and(|found| found.id == entry.session),
            None => entry.own,
        };
        match session {
            Some(_) if !same => Err(conflict("a run in another session")),
            Some(session) if session.run(entry.run).is_some() => {
                self.run_answer(&session, entry.run, params.wait_ms, true).await
            }
            Some(_) | None => Ok(of_gone(entry, actor)),
        }
    }

    async fn run_answer(&self, session: &Session, id: RunId, wait_ms: u64, was: bool) -> Result<RunAnswer, Fault> {
        while_asked(session.run_whole(id, wait_ms)).await;
        let id = session.contracts.latest(id);
        session.stderr_whole(id).await;
        let run = session.run(id).ok_or_else(|| no_such(&id.into()))?;
        Ok(session.run_answer(&run, was))
    }

    /// A run and its output.
    pub(crate) async fn run_get(&self, params: &RunParams, actor: &Actor) -> Result<RunAnswer, Fault> {
        self.until_made(&params.run, actor).await;
        match self.find_run(&params.run, actor, Some(Right::Observe))? {
            Found::There(session, run) => {
                let answer = self.run_answer(&session, run.id, params.wait_ms, true).await?;
                self.find_run(&params.run, actor, Some(Right::Observe))?;
                Ok(answer)
            }
            Found::Gone(entry) => Ok(of_gone(&entry, actor)),
        }
    }

    /// A run's output bytes.
    pub(crate) async fn run_output(
        &self,
        params: &RunOutputParams,
        actor: &Actor,
    ) -> Result<(RunOutputAnswer, Vec<u8>), Fault> {
        self.until_made(&params.run, actor).await;
        if let Found::There(session, run) = self.find_run(&params.run, actor, Some(Right::Observe))? {
            while_asked(session.run_grown(run.id, params)).await;
        }
        // Who waited may have lost the right meanwhile.
        match self.find_run(&params.run, actor, Some(Right::Observe))? {
            Found::There(session, run) => Ok(session.run_output(&run, params)),
            Found::Gone(entry) => {
                let RunView { from, to, .. } = of_gone(&entry, actor).run;
                let gap = (from < to).then_some(Gap { from, to });
                Ok((RunOutputAnswer { gap, from: to, to, end: true }, Vec::new()))
            }
        }
    }

    /// The runs of one session, or the newest of all sessions one may observe.
    pub(crate) fn run_list(&self, params: &RunListParams, actor: &Actor) -> Result<Vec<RunView>, Fault> {
        let sessions = match &params.session {
            Some(session) => vec![self.registry.find_for(session, actor, Right::Observe)?],
            None => self.registry.all().into_iter().filter(|s| s.rights(actor).has(Right::Observe)).collect(),
        };
        let mut views: Vec<RunView> = sessions.iter().flat_map(|session| session.run_views()).collect();
        views.sort_by_key(|view| view.started_ms);
        views.drain(..views.len().saturating_sub(LISTED_MAX));
        Ok(views)
    }

    /// Interrupts a run.
    pub(crate) async fn run_cancel(&self, params: &RunCancelParams, actor: &Actor) -> Result<RunAnswer, Fault> {
        self.until_made(&params.run, actor).await;
        match self.find_run(&params.run, actor, None)? {
            Found::There(session, run) => {
                session.run_cancel(&run, params, actor).await?;
                self.run_answer(&session, run.id, 0, true).await
            }
            // There is nothing to interrupt.
            Found::Gone(entry) => Ok(of_gone(&entry, actor)),
        }
    }

    /// Waits while a session is being made under a key: its key is taken by then, and without the session it would count as lost.
    async fn until_made(&self, wanted: &RunRef, actor: &Actor) {
        let RunRef::Key(key) = wanted else { return };
        for shared in [false, true] {
            drop(self.keys.take(&Whose::of(actor, shared).name(key)).await);
        }
    }

    /// A run and its session. Without a right: whether it may is the session's authority's to say.
    fn find_run(&self, wanted: &RunRef, actor: &Actor, right: Option<Right>) -> Result<Found, Fault> {
        let entry = match wanted {
            RunRef::Key(key) if check_key(key).is_ok() => {
                index::find_any(&self.registry.shared.home.state, actor, key).map_err(|e| unkept(&e))?
            }
            RunRef::Key(_) | RunRef::Id(_) => None,
        };
        let id = match wanted {
            RunRef::Id(id) => *id,
            RunRef::Key(_) => entry.as_ref().map(|entry| entry.run).ok_or_else(|| no_such(wanted))?,
        };
        let found = self.registry.all().into_iter().find_map(|s| s.run(id).map(|run| (s, run)));
        let (session, run) = match (found, entry) {
            (Some(found), _) => found,
            // Its session is gone, and with it who may see it: who ran it still may.
            (None, Some(entry)) if self.is_gone(&entry) && entry.is_by(actor) => return Ok(Found::Gone(entry)),
            (None, _) => return Err(no_such(wanted)),
        };
        let name = session.id.to_string();
        let known = match right {
            Some(right) => self.registry.find_for(&name, actor, right),
            None => self.registry.find_acting(&name, actor),
        };
        match known {
            Ok(_) => Ok(Found::There(session, run)),
            // Who may not know the session does not learn that there is such a run.
            Err(fault) if fault.code == Code::NotFound => Err(no_such(wanted)),
            Err(fault) => Err(fault),
        }
    }

    /// A run that is there, and its session.
    pub(crate) fn run_there(&self, wanted: &RunRef, actor: &Actor) -> Result<(Rc<Session>, Run), Fault> {
        match self.find_run(wanted, actor, Some(Right::Observe))? {
            Found::There(session, run) => Ok((session, run)),
            Found::Gone(_) => Err(no_such(wanted)),
        }
    }

    /// Whether the session a key's run was in is gone.
    fn is_gone(&self, entry: &index::Entry) -> bool {
        self.registry.find(&entry.session.to_string()).is_err()
    }
}

/// A run that was asked about.
enum Found {
    There(Rc<Session>, Run),
    /// Its session is cleared; its key says what is known.
    Gone(index::Entry),
}

fn another_runs() -> Fault {
    Fault::new(Code::BadRequest, "this id belongs to another run").hint("use another random id")
}

fn no_such(wanted: &RunRef) -> Fault {
    let message = match wanted {
        RunRef::Id(id) => format!("no run {id}"),
        RunRef::Key(key) => {
            let cut: String = key.chars().take(KEY_BYTES_MAX).collect();
            format!("no run with the key {cut:?}")
        }
    };
    Fault::new(Code::NoSuchRun, message).hint("see `holdfast run ls`")
}

/// A key is no empty text, fits into the name of a file, and is told from an id.
fn check_key(key: &str) -> Result<(), Fault> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Fault::new(Code::BadRequest, format!("a key must have 1 to {KEY_BYTES_MAX} bytes")));
    }
    if key.parse::<RunId>().is_ok() {
        return Err(Fault::new(Code::BadRequest, "this key looks like a run id").hint("use another key"));
    }
    Ok(())
}

/// A run of words is called by them: what is run and what it is called are one command.
fn called(params: &RunStartParams) -> Result<Option<RunStartParams>, Fault> {
    let Some(words) = params.new.as_ref().map(|new| &new.command).filter(|words| !words.is_empty()) else {
        return Ok(None);
    };
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = words.iter().map(|word| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.clone(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    });
    let command = quoted.collect::<Vec<_>>().join(" ");
    if !params.command.is_empty() && params.command != command {
        return Err(Fault::new(Code::BadRequest, "`command` and `new.command` are two different commands")
            .hint("leave one of them out"));
    }
    Ok(Some(RunStartParams { command, ..params.clone() }))
}

/// A run whose session is gone: what its key knows still.
pub(crate) fn gone_view(state_dir: &Path, session: SessionId, run: &Run) -> RunView {
    let whose = Whose::of(&run.actor, run.shared);
    let known = run.key.as_deref().and_then(|key| index::find(state_dir, whose, key).ok().flatten());
    let entry = index::Entry {
        key: run.key.clone().unwrap_or_default(),
        session,
        run: run.id,
        command: run.command.clone(),
        own: run.own,
        created_ms: run.started_ms,
        actor: Some(run.actor.clone()),
        ended: known.filter(|entry| entry.run == run.id).and_then(|entry| entry.ended),
        shared: run.shared,
    };
    let view = of_gone(&entry, &run.actor).run;
    RunView { key: run.key.clone(), act: view.act.or(run.act), ..view }
}

/// A key whose session is gone: how its run ended, for who ran it or knows key and command of a shared one, or nothing at all. It is
/// not run again.
fn of_gone(entry: &index::Entry, actor: &Actor) -> RunAnswer {
    let is_told = |run: &&Run| (run.actor.id == actor.id || entry.shared) && run.state.is_over();
    let ended = entry.ended.as_ref().filter(is_told);
    let started_ms = ended.map_or(entry.created_ms, |run| run.started_ms);
    let (from, to) = ended.map_or((0, 0), |run| (run.from, run.to.unwrap_or(run.from)));
    let run = RunView {
        id: entry.run,
        session: entry.session,
        name: "cleared".parse().expect("letters"),
        key: Some(entry.key.clone()),
        command: entry.command.clone(),
        actor: entry.actor.as_ref().unwrap_or(actor).clone(),
        act: ended.and_then(|run| run.act),
        state: ended.map_or(RunState::Lost, |run| run.state),
        exit_code: ended.and_then(|run| run.exit_code),
        end: ended.map_or(Some(RunEnd::Unknown), |run| run.end),
        started_ms,
        ended_ms: ended.and_then(|run| run.ended_ms),
        duration_ms: ended.and_then(|run| run.ended_ms).map_or(0, |at| at.saturating_sub(started_ms)),
        from,
        to,
        cwd_before: ended.and_then(|run| run.cwd_before.clone()),
        cwd: ended.and_then(|run| run.cwd_after.clone()),
        own_session: entry.own,
        outcome: None,
        attempt: None,
    };
    RunAnswer { run, existing: true, output: String::new(), truncated: from < to, omitted: None, stderr: None }
}
