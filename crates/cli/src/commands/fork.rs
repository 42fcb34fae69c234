//! `holdfast fork`: copies of a portable session, and what becomes of their files.

use crate::args::{ForkArgs, ForkCommand, ForkDiffArgs, ForkKeepArgs, ForkStartArgs, SessionArg};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{bytes, print, print_json, table, visible};
use holdfast_authority::Ask;
use holdfast_types::terms_of;
use holdfast_wire::forks::{
    BranchChange, Conflict, ForkAnswer, ForkDiffAnswer, ForkDiffParams, ForkDiscardParams, ForkKeepAnswer,
    ForkKeepParams, ForkParams, HowChanged,
};
use holdfast_wire::operations::op;
use std::path::{Path, PathBuf};

/// `holdfast fork`.
pub fn fork(here: &Here, args: &ForkArgs) -> Result<u8, Failure> {
    match &args.about {
        None => start(here, &args.start),
        Some(ForkCommand::Diff(args)) => diff(here, args),
        Some(ForkCommand::Keep(args)) => keep(here, args),
        Some(ForkCommand::Discard(of)) => discard(here, of),
    }
}

fn start(here: &Here, args: &ForkStartArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(args.session.as_deref().unwrap_or_default())?;
    let params = |proof| ForkParams {
        session: session.id.to_string(),
        count: args.count,
        names: args.as_names.clone(),
        share_network: args.share_network,
        proof,
    };
    let ask = Ask::other(const { terms_of("session.fork") }, params(None).detail());
    let made = link.act::<op::Fork>(&session, &ask, params)?;
    if here.json {
        print_json(&made)?;
    } else {
        print(told(&made, &here.called(session.name.as_str())))?;
    }
    Ok(0)
}

fn told(made: &ForkAnswer, name: &str) -> String {
    let mut text = format!("{} keeps running; it stood still for {} ms\n", visible(name), made.still_ms);
    for branch in &made.branches {
        text.push_str(&format!("  {}  holdfast attach {}\n", branch.id, visible(branch.name.as_str())));
    }
    for cut in &made.cut {
        text.push_str(&format!("  connection cut in the branches  {}\n", visible(cut)));
    }
    if !made.cut.is_empty() {
        text.push_str("  what was sent before the fork was sent once: the branches cannot take it back\n");
    }
    let all: Vec<&str> = made.branches.iter().map(|branch| branch.name.as_str()).collect();
    let first = visible(all.first().copied().unwrap_or_default());
    text + &format!(
        "  compare  holdfast fork diff {}\n  decide   holdfast fork keep {first}, holdfast fork discard NAME\n",
        visible(&all.join(" "))
    )
}

fn word(how: HowChanged) -> &'static str {
    match how {
        HowChanged::Created => "created",
        HowChanged::Changed => "changed",
        HowChanged::Attributes => "mode",
        HowChanged::Deleted => "deleted",
    }
}

fn listed(changes: &[BranchChange]) -> String {
    let row = |change: &BranchChange| {
        let size = if change.bytes > 0 { bytes(change.bytes) } else { String::new() };
        vec![word(change.how).to_owned(), visible(&change.path), size]
    };
    let rows: Vec<_> = changes.iter().map(row).collect();
    table(&rows, None).into_iter().map(|line| line + "\n").collect()
}

fn diff(here: &Here, args: &ForkDiffArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = args.of.session.clone();
    let params = ForkDiffParams { session, with: args.with.clone(), patch: args.patch };
    let found = link.call::<op::ForkDiff>(&params)?;
    if here.json {
        print_json(&found)?;
    } else {
        print(shown(&found))?;
    }
    Ok(0)
}

fn shown(found: &ForkDiffAnswer) -> String {
    let more = if found.more { "there is more than is shown\n" } else { "" };
    match &found.patch {
        Some(patch) => visible_lines(patch) + more,
        None if found.changes.is_empty() => "no file differs\n".into(),
        None => listed(&found.changes) + more,
    }
}

/// Without what could steer a terminal.
fn visible_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(visible).collect::<Vec<_>>().join("\t") + "\n";
    text.lines().map(line).collect()
}

fn keep(here: &Here, args: &ForkKeepArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    if let Some(file) = &args.patch {
        let params = ForkDiffParams { session: session.id.to_string(), with: None, patch: true };
        let found = link.call::<op::ForkDiff>(&params)?;
        let text = found.patch.clone().unwrap_or_default();
        std::fs::write(file, text).map_err(|error| Failure::io(format!("cannot write {}", file.display()), error))?;
        if here.json {
            print_json(&found)?;
        } else {
            let count = found.changes.len();
            print(format!("wrote {} ({count} files)\n  apply  patch -p1 -d / < {0}\n", file.display()))?;
        }
        return Ok(0);
    }
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let all = |list: &[PathBuf]| list.iter().map(|path| whole(path)).collect::<Vec<_>>();
    let params = |proof| ForkKeepParams {
        session: session.id.to_string(),
        into: args.into.as_deref().map(whole),
        take: all(&args.take),
        leave: all(&args.leave),
        proof,
    };
    let ask = Ask::other(const { terms_of("fork.keep") }, params(None).detail());
    let done = link.act::<op::ForkKeep>(&session, &ask, params)?;
    if here.json {
        print_json(&done)?;
    } else {
        print(kept(&done, &here.called(session.name.as_str())))?;
    }
    Ok(u8::from(!done.conflicts.is_empty()))
}

fn kept(done: &ForkKeepAnswer, name: &str) -> String {
    if done.conflicts.is_empty() {
        let count = done.applied.len();
        return listed(&done.applied)
            + &format!("{count} applied\n  end the branch  holdfast fork discard {}\n", visible(name));
    }
    let row = |one: &Conflict| vec!["conflict".to_owned(), visible(&one.path), one.why.clone()];
    let rows: Vec<_> = done.conflicts.iter().map(row).collect();
    let lines: String = table(&rows, None).into_iter().map(|line| line + "\n").collect();
    lines + "nothing was applied; choose for each: --take PATH (the branch's) or --leave PATH (the real one)\n"
}

fn discard(here: &Here, of: &SessionArg) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&of.session)?;
    let params = |proof| ForkDiscardParams { session: session.id.to_string(), proof };
    let ask = Ask::other(const { terms_of("fork.discard") }, String::new());
    let view = link.act::<op::ForkDiscard>(&session, &ask, params)?;
    if here.json {
        print_json(&view)?;
    } else {
        print(format!("{} has ended; its files are gone\n", visible(&here.called(session.name.as_str()))))?;
    }
    Ok(0)
}
