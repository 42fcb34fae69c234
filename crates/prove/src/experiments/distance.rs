//! The same session from another machine: a relay that both sides dial out to, and a second home in the place of that machine.

use super::claim::start;
use crate::place::{HUMAN, Place};
use crate::trial::{Stop, Trial, broken, wait};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

/// A running relay.
pub struct Relay {
    child: Child,
    url: String,
}

impl Relay {
    fn start(place: &Place) -> Result<Relay, Stop> {
        let mut child = place
            .command(&["relay", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| broken("a relay", error))?;
        let Some(said) = child.stdout.take() else { return Err(broken("a relay", "no pipe")) };
        let mut said = BufReader::new(said);
        let mut line = String::new();
        let read = said.read_line(&mut line);
        // It may say more; nobody reads that, and it must not stop for it.
        std::thread::spawn(move || std::io::copy(&mut said.take(1 << 20), &mut std::io::sink()));
        let url = line.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned);
        let relay = Relay { child, url: url.unwrap_or_default() };
        match read {
            Ok(1..) if !relay.url.is_empty() => Ok(relay),
            _ => Err(broken("a relay", format!("it says {line:?}"))),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Joins two homes by a relay; the relay, and what the near one calls the far one.
pub fn join(here: &Place, there: &Place) -> Result<(Relay, String), Stop> {
    let relay = Relay::start(there)?;
    there.ok(&["relay", "add", &relay.url])?;
    let invite = there.json(&["invite", "--host-wide"])?;
    let (accepted, said) = accept(here, invite["link"].as_str().unwrap_or_default())?;
    if !accepted {
        return Err(broken("holdfast accept", said.trim()));
    }
    let hosts = here.json(&["hosts", "ls"])?;
    Ok((relay, hosts[0]["name"].as_str().unwrap_or_default().to_owned()))
}

/// Reaches a session through a relay, acts there, and is revoked.
pub fn distance(t: &mut Trial) -> Result<(), Stop> {
    if !t.program().has(&["relay"]) {
        return Err(Stop::NotProvided("this program has no `relay`".into()));
    }
    let (here, there) = (t.place()?, t.place()?);
    let relay = Relay::start(&there)?;
    let job = start(&there, HUMAN, "build")?;
    let identity = job.identity()?;
    there.ok(&["relay", "add", &relay.url])?;
    t.saw("the host waits at a relay; it opened no port");
    let invite = there.json(&["invite", "--host-wide"])?;
    let link = invite["link"].as_str().unwrap_or_default().to_owned();
    let accepted = accept(&here, &link)?;
    t.check("another machine accepts the invite", accepted.0, &accepted.1)?;
    let again = accept(&here, &link)?;
    t.check("the invite serves once", !again.0, &again.1)?;

    let hosts = here.json(&["hosts", "ls"])?;
    let host = hosts[0]["name"].as_str().unwrap_or_default().to_owned();
    let session = format!("{host}/build");
    let seen = here.ok(&["screen", &session])?;
    t.check("it sees the job in the middle of its work", seen.contains("compiled unit"), &seen)?;
    here.ok(&["send", &session, "--enter", "from afar"])?;
    wait("what it types reaches the job", || job.typed().iter().any(|line| line == "from afar"))?;
    t.saw("it types, and the job gets the line");
    let journal = there.journal("build")?;
    let typed = journal.iter().find(|record| record["act"].to_string().contains("typed"));
    let by = typed.map(|record| record["by"]["actor"]["handle"].as_str().unwrap_or_default().to_owned());
    let is_remote = by.as_deref().is_some_and(|by| by.starts_with(HUMAN) && by != HUMAN);
    t.check("the journal names the actor with its machine", is_remote, by.unwrap_or_default())?;

    let devices = there.json(&["devices", "ls"])?;
    there.ok(&["devices", "revoke", devices[0]["id"].as_str().unwrap_or_default()])?;
    let refused = here.run(&["screen", &session])?;
    t.check("a revoked device is out", refused.status != 0, &refused.out)?;
    job.undisturbed(&identity)?;
    t.saw("the same process all along");
    Ok(())
}

/// Accepts an invite, whose link no other program sees; whether that went well, and what was said.
fn accept(here: &Place, link: &str) -> Result<(bool, String), Stop> {
    let fail = |error: std::io::Error| broken("holdfast accept", error);
    let mut child = here
        .command(&["accept", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(link.as_bytes()).map_err(fail)?;
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(64 * 1024).read_to_string(&mut said).map_err(fail)?;
    }
    Ok((child.wait().map_err(fail)?.success(), said))
}
