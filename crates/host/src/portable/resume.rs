//! What is run in a session whose processes came from a checkpoint: they do not know that it is another life.
//!
//! The command runs in the session's namespaces as root, with the variables of the new life. It is in the journal before it runs; what it
//! says is in `on_resume.log`.

use crate::lives::Began;
use crate::lives::kept::KeptBirth;
use crate::session::{Session, Shared};
use crate::spawn;
use std::io;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long it may take: it tells others, and does no work.
const RUN_MAX: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the session's command for it, if it has one.
pub(crate) fn run(shared: &Shared, session: &Rc<Session>, began: Began) {
    let spec = session.state.borrow().spec.clone();
    let Some(command) = spec.portable.as_ref().and_then(|portable| portable.on_resume.clone()) else { return };
    let Ok(tree) = session.portable_tree() else { return };
    let made = spawn::install(&shared.home.state, spawn::PORTABLE);
    let seen = crate::portable::seen_dir(session, &spec);
    let dir = session.dir.clone();
    let word = if began == Began::Forked { "fork" } else { "restore" };
    let (incarnation, fence) = (session.incarnation(), session.fence().0);
    let session = Rc::clone(session);
    tokio::task::spawn_local(async move {
        let done = crate::off_thread(move || {
            let kept = KeptBirth::load(&dir);
            let mut run = Command::new(made?);
            run.arg("enter").arg(tree.init.to_string()).arg(&spec.cwd).arg(dir.join("on_resume.log"));
            run.args(["/bin/sh", "-c", &command]).env_clear();
            run.envs(kept.env.iter().filter_map(|pair| pair.split_once('=')));
            run.env("HOLDFAST_SESSION", spec.id.to_string()).env("HOLDFAST_SESSION_NAME", spec.name.as_str());
            run.env("HOLDFAST_LIFE", seen.join(crate::lives::LIFE)).env("HOLDFAST_RESUMED", word);
            run.env("HOLDFAST_INCARNATION", incarnation.to_string()).env("HOLDFAST_FENCE", fence.to_string());
            waited(run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
        });
        if let Err(error) = done.await {
            session
                .set_note(format!("its command for --on-resume failed ({error}): see on_resume.log in its directory"));
        }
    });
}

fn waited(mut child: std::process::Child) -> io::Result<()> {
    let deadline = Instant::now() + RUN_MAX;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if Instant::now() > deadline => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::other("it took too long"));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}
