//! `holdfast approvals`: acts that wait for a human, and the human's answer.

use crate::args::{ApprovalArg, ApprovalWaitArgs, ApprovalsCommand, ApprovalsLsArgs};
use crate::failure::{Failure, STATUS_TIMEOUT};
use crate::here::{Here, Link};
use crate::show::{cut, now_ms, print, print_json, span, visible};
use crate::values::Seconds;
use holdfast_authority::Ask;
use holdfast_types::{shapers_text, terms_of};
use holdfast_wire::gate::{
    ApprovalAnswerParams, ApprovalId, ApprovalListParams, ApprovalParams, ApprovalState, ApprovalView, detail,
};
use holdfast_wire::operations::op;
use std::time::{Duration, Instant};

/// How long a wait stays at the host before it is asked for again.
const WAIT_MS: u64 = 20_000;
/// How long the host is asked to wait for a change of an act that was just approved: an act that waits again does not change.
const GLANCE_MS: u64 = 200;
/// Shortest beginning of an id that is looked for: less is a slip of the finger.
const ID_BEGINNING_MIN: usize = 4;
/// Columns of an id.
const ID_COLUMNS: usize = 30;
/// Columns of a command in a list.
const COMMAND_COLUMNS: usize = 100;
/// Paths that are shown of each kind.
const PATHS_SHOWN: usize = 20;

/// `holdfast approvals`.
pub fn approvals(here: &Here, command: &ApprovalsCommand) -> Result<u8, Failure> {
    match command {
        ApprovalsCommand::Ls(args) => list(here, args),
        ApprovalsCommand::Show(args) => show(here, args),
        ApprovalsCommand::Approve(args) => answer(here, &args.of, true, args.minutes, args.reason.clone()),
        ApprovalsCommand::Deny(args) => answer(here, &args.of, false, None, args.reason.clone()),
        ApprovalsCommand::Wait(args) => wait(here, args),
    }
}

fn list(here: &Here, args: &ApprovalsLsArgs) -> Result<u8, Failure> {
    let params = ApprovalListParams { session: args.session.clone(), all: args.all };
    let all = here.link()?.call::<op::ApprovalList>(&params)?;
    if here.json {
        print_json(&all)?;
        return Ok(0);
    }
    let head = format!("{:<ID_COLUMNS$}  {:<9} {:>4}  SESSION  COMMAND\n", "ID", "STATE", "AGE");
    let mut text = if all.is_empty() { "nothing waits for approval\n".to_owned() } else { head };
    for one in &all {
        let age = span(now_ms().saturating_sub(one.asked_ms));
        let name = one.name.as_ref().map_or_else(|| "(new)".to_owned(), ToString::to_string);
        let wants = cut(&wanted(one), COMMAND_COLUMNS);
        text.push_str(&format!("{}  {:<9} {age:>4}  {name}  {}: {wants}\n", one.id, one.state.word(), one.by.handle));
        text.push_str(&format!("  {}: {}\n", one.rule, visible(&one.why)));
    }
    print(text)?;
    Ok(0)
}

/// What an actor wants, in a line.
fn wanted(one: &ApprovalView) -> String {
    if one.command.is_empty() { one.act.clone() } else { visible(&one.command) }
}

fn show(here: &Here, args: &ApprovalArg) -> Result<u8, Failure> {
    let one = find(&mut here.link()?, &args.approval)?;
    if here.json {
        print_json(&one)?;
        return Ok(0);
    }
    print(described(&one))?;
    Ok(0)
}

fn described(one: &ApprovalView) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10} {value}\n"));
        }
    };
    row("approval", &one.id.to_string());
    row("state", one.state.word());
    row("actor", &one.by.to_string());
    row("session", &one.name.as_ref().map_or_else(|| "a new one".to_owned(), ToString::to_string));
    row("act", &one.act);
    row("command", &one.command.lines().map(visible).collect::<Vec<_>>().join("\n           "));
    row("directory", &visible(&one.cwd));
    row("rule", &format!("{}: {}", one.rule, visible(&one.why)));
    row("risks", &one.risks.join(", "));
    row("writes", &paths(&one.writes));
    row("deletes", &paths(&one.deletes));
    if !one.shapers.is_empty() {
        row("shaped by", &visible(&shapers_text(&one.shapers)));
        row("", "approving counts for all that others changed in this session until it was asked");
        row("", "see it: holdfast handover NAME");
    }
    if one.again {
        row("note", "it was approved before, and what it is about has changed since");
    }
    if one.state == ApprovalState::Open {
        row("expires", &format!("in {}", span(one.expires_at_ms.saturating_sub(now_ms()))));
    }
    if let Some(by) = &one.answered_by {
        row(
            "answered",
            &format!("by {by}{}", one.reason.as_ref().map_or_else(String::new, |r| format!(": {}", visible(r)))),
        );
    }
    row("run", &one.run.filter(|_| one.state == ApprovalState::Done).map_or_else(String::new, |run| run.to_string()));
    row("error", &one.error.clone().unwrap_or_default());
    if one.state == ApprovalState::Open {
        text.push_str(&format!(
            "\napprove it: holdfast approvals approve {0}\ndeny it:    holdfast approvals deny {0} --reason TEXT\n",
            one.id
        ));
    }
    text
}

