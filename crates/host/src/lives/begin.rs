//! Beginning another life: from a proof that the last one is over to a keeper that runs.
//!
//! Each step can be the host's last. What it left is found by the next host, which goes on from there: the act is in the journal
//! and open until a keeper runs, so the life that was asked for is begun, once.

use super::dead::{self, Alive, Grave};
use super::kept::{KeptBirth, KeptLife};
use super::preface::{self, Next, Stood};
use super::{Began, RING_BEFORE, boot_id};
use crate::birth::{self, Birth};
use crate::moving::carried::Carried;
use crate::orders::{integrate, orders};
use crate::portable::Portable;
use crate::portable::restore::Restore;
use crate::session::{Session, Shared, drive};
use crate::shells::Integrated;
use crate::spawn;
use crate::store::Spec;
use holdfast_abi::log::{Kind, Record};
use holdfast_abi::ring::{Base, Ring};
use holdfast_abi::start::{PREFACE_BYTES_MAX, Start, Started};
use holdfast_authority::Input;
use holdfast_types::Exit;
use holdfast_wire::attention::What;
use holdfast_wire::lives::LostView;
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Child;
use std::rc::Rc;

/// After a power cut the ring's head on disk may be older than what others have seen. So much is left out of the count, that no offset
/// names two bytes: more than a terminal puts out in the half minute that a kernel keeps pages from the disk.
const UNSURE_BYTES: u64 = 1 << 36;
/// Longest beginning of a log in which a record is looked for: the longest record.
const RECORD_BYTES_MAX: u64 = 64 * 1024;
/// Streams that are remembered: as many as a keeper has.
const STREAMS_MAX: usize = 128;

/// Processes of a session that was lost just now may be dying: so often, and with this pause, they are looked at again.
const DYING_LOOKS: u32 = 20;
const DYING_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
/// How long ago that may be.
const DYING_MS: u64 = 1000;

/// How another life is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    /// Run the command again.
    pub run: bool,
    /// The caller's variables.
    pub env: Vec<String>,
    /// The checkpoint that its processes come back from; nothing is started then.
    pub restore: Option<Rc<Restore>>,
}

/// What the ring of the last life says.
#[derive(Debug, Default)]
struct Before {
    base: Base,
    streams: Vec<(u64, u64)>,
    /// The machine was restarted since.
    rebooted: bool,
}

fn cannot(error: io::Error) -> Fault {
    Fault::new(Code::CannotStart, format!("cannot begin another life: {error}"))
        .hint("is the disk full? check with: holdfast doctor")
}

