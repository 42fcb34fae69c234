//! `holdfast trace`: everything that is known of a run; also as OpenTelemetry spans.

use crate::args::TraceArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, span, visible};
use holdfast_wire::contracts::{Attempt, Contract, Effects, Measure, TraceParams, TraceView};
use holdfast_wire::operations::op;
use serde_json::{Value, json};

/// Paths of one kind that are printed; `--json` has more.
const SHOWN_MAX: usize = 20;

/// `holdfast trace`.
pub fn trace(here: &Here, args: &TraceArgs) -> Result<u8, Failure> {
    let trace = here.link()?.call::<op::RunTrace>(&TraceParams { run: args.run.clone() })?;
    if args.otlp {
        let text = serde_json::to_string_pretty(&otlp(&trace)).unwrap_or_default() + "\n";
        match &args.output {
            Some(file) => std::fs::write(file, text)
                .map_err(|error| Failure::io(format!("cannot write {}", file.display()), error))?,
            None => print(text)?,
        }
    } else if here.json {
        print_json(&trace)?;
    } else {
        print(text(&trace))?;
    }
    Ok(0)
}

fn text(trace: &TraceView) -> String {
    let run = &trace.run;
    let exit = run.exit_code.map_or_else(String::new, |code| format!(" {code}"));
    let mut out = format!("{}  {}{exit}\n", run.id, run.state.word());
    let mut row = |name: &str, value: String| out.push_str(&format!("  {name:<10} {value}\n"));
    row("command", visible(&run.command));
    row("by", run.actor.handle.to_string());
    row("session", run.name.to_string());
    row("took", span(run.duration_ms));
    if let Some(decision) = &trace.decision {
        let rule = decision.rule.as_ref().map_or_else(String::new, |rule| format!(" by {rule}"));
        let approval = decision.approval.as_ref().map_or_else(String::new, |id| format!(", approved: {id}"));
        row("decision", format!("{}{rule}{approval} in {} µs", decision.outcome, decision.took_us));
    }
    let Some(contract) = &trace.contract else {
        row("contract", "none: its effects were not measured".into());
        return out;
    };
    if let Some(intent) = &contract.intent {
        row("intent", visible(intent));
    }
    for line in promises(contract) {
        row("promises", line);
    }
    if trace.attempts.len() > 1 || contract.retries > 0 {
        for (number, attempt) in (1..).zip(&trace.attempts) {
            row("attempt", format!("{number} of {}: {}", contract.retries + 1, attempted(attempt)));
        }
    }
    if let Some(effects) = &trace.effects {
        show_effects(effects, &mut row);
    }
    match &trace.outcome {
        None => row("outcome", "not known yet".into()),
        Some(outcome) => {
            let success = if outcome.success { "succeeded" } else { "failed" };
            let untold = match outcome.untold.as_slice() {
                [] => String::new(),
                kinds => format!(" (not measured completely: {})", kinds.join(", ")),
            };
            row("outcome", format!("{}, {success}{untold}", outcome.validity.word()));
            for one in &outcome.unexpected {
                row("beyond", format!("{} {}", one.kind, visible(&one.what)));
            }
        }
    }
    out
}

fn promises(contract: &Contract) -> Vec<String> {
    let expect = &contract.expect;
    let list = |all: Vec<String>| if all.is_empty() { "nothing".to_owned() } else { visible(&all.join(", ")) };
    let mut out = Vec::new();
    let shown = |codes: &[i32]| codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    out.push(format!("exit {}", if expect.exit.is_empty() { "0".to_owned() } else { shown(&expect.exit) }));
    out.extend(expect.may_change.as_ref().map(|all| format!("to change {}", list(all.clone()))));
    let ports = expect.ports.as_ref().map(|all| list(all.iter().map(ToString::to_string).collect()));
    out.extend(ports.map(|ports| format!("to listen on {ports}")));
    out.extend(expect.processes.map(|most| format!("to leave {most} processes")));
    out.extend(expect.network.as_ref().map(|all| format!("to connect to {}", list(all.clone()))));
    out
}

fn attempted(attempt: &Attempt) -> String {
    let how = match (&attempt.error, attempt.exit_code) {
        (Some(error), None) => visible(error),
        (_, Some(code)) => format!("exit {code}"),
        (None, None) => "no exit status".into(),
    };
    format!("{how}  {}", attempt.run)
}

fn show_effects(effects: &Effects, row: &mut impl FnMut(&str, String)) {
    let measured = |measure: &Measure| {
        let word = if measure.complete { "complete" } else { "incomplete" };
        let why = measure.why.as_ref().map_or_else(String::new, |why| format!(": {}", visible(why)));
        format!("{word}, by {}{why}", measure.by)
    };
    let files = &effects.files;
    row("files", format!("{} ({})", files.count, measured(&effects.files_measured)));
    for (what, paths) in [("created", &files.created), ("changed", &files.changed), ("deleted", &files.deleted)] {
        paths.iter().take(SHOWN_MAX).for_each(|path| row("", format!("{what} {}", visible(path))));
        if paths.len() > SHOWN_MAX {
            row("", format!("{what} {} more", paths.len() - SHOWN_MAX));
        }
    }
    for moved in files.moved.iter().take(SHOWN_MAX) {
        row("", format!("moved {} to {}", visible(&moved.from), visible(&moved.to)));
    }
    if files.passing > 0 {
        row("", format!("{} came and went", files.passing));
    }
    row("processes", format!("{} left ({})", effects.processes.len(), measured(&effects.processes_measured)));
    for left in &effects.processes {
        row("", format!("{} {}", left.pid, visible(&left.argv.join(" "))));
    }
    let ports = effects.ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    row("ports", format!("{} ({})", if ports.is_empty() { "none" } else { &ports }, measured(&effects.ports_measured)));
    let network = effects.connections.join(", ");
    let network = if network.is_empty() { "none".to_owned() } else { network };
    row("network", format!("{network} ({})", measured(&effects.network_measured)));
}

