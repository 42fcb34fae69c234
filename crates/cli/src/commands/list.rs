//! `holdfast ls`, `holdfast info`: sessions as a person reads them.

use super::graph::Essence;
use super::turn;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{
    self, bytes, columns, command_line, cut, fields, moment, now_ms, print, print_json, span, state, styled, table,
    visible,
};
use holdfast_types::TimeMs;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ClientView, Life, ListParams, SessionView};
use holdfast_wire::runs::{RunListParams, RunView};
use serde::Serialize;

/// Columns of a run's command.
const COMMAND_COLUMNS: usize = 60;

/// `holdfast ls`.
pub fn list(here: &Here, all: bool) -> Result<u8, Failure> {
    let mut sessions = here.link()?.call::<op::List>(&ListParams { all })?;
    sessions.sort_by(|a, b| (a.life == Life::Ended, &a.name, a.id).cmp(&(b.life == Life::Ended, &b.name, b.id)));
    if here.json {
        print_json(&sessions)?;
    } else if sessions.is_empty() {
        print("no sessions; start one with: holdfast new\n")?;
    } else {
        print(listed(&sessions, now_ms(), columns(), styled()))?;
    }
    Ok(0)
}

fn listed(sessions: &[SessionView], now: TimeMs, width: Option<usize>, styled: bool) -> String {
    let head = ["NAME", "STATE", "SIZE", "CLIENTS", "TURN", "AGE", "COMMAND"].map(str::to_owned).to_vec();
    let row = |session: &SessionView| {
        vec![
            visible(session.name.as_str()),
            status(session),
            session.size.to_string(),
            session.clients.len().to_string(),
            holder(session),
            span(now.saturating_sub(session.created_ms)),
            command_line(&session.command),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(sessions.iter().map(row)).collect();
    let lines = table(&rows, width);
    let mut text = format!("{}\n", lines[0]);
    for (line, session) in lines[1..].iter().zip(sessions) {
        match session.life {
            Life::Ended if styled => text.push_str(&format!("\x1b[2m{line}\x1b[0m\n")),
            Life::Ended | Life::Running | Life::Unknown | Life::Damaged => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

/// Its state, and what a person should not miss.
fn status(session: &SessionView) -> String {
    let mut text = state(session);
    if session.damaged.is_some() {
        text.push_str(", JOURNAL DAMAGED");
    }
    if session.stranger_ms.is_some() {
        text.push_str(", TYPED BY UNKNOWN");
    }
    if session.asks > 0 {
        text.push_str(", asks");
    }
    text
}

/// Who may type now; a frozen session says so.
fn holder(session: &SessionView) -> String {
    let holder = session.turn.holder.as_ref().map_or("-".to_owned(), |holder| holder.actor.to_string());
    if session.turn.frozen.is_some() { format!("{holder} frozen") } else { holder }
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
    if let Some(ended) = session.ended_ms {
        rows.push(("ended", moment(ended, now)));
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

fn attached(client: &ClientView, now: TimeMs) -> String {
    let tty = if client.tty.is_empty() { "no terminal".into() } else { visible(&client.tty) };
    let mode = if client.read_only { ", read-only" } else { "" };
    let since = moment(client.since_ms, now);
    let who = client.actor.as_ref().map_or(String::new(), |actor| format!(" {actor}"));
    format!("{}{who} on {tty}, {}, process {}{mode}, since {since}", client.id, client.size, client.pid)
}

/// The names of all live sessions, one a line; completes nothing where no host runs.
pub fn names(here: &Here) -> Result<u8, Failure> {
    // Pressing Tab must not create a key.
    let Some(who) = here.who_if_there() else { return Ok(0) };
    let Ok(mut connection) = holdfast_client::connect(&here.home, &who) else { return Ok(0) };
    let sessions = connection.call::<op::List>(&ListParams { all: false })?;
    let lines: String = sessions.iter().map(|session| format!("{}\n", session.name)).collect();
    show::print(lines)?;
    Ok(0)
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
        insta::assert_snapshot!(listed(&all, 1_065_000, Some(88), true).replace('\x1b', "ESC"), @r"
        NAME     STATE                   SIZE   CLIENTS  TURN              AGE  COMMAND
        main     running                 80x24  0        -                 1m   sh -c 'echo \u{…
        held     running                 80x24  0        agent:claude      1m   sh -c 'echo \u{…
        still    running                 80x24  0        human:ann frozen  1m   sh -c 'echo \u{…
        old      unknown keeper version  80x24  0        -                 1m   sh -c 'echo \u{…
        ESC[2mbuild.2  killed by signal 9      80x24  0        -                 1m   sh -c 'echo \u{…ESC[0m
        ESC[2mlost     lost                    80x24  0        -                 1m   sh -c 'echo \u{…ESC[0m
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
