//! `wait_for`: for the end of a run, or for something else in a session.

use super::run::{RunOut, YIELD_MS_MAX, go_on, shown};
use super::views::Doing;
use super::write::read;
use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::{Desk, in_ms, left_ms};
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_screen::Window;
use holdfast_types::{Exit, Offset};
use holdfast_wire::attention;
use holdfast_wire::gate::{ApprovalId, ApprovalParams, ApprovalState};
use holdfast_wire::operations::op;
use holdfast_wire::params::{SessionParams, SessionView, WaitParams};
use holdfast_wire::runs::{RunAnswer, RunParams};
use regex::bytes::{Regex, RegexBuilder};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How long is waited unless said otherwise: well within what clients allow a call.
const TIMEOUT_MS: u64 = 30_000;
/// Longest pattern, and largest program it may become. A search takes time with both program and text: the worst of this size
/// takes two seconds for a window of text, a usual one a millisecond.
const PATTERN_BYTES_MAX: usize = 4096;
const PROGRAM_BYTES_MAX: usize = 256 * 1024;
/// Bytes searched at once.
const READ_BYTES: u32 = 32 * 1024;
/// How long one search may take before it is refused. It cannot be stopped, but nobody waits for it any longer.
const SEARCH_MAX: Duration = Duration::from_secs(1);
/// Searches at once in this process, which may be the host.
static SEARCHES: Semaphore = Semaphore::const_new(2);

/// For what to wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitIn {
    /// A run's handle or key: waits for its end, or until it asks for input.
    #[serde(default)]
    run: Option<String>,
    /// Or an approval's id: waits for the answer.
    #[serde(default)]
    approval: Option<String>,
    /// Or name or id of a session, with `until`. Omitted, without a run: your own.
    #[serde(default)]
    session: Option<String>,
    /// What to wait for: `exit` (its command has ended), `idle` (its shell is at the prompt), `waiting` (a program waits for input), `port:N` (a process in it listens there), `text:REGEX` (in new output), `quiet:MS` (no output for that long). Default `idle`.
    #[serde(default)]
    until: Option<String>,
    /// Give up after this many milliseconds (default 30000). This stops nothing.
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// With `text:REGEX`: search from this offset instead of only new output.
    #[serde(default)]
    from: Option<Offset>,
    /// With a run: maximum bytes of output in the answer (default 8192, at most 65536).
    #[serde(default)]
    max_output_bytes: Option<u32>,
}

/// What waiting gave.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WaitOut {
    /// The session.
    session: String,
    /// `came`: it happened. `ended`: the session ended first. `timeout`: not yet; wait again.
    outcome: String,
    /// The run that was waited for, as `run_command` answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<JsonObject>")]
    run: Option<RunOut>,
    /// The approval's state, and what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    /// The state that came.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<Doing>,
    /// Who listens at the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    listener: Option<ListenerOut>,
    /// The text that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<FoundOut>,
    /// The status of the session's command, where that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

/// Who listens.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListenerOut {
    /// Its process.
    pid: u32,
    /// Where.
    address: String,
}

/// A text that fits a pattern.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundOut {
    /// The text.
    text: String,
    /// Offset of its first byte.
    offset: Offset,
}

impl Shown for WaitOut {
    fn text(&self) -> String {
        if let Some(run) = &self.run {
            return run.text();
        }
        if let Some(state) = &self.approval {
            return state.clone();
        }
        match (self.outcome.as_str(), &self.doing, &self.listener, &self.found) {
            ("came", Some(doing), _, _) => format!("{} is {}", self.session, doing.line()),
            ("came", _, Some(listener), _) => format!("process {} listens on {}", listener.pid, listener.address),
            ("came", _, _, Some(found)) => format!("at offset {}: {}", found.offset, found.text),
            ("came", ..) if self.exit_code.is_none() => format!("{} is quiet", self.session),
            ("timeout", ..) => {
                format!("not yet; {} keeps running: wait again, or look with `session_state`", self.session)
            }
            _ => format!("{} has ended with {}", self.session, self.exit_code.unwrap_or(1)),
        }
    }
}

/// The tool.
pub struct Wait;

impl Operate for Wait {
    const NAME: &'static str = "wait_for";
    const TITLE: &'static str = "Wait";
    const DESCRIPTION: &'static str = "Waits for a run's end by its handle or key, an approval, or an event in a session: \
        prompt, request for input, listening port, text in new output, silence, end. A timeout stops nothing: wait \
        again. Use this instead of sleeping and polling.";
    const HINTS: Hints = LOOKS;
    type In = WaitIn;
    type Out = WaitOut;

