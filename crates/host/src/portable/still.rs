//! Processes that stand still for a checkpoint or a move: how they go on, or end.
//!
//! A file says that they do, so that the next host finds out what is to become of them. Nothing lets them go on before that is known: their
//! next life may have begun.

use super::kept;
use super::make::{Plan, QUIET};
use crate::off_thread;
use crate::session::Session;
use holdfast_observe::graph::ProcessId;
use holdfast_observe::portable as seen;
use holdfast_store::{CHECKPOINT, Survives, get_json, put_json};
use holdfast_wire::params::Life;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Says that processes stand still for a checkpoint.
const STILL: &str = "still";
/// How long it may take to start waits again: what a keeper has frozen for its lease does not answer.
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// How long a killed keeper's processes may take to be gone.
const GONE: Duration = Duration::from_secs(5);

/// In the file [`STILL`].
#[derive(Debug, Default, Serialize, Deserialize)]
struct Still {
    init: u32,
    start: u64,
    /// Those that were stopped before, and stay so.
    before: Vec<ProcessId>,
}

/// Says on disk that they do.
pub(super) fn note(dir: &Path, init: u32, start: u64, before: &[ProcessId]) -> io::Result<()> {
    put_json(&CHECKPOINT, &kept::place(dir), STILL, &Still { init, start, before: before.to_vec() }, Survives::Crash)
}

/// They do no more.
pub(super) fn no_more(dir: &Path) -> io::Result<()> {
    std::fs::remove_file(kept::place(dir).join(STILL))
}

/// Processes that stand still, with an image of them.
#[derive(Debug)]
pub(crate) struct Standing {
    session: Rc<Session>,
    plan: Plan,
    before: Vec<ProcessId>,
}

impl Standing {
    pub(super) fn new(session: Rc<Session>, plan: Plan, before: Vec<ProcessId>) -> Standing {
        Standing { session, plan, before }
    }

    /// They go on as if nothing had happened.
    pub(crate) async fn go_on(self) {
        let Standing { session, plan, before } = self;
        let gone_on = off_thread(move || go_on(&plan, &before)).await;
        session.lease_stands(false);
        if let Err(error) = gone_on {
            tracing::warn!("processes may stand still: {error}");
        }
    }
}

impl Session {
    /// Its processes end; it is lost until it is restored.
    pub(crate) async fn stop_for(&self, checkpoint: &str) {
        {
            let mut state = self.state.borrow_mut();
            if let Some(portable) = &mut state.spec.portable {
                portable.stopped_for = Some(checkpoint.to_owned());
            }
            let saved = state.spec.save(&self.dir);
            state.notes.wrote(crate::notes::About::Spec, "that it was stopped could not be recorded", &saved);
        }
        holdfast_pause::task_point("checkpoint.stops").await;
        self.kill_keeper().await;
        let _ = no_more(&self.dir);
    }

    /// Ends the session's processes, and then its keeper, which is lost with them.
    ///
    /// In this order: with the keeper its terminal goes, and a terminal that hangs up wakes the session's leader, also one that stands
    /// still because its next life has begun.
    pub(crate) async fn kill_keeper(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        let (keeper, waits) = (self.state.borrow().keeper_pid, self.state.borrow().waits);
        if let (Ok(tree), Some(child)) = (self.portable_tree(), Pid::from_raw(waits as i32)) {
            // It would tell the keeper that the command has ended.
            let _ = kill_process(child, Signal::STOP);
            seen::kill(tree.init);
        }
        holdfast_pause::task_point("portable.killed").await;
        if let Some(pid) = Pid::from_raw(keeper as i32) {
            let _ = kill_process(pid, Signal::KILL);
        }
        self.until(Some(GONE), || (self.view_life() != Life::Running).then_some(())).await;
    }
}

/// Lets the processes go on as if nothing had happened.
fn go_on(plan: &Plan, before: &[ProcessId]) -> io::Result<()> {
    give_input(plan);
    wait_again(&plan.helper, plan.tree.init);
    if !plan.leased {
        seen::go_on(plan.tree.init, before);
    }
    no_more(&plan.dir)
}

