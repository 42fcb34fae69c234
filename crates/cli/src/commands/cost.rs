//! `holdfast keep`, `holdfast ls --cost`: sessions that nobody uses, and what each takes up.

use super::list;
use crate::args::KeepArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{
    bytes, columns, command_line, deadline, left, moment, now_ms, print, print_json, span, table, visible,
};
use holdfast_authority::Ask;
use holdfast_types::{TimeMs, terms_of};
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionView;
use holdfast_wire::reaping::{CostParams, CostView, KeepParams, ReapView};
use serde::Serialize;

/// `holdfast keep`.
pub fn keep(here: &Here, args: &KeepArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let for_ms = args.time.map(|time| time.ms);
    let params = |proof| KeepParams { session: session.id.to_string(), for_ms, off: args.off, proof };
    let ask = Ask::other(const { terms_of("session.keep") }, params(None).detail());
    let kept = link.act::<op::Keep>(&session, &ask, params)?;
    if here.json {
        print_json(&kept)?;
        return Ok(0);
    }
    let name = visible(&here.called(session.name.as_str()));
    let reap = kept.reap.unwrap_or_default();
    print(match reap.kept.and_then(|kept| kept.until_ms) {
        _ if !args.off && for_ms.is_none() => format!("{name} is kept until `holdfast keep {name} --off`\n"),
        Some(until) => format!("{name} is kept until {}\n", deadline(until, now_ms())),
        None => match reap.after_ms {
            Some(after) => format!("{name} is no longer kept; it is ended after {} of idleness\n", span(after)),
            None => format!("{name} is no longer kept\n"),
        },
    })?;
    Ok(0)
}

/// When a session is ended, behind its state in a list.
pub fn reaped_in(reap: &ReapView, now: TimeMs) -> String {
    match (reap.ends_ms, &reap.kept) {
        _ if reap.reaped.is_some() => ", reaped".into(),
        (_, Some(_)) => ", kept".into(),
        (Some(ends), None) => format!(", ends in {}", left(ends, now)),
        (None, None) => String::new(),
    }
}

/// The same with everything that is known.
pub fn reap_rows(reap: &ReapView, now: TimeMs) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(why) = reap.reaped {
        rows.push(("reaped", format!("by service:reaper: {}", why.words())));
    }
    if reap.never {
        rows.push(("reap", "never".into()));
    }
    if let Some(after) = reap.after_ms {
        rows.push(("reap", format!("after {} of idleness", span(after))));
    }
    if let Some(since) = reap.idle_since_ms {
        rows.push(("idle", format!("since {}", moment(since, now))));
    }
    if let Some(ends) = reap.ends_ms {
        let why = reap.warned.map_or(String::new(), |why| format!(": {}", why.words()));
        rows.push(("ends", format!("{}{why}", deadline(ends, now))));
    }
    if let Some(kept) = &reap.kept {
        let until = kept.until_ms.map_or(String::new(), |until| format!(" until {}", deadline(until, now)));
        rows.push(("kept", format!("by {}{until}", kept.by)));
    }
    rows
}

/// A session with what it takes up.
#[derive(Serialize)]
struct Costly {
    #[serde(flatten)]
    session: SessionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostView>,
}

/// `holdfast ls --cost`: what takes most comes first.
pub fn list(here: &Here, link: &mut Link<'_>) -> Result<u8, Failure> {
    let sessions = link.ask_all(|connection| list::all(connection, false))?;
    let mut costs = link.call::<op::Cost>(&CostParams::default())?;
    let mut all: Vec<Costly> = Vec::new();
    for session in sessions {
        let at = costs.iter().position(|cost| cost.session == session.id);
        all.push(Costly { session, cost: at.map(|at| costs.swap_remove(at)) });
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.cost.as_ref().map(|cost| cost.memory_bytes)));
    if here.json {
        print_json(&all)?;
    } else if all.is_empty() {
        print(list::NONE)?;
    } else {
        print(listed(&all, now_ms(), columns()))?;
    }
    Ok(0)
}

