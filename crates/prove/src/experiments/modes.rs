//! The failure modes: what breaks, what can be observed then, and what is not provided.

use super::claim::start;
use crate::place::{HUMAN, Place, alive, kill};
use crate::terminal::Terminal;
use crate::trial::{Stop, Trial, broken, wait};
use crate::web::Web;
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Waits until a session's shell is at its prompt.
pub fn at_prompt(place: &Place, session: &str) -> Result<(), Stop> {
    wait("the prompt", || place.json(&["state", session]).is_ok_and(|state| state["state"] == "idle_prompt"))
}

fn number(pid: &Value) -> Result<u32, Stop> {
    pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| broken("a process id", pid))
}

/// A reader that was cut off goes on at its offset and gets every unit once.
pub fn client_loss(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    let job = start(&place, HUMAN, "long")?;
    let identity = job.identity()?;
    let web = Web::open(&place)?;
    let token = Web::token(&place, "agent:sdk", "observe")?;
    let (_, mut offset, mut text) = web.output(&token, "long", 0)?;
    for _ in 0..5 {
        // Each one is a new client that knows nothing but the offset.
        let web = Web::open(&place)?;
        job.goes_on()?;
        let (from, to, more) = web.output(&token, "long", offset)?;
        t.check("a new client goes on at the offset", from == offset, from)?;
        offset = to;
        text += &more;
    }
    let units = every_unit_once(&text)?;
    job.undisturbed(&identity)?;
    t.figure("units read by six clients one after the other, none missing or doubled", units);
    Ok(())
}

/// The host is killed again and again under output.
pub fn host_crash(t: &mut Trial) -> Result<(), Stop> {
    const KILLS: usize = 5;
    let place = t.place()?;
    let job = start(&place, HUMAN, "long")?;
    let identity = job.identity()?;
    let (mut text, mut offset) = (String::new(), 0);
    let mut read = |offset: &mut u64| -> Result<(), Stop> {
        let answer = place.ok(&["logs", "long", "--from", &offset.to_string()])?;
        *offset += answer.len() as u64;
        text += &answer;
        Ok(())
    };
    for _ in 0..KILLS {
        read(&mut offset)?;
        place.kill_host()?;
        job.goes_on()?;
    }
    let began = Instant::now();
    read(&mut offset)?;
    t.figure("answer of a new host after the last kill, ms", began.elapsed().as_millis());
    let units = every_unit_once(&text)?;
    job.undisturbed(&identity)?;
    t.saw(format!("{KILLS} hosts were killed; the job is the same process, and its output was read without a gap"));
    t.figure("units read across the kills, none missing or doubled", units);
    place.ok(&["journal", "long", "--verify"])?;
    t.saw("the journal's chain verifies");
    Ok(())
}

/// How many units a text shows; each must be there once, in order, from the first on.
fn every_unit_once(text: &str) -> Result<u64, Stop> {
    let mut expected = 1;
    // The last line may be cut.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Some(unit) = line.trim().strip_prefix("compiled unit ") else { continue };
        if unit.parse() != Ok(expected) {
            return Err(Stop::Broken(format!("unit {expected} is expected, and there is {unit}")));
        }
        expected += 1;
    }
    match expected {
        1..5 => Err(Stop::Broken("too little output to tell anything".into())),
        _ => Ok(expected - 1),
    }
}

