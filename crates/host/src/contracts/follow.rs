//! A run under a contract from its first key to its outcome, and to its next attempt where it failed and may be run again.

use super::action_of;
use super::kept::{Again, Trace};
use super::measure::Measuring;
use super::records::Entry;
use crate::session::{Entered, Session};
use holdfast_authority::Said;
use holdfast_types::Actor;
use holdfast_wire::contracts::{Contract, Decision, Effects, FileEffects, Outcome};
use holdfast_wire::runs::{RunId, RunStartParams, RunState, RunView};
use std::rc::Rc;
use std::time::Duration;

/// Paths of one kind that are kept of a run: a person reads no more.
const PATHS_KEPT_MAX: usize = 200;
/// Between two looks at a run, should a word of its end ever be missed.
const LOOK_MS: u64 = 20_000;
/// How long what a run did may take from its end to its outcome, for who waits for it.
const SETTLE: Duration = Duration::from_secs(12);
/// What a run is not told of any more when the host that measured it is gone.
const STOPPED: &str = "the host was stopped while it ran";

/// What is known of a run under a contract before it begins.
pub(crate) fn opened(
    params: &RunStartParams,
    contract: &Contract,
    (run, actor): (RunId, &Actor),
    measuring: &Measuring,
    decision: Option<Decision>,
) -> Trace {
    let again =
        RunStartParams { key: None, proof: None, on_exit: None, wait_ms: 0, approval_wait_ms: 0, ..params.clone() };
    Trace {
        run,
        first: run,
        number: 1,
        actor: actor.clone(),
        action: action_of(&params.command),
        contract: Contract { intent: super::intent_of(params), ..contract.clone() },
        patterns: measuring.patterns.clone(),
        decision,
        effects: None,
        outcome: None,
        again: None,
        error: None,
        params: (contract.retries > 0).then(|| Box::new(again)),
    }
}

/// What let it through.
pub(crate) fn decision(said: Option<&Said>, took: Duration) -> Decision {
    let took_us = took.as_micros() as u64;
    match said {
        Some(Said::Allow(note)) => Decision {
            outcome: "allow".into(),
            rule: Some(note.rule.clone()),
            approval: note.approval.clone(),
            took_us,
        },
        Some(Said::Deny { .. } | Said::Hold { .. }) | None => {
            Decision { outcome: "off".into(), took_us, ..Decision::default() }
        }
    }
}

impl Session {
    /// Begins to measure a run that is about to be entered into the shell.
    pub(crate) async fn measure(&self, contract: &Contract) -> Measuring {
        let cwd = self.place_of_acts().cwd;
        let shell = self.state.borrow().pid;
        // What host and shell share is no effect of the run.
        let spared = [self.shell_dir(), self.seen_shell_dir()].map(|dir| dir.display().to_string()).to_vec();
        Measuring::begin(&self.gate.shared(), Some(shell).filter(|pid| *pid != 0), cwd, contract, spared).await
    }