/// Gives a session another life. Its caller sees to it that there is one at a time, and that it is recorded.
pub(crate) async fn begin(shared: Rc<Shared>, session: Rc<Session>, how: How) -> Result<(), Fault> {
    session.must_be_home()?;
    let old = session.state.borrow().spec.clone();
    let carried = Carried::load(&session.dir);
    let (dir, id) = (session.dir.clone(), session.id);
    let found = crate::off_thread(move || look(&dir, id)).await.map_err(cannot)?;
    let (_grave, before) = found.map_err(|alive| refused(&old, alive))?;
    let incarnation = session.incarnation() + 1;
    // Whoever has a copy of its files could try: only who has its record begins.
    let claim = session.claim(shared.leases.as_deref(), old.lease.as_ref(), incarnation).await?;
    let incarnation = claim.map_or(incarnation, |claim| claim.incarnation);
    let base = session.base_behind(before.base, before.rebooted);
    let (alternate, column) = session.stood();
    let stood = Stood { alternate, column };
    let kept = KeptBirth::load(&session.dir);
    let (birth, mut next) = birth_of(&shared, &old, &kept, &how, session.last_cwd(), base)?;
    // From here on the files change. The ring of the last life is out of the way, so that a keeper can make its own.
    move_ring(&session.dir).map_err(cannot)?;
    holdfast_pause::task_point("recover.moved").await;
    session.decide(Input::Began { incarnation })?;
    if let Some(restore) = &how.restore {
        let hook = old.portable.as_ref().and_then(|portable| portable.on_resume.clone());
        let from = carried.as_ref().map(|carried| carried.machine.clone());
        session.decide(Input::Restored(restore.record(hook, from)))?;
    }
    holdfast_pause::task_point("recover.recorded").await;
    next.incarnation = incarnation;
    let secret = crate::random_token();
    let lost = settled(&session, old.lost.clone()).await;
    next.failed = old.exit.filter(|exit| *exit != Exit::Lost).map(|exit| exit.to_string());
    let mut spec = spec_of(&session, &old, &how, &secret, next.not_run.is_some().then(|| birth.command[0].clone()));
    let lease = session.start_lease(&mut spec.lease, claim);
    let mut start = orders(&session, &spec, &birth, secret)?;
    start.lease = lease;
    let mut shell = None;
    if let Some(restore) = &how.restore {
        (spec.shell, spec.stand_in) = (old.shell, old.stand_in.clone());
        start.preface = restore.preface(&preface::plainly(
            stood,
            &restore.lines(incarnation, carried.as_ref().map(|carried| carried.machine.as_str())),
        ));
    } else {
        shell = integrate(&shared, &session, &mut start, &birth);
        spec.shell = shell.as_ref().map(|shell| shell.kind);
        crate::wall::put_up(&session, &spec, &mut start)?;
        crate::seam::put_up(&shared, &session, &spec, &mut start).await?;
        crate::portable::dress(&shared.home, &session, &spec, &mut start)?;
        start.preface = preface::text(lost.as_deref(), stood, &next);
    }
    start.preface.truncate(PREFACE_BYTES_MAX);
    start.streams = before.streams;
    match keep(&shared, &session, &spec, shell.as_ref(), &how, &mut start).await {
        Ok((child, started)) => {
            holdfast_pause::task_point("recover.started").await;
            session.settle_runs(how.restore.as_ref().and_then(|restore| restore.run()));
            let at_prompt = how.restore.as_ref().is_some_and(|restore| restore.at_prompt());
            session.reborn(spec, base, (child, started), at_prompt);
            if how.restore.is_some() {
                crate::portable::resume::run(&shared, &session, Began::Restored);
            }
            let _ = std::fs::remove_file(session.dir.join(RING_BEFORE));
            Carried::used(&session.dir);
            session.tell_watchers(recovered(incarnation, &how));
            let driven = Rc::clone(&session);
            tokio::task::spawn_local(async {
                tokio::task::yield_now().await;
                drive(driven).await;
            });
            Ok(())
        }
        Err(fault) => {
            // As it was: nothing runs, and it can be tried again.
            put_back(&session.dir);
            let _ = old.save(&session.dir);
            let _ = session.decide(Input::Ended { exit: old.exit.unwrap_or(Exit::Lost) });
            session.release_lease();
            Err(fault)
        }
    }
}

/// For those who watch: which life began, and what was cut.
fn recovered(incarnation: u32, how: &How) -> What {
    let (checkpoint, cut) = match &how.restore {
        Some(restore) => (Some(restore.id().to_owned()), restore.cut().to_vec()),
        None => (None, Vec::new()),
    };
    What::Recovered { incarnation, checkpoint, cut }
}

/// Begins the first life of a branch, from its own copy of the checkpoint.
pub(crate) async fn begin_branch(
    shared: Rc<Shared>,
    session: Rc<Session>,
    restore: Restore,
    base: Base,
    forked: Input,
) -> Result<(), Fault> {
    let mut spec = session.state.borrow().spec.clone();
    let how = How { restore: Some(Rc::new(restore)), ..How::default() };
    let kept = KeptBirth::load(&session.dir);
    let (birth, _) = birth_of(&shared, &spec, &kept, &how, None, base)?;
    let (alternate, column) = session.stood();
    let secret = crate::random_token();
    spec.secret = holdfast_types::hex_text(&secret);
    let claim = session.claim(shared.leases.as_deref(), spec.lease.as_ref(), 1).await?;
    let lease = session.start_lease(&mut spec.lease, claim);
    // A host that finds no spec finds no session; one that finds it, one that nobody has.
    spec.save(&session.dir).map_err(cannot)?;
    session.decide(forked)?;
    holdfast_pause::task_point("branch.recorded").await;
    let mut start = orders(&session, &spec, &birth, secret)?;
    start.lease = lease;
    if let Some(restore) = &how.restore {
        start.preface = restore.preface(&preface::plainly(Stood { alternate, column }, &restore.branch_lines(&spec)));
        start.preface.truncate(PREFACE_BYTES_MAX);
    }
    let (child, started) = keep(&shared, &session, &spec, None, &how, &mut start).await?;
    let at_prompt = how.restore.as_ref().is_some_and(|restore| restore.at_prompt());
    session.reborn(spec, base, (child, started), at_prompt);
    crate::portable::resume::run(&shared, &session, Began::Forked);
    tokio::task::spawn_local(async {
        tokio::task::yield_now().await;
        drive(session).await;
    });
    Ok(())
}

