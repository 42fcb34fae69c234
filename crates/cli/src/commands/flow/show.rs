//! How flows are shown: a table, a timeline, and the lines of a history.

use super::ask;
use crate::args::FlowHistoryArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{columns, cut, now_ms, print, print_json, span, table, visible};
use holdfast_flow::{Command, Event, Outcome, Recorded, State, Waits, show_ms, text_of};
use holdfast_flows::protocol::{FlowAnswer, FlowView, Request};
use serde_json::Value;
use std::collections::BTreeMap;

/// Columns of a step's value.
const VALUE_COLUMNS: usize = 100;
/// Columns of the bars in a timeline.
const BAR_COLUMNS: usize = 24;

/// `holdfast flow ls`.
pub fn list(here: &Here, all: bool) -> Result<u8, Failure> {
    let flows: Vec<FlowView> = ask(here, &Request::List { all, after: 0, wait_ms: 0 })?;
    if here.json {
        print_json(&flows)?;
        return Ok(0);
    }
    let head = ["FLOW", "STATUS", "AGE", "BY"].map(str::to_owned).to_vec();
    let row = |flow: &FlowView| {
        vec![flow.id.clone(), flow.status.clone(), span(now_ms().saturating_sub(flow.started_ms)), flow.by.clone()]
    };
    let rows: Vec<_> = std::iter::once(head).chain(flows.iter().map(row)).collect();
    let none = if all { "no flows" } else { "no open flows" };
    let lines = if flows.is_empty() { vec![none.to_owned()] } else { table(&rows, columns()) };
    print(lines.join("\n") + "\n")?;
    Ok(0)
}

fn get(here: &Here, flow: &str, generation: Option<u32>) -> Result<FlowAnswer, Failure> {
    ask(here, &Request::Get { flow: flow.to_owned(), after: 0, wait_ms: 0, generation })
}

/// `holdfast flow history`.
pub fn history(here: &Here, args: &FlowHistoryArgs) -> Result<u8, Failure> {
    let answer = get(here, &args.of.flow, args.generation)?;
    if here.json {
        for recorded in &answer.history {
            print(crate::show::json_line(recorded)? + "\n")?;
        }
        return Ok(0);
    }
    print(Shown::default().new_lines(&answer.history))?;
    Ok(0)
}

/// Which lines of a history were shown.
#[derive(Debug, Default)]
pub struct Shown {
    events: usize,
    asked: BTreeMap<u32, Command>,
}

impl Shown {
    /// The lines of what is new in a history.
    pub fn new_lines(&mut self, history: &[Recorded]) -> String {
        let new = history.get(self.events..).unwrap_or_default();
        self.events = history.len();
        let mut text = String::new();
        for Recorded { event, .. } in new {
            match event {
                Event::Asked { n, command } => {
                    self.asked.insert(*n, command.clone());
                }
                Event::Done { n, ok, value } => {
                    if let Some(command) = self.asked.get(n) {
                        text.push_str(&format!("{}. {}\n", n + 1, done(command, *ok, value)));
                    }
                }
                Event::Tried { n, attempt, outcome, .. } => {
                    let name = self.asked.get(n).map_or("", Command::name);
                    let again =
                        format!("   {} attempt {} ✗ {}; tried again\n", visible(name), attempt + 1, outcome.words());
                    text.push_str(&again);
                }
                Event::Stuck { n, outcome, .. } => {
                    let name = self.asked.get(n).map_or("", Command::name);
                    text.push_str(&format!("   {} is stuck: {}\n", visible(name), outcome.words()));
                }
                Event::Blocked { why } => text.push_str(&format!("   blocked: {}\n", visible(why))),
                Event::Unblocked { by } => text.push_str(&format!("   unblocked by {by}\n")),
                Event::Ending { ok: false, value, .. } => {
                    text.push_str(&format!("   {}\n", visible(&text_of(value))));
                }
                Event::Rewound { to, by, .. } => text.push_str(&format!("   back to step {} by {by}\n", to + 1)),
                Event::Continued { .. } => text.push_str("   goes on in a new history\n"),
                Event::Started { .. }
                | Event::Coded { .. }
                | Event::Signal { .. }
                | Event::Ending { .. }
                | Event::Ended { .. } => {}
            }
        }
        text
    }
}