/// The process that holds the session dies with the whole tree, as in a reboot.
pub fn host_death(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["recover"]) {
        return Err(Stop::NotProvided("this program has no `recover`".into()));
    }
    let place = t.place()?;
    place.ok(&["new", "-d", "work", "--", "bash", "--norc", "--noprofile"])?;
    at_prompt(&place, "work")?;
    place.ok(&["run", "work", "--", "echo before; cd /"])?;
    let before = place.json(&["info", "work"])?;
    let (pid, keeper) = (number(&before["pid"])?, number(&before["keeper_pid"])?);
    kill(keeper);
    wait("the session's process is gone", || !alive(pid))?;
    t.saw(format!("the keeper, process {keeper}, was killed (-9), and the shell died with its terminal"));
    let mut lost = before.clone();
    wait("the session is reported as lost", || {
        lost = place.json(&["info", "work"]).unwrap_or_default();
        lost["life"] == "lost"
    })?;
    t.check("the same identity is listed as lost", lost["id"] == before["id"], &lost["id"])?;
    t.check("its screen is still there", place.ok(&["screen", "work"])?.contains("before"), "no screen")?;

    let began = Instant::now();
    place.ok(&["recover", "work"])?;
    t.figure("recovery, ms", began.elapsed().as_millis());
    at_prompt(&place, "work")?;
    let after = place.json(&["info", "work"])?;
    t.check(
        "it runs again under the same identity",
        after["id"] == before["id"] && after["life"] == "running",
        &after,
    )?;
    t.check("in a later life", after["incarnation"].as_u64() > before["incarnation"].as_u64(), &after["incarnation"])?;
    t.check(
        "behind a higher fence",
        after["turn"]["fence"].as_u64() > before["turn"]["fence"].as_u64(),
        &after["turn"],
    )?;
    let again = place.json(&["recover", "work"])?;
    t.check("a second recovery gives no second life", again["began"] == false, &again)?;
    let cwd = place.ok(&["run", "work", "--", "pwd; echo $HOLDFAST_INCARNATION"])?;
    t.saw(format!("the new shell says: {}", cwd.trim().replace('\n', ", life ")));
    place.ok(&["journal", "work", "--verify"])?;
    t.saw("one journal for both lives, and its chain verifies");
    Ok(())
}

/// A program is connected to a server of somebody else when its session dies.
pub fn outside_connection(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["recover"]) {
        return Err(Stop::NotProvided("this program has no `recover`".into()));
    }
    let place = t.place()?;
    let server = TcpListener::bind("127.0.0.1:0").map_err(|error| broken("a server", error))?;
    let address = server.local_addr().map_err(|error| broken("a server", error))?;
    t.saw(format!("somebody else's server is at {address}"));
    // The host looks at a session's processes some seconds after something happened there, later on a busy machine.
    let mut named = None;
    for patience in [4, 8, 16].map(Duration::from_secs) {
        let name = format!("client-{}", patience.as_secs());
        let cut = cut_off(&place, &server, &name, patience)?;
        if cut.to_string().contains(&address.to_string()) {
            named = Some(name);
            break;
        }
    }
    let Some(name) = named else { return Err(Stop::Broken("the cut connection was not named".into())) };
    t.saw("the session was lost; the other side saw the connection end, and `info` names it as cut");
    place.ok(&["recover", &name])?;
    at_prompt(&place, &name)?;
    server.set_nonblocking(true).map_err(|error| broken("a server", error))?;
    t.check("the recovered session did not connect again by itself", server.accept().is_err(), "a connection")
}

/// Kills a session that is connected to a server; which connections are named as cut.
fn cut_off(place: &Place, server: &TcpListener, name: &str, patience: Duration) -> Result<Value, Stop> {
    let port = server.local_addr().map_err(|error| broken("a server", error))?.port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo connected; exec cat");
    place.ok(&["new", "-d", name, "--", "bash", "-c", &connect])?;
    let (mut peer, _) = server.accept().map_err(|error| broken("a server", error))?;
    peer.set_read_timeout(Some(patience)).map_err(|error| broken("a server", error))?;
    // Nothing comes: this is the time that the host has.
    let _ = peer.read(&mut [0; 1]);
    kill(number(&place.json(&["info", name])?["keeper_pid"])?);
    let mut lost = Value::Null;
    wait("the session is reported as lost", || {
        lost = place.json(&["info", name]).unwrap_or_default();
        lost["life"] == "lost"
    })?;
    match peer.read(&mut [0; 1]) {
        Ok(0) => Ok(lost["lost"]["connected"].clone()),
        other => Err(Stop::Broken(format!("the other side still has the connection: {other:?}"))),
    }
}

