//! Writes: what would change, worked out before it is judged and recorded, and then done at once: the file is the old one or the new
//! one, whole. Blocks, and is done on another thread.

use super::ground::{Ground, OURS, Target, moved, refused};
use super::kept::{Change, KEPT_BYTES_MAX, Kept, hash_of};
use super::look::{etag, io_refused};
use super::sums;
use holdfast_types::{Actor, Hash};
use holdfast_wire::files::{DIFF_BYTES_MAX, FileChange, HashKind, WRITE_BYTES_MAX, Written};
use holdfast_wire::{Code, Fault};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

/// The mode of a new file where none is asked for.
const MODE: u32 = 0o644;
/// Bits that a caller may ask for: nothing by which a program runs as somebody else.
const MODE_BITS: u32 = 0o777;
/// Largest file that is replaced: a sparse one costs whoever makes it nothing, and its hash a second for each GiB.
const REPLACED_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// A diff that takes longer is not worth it.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// What a file shall have in it.
#[derive(Debug)]
pub(super) enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What was uploaded into this file beside it, with its hash and length.
    Staged(String, Hash, u64),
    /// There shall be no file.
    Nothing,
}

/// What the writer expects to find.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub etag: Option<String>,
    pub new: bool,
    /// The file's content; `Some(None)`: that there is none.
    pub hash: Option<Option<Hash>>,
}

/// A write, before it is judged.
#[derive(Debug)]
pub(super) struct Plan {
    target: Target,
    content: Content,
    mode: u32,
    kept: Kept,
    before: Option<Vec<u8>>,
    pub written: Written,
    /// What it changes, where that was worth keeping and is text.
    pub diff: Option<String>,
}

impl Plan {
    /// Works out what a write would change, and keeps the bytes of both sides where they are few.
    pub fn of(
        ground: Ground,
        kept: Kept,
        path: &str,
        content: Content,
        mode: Option<u32>,
        expected: &Expected,
    ) -> Result<Plan, Fault> {
        let target = ground.open()?.target(path)?;
        Plan::at(target, kept, path, content, mode, expected)
    }

    /// The same, where the target is open already.
    pub fn at(
        target: Target,
        kept: Kept,
        path: &str,
        content: Content,
        mode: Option<u32>,
        expected: &Expected,
    ) -> Result<Plan, Fault> {
        if mode.is_some_and(|mode| mode & !MODE_BITS != 0) {
            return Err(Fault::new(Code::BadRequest, "`mode` has permission bits alone, up to 0777"));
        }
        let before = there(&target)?;
        let (after, size) = match &content {
            Content::Bytes(bytes) => (Some(hash_of(bytes)), bytes.len() as u64),
            Content::Staged(_, hash, size) => (Some(*hash), *size),
            Content::Nothing => (None, 0),
        };
        let hash_before = before.as_ref().map(|(hash, _)| *hash);
        let is_expected = match expected {
            // What was to be written is there: whoever asks twice has what it wants.
            Expected { new: true, .. } => hash_before.is_none() || hash_before == after,
            Expected { etag: Some(known), .. } => target.there.as_ref().is_some_and(|stat| etag(stat) == *known),
            Expected { hash: Some(hash), .. } => hash_before == *hash,
            Expected { .. } => true,
        };
        if !is_expected {
            let what = if expected.new { "is there already" } else { "has changed meanwhile" };
            return Err(Fault::new(Code::FileChanged, format!("{path:?} {what}")).hint("read it, and write it again"));
        }
        let bytes_before = before.and_then(|(_, bytes)| bytes);
        let bytes_after = match &content {
            Content::Bytes(bytes) => Some(bytes.as_slice()),
            Content::Nothing => Some(&[][..]),
            Content::Staged(..) => None,
        };
        let nothing = || hash_before.is_none().then_some(&[][..]);
        let old = bytes_before.as_deref().or_else(nothing);
        let diff = old.zip(bytes_after).and_then(|(old, new)| diff(&target.path, old, new));
        let size_before = target.there.as_ref().map_or(0, |stat| stat.st_size as u64);
        let (before_kind, after_kind) = (HashKind::of_size(size_before), HashKind::of_size(size));
        let written = Written { path: target.path.clone(), before: hash_before, before_kind, after, after_kind, size };
        Ok(Plan { target, content, mode: mode.unwrap_or(MODE), kept, before: bytes_before, written, diff })
    }

