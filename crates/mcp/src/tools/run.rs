//! `run_command`: a command with an end and a status; one that takes longer is answered with its handle.

use super::views::Doing;
use super::{ANYTHING, Hints, Operate, Shown};
use crate::desk::{ASK_MS, Desk, in_ms, left_ms};
use crate::excerpt::{self, Span};
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_authority::{Ask, recorded};
use holdfast_types::SessionId;
use holdfast_wire::attention::{Kind, Now, StateView, Until};
use holdfast_wire::contracts::{Contract, Outcome};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ScreenParams, SessionParams, SessionView, WaitParams};
use holdfast_wire::runs::{RunAnswer, RunEnd, RunId, RunOutputParams, RunParams, RunStartParams, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long a command may take before its handle is given, unless said otherwise: most are over by then.
pub const YIELD_MS: u64 = 10_000;
/// Longest that one call waits: clients give up on a call that takes longer.
pub const YIELD_MS_MAX: u64 = 600_000;
/// Whether somebody waits for input is looked at only behind this: most commands are over before, and cost nothing.
const LOOK_MS: u64 = 300;
/// A shell that is new may take this long to its first prompt, if its caller is that patient.
const NEW_MS: u64 = 600_000;
/// A prompt is waited for this long, however impatient the caller: starting a shell is not the command's time.
const PROMPT_MS: u64 = 30_000;
/// Between two attempts to enter a command.
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// Between two looks at somebody who waits and asks nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunIn {
    /// The command, as typed into a shell: pipes, variables, several lines.
    command: String,
    /// Name or id of the session whose shell runs it. Omitted: your own, which starts at first use and keeps directory and variables.
    #[serde(default)]
    session: Option<String>,
    /// How long to wait for its end, in milliseconds (default 10000). Then the answer is `running` with the handle `run`; the command keeps running.
    #[serde(default)]
    yield_ms: Option<u64>,
    /// Run once per key of yours: the same key and command return the existing run, even after a crash.
    #[serde(default)]
    key: Option<String>,
    /// Maximum bytes of output in the answer (default 8192, at most 65536). Longer output is cut to its beginning and end.
    #[serde(default)]
    max_output_bytes: Option<u32>,
    /// Why you run it: for the human who may be asked.
    #[serde(default)]
    intent: Option<String>,
    /// What it may do, as in `{"expect": {"may_change": ["src/**"], "processes": 0}}`: measured, and counted in your record.
    #[serde(default)]
    // Its schema would be a tenth of the whole list; what is wrong with one is said when it is sent.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    contract: Option<Box<Contract>>,
    /// Fail with `shell_restarted` if your own shell ended since your last command, instead of running in a new one.
    #[serde(default)]
    same_shell: bool,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunOut {
    /// Its handle, for `wait_for`, `read_output` and `interrupt`.
    pub run: String,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its session.
    pub session: String,
    /// `starting`, `running`: active. `ended`, `cancelled`: finished. `lost`: its outcome is unknown.
    pub state: String,
    /// Its status, where it is over and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How the end is known: `exact`, `inferred`, `not_started` (the shell did not accept it as a command; of a `lost` one: it was not typed), `unknown` (a `lost` one may have run).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// How long it took so far.
    pub duration_ms: u64,
    /// Its output as text: of a long one beginning and end; of a full-screen program its screen.
    pub output: String,
    /// Offset of its first output byte in the session's output.
    pub from: u64,
    /// Offset behind its last output byte so far: `read_output` the session from here for what comes.
    pub to: u64,
    /// What is not shown: `read_output` shows it by its offsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Span>,
    /// Some bytes were not UTF-8 and are shown as U+FFFD; `read_output` with `encoding: "base64"` returns the exact bytes.
    pub lossy: bool,
    /// The shell's directory after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How it kept its contract, and what it did beyond it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub outcome: Option<Box<Outcome>>,
    /// It was there before: the key was used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
    /// Your own shell had ended: this one is new, without the old one's directory, variables and jobs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
    /// While it is on: what the session is doing, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
    /// What there is to know or to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Shown for RunOut {
    /// The status first: clients cut the end.
    fn text(&self) -> String {
        let mut text =
            format!("[{} · {} ms · {} · session {}]\n", self.status(), self.duration_ms, self.run, self.session);
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text.push_str(&self.output);
        text
    }
}

impl RunOut {
    /// With what there is to know about it, also for clients that show the fields alone.
    fn noted(mut self) -> RunOut {
        let mut notes = Vec::new();
        let mut note = |line: String| notes.push(line);
        if self.existing {
            note(format!("key {} already ran; nothing was started now", self.key.as_deref().unwrap_or("?")));
        }
        if self.restarted {
            note(
                "your shell had ended and this is a new one: the old one's directory, variables and jobs are gone"
                    .into(),
            );
        }
        match (self.end, self.state.as_str()) {
            (Some(RunEnd::NotStarted), "lost") => note("nothing ran: the host stopped before it was typed".into()),
            (Some(RunEnd::NotStarted), _) => note("nothing ran: the shell did not accept it as a command".into()),
            (_, "lost") => note("it may have run; it was not run again: check before you repeat it".into()),
            _ => {}
        }
        if let Some(doing) = self.doing.as_ref().filter(|doing| doing.state != "running") {
            note(format!("the session is {}", doing.line()));
        } else if !self.is_over() {
            note(format!("it keeps running: `wait_for` {{run: \"{}\"}}", self.run));
        }
        if let Some(outcome) = self.outcome.as_ref().filter(|outcome| outcome.unexpected_count > 0) {
            let named = outcome.unexpected.iter().take(3).map(|one| format!("{} {}", one.kind, one.what));
            note(format!("effects beyond the contract: {}", named.collect::<Vec<_>>().join("; ")));
        }
        if let Some(omitted) = self.omitted {
            note(format!(
                "output is cut: `read_output` {{run: \"{}\", from: {}}} shows the rest",
                self.run, omitted.from
            ));
        }
        self.notes = notes;
        self
    }

    fn is_over(&self) -> bool {
        !matches!(self.state.as_str(), "starting" | "running")
    }

    /// How it stands, in a word or two.
    fn status(&self) -> String {
        match (self.state.as_str(), self.exit_code) {
            ("starting" | "running", _) => "running".into(),
            ("lost", _) => "lost, exit code unknown".into(),
            ("ended", Some(code)) => format!("exit {code}"),
            (state, Some(code)) => format!("{state}, exit {code}"),
            (state, None) => format!("{state}, exit code unknown"),
        }
    }
}

/// The tool.
pub struct Run;

impl Operate for Run {
    const NAME: &'static str = "run_command";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs a shell command in a live terminal: output and exit code. Longer than \
        yield_ms it keeps running, and you get a `run` handle for `wait_for`. The shell keeps directory, variables and \
        jobs between calls, and people see the same terminal. If the command asks for input, the answer comes at once \
        and says so (`doing`). Fails with `shell_busy` if the shell is not at an empty prompt; then nothing was typed.";
    const HINTS: Hints = ANYTHING;
    type In = RunIn;
    type Out = RunOut;

    async fn call<H: Host>(desk: &Desk<H>, input: RunIn) -> Result<RunOut, Trouble> {
        if input.command.trim().is_empty() {
            return Err(Trouble::bad("the command is empty"));
        }
        // Most commands are for the shell of the one before, which is there: nobody asks about it first.
        let mine = if input.session.is_none() { desk.mine().await } else { None };
        if let Some(mine) = mine {
            match run_in(desk, mine, &input).await {
                Err(gone) if matches!(gone.code.as_str(), "not_found" | "ended" | "lost") => {}
                other => return other,
            }
        }
        let (session, restarted) = desk.find_or_own_for(input.session.as_deref(), input.same_shell).await?;
        let out = run_in(desk, session.id, &input).await?;
        Ok(if restarted { RunOut { restarted, ..out }.noted() } else { out })
    }
}

/// Runs it in a session's shell.
async fn run_in<H: Host>(desk: &Desk<H>, session: SessionId, input: &RunIn) -> Result<RunOut, Trouble> {
    let patience = input.yield_ms.unwrap_or(YIELD_MS).min(YIELD_MS_MAX);
    let ask = Ask::Run { key: input.key.clone().unwrap_or_default(), command: recorded(&input.command).into_owned() };
    let mut params = RunStartParams {
        session: Some(session.to_string()),
        key: input.key.clone(),
        run: Some(fresh_run()?),
        command: input.command.clone(),
        intent: input.intent.clone(),
        contract: input.contract.clone(),
        wait_ms: patience.min(LOOK_MS),
        ..RunStartParams::default()
    };
    // Calls of one connection wait for each other. A run whose handle was given is nobody's to wait for: the host says so.
    let (line, prompt_ms) = (desk.line(session), patience.max(PROMPT_MS));
    let _first = tokio::time::timeout_at(in_ms(prompt_ms).into(), line.lock()).await.ok();
    let answer = entered(desk, session, ask, &mut params, prompt_ms).await?;
    // From here on: starting a shell is not the command's time.
    let until = in_ms(patience);
    // Asked again after a host was killed it is there already, and ours all the same.
    let existing = answer.existing && input.key.is_some() && Some(answer.run.id) != params.run;
    let (answer, state) = go_on(desk, answer, until, None).await?;
    shown(desk, RunAnswer { existing, ..answer }, state.as_ref(), input.max_output_bytes).await
}

/// Enters a command, once a shell that is new has read its own files, or a person who was lent the turn is done.
async fn entered<H: Host>(
    desk: &Desk<H>,
    session: SessionId,
    ask: Ask,
    params: &mut RunStartParams,
    patience_ms: u64,
) -> Result<RunAnswer, Trouble> {
    let until = in_ms(patience_ms);
    loop {
        let refused = match desk.act::<op::RunStart>(session, ask.clone(), params.clone()).await {
            Err(refused) if matches!(refused.code.as_str(), "shell_busy" | "turn_held") => refused,
            other => return other,
        };
        if left_ms(until) == 0 || !is_passing(&refused, &desk.find(&session.to_string()).await?) {
            return Err(refused);
        }
        desk.tell(|| refused.message.clone()).await;
        if refused.code == "shell_busy" {
            let timeout_ms = Some(desk.ask_ms(until));
            desk.ask::<op::Wait>(WaitParams { session: session.to_string(), timeout_ms, until: Until::Idle }).await?;
        }
        tokio::time::sleep(TRY_AGAIN).await;
        // A run that was refused after it was recorded is over: nothing of it was typed, and its key is free.
        params.run = Some(fresh_run()?);
    }
}

/// Whether a refusal passes by itself: a new shell reads its files, or a person was lent the turn.
fn is_passing(refused: &Trouble, session: &SessionView) -> bool {
    let detail = |name: &str| refused.details.as_ref().and_then(|details| details.get(name));
    match refused.code.as_str() {
        "shell_busy" => {
            let state = detail("state").and_then(|state| state["state"].as_str()).unwrap_or_default();
            detail("run").is_none_or(|run| run.is_null())
                && !matches!(state, "waiting" | "full_screen" | "stopped" | "frozen" | "ended")
                && now_ms().saturating_sub(session.created_ms) < NEW_MS
        }
        "turn_held" => session.turn.holder.as_ref().is_some_and(|holder| holder.how == "lent"),
        _ => false,
    }
}

pub fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A run's id, drawn at random.
fn fresh_run() -> Result<RunId, Trouble> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| Trouble::new("internal", format!("cannot get random bytes: {error}")))?;
    Ok(RunId::from_random_bits(u128::from_le_bytes(bits)))
}

