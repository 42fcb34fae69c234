//! `holdfast ls`, `holdfast info`: sessions as a person reads them.

use super::canvas::{Canvas, QUIT_KEYS};
use super::cost;
use super::graph::Essence;
use super::turn;
use crate::args::LsArgs;
use crate::everywhere::{self, Answered, called};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{
    bytes, columns, command_line, cut, fields, moment, now_ms, on_terminal, print, print_json, span, state, styled,
    table, visible,
};
use holdfast_client::{CallError, Connection, Incoming, ready};
use holdfast_types::{SessionId, SessionName, TimeMs};
use holdfast_wire::attention::{Kind, Now, StateView};
use holdfast_wire::leases::{LeaseState, LeaseView};
use holdfast_wire::lives::LostView;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ClientView, Life, ListParams, SessionParams, SessionView};
use holdfast_wire::runs::{RunListParams, RunView};
use serde::Serialize;
use std::collections::HashMap;

/// Words of a command in a list.
const WORDS_MAX: usize = 32;
/// Columns of a run's command.
const COMMAND_COLUMNS: usize = 60;

/// Sessions that are looked at for a list: more than a person reads, and a look is an answer of the session's keeper.
const LOOKS_MAX: usize = 256;
/// How often a list that is watched is drawn anew.
const WATCH_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
pub(super) const NONE: &str = "no sessions; start one with: holdfast new\n";

/// What sessions do, where that was seen.
type Seen = HashMap<SessionId, StateView>;

/// `holdfast ls`.
pub fn list(here: &Here, args: &LsArgs) -> Result<u8, Failure> {
    if args.all_hosts {
        return list_everywhere(here, args.all);
    }
    let mut link = here.link()?;
    if args.watch {
        return watch(here, &mut link, args.all);
    }
    if args.cost {
        return cost::list(here, &mut link);
    }
    let sessions = link.ask_all(|connection| all(connection, args.all))?;
    if here.json {
        print_json(&sessions)?;
    } else if sessions.is_empty() {
        print(NONE)?;
    } else {
        let seen = look(link.connection(), &sessions);
        print(listed(&rows(here, &sessions, &seen), now_ms(), columns(), styled()))?;
    }
    Ok(0)
}

/// The sessions of every host. A host that does not answer is told beside the list.
fn list_everywhere(here: &Here, ended_too: bool) -> Result<u8, Failure> {
    let is_looked_at = !here.json;
    let answers = everywhere::ask(here, move |connection| {
        let sessions = all(connection, ended_too)?;
        let seen = if is_looked_at { look(connection, &sessions) } else { Seen::new() };
        Ok((sessions, seen))
    })?;
    if here.json {
        let sessions = |Answered { host, answer }| Answered { host, answer: answer.map(|(sessions, _)| sessions) };
        let answers: Vec<Answered<Vec<SessionView>>> = answers.into_iter().map(sessions).collect();
        print_json(&everywhere::json(&answers, "sessions"))?;
        return Ok(everywhere::status(&answers));
    }
    let mut rows = Vec::new();
    for Answered { host, answer } in &answers {
        let Ok((sessions, seen)) = answer else { continue };
        rows.extend(sessions.iter().map(|session| Row::of(host.as_deref(), session, seen)));
    }
    print(if rows.is_empty() { NONE.into() } else { listed(&rows, now_ms(), columns(), styled()) })?;
    Ok(everywhere::report(&answers))
}

/// A session in a list.
struct Row<'a> {
    /// What a person calls it from here.
    called: String,
    /// Its processes are another machine's.
    is_far: bool,
    session: &'a SessionView,
    seen: Option<&'a StateView>,
}

impl<'a> Row<'a> {
    fn of(host: Option<&str>, session: &'a SessionView, seen: &'a Seen) -> Row<'a> {
        let called = visible(&called(host, session.name.as_str()));
        Row { called, is_far: host.is_some(), session, seen: seen.get(&session.id) }
    }
}