/// Starts waits again that the dump interrupted.
fn wait_again(helper: &Path, init: u32) {
    let all = seen::inside(init).unwrap_or_default();
    let pids = all.iter().filter(|process| process.state == 'T').map(|process| process.pid.to_string());
    let mut command = Command::new(helper);
    let command = command.arg("mend").args(pids).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let deadline = Instant::now() + AGAIN_MAX;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(QUIET);
    }
}

/// Puts it back.
fn give_input(plan: &Plan) {
    let _ = input(plan, "give").status();
}

/// What was typed and not read: `take` it out of the terminal, or `give` it back.
pub(super) fn input(plan: &Plan, word: &str) -> Command {
    let mut command = Command::new(&plan.helper);
    command.arg(word).arg(format!("/proc/{}/root/dev/pts/0", plan.tree.init));
    command.arg(kept::partial(&plan.dir, &plan.id).join("input"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Lets processes go on that stand still for a checkpoint whose host was killed; ends what that host had begun to end. CRIU itself goes on
/// without its host: it is waited for.
pub(crate) async fn mend(session: Rc<Session>) {
    let _one = session.reviving.lock().await;
    if session.view_life() != Life::Running {
        return;
    }
    holdfast_pause::task_point("checkpoint.mends").await;
    // Asks the store of leases where it must, for as long as that takes: nothing goes on before that is known.
    let is_elsewhere = match session.settle_passing().await {
        Ok(is_elsewhere) => is_elsewhere,
        Err(fault) => return session.set_note(format!("it stands still: {}", fault.message)),
    };
    // Its home is another host, or its processes are gone already and only its keeper is left.
    if is_elsewhere || half_ended(&session) {
        session.kill_keeper().await;
        let _ = no_more(&session.dir);
        return;
    }
    let dir = session.dir.clone();
    let leased = session.state.borrow().spec.lease.is_some();
    let mended = off_thread(move || {
        let place = kept::place(&dir);
        let still: Option<Still> = get_json(&CHECKPOINT, &place.join(STILL)).ok().flatten();
        let Some(still) = still else {
            kept::sweep(&dir);
            return Ok(());
        };
        let deadline = Instant::now() + Duration::from_secs(120);
        while is_dumping(&place) && Instant::now() < deadline {
            std::thread::sleep(QUIET);
        }
        if !leased && holdfast_observe::process_id(still.init).is_some_and(|init| init.start == still.start) {
            seen::go_on(still.init, &still.before);
        }
        kept::sweep(&dir);
        no_more(&dir)
    });
    {
        // It runs: it was not stopped.
        let mut state = session.state.borrow_mut();
        if state.spec.portable.as_mut().is_some_and(|portable| portable.stopped_for.take().is_some()) {
            let saved = state.spec.save(&session.dir);
            state.notes.wrote(crate::notes::About::Spec, "that it goes on could not be recorded", &saved);
        }
    }
    let mended = mended.await;
    if session.lease_stands(false) {
        session.lease_connected();
    }
    if let Err(error) = mended {
        tracing::warn!(session = %session.id, "a checkpoint that was not finished cannot be cleared away: {error}");
    }
}

/// Whether its processes stand still for a checkpoint or a move that an earlier host did not finish.
pub(crate) fn stands(session: &Session) -> bool {
    session.portable().is_some() && kept::place(&session.dir).join(STILL).exists()
}

/// A host was killed while it ended the session's processes: it stopped the one that waits for them first, see `kill_keeper`.
fn half_ended(session: &Session) -> bool {
    let waits = session.state.borrow().waits;
    let is_to_stop = session.portable().is_some_and(|portable| portable.stopped_for.is_some());
    seen::is_stopped(waits) && (is_to_stop || session.portable_tree().is_err())
}

/// Whether a CRIU is at work on a checkpoint below this place.
fn is_dumping(place: &Path) -> bool {
    let text = place.to_string_lossy();
    let is_its = |name: String| {
        let line = std::fs::read(format!("/proc/{name}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&format!("-D\0{text}/"))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(is_its)
}
