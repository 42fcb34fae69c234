//! Who may write: authority, conflicts, and what one actor leaves behind for another.

use super::modes::at_prompt;
use crate::place::HUMAN;
use crate::socket::Stranger;
use crate::trial::{Stop, Trial, wait};
use crate::web::Web;
use serde_json::json;
use std::collections::BTreeSet;

/// Grant, act, revoke, refuse, hand over, seize; and forged identities.
pub fn authority(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    for actor in ["service:ci", "agent:a", "agent:b"] {
        place.actor(actor)?;
    }
    place.ok(&["new", "-d", "work", "--", "bash", "--norc", "--noprofile"])?;
    at_prompt(&place, "work")?;

    let run = ["run", "work", "--json", "--", "true"];
    let refused = place.run_as("service:ci", &run)?;
    t.check("a service without rights is refused", refused.status != 0, &refused.out)?;
    place.ok(&["grant", "work", "--to", "service:ci", "--can", "observe,run", "--for", "5m"])?;
    place.ok_as("service:ci", &run)?;
    t.saw("after a grant it runs a command");
    place.ok(&["revoke", "work", "--to", "service:ci"])?;
    wait("the turn is free", || place.json(&["turn", "work"]).is_ok_and(|turn| turn["holder"].is_null()))?;
    let refused = place.run_as("service:ci", &run)?;
    t.check("after it was revoked it is refused again", refused.status != 0, &refused.out)?;

    place.ok(&["take", "work"])?;
    place.ok(&["give", "work", "--to", "agent:a"])?;
    place.ok_as("agent:a", &["send", "work", "--enter", "echo by-a"])?;
    t.saw("the human gave the turn to agent:a, and it typed");
    let refused = place.run_as("agent:b", &["send", "work", "--enter", "echo by-b", "--json"])?;
    t.check(
        "agent:b is refused, and the refusal names the holder",
        refused.code() == "turn_held" && refused.err.contains("agent:a"),
        &refused.err,
    )?;
    let seized = place.json(&["seize", "work", "--reason", "prove"])?;
    t.figure("seizure, from request to the last byte of the old holder, µs", &seized["cut_us"]);
    let refused = place.run_as("agent:a", &["send", "work", "--enter", "echo late", "--json"])?;
    t.check("after the human seized the turn, agent:a is refused", refused.code() == "turn_held", &refused.err)?;
    let seized = place.run_as("agent:a", &["seize", "work", "--reason", "mine", "--json"])?;
    t.check("an agent cannot seize it back", seized.status != 0, &seized.out)?;

    let whoami = place.json(&["whoami"])?;
    let mut stranger = Stranger::connect(&place)?;
    stranger.ask("hello", &json!({ "versions": [1] }))?;
    let claims = json!({ "actor": { "id": whoami["actor"]["id"], "handle": HUMAN }, "signature": "00".repeat(64) });
    let answer = stranger.ask("identify", &claims)?;
    t.check("a forged signature of the human's key is refused", answer.get("error").is_some(), &answer)?;
    let answer = stranger.ask("session.list", &json!({}))?;
    t.check("and nothing is answered behind it", answer.get("error").is_some(), &answer)?;
    let web = Web::open(&place)?;
    let token = Web::token(&place, "agent:a", "observe")?;
    let forged: String = token.chars().rev().collect();
    let (status, _) = web.get(&forged, "/v1/sessions")?;
    t.check("a forged token is refused", status == 401, status)?;

    let journal = place.journal("work")?;
    let by = |who: &str, act: &str| {
        journal.iter().any(|record| record["by"]["actor"]["handle"] == who && record["act"].to_string().contains(act))
    };
    for (who, act) in [(HUMAN, "grant"), ("service:ci", "run"), ("agent:a", "typed"), (HUMAN, "seize")] {
        t.check(&format!("the journal has {act:?} by {who}"), by(who, act), "no such record")?;
    }
    place.ok(&["journal", "work", "--verify"])?;
    t.saw("the journal's chain verifies");
    Ok(())
}