/// Waits for a run's end, or until it asks for input, or until a moment; with what the session does, where it is on. A question
/// that the caller was `told` of is none any more, but for a password.
pub async fn go_on<H: Host>(
    desk: &Desk<H>,
    answer: RunAnswer,
    until: Instant,
    told: Option<&StateView>,
) -> Result<(RunAnswer, Option<StateView>), Trouble> {
    let (run, session) = (answer.run.id, answer.run.session);
    let mut answer = answer;
    if answer.run.state.is_over() {
        return Ok((answer, None));
    }
    let input = asked(desk, (run, session), until, told);
    tokio::pin!(input);
    while left_ms(until) > 0 {
        let more = desk.ask::<op::RunGet>(RunParams { run: run.into(), wait_ms: desk.ask_ms(until) });
        tokio::select! {
            more = more => {
                answer = more?;
                if answer.run.state.is_over() {
                    return Ok((answer, None));
                }
                desk.tell(|| progress(&answer)).await;
            }
            () = &mut input => {
                // It may have ended by itself this moment.
                answer = desk.ask::<op::RunGet>(RunParams { run: run.into(), wait_ms: 0 }).await?;
                break;
            }
        }
    }
    if answer.run.state.is_over() {
        return Ok((answer, None));
    }
    let state = desk.ask::<op::State>(SessionParams { session: session.to_string() }).await.ok();
    Ok((answer, state))
}

