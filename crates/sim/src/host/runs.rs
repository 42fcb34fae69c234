//! Entering runs: brings about what each step of the core needs. One at a time, as in the host; and between any two steps others
//! have their turn, and the host may die.

use super::serve::{Answer, refused};
use super::{Crashed, Host};
use crate::cast::Who;
use crate::ctx::Ctx;
use crate::shell;
use holdfast_authority::{Ask, Caller, Input};
use holdfast_session::{
    Came, Check, Editor, Entering, Look, Next, NotEntered, Probed, Run, Seen, Sent, TakeUp, Ticket, Tracker,
};
use holdfast_wire::runs::{RunId, RunState};
use std::collections::{BTreeMap, VecDeque};

/// How long the keeper's answer is waited for.
const PROBE_WAIT_MS: u64 = 2_000;
/// By this ticket the keys of a run are known: lines have smaller ones.
const TICKET: Ticket = Ticket(u64::MAX);

/// What outlives a host: the files about runs.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// Every change of a run.
    pub runs: Vec<Run>,
    /// Which run a key stands for.
    pub keys: BTreeMap<String, RunId>,
    /// Under which token the next command runs.
    pub token: String,
}

impl Disk {
    /// The runs as the next host finds them.
    pub fn tracker(&self) -> Tracker {
        let mut runs: Vec<Run> = Vec::new();
        for run in &self.runs {
            match runs.iter_mut().find(|known| known.id == run.id) {
                Some(known) => *known = run.clone(),
                None => runs.push(run.clone()),
            }
        }
        Tracker::resume(runs)
    }
}

/// Who asked the keeper for its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Job,
    TakeUp,
}

/// A run that somebody wants.
struct Job {
    line: usize,
    id: u64,
    who: Who,
    number: u32,
    stage: Stage,
}

enum Stage {
    Begin,
    Check(Check, Waits),
    Enter(Box<Entering>, Option<Came>),
}

/// What a look waits for.
#[derive(Debug, Clone, Copy)]
enum Waits {
    Nothing,
    Probe { until: u64 },
}

/// The runs a host has to do with.
#[derive(Default)]
pub(super) struct Jobs {
    all: VecDeque<Job>,
    up: Option<(TakeUp, Waits)>,
    asked: VecDeque<Asker>,
    /// Answers of the keeper, for whom.
    probed: Vec<(Asker, Probed)>,
    /// What became of the run's keys.
    pub sent: Option<Sent>,
}

impl Jobs {
    fn seen(&mut self, asker: Asker, waits: Waits, now: u64) -> Option<Seen> {
        let Waits::Probe { until } = waits else { return Some(Seen::Change) };
        let come = self.probed.iter().position(|(whom, _)| *whom == asker);
        match come {
            Some(at) => Some(Seen::Probed(Some(self.probed.remove(at).1))),
            None if until <= now => Some(Seen::Probed(None)),
            None => None,
        }
    }
}

impl Host {
    /// Somebody wants a run.
    pub(super) fn run(&mut self, line: usize, id: u64, who: Who, number: u32) {
        self.jobs.all.push_back(Job { line, id, who, number, stage: Stage::Begin });
    }

    /// What the last host left is taken up.
    pub(super) fn take_up_runs(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let up = self.core(ctx, |core, out, now| core.take_up_runs(out, now, true))?;
        ctx.counts.runs_taken_up += u64::from(up.is_some());
        self.jobs.up = up.map(|up| (up, Waits::Nothing));
        Ok(())
    }

    /// The keeper's answer to who asked first.
    pub(super) fn give_probes(&mut self) {
        for probed in std::mem::take(&mut self.files.probed) {
            if let Some(asker) = self.jobs.asked.pop_front() {
                self.jobs.probed.push((asker, probed));
            }
        }
    }