/// The sessions of the one host that is asked, by their names there.
fn rows<'a>(here: &Here, sessions: &'a [SessionView], seen: &'a Seen) -> Vec<Row<'a>> {
    let row = |session| Row { is_far: here.is_elsewhere(), ..Row::of(None, session, seen) };
    sessions.iter().map(row).collect()
}

pub(super) fn all(connection: &mut Connection, all: bool) -> Result<Vec<SessionView>, CallError> {
    let mut sessions = connection.call::<op::List>(&ListParams { all })?;
    sessions.sort_by(|a, b| (a.life == Life::Ended, &a.name, a.id).cmp(&(b.life == Life::Ended, &b.name, b.id)));
    Ok(sessions)
}

/// The list, drawn again and again until a key ends it.
fn watch(here: &Here, link: &mut Link<'_>, ended_too: bool) -> Result<u8, Failure> {
    if here.json || !on_terminal() {
        return Err(
            Failure::new("no_terminal", "`ls --watch` needs a terminal").hint("for programs: holdfast watch --json")
        );
    }
    let canvas = Canvas::new()?;
    loop {
        let sessions = link.ask_all(|connection| all(connection, ended_too))?;
        let seen = look(link.connection(), &sessions);
        let text = match sessions.is_empty() {
            true => NONE.to_owned(),
            false => listed(&rows(here, &sessions, &seen), now_ms(), columns(), styled()),
        };
        canvas.draw(&text)?;
        let mut typed = [0; 64];
        let [is_typed] = ready([rustix::stdio::stdin()], Some(WATCH_EVERY))
            .map_err(|error| Failure::io("cannot wait for keys", error))?;
        if !is_typed {
            continue;
        }
        match rustix::io::read(rustix::stdio::stdin(), &mut typed) {
            // The terminal is gone.
            Ok(0) | Err(_) => return Ok(0),
            Ok(count) if typed[..count].iter().any(|key| QUIT_KEYS.contains(key)) => return Ok(0),
            Ok(_) => {}
        }
    }
}

/// What the live ones do, all asked at once. One that cannot be looked at is shown without it.
fn look(connection: &mut Connection, sessions: &[SessionView]) -> Seen {
    let mut asked = Vec::new();
    for session in sessions.iter().filter(|session| session.life == Life::Running).take(LOOKS_MAX) {
        match connection.ask::<op::State>(&SessionParams { session: session.id.to_string() }, &[]) {
            Ok(request) => asked.push(request),
            Err(_) => return Seen::new(),
        }
    }
    let mut seen = Seen::new();
    while !asked.is_empty() {
        match connection.receive() {
            Ok(Incoming::Answer { id, result, .. }) => {
                asked.retain(|request| *request != id);
                let view = result.ok().and_then(|view| serde_json::from_value::<StateView>(view).ok());
                seen.extend(view.map(|view| (view.session, view)));
            }
            Ok(Incoming::Event { .. }) => {}
            Err(_) => return seen,
        }
    }
    seen
}

