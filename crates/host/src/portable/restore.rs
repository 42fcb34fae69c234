//! A session's life from a checkpoint.

use super::{Portable, criu, is_left, kept};
use crate::registry::Registry;
use crate::session::Session;
use crate::{off_thread, spawn};
use holdfast_abi::start::{PREFACE_BYTES_MAX, Start};
use holdfast_authority::Ask;
use holdfast_types::{Actor, Home, Size, terms_of};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::Life;
use holdfast_wire::portable::{RestoreAnswer, RestoreParams, RestoredView};
use holdfast_wire::{Code, Fault};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// Written by the keeper's child once the processes are back.
const DONE: &str = "done";
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(2);
/// Processes of the last life end with its keeper: so often and with this pause they are looked for.
const LEFT_LOOKS: u32 = 200;
const LEFT_PAUSE: Duration = Duration::from_millis(10);

/// A checkpoint that was found good, and is to be restored.
#[derive(Debug, Clone)]
pub(crate) struct Restore {
    manifest: kept::Manifest,
    criu: PathBuf,
    screen: Vec<u8>,
}

impl Restore {
    /// The terminal's size then: programs have drawn for it.
    pub fn size(&self) -> Size {
        self.manifest.view.size
    }

    /// How the session is portable in its next life.
    pub fn portable(&self, before: Option<Portable>) -> Portable {
        let view = &self.manifest.view;
        let restored = RestoredView { checkpoint: view.id.clone(), made_ms: view.at_ms, cut: view.cut.clone() };
        Portable { stopped_for: None, restored: Some(Box::new(restored)), ..before.unwrap_or_default() }
    }

    /// The checkpoint.
    pub fn id(&self) -> &str {
        &self.manifest.view.id
    }

    /// Connections that are cut.
    pub fn cut(&self) -> &[String] {
        &self.manifest.view.cut
    }

    /// What is told about it above the restored screen.
    pub fn lines(&self, incarnation: u32) -> Vec<String> {
        let mut lines = vec![format!("holdfast: life {incarnation} begins here, restored from {}", self.id())];
        lines.extend(self.cut().iter().take(6).map(|cut| format!("connection cut: {cut}")));
        lines
    }

    /// Its shell stood at a prompt, and can be asked what stands in its line.
    pub fn at_prompt(&self) -> bool {
        self.manifest.prompt
    }

    /// The output begins with these lines, and the screen as it was.
    pub fn preface(&self, lines: &[u8]) -> Vec<u8> {
        let rows = usize::from(self.size().rows());
        // All that stands there now becomes history.
        let mut text = [lines, &vec![b'\n'; rows], holdfast_screen::CLEAR.as_bytes()].concat();
        if text.len() + self.screen.len() <= PREFACE_BYTES_MAX {
            text.extend_from_slice(&self.screen);
        }
        text
    }

    /// The keeper's child has CRIU bring the processes back.
    pub fn orders(&self, home: &Home, dir: &Path, start: &mut Start) -> io::Result<()> {
        let work = dir.join("restore");
        let _ = std::fs::remove_dir_all(&work);
        crate::store::make_dir(&work)?;
        let id = self.id();
        let image = kept::image(dir, id);
        let criu = criu::restore(&self.criu, &image, &work, &self.manifest.terminal(), &self.manifest.view.mounts);
        let helper = spawn::install(&home.state, spawn::PORTABLE)?;
        let library = spawn::install(&home.state, spawn::CTTY)?;
        let input = kept::place(dir).join(id).join("input");
        let canonical = if self.manifest.canonical { "1" } else { "0" };
        let words = [helper.as_os_str(), "restore".as_ref()].map(ToOwned::to_owned).into_iter();
        let files = [work.join(DONE), work.join("said"), input].map(PathBuf::into_os_string);
        start.argv = words.chain(files).chain([canonical.into()]).chain(criu).map(OsStringExt::into_vec).collect();
        start.argv0 = Vec::new();
        start.cwd = b"/".to_vec();
        start.env = vec![
            b"PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_vec(),
            [b"LD_PRELOAD=", library.as_os_str().as_bytes()].concat(),
            format!("CRIU_CTTY={}", criu::leaders(&self.manifest.terminal())).into_bytes(),
        ];
        Ok(())
    }