    async fn call<H: Host>(desk: &Desk<H>, input: WaitIn) -> Result<WaitOut, Trouble> {
        let until = in_ms(input.timeout_ms.unwrap_or(TIMEOUT_MS).min(YIELD_MS_MAX));
        if let Some(approval) = &input.approval {
            if input.session.is_some() || input.until.is_some() || input.run.is_some() {
                return Err(Trouble::bad("with `approval`, leave out `run`, `session` and `until`"));
            }
            return for_approval(desk, approval, until, input.max_output_bytes).await;
        }
        if let Some(run) = &input.run {
            if input.session.is_some() || input.until.is_some() {
                return Err(Trouble::bad("with `run`, leave out `session` and `until`"));
            }
            return for_run(desk, run, until, input.max_output_bytes).await;
        }
        let what: Until = input.until.as_deref().unwrap_or("idle").parse().map_err(Trouble::bad)?;
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let out = match what {
            Until::Host(what) => at_host(desk, &session, what, until).await?,
            Until::Text(pattern) => for_text(desk, &session, &pattern, input.from, until).await?,
            Until::Quiet(ms) => for_quiet(desk, &session, ms, until).await?,
        };
        Ok(WaitOut { session: session.name.to_string(), ..out })
    }
}

/// What can be waited for.
#[derive(Debug)]
enum Until {
    /// The host sees it.
    Host(attention::Until),
    /// A text in the output.
    Text(Regex),
    /// No output for so many milliseconds.
    Quiet(u64),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        match text.split_once(':') {
            None if text == "exit" => Ok(Until::Host(attention::Until::Exit)),
            None if text == "idle" || text == "prompt" => Ok(Until::Host(attention::Until::Idle)),
            None if text == "waiting" || text == "input" => Ok(Until::Host(attention::Until::Waiting)),
            Some(("port", port)) => match port.parse() {
                Ok(0) | Err(_) => Err("expected a port from 1 to 65535, for example port:8080".into()),
                Ok(port) => Ok(Until::Host(attention::Until::Port(port))),
            },
            Some(("text", pattern)) if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX => {
                Err(format!("a pattern must have 1 to {PATTERN_BYTES_MAX} bytes"))
            }
            Some(("text", pattern)) => RegexBuilder::new(pattern)
                .size_limit(PROGRAM_BYTES_MAX)
                .multi_line(true)
                .build()
                .map(Until::Text)
                .map_err(|error| error.to_string()),
            Some(("quiet", ms)) => {
                ms.parse().map(Until::Quiet).map_err(|_| "expected milliseconds, for example quiet:2000".into())
            }
            Some(_) | None => Err("`until` must be exit, idle, waiting, port:N, text:REGEX or quiet:MS".into()),
        }
    }
}

/// Waits for a person's answer, and where the act is a run, for its end as long as there is time.
async fn for_approval<H: Host>(
    desk: &Desk<H>,
    approval: &str,
    until: Instant,
    max: Option<u32>,
) -> Result<WaitOut, Trouble> {
    let approval: ApprovalId = approval.parse().map_err(|error| Trouble::bad(format!("{error}")))?;
    let mut view = desk.ask::<op::ApprovalGet>(ApprovalParams { approval, wait_ms: 0 }).await?;
    while !view.state.is_over() && left_ms(until) > 0 {
        view = desk.ask::<op::ApprovalGet>(ApprovalParams { approval, wait_ms: desk.ask_ms(until) }).await?;
        desk.tell(|| "waiting for a person's approval".into()).await;
    }
    let out = match (view.state, view.run) {
        (ApprovalState::Done, Some(run)) => for_run(desk, &run.to_string(), until, max).await?,
        (state, _) => WaitOut {
            session: view.name.as_ref().map(ToString::to_string).unwrap_or_default(),
            outcome: if state.is_over() { "came" } else { "timeout" }.into(),
            ..WaitOut::default()
        },
    };
    let word = view.state.word();
    let approval = view.error.or(view.reason).map_or_else(|| word.to_owned(), |said| format!("{word}: {said}"));
    Ok(WaitOut { approval: Some(approval), ..out })
}

async fn for_run<H: Host>(desk: &Desk<H>, run: &str, until: Instant, max: Option<u32>) -> Result<WaitOut, Trouble> {
    let answer = desk.ask::<op::RunGet>(RunParams { run: run.to_owned().into(), wait_ms: 0 }).await?;
    // What is asked already the caller knows; it waits for what comes after.
    let told = match answer.run.state.is_over() {
        true => None,
        false => desk.ask::<op::State>(SessionParams { session: answer.run.session.to_string() }).await.ok(),
    };
    let (answer, state) = go_on(desk, answer, until, told.as_ref()).await?;
    let outcome = if answer.run.state.is_over() { "came" } else { "timeout" };
    let run = shown(desk, RunAnswer { existing: false, ..answer }, state.as_ref(), max).await?;
    Ok(WaitOut { session: run.session.clone(), outcome: outcome.into(), run: Some(run), ..WaitOut::default() })
}

fn ended(exit: Option<Exit>) -> WaitOut {
    WaitOut { outcome: "ended".into(), exit_code: Some(exit.unwrap_or(Exit::Lost).as_status()), ..WaitOut::default() }
}

