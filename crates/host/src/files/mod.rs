//! Files of a session's working tree: who may look at them and write them, and each write as an act.
//!
//! A look is answered from another thread. A write is worked out there first (what is there, what would be), then judged by the gate
//! with its resolved path, recorded with both hashes, and only then done. Paths never leave the tree: see [`ground`].
//!
//! Sessions of another user and portable ones have no files here: the host would reach them with its own rights, or in its own view of
//! the file system.

pub(crate) mod copy;
mod ground;
mod kept;
mod look;
mod sums;
mod upload;
mod write;

use crate::connection::PROCESS;
use crate::gate::{Act, Asked, Text};
use crate::serve::{Answer, Server, plain, with};
use crate::session::Session;
use crate::shares::aside;
use ground::Ground;
use holdfast_authority::Ask;
use holdfast_gate::{Action, Outcome};
use holdfast_types::{Actor, Hash, Right, Terms, TurnNeed, terms_of};
use holdfast_wire::files::{
    FileChange, FilesChangesParams, FilesDiffAnswer, FilesDiffParams, FilesEditAnswer, FilesEditParams,
    FilesListAnswer, FilesListParams, FilesReadAnswer, FilesReadParams, FilesUndoParams, FilesWriteParams, HashKind,
    WRITE_BYTES_MAX,
};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::{Call, Code, Fault};
use kept::{Change, Kept};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use write::{Content, Expected, Plan};

/// A write that waits for a human.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldWrite {
    /// The file, without links.
    path: String,
    /// What was there when a human was asked; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Was>,
    /// What it shall have in it; none: it is removed.
    after: Option<Hash>,
    mode: Option<u32>,
}

/// A file at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Was {
    Absent,
    File(Hash),
}

impl From<Option<Hash>> for Was {
    fn from(hash: Option<Hash>) -> Was {
        hash.map_or(Was::Absent, Was::File)
    }
}

/// Does something with files on another thread.
async fn there<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    let done = aside(move || Ok(work())).await;
    done.map_err(|_| crate::connection::internal())?
}

/// There is nothing to undo.
fn nothing(message: String) -> Fault {
    Fault::new(Code::NoSuchFile, message).hint("list what is remembered: holdfast files changes NAME")
}

impl Server {
    /// What is asked about files. Who looks needs the right to; of who writes the session's authority decides, and records it.
    pub(crate) async fn answer_files(&self, call: Call, bytes: &[u8], actor: &Actor) -> Answer {
        let rights = call.row().terms.rights;
        let find = |session: &str| self.registry.find_for(session, actor, rights);
        let act = |session: &str| self.registry.find_acting(session, actor);
        match call {
            Call::FilesList(params) => plain(find(&params.session)?.files_list(params, actor).await?),
            Call::FilesRead(params) => with(find(&params.session)?.files_read(params, actor).await?),
            Call::FilesChanges(params) => plain(find(&params.session)?.files_changes(&params).await?),
            Call::FilesDiff(params) => plain(find(&params.session)?.files_diff(&params).await?),
            Call::FilesWrite(params) => plain(act(&params.session)?.files_write(params, bytes.to_vec(), actor).await?),
            Call::FilesEdit(params) => plain(act(&params.session)?.files_edit(params, actor).await?),
            Call::FilesUndo(params) => plain(act(&params.session)?.files_undo(params, actor).await?),
            Call::FilesUpload(params) => {
                let process = PROCESS.try_with(Clone::clone).ok().flatten();
                plain(act(&params.session)?.files_upload(params, bytes.to_vec(), actor, process).await?)
            }
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }
}

impl Session {
    /// Where this actor may reach files; or why nowhere.
    fn files_ground(&self, actor: &Actor) -> Result<Ground, Fault> {
        let state = self.state.borrow();
        let spec = &state.spec;
        if spec.user.is_some() || spec.portable.is_some() {
            let what = if spec.user.is_some() { "runs as another user" } else { "is portable" };
            let message = format!("{} {what}: its files cannot be reached through the host", spec.name);
            return Err(Fault::new(Code::Denied, message)
                .hint(format!("run a command there: holdfast run {} -- cat FILE", spec.name)));
        }
        Ok(Ground {
            start: spec.cwd.clone(),
            pid: self.is_live().then_some(state.pid).filter(|pid| *pid > 0),
            follows: state.rights(actor).meets(holdfast_types::Rights::of(&[Right::Run, Right::Type])),
            own: self.gate.own_paths(),
            wall: spec.wall.as_ref().map(|wall| wall.write.clone()),
        })
    }

    /// A page of a directory.
    pub(crate) async fn files_list(&self, params: FilesListParams, actor: &Actor) -> Result<FilesListAnswer, Fault> {
        let ground = self.files_ground(actor)?;
        there(move || look::list(ground, &params)).await
    }