    /// Waits until the processes are back, or their keeper is gone with what was made of them.
    pub async fn wait(&self, dir: &Path, keeper: &mut Child) -> Result<(), Fault> {
        let work = dir.join("restore");
        loop {
            if work.join(DONE).exists() {
                return Ok(());
            }
            if !matches!(keeper.try_wait(), Ok(None)) {
                let why = criu::errors_in(&work.join("restore.log"));
                return Err(Fault::new(Code::CannotStart, format!("{} cannot be restored: {why}", self.id())).hint(
                    "the checkpoint is as it was; CRIU's words are in `restore/restore.log` in the session's directory",
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Whether a checkpoint can be restored here: it is whole, and the machine has what it needs. Blocks.
fn prepare(home: &Home, dir: &Path, id: &str) -> io::Result<Restore> {
    let manifest = kept::load(dir, id)?;
    kept::verify(dir, &manifest)?;
    let criu =
        criu::find(&home.state).ok_or_else(|| io::Error::other("CRIU is not installed: holdfast doctor --fix"))?;
    for mount in &manifest.view.mounts {
        if !Path::new(mount).exists() {
            return Err(io::Error::other(format!("{mount} is not there")));
        }
    }
    if !super::program_of(dir).is_file() {
        return Err(io::Error::other("the program that was its init is gone from the session's directory"));
    }
    criu::fits_processor(&criu, &kept::image(dir, id))
        .map_err(|error| io::Error::other(format!("this processor lacks what it was made with: {error}")))?;
    // Processes of the last life end with its keeper.
    for _ in 0..LEFT_LOOKS {
        if !is_left(dir) {
            let screen = kept::small(dir, id, "screen");
            return Ok(Restore { manifest, criu, screen });
        }
        std::thread::sleep(LEFT_PAUSE);
    }
    Err(io::Error::other("processes of its last life are still there"))
}

impl Registry {
    /// Gives a session that does not run a life from a checkpoint.
    pub(crate) async fn restore(
        &self,
        params: &RestoreParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<RestoreAnswer, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        let ask = Ask::other(const { terms_of("session.restore") }, params.detail());
        self.may(&session, &params.session, actor, ask.needs().1)?;
        let _one = session.reviving.lock().await;
        let name = session.name();
        match session.view_life() {
            Life::Lost => {}
            Life::Running => {
                return Err(Fault::new(
                    Code::Busy,
                    format!("session {name} is running: a session has one life at a time"),
                )
                .hint(format!(
                    "to go back to a checkpoint, stop it first: holdfast checkpoint {name}, or kill its keeper"
                )));
            }
            Life::Ended | Life::Unknown | Life::Damaged => {
                return Err(session.running().await.err().unwrap_or_else(|| {
                    Fault::new(Code::Busy, format!("session {name} has just changed")).hint("try again")
                }));
            }
        }
        let id = match &params.checkpoint {
            Some(id) => id.clone(),
            None => session.newest_checkpoint().ok_or_else(|| {
                Fault::new(Code::NotFound, format!("session {name} has no checkpoint"))
                    .hint(format!("without its processes: holdfast recover {name}"))
            })?,
        };
        let (home, dir, wanted) = (self.shared.home.clone(), session.dir.clone(), id.clone());
        let prepared = off_thread(move || prepare(&home, &dir, &wanted)).await;
        let restore = prepared.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Fault::new(Code::NotFound, format!("{name} has no checkpoint {id:?}"))
                .hint("list them: holdfast checkpoints ls"),
            _ => Fault::new(Code::Damaged, format!("{id} cannot be restored: {error}"))
                .hint(format!("another one: holdfast checkpoints ls; without its processes: holdfast recover {name}")),
        })?;
        let checkpoint = restore.manifest.view.clone();
        session.restore(std::rc::Rc::clone(&self.shared), restore, ask, params, actor, released).await?;
        Ok(RestoreAnswer { session: session.view(), checkpoint })
    }
}

impl Session {
    /// Its newest checkpoint that can be read. Reads files.
    pub(crate) fn newest_checkpoint(&self) -> Option<String> {
        let name = self.state.borrow().spec.name.clone();
        kept::newest(&self.dir, self.id, &name)
    }
}