/// Comes back when a run asks for input; otherwise never.
async fn asked<H: Host>(desk: &Desk<H>, (run, session): (RunId, SessionId), until: Instant, told: Option<&StateView>) {
    while left_ms(until) > 0 {
        let timeout_ms = Some(left_ms(until).min(ASK_MS));
        let params = WaitParams { session: session.to_string(), timeout_ms, until: Until::Waiting };
        let Ok(answer) = desk.ask::<op::Wait>(params).await else { break };
        match (answer.state, answer.exit) {
            (Some(state), _) => {
                let printed = desk.ask::<op::RunGet>(RunParams { run: run.into(), wait_ms: 0 }).await;
                if printed.is_ok_and(|answer| asks(&state, told, &answer.output)) {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            (None, Some(_)) => break,
            (None, None) => {}
        }
    }
    std::future::pending().await
}

/// Whether somebody should answer now: a password, or an unfinished line that is new to who asks. Who waits without one may as well
/// wait for something else, as a server does that also takes keys, or `ssh`.
fn asks(state: &StateView, told: Option<&StateView>, printed: &str) -> bool {
    match &state.now {
        Now::Waiting { kind: Kind::Password, .. } => true,
        Now::Waiting { .. } => {
            let unfinished = !printed.is_empty() && !printed.ends_with('\n');
            unfinished && told.is_none_or(|told| told.now != state.now)
        }
        _ => false,
    }
}

fn progress(answer: &RunAnswer) -> String {
    let last = answer.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last: String = last.chars().take(120).collect();
    format!("{}, {} bytes of output: {last}", answer.run.state.word(), answer.run.to.saturating_sub(answer.run.from))
}

/// A run as it is answered.
pub async fn shown<H: Host>(
    desk: &Desk<H>,
    answer: RunAnswer,
    state: Option<&StateView>,
    max: Option<u32>,
) -> Result<RunOut, Trouble> {
    let max = excerpt::bounded(max);
    let (mut text, omitted, lossy) = output(desk, &answer, max).await?;
    let run = answer.run;
    if state.is_some_and(|state| state.now == Now::FullScreen) {
        text = screen(desk, run.session).await.unwrap_or(text);
    }
    Ok(RunOut {
        run: run.id.to_string(),
        key: run.key,
        session: run.name.to_string(),
        state: run.state.word().into(),
        exit_code: run.exit_code,
        end: run.end,
        duration_ms: run.duration_ms,
        output: excerpt::with_short_lines(text),
        from: run.from,
        to: run.to,
        omitted,
        lossy,
        cwd: run.cwd,
        outcome: run.outcome,
        existing: answer.existing,
        restarted: false,
        doing: state.filter(|_| matches!(run.state, RunState::Starting | RunState::Running)).map(Doing::from),
        notes: Vec::new(),
    }
    .noted())
}

/// What a session's terminal shows, as text.
pub async fn screen<H: Host>(desk: &Desk<H>, session: SessionId) -> Option<String> {
    let params = ScreenParams { session: session.to_string(), ansi: false, history: 0 };
    let answer = desk.ask::<op::Screen>(params).await.ok()?;
    let rows: Vec<&str> = answer.rows.iter().map(|row| row.trim_end()).collect();
    Some(rows.join("\n").trim_end().to_owned() + "\n")
}

/// A run's output within a bound: what the host gave where that fits, else beginning and end anew.
async fn output<H: Host>(
    desk: &Desk<H>,
    answer: &RunAnswer,
    max: u32,
) -> Result<(String, Option<Span>, bool), Trouble> {
    let given = || {
        let lossy = answer.output.contains('\u{fffd}');
        (answer.output.clone(), answer.omitted.map(Span::from), lossy)
    };
    if !answer.truncated && answer.output.len() <= max as usize {
        return Ok(given());
    }
    let (head, tail) = excerpt::parts(Span { from: answer.run.from, to: answer.run.to }, max);
    let first = match piece(desk, answer.run.id, head).await {
        Ok(first) => first,
        // Only its key knows it still.
        Err(gone) if gone.code == "no_such_run" => return Ok(given()),
        Err(error) => return Err(error),
    };
    let cols = desk.find(&answer.run.session.to_string()).await.map_or(0, |view| view.size.cols());
    let (mut text, mut lossy) = excerpt::text(&first.bytes, cols);
    let mut omitted = first.gap;
    if let Some(tail) = tail {
        let last = piece(desk, answer.run.id, tail).await?;
        let left_out = Span { from: omitted.map_or(head.to, |gap| gap.from), to: last.from };
        let (rest, lost) = excerpt::text(&last.bytes, cols);
        text.push_str(&excerpt::omission(left_out));
        text.push_str(&rest);
        lossy |= lost;
        omitted = Some(left_out);
    }
    Ok((text, omitted, lossy))
}

struct Piece {
    bytes: Vec<u8>,
    from: u64,
    gap: Option<Span>,
}

async fn piece<H: Host>(desk: &Desk<H>, run: RunId, span: Span) -> Result<Piece, Trouble> {
    let max = u32::try_from(span.to - span.from).unwrap_or(u32::MAX);
    let params = RunOutputParams { run: run.into(), from: Some(span.from), max: Some(max), wait_ms: 0 };
    let (answer, bytes) = desk.ask_with_bytes::<op::RunOutput>(params, Vec::new()).await?;
    Ok(Piece { bytes, from: answer.from, gap: answer.gap.map(Span::from) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_asks_once_a_password_always_and_silence_never() {
        let state = |kind, prompt: &str| StateView {
            session: SessionId::from_random_bits(1),
            name: "work".parse().unwrap(),
            now: Now::Waiting { kind, prompt: prompt.into() },
            pid: None,
            since_ms: 1,
            at: 1,
        };
        let (sure, other) = (state(Kind::Line, "Sure?"), state(Kind::Line, "Really?"));
        let printed = "building\nSure? ";
        assert!(asks(&sure, None, printed) && asks(&other, Some(&sure), printed));
        assert!(!asks(&sure, Some(&sure), printed));
        let password = state(Kind::Password, "");
        assert!(asks(&password, Some(&password), ""));
        assert!(!asks(&sure, None, "") && !asks(&sure, None, "ready\n"));
    }
}