    /// Follows a run under a contract to its outcome.
    pub(crate) fn follow_contract(&self, run: RunId, measuring: Measuring) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let sampled = this.run(run);
            let act = sampled.as_ref().filter(|run| !run.own).and_then(|run| run.act);
            tokio::select! {
                () = this.run_ended(run) => {}
                () = measuring.sample(&this, act) => {}
            }
            // Its directory, and what the shell does behind it, come with the next prompt.
            this.run_over(run, 0).await;
            holdfast_pause::task_point("contract.over").await;
            let own = this.run(run).is_some_and(|run| run.own);
            let effects = measuring.end(&this, act, own).await;
            this.came_out(run, effects);
            this.changed.notify_waiters();
            this.go_again(run).await;
        });
    }

    /// What an earlier host left: runs whose outcome nobody wrote down, and those that are to be run again.
    pub(crate) fn take_up_contracts(&self) {
        for trace in self.contracts.open() {
            if !self.contracts.follow(trace.run) {
                continue;
            }
            match (trace.outcome.is_some(), self.this.upgrade()) {
                (false, _) if self.run(trace.run).is_none() => {
                    // It was never typed.
                    let error = Some("it was not begun".to_owned());
                    self.keep_trace(Trace { error, outcome: Some(nothing_known()), again: None, ..trace });
                }
                (false, _) => self.follow_contract(trace.run, Measuring::none(&self.gate.shared(), STOPPED)),
                (true, Some(this)) => {
                    tokio::task::spawn_local(async move { this.go_again(trace.run).await });
                }
                (true, None) => {}
            }
        }
    }

    async fn run_ended(&self, run: RunId) {
        while self.run(run).is_some_and(|run| !run.state.is_over()) {
            self.run_over(run, LOOK_MS).await;
        }
    }

    /// Compares, and keeps what came of it.
    fn came_out(&self, id: RunId, mut effects: Effects) {
        let Some(mut trace) = self.contracts.get(id) else { return };
        let run = self.run(id);
        let exit_code = run.as_ref().and_then(|run| run.exit_code);
        let outcome = holdfast_session::outcome(&trace.contract, &trace.patterns, &effects, exit_code);
        cut(&mut effects.files);
        let is_failed = !outcome.success && run.as_ref().is_some_and(|run| run.state == RunState::Ended);
        if is_failed && trace.number <= trace.contract.retries && trace.params.is_some() {
            trace.again = Some(Again { at_ms: crate::now_ms() + trace.contract.pause_ms(trace.number) });
        }
        if !trace.contract.promises().is_empty() && run.is_some() {
            let entry = Entry {
                actor: trace.actor.clone(),
                action: trace.action.clone(),
                run: id,
                session: self.id,
                at_ms: run.and_then(|run| run.ended_ms).unwrap_or_else(crate::now_ms),
                validity: outcome.validity,
                success: outcome.success,
                unexpected: outcome.unexpected.first().map(|one| format!("{} {}", one.kind, one.what)),
            };
            if let Err(error) = self.gate.records.borrow_mut().add(entry) {
                tracing::error!("the record of {} cannot be written: {error}", trace.actor);
            }
        }
        self.keep_trace(Trace { effects: Some(effects), outcome: Some(outcome), ..trace });
    }

    fn keep_trace(&self, trace: Trace) {
        if let Err(error) = self.contracts.keep(trace) {
            tracing::error!(session = %self.id, "what became of a contract cannot be written: {error}");
        }
    }

    /// Runs it again, where it is to be.
    async fn go_again(&self, id: RunId) {
        let Some(trace) = self.contracts.get(id) else { return };
        let (Some(again), Some(params)) = (&trace.again, &trace.params) else { return };
        tokio::time::sleep(Duration::from_millis(again.at_ms.saturating_sub(crate::now_ms()))).await;
        let run = RunId::from_random_bits(u128::from_le_bytes(crate::random_token()));
        let params = RunStartParams { run: Some(run), ..(**params).clone() };
        let state_dir = self.state.borrow().state_dir.clone();
        // Judged like any other run, by the rules of this moment.
        let entered = Box::pin(self.enter_as(&params, &trace.actor, &state_dir, None, Some(&trace))).await;
        let error = match entered {
            Ok(Entered::Begun(_)) => None,
            Ok(Entered::There(_) | Entered::Taken(_)) => Some("it is there already".to_owned()),
            Err(fault) => Some(fault.message),
        };
        self.keep_trace(Trace { again: None, error, ..trace });
        self.changed.notify_waiters();
    }

    /// Waits until a run is over; one under a contract until its outcome is known, and its last attempt over.
    pub(crate) async fn run_whole(&self, id: RunId, wait_ms: u64) {
        if self.contracts.get(id).is_none() {
            return self.run_over(id, wait_ms).await;
        }
        let until = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let latest = self.contracts.latest(id);
            self.run_over(latest, left.as_millis() as u64).await;
            if self.run(latest).is_some_and(|run| !run.state.is_over()) {
                return;
            }
            let trace = || self.contracts.get(latest);
            let is_known = || trace().is_none_or(|trace| trace.outcome.is_some());
            self.until(Some(SETTLE), || is_known().then_some(())).await;
            if trace().is_none_or(|trace| trace.again.is_none()) && self.contracts.latest(id) == latest {
                return;
            }
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let moved_on = || self.contracts.latest(id) != latest || trace().is_none_or(|trace| trace.again.is_none());
            if left.is_zero() || self.until(Some(left), || moved_on().then_some(())).await.is_none() {
                return;
            }
        }
    }

    /// Puts what is known by its contract into a run's view.
    pub(crate) fn with_contract(&self, view: RunView) -> RunView {
        let Some(trace) = self.contracts.get(view.id) else { return view };
        let outcome = trace.outcome.map(Box::new);
        let attempt = (trace.contract.retries > 0).then_some(trace.number);
        if trace.again.is_none() {
            return RunView { outcome, attempt, ..view };
        }
        // It is over when its last attempt is.
        RunView { attempt, state: RunState::Running, exit_code: None, end: None, ended_ms: None, ..view }
    }
}

fn nothing_known() -> Outcome {
    let validity = holdfast_wire::contracts::Validity::Unknown;
    Outcome { validity, success: false, unexpected: Vec::new(), unexpected_count: 0, untold: Vec::new() }
}

fn cut(files: &mut FileEffects) {
    for list in [&mut files.created, &mut files.changed, &mut files.deleted] {
        list.truncate(PATHS_KEPT_MAX);
    }
    files.moved.truncate(PATHS_KEPT_MAX);
}

/// The attempts of a run, for people.
pub(super) fn attempts(session: &Rc<Session>, run: RunId) -> Vec<holdfast_wire::contracts::Attempt> {
    let all = session.contracts.attempts(run).into_iter();
    all.map(|trace| {
        let run = session.run(trace.run);
        holdfast_wire::contracts::Attempt {
            run: trace.run,
            started_ms: run.as_ref().map_or(0, |run| run.started_ms),
            ended_ms: run.as_ref().and_then(|run| run.ended_ms),
            exit_code: run.as_ref().and_then(|run| run.exit_code),
            error: trace.error,
        }
    })
    .collect()
}
