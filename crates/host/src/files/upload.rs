//! Uploads: pieces go into a hidden file beside the target, whose name follows from the upload; so whoever was cut off, and whichever
//! host it finds, goes on where that file ends. The host remembers nothing of it.

use super::copy::{copy, copy_summed};
use super::ground::{OURS, Target, each_name, refused};
use super::kept::{Kept, hash_of};
use super::look::io_refused;
use super::sums;
use super::write::{Content, Expected, Plan};
use super::{Ground, there};
use crate::session::Session;
use holdfast_gate::{Action, Outcome};
use holdfast_observe::ancestry::Peer;
use holdfast_types::{Actor, Hash, hex_text, terms_of};
use holdfast_wire::files::{FilesUploadAnswer, FilesUploadParams, HashKind, TAKEN_BYTES_MAX, UPLOAD_BYTES_MAX};
use holdfast_wire::{Code, Fault};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;

/// Largest file: what no disk here holds is a mistake.
const SIZE_MAX: u64 = 1 << 44;
/// The end of a hidden file's name.
const PART: &str = ".part";
/// An upload that nobody went on with for so long is given up.
const PART_KEEP: Duration = Duration::from_hours(7 * 24);
/// Names that are looked at for such ones: a larger directory is searched in part.
const SWEPT_MAX: usize = 10_000;
/// The magic number of FUSE: what serves such a file may never answer.
const FUSE: u32 = 0x6573_5546;

/// From where a piece comes.
#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// A descriptor of the asking process.
    Taken(Arc<Peer>, u32),
}

impl Session {
    /// Takes a piece of an upload, tells how far it is, or finishes it.
    pub(crate) async fn files_upload(
        &self,
        params: FilesUploadParams,
        bytes: Vec<u8>,
        actor: &Actor,
        process: Option<Arc<Peer>>,
    ) -> Result<FilesUploadAnswer, Fault> {
        let terms = const { terms_of("files.upload") };
        self.must_write(terms, actor, &params.path).await?;
        check(&params, &bytes)?;
        let (ground, owner, id) = (self.files_ground(actor)?, actor.clone(), self.id.to_string());
        if params.finish {
            for kind in kinds(&params) {
                let (part_of, part_id, by, place) = (params.clone(), id.clone(), owner.clone(), ground.clone());
                sums::learn(params.path.clone(), kind, move || {
                    let target = place.open()?.target(&part_of.path)?;
                    match open_part(&target, &part_name(&target, &part_of, &part_id, &by), OFlags::RDONLY) {
                        // An earlier host may have finished it, or it has no bytes.
                        Err(fault) if fault.code == Code::NoSuchFile => Ok(None),
                        other => other.map(Some),
                    }
                })
                .await?;
            }
            self.learn(&ground, &params.path).await?;
            let _one = self.gate.filing.lock().await;
            // Anew: that may have taken long.
            let (ground, kept, mode) = (self.files_ground(actor)?, Kept::of(&self.dir), params.mode);
            let planned = there(move || finish(ground, kept, &params, &id, &owner)).await?;
            let change = match planned {
                Finished::Already(change) => change,
                Finished::Plan(plan) => self.file(terms, *plan, mode, actor, None, None).await?.0,
            };
            return Ok(FilesUploadAnswer { offset: change.size, change: Some(change) });
        }
        let piece = match params.descriptor {
            None => Piece::Bytes(bytes),
            Some(number) => Piece::Taken(
                process.ok_or_else(|| bad("`descriptor` is for clients at the host's own socket"))?,
                number,
            ),
        };
        // Nothing is put into a tree that the policy keeps closed, not even beside the file.
        let (begun, path) = (params.clone(), ground.clone());
        let target = there(move || path.open()?.target(&begun.path)).await?;
        if params.offset.is_none_or(|offset| offset == 0) {
            self.must_be_free(actor, target.path.clone()).await?;
        }
        let offset = there(move || add(&target, &params, piece, &id, &owner)).await?;
        Ok(FilesUploadAnswer { offset, change: None })
    }