fn late() -> WaitOut {
    WaitOut { outcome: "timeout".into(), ..WaitOut::default() }
}

fn came() -> WaitOut {
    WaitOut { outcome: "came".into(), ..WaitOut::default() }
}

async fn at_host<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    what: attention::Until,
    until: Instant,
) -> Result<WaitOut, Trouble> {
    loop {
        let timeout_ms = Some(desk.ask_ms(until));
        let params = WaitParams { session: session.id.to_string(), timeout_ms, until: what };
        let answer = desk.ask::<op::Wait>(params).await?;
        if let Some(state) = answer.state {
            return Ok(WaitOut { doing: Some(Doing::from(&state)), ..came() });
        }
        if let Some(listener) = answer.listener {
            let listener = ListenerOut { pid: listener.pid, address: listener.address.to_string() };
            return Ok(WaitOut { listener: Some(listener), ..came() });
        }
        if let Some(exit) = answer.exit {
            let exit_code = Some(exit.as_status());
            let is_it = what == attention::Until::Exit;
            return Ok(if is_it { WaitOut { exit_code, ..came() } } else { ended(Some(exit)) });
        }
        if left_ms(until) == 0 {
            return Ok(late());
        }
        desk.tell(|| "not yet".into()).await;
    }
}

async fn for_text<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    pattern: &Regex,
    from: Option<Offset>,
    until: Instant,
) -> Result<WaitOut, Trouble> {
    let mut at = from.unwrap_or(session.head);
    let mut window = Window::default();
    loop {
        let (answer, bytes) = read(desk, session, at, READ_BYTES, desk.ask_ms(until)).await?;
        if answer.gap.is_some() {
            // A text with a hole in it was never there.
            window = Window::default();
        }
        window.feed(answer.from, &bytes);
        let (back, found) = search(window, pattern, until).await?;
        window = back;
        if found.is_some() {
            return Ok(WaitOut { found, ..came() });
        }
        window.forget();
        at = answer.to;
        if answer.end {
            return Ok(ended(desk.find(&session.id.to_string()).await?.exit));
        }
        if left_ms(until) == 0 {
            return Ok(late());
        }
        desk.tell(|| format!("searched up to offset {at}")).await;
    }
}

/// Searches what is new, on another thread: this one may be everybody's.
async fn search(mut window: Window, pattern: &Regex, until: Instant) -> Result<(Window, Option<FoundOut>), Trouble> {
    let place = match tokio::time::timeout_at(until.into(), SEARCHES.acquire()).await {
        Ok(place) => place.map_err(|_| failed())?,
        // Nothing was searched yet: the next wait does.
        Err(_) => return Ok((window, None)),
    };
    let pattern = pattern.clone();
    let searching = tokio::task::spawn_blocking(move || {
        holdfast_pause::point("search");
        let found = window.news().and_then(|text| pattern.find(text)).map(|found| {
            let text: String = String::from_utf8_lossy(found.as_bytes()).chars().take(PATTERN_BYTES_MAX).collect();
            (found.start(), text)
        });
        drop(place);
        let found = found.map(|(start, text)| FoundOut { text, offset: window.offset(start) });
        (window, found)
    });
    match tokio::time::timeout(SEARCH_MAX, searching).await {
        Ok(Ok(searched)) => Ok(searched),
        Ok(Err(_)) => Err(failed()),
        Err(_) => Err(Trouble::bad(format!(
            "this pattern takes longer than {} s to search: make it simpler, without large or nested repetitions",
            SEARCH_MAX.as_secs()
        ))),
    }
}

fn failed() -> Trouble {
    Trouble::new("internal", "the search failed")
}

async fn for_quiet<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    ms: u64,
    until: Instant,
) -> Result<WaitOut, Trouble> {
    let (mut head, mut since) = (session.head, Instant::now());
    loop {
        let enough = since + Duration::from_millis(ms);
        // What was written does not matter, only that it was.
        let (answer, _) = read(desk, session, head, 1, desk.ask_ms(enough.min(until)).max(1)).await?;
        if answer.head > head {
            (head, since) = (answer.head, Instant::now());
        } else if answer.end {
            return Ok(ended(desk.find(&session.id.to_string()).await?.exit));
        } else if Instant::now() >= enough {
            return Ok(came());
        }
        if left_ms(until) == 0 {
            return Ok(late());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_waited_for_is_read_and_the_rest_refused() {
        for text in ["exit", "idle", "prompt", "waiting", "input", "port:80", "text:^ok", "quiet:100"] {
            assert!(text.parse::<Until>().is_ok(), "{text}");
        }
        let huge = format!("text:{}", "a{1000}".repeat(500));
        for text in ["", "done", "port:0", "port:x", "text:", "text:(", "quiet:soon", &huge] {
            assert!(text.parse::<Until>().is_err(), "{text}");
        }
    }
}
