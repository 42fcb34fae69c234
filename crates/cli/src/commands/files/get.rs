//! Downloads. One that was cut off, by a kill of the host or of this program, goes on with the same command: it grows in a hidden file
//! beside its goal, whose name follows from the file as the host had it.
//!
//! On the host's own machine the bytes do not pass through the host's socket: they are copied from the file that the host named, once
//! it is known to be that file.

use super::progress::Progress;
use super::session_of;
use crate::args::{FilePlace, FilesGetArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{bytes, print, print_json, visible};
use holdfast_wire::files::{FilesReadAnswer, FilesReadParams, READ_BYTES_MAX, WRITE_BYTES_MAX};
use holdfast_wire::operations::op;
use rustix::fs::{FlockOperation, Mode, OFlags, RawMode, flock};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Copied between two looks at the clock.
#[cfg(target_os = "linux")]
const PIECE_BYTES: u64 = 64 * 1024 * 1024;
/// The end of a hidden file's name.
const PART: &str = ".holdfast-part";
/// The most of a file's own name in that of its hidden file: names have 255 bytes at most.
const NAME_BYTES_MAX: usize = 150;
/// The most of the etag there.
const TAG_CHARS_MAX: usize = 80;

/// `holdfast files get`.
pub fn get(here: &Here, args: &FilesGetArgs) -> Result<u8, Failure> {
    let FilePlace { session, path } = &args.of.place;
    let mut link = here.link()?;
    let session = session_of(&mut link, session)?.to_string();
    let mut source = Source { link, session, path: path.clone(), etag: None };
    let (about, _) = source.piece(0, 0)?;
    if !args.changing {
        source.etag = Some(about.etag.clone());
    }
    if args.to.as_deref() == Some(Path::new("-")) {
        return source.print(&about).map_err(|failure| hinted(failure, args));
    }
    // As it was asked for: a host does not choose which file of ours is replaced.
    let name = path.rsplit('/').find(|part| !matches!(*part, "" | "." | "..")).unwrap_or("file");
    let goal = match args.to.as_deref() {
        None => PathBuf::from(name),
        Some(dir) if dir.is_dir() => dir.join(name),
        Some(file) => file.to_owned(),
    };
    let part = Part::open(&goal, source.etag.as_deref())?;
    let fetched = source.fetch(here, &about, &part, &mut Progress::new(name, about.size, part.length()?, here.json));
    let size = match fetched {
        Ok(size) => size,
        Err(failure) => {
            // Nobody can go on with a version that is gone.
            if failure.is("file_changed") || args.changing {
                part.remove();
            }
            return Err(hinted(failure, args));
        }
    };
    part.become_goal(&goal, about.mode)?;
    match here.json {
        true => print_json(&serde_json::json!({ "path": about.path, "to": goal, "size": size }))?,
        false => print(format!("{}: {}\n", visible(&goal.to_string_lossy()), bytes(size)))?,
    }
    Ok(0)
}

fn hinted(failure: Failure, args: &FilesGetArgs) -> Failure {
    if !failure.is("file_changed") || args.changing {
        return failure;
    }
    failure.hint("try again; while a program keeps writing it, take it as far as it goes with --changing")
}

/// A file of a session.
struct Source<'a> {
    link: Link<'a>,
    session: String,
    path: String,
    /// It must be this version; none: any.
    etag: Option<String>,
}

impl Source<'_> {
    fn piece(&mut self, offset: u64, max: u64) -> Result<(FilesReadAnswer, Vec<u8>), Failure> {
        let (session, path, etag) = (self.session.clone(), self.path.clone(), self.etag.clone());
        let params = FilesReadParams { session, path, offset, max: Some(max), etag };
        self.link.call_with_bytes::<op::FilesRead>(&params, &[])
    }

    /// Writes it to standard output.
    fn print(mut self, about: &FilesReadAnswer) -> Result<u8, Failure> {
        let mut offset = 0;
        while offset < about.size {
            let (answer, bytes) = self.piece(offset, READ_BYTES_MAX.min(about.size - offset))?;
            print(&bytes)?;
            offset += bytes.len() as u64;
            if answer.end || bytes.is_empty() {
                break;
            }
        }
        Ok(0)
    }

    /// Brings what is not there yet; gives how long it is then.
    fn fetch(
        &mut self,
        here: &Here,
        about: &FilesReadAnswer,
        part: &Part,
        progress: &mut Progress,
    ) -> Result<u64, Failure> {
        let mut offset = part.length()?.min(about.size);
        #[cfg(target_os = "linux")]
        if let Some(source) = same_file(here, about) {
            offset = part.copy(&source, offset, about.size, progress)?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = here;
        while offset < about.size {
            let (answer, bytes) = self.piece(offset, READ_BYTES_MAX.min(about.size - offset))?;
            part.file.write_all_at(&bytes, offset).map_err(|error| part.cannot(error))?;
            offset += bytes.len() as u64;
            progress.at(offset);
            holdfast_pause::point("files.got");
            if answer.end || bytes.is_empty() {
                break;
            }
        }
        // It was this version from the first byte to the last.
        if self.etag.is_some() {
            self.piece(0, 0)?;
        }
        Ok(offset)
    }
}

