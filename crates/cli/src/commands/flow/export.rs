//! `holdfast flow export`: histories as JSON lines, the oldest first.

use super::ask;
use crate::args::FlowExportArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{json_line, print};
use holdfast_flows::archive::Line;
use holdfast_flows::protocol::{FlowAnswer, Listed, Request};
use std::collections::BTreeSet;

/// See the module. What is removed meanwhile is left out.
pub fn export(here: &Here, args: &FlowExportArgs) -> Result<u8, Failure> {
    let mut wanted: BTreeSet<&str> = args.flows.iter().map(String::as_str).collect();
    let is_wanted = |one: &Listed| args.flows.is_empty() || args.flows.contains(&one.flow);
    let mut after = 0;
    loop {
        let listed: Vec<Listed> = ask(here, &Request::Histories { after })?;
        let Some(last) = listed.last() else { break };
        after = last.number;
        for one in listed.iter().filter(|one| is_wanted(one)) {
            wanted.remove(one.flow.as_str());
            if one.ended || !args.ended {
                history(here, one)?;
            }
        }
    }
    match wanted.first() {
        None => Ok(0),
        Some(flow) => {
            Err(Failure::new("no_such_flow", format!("no flow {flow}")).hint("list them: holdfast flow ls --all"))
        }
    }
}

fn history(here: &Here, one: &Listed) -> Result<(), Failure> {
    let request = Request::Get { flow: one.flow.clone(), after: 0, wait_ms: 0, generation: one.generation };
    let answer: FlowAnswer = match ask(here, &request) {
        Err(failure) if failure.is("no_such_flow") => return Ok(()),
        other => other?,
    };
    let generation = answer.flow.generation;
    for (seq, recorded) in (0..).zip(&answer.history) {
        print(json_line(&Line { flow: &one.flow, generation, seq, recorded })? + "\n")?;
    }
    Ok(())
}
