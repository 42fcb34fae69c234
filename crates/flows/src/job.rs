//! One run on the host, from its key to its outcome: what to ask next, and what an answer means.
//!
//! `shell_busy` and `turn_held` mean "not now": the job comes back. `denied` is told and blocks the flow until somebody mends it.
//! A run whose key the host no longer knows, and may have forgotten, is lost: it is never run a second time unasked.

use crate::engine::Input;
use crate::link::ask;
use holdfast_authority::{Ask, recorded};
use holdfast_client::{CallError, Connection, Identity};
use holdfast_flow::{Outcome, Run, RunState, VALUE_BYTES_MAX, WaitFor};
use holdfast_types::{Exit, SessionId, SessionName, terms_of};
use holdfast_wire::attention::Until;
use holdfast_wire::operations::op;
use holdfast_wire::params::{NewParams, SessionParams, SessionView, WaitAnswer, WaitParams};
use holdfast_wire::runs::{
    RunAnswer, RunCancelParams, RunEnd, RunId, RunParams, RunRef, RunStartParams, RunState as HostState,
};
use holdfast_wire::{Code, Fault};
use serde_json::{Value, json};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How long a start waits for the end: a short command needs no second question, and of a long one the session is soon known.
const START_WAIT_MS: u64 = 100;
/// How long the host lets one question wait for a run's end; then it is asked again.
const WAIT_MS: u64 = 600_000;
/// How long a key counts as known to the host after its run: it keeps keys for a week by default.
const KEY_TRUST_MS: u64 = 5 * 86_400_000;
/// "Not now": the first pause, and the longest: steps that share a shell follow each other soon.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// What to ask next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Whether the host knows the key: after a restart, it most often does.
    Check,
    /// Which session is meant.
    Find,
    /// Start the session that is named and not there.
    Make,
    /// Start the run, in this session or in one of its own.
    Start(Option<SessionId>),
    /// Wait for its end.
    Wait(RunId),
    /// Interrupt it.
    Stop,
    /// Sign an interruption of this run in this session.
    Cancel(RunId, SessionId),
    /// Wait for the end of what was interrupted.
    Stopped(RunId),
    /// Wait for something in the session.
    Watch(Until),
}

/// What is to be done with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Over,
    /// Ask.
    Ask,
    /// Ask after a pause.
    Later(Duration),
}

/// Which attempt of which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The flow.
    pub flow: String,
    /// Which history under its id: a step of an older one is another.
    pub generation: u32,
    /// The command.
    pub n: u32,
    /// The attempt.
    pub attempt: u32,
}

/// One run on the host.
#[derive(Debug)]
pub struct Job {
    whose: Whose,
    key: String,
    run: Run,
    cwd: Option<String>,
    /// What a session of its own finds in its environment beside the host's.
    env: Vec<String>,
    phase: Phase,
    /// Its key may be older than the host keeps keys.
    is_old: bool,
    pause: Duration,
    /// Whether the engine was told why it waits.
    is_held_up: bool,
    tell: Sender<Input>,
}

impl Job {
    /// Starts a run, or finds it: one that was asked for before is looked for first.
    pub fn start(
        whose: Whose,
        key: String,
        run: Run,
        age_ms: Option<u64>,
        cwd: Option<String>,
        tell: Sender<Input>,
    ) -> Job {
        let is_old = age_ms.is_some_and(|age_ms| age_ms > KEY_TRUST_MS);
        let mut job = Job { run, cwd, phase: Phase::Check, is_old, ..Job::stop(whose, key, tell) };
        if age_ms.is_none() {
            job.phase = job.first();
        }
        job
    }

    /// With these variables in a session of its own.
    pub fn with_env(self, env: Vec<String>) -> Job {
        Job { env, ..self }
    }

    /// The name of the session that is started where it is not there.
    fn named(&self) -> Option<SessionName> {
        let session = self.run.session.as_ref().filter(|session| !session.starts_with("ses_"));
        session.and_then(|name| name.parse().ok())
    }

    /// What is asked where the key is new.
    fn first(&self) -> Phase {
        if self.run.session.is_some() { Phase::Find } else { Phase::Start(None) }
    }

    /// Waits for something in a session; asks once, and whoever still wants it asks again.
    pub fn watch(whose: Whose, session: String, until: WaitFor, tell: Sender<Input>) -> Job {
        let until = match until {
            WaitFor::Exit => Until::Exit,
            WaitFor::Idle => Until::Idle,
            WaitFor::Waiting => Until::Waiting,
            WaitFor::Port(port) => Until::Port(port),
        };
        let run = Run { name: format!("waiting in {session}"), session: Some(session), ..Run::default() };
        Job { phase: Phase::Watch(until), run, ..Job::stop(whose, String::new(), tell) }
    }