    /// What a rule denies or asks about is refused before the first byte.
    async fn must_be_free(&self, actor: &Actor, path: String) -> Result<(), Fault> {
        let said = self.verdict_of_write(actor, path).await;
        match said {
            None => Ok(()),
            Some(verdict) if verdict.outcome == Outcome::Allow => Ok(()),
            Some(verdict) => {
                let message = match verdict.outcome {
                    Outcome::Ask => "the policy asks a human about this, and an upload cannot wait",
                    Outcome::Allow | Outcome::Deny => "the policy does not allow this",
                };
                Err(Fault::new(Code::Denied, format!("{message}: {} ({})", verdict.why, verdict.rule))
                    .hint("see the rule: holdfast policy show"))
            }
        }
    }

    async fn verdict_of_write(&self, actor: &Actor, path: String) -> Option<holdfast_gate::Verdict> {
        let asked = crate::gate::Asked {
            by: actor.clone(),
            is_human: self.is_human(actor),
            action: Action::Write,
            text: crate::gate::Text::Write(path, Some(Hash([0; 32]))),
            place: self.place_of_acts(),
            signal: None,
            intent: None,
            contract: None,
        };
        self.gate.consider(asked).await.map(|considered| considered.verdict)
    }
}

/// Which hashes of what arrived are needed: the one it is known by, and the one that the sender knows.
fn kinds(params: &FilesUploadParams) -> impl Iterator<Item = HashKind> + use<> {
    let own = HashKind::of_size(params.size);
    std::iter::once(own).chain(params.hash.map(|_| HashKind::Sha256).filter(|kind| *kind != own))
}

fn bad(message: &str) -> Fault {
    Fault::new(Code::BadRequest, message)
}

fn check(params: &FilesUploadParams, bytes: &[u8]) -> Result<(), Fault> {
    if params.size > SIZE_MAX || bytes.len() > UPLOAD_BYTES_MAX {
        return Err(Fault::new(Code::TooLarge, format!("a piece may have at most {UPLOAD_BYTES_MAX} bytes")));
    }
    let is_tag = (1..=64).contains(&params.tag.len()) && params.tag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_tag {
        return Err(bad("`tag` has 1 to 64 letters and digits"));
    }
    let has_piece = !bytes.is_empty() || params.descriptor.is_some();
    if has_piece && (params.offset.is_none() || params.finish) || !bytes.is_empty() && params.descriptor.is_some() {
        return Err(bad("a piece needs `offset`, comes as bytes or by `descriptor`, and is not sent with `finish`"));
    }
    Ok(())
}

/// The hidden file of an upload: another actor's is another.
fn part_name(target: &Target, params: &FilesUploadParams, session: &str, actor: &Actor) -> String {
    let all = format!("{session} {} {} {} {}", actor.id, params.size, params.tag, target.path);
    format!("{OURS}{}{PART}", &hex_text(&hash_of(all.as_bytes()).0)[..32])
}

fn open_part(target: &Target, name: &str, flags: OFlags) -> Result<File, Fault> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&target.dir, name, flags, Mode::from_raw_mode(0o600));
    let file = File::from(file.map_err(|error| refused(error, &target.path))?);
    let meta = file.metadata().map_err(|error| io_refused(&error, &target.path))?;
    if !meta.is_file() || meta.nlink() != 1 || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Fault::new(Code::NotAFile, format!("{name} beside {:?} is not of an upload", target.path))
            .hint("somebody put it there: remove it, and try again"));
    }
    Ok(file)
}