    /// One step for the run that is first in line, and one for what the last host left.
    pub(super) fn runs_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.take_up_turn(ctx)?;
        let Some(job) = self.jobs.all.pop_front() else { return Ok(()) };
        let job = self.job_turn(ctx, job)?;
        if let Some(job) = job {
            self.jobs.all.push_front(job);
        }
        Ok(())
    }

    fn take_up_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        if self.jobs.up.is_none() {
            let flushed = self.core(ctx, |core, _, now| core.take_flushed(now))?;
            self.jobs.up = flushed.map(|up| (up, Waits::Nothing));
        }
        let Some((mut up, waits)) = self.jobs.up.take() else { return Ok(()) };
        let Some(seen) = self.jobs.seen(Asker::TakeUp, waits, ctx.now) else {
            self.jobs.up = Some((up, waits));
            return Ok(());
        };
        if let Some(look) = self.core(ctx, |core, out, now| core.take_up(out, now, &mut up, seen))? {
            let waits = self.await_look(ctx, Asker::TakeUp, look)?;
            self.jobs.up = Some((up, waits));
        }
        Ok(())
    }

    /// Whether nothing is being entered, and what an earlier host left is known.
    pub fn has_entered_all(&self) -> bool {
        self.jobs.all.is_empty() && self.jobs.up.is_none()
    }

    fn await_look(&mut self, ctx: &mut Ctx, asker: Asker, look: Look) -> Result<Waits, Crashed> {
        if look != Look::Probe {
            return Ok(Waits::Nothing);
        }
        self.jobs.asked.push_back(asker);
        self.jobs.probed.retain(|(whom, _)| *whom != asker);
        self.core(ctx, |core, out, _| core.probe(out))?;
        Ok(Waits::Probe { until: ctx.now + PROBE_WAIT_MS })
    }

    /// One step; gives the job back where it is not over.
    fn job_turn(&mut self, ctx: &mut Ctx, mut job: Job) -> Result<Option<Job>, Crashed> {
        match &mut job.stage {
            Stage::Begin => self.begin_job(ctx, job),
            Stage::Check(check, waits) => {
                let Some(seen) = self.jobs.seen(Asker::Job, *waits, ctx.now) else { return Ok(Some(job)) };
                let look = self.core(ctx, |core, out, now| core.check(out, now, check, seen))?;
                match look {
                    Look::Wait { .. } | Look::Probe | Look::Ask => {
                        *waits = self.await_look(ctx, Asker::Job, look)?;
                        Ok(Some(job))
                    }
                    Look::Busy(why) => {
                        ctx.note(format_args!("host: run {} is refused: {}", job.number, why.words()));
                        ctx.counts.runs_busy += 1;
                        self.answer_job(ctx, &job, Answer::Refused { code: "shell_busy" })
                    }
                    Look::Empty => self.decide_job(ctx, job),
                }
            }
            Stage::Enter(entering, came) => {
                let Some(came) = came.take().or_else(|| self.jobs.sent.take().map(Came::Sent)) else {
                    return Ok(Some(job));
                };
                let next = self.core(ctx, |core, out, now| core.enter(out, now, entering, came))?;
                self.go_on(ctx, job, next)
            }
        }
    }

    fn begin_job(&mut self, ctx: &mut Ctx, mut job: Job) -> Result<Option<Job>, Crashed> {
        ctx.oracle.runs.wanted_by.insert(shell::command(job.number), job.who);
        let key = key(job.number);
        if let Some(run) = ctx.disk.keys.get(&key).copied() {
            if !self.core.was_never_typed(run) {
                return self.answer_job(ctx, &job, Answer::Ran);
            }
            if !self.files.reach() {
                return Err(Crashed);
            }
            ctx.counts.keys_freed += 1;
            ctx.disk.keys.remove(&key);
        }
        if self.core.is_run_refused(super::now(ctx), &job.who.actor()) {
            return self.answer_job(ctx, &job, Answer::Refused { code: "refused" });
        }
        job.stage = Stage::Check(Check::new(Editor::Fish, 0), Waits::Nothing);
        Ok(Some(job))
    }

    /// Nothing comes between the last look and the decision.
    fn decide_job(&mut self, ctx: &mut Ctx, mut job: Job) -> Result<Option<Job>, Crashed> {
        let command = shell::command(job.number);
        let ask = Ask::Run { key: key(job.number), command: command.clone() };
        let by = Caller { actor: job.who.actor(), operator: None, token: None };
        let decided = match self.decide(ctx, Input::Asked { by, ask, proof: None })? {
            Ok(decided) => decided,
            Err(undecided) => return self.answer_job(ctx, &job, refused(&undecided)),
        };
        let at = self.files.ring.head();
        let run = Run {
            id: RunId::from_random_bits(ctx.rng.u128(..)),
            key: Some(key(job.number)),
            command: command.clone(),
            actor: job.who.actor(),
            act: None,
            token: format!("{:032x}", ctx.rng.u128(..)),
            state: RunState::Starting,
            exit_code: None,
            end: None,
            started_ms: ctx.now,
            ended_ms: None,
            typed_at: at,
            from: at,
            to: None,
            cwd_before: None,
            cwd_after: None,
            by_file: false,
            own: false,
            cancelled: false,
            shared: false,
        };
        let keys = format!("{command}\r").into_bytes();
        let entering = Entering::new(&self.core, &decided, run, keys, None, false);
        self.jobs.sent = None;
        job.stage = Stage::Enter(Box::new(entering), Some(Came::Decided));
        Ok(Some(job))
    }

    fn go_on(&mut self, ctx: &mut Ctx, mut job: Job, next: Next) -> Result<Option<Job>, Crashed> {
        let Stage::Enter(entering, came) = &mut job.stage else { return Ok(Some(job)) };
        match next {
            Next::TakeKey => {
                if !self.files.reach() {
                    return Err(Crashed);
                }
                ctx.disk.keys.insert(key(job.number), entering.run().id);
                *came = Some(Came::KeyTaken);
            }
            Next::KeepHook => *came = Some(Came::HookKept),
            // Who enters runs here waits for no disk.
            Next::Look => *came = Some(Came::Failed),
            Next::Type { fence, bytes } => {
                let by = Caller { actor: job.who.actor(), operator: None, token: None };
                self.core(ctx, |core, out, now| core.type_decided(out, now, TICKET, by, fence, bytes))?;
            }
            Next::Entered => return self.answer_job(ctx, &job, Answer::Ran),
            Next::NotEntered(why) => {
                ctx.note(format_args!("host: run {} is not entered: {why:?}", job.number));
                ctx.counts.runs_not_entered += 1;
                let answer = match &why {
                    NotEntered::Refused(undecided) => refused(undecided),
                    NotEntered::Failed | NotEntered::Unrecorded(_) | NotEntered::Full(_) => {
                        Answer::Refused { code: "busy" }
                    }
                };
                return self.answer_job(ctx, &job, answer);
            }
        }
        Ok(Some(job))
    }

    fn answer_job(&mut self, ctx: &mut Ctx, job: &Job, answer: Answer) -> Result<Option<Job>, Crashed> {
        self.reply(ctx, job.line, job.id, answer)?;
        Ok(None)
    }

    /// Whether these are a run's keys.
    pub(super) fn is_of_run(ticket: Ticket) -> bool {
        ticket == TICKET
    }
}

fn key(number: u32) -> String {
    format!("key {number}")
}
