//! A session's life from a checkpoint.

use super::{Portable, criu, is_left, kept};
use crate::registry::Registry;
use crate::session::Session;
use crate::store::Spec;
use crate::{off_thread, spawn};
use holdfast_abi::start::{PREFACE_BYTES_MAX, Start};
use holdfast_authority::{Ask, Restored};
use holdfast_types::{Actor, Home, SessionName, Size, terms_of};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::Life;
use holdfast_wire::portable::{RestoreAnswer, RestoreParams, RestoredView};
use holdfast_wire::runs::RunId;
use holdfast_wire::{Code, Fault};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// Where a restore works, in the session's directory.
const WORK: &str = "restore";
/// Written by the keeper's child once the processes are back.
const DONE: &str = "done";
/// What was said before CRIU wrote a log.
const SAID: &str = "said";
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(2);
/// Processes of the last life end with its keeper: so often and with this pause they are looked for.
const LEFT_LOOKS: u32 = 200;
const LEFT_PAUSE: Duration = Duration::from_millis(10);

/// A checkpoint that was found good, and is to be restored.
#[derive(Debug, Clone)]
pub(crate) struct Restore {
    pub(super) manifest: kept::Manifest,
    pub(super) criu: PathBuf,
    pub(super) screen: Vec<u8>,
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
        let before = before.unwrap_or_default();
        Portable { stopped_for: None, at_prompt: self.at_prompt(), restored: Some(Box::new(restored)), ..before }
    }

    /// The checkpoint.
    pub fn id(&self) -> &str {
        &self.manifest.view.id
    }

    /// The run that was on, and goes on.
    pub fn run(&self) -> Option<RunId> {
        self.manifest.run
    }

    /// Connections that are cut.
    pub fn cut(&self) -> &[String] {
        &self.manifest.view.cut
    }

    /// What is told about it above the restored screen.
    pub fn lines(&self, incarnation: u32, came_from: Option<&str>) -> Vec<String> {
        let how =
            came_from.map_or_else(|| format!("restored from {}", self.id()), |machine| format!("moved from {machine}"));
        let mut lines = vec![format!("holdfast: life {incarnation} begins here, {how}")];
        lines.extend(self.cut().iter().take(6).map(|cut| format!("connection cut: {cut}")));
        lines
    }

    /// What is told above the screen of a branch.
    pub fn branch_lines(&self, spec: &Spec) -> Vec<String> {
        let parent = spec.portable.as_ref().and_then(|portable| portable.branch.as_ref()).map(|branch| &branch.of.name);
        let parent = parent.map_or("another session", SessionName::as_str);
        let mut lines = vec![format!("holdfast: {} begins here, a branch of {parent}", spec.name)];
        lines.extend(self.cut().iter().take(6).map(|cut| format!("connection cut: {cut}")));
        lines
    }

    /// For the journal.
    pub fn record(&self, hook: Option<String>, came_from: Option<String>) -> Restored {
        Restored { checkpoint: self.id().to_owned(), cut: self.cut().to_vec(), hook, came_from }
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

    /// Where CRIU reads its image.
    fn image(&self, dir: &Path) -> PathBuf {
        match self.manifest.packed.is_empty() {
            true => kept::image(dir, self.id()),
            false => dir.join(WORK).join("img"),
        }
    }

    /// Makes the directory in which a restore works, with the image's unpacked files in it.
    pub async fn unpack(&self, dir: &Path) -> io::Result<()> {
        let (dir, manifest, img) = (dir.to_owned(), self.manifest.clone(), self.image(dir));
        off_thread(move || {
            anew(&dir)?;
            if manifest.packed.is_empty() {
                return Ok(());
            }
            kept::unpack(&dir, &manifest, &img).inspect_err(|_| drop(std::fs::remove_dir_all(&img)))
        })
        .await
    }

    /// The keeper's child has CRIU bring the processes back.
    pub fn orders(&self, home: &Home, dir: &Path, portable: &Portable, start: &mut Start) -> io::Result<()> {
        let (id, work) = (self.id(), dir.join(WORK));
        let source = |mount: &str| portable.source(dir, mount);
        let mounts = &self.manifest.view.mounts;
        let criu = criu::restore(&self.criu, &self.image(dir), &work, &self.manifest.terminal(), mounts, source);
        let helper = spawn::install(&home.state, spawn::PORTABLE)?;
        let library = spawn::install(&home.state, spawn::CTTY)?;
        let input = kept::place(dir).join(id).join("input");
        let canonical = if self.manifest.canonical { "1" } else { "0" };
        let words = [work.join(DONE), work.join(SAID), input].map(PathBuf::into_os_string).into_iter();
        let words = words.chain([canonical.into()]).chain(criu).map(OsStringExt::into_vec);
        if let Some(branch) = &portable.branch {
            branch.make(dir)?;
        }
        start.argv = vec![helper.into_os_string().into_vec()];
        start.argv.extend(portable.within(dir, &work.join(SAID)));
        start.argv.push(b"restore".to_vec());
        start.argv.extend(words);
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
        let work = dir.join(WORK);
        let waited = self.wait_in(&work, keeper).await;
        let img = self.image(dir);
        if img.starts_with(&work) {
            // The next restore removes what cannot be removed now.
            let _ = off_thread(move || std::fs::remove_dir_all(img)).await;
        }
        waited
    }

    async fn wait_in(&self, work: &Path, keeper: &mut Child) -> Result<(), Fault> {
        loop {
            if work.join(DONE).exists() {
                return Ok(());
            }
            if !matches!(keeper.try_wait(), Ok(None)) {
                let said = std::fs::read_to_string(work.join(SAID)).unwrap_or_default();
                let log = work.join("restore.log");
                let why = if log.exists() { criu::errors_in(&log) } else { said.trim().to_owned() };
                return Err(Fault::new(Code::CannotStart, format!("{} cannot be restored: {why}", self.id())).hint(
                    "the checkpoint is as it was; CRIU's words are in `restore/restore.log` in the session's directory",
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Whether the restore that was begun last in this directory brought the processes back.
pub(super) fn is_done(dir: &Path) -> bool {
    dir.join(WORK).join(DONE).exists()
}

/// An empty directory for a restore.
fn anew(dir: &Path) -> io::Result<()> {
    let work = dir.join(WORK);
    match std::fs::remove_dir_all(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    crate::store::make_dir(&work)
}

/// Whether a checkpoint can be restored here: it is whole, and the machine has what it needs. Blocks.
fn prepare(home: &Home, dir: &Path, portable: &Portable, id: &str) -> io::Result<Restore> {
    let manifest = kept::load(dir, id)?;
    kept::verify(dir, &manifest)?;
    kept::fits(dir, &manifest)?;
    let criu =
        criu::find(&home.state).ok_or_else(|| io::Error::other("CRIU is not installed: holdfast doctor --fix"))?;
    if let Some(branch) = &portable.branch {
        branch.make(dir)?;
    }
    for mount in &manifest.view.mounts {
        if !portable.source(dir, mount).exists() {
            return Err(io::Error::other(format!("{mount} is not there")));
        }
    }
    if !super::program_of(dir).is_file() {
        return Err(io::Error::other("the program that was its init is gone from the session's directory"));
    }
    criu::fits_processor(&criu, &kept::image(dir, id))
        .map_err(|error| io::Error::other(format!("this processor lacks what it was made with: {error}")))?;
    let seen = portable.own.as_ref().map_or(dir, Path::new);
    // Processes of the last life end with its keeper.
    for _ in 0..LEFT_LOOKS {
        if !is_left(dir, seen) {
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
        session.must_be_home()?;
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
        let portable = session.portable().unwrap_or_default();
        let prepared = off_thread(move || prepare(&home, &dir, &portable, &wanted)).await;
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