/// A step that is over, in a line.
fn done(command: &Command, ok: bool, value: &Value) -> String {
    let name = visible(command.name());
    let said = cut(&visible(&text_of(value)), VALUE_COLUMNS);
    match (command, ok) {
        (Command::Sleep { ms, .. }, true) => format!("{name} → {} elapsed", show_ms(*ms)),
        (Command::Until { .. }, true) => format!("{name} → the moment came"),
        (Command::Ask { text, .. }, true) => {
            let by = value["by"].as_str().unwrap_or("somebody");
            format!("{name} ({}) → {said}, by {by}", cut(&visible(text), VALUE_COLUMNS))
        }
        (Command::Ask { .. } | Command::Signal { .. }, false) => format!("{name} ✗ nobody answered in time"),
        (Command::Wait { session, .. }, true) => format!("{name} → it came in {}", visible(session)),
        (Command::Wait { .. }, false) => {
            let why = value["why"].as_str().unwrap_or("it did not come in time");
            format!("{name} ✗ {}", visible(why))
        }
        (Command::Child { .. }, false) => {
            let why = value["why"].as_str().unwrap_or("it failed");
            format!("{name} ✗ {}", cut(&visible(why), VALUE_COLUMNS))
        }
        (Command::Run(_), false) => match serde_json::from_value::<Outcome>(value.clone()) {
            Ok(outcome) => format!("{name} ✗ {}", visible(&outcome.words())),
            Err(_) => format!("{name} ✗ {said}"),
        },
        (_, true) => format!("{name} → {said}"),
        (_, false) => format!("{name} ✗ {said}"),
    }
}

/// `holdfast flow show`.
pub fn show(here: &Here, flow: &str) -> Result<u8, Failure> {
    let answer = get(here, flow, None)?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    print(drawn(&answer, now_ms()))?;
    Ok(0)
}

/// One step on the timeline.
struct Bar<'a> {
    n: u32,
    command: &'a Command,
    from_ms: u64,
    to_ms: Option<u64>,
    attempts: u32,
    line: Option<String>,
    session: Option<String>,
}

fn drawn(answer: &FlowAnswer, now_ms: u64) -> String {
    let FlowAnswer { flow, history, .. } = answer;
    let mut text = format!("{}  {}\n", flow.id, flow.status);
    let ended = flow.ended_ms.unwrap_or(now_ms);
    text.push_str(&format!(
        "  by {}, {} ago, {} events\n",
        flow.by,
        span(now_ms.saturating_sub(flow.started_ms)),
        flow.events
    ));
    if let Some(parent) = &flow.parent {
        text.push_str(&format!("  started by a step of {parent}\n"));
    }
    if flow.generation > 1 {
        let older = flow.generation - 1;
        text.push_str(&format!(
            "  history {}; the one before: holdfast flow history {} --generation {older}\n",
            flow.generation, flow.id
        ));
    }
    match &flow.state {
        State::Blocked { why } => {
            text.push_str(&format!(
                "  blocked: {}\n  once that is mended: holdfast flow retry {}\n",
                visible(why),
                flow.id
            ));
        }
        State::Completed { value } | State::Failed { value } | State::Cancelled { value } => {
            text.push_str(&format!("  result: {}\n", cut(&visible(&text_of(value)), VALUE_COLUMNS)));
        }
        State::Deciding | State::Waiting | State::Undoing | State::Continued => {}
    }
    let bars = bars(history);
    let whole = ended.saturating_sub(flow.started_ms).max(1);
    let width = bars.iter().map(|bar| bar.command.name().chars().count()).max().unwrap_or(0).min(32);
    for bar in &bars {
        let to = bar.to_ms.unwrap_or(ended);
        let place =
            |at: u64| (at.saturating_sub(flow.started_ms) as usize * BAR_COLUMNS / whole as usize).min(BAR_COLUMNS);
        let (first, last) = (place(bar.from_ms).min(BAR_COLUMNS - 1), place(to));
        let drawn: String = (0..BAR_COLUMNS)
            .map(|column| match column {
                column if column < first || column > first.max(last.saturating_sub(1)) => '·',
                _ if bar.to_ms.is_none() => '▒',
                _ => '█',
            })
            .collect();
        let took = span(to.saturating_sub(bar.from_ms));
        let name = visible(bar.command.name());
        let attempts = if bar.attempts > 1 { format!(" ({} attempts)", bar.attempts) } else { String::new() };
        let rest = match &bar.line {
            Some(line) => line
                .split_once(' ')
                .map_or(String::new(), |_| line[bar.command.name().len().min(line.len())..].trim().to_owned()),
            None if answer.children.iter().any(|child| child.n == bar.n) => String::new(),
            None => waiting(flow.waits_for.iter().find(|one| one.n == bar.n), now_ms, &flow.id),
        };
        text.push_str(&format!("  {:>3}. {name:<width$}  {drawn} {took:>4}  {rest}{attempts}", bar.n + 1));
        if let Some(child) = answer.children.iter().find(|child| child.n == bar.n) {
            text.push_str(&format!("  [{} {}]", child.id, child.status));
        }
        if let Some(session) = &bar.session {
            text.push_str(&format!("  [{}]", &session[..session.len().min(12)]));
        }
        text.push('\n');
    }
    text
}