fn listed(all: &[Row<'_>], now: TimeMs, width: Option<usize>, styled: bool) -> String {
    let head = ["NAME", "STATE", "SIZE", "CLIENTS", "TURN", "AGE", "COMMAND"].map(str::to_owned).to_vec();
    let row = |row: &Row<'_>| {
        let session = row.session;
        vec![
            row.called.clone(),
            status(session, row.seen),
            session.size.to_string(),
            session.clients.len().to_string(),
            holder(session),
            span(now.saturating_sub(session.created_ms)),
            foreground(row),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let lines = table(&rows, width);
    let mut text = format!("{}\n", lines[0]);
    for (line, row) in lines[1..].iter().zip(all) {
        match row.session.life {
            Life::Ended if styled => text.push_str(&format!("\x1b[2m{line}\x1b[0m\n")),
            Life::Ended | Life::Lost | Life::Running | Life::Unknown | Life::Damaged => {
                text.push_str(&format!("{line}\n"))
            }
        }
    }
    text
}

/// Its state, and what a person should not miss.
fn status(session: &SessionView, seen: Option<&StateView>) -> String {
    let lease = session.lease.as_ref().map(|lease| lease.state);
    let mut text = match (session.life, &session.turn.frozen, seen) {
        (Life::Lost, ..) if session.moved.is_some() => {
            let host = session.moved.as_ref().map_or("", |moved| moved.host.as_str());
            return format!("moved to {}", visible(host));
        }
        (Life::Running, _, _) if lease == Some(LeaseState::Unknown) => "frozen: lease unknown".to_owned(),
        (Life::Running, _, _) if lease == Some(LeaseState::Claimed) => "ends: claimed elsewhere".to_owned(),
        (Life::Running, Some(frozen), _) => format!("frozen by {}", frozen.by),
        (Life::Running, None, Some(seen)) => word(&seen.now).to_owned(),
        (Life::Running, None, None) | (Life::Ended | Life::Lost | Life::Unknown | Life::Damaged, _, _) => {
            state(session)
        }
    };
    if session.damaged.is_some() {
        text.push_str(", JOURNAL DAMAGED");
    }
    if session.stranger_ms.is_some() {
        text.push_str(", TYPED BY UNKNOWN");
    }
    if session.asks > 0 {
        text.push_str(", asks");
    }
    if let Some(at) = session.next_life_ms {
        text.push_str(&format!(", restarts in {}", span(at.saturating_sub(now_ms()))));
    }
    if let Some(reap) = &session.reap {
        text.push_str(&cost::reaped_in(reap, now_ms()));
    }
    text
}

/// What it does, in a column's width.
fn word(now: &Now) -> &'static str {
    match now {
        Now::IdlePrompt => "idle",
        // What waits for time or for a network runs, for who reads a list.
        Now::Running | Now::BlockedElsewhere | Now::Unknown { .. } => "running",
        Now::Waiting { kind: Kind::Password, .. } => "waits: password",
        Now::Waiting { kind: Kind::Choice, .. } => "waits: choice",
        Now::Waiting { kind: Kind::Line | Kind::Repl, .. } => "waits: input",
        Now::FullScreen => "full screen",
        Now::Stopped => "stopped",
        Now::Frozen { .. } => "frozen",
        Now::Ended { .. } => "ended",
    }
}

/// What has its terminal now; what it was started with where that is the same, or where nobody can tell.
fn foreground(row: &Row<'_>) -> String {
    let session = row.session;
    let pid = row.seen.and_then(|seen| seen.pid).filter(|pid| *pid != session.pid && !row.is_far);
    let arguments = pid.and_then(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok()).unwrap_or_default();
    let words: Vec<String> = arguments
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    if words.is_empty() { command_line(&session.command) } else { command_line(&words) }
}

/// Who may type now.
fn holder(session: &SessionView) -> String {
    session.turn.holder.as_ref().map_or("-".to_owned(), |holder| holder.actor.to_string())
}

/// `holdfast info`.
pub fn info(here: &Here, session: &str) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(session)?;
    let is_running = session.life == Life::Running;
    let graph = is_running.then(|| Essence::of(&mut link, &session.id.to_string())).flatten();
    let on = RunListParams { session: Some(session.id.to_string()) };
    let mut runs = if is_running { link.call::<op::RunList>(&on).unwrap_or_default() } else { Vec::new() };
    runs.retain(|run| !run.state.is_over());
    if here.json {
        print_json(&Info { session, graph, runs })?;
    } else {
        print(described(&session, graph.as_ref(), &runs, now_ms()))?;
    }
    Ok(0)
}

/// A session, and the essentials of its graph while it has one.
#[derive(Serialize)]
struct Info {
    #[serde(flatten)]
    session: SessionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<Essence>,
    /// Those that are on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunView>,
}