/// What is kept of the next life.
fn spec_of(session: &Session, old: &Spec, how: &How, secret: &[u8], stand_in: Option<String>) -> Spec {
    Spec {
        secret: holdfast_types::hex_text(secret),
        begun_ms: Some(crate::now_ms()),
        size: how.restore.as_ref().map_or_else(|| session.state.borrow().core.size, |restore| restore.size()),
        stand_in,
        portable: match &how.restore {
            Some(restore) => Some(restore.portable(old.portable.clone())),
            None => old.portable.clone().map(|portable| Portable {
                stopped_for: None,
                restored: None,
                at_prompt: false,
                ..portable
            }),
        },
        shell: None,
        exit: None,
        ended_ms: None,
        lost: None,
        end_asked: false,
        reaped: None,
        ..old.clone()
    }
}

/// Starts the keeper of the next life, once everything it needs is on disk.
async fn keep(
    shared: &Shared,
    session: &Session,
    spec: &Spec,
    shell: Option<&Integrated>,
    how: &How,
    start: &mut Start,
) -> Result<(Child, Started), Fault> {
    spec.save(&session.dir).map_err(cannot)?;
    let began = match &how.restore {
        Some(_) if session.incarnation() <= 1 => Began::Forked,
        Some(_) => Began::Restored,
        None => Began::Recovered,
    };
    super::tell(session, spec, began).map_err(cannot)?;
    if let Some(shell) = shell {
        shell.prepare(&session.shell_dir()).map_err(cannot)?;
    }
    holdfast_pause::task_point("recover.saved").await;
    let keeper = spawn::install(&shared.home.state, spawn::KEEPER).map_err(cannot)?;
    let apart = crate::portable::apart(&shared.home, spec).map_err(cannot)?;
    if let Some(restore) = &how.restore {
        let portable = spec.portable.clone().unwrap_or_default();
        restore.unpack(&session.dir).await.map_err(cannot)?;
        restore.orders(&shared.home, &session.dir, &portable, start).map_err(cannot)?;
    }
    let (mut child, started) = spawn::start(&keeper, apart.as_deref(), None, &session.id.to_string(), start).await?;
    if let Some(restore) = &how.restore {
        holdfast_pause::task_point("restore.started").await;
        if let Err(fault) = restore.wait(&session.dir, &mut child).await {
            // The keeper is dead, and all that was made: its files go, and the last life's come back.
            let _ = std::fs::remove_file(session.dir.join("ring"));
            let _ = std::fs::remove_file(&session.socket);
            return Err(fault);
        }
    }
    Ok((child, started))
}

/// What was lost, with those of its processes that go on. Those of a session that was lost just now may be dying.
async fn settled(session: &Session, lost: Option<Box<LostView>>) -> Option<Box<LostView>> {
    let mut lost = lost?;
    let just_now = crate::now_ms().saturating_sub(lost.at_ms) < DYING_MS;
    super::survivors(&session.dir, &mut lost);
    for _ in 0..if just_now { DYING_LOOKS } else { 0 } {
        if !lost.processes.iter().any(|process| process.survives) {
            break;
        }
        tokio::time::sleep(DYING_PAUSE).await;
        super::survivors(&session.dir, &mut lost);
    }
    Some(lost)
}

fn refused(spec: &Spec, alive: Alive) -> Fault {
    let name = &spec.name;
    match alive {
        Alive::Locked => {
            Fault::new(Code::Busy, format!("the keeper of {name} is still alive, or another host is recovering it"))
                .hint("a session has one life at a time; look for its keeper: pgrep -af holdfast-keeper")
        }
        Alive::Process(pid) => {
            Fault::new(Code::Busy, format!("process {pid} is the keeper of {name}, and is still alive"))
                .hint(format!("a session has one life at a time; if it is of no use any more, end it: kill {pid}"))
        }
    }
}

