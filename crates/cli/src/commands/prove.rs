//! `holdfast prove`: the experiments, their progress, and what they found.

use crate::args::ProveArgs;
use crate::failure::{Failure, STATUS_USAGE};
use crate::show::{print, print_json, table, visible};
use holdfast_prove::{Finding, Listed, Outcome, Plan, Report};
use std::io::{IsTerminal, Write};

/// `holdfast prove`.
pub fn prove(args: &ProveArgs, json: bool) -> Result<u8, Failure> {
    if args.list {
        return list(json);
    }
    let program = match &args.program {
        Some(program) => program.clone(),
        None => {
            std::env::current_exe().map_err(|error| Failure::new("io", format!("cannot find this program: {error}")))?
        }
    };
    // Where the page goes is known to work before minutes are spent on it.
    let mut page = args
        .report
        .as_ref()
        .map(|path| std::fs::File::create(path).map_err(|error| unwritable(path, &error)))
        .transpose()?;
    let plan = Plan { program, only: args.only.clone() };
    let live = std::io::stderr().is_terminal() && !json;
    let mut begins = |n: usize, of: usize, experiment: Listed| {
        if live {
            eprint!("\r\x1b[K[{n}/{of}] {}", experiment.claim);
            let _ = std::io::stderr().flush();
        }
    };
    let report = holdfast_prove::run(&plan, &mut begins).map_err(|error| {
        Failure::new("usage", error.to_string()).hint("list them: holdfast prove --list").status(STATUS_USAGE)
    })?;
    if live {
        eprint!("\r\x1b[K");
    }
    if let (Some(page), Some(path)) = (&mut page, &args.report) {
        page.write_all(report.html().as_bytes()).map_err(|error| unwritable(path, &error))?;
    }
    if json {
        print_json(&report)?;
    } else {
        print(text(&report))?;
    }
    Ok(u8::from(!report.holds()))
}

fn list(json: bool) -> Result<u8, Failure> {
    let all = holdfast_prove::list();
    if json {
        let all: Vec<_> = all.iter().map(|one| serde_json::json!({ "id": one.id, "claim": one.claim })).collect();
        print_json(&all)?;
    } else {
        let rows: Vec<_> = all.iter().map(|one| vec![one.id.to_owned(), one.claim.to_owned()]).collect();
        print(table(&rows, None).into_iter().map(|line| line + "\n").collect::<String>())?;
    }
    Ok(0)
}

fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::new("io", format!("cannot write {}: {error}", path.display()))
}

/// Each claim with its outcome, what was seen, and the figures.
fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text += &one(finding);
    }
    text + &format!("{}: {}\n", report.program, report.summary())
}

fn one(finding: &Finding) -> String {
    let (word, why) = match &finding.outcome {
        Outcome::Held => ("held", ""),
        Outcome::Broken { why } => ("BROKEN", why.as_str()),
        Outcome::NotProvided { why } => ("not provided", why.as_str()),
    };
    let mut text = format!("{word:<13} {}  {} ({} ms)\n", finding.id, finding.claim, finding.took_ms);
    if !why.is_empty() {
        text += &format!("    {}\n", visible(why));
    }
    for step in &finding.steps {
        text += &format!("  {:>6} ms  {}\n", step.at_ms, visible(&step.saw));
    }
    for (name, value) in &finding.figures {
        text += &format!("             {}: {}\n", visible(name), visible(value));
    }
    text + "\n"
}
