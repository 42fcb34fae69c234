//! `holdfast checkpoint`, `checkpoints` and `restore`: copies of a portable session's live processes.

use crate::args::{CheckpointArgs, CheckpointsCommand, RestoreArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{bytes, fields, moment, now_ms, print, print_json, table, visible};
use holdfast_authority::Ask;
use holdfast_types::terms_of;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionParams, SessionView};
use holdfast_wire::portable::{
    CheckAnswer, CheckpointListParams, CheckpointParams, CheckpointRemoveParams, CheckpointView, Obstacle,
    RestoreAnswer, RestoreParams,
};
use serde_json::json;

/// `holdfast checkpoint`.
pub fn checkpoint(here: &Here, args: &CheckpointArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let Some(session) = &args.session else { return all(here, &mut link, args.keep_running) };
    let session = link.get(session)?;
    let name = here.called(session.name.as_str());
    if args.check {
        let check = link.call::<op::CheckpointCheck>(&SessionParams { session: session.id.to_string() })?;
        let is_refused = !check.refused.is_empty();
        if here.json {
            print_json(&check)?;
        } else {
            print(checked(&check, &name))?;
        }
        return Ok(u8::from(is_refused));
    }
    let made = make(&mut link, &session, args.keep_running)?;
    if here.json {
        print_json(&made)?;
    } else {
        print(told(&made, &name, args.keep_running))?;
    }
    Ok(0)
}

fn make(link: &mut Link<'_>, session: &SessionView, keep_running: bool) -> Result<CheckpointView, Failure> {
    let params = |proof| CheckpointParams { session: session.id.to_string(), keep_running, proof };
    let ask = Ask::other(const { terms_of("checkpoint.make") }, params(None).detail());
    Ok(link.act::<op::CheckpointMake>(session, &ask, params)?)
}

/// One after the other; also after one that cannot be kept.
fn all(here: &Here, link: &mut Link<'_>, keep_running: bool) -> Result<u8, Failure> {
    let sessions = link.call::<op::List>(&ListParams { all: false })?;
    let portable: Vec<SessionView> = sessions.into_iter().filter(|session| session.portable).collect();
    if portable.is_empty() && !here.json {
        print("no portable sessions are running\n")?;
    }
    let (mut documents, mut status) = (Vec::new(), 0);
    for session in portable.iter().filter(|session| session.life == Life::Running) {
        let name = here.called(session.name.as_str());
        let (line, document) = match make(link, session, keep_running) {
            Ok(made) => (told(&made, &name, keep_running), json!(made)),
            Err(failure) => {
                status = 1;
                let line = format!("{}: no checkpoint was made: {}\n", visible(&name), visible(failure.message()));
                (line, json!({"id": session.id, "name": session.name, "error": failure.message()}))
            }
        };
        documents.push(document);
        if !here.json {
            print(line)?;
        }
    }
    if here.json {
        print_json(&documents)?;
    }
    Ok(status)
}

fn told(made: &CheckpointView, name: &str, keep_running: bool) -> String {
    let name = visible(name);
    let cut: String = made.cut.iter().map(|cut| format!("  not in it  {}\n", visible(cut))).collect();
    let then = match keep_running {
        true => format!("  {name} keeps running; it stood still for {} ms\n", made.still_ms),
        false => format!("  {name} is stopped\n  restore  holdfast restore {name}\n"),
    };
    format!("{} of {name}: {}, {}\n{cut}{then}", made.id, programs(made), bytes(made.bytes))
}

fn programs(made: &CheckpointView) -> String {
    visible(&made.programs.join(", "))
}

fn checked(check: &CheckAnswer, name: &str) -> String {
    let rows = |word: &str, list: &[Obstacle]| -> Vec<Vec<String>> {
        let fd = |one: &Obstacle| one.fd.map_or_else(|| "-".into(), |fd| fd.to_string());
        let row = |one: &Obstacle| {
            vec![word.to_owned(), format!("{} ({})", visible(&one.program), one.pid), fd(one), visible(&one.what)]
        };
        list.iter().map(row).collect()
    };
    let all = [rows("refused", &check.refused), rows("cut", &check.cut), rows("note", &check.noted)].concat();
    let lines: String = table(&all, None).into_iter().map(|line| line + "\n").collect();
    let verdict = match check.refused.is_empty() {
        true => format!("{} can be checkpointed: {} processes\n", visible(name), check.processes),
        false => format!("{} cannot be checkpointed now\n", visible(name)),
    };
    lines + &verdict
}