/// A run as OpenTelemetry spans: the run, and each of its attempts below it.
fn otlp(trace: &TraceView) -> Value {
    let run = &trace.run;
    let first = trace.attempts.first().map_or(run.id, |attempt| attempt.run);
    let id = hex(&first.to_string(), 32);
    let root = hex(&format!("{first} as a whole"), 16);
    let began = trace.attempts.first().map_or(run.started_ms, |attempt| attempt.started_ms);
    let mut attributes = vec![
        attribute("holdfast.run.id", json!({ "stringValue": run.id.to_string() })),
        attribute("holdfast.run.command", json!({ "stringValue": run.command })),
        attribute("holdfast.actor", json!({ "stringValue": run.actor.handle.to_string() })),
        attribute("holdfast.session.id", json!({ "stringValue": run.session.to_string() })),
        attribute("holdfast.run.state", json!({ "stringValue": run.state.word() })),
    ];
    attributes
        .extend(run.exit_code.map(|code| attribute("process.exit.code", json!({ "intValue": code.to_string() }))));
    if let Some(decision) = &trace.decision {
        attributes.push(attribute("holdfast.decision", json!({ "stringValue": decision.outcome })));
        let rule = decision.rule.as_ref();
        attributes.extend(rule.map(|rule| attribute("holdfast.decision.rule", json!({ "stringValue": rule }))));
    }
    if let Some(intent) = trace.contract.as_ref().and_then(|contract| contract.intent.as_ref()) {
        attributes.push(attribute("holdfast.intent", json!({ "stringValue": intent })));
    }
    let mut events = Vec::new();
    let ended = nanos(run.ended_ms.unwrap_or(began + run.duration_ms));
    if let Some(outcome) = &trace.outcome {
        attributes.push(attribute("holdfast.contract.validity", json!({ "stringValue": outcome.validity.word() })));
        attributes.push(attribute("holdfast.contract.success", json!({ "boolValue": outcome.success })));
        let count = json!({ "intValue": outcome.unexpected_count.to_string() });
        attributes.push(attribute("holdfast.contract.unexpected", count));
        events.extend(outcome.unexpected.iter().map(|one| {
            let what = [("kind", &one.kind), ("what", &one.what)];
            let what = what.map(|(name, value)| attribute(name, json!({ "stringValue": value })));
            json!({ "timeUnixNano": ended, "name": "holdfast.effect.unexpected", "attributes": what })
        }));
    }
    if let Some(effects) = &trace.effects {
        let complete = json!({ "boolValue": effects.files_measured.complete });
        attributes.push(attribute("holdfast.effects.files", json!({ "intValue": effects.files.count.to_string() })));
        attributes.push(attribute("holdfast.effects.files.complete", complete));
    }
    let is_good = trace.outcome.as_ref().map_or(run.exit_code == Some(0), |o| o.success && o.unexpected_count == 0);
    let mut spans = vec![json!({
        "traceId": id, "spanId": root, "name": "holdfast.run", "kind": 1,
        "startTimeUnixNano": nanos(began), "endTimeUnixNano": ended,
        "attributes": attributes, "events": events, "status": { "code": if is_good { 1 } else { 2 } },
    })];
    for (number, attempt) in (1..).zip(&trace.attempts) {
        let exit =
            attempt.exit_code.map(|code| attribute("process.exit.code", json!({ "intValue": code.to_string() })));
        let number = attribute("holdfast.attempt", json!({ "intValue": i32::to_string(&number) }));
        spans.push(json!({
            "traceId": id, "spanId": hex(&attempt.run.to_string(), 16), "parentSpanId": root, "name": "holdfast.attempt", "kind": 1,
            "startTimeUnixNano": nanos(attempt.started_ms),
            "endTimeUnixNano": nanos(attempt.ended_ms.unwrap_or(attempt.started_ms)),
            "attributes": std::iter::once(number).chain(exit).collect::<Vec<_>>(),
        }));
    }
    let resource = json!({ "attributes": [attribute("service.name", json!({ "stringValue": "holdfast" }))] });
    let scope = json!({ "name": "holdfast", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}

fn attribute(key: &str, value: Value) -> Value {
    json!({ "key": key, "value": value })
}

/// Nanoseconds since the epoch, as OTLP writes them.
fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}

/// An id of so many hexadecimal digits: the same for the same run, whoever asks.
fn hex(text: &str, digits: usize) -> String {
    let sums = [text.to_owned(), format!("{text} again")].map(|text| holdfast_store::checksum(text.as_bytes()));
    sums.map(|sum| format!("{sum:016x}")).concat()[..digits].to_owned()
}
