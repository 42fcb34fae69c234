//! The falsifiable claim: ownerless, open to any client, outliving its creator.

use crate::job::Job;
use crate::mcp::Agent;
use crate::place::{HUMAN, Place};
use crate::terminal::Terminal;
use crate::trial::{Stop, Trial, wait};
use crate::web::Web;
use serde_json::json;

/// Starts the job as a session of its own, by an actor.
pub fn start(place: &Place, actor: &str, name: &str) -> Result<Job, Stop> {
    let job = Job::new(place)?;
    let command = job.command();
    let mut args = vec!["new", "-d", name, "--"];
    args.extend(command.iter().map(String::as_str));
    place.ok_as(actor, &args)?;
    Ok(job)
}

/// Every participant leaves or is revoked, the one that started the session first; then the host is killed.
pub fn ownerless(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    place.actor("agent:spawner")?;
    place.actor("agent:other")?;
    let job = start(&place, "agent:spawner", "orphan")?;
    let identity = job.identity()?;
    t.saw(format!("agent:spawner started the session; the job is process {}", identity.pid));

    let mut human = Terminal::start(&mut place.command(&["attach", "orphan"]))?;
    human.until_shown("compiled unit")?;
    let mut other = Agent::start(&place, "agent:other")?;
    other.ok("read_output", &json!({ "session": "orphan" }))?;

    place.ok(&["actor", "remove", "agent:spawner"])?;
    job.undisturbed(&identity)?;
    t.saw("the spawner's key was removed: the job goes on");
    drop(other);
    human.kill();
    job.undisturbed(&identity)?;
    t.saw("the other clients were killed: the job goes on, with nobody attached");
    let killed = place.kill_host()?;
    job.undisturbed(&identity)?;
    t.saw(format!("the host, process {killed}, was killed (-9): the job goes on"));

    let refused = place.run_as("agent:other", &["end", "orphan", "--json"])?;
    t.check(
        "an agent without the right cannot end it",
        refused.status != 0 && refused.code() == "denied",
        &refused.err,
    )?;
    job.undisturbed(&identity)?;
    place.ok(&["end", "orphan", "--grace", "1"])?;
    t.saw("a human with the right ended it");
    Ok(())
}

/// Clients of every kind see the same bytes at the same offsets.
pub fn any_client(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    place.ok(&["new", "-d", "shared", "--", "cat"])?;
    let web = Web::open(&place)?;
    let token = Web::token(&place, "agent:sdk", "observe")?;

    let terminal = Terminal::start(&mut place.command(&["attach", "shared", "-r"]))?;
    let mut page = web.socket(&token)?;
    page.ask("session.attach", &json!({ "session": "shared", "size": "80x24" }), &[])?;
    let mut agent = Agent::start(&place, "agent:ai")?;
    wait("the terminal is attached", || {
        place
            .json(&["info", "shared"])
            .is_ok_and(|info| info["clients"].as_array().is_some_and(|clients| clients.len() >= 2))
    })?;
    let head = place.json(&["info", "shared"])?["head"].as_u64().unwrap_or_default();
    place.ok(&["send", "shared", "--enter", "seen by everybody"])?;

    terminal.until_shown("seen by everybody")?;
    t.saw("a terminal shows it");
    let mut expected = String::new();
    wait("the output has the line and its echo", || {
        expected = place.ok(&["logs", "shared", "--from", &head.to_string()]).unwrap_or_default();
        expected.matches("seen by everybody").count() == 2
    })?;
    t.saw("the command line reads it by offset");
    let (_, _, text) = web.output(&token, "shared", head)?;
    t.check("HTTP gives the same bytes", text == expected, &text)?;
    let (_, bytes) = page.ask("session.read", &json!({ "session": "shared", "from": head, "wait_ms": 5000 }), &[])?;
    t.check("a WebSocket gives the same bytes", bytes == expected.as_bytes(), String::from_utf8_lossy(&bytes))?;
    let seen = agent.ok("read_output", &json!({ "session": "shared", "from": head }))?;
    t.check("MCP shows it", seen.to_string().contains("seen by everybody"), &seen)?;
    t.figure("kinds of client at once", 5);
    Ok(())
}

/// The client that created the session dies, by a signal and by the loss of its terminal.
pub fn outlives(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    for (name, how) in [("killed", "kill -9 of the client"), ("hung-up", "the loss of its terminal")] {
        let job_dir = place.path("job");
        let _ = std::fs::remove_dir_all(&job_dir);
        let job = Job::new(&place)?;
        let command = job.command();
        let mut args = vec!["new", name, "--"];
        args.extend(command.iter().map(String::as_str));
        let mut creator = Terminal::start(&mut place.command(&args))?;
        let identity = job.identity()?;
        if name == "killed" {
            creator.kill();
        } else {
            creator.hang_up()?;
        }
        job.undisturbed(&identity)?;
        t.saw(format!("the session goes on after {how}, process {}", identity.pid));
        let attached = Terminal::start(&mut place.command(&["attach", name]))?;
        attached.until_shown("compiled unit")?;
        t.saw(format!("{HUMAN} is back in it from another terminal"));
        place.ok(&["end", name, "--grace", "0"])?;
    }
    Ok(())
}