fn described(session: &SessionView, graph: Option<&Essence>, runs: &[RunView], now: TimeMs) -> String {
    let mut rows = vec![
        ("name", visible(session.name.as_str())),
        ("id", session.id.to_string()),
        ("state", state(session)),
        ("command", command_line(&session.command)),
        ("directory", visible(&session.cwd)),
        ("size", session.size.to_string()),
        ("started", moment(session.created_ms, now)),
    ];
    if let Some(wall) = &session.wall {
        let ports = wall.connect.as_ref().map(|ports| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
        let ports =
            ports.map(|ports| format!("; connects to TCP ports {}", if ports.is_empty() { "none" } else { &ports }));
        rows.push(("wall", format!("writes below {}{}", visible(&wall.write.join(", ")), ports.unwrap_or_default())));
    }
    if let Some(seam) = session.gate {
        rows.push(("gate", format!("{}: every program its processes start is judged", seam.word())));
    }
    if let Some(user) = &session.user {
        rows.push(("user", visible(user)));
    }
    if let Some(damaged) = &session.damaged {
        let then = "only humans act, and whom they grant something since (`holdfast grant`)";
        rows.push(("JOURNAL", format!("DAMAGED: {}; {then}", visible(damaged))));
    }
    if let Some(typed) = session.stranger_ms {
        let what = "a program of this user typed past the host; see UNKNOWN in `holdfast journal`";
        rows.push(("UNKNOWN", format!("{}: {what}", moment(typed, now))));
    }
    rows.extend(life_rows(session, now));
    rows.extend(session.reap.iter().flat_map(|reap| cost::reap_rows(reap, now)));
    match (&session.lost, session.ended_ms) {
        _ if session.moved.is_some() => {}
        (Some(lost), _) => rows.extend(lost_rows(lost, &session.name, now)),
        (None, Some(ended)) => rows.push(("ended", moment(ended, now))),
        (None, None) => {}
    }
    if session.life == Life::Running {
        rows.push(("process", session.pid.to_string()));
        rows.push(("keeper", session.keeper_pid.to_string()));
        rows.extend(graph.map(Essence::rows).unwrap_or_default());
        rows.extend(turn::rows(&session.turn, now));
        rows.extend(runs.iter().map(|run| {
            let command = cut(&visible(&run.command), COMMAND_COLUMNS);
            ("runs", format!("{command} by {} for {}, {}", run.actor.handle, span(run.duration_ms), run.id))
        }));
    }
    rows.push(("output", format!("bytes {} to {} kept", session.oldest, session.head)));
    rows.push(("ring", bytes(session.ring_bytes)));
    if !session.title.is_empty() {
        rows.push(("title", visible(&session.title)));
    }
    if let Some(note) = &session.note {
        rows.push(("note", visible(note)));
    }
    if session.clients.is_empty() {
        rows.push(("clients", "none".into()));
    }
    let name = |at: usize| if at == 0 { "clients" } else { "" };
    rows.extend(session.clients.iter().enumerate().map(|(at, client)| (name(at), attached(client, now))));
    fields(&rows)
}

/// Who has its lease, and what that means.
fn lease_row(lease: &LeaseView, now: TimeMs) -> String {
    let host = visible(&lease.host);
    let hard = if lease.hard { ", with a hard fence" } else { "" };
    let why = lease.why.as_ref().map_or_else(String::new, |why| format!(" ({})", visible(why)));
    match (lease.state, lease.until_ms) {
        (LeaseState::Held, Some(until)) => {
            format!(
                "held by {host} for {}, renewed by itself; fence {}{hard}",
                span(until.saturating_sub(now)),
                lease.fence
            )
        }
        (LeaseState::Held, None) => format!("held by {host}; fence {}{hard}", lease.fence),
        (LeaseState::Unknown, _) => {
            let late =
                lease.stopped_late_ms.map_or_else(String::new, |late| format!(", since {late} ms after its end"));
            format!(
                "unknown: the session stands still until {host} can renew it{late}; fence {}{hard}{why}",
                lease.fence
            )
        }
        (LeaseState::Claimed, _) => format!("claimed by {host}: the life here is over; fence was {}", lease.fence),
    }
}

/// Which life this is, and whether there can be another.
fn life_rows(session: &SessionView, now: TimeMs) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if session.portable {
        let how = match session.checkpoint_every_ms {
            Some(every) => format!("a checkpoint is made every {} if something happened", span(every)),
            None => format!("checkpoints can be kept: holdfast checkpoint {}", session.name),
        };
        rows.push(("portable", how));
    }
    if let Some(lease) = &session.lease {
        rows.push(("lease", lease_row(lease, now)));
    }
    if let Some(of) = &session.forked_from {
        let network = if of.own_network { ", with a network of its own" } else { "" };
        let name = visible(of.name.as_str());
        rows.push(("forked from", format!("{name} ({}), {}{network}", of.session, moment(of.at_ms, now))));
        rows.push(("files", format!("its own: holdfast fork diff {}", session.name)));
    }
    if let Some(restored) = &session.restored {
        rows.push((
            "restored",
            format!("from {}, made {}", visible(&restored.checkpoint), moment(restored.made_ms, now)),
        ));
        rows.extend(restored.cut.iter().map(|cut| ("cut", visible(cut))));
    }
    if let Some(moved) = &session.moved {
        let host = visible(&moved.host);
        let how = match moved.arrived {
            true => format!("it lives there: holdfast attach {host}/{}", session.name),
            false => format!("to finish: holdfast move {} {host}", session.name),
        };
        rows.push(("moved", format!("to {host}, {}; {how}", moment(moved.at_ms, now))));
    }
    if session.incarnation > 1 {
        rows.push(("life", session.incarnation.to_string()));
    }
    if let Some(shell) = &session.stand_in {
        rows.push(("runs now", format!("{}, in place of the command", visible(shell))));
    }
    if session.recovers {
        rows.push(("recovers", "by itself if it is lost".into()));
    }
    if let Some(times) = session.restart_on_failure {
        rows.push(("restarts", format!("on failure, at most {times} times in 10 minutes")));
    }
    rows
}