/// Proves that the last life is over, and reads its ring. Blocks.
fn look(dir: &Path, id: holdfast_types::SessionId) -> io::Result<Result<(Grave, Before), Alive>> {
    let life = KeptLife::load(dir);
    let rebooted = life.is_some_and(|life| !life.boot.is_empty() && life.boot != boot_id());
    let grave = match dead::prove(dir, id, rebooted)? {
        Ok(grave) => grave,
        Err(alive) => return Ok(Err(alive)),
    };
    if let Some(carried) = Carried::load(dir).filter(|_| grave.ring.is_none()) {
        // It has not lived here yet: what its last ring said came with it.
        return Ok(Ok((grave, Before { base: carried.base(), streams: carried.streams, rebooted: false })));
    }
    let file = match &grave.ring {
        Some(ring) => Some(ring.try_clone()?),
        None => File::open(dir.join(RING_BEFORE)).ok(),
    };
    // A damaged ring costs its bytes; the count goes on from what the screen knows.
    let ring = file.and_then(|file| Ring::open_lean(file).ok());
    let base = ring.as_ref().map_or_else(Base::default, |ring| Base { output: ring.head(), log: ring.log_head() });
    let streams = ring.as_ref().map(streams_of).unwrap_or_default();
    Ok(Ok((grave, Before { base, streams, rebooted: rebooted || ring.is_none() })))
}

/// What each input stream had, from the log: the least recently used first.
pub(crate) fn streams_of(ring: &Ring) -> Vec<(u64, u64)> {
    let head = ring.log_head();
    let oldest = head.saturating_sub(ring.log_bytes()).max(ring.base().log);
    let mut bytes = vec![0; usize::try_from(head - oldest).unwrap_or(0)];
    ring.copy_log(oldest, &mut bytes);
    // Where the log went around, its oldest bytes are the rest of a record: the first place from which records lead to the head
    // exactly is the beginning of one.
    let starts = (0..bytes.len().min(RECORD_BYTES_MAX as usize)).step_by(8);
    let Some(records) = starts.map(|at| records(&bytes[at..])).find(Option::is_some).flatten() else {
        return Vec::new();
    };
    let mut last: HashMap<u64, (usize, u64)> = HashMap::new();
    for (n, (stream, seq)) in records.into_iter().enumerate() {
        let had = last.entry(stream).or_default();
        *had = (n, had.1.max(seq));
    }
    let mut all: Vec<(usize, u64, u64)> = last.into_iter().map(|(stream, (n, seq))| (n, stream, seq)).collect();
    all.sort_unstable();
    all.into_iter().rev().take(STREAMS_MAX).rev().map(|(_, stream, seq)| (stream, seq)).collect()
}

/// The inputs among records that fill these bytes to the last; none where they do not.
fn records(mut bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut inputs = Vec::new();
    while !bytes.is_empty() {
        let (record, length) = Record::decode(bytes)?;
        match record.kind {
            Kind::Input => inputs.push((record.stream, record.seq)),
            Kind::Resize | Kind::Signal => {}
            Kind::Unknown(_) => return None,
        }
        bytes = &bytes[length..];
    }
    Some(inputs)
}