fn bars(history: &[Recorded]) -> Vec<Bar<'_>> {
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for Recorded { at_ms, event } in history {
        match event {
            Event::Asked { n, command } => {
                let bar = Bar { n: *n, command, from_ms: *at_ms, to_ms: None, attempts: 1, line: None, session: None };
                bars.push(bar);
            }
            Event::Tried { n, .. } => bars.iter_mut().filter(|bar| bar.n == *n).for_each(|bar| bar.attempts += 1),
            Event::Done { n, ok, value } => {
                for bar in bars.iter_mut().filter(|bar| bar.n == *n) {
                    bar.to_ms = Some(*at_ms);
                    bar.line = Some(done(bar.command, *ok, value));
                    bar.session = value["session"].as_str().map(str::to_owned);
                }
            }
            Event::Ending { .. } | Event::Ended { .. } => {
                let open = bars.iter_mut().filter(|bar| bar.to_ms.is_none());
                open.filter(|bar| !matches!(bar.command, Command::Run(_))).for_each(|bar| bar.to_ms = Some(*at_ms));
            }
            Event::Started { .. }
            | Event::Coded { .. }
            | Event::Stuck { .. }
            | Event::Signal { .. }
            | Event::Blocked { .. }
            | Event::Rewound { .. }
            | Event::Continued { .. }
            | Event::Unblocked { .. } => {}
        }
    }
    bars
}

/// What an open step waits for, and what a person can do about it.
fn waiting(waits: Option<&Waits>, now_ms: u64, flow: &str) -> String {
    let Some(waits) = waits else { return "stopped".into() };
    let left = waits.until_ms.map(|at| format!(", {} left", span(at.saturating_sub(now_ms)))).unwrap_or_default();
    if let Some(stuck) = &waits.stuck {
        return format!("{stuck}; decide: holdfast flow retry {flow} [--failed | --done TEXT]");
    }
    if let Some(why) = &waits.held_up {
        return format!("waits: {}", visible(why));
    }
    match (waits.kind.as_str(), &waits.question) {
        ("ask", Some(question)) => {
            let options = if waits.options.is_empty() { "TEXT".to_owned() } else { waits.options.join("|") };
            format!("asks: {}  answer: holdfast flow answer {flow} {options}{left}", visible(question))
        }
        ("wait", _) => format!("waits in {}{left}", waits.session.as_deref().unwrap_or("a session")),
        ("signal", _) => format!("waits for the signal{left}"),
        ("run", _) => match &waits.session {
            Some(session) => format!("runs in {session}{left}"),
            None => format!("starts{left}"),
        },
        _ => format!("waits{left}"),
    }
}