    /// Interrupts a run and waits for its end.
    pub fn stop(whose: Whose, key: String, tell: Sender<Input>) -> Job {
        let (run, cwd, env) = (Run::default(), None, Vec::new());
        Job { whose, key, run, cwd, env, phase: Phase::Stop, is_old: false, pause: PAUSE_MIN, is_held_up: false, tell }
    }

    /// Asks the host what comes next.
    pub fn ask(&mut self, connection: &mut Connection, who: &Identity) -> Result<u64, CallError> {
        let key = || RunRef::Key(self.key.clone());
        match &self.phase {
            Phase::Check | Phase::Stop => ask::<op::RunGet>(connection, &RunParams { run: key(), wait_ms: 0 }),
            Phase::Find => {
                let session = self.run.session.clone().unwrap_or_default();
                ask::<op::Get>(connection, &SessionParams { session })
            }
            Phase::Make => ask::<op::New>(
                connection,
                &NewParams { name: self.named(), cwd: self.cwd.clone(), ..NewParams::default() },
            ),
            Phase::Start(session) => {
                let asked = Ask::Run { key: self.key.clone(), command: recorded(&self.run.command).into_owned() };
                let new = NewParams { cwd: self.cwd.clone(), env_add: self.env.clone(), ..NewParams::default() };
                let params = RunStartParams {
                    session: session.map(|id| id.to_string()),
                    new: session.is_none().then(|| Box::new(new)),
                    key: Some(self.key.clone()),
                    command: self.run.command.clone(),
                    wait_ms: START_WAIT_MS,
                    proof: session.map(|id| who.prove(id, &asked)),
                    ..RunStartParams::default()
                };
                ask::<op::RunStart>(connection, &params)
            }
            Phase::Wait(run) | Phase::Stopped(run) => {
                ask::<op::RunGet>(connection, &RunParams { run: (*run).into(), wait_ms: WAIT_MS })
            }
            Phase::Watch(until) => {
                let session = self.run.session.clone().unwrap_or_default();
                let params = WaitParams { session, timeout_ms: Some(WAIT_MS), until: *until };
                ask::<op::Wait>(connection, &params)
            }
            Phase::Cancel(run, session) => {
                let asked = Ask::other(const { terms_of("run.cancel") }, run.to_string());
                let proof = Some(who.prove(*session, &asked));
                ask::<op::RunCancel>(connection, &RunCancelParams { run: (*run).into(), wait_ms: 0, proof })
            }
        }
    }

    /// Takes an answer.
    pub fn answered(&mut self, result: Result<Value, Fault>) -> Next {
        match result {
            Err(fault) => self.refused(&fault),
            Ok(value) => match &self.phase {
                Phase::Find | Phase::Make => match serde_json::from_value::<SessionView>(value) {
                    Ok(session) => self.go(Phase::Start(Some(session.id))),
                    Err(error) => self.not_now(&format!("cannot read the host's answer: {error}")),
                },
                Phase::Watch(until) => match serde_json::from_value::<WaitAnswer>(value) {
                    Ok(answer) => self.watched(came(*until, &answer)),
                    Err(error) => self.not_now(&format!("cannot read the host's answer: {error}")),
                },
                Phase::Check
                | Phase::Start(_)
                | Phase::Wait(_)
                | Phase::Stop
                | Phase::Cancel(..)
                | Phase::Stopped(_) => match serde_json::from_value::<RunAnswer>(value) {
                    Ok(answer) => self.ran(&answer),
                    Err(error) => self.not_now(&format!("cannot read the host's answer: {error}")),
                },
            },
        }
    }

    fn go(&mut self, phase: Phase) -> Next {
        self.phase = phase;
        self.pause = PAUSE_MIN;
        Next::Ask
    }

    fn ran(&mut self, answer: &RunAnswer) -> Next {
        if answer.run.state.is_over() {
            return self.over(outcome_of(answer));
        }
        if self.is_held_up {
            self.is_held_up = false;
            self.say(None);
        }
        match self.phase {
            Phase::Stop => self.go(Phase::Cancel(answer.run.id, answer.run.session)),
            Phase::Cancel(run, _) | Phase::Stopped(run) => self.go(Phase::Stopped(run)),
            Phase::Check | Phase::Find | Phase::Make | Phase::Start(_) | Phase::Wait(_) | Phase::Watch(_) => {
                let (whose, session) = (self.whose.clone(), answer.run.session.to_string());
                let _ = self.tell.send(Input::Runs { whose, session });
                self.go(Phase::Wait(answer.run.id))
            }
        }
    }