/// The file that the host named, where this program can open that very file.
#[cfg(target_os = "linux")]
fn same_file(here: &Here, about: &FilesReadAnswer) -> Option<File> {
    if here.is_elsewhere() {
        return None;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(&about.path).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let is_it = about.etag.starts_with(&format!("{:x}-{:x}-{:x}-", meta.dev(), meta.ino(), meta.size()));
    is_it.then_some(file)
}

/// Where a download grows. Another version of the file grows in another one.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    fn open(goal: &Path, etag: Option<&str>) -> Result<Part, Failure> {
        let stem = stem(goal);
        let tag = etag.map_or_else(|| format!("p{}", std::process::id()), str::to_owned);
        let tag: String = tag.chars().filter(|one| is_of_tag(*one)).take(TAG_CHARS_MAX).collect();
        let path = goal.with_file_name(format!("{stem}{tag}{PART}"));
        sweep(goal, &stem, &path);
        loop {
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
                .open(&path);
            let part = Part { file: opened.map_err(|error| cannot_write(&path, error))?, path: path.clone() };
            let meta = part.file.metadata().map_err(|error| part.cannot(error))?;
            if !meta.is_file() || meta.nlink() > 1 || meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(Failure::new("not_a_file", format!("{} is not of a download of yours", path.display()))
                    .hint("remove it, and try again"));
            }
            if flock(&part.file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(Failure::new("busy", format!("{} is being downloaded already", goal.display()))
                    .hint("wait for the other command"));
            }
            // Another command may just have finished with it.
            let there = std::fs::symlink_metadata(&path);
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino())) {
                if etag.is_none() {
                    part.file.set_len(0).map_err(|error| part.cannot(error))?;
                }
                return Ok(part);
            }
        }
    }

    fn cannot(&self, error: std::io::Error) -> Failure {
        cannot_write(&self.path, error)
    }

    fn length(&self) -> Result<u64, Failure> {
        self.file.metadata().map(|meta| meta.len()).map_err(|error| self.cannot(error))
    }

    /// Copies the rest of a file of this machine; gives how far that went.
    #[cfg(target_os = "linux")]
    fn copy(&self, source: &File, mut offset: u64, size: u64, progress: &mut Progress) -> Result<u64, Failure> {
        loop {
            let copied = holdfast_host::copy_file(source, &self.file, offset, PIECE_BYTES.min(size - offset));
            match copied.map_err(|error| self.cannot(error))? {
                0 => return Ok(offset),
                count => offset += count,
            }
            progress.at(offset);
        }
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Whole: it takes the goal's place.
    fn become_goal(&self, goal: &Path, mode: u32) -> Result<(), Failure> {
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        let mode = Mode::from_raw_mode((mode & 0o777) as RawMode) & !umask;
        rustix::fs::fchmod(&self.file, mode).map_err(|error| self.cannot(error.into()))?;
        std::fs::rename(&self.path, goal).map_err(|error| cannot_write(goal, error))
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

/// What of an etag is in the name: no dot, so that it ends where the file's own name begins.
fn is_of_tag(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '-'
}

/// How the names of a goal's hidden files begin.
fn stem(goal: &Path) -> String {
    let name = goal.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let end = (0..=name.len().min(NAME_BYTES_MAX)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!(".{}.", &name[..end])
}

/// Removes what is left of downloads of other versions, unless one of them goes on right now.
fn sweep(goal: &Path, stem: &str, own: &Path) {
    let dir = goal.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(tag) = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_suffix(PART)) else { continue };
        if tag.is_empty()
            || !tag.chars().all(is_of_tag)
            || Some(name.as_os_str()) == own.file_name()
            || !entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            continue;
        }
        let file = File::open(entry.path());
        if file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
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