/// Branches of a live session.
pub fn fork(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["fork"]) {
        return Err(Stop::NotProvided("this program has no `fork`".into()));
    }
    let place = t.place()?;
    let started = place.run(&["new", "-d", "work", "--portable", "--", "bash", "--norc", "--noprofile"])?;
    if started.status != 0 {
        return Err(Stop::NotProvided(format!("forks need root and CRIU here: {}", started.err.trim())));
    }
    at_prompt(&place, "work")?;
    // Holdfast's own directory is in no branch: the work is elsewhere.
    let file = place.path("result");
    std::fs::write(&file, "of the session\n").map_err(|error| broken("a file", error))?;
    place.ok(&["run", "work", "--", "V=forty-two"])?;
    let began = Instant::now();
    let made = place.json(&["fork", "work", "--as-names", "left,right"])?;
    t.figure("fork in two, ms", began.elapsed().as_millis());
    t.figure("the session stood still, ms", &made["still_ms"]);
    for name in ["work", "left", "right"] {
        at_prompt(&place, name)?;
        let said = place.ok(&["run", name, "--", "echo $V"])?;
        t.check(&format!("{name} goes on with the memory of then"), said.contains("forty-two"), &said)?;
    }
    let info = |name: &str| place.json(&["info", name]);
    let (parent, left, right) = (info("work")?, info("left")?, info("right")?);
    t.check("each has an identity of its own", left["id"] != right["id"] && left["id"] != parent["id"], &left["id"])?;
    t.check("a branch names its parent", left["forked_from"]["session"] == parent["id"], &left["forked_from"])?;
    for name in ["left", "right"] {
        place.ok(&["run", name, "--", &format!("echo {name} > result")])?;
    }
    let real = std::fs::read_to_string(&file).unwrap_or_default();
    t.check("what branches write is not in the real files", real == "of the session\n", &real)?;
    let differs = place.ok(&["fork", "diff", "left", "right"])?;
    t.check("`fork diff` names the file in which they differ", differs.contains("result"), &differs)?;
    place.ok(&["fork", "keep", "left"])?;
    let real = std::fs::read_to_string(&file).unwrap_or_default();
    t.check("the branch that is kept is applied", real == "left\n", &real)?;
    place.ok(&["fork", "discard", "right"])?;
    place.ok(&["journal", "left", "--verify"])?;
    t.saw("the other was discarded with its files; the journals verify");
    Ok(())
}

/// A run under a key, asked for again and again across host kills.
pub fn no_replay(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    let ledger = place.path("effects");
    place.ok(&["new", "-d", "work", "--", "bash", "--norc", "--noprofile"])?;
    at_prompt(&place, "work")?;
    let effect = format!("echo sent >> {}", ledger.display());
    let run = ["run", "work", "--key", "send-the-mail", "--", &effect];
    place.ok(&run)?;
    for _ in 0..3 {
        place.kill_host()?;
        place.ok(&run)?;
    }
    let mut back = Terminal::start(&mut place.command(&["attach", "work"]))?;
    back.until_shown("sent")?;
    back.kill();
    let effects = std::fs::read_to_string(&ledger).unwrap_or_default();
    t.check(
        "asked for four times, across three killed hosts and a re-attach: one effect",
        effects == "sent\n",
        &effects,
    )?;
    Ok(())
}

/// A migration that stops half-way at a question, and whose operator is gone.
pub fn half_done(t: &mut Trial) -> Result<(), Stop> {
    let place = t.place()?;
    let ledger = place.path("migrated");
    let script = format!(
        "for n in 1 2 3 4; do echo step-$n >> {0}; done; printf 'step 5 conflicts. overwrite? [y/N] '; read a; echo answered-$a >> {0}; exec cat",
        ledger.display()
    );
    let mut operator = Terminal::start(&mut place.command(&["new", "migration", "--", "bash", "-c", &script]))?;
    operator.until_shown("overwrite?")?;
    let before = place.json(&["info", "migration"])?["pid"].clone();
    operator.kill();
    t.saw("its operator was killed in the middle of a question");
    let state = place.json(&["state", "migration"])?;
    let waits = state["state"].as_str().unwrap_or_default().to_owned();
    t.check("the session says that it waits for input", waits.contains("waiting") || waits.contains("input"), &state)?;
    t.saw(format!("state: {waits}"));
    let applied = std::fs::read_to_string(&ledger).unwrap_or_default();
    t.check("four of its steps are applied, once each", applied == "step-1\nstep-2\nstep-3\nstep-4\n", &applied)?;
    place.ok(&["take", "migration"]).or_else(|_| place.ok(&["seize", "migration", "--reason", "answer it"]))?;
    place.ok(&["send", "migration", "--enter", "y"])?;
    wait("the answer reaches it", || std::fs::read_to_string(&ledger).is_ok_and(|text| text.contains("answered-y")))?;
    let after = place.json(&["info", "migration"])?["pid"].clone();
    t.check("the same process took the answer and went on", before == after, &after)?;
    Ok(())
}
