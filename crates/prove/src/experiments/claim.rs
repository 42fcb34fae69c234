//! The falsifiable claim: ownerless, outliving its creator. That it is open to any client is in `kinds`.

use crate::job::Job;
use crate::mcp::Agent;
use crate::place::{HUMAN, Place};
use crate::terminal::Terminal;
use crate::trial::{Stop, Trial};
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
    a_console_cannot_end_it(t, &place)?;
    job.undisturbed(&identity)?;
    place.ok(&["end", "orphan", "--grace", "1"])?;
    t.saw("a human with the right ended it");
    Ok(())
}

/// A console over the WebSocket, with a token that says more than its actor may.
fn a_console_cannot_end_it(t: &mut Trial, place: &Place) -> Result<(), Stop> {
    place.actor("device:console")?;
    place.ok(&["grant", "orphan", "--to", "device:console", "--can", "observe"])?;
    let token = Web::token(place, "device:console", "observe,end")?;
    let mut console = Web::open(place)?.socket(&token)?;
    console.ask("session.get", &json!({ "session": "orphan" }), &[])?;
    let ended = console.ask("session.end", &json!({ "session": "orphan", "grace_ms": 0 }), &[]);
    let is_denied = matches!(&ended, Err(Stop::Broken(why)) if why.contains("denied"));
    t.check("nor can a console that may only look, whatever its token says", is_denied, format!("{ended:?}"))
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
