//! Downloads and uploads. What was cut off, by a kill of the host or of this program, goes on with the same command: a download in a hidden
//! file beside its goal, whose name follows from the file as the host had it; an upload in one that the host finds again.
//!
//! On the host's own machine the bytes do not pass through the host's socket: a download is copied from the file that the host named,
//! once it is known to be that file, and for an upload the host reads this program's descriptor.

use super::progress::Progress;
use super::{session_of, told};
use crate::args::FilePlace;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{bytes, print, print_json, visible};
use holdfast_wire::files::{
    FilesReadAnswer, FilesReadParams, FilesUploadParams, FilesWriteParams, READ_BYTES_MAX, UPLOAD_BYTES_MAX,
    WRITE_BYTES_MAX,
};
use holdfast_wire::operations::op;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Copied between two looks at the clock.
const PIECE_BYTES: u64 = 32 * 1024 * 1024;

/// `holdfast files get`.
pub fn get(here: &Here, place: &FilePlace, to: Option<&Path>) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = session_of(&mut link, &place.session)?.to_string();
    let ask =
        |offset, max, etag| FilesReadParams { session: session.clone(), path: place.path.clone(), offset, max, etag };
    let about = link.call::<op::FilesRead>(&ask(0, Some(0), None))?;
    let piece = |link: &mut Link<'_>, offset| {
        let params = ask(offset, Some(READ_BYTES_MAX), Some(about.etag.clone()));
        link.call_with_bytes::<op::FilesRead>(&params, &[])
    };
    if to == Some(Path::new("-")) {
        let mut offset = 0;
        loop {
            let (answer, bytes) = piece(&mut link, offset)?;
            print(&bytes)?;
            offset += bytes.len() as u64;
            if answer.end {
                return Ok(0);
            }
        }
    }
    let name = about.path.rsplit('/').next().unwrap_or("file").to_owned();
    let goal = match to {
        None => PathBuf::from(&name),
        Some(dir) if dir.is_dir() => dir.join(&name),
        Some(file) => file.to_owned(),
    };
    let part = part_beside(&goal, &about.etag);
    let cannot = |error| Failure::io(format!("cannot write {}", part.display()), error);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&part);
    let file = file.map_err(cannot)?;
    let mut offset = file.metadata().map_err(cannot)?.len().min(about.size);
    let mut progress = Progress::new(&name, about.size, offset, here.json);
    if let Some(source) = same_file(here, &about) {
        offset = copy(&source, &file, offset, &mut progress).map_err(cannot)?;
    }
    while offset < about.size {
        let (answer, bytes) = piece(&mut link, offset)?;
        file.write_all_at(&bytes, offset).map_err(cannot)?;
        offset += bytes.len() as u64;
        progress.at(offset);
        if answer.end {
            break;
        }
    }
    drop(progress);
    // It was this file from the first byte to the last.
    link.call::<op::FilesRead>(&ask(0, Some(0), Some(about.etag.clone())))?;
    file.set_permissions(std::fs::Permissions::from_mode(about.mode & 0o777)).map_err(cannot)?;
    std::fs::rename(&part, &goal).map_err(|error| Failure::io(format!("cannot write {}", goal.display()), error))?;
    match here.json {
        true => print_json(&serde_json::json!({ "path": about.path, "to": goal, "size": offset }))?,
        false => print(format!("{}: {}\n", visible(&goal.to_string_lossy()), bytes(offset)))?,
    }
    Ok(0)
}

/// Where a download grows: another version of the file is another one.
fn part_beside(goal: &Path, etag: &str) -> PathBuf {
    let name = goal.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short: String = name.chars().take(60).collect();
    let tag: String = etag.chars().filter(char::is_ascii_alphanumeric).take(100).collect();
    goal.with_file_name(format!(".{short}.{tag}.holdfast-part"))
}