/// Out of the way of the next keeper, which makes a file of that name.
fn move_ring(dir: &Path) -> io::Result<()> {
    match std::fs::rename(dir.join("ring"), dir.join(RING_BEFORE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

/// A life that did not come to be: its files are as they were.
pub(crate) fn put_back(dir: &Path) {
    if !dir.join("ring").exists() {
        let _ = std::fs::rename(dir.join(RING_BEFORE), dir.join("ring"));
    }
}

/// Where the next life counts from.
pub(crate) fn next_base(base: Base, known: u64, rebooted: bool) -> Base {
    let unsure = if rebooted { UNSURE_BYTES } else { 0 };
    Base { output: base.output.max(known) + unsure, log: base.log + unsure }
}

/// What the next life starts with.
fn birth_of(
    shared: &Shared,
    spec: &Spec,
    kept: &KeptBirth,
    how: &How,
    last_cwd: Option<String>,
    base: Base,
) -> Result<(Birth, Next), Fault> {
    let is_shell = crate::shells::is_interactive(&spec.command);
    let other = spec.user.as_deref().map(birth::other).transpose()?;
    let again = how.run || is_shell;
    let shell = || other.as_ref().map_or_else(|| birth::shell(shared.config.shell.clone()), birth::shell_of);
    let command = if again { spec.command.clone() } else { vec![shell()] };
    let wanted = last_cwd.unwrap_or_else(|| spec.cwd.clone());
    let fallbacks = [wanted.clone(), spec.cwd.clone()];
    let there = fallbacks.iter().find(|cwd| other.is_some() || birth::is_directory(cwd)).cloned();
    let cwd = there.unwrap_or_else(birth::home);
    let (env, missing) = match &other {
        Some(other) => (birth::environment_of(other, &kept.env, &cwd, &shell()), Vec::new()),
        None => environment(kept, &how.env, &cwd, &shell()),
    };
    let next = Next {
        moved_to: (cwd != wanted).then(|| cwd.clone()),
        not_run: (!again).then(|| spec.command.join(" ")),
        missing,
        ..Next::default()
    };
    let birth = Birth {
        name: None,
        command,
        argv0: kept.argv0.clone().filter(|_| again),
        cwd,
        env,
        size: spec.size,
        ring_bytes: Some(spec.ring_bytes),
        base,
        umask: kept.umask,
        nofile: kept.nofile,
        integrate: if other.is_some() { Some(false) } else { kept.integrate },
        other,
        wall: spec.wall.clone(),
        gate: spec.gate,
        is_portable: spec.portable.is_some(),
        on_resume: spec.portable.as_ref().and_then(|portable| portable.on_resume.clone()),
        checkpoint_every_ms: spec.portable.as_ref().and_then(|portable| portable.every_ms),
        portable: spec.portable.clone(),
        lease: None,
        recover: spec.recover,
        restart_on_failure: spec.restart_on_failure,
        reap_after: spec.reap_after,
    };
    Ok((birth, next))
}

/// The host's user's environment, what is kept of the session's, and of the caller's what the session had; and what is missing.
fn environment(kept: &KeptBirth, callers: &[String], cwd: &str, shell: &str) -> (Vec<String>, Vec<String>) {
    let mut env = birth::environment(cwd, shell);
    for pair in &kept.env {
        if let Some((key, value)) = pair.split_once('=').filter(|(key, _)| *key != "PWD") {
            birth::set(&mut env, key, value);
        }
    }
    let mut missing = Vec::new();
    for key in &kept.withheld {
        let start = format!("{key}=");
        match callers.iter().find_map(|pair| pair.strip_prefix(&start)).filter(|value| !value.contains('\0')) {
            Some(value) => birth::set(&mut env, key, value),
            None if env.iter().any(|pair| pair.starts_with(&start)) || birth::is_of_a_login(key) => {}
            None => missing.push(key.clone()),
        }
    }
    (env, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(out: &mut Vec<u8>, stream: u64, seq: u64, bytes: &[u8]) {
        let kind = Kind::Input;
        let count = bytes.len() as u16;
        Record { kind, flags: 0, count, connection: 1, fence: 1, at: 0, stream, seq, time_ms: 1, bytes }.encode(out);
    }

    #[test]
    fn what_streams_had_is_found_also_where_the_log_went_around() {
        let mut log = Vec::new();
        for seq in 1..=3 {
            record(&mut log, 7, seq, b"abcdefghijkl");
        }
        record(&mut log, 9, 1, b"");
        assert_eq!(records(&log).unwrap(), [(7, 1), (7, 2), (7, 3), (9, 1)]);
        let cut = &log[24..];
        let found = (0..cut.len()).step_by(8).find_map(|at| records(&cut[at..])).unwrap();
        assert_eq!(found, [(7, 2), (7, 3), (9, 1)]);
        assert_eq!(records(&log[..log.len() - 8]), None);
    }

    #[test]
    fn of_the_callers_variables_only_those_count_that_the_session_had() {
        let kept = KeptBirth {
            env: vec!["EDITOR=vi".into(), "PWD=/old".into()],
            withheld: vec!["AWS_PROFILE".into(), "API_KEY".into(), "TMUX".into()],
            ..KeptBirth::default()
        };
        let callers = ["AWS_PROFILE=dev", "LD_PRELOAD=/evil.so"].map(str::to_owned);
        let (env, missing) = environment(&kept, &callers, "/srv", "/bin/sh");
        for pair in ["EDITOR=vi", "AWS_PROFILE=dev", "PWD=/srv"] {
            assert!(env.contains(&pair.to_owned()), "{pair}: {env:?}");
        }
        assert!(!env.iter().any(|pair| pair.starts_with("LD_PRELOAD=/evil")), "{env:?}");
        assert_eq!(missing, ["API_KEY"]);
    }

    #[test]
    fn after_a_restart_of_the_machine_no_offset_is_given_twice() {
        let base = Base { output: 100, log: 64 };
        assert_eq!(next_base(base, 90, false), base);
        assert_eq!(next_base(base, 120, false).output, 120);
        let next = next_base(base, 90, true);
        assert!(next.output >= 100 + UNSURE_BYTES && next.log >= 64 + UNSURE_BYTES && next.is_sound());
    }
}