    /// A piece of a file.
    pub(crate) async fn files_read(
        &self,
        params: FilesReadParams,
        actor: &Actor,
    ) -> Result<(FilesReadAnswer, Vec<u8>), Fault> {
        let ground = self.files_ground(actor)?;
        there(move || look::read(ground, &params)).await
    }

    /// The last writes, newest first.
    pub(crate) async fn files_changes(&self, _: &FilesChangesParams) -> Result<Vec<FileChange>, Fault> {
        let kept = Kept::of(&self.dir);
        there(move || Ok(kept.all().into_iter().rev().map(|change| change.view).collect())).await
    }

    /// What one of them changed.
    pub(crate) async fn files_diff(&self, params: &FilesDiffParams) -> Result<FilesDiffAnswer, Fault> {
        let (kept, number) = (Kept::of(&self.dir), params.change);
        there(move || {
            let found = kept.all().into_iter().map(|change| change.view).find(|view| view.id == number);
            let change = found.ok_or_else(|| {
                Fault::new(Code::NoSuchFile, format!("no write {number} is remembered"))
                    .hint("list those that are: holdfast files changes NAME")
            })?;
            let bytes = |hash: Option<Hash>| hash.map_or(Some(Vec::new()), |hash| kept.bytes(hash));
            let both = bytes(change.before).zip(bytes(change.after));
            let diff = both.and_then(|(old, new)| write::diff(&change.path, &old, &new));
            Ok(FilesDiffAnswer { change, diff })
        })
        .await
    }

    /// Writes a file, whole.
    pub(crate) async fn files_write(
        &self,
        params: FilesWriteParams,
        bytes: Vec<u8>,
        actor: &Actor,
    ) -> Result<FileChange, Fault> {
        let terms = const { terms_of("files.write") };
        self.must_write(terms, actor, &params.path).await?;
        if bytes.len() > WRITE_BYTES_MAX {
            return Err(Fault::new(Code::TooLarge, format!("a write may have at most {WRITE_BYTES_MAX} bytes"))
                .hint("upload it in pieces: holdfast files put FILE NAME:PATH"));
        }
        self.learn(&self.files_ground(actor)?, &params.path).await?;
        let _one = self.gate.filing.lock().await;
        let (ground, kept, mode) = (self.files_ground(actor)?, Kept::of(&self.dir), params.mode);
        let expected = Expected { etag: params.etag, new: params.new, hash: None };
        let content = Content::Bytes(bytes);
        let plan = there(move || Plan::of(ground, kept, &params.path, content, mode, &expected)).await?;
        self.file(terms, plan, mode, actor, None, None).await.map(|(change, _)| change)
    }

    /// Replaces a text in a file.
    pub(crate) async fn files_edit(&self, params: FilesEditParams, actor: &Actor) -> Result<FilesEditAnswer, Fault> {
        let terms = const { terms_of("files.edit") };
        self.must_write(terms, actor, &params.path).await?;
        let _one = self.gate.filing.lock().await;
        let (ground, kept) = (self.files_ground(actor)?, Kept::of(&self.dir));
        let plan = there(move || {
            let (after, before) = write::edited(ground.clone(), &params.path, &params.old, &params.new)?;
            let expected = Expected { hash: Some(Some(before)), ..Expected::default() };
            Plan::of(ground, kept, &params.path, Content::Bytes(after), None, &expected)
        });
        let (change, diff) = self.file(terms, plan.await?, None, actor, None, None).await?;
        Ok(FilesEditAnswer { change, diff: diff.unwrap_or_default() })
    }

    /// Undoes an actor's last write, unless the file has changed since.
    pub(crate) async fn files_undo(&self, params: FilesUndoParams, actor: &Actor) -> Result<FileChange, Fault> {
        let terms = const { terms_of("files.undo") };
        self.must_write(terms, actor, params.path.as_deref().unwrap_or_default()).await?;
        let _one = self.gate.filing.lock().await;
        let (ground, kept, id) = (self.files_ground(actor)?, Kept::of(&self.dir), actor.id);
        let (place, all) = (ground.clone(), kept.clone());
        let last = there(move || {
            let root = place.open()?;
            let wanted = params.path.as_deref().map(|path| root.target(path).map(|target| target.path)).transpose()?;
            all.last_of(id, wanted.as_deref()).ok_or_else(|| nothing("no write of yours is remembered here".into()))
        })
        .await?;
        self.learn(&ground, &last.path).await?;
        let undoes = last.id;
        let plan = there(move || {
            let content = match last.before {
                None => Content::Nothing,
                Some(hash) => {
                    let lost = || nothing(format!("what {} was before is no longer kept", last.path));
                    Content::Bytes(kept.bytes(hash).ok_or_else(lost)?)
                }
            };
            let expected = Expected { hash: Some(last.after), ..Expected::default() };
            Plan::of(ground, kept, &last.path, content, None, &expected)
        })
        .await?;
        self.file(terms, plan, None, actor, Some(undoes), None).await.map(|(change, _)| change)
    }