fn paths(all: &[String]) -> String {
    let shown: Vec<String> = all.iter().take(PATHS_SHOWN).map(|path| visible(path)).collect();
    let more = all.len().saturating_sub(PATHS_SHOWN);
    let more = if more == 0 { String::new() } else { format!("\n           and {more} more") };
    format!("{}{more}", shown.join("\n           "))
}

fn answer(
    here: &Here,
    args: &ApprovalArg,
    approve: bool,
    minutes: Option<u32>,
    reason: Option<String>,
) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let one = find(&mut link, &args.approval)?;
    let params = |proof| ApprovalAnswerParams {
        approval: one.id,
        seen: one.hash,
        approve,
        reason: reason.clone(),
        minutes,
        proof,
    };
    let view = match one.session {
        Some(session) => {
            let session = link.get(&session.to_string())?;
            let said = detail(one.id, approve, minutes, one.hash, &one.command);
            let act = Ask::other(const { terms_of("approval.answer") }, said);
            link.act::<op::ApprovalAnswer>(&session, &act, params)?
        }
        None => link.call::<op::ApprovalAnswer>(&params(None))?,
    };
    if !approve {
        return told(here, &view);
    }
    told(here, &done(&mut link, view)?)
}

/// What became of an approved act, which is known in a moment. One that waits again may do so before it is asked about.
fn done(link: &mut Link, mut view: ApprovalView) -> Result<ApprovalView, Failure> {
    let until = Instant::now() + Duration::from_millis(WAIT_MS);
    while view.state == ApprovalState::Approved && Instant::now() < until {
        view = link.call::<op::ApprovalGet>(&ApprovalParams { approval: view.id, wait_ms: GLANCE_MS })?;
    }
    Ok(view)
}

fn told(here: &Here, view: &ApprovalView) -> Result<u8, Failure> {
    if here.json {
        print_json(view)?;
        return Ok(u8::from(matches!(view.state, ApprovalState::Failed | ApprovalState::Open)));
    }
    let wants = wanted(view);
    let text = match view.state {
        ApprovalState::Denied => format!("denied {}: {wants}\n", view.by),
        ApprovalState::Failed => {
            let why = view.error.clone().unwrap_or_default();
            return Err(Failure::new("failed", format!("approved, and could not be done: {}", visible(&why))));
        }
        ApprovalState::Open => {
            let hint = format!("look at it again: holdfast approvals show {}", view.id);
            return Err(Failure::new("changed", "what it is about has changed, so it waits again").hint(hint));
        }
        ApprovalState::Approved | ApprovalState::Done | ApprovalState::Expired => {
            format!("approved {}: {wants}\n", view.by)
        }
    };
    print(text)?;
    Ok(0)
}

fn wait(here: &Here, args: &ApprovalWaitArgs) -> Result<u8, Failure> {
    let until = args.timeout.and_then(|Seconds { ms }| Instant::now().checked_add(Duration::from_millis(ms)));
    let mut link = here.link()?;
    let mut one = find(&mut link, &args.of.approval)?;
    while !one.state.is_over() && until.is_none_or(|at| Instant::now() < at) {
        let left = until.map_or(WAIT_MS, |at| at.saturating_duration_since(Instant::now()).as_millis() as u64);
        one = link.call::<op::ApprovalGet>(&ApprovalParams { approval: one.id, wait_ms: left.min(WAIT_MS) })?;
    }
    if here.json {
        print_json(&one)?;
    } else {
        print(described(&one))?;
    }
    Ok(match one.state {
        ApprovalState::Done => 0,
        ApprovalState::Open | ApprovalState::Approved => STATUS_TIMEOUT,
        ApprovalState::Failed | ApprovalState::Denied | ApprovalState::Expired => 1,
    })
}

/// The approval that is meant, by its id or the beginning of one.
fn find(link: &mut Link<'_>, wanted: &str) -> Result<ApprovalView, Failure> {
    if let Ok(approval) = wanted.parse::<ApprovalId>() {
        return link.call::<op::ApprovalGet>(&ApprovalParams { approval, wait_ms: 0 });
    }
    let no_such = || {
        Failure::new("no_such_approval", format!("no approval {wanted:?}"))
            .hint("list them: holdfast approvals ls --all")
    };
    let digits = wanted.strip_prefix("apr_").unwrap_or(wanted);
    if digits.len() < ID_BEGINNING_MIN {
        return Err(no_such());
    }
    let all = link.call::<op::ApprovalList>(&ApprovalListParams { session: None, all: true })?;
    let mut fit = all.into_iter().filter(|one| one.id.to_string().starts_with(&format!("apr_{digits}")));
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Failure::new("ambiguous", format!("several approvals begin with {wanted:?}"))
                .hint("type more of the id"))
        }
        (None, _) => Err(no_such()),
    }
}