/// The file that the host named, where this program can open that very file.
fn same_file(here: &Here, about: &FilesReadAnswer) -> Option<File> {
    if here.is_elsewhere() {
        return None;
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(&about.path).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let is_it = about.etag.starts_with(&format!("{:x}-{:x}-{:x}-", meta.dev(), meta.ino(), meta.size()));
    is_it.then_some(file)
}

/// Copies the rest of a file; the kernel does it where it can.
fn copy(mut source: &File, mut to: &File, from: u64, progress: &mut Progress) -> std::io::Result<u64> {
    let mut offset = from;
    source.seek(SeekFrom::Start(offset))?;
    to.seek(SeekFrom::Start(offset))?;
    loop {
        let copied = std::io::copy(&mut source.take(PIECE_BYTES), &mut to)?;
        offset += copied;
        progress.at(offset);
        if copied == 0 {
            return Ok(offset);
        }
    }
}

/// `holdfast files put`.
pub fn put(here: &Here, from: &Path, place: &FilePlace) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = session_of(&mut link, &place.session)?.to_string();
    if from == Path::new("-") {
        let mut content = Vec::new();
        let read = std::io::stdin().take(WRITE_BYTES_MAX as u64 + 1).read_to_end(&mut content);
        read.map_err(|error| Failure::io("cannot read standard input", error))?;
        if content.len() > WRITE_BYTES_MAX {
            return Err(Failure::new("too_large", "standard input is too long to be sent at once")
                .hint("save it to a file, and put that"));
        }
        let params = FilesWriteParams { session, path: place.path.clone(), ..FilesWriteParams::default() };
        let (change, _) = link.call_with_bytes::<op::FilesWrite>(&params, &content)?;
        return told(here, &change);
    }
    let cannot = |error| Failure::io(format!("cannot read {}", from.display()), error);
    let file = File::open(from).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    if !meta.is_file() {
        return Err(Failure::new("not_a_file", format!("{} is no plain file", from.display()))
            .hint("put files one by one, or as an archive: tar -czf - DIR"));
    }
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = match place.path.as_str() {
        "" => name.clone(),
        dir if dir.ends_with('/') => format!("{dir}{name}"),
        path => path.to_owned(),
    };
    let upload = |path: String| FilesUploadParams {
        session: session.clone(),
        path,
        size: meta.len(),
        // Another file, and the same one after a change, is another upload.
        tag: format!("{:x}x{:x}x{:x}x{:x}", meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()),
        mode: Some(meta.mode() & 0o777),
        ..FilesUploadParams::default()
    };
    let mut params = upload(path.clone());
    let mut begun = link.call::<op::FilesUpload>(&params);
    if begun.as_ref().is_err_and(|failure| failure.is("not_a_file")) {
        // A directory is where it is put.
        params = upload(format!("{path}/{name}"));
        begun = link.call::<op::FilesUpload>(&params);
    }
    let offset = begun?.offset;
    let mut progress = Progress::new(&name, meta.len(), offset, here.json);
    send(here, &mut link, &file, &params, offset, &mut progress, from)?;
    drop(progress);
    let answer = link.call::<op::FilesUpload>(&FilesUploadParams { finish: true, ..params })?;
    let change = answer.change.ok_or_else(|| Failure::new("internal", "the host did not say what it wrote"))?;
    told(here, &change)
}

fn send(
    here: &Here,
    link: &mut Link<'_>,
    file: &File,
    params: &FilesUploadParams,
    mut offset: u64,
    progress: &mut Progress,
    from: &Path,
) -> Result<(), Failure> {
    let mut by_descriptor = !here.is_elsewhere();
    let mut buffer = Vec::new();
    while offset < params.size {
        let mut piece = FilesUploadParams { offset: Some(offset), ..params.clone() };
        if by_descriptor {
            piece.descriptor = u32::try_from(file.as_raw_fd()).ok();
            match link.call::<op::FilesUpload>(&piece) {
                Ok(answer) if answer.offset > offset => offset = answer.offset,
                Ok(_) => by_descriptor = false,
                Err(failure) if failure.is("bad_request") => by_descriptor = false,
                Err(failure) => return Err(failure),
            }
            progress.at(offset);
            continue;
        }
        buffer.resize(UPLOAD_BYTES_MAX.min((params.size - offset) as usize), 0);
        let short = |error| Failure::io(format!("cannot read {}", from.display()), error);
        file.read_exact_at(&mut buffer, offset).map_err(short)?;
        offset = link.call_with_bytes::<op::FilesUpload>(&piece, &buffer)?.0.offset;
        progress.at(offset);
    }
    Ok(())
}

/// A whole file that is not too long, and its etag.
pub fn whole(link: &mut Link<'_>, session: &str, path: &str) -> Result<(FilesReadAnswer, Vec<u8>), Failure> {
    let ask =
        |offset, etag| FilesReadParams { session: session.to_owned(), path: path.to_owned(), offset, max: None, etag };
    let (mut answer, mut content) = link.call_with_bytes::<op::FilesRead>(&ask(0, None), &[])?;
    if answer.size > WRITE_BYTES_MAX as u64 {
        return Err(Failure::new("too_large", format!("{path} is larger than {}", bytes(WRITE_BYTES_MAX as u64)))
            .hint("download it, and upload it again: holdfast files get, holdfast files put"));
    }
    while !answer.end {
        let (next, more) = link.call_with_bytes::<op::FilesRead>(&ask(content.len() as u64, Some(answer.etag)), &[])?;
        content.write_all(&more).map_err(|error| Failure::io("cannot keep it", error))?;
        answer = next;
    }
    Ok((answer, content))
}
