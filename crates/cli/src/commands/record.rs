//! `holdfast record`: how an actor's runs under contracts came out.

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{columns, now_ms, print, print_json, span, table, visible};
use holdfast_wire::contracts::{Counts, RecordParams, RecordView};
use holdfast_wire::operations::op;

/// `holdfast record`.
pub fn record(here: &Here, args: &RecordArgs) -> Result<u8, Failure> {
    let params = RecordParams { handle: args.actor.clone(), action: args.action.clone() };
    let view = here.link()?.call::<op::ActorRecord>(&params)?;
    if here.json {
        print_json(&view)?;
    } else {
        print(text(&view))?;
    }
    Ok(0)
}

fn text(view: &RecordView) -> String {
    if view.counts.runs == 0 {
        return format!("{} has no runs under contracts\n", view.actor.handle);
    }
    let head = ["COMMAND", "RUNS", "VALID", "SUCCEEDED", "UNEXPECTED", "UNKNOWN"].map(str::to_owned).to_vec();
    let cells = |name: &str, counts: &Counts| {
        let Counts { runs, valid, succeeded, unexpected, unknown } = *counts;
        let numbers = [runs, valid, succeeded, unexpected, unknown].map(|number| number.to_string());
        std::iter::once(visible(name)).chain(numbers).collect::<Vec<_>>()
    };
    let mut rows = vec![head];
    rows.extend(view.actions.iter().map(|one| cells(&one.action, &one.counts)));
    if view.actions.len() > 1 {
        rows.push(cells("all", &view.counts));
    }
    let mut out: String = table(&rows, columns()).iter().map(|line| format!("{line}\n")).collect();
    for (action, last) in view.actions.iter().filter_map(|one| Some((&one.action, one.last_unexpected.as_ref()?))) {
        let ago = span(now_ms().saturating_sub(last.at_ms));
        out.push_str(&format!("{}: {} ({ago} ago, {})\n", visible(action), visible(&last.what), last.run));
    }
    out
}