fn listed(all: &[Costly], now: TimeMs, width: Option<usize>) -> String {
    let head = ["NAME", "MEMORY", "PROCESSES", "DISK", "AGE", "ATTACHED", "LOOKED AT", "COMMAND"];
    let ago = |at: Option<TimeMs>| at.map_or("-".to_owned(), |at| format!("{} ago", span(now.saturating_sub(at))));
    let row = |one: &Costly| {
        let (name, session) = (visible(one.session.name.as_str()), &one.session);
        let age = span(now.saturating_sub(session.created_ms));
        let Some(cost) = &one.cost else {
            // It does not run: there is nothing to measure.
            let none = || "-".to_owned();
            return vec![name, none(), none(), none(), age, none(), none(), command_line(&session.command)];
        };
        let about = if cost.memory_estimated { "~" } else { "" };
        let attached = if session.clients.is_empty() { ago(cost.attached_ms) } else { "now".into() };
        vec![
            name,
            format!("{about}{}", bytes(cost.memory_bytes)),
            cost.processes.to_string(),
            bytes(cost.disk_bytes),
            age,
            attached,
            ago(cost.looked_ms),
            command_line(&session.command),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec()).chain(all.iter().map(row)).collect();
    let costs = || all.iter().filter_map(|one| one.cost.as_ref());
    let memory: u64 = costs().map(|cost| cost.memory_bytes).sum();
    let disk: u64 = costs().map(|cost| cost.disk_bytes).sum();
    let processes: u32 = costs().map(|cost| cost.processes).sum();
    let text: String = table(&rows, width).into_iter().map(|line| line + "\n").collect();
    let count = match all.len() {
        1 => "1 session".to_owned(),
        many => format!("{many} sessions"),
    };
    let processes = if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") };
    format!("{text}{count}: {} of memory, {processes}, {} on disk\n", bytes(memory), bytes(disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::reaping::{KeptView, ReapWhy};
    use serde_json::json;

    fn session(name: &str) -> SessionView {
        serde_json::from_value(json!({
            "id": holdfast_types::SessionId::from_random_bits(7), "name": name, "life": "running", "command": ["bash"],
            "cwd": "/", "created_ms": 1_000_000, "pid": 12, "keeper_pid": 11, "size": "80x24", "head": 9, "oldest": 1,
            "ring_bytes": 1 << 20, "clients": [], "turn": { "holder": null, "fence": 1, "queue": [] },
        }))
        .unwrap()
    }

    fn cost(name: &str, memory_bytes: u64, is_estimated: bool) -> Costly {
        let session = session(name);
        let cost = CostView {
            session: session.id,
            name: session.name.clone(),
            memory_bytes,
            memory_estimated: is_estimated,
            processes: 2,
            disk_bytes: 1 << 20,
            created_ms: 1_000_000,
            attached_ms: Some(4_000_000),
            looked_ms: None,
        };
        Costly { session, cost: Some(cost) }
    }

    #[test]
    fn what_each_session_takes_up_reads_as_a_table_with_a_sum() {
        let lost = Costly { session: session("lost"), cost: None };
        let all = [cost("main", 5 << 20, false), cost("build", 3 << 20, true), lost];
        insta::assert_snapshot!(listed(&all, 4_600_000, Some(100)), @r"
        NAME   MEMORY    PROCESSES  DISK     AGE  ATTACHED  LOOKED AT  COMMAND
        main   5.0 MiB   2          1.0 MiB  1h   10m ago   -          bash
        build  ~3.0 MiB  2          1.0 MiB  1h   10m ago   -          bash
        lost   -         -          -        1h   -         -          bash
        3 sessions: 8.0 MiB of memory, 4 processes, 2.0 MiB on disk
        ");
    }

    #[test]
    fn a_deadline_is_told_with_its_reason_and_a_kept_session_has_none() {
        let warned = ReapView {
            after_ms: Some(43_200_000),
            idle_since_ms: Some(1_000_000),
            ends_ms: Some(44_200_000),
            warned: Some(ReapWhy::Idle),
            ..ReapView::default()
        };
        assert_eq!(reaped_in(&warned, 43_600_000), ", ends in 10m");
        let rows: Vec<String> =
            reap_rows(&warned, 43_600_000).iter().map(|(key, text)| format!("{key} {text}")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        reap after 12h of idleness
        idle since 1970-01-01 00:16:40 UTC (11h ago)
        ends 1970-01-01 12:16:40 UTC (in 10m): it is idle
        ");
        let kept = ReapView {
            kept: Some(KeptView { by: "human:ann".parse().unwrap(), until_ms: None }),
            ..ReapView::default()
        };
        assert_eq!(reaped_in(&kept, 0), ", kept");
        assert_eq!(reap_rows(&kept, 0), [("kept", "by human:ann".to_owned())]);
    }
}
