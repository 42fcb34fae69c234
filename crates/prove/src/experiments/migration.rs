//! A live session goes to another machine: a second home in the place of that machine, joined by a relay.

use super::distance::join;
use super::modes::at_prompt;
use crate::trial::{Stop, Trial, wait};

/// Moves a shell with all it has, and asks for a second life at the place it left.
pub fn migration(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["move"]) {
        return Err(Stop::NotProvided("this program has no `move`".into()));
    }
    let (here, there) = (t.place()?, t.place()?);
    let started = here.run(&["new", "-d", "work", "--portable", "--", "bash", "--norc", "--noprofile"])?;
    if started.status != 0 {
        return Err(Stop::NotProvided(format!("moves need root and CRIU here: {}", started.err.trim())));
    }
    let (_relay, host) = join(&here, &there)?;
    t.saw("two machines know each other through a relay");

    at_prompt(&here, "work")?;
    here.ok(&["run", "work", "--", "V=forty-two"])?;
    here.ok(&["send", "work", "echo half-"])?;
    wait("the half-typed line is shown", || here.ok(&["screen", "work"]).is_ok_and(|text| text.contains("half-")))?;
    let before = here.json(&["info", "work"])?;
    let moved = here.json(&["move", "work", &host])?;
    t.figure("the session stood still, ms", &moved["still_ms"]);
    t.figure("sent, bytes", &moved["sent_bytes"]);
    let after = there.json(&["info", "work"])?;
    t.check("it runs at the other machine under the same identity", after["id"] == before["id"], &after)?;
    t.check("in a later life", after["incarnation"].as_u64() > before["incarnation"].as_u64(), &after["incarnation"])?;
    let fence = |info: &serde_json::Value| info["turn"]["fence"].as_u64();
    t.check("behind a higher fence", fence(&after) > fence(&before), &after["turn"])?;
    here.ok(&["send", &format!("{host}/work"), "--enter", "$V"])?;
    wait("its memory and the half-typed line came along", || {
        there.ok(&["screen", "work"]).is_ok_and(|text| text.contains("\nhalf-forty-two"))
    })?;
    t.saw("its memory and the half-typed line came along");
    for words in [&["send", "work", "x"][..], &["recover", "work"], &["restore", "work"]] {
        let refused = here.run(words)?;
        let what = format!("`{}` where it was is refused: it has no second life", words.join(" "));
        t.check(&what, refused.status != 0 && refused.err.contains("moved"), refused.err.trim())?;
    }
    here.ok(&["journal", "work", "--verify"])?;
    there.ok(&["journal", "work", "--verify"])?;
    t.saw("both journals verify");
    Ok(())
}
