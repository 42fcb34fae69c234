//! Sessions that nobody uses are ended by policy; those that work, are kept or have no policy are not.

use super::modes::at_prompt;
use crate::place::{Place, alive};
use crate::trial::{Stop, Trial, broken, wait};
use serde_json::Value;

/// The policy of the experiment: idle for two seconds, warned for the second of them.
const POLICY: &str = "reap_after = \"2s\"\nreap_warn = \"1s\"\n";

fn shell(place: &Place, name: &str) -> Result<(), Stop> {
    place.ok(&["new", "-d", name, "--", "bash", "--norc", "--noprofile"])?;
    at_prompt(place, name)
}

fn info(place: &Place, name: &str) -> Value {
    place.json(&["info", name]).unwrap_or_default()
}

/// Whose acts a journal has.
fn is_reapers(act: &Value) -> bool {
    act["by"].to_string().contains("service:reaper")
}

/// An idle session, one that works in the background, and one that somebody keeps.
pub fn reaping(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["keep"]) {
        return Err(Stop::NotProvided("this program has no reaper".into()));
    }
    let place = t.place()?;
    std::fs::write(place.path("home").join("config.toml"), POLICY).map_err(|error| broken("the policy", error))?;
    for name in ["works", "kept", "idle"] {
        shell(&place, name)?;
    }
    place.ok(&["keep", "kept"])?;
    let ledger = place.path("job");
    place.ok(&["run", "works", "--", &format!("sleep 1000 & echo $! > {}", ledger.display())])?;
    let job: u32 =
        std::fs::read_to_string(&ledger).unwrap_or_default().trim().parse().map_err(|e| broken("a job", e))?;

    let mut warned = Value::Null;
    wait("the idle session is warned", || {
        warned = info(&place, "idle");
        warned["reap"]["warned"] == "idle" || warned["life"] == "ended"
    })?;
    t.saw("the session that nobody used was warned before its end");
    wait("the idle session ends", || info(&place, "idle")["life"] == "ended")?;
    let ended = info(&place, "idle");
    t.check("it ended because it was idle", ended["reap"]["reaped"] == "idle", &ended["reap"])?;
    let acts: Vec<Value> = place.journal("idle")?.into_iter().filter(is_reapers).collect();
    t.check("its end is one act of service:reaper in its journal", acts.len() == 1, acts.len())?;
    place.ok(&["journal", "idle", "--verify"])?;
    t.saw("the journal's chain verifies");

    // One that came later has had its time too by then.
    shell(&place, "later")?;
    wait("a later one ends", || info(&place, "later")["life"] == "ended")?;
    for name in ["works", "kept"] {
        let view = info(&place, name);
        t.check("a session that works or is kept lives on", view["life"] == "running", &view["life"])?;
        let acts = place.journal(name)?.into_iter().filter(is_reapers).count();
        t.check("and the reaper did nothing there", acts == 0, acts)?;
    }
    t.check("its job runs as the same process", alive(job), job)?;

    let made = place.run(&["actor", "new", "service:reaper"])?;
    t.check("nobody gets a key for service:reaper", made.status != 0, &made.out)?;
    let forged = place.run_as("service:reaper", &["end", "kept"])?;
    t.check("and nobody ends a session in its name", forged.status != 0, &forged.out)?;
    place.ok(&["keep", "kept", "--off"])?;
    wait("what is kept no longer goes", || info(&place, "kept")["life"] == "ended")?;
    t.saw("once it was kept no longer, it went too");
    let metrics = place.ok(&["host", "metrics"])?;
    let reaped = metrics.lines().find_map(|line| line.strip_prefix("holdfast_reaps_total{why=\"idle\"} "));
    t.figure("sessions reaped, by the host's metrics", reaped.unwrap_or("none"));
    Ok(())
}