    /// Keeps what would be written, so that it can be done later; false where it is too much for that.
    pub fn keep_after(&self) -> Result<bool, Fault> {
        let kept = match (&self.content, self.written.after) {
            (Content::Bytes(bytes), Some(hash)) => self.kept.keep(hash, bytes),
            (Content::Bytes(_) | Content::Nothing, _) => Ok(true),
            (Content::Staged(..), _) => Ok(false),
        };
        kept.map_err(|error| io_refused(&error, &self.target.path))
    }

    /// Does it, and remembers it.
    pub fn perform(self, by: &Actor, undoes: Option<u64>) -> Result<FileChange, Fault> {
        let shown = self.target.path.clone();
        let now = rustix::fs::statat(&self.target.dir, &*self.target.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if now.as_ref().map(etag) != self.target.there.as_ref().map(etag) {
            return Err(moved(&shown));
        }
        if let (Some(hash), Some(bytes)) = (self.written.before, &self.before) {
            self.kept.keep(hash, bytes).map_err(|error| io_refused(&error, &shown))?;
        }
        self.keep_after()?;
        holdfast_pause::point("files.write");
        let Written { path, before, before_kind, after, after_kind, size } = self.written.clone();
        let (by, actor, at_ms) = (by.handle.clone(), by.id, crate::now_ms());
        let (can_undo, can_diff) = (false, false);
        let view = FileChange {
            id: 0,
            path,
            by,
            at_ms,
            before,
            before_kind,
            after,
            after_kind,
            size,
            can_undo,
            can_diff,
            undoes,
        };
        let part = if let Content::Staged(name, ..) = &self.content { Some(name.clone()) } else { None };
        // Remembered first: whoever asks again after a kill is told what was done.
        let kept = self.kept.remember(Change { view, actor, part });
        let change = kept.map_err(|error| io_refused(&error, "what is remembered of writes"))?;
        holdfast_pause::point("files.remembered");
        let done = self.put(&shown);
        if done.is_err() {
            // It stays in the list where that fails too; undoing it then finds another file.
            let _ = self.kept.forget(change.id);
        }
        done.map(|()| change)
    }

    fn put(&self, shown: &str) -> Result<(), Fault> {
        match &self.content {
            Content::Bytes(bytes) => {
                let name = format!("{OURS}{}.new", holdfast_types::hex_text(&crate::random_token()));
                let made = self.stage(&name, bytes).and_then(|file| self.place(&file, &name));
                if made.is_err() {
                    let _ = rustix::fs::unlinkat(&self.target.dir, &*name, AtFlags::empty());
                }
                made
            }
            Content::Staged(name, _, size) => {
                let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&self.target.dir, &**name, flags, Mode::empty());
                let file = File::from(file.map_err(|error| refused(error, shown))?);
                let sum = sums::take(&file, *size);
                self.place(&file, name)?;
                if let Some(sum) = sum {
                    sums::remember(&file, sum);
                }
                Ok(())
            }
            Content::Nothing => {
                let gone = rustix::fs::unlinkat(&self.target.dir, &*self.target.name, AtFlags::empty());
                gone.map_err(|error| refused(error, shown))
            }
        }
    }

    fn stage(&self, name: &str, bytes: &[u8]) -> Result<File, Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.target.dir, name, flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(file.map_err(|error| refused(error, &self.target.path))?);
        file.write_all(bytes).map_err(|error| io_refused(&error, &self.target.path))?;
        Ok(file)
    }

    /// Gives a file the owner and the mode of the one it replaces, and its name.
    fn place(&self, file: &File, name: &str) -> Result<(), Fault> {
        let fail = |error| refused(error, &self.target.path);
        if let Some(Stat { st_uid, st_gid, .. }) = self.target.there {
            let own = rustix::fs::fstat(file).map_err(fail)?;
            if (own.st_uid, own.st_gid) != (st_uid, st_gid) {
                let owner = (Uid::from_raw(st_uid), Gid::from_raw(st_gid));
                rustix::fs::fchown(file, Some(owner.0), Some(owner.1)).map_err(fail)?;
            }
        }
        // What runs as somebody else does so with the bytes it had, not with these.
        let mode = self.target.there.as_ref().map_or(self.mode, |stat| stat.st_mode & MODE_BITS);
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map_err(fail)?;
        // What appeared there meanwhile is not replaced unseen.
        let flags = if self.target.there.is_none() { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        let dir = &self.target.dir;
        let renamed = rustix::fs::renameat_with(dir, name, dir, &*self.target.name, flags);
        renamed.map_err(|error| if error == rustix::io::Errno::EXIST { moved(&self.target.path) } else { fail(error) })
    }
}