    /// Does what a human approved. Twice is once: where the file is so already, it was done.
    pub(crate) async fn files_release(
        &self,
        held: &HeldWrite,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        let terms = const { terms_of("files.write") };
        self.must_write(terms, actor, &held.path).await?;
        self.learn(&self.files_ground(actor)?, &held.path).await?;
        let _one = self.gate.filing.lock().await;
        let (ground, kept, held) = (self.files_ground(actor)?, Kept::of(&self.dir), held.clone());
        let (mode, before) = (held.mode, held.before);
        let plan = there(move || {
            let content = match held.after {
                None => Content::Nothing,
                Some(hash) => Content::Bytes(kept.bytes(hash).ok_or_else(|| {
                    Fault::new(Code::NoSuchFile, "what was to be written is no longer kept").hint("write it again")
                })?),
            };
            Plan::of(ground, kept, &held.path, content, mode, &Expected::default())
        });
        let plan = plan.await?;
        if plan.written.before == plan.written.after {
            return Ok(());
        }
        // What the human saw is replaced, and nothing that came after.
        if before.is_some_and(|before| before != plan.written.before.into()) {
            let message = format!("{} was changed since a human was asked", plan.written.path);
            return Err(Fault::new(Code::FileChanged, message).hint("read it, and write it again"));
        }
        self.file(terms, plan, mode, actor, None, released).await.map(drop)
    }

    /// Hashes the file at a path, where that takes long.
    async fn learn(&self, ground: &Ground, path: &str) -> Result<(), Fault> {
        let (ground, path) = (ground.clone(), path.to_owned());
        sums::learn(path.clone(), HashKind::Blake3, move || write::present(&ground.open()?.target(&path)?)).await
    }

    /// Who may not write is refused before anything is looked at, and that is on record.
    async fn must_write(&self, terms: &'static Terms, actor: &Actor, path: &str) -> Result<(), Fault> {
        if self.rights(actor).has(Right::FilesWrite) {
            return self.running().await.map(drop);
        }
        let decided = self.ask(actor, None, Ask::other(terms, path.to_owned()), None)?;
        drop(self.begun(&decided));
        Ok(())
    }

    /// Judges a write, records it, and does it.
    async fn file(
        &self,
        terms: &'static Terms,
        plan: Plan,
        mode: Option<u32>,
        actor: &Actor,
        undoes: Option<u64>,
        released: Option<ApprovalId>,
    ) -> Result<(FileChange, Option<String>), Fault> {
        let ask = self.ask_of_write(terms, actor, plan.written.detail());
        let asked = Asked {
            by: actor.clone(),
            is_human: self.is_human(actor),
            action: Action::Write,
            text: Text::Write(plan.written.path.clone(), plan.written.after),
            place: self.place_of_acts(),
            signal: None,
            intent: None,
            contract: None,
        };
        let (said, plan) = match self.consider(&ask, asked).await {
            None => (None, plan),
            Some(considered) => {
                let (path, before, after) = (plan.written.path.clone(), plan.written.before, plan.written.after);
                let (mut plan, mut can_wait) = (plan, true);
                if considered.verdict.outcome == Outcome::Ask {
                    (can_wait, plan) = there(move || Ok((plan.keep_after()?, plan))).await?;
                }
                if !can_wait {
                    let why = &considered.verdict.why;
                    let message = format!("the policy asks a human about this, and an upload cannot wait: {why}");
                    return Err(Fault::new(Code::Denied, message)
                        .hint("write files of at most 4 MiB, which can wait for an answer"));
                }
                let held = Act::Write(HeldWrite { path, before: Some(before.into()), after, mode });
                (Some(self.said(considered, held, released)?), plan)
            }
        };
        let decided = self.ask_said(actor, ask, None, said)?;
        let mut deed = self.begun(&decided);
        holdfast_pause::task_point("files.recorded").await;
        let (by, diff) = (actor.clone(), plan.diff.clone());
        let (writes, session, path) = (Arc::clone(&self.gate.writes), self.id, plan.written.path.clone());
        let done = there(move || {
            let done = plan.perform(&by, undoes)?;
            // Whoever executes it later is told.
            crate::origins::note_host_write(&writes, session, &path, by);
            Ok(done)
        })
        .await;
        deed.over(&done.as_ref().map(drop).map_err(|fault| fault.message.clone()));
        self.used();
        Ok((done?, diff))
    }

    /// Programs respect the turn, as they do with commands: whoever was seized from does not go on by writing files. A human who drops a
    /// file does not have to take the turn from whoever works.
    fn ask_of_write(&self, terms: &Terms, actor: &Actor, detail: String) -> Ask {
        let turn = if self.is_human(actor) { TurnNeed::Ignores } else { terms.turn };
        Ask::Operation { name: terms.name.into(), right: Right::FilesWrite, turn, detail }
    }
}