/// `holdfast checkpoints`.
pub fn checkpoints(here: &Here, command: &CheckpointsCommand) -> Result<u8, Failure> {
    let mut link = here.link()?;
    match command {
        CheckpointsCommand::Ls(args) => {
            let list = link.call::<op::CheckpointList>(&CheckpointListParams { session: args.session.clone() })?;
            if here.json {
                print_json(&list)?;
            } else {
                print(listed(&list, now_ms()))?;
            }
        }
        CheckpointsCommand::Show(args) => {
            let view = find(&mut link, &args.id)?;
            if here.json {
                print_json(&view)?;
            } else {
                print(described(&view, now_ms()))?;
            }
        }
        CheckpointsCommand::Rm(args) => {
            let view = find(&mut link, &args.id)?;
            let session = link.get(&view.session.to_string())?;
            let params =
                |proof| CheckpointRemoveParams { session: session.id.to_string(), checkpoint: view.id.clone(), proof };
            let ask = Ask::other(const { terms_of("checkpoint.remove") }, view.id.clone());
            link.act::<op::CheckpointRemove>(&session, &ask, params)?;
            if here.json {
                print_json(&view)?;
            } else {
                print(format!("removed {}\n", view.id))?;
            }
        }
    }
    Ok(0)
}

fn find(link: &mut Link<'_>, id: &str) -> Result<CheckpointView, Failure> {
    let all = link.call::<op::CheckpointList>(&CheckpointListParams::default())?;
    all.into_iter().find(|view| view.id == id).ok_or_else(|| {
        Failure::new("not_found", format!("no checkpoint {}", visible(id))).hint("list them: holdfast checkpoints ls")
    })
}

fn listed(list: &[CheckpointView], now: u64) -> String {
    if list.is_empty() {
        return "no checkpoints\n".into();
    }
    let head = ["ID", "SESSION", "MADE", "SIZE", "PROGRAMS"].map(str::to_owned).to_vec();
    let row = |view: &CheckpointView| {
        let what = view.damaged.as_ref().map_or_else(|| programs(view), |why| format!("damaged: {}", visible(why)));
        let made = format!("{}{}", moment(view.at_ms, now), if view.automatic { ", automatic" } else { "" });
        vec![view.id.clone(), visible(view.name.as_str()), made, bytes(view.bytes), what]
    };
    let rows: Vec<_> = std::iter::once(head).chain(list.iter().map(row)).collect();
    table(&rows, None).into_iter().map(|line| line + "\n").collect()
}

fn described(view: &CheckpointView, now: u64) -> String {
    let mut rows = vec![
        ("id", view.id.clone()),
        ("session", format!("{} ({})", visible(view.name.as_str()), view.session)),
        ("made", moment(view.at_ms, now)),
        ("life", view.incarnation.to_string()),
        ("size", bytes(view.bytes)),
        ("terminal", view.size.to_string()),
        ("programs", programs(view)),
        ("stood still", format!("{} ms", view.still_ms)),
        ("mounts", visible(&view.mounts.join(", "))),
        ("made with", format!("CRIU {} on Linux {}", visible(&view.criu), visible(&view.kernel))),
    ];
    rows.extend(view.cut.iter().map(|cut| ("cut", visible(cut))));
    rows.extend(view.damaged.iter().map(|why| ("DAMAGED", visible(why))));
    fields(&rows)
}

/// `holdfast restore`.
pub fn restore(here: &Here, args: &RestoreArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let (session, checkpoint) = match args.what.starts_with("ckp_") {
        true => {
            let view = find(&mut link, &args.what)?;
            (link.get(&view.session.to_string())?, Some(view.id))
        }
        false => (link.get(&args.what)?, None),
    };
    let answer = begin(&mut link, &session, checkpoint)?;
    if here.json {
        print_json(&answer)?;
    } else {
        let name = visible(&here.called(session.name.as_str()));
        let cut: String =
            answer.checkpoint.cut.iter().map(|cut| format!("  connection cut  {}\n", visible(cut))).collect();
        let life = answer.session.incarnation;
        let from = &answer.checkpoint.id;
        print(format!("{name} is running again (life {life}), from {from}\n{cut}  attach  holdfast attach {name}\n"))?;
    }
    Ok(0)
}

/// Asks for a life from a checkpoint.
pub fn begin(link: &mut Link<'_>, session: &SessionView, checkpoint: Option<String>) -> Result<RestoreAnswer, Failure> {
    let params = |proof| RestoreParams { session: session.id.to_string(), checkpoint: checkpoint.clone(), proof };
    let ask = Ask::other(const { terms_of("session.restore") }, params(None).detail());
    Ok(link.act::<op::Restore>(session, &ask, params)?)
}