/// Puts a piece where it belongs. Sending it twice is the same as once.
fn add(target: &Target, params: &FilesUploadParams, piece: Piece, session: &str, actor: &Actor) -> Result<u64, Fault> {
    let name = part_name(target, params, session, actor);
    let Some(offset) = params.offset else {
        // Only a look: where there is nothing yet, it begins at 0.
        return match open_part(target, &name, OFlags::RDONLY) {
            Ok(file) => Ok(file.metadata().map_err(|error| io_refused(&error, &target.path))?.len()),
            Err(fault) if fault.code == Code::NoSuchFile => Ok(0),
            Err(fault) => Err(fault),
        };
    };
    if offset == 0 {
        sweep(target);
    }
    let file = open_part(target, &name, OFlags::RDWR | OFlags::CREATE)?;
    let length = file.metadata().map_err(|error| io_refused(&error, &target.path))?.len();
    if offset > length {
        let mut fault = Fault::new(Code::Ahead, format!("{length} bytes of this upload have arrived, not {offset}"));
        fault.details = Some(Box::new(serde_json::json!({ "offset": length })));
        return Err(fault.hint("ask without `offset` how far it is, and go on from there"));
    }
    // What is in the same file twice need not be copied twice: whoever asks again after a kill is further than it knows.
    let offset = if matches!(piece, Piece::Taken(..)) { length.min(params.size) } else { offset };
    let room = params.size.saturating_sub(offset);
    // What is sent again, and what an earlier host took, is hashed at the end.
    let mut sum = sums::take(&file, params.size).filter(|sum| sum.length == offset);
    let failed = |error: std::io::Error| io_refused(&error, &target.path);
    let count = match piece {
        Piece::Bytes(bytes) => {
            if bytes.len() as u64 > room {
                return Err(bad("this piece goes beyond the size that was announced"));
            }
            file.write_all_at(&bytes, offset).map_err(failed)?;
            if let Some(sum) = &mut sum {
                sum.hasher.update(&bytes);
            }
            bytes.len() as u64
        }
        Piece::Taken(process, number) => {
            let (source, most) = (taken(&process, number)?, room.min(TAKEN_BYTES_MAX));
            match &mut sum {
                Some(sum) => copy_summed(&source, &file, offset, most, &mut sum.hasher).map_err(failed)?,
                None => copy(&source, &file, offset, most).map_err(failed)?,
            }
        }
    };
    if let Some(mut sum) = sum {
        sum.length += count;
        sums::remember(&file, sum);
    }
    holdfast_pause::point("files.piece");
    Ok((offset + count).max(length))
}

/// Removes what is left of uploads that were given up. What cannot be removed stays.
fn sweep(target: &Target) {
    let mut left = SWEPT_MAX;
    let mut parts = Vec::new();
    let _ = each_name(&target.dir, &target.path, |name| {
        left -= 1;
        let name = std::str::from_utf8(name).unwrap_or_default();
        if name.starts_with(OURS) && name.ends_with(PART) {
            parts.push(name.to_owned());
        }
        left > 0
    });
    for name in parts {
        let Ok(part) = open_part(target, &name, OFlags::RDONLY) else { continue };
        let modified = part.metadata().and_then(|meta| meta.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|since| since > PART_KEEP)) {
            let _ = rustix::fs::unlinkat(&target.dir, name, rustix::fs::AtFlags::empty());
        }
    }
}

/// The file that a process has open under this number. It proves that the process could open it.
fn taken(process: &Peer, number: u32) -> Result<File, Fault> {
    let unusable = || bad("`descriptor` is no plain file of the asking process, opened for reading");
    let path = format!("/proc/{}/fd/{number}", process.id().pid);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let at = rustix::fs::openat(CWD, path.as_str(), flags, Mode::empty()).map_err(|_| unusable())?;
    let info =
        |of: &str, number: u32| std::fs::read_to_string(format!("/proc/{of}/fdinfo/{number}")).unwrap_or_default();
    let theirs = info(&process.id().pid.to_string(), number);
    let ours = info("self", at.as_raw_fd().unsigned_abs());
    // As long as it runs, its pid is its own. Between the two looks it may have put another file under the number.
    if !process.is_there() || !is_readable(&theirs) || !is_same(&theirs, &ours) {
        return Err(unusable());
    }
    let is_plain =
        rustix::fs::fstat(&at).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let is_fuse = rustix::fs::fstatfs(&at).is_ok_and(|system| system.f_type as u32 == FUSE);
    if !is_plain || is_fuse {
        return Err(unusable());
    }
    File::open(format!("/proc/self/fd/{}", at.as_raw_fd())).map_err(|_| unusable())
}