/// What was lost, and what to do.
fn lost_rows(lost: &LostView, name: &SessionName, now: TimeMs) -> Vec<(&'static str, String)> {
    let mut rows = vec![("lost", format!("{}: {}", moment(lost.at_ms, now), visible(&lost.why)))];
    let list = |all: &[String]| visible(&all.join(", "));
    let programs = |survives: bool| -> Vec<String> {
        let all = lost.processes.iter().filter(|process| process.survives == survives);
        all.map(|process| format!("{} ({})", process.program, process.pid)).collect()
    };
    rows.extend(lost.cwd.iter().map(|cwd| ("was in", visible(cwd))));
    for (what, all) in [
        ("died", programs(false)),
        ("still runs", programs(true)),
        ("listened", lost.listened.clone()),
        ("connected", lost.connected.clone()),
        ("lost runs", lost.runs.iter().map(ToString::to_string).collect()),
    ] {
        if !all.is_empty() {
            rows.push((what, list(&all)));
        }
    }
    if let Some(checkpoint) = &lost.checkpoint {
        rows.push((
            "restore",
            format!("holdfast restore {name} (its processes come back, from {})", visible(checkpoint)),
        ));
    }
    rows.push(("recover", format!("holdfast recover {name}")));
    rows
}

fn attached(client: &ClientView, now: TimeMs) -> String {
    let tty = if client.tty.is_empty() { "no terminal".into() } else { visible(&client.tty) };
    let mode = if client.read_only { ", read-only" } else { "" };
    let since = moment(client.since_ms, now);
    let who = client.actor.as_ref().map_or(String::new(), |actor| format!(" {actor}"));
    format!("{}{who} on {tty}, {}, process {}{mode}, since {since}", client.id, client.size, client.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId, Exit, SessionId, Size};
    use holdfast_wire::turns::{FrozenView, HolderView, TurnView};

    fn session(name: &str, life: Life) -> SessionView {
        SessionView {
            id: SessionId::from_random_bits(7),
            name: name.parse().unwrap(),
            life,
            exit: None,
            command: vec!["sh".into(), "-c".into(), "echo \x1b[31m".into()],
            cwd: "/tmp/\u{7}".into(),
            created_ms: 1_000_000,
            ended_ms: None,
            pid: 12,
            keeper_pid: 11,
            size: Size::clamped(80, 24),
            head: 900,
            oldest: 100,
            ring_bytes: 1 << 20,
            title: "a\x1b]title".into(),
            clients: vec![],
            turn: TurnView::default(),
            asks: 0,
            note: None,
            damaged: None,
            stranger_ms: None,
            user: None,
            wall: None,
            gate: None,
            portable: false,
            lease: None,
            checkpoint_every_ms: None,
            forked_from: None,
            restored: None,
            moved: None,
            incarnation: 1,
            lost: None,
            stand_in: None,
            recovers: false,
            restart_on_failure: None,
            next_life_ms: None,
            reap: None,
        }
    }

    fn actor(handle: &str) -> Actor {
        Actor { id: ActorId([7; 32]), handle: handle.parse().unwrap() }
    }

    fn held_by(handle: &str) -> TurnView {
        let holder = HolderView {
            actor: actor(handle),
            client: None,
            since_ms: 1_005_000,
            active_ms: 1_045_000,
            ends_ms: None,
            how: "wrote".into(),
        };
        TurnView { holder: Some(holder), ..TurnView::default() }
    }

    #[test]
    fn a_list_reads_as_a_table() {
        let ended = SessionView { exit: Some(Exit::Signal(9)), ..session("build.2", Life::Ended) };
        let lost = SessionView { exit: Some(Exit::Lost), ..session("lost", Life::Ended) };
        let frozen = FrozenView { by: actor("human:ann"), since_ms: 1_050_000 };
        let held = SessionView { turn: held_by("agent:claude"), ..session("held", Life::Running) };
        let turn = TurnView { frozen: Some(frozen), ..held_by("human:ann") };
        let still = SessionView { turn, ..session("still", Life::Running) };
        let all = [session("main", Life::Running), held, still, session("old", Life::Unknown), ended, lost];
        let asks = StateView {
            session: SessionId::from_random_bits(7),
            name: "main".parse().unwrap(),
            now: Now::Waiting { kind: Kind::Password, prompt: String::new() },
            pid: None,
            since_ms: 0,
            at: 0,
        };
        let rows = |host, seen| all.iter().map(|session| Row::of(host, session, seen)).collect::<Vec<_>>();
        let seen = Seen::from([(asks.session, asks)]);
        let waits = listed(&rows(None, &seen)[..1], 1_065_000, Some(88), false);
        assert!(waits.contains("main  waits: password"), "{waits}");
        let far = listed(&rows(Some("gpu"), &seen)[..1], 1_065_000, Some(88), false);
        assert!(far.contains("gpu/main  waits: password"), "{far}");
        insta::assert_snapshot!(listed(&rows(None, &Seen::new()), 1_065_000, Some(88), true).replace('\x1b', "ESC"), @r"
        NAME     STATE                   SIZE   CLIENTS  TURN          AGE  COMMAND
        main     running                 80x24  0        -             1m   sh -c 'echo \u{1b}[…
        held     running                 80x24  0        agent:claude  1m   sh -c 'echo \u{1b}[…
        still    frozen by human:ann     80x24  0        human:ann     1m   sh -c 'echo \u{1b}[…
        old      unknown keeper version  80x24  0        -             1m   sh -c 'echo \u{1b}[…
        ESC[2mbuild.2  killed by signal 9      80x24  0        -             1m   sh -c 'echo \u{1b}[…ESC[0m
        ESC[2mlost     lost                    80x24  0        -             1m   sh -c 'echo \u{1b}[…ESC[0m
        ");
    }

    #[test]
    fn everything_about_a_session_is_told() {
        let client = ClientView {
            id: 3,
            actor: Some(actor("human:ann")),
            pid: 77,
            tty: "/dev/pts/4".into(),
            size: Size::clamped(100, 30),
            read_only: true,
            since_ms: 1_030_000,
        };
        let second = ClientView { id: 4, actor: None, tty: String::new(), read_only: false, ..client.clone() };
        let session = SessionView {
            clients: vec![client, second],
            turn: held_by("agent:claude"),
            note: Some("the keyframe was damaged".into()),
            ..session("main", Life::Running)
        };
        insta::assert_snapshot!(described(&session, None, &[], 1_065_000));
    }
}
