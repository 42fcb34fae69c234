//! The category's acceptance sequence: a job, and clients of every kind that come and go.

use super::distance::join;
use super::modes::at_prompt;
use crate::browser::Browser;
use crate::job::Job;
use crate::mcp::Agent;
use crate::place::{HUMAN, Place};
use crate::sdk;
use crate::terminal::Terminal;
use crate::trial::{Stop, Trial, broken, wait};
use crate::web::Web;
use serde_json::json;

/// t0 to t6.
pub fn acceptance(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    let job = Job::new(&place)?;

    let mut first = Terminal::start(&mut place.command(&["new", "build", "--", "bash", "--norc", "--noprofile"]))?;
    at_prompt(&place, "build")?;
    first.types(&format!("{}\r", job.line()))?;
    let identity = job.identity()?;
    t.saw(format!(
        "t0: a terminal attached and started a job, process {}, started at tick {}",
        identity.pid, identity.started
    ));
    first.until_shown("compiled unit 3")?;
    t.saw("t1: the terminal shows its output");

    first.kill();
    let counted = job.undisturbed(&identity)?;
    t.saw(format!("t2: the terminal was killed (-9); same process, {counted} units"));

    let web = Web::open(&place)?;
    programs_read_it(t, &place, &web)?;
    job.undisturbed(&identity)?;
    browsers_show_it(t, &place, &web)?;
    job.undisturbed(&identity)?;
    an_agent_acts(t, &place, &job)?;

    let here = t.place()?;
    let (relay, host) = join(&here, &place)?;
    let seen = here.ok(&["screen", &format!("{host}/build")])?;
    t.check("t6: another machine sees it through a relay", seen.contains("compiled unit"), &seen)?;
    drop((relay, here));

    let counted = job.undisturbed(&identity)?;
    t.saw(format!("the same process all along: {} units, none missing, none twice", counted));
    t.figure("units counted without a gap", counted);
    is_on_record(t, &place)
}

/// t3.
fn programs_read_it(t: &mut Trial, place: &Place, web: &Web) -> Result<(), Stop> {
    let reader = Web::token(place, "agent:sdk", "observe")?;
    let (from, _, text) = web.output(&reader, "build", 0)?;
    t.check("t3: a client over HTTP sees it in the middle of its work", text.contains("compiled unit"), &text)?;
    t.figure("offset at which the HTTP client joined", from);
    drop(reader);
    for sdk in sdk::all() {
        match sdk {
            Ok(sdk) => {
                let text = sdk.read(place, "build", 0, 1)?;
                t.check(&format!("t3: {} sees it, too", sdk.name), text.contains("compiled unit"), &text)?;
            }
            Err((name, why)) => t.lacks(&format!("t3: {name}"), why),
        }
    }
    Ok(())
}

/// t4.
fn browsers_show_it(t: &mut Trial, place: &Place, web: &Web) -> Result<(), Stop> {
    place.ok(&["actor", "new", "device:phone"])?;
    place.ok(&["grant", "build", "--to", "device:phone", "--can", "observe"])?;
    let token = Web::token(place, "device:phone", "observe")?;
    let mut page = web.socket(&token)?;
    let (attached, painted) = page.ask("session.attach", &json!({ "session": "build", "size": "80x24" }), &[])?;
    let shown = String::from_utf8_lossy(&painted).into_owned();
    t.check("t4: a web client attached and was painted the live screen", shown.contains("compiled unit"), &shown)?;
    let offset = attached["painted"]["offset"].clone();
    let (read, bytes) =
        page.ask("session.read", &json!({ "session": "build", "from": offset, "wait_ms": 5000 }), &[])?;
    t.check("t4: its output goes on at the very next byte", read["from"] == offset && !bytes.is_empty(), &read)?;
    drop(page);
    match Browser::installed() {
        Some(program) => {
            let mut browser = Browser::open(program, place, &web.page(&token, "build"))?;
            browser.until_shown("compiled unit")?;
            t.saw("t4: so was a real browser, which then left");
        }
        None => t.lacks("t4: a browser", "no Chromium is installed; the WebSocket stands for it"),
    }
    Ok(())
}

/// t5.
fn an_agent_acts(t: &mut Trial, place: &Place, job: &Job) -> Result<(), Stop> {
    let mut agent = Agent::start(place, "agent:ai")?;
    let seen = agent.ok("read_output", &json!({ "session": "build" }))?;
    t.check("t5: an AI operator sees it over MCP", seen.to_string().contains("compiled unit"), &seen)?;
    place.ok(&["seize", "build", "--reason", "hand the job to the agent"])?;
    place.ok(&["give", "build", "--to", "agent:ai"])?;
    agent.ok("send_input", &json!({ "session": "build", "text": "use the cache\n" }))?;
    wait("the agent's line reaches the job", || job.typed().iter().any(|line| line == "use the cache"))?;
    t.saw("t5: it acted, once the human gave it the turn");
    Ok(())
}

/// Who did what is in the journal.
fn is_on_record(t: &mut Trial, place: &Place) -> Result<(), Stop> {
    let journal = place.journal("build")?;
    let acted = |who: &str, act: &str| {
        journal.iter().any(|record| record["by"]["actor"]["handle"] == who && record["act"].to_string().contains(act))
    };
    for (who, act) in [(HUMAN, "started"), (HUMAN, "seize"), ("agent:ai", "typed")] {
        t.check(&format!("the journal has {act:?} by {who}"), acted(who, act), "no such record")?;
    }
    let verified = place.run(&["journal", "build", "--verify"])?;
    if verified.status != 0 {
        return Err(broken("journal --verify", verified.err));
    }
    t.saw("the journal's chain verifies");
    Ok(())
}