/// The hash of a file, and its bytes where they are few.
type Before = (Hash, Option<Vec<u8>>);

/// The file that is there.
pub(super) fn present(target: &Target) -> Result<Option<File>, Fault> {
    let Some(stat) = &target.there else { return Ok(None) };
    if stat.st_size as u64 > REPLACED_BYTES_MAX {
        let message = format!("{} is larger than 64 GiB: its hash would take minutes", target.path);
        return Err(Fault::new(Code::TooLarge, message).hint("remove it first, or write under another name"));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&target.dir, &*target.name, flags, Mode::empty());
    let file = file.map_err(|error| refused(error, &target.path))?;
    if rustix::fs::fstat(&file).ok().as_ref().map(etag) != Some(etag(stat)) {
        return Err(moved(&target.path));
    }
    Ok(Some(file.into()))
}

/// What is there.
fn there(target: &Target) -> Result<Option<Before>, Fault> {
    let (Some(stat), Some(file)) = (&target.there, present(target)?) else { return Ok(None) };
    if stat.st_size as u64 <= KEPT_BYTES_MAX {
        let mut bytes = Vec::new();
        let read = file.take(KEPT_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| io_refused(&error, &target.path))?;
        return Ok(Some((hash_of(&bytes), Some(bytes))));
    }
    let (hash, _) = sums::hash_of_file(&file, &target.path)?;
    Ok(Some((hash, None)))
}

/// A file with one text in place of another, which must be there once.
pub(super) fn edited(ground: Ground, path: &str, old: &str, new: &str) -> Result<(Vec<u8>, Hash), Fault> {
    let bad = |message: String| Fault::new(Code::FileChanged, message);
    if old.is_empty() {
        return Err(
            Fault::new(Code::BadRequest, "the text to replace is empty").hint("to write a whole file, use `write`")
        );
    }
    let (file, found) = ground.open()?.read(path)?;
    if found.stat.st_size as u64 > WRITE_BYTES_MAX as u64 {
        return Err(Fault::new(Code::TooLarge, format!("{path:?} is larger than {WRITE_BYTES_MAX} bytes")));
    }
    let mut bytes = Vec::new();
    let read = file.take(WRITE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| io_refused(&error, path))?;
    let find = |from: usize| memchr::memmem::find(&bytes[from..], old.as_bytes()).map(|at| at + from);
    let Some(first) = find(0) else {
        return Err(bad(format!("the text to replace is not in {path:?}"))
            .hint("it must match exactly, spaces and line ends included: read the file again"));
    };
    if find(first + 1).is_some() {
        return Err(bad(format!("the text to replace is in {path:?} more than once"))
            .hint("give more of what stands around it, so that it is there once"));
    }
    let hash = hash_of(&bytes);
    let after = [&bytes[..first], new.as_bytes(), &bytes[first + old.len()..]].concat();
    if after.len() > WRITE_BYTES_MAX {
        return Err(Fault::new(Code::TooLarge, format!("a file may have at most {WRITE_BYTES_MAX} bytes here")));
    }
    Ok((after, hash))
}

/// What changed, line by line; none where it is no text, or too much.
pub(super) fn diff(path: &str, old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    if old.contains('\0') || new.contains('\0') {
        return None;
    }
    let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut text = diff.unified_diff().context_radius(3).header(name, name).to_string();
    if text.len() > DIFF_BYTES_MAX {
        let end = (0..=DIFF_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str("\n… more is not shown\n");
    }
    Some(text)
}