/// Two agents write as fast as they can, and neither knows of the other.
pub fn conflict(t: &mut Trial) -> Result<(), Stop> {
    const LINES: usize = 25;
    let place = t.place()?;
    for actor in ["agent:a", "agent:b"] {
        place.actor(actor)?;
    }
    let received = place.path("received");
    let sink = format!("stty -echo; echo ready; exec cat > {}", received.display());
    place.ok(&["new", "-d", "sink", "--", "sh", "-c", &sink])?;
    wait("the program reads", || place.ok(&["screen", "sink"]).is_ok_and(|screen| screen.contains("ready")))?;

    let write = |who: &'static str| -> Result<(BTreeSet<String>, usize), Stop> {
        let (mut acknowledged, mut refused) = (BTreeSet::new(), 0);
        for n in 0..LINES {
            let line = format!("{who} {n} {}", "x".repeat(200));
            let sent = place.run_as(who, &["send", "sink", "--enter", &line, "--json"])?;
            match (sent.status, sent.code().as_str()) {
                (0, _) => drop(acknowledged.insert(line)),
                (_, "turn_held") => refused += 1,
                _ => return Err(Stop::Broken(format!("send failed otherwise: {}", sent.err))),
            }
        }
        Ok((acknowledged, refused))
    };
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| write("agent:a"));
        let b = write("agent:b");
        (a.join().unwrap_or_else(|_| Err(Stop::Broken("a writer panicked".into()))), b)
    });
    let ((a, refused_a), (b, refused_b)) = (a?, b?);
    let expected: BTreeSet<String> = a.union(&b).cloned().collect();
    let lines = || -> Vec<String> {
        std::fs::read_to_string(&received).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    wait("every acknowledged line arrives", || lines().len() >= expected.len())?;
    let lines = lines();
    let distinct: BTreeSet<String> = lines.iter().cloned().collect();
    t.check(
        "each acknowledged line arrived whole and once, and no other",
        distinct == expected && lines.len() == expected.len(),
        lines.len(),
    )?;
    t.check("the one without the turn was refused, by name", refused_a + refused_b > 0, "no refusal")?;
    t.figure("lines acknowledged and received", lines.len());
    t.figure("lines refused because the other had the turn", refused_a + refused_b);
    Ok(())
}

/// An agent changes the shell that a human uses next.
pub fn poisoning(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    place.actor("agent:a")?;
    place.ok(&["new", "-d", "shell", "--", "bash", "--norc", "--noprofile"])?;
    at_prompt(&place, "shell")?;
    let dir = place.path("bin").display().to_string();
    place.ok_as(
        "agent:a",
        &["run", "shell", "--", &format!("export PATH={dir}:$PATH HIDDEN=kept-nowhere; alias ls='ls -a'")],
    )?;
    wait("the turn is free", || place.json(&["turn", "shell"]).is_ok_and(|turn| turn["holder"].is_null()))?;
    place.ok(&["run", "shell", "--", "true"])?;
    let mut env = place.json(&["env", "shell"])?;
    wait("the shell's changes are read", || {
        env = place.json(&["env", "shell"]).unwrap_or_default();
        env["entries"].as_array().is_some_and(|entries| entries.len() >= 2)
    })?;
    // Of PATH each directory is a name of its own: who put it there decides what is run.
    for name in ["PATH", "ls", &dir] {
        let bound = env["entries"].as_array().into_iter().flatten().any(|entry| {
            let text = entry.to_string();
            entry["name"] == name && text.contains("agent:a") && !text.contains(HUMAN)
        });
        t.check(&format!("`{name}` is bound to agent:a, although the human used the shell since"), bound, &env)?;
    }
    let text = env.to_string();
    t.check("the record has names and hashes, no values", !text.contains("kept-nowhere"), "a value")?;
    place.ok(&["run", "shell", "--", "ls"])?;
    let journal = place.ok(&["journal", "shell"])?;
    t.check("the human's `ls` is on record as shaped by agent:a", journal.contains("shaped by agent:a"), &journal)?;
    Ok(())
}