/// Whether two descriptors are of one file at one mount, by what the kernel says of them.
fn is_same(one: &str, other: &str) -> bool {
    let field = |info: &str, name: &str| Some(info.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
    ["ino:", "mnt_id:"].into_iter().all(|name| field(one, name).is_some() && field(one, name) == field(other, name))
}

/// Whether a descriptor was opened to be read: what only names a file, or only writes it, does not show that its process may.
fn is_readable(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 0o3 != 1 && flags & 0o10_000_000 == 0)
}

/// What is to be done at the end of an upload.
enum Finished {
    /// It is in its place already: an earlier host did it.
    Already(holdfast_wire::files::FileChange),
    Plan(Box<Plan>),
}

fn finish(
    ground: Ground,
    kept: Kept,
    params: &FilesUploadParams,
    session: &str,
    actor: &Actor,
) -> Result<Finished, Fault> {
    let target = ground.open()?.target(&params.path)?;
    let name = part_name(&target, params, session, actor);
    let file =
        match open_part(&target, &name, OFlags::RDWR | if params.size == 0 { OFlags::CREATE } else { OFlags::empty() })
        {
            Err(fault) if fault.code == Code::NoSuchFile => {
                let is_it = |change: &super::Change| change.part.as_ref() == Some(&name);
                let same = kept.all().into_iter().rev().find(is_it).map(|change| change.view);
                return same.map(Finished::Already).ok_or_else(|| bad("nothing of this upload has arrived"));
            }
            other => other?,
        };
    let (hash, length) = sums::hash_of_file(&file, &target.path)?;
    if length != params.size {
        return Err(Fault::new(Code::Ahead, format!("{length} of {} bytes have arrived", params.size))
            .hint("ask without `offset` how far it is, and go on from there"));
    }
    let is_it = |known: Hash| sums::hash_by(&file, HashKind::Sha256, &target.path).map(|(sent, _)| sent == known);
    if !params.hash.map_or(Ok(true), is_it)? {
        let _ = rustix::fs::unlinkat(&target.dir, &*name, rustix::fs::AtFlags::empty());
        return Err(Fault::new(Code::FileChanged, "what arrived is not what was sent; it was thrown away")
            .hint("upload it again"));
    }
    let path = params.path.as_str();
    let content = Content::Staged(name, hash, length);
    Plan::at(target, kept, path, content, params.mode, &Expected::default()).map(|plan| Finished::Plan(Box::new(plan)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_only_names_or_writes_a_file_does_not_show_that_it_may_be_read() {
        for (info, reads) in [
            ("pos:\t0\nflags:\t0100000\n", true),
            ("pos:\t0\nflags:\t0100002\n", true),
            ("pos:\t0\nflags:\t0100001\n", false),
            ("pos:\t0\nflags:\t012100000\n", false),
            ("", false),
        ] {
            assert_eq!(is_readable(info), reads, "{info}");
        }
        let info = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t42\n";
        assert!(is_same(info, &info.replace("0100000", "012100000")));
        assert!(!is_same(info, &info.replace("42", "43")) && !is_same(info, &info.replace("29", "30")));
        assert!(
            !is_same("", "") && !is_same(info, "pos:\t0\nflags:\t0100000\nmnt_id:\t29\n"),
            "what is not said is not the same"
        );
    }
}