    fn refused(&mut self, fault: &Fault) -> Next {
        let never = |why: String| Outcome { state: RunState::Refused, why: Some(why), ..Outcome::default() };
        match (fault.code, &self.phase) {
            // What is not there does not come. A session that is to be made first is another step's.
            (Code::NotFound | Code::Ambiguous | Code::BadRequest, Phase::Watch(_)) => {
                self.watched(Some((false, json!({"why": fault.message}))))
            }
            // It never started, or its session is gone with its outcome.
            (Code::NoSuchRun | Code::NotFound, Phase::Stop) => self.over(never("it had not started".into())),
            (Code::NoSuchRun, Phase::Check) if !self.is_old => {
                let first = self.first();
                self.go(first)
            }
            (
                Code::NoSuchRun | Code::NotFound,
                Phase::Check | Phase::Wait(_) | Phase::Stopped(_) | Phase::Cancel(..),
            ) => self.over(Outcome { state: RunState::Lost, ..Outcome::default() }),
            // An id means that very session; a name, one of that name.
            (Code::NotFound, Phase::Find) if self.named().is_none() => self.over(never(fault.message.clone())),
            (Code::NotFound, Phase::Find) => self.go(Phase::Make),
            // Somebody made it meanwhile.
            (Code::NameTaken, Phase::Make) => self.go(Phase::Find),
            // Ended between two questions.
            (Code::Ended, Phase::Start(_)) => self.go(Phase::Find),
            (Code::Denied | Code::Unidentified | Code::Unconfirmed | Code::NoSuchActor | Code::KeyConflict, _) => {
                self.say_blocked(&format!("{}: the host refuses it: {}", self.run.name, fault.message));
                Next::Over
            }
            (Code::CannotStart | Code::BadRequest | Code::TooLarge | Code::UnknownKeeper | Code::Ambiguous, _) => {
                self.over(never(fault.message.clone()))
            }
            _ => self.not_now(&fault.message),
        }
    }

    fn not_now(&mut self, why: &str) -> Next {
        self.is_held_up = true;
        self.say(Some(why.to_owned()));
        let pause = self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        // A session may have got another id meanwhile.
        if matches!(self.phase, Phase::Start(Some(_))) {
            self.phase = Phase::Find;
        }
        Next::Later(pause)
    }

    fn over(&self, outcome: Outcome) -> Next {
        let _ = self.tell.send(Input::Over { whose: self.whose.clone(), outcome });
        Next::Over
    }

    fn watched(&self, came: Option<(bool, Value)>) -> Next {
        let _ = self.tell.send(Input::Watched { whose: self.whose.clone(), came });
        Next::Over
    }

    fn say(&self, why: Option<String>) {
        let _ = self.tell.send(Input::HeldUp { whose: self.whose.clone(), why });
    }

    fn say_blocked(&self, why: &str) {
        let _ = self.tell.send(Input::Denied { flow: self.whose.flow.clone(), why: why.to_owned() });
    }

    /// The actor cannot speak to the host at all.
    pub fn denied(self, why: &str) {
        self.say_blocked(why);
    }

    /// The host cannot be reached for now.
    pub fn held_up(&self, why: &str) {
        self.say(Some(why.to_owned()));
    }
}

/// Whether what was waited for has come, and what is known of it; none: not so far.
fn came(until: Until, answer: &WaitAnswer) -> Option<(bool, Value)> {
    let is_there = match until {
        Until::Exit => answer.exit.is_some(),
        Until::Idle | Until::Waiting => answer.state.is_some(),
        Until::Port(_) => answer.listener.is_some(),
    };
    let exit_code = answer.exit.map(Exit::as_status);
    match (is_there, exit_code) {
        (true, Some(status)) => Some((true, json!({"exit_code": status}))),
        (true, None) => Some((true, json!({"address": answer.listener.as_ref().map(|one| one.address.to_string())}))),
        (false, Some(status)) => {
            Some((false, json!({"why": format!("the session ended with {status}"), "exit_code": status})))
        }
        (false, None) => None,
    }
}

/// What is recorded of a run.
fn outcome_of(answer: &RunAnswer) -> Outcome {
    let run = &answer.run;
    let state = match run.state {
        HostState::Ended | HostState::Starting | HostState::Running => RunState::Ended,
        HostState::Cancelled => RunState::Cancelled,
        HostState::Lost => RunState::Lost,
    };
    let mut output = answer.output.replace("\r\n", "\n");
    let mut end = output.len().min(VALUE_BYTES_MAX / 2);
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    let truncated = answer.truncated || end < output.len();
    output.truncate(end);
    let not_started = run.end == Some(RunEnd::NotStarted) && state == RunState::Lost;
    Outcome {
        state,
        exit_code: run.exit_code,
        not_started,
        output,
        truncated,
        run: Some(run.id.to_string()),
        session: Some(run.session.to_string()),
        from: run.from,
        to: run.to,
        why: None,
    }
}
