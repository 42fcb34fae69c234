//! Uploads. One that was cut off, by a kill of the host or of this program, goes on with the same command: the host finds again what has
//! arrived of it.
//!
//! On the host's own machine the bytes do not pass through the host's socket: the host reads this program's descriptor. A short file is
//! one write, which can wait for a human and whose diff can be shown.

use super::progress::Progress;
use super::{session_of, told};
use crate::args::FilePlace;
use crate::failure::Failure;
use crate::here::{Here, Link};
use holdfast_wire::files::{FileChange, FilesUploadParams, FilesWriteParams, UPLOAD_BYTES_MAX, WRITE_BYTES_MAX};
use holdfast_wire::operations::op;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

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
    let local = Local::open(from)?;
    let path = match place.path.as_str() {
        "" => local.name.clone(),
        dir if dir.ends_with('/') => format!("{dir}{}", local.name),
        path => path.to_owned(),
    };
    let mut done = local.send(here, &mut link, &session, &path);
    if done.as_ref().is_err_and(|failure| failure.is("not_a_file")) {
        // A directory is where it is put.
        done = local.send(here, &mut link, &session, &format!("{path}/{}", local.name));
    }
    told(here, &done?)
}

/// A file of this machine.
struct Local<'a> {
    from: &'a Path,
    name: String,
    file: File,
    meta: Metadata,
}

impl Local<'_> {
    fn open(from: &Path) -> Result<Local<'_>, Failure> {
        let cannot = |error| Failure::io(format!("cannot read {}", from.display()), error);
        // A pipe is not waited for.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(from).map_err(cannot)?;
        let meta = file.metadata().map_err(cannot)?;
        if !meta.is_file() {
            return Err(Failure::new("not_a_file", format!("{} is no plain file", from.display()))
                .hint("put files one by one, or as an archive: tar -czf a.tgz DIR"));
        }
        let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Local { from, name, file, meta })
    }

    fn cannot(&self, error: std::io::Error) -> Failure {
        Failure::io(format!("cannot read {}", self.from.display()), error)
    }

    fn mode(&self) -> Option<u32> {
        Some(self.meta.mode() & 0o777)
    }

    fn send(&self, here: &Here, link: &mut Link<'_>, session: &str, path: &str) -> Result<FileChange, Failure> {
        match self.meta.len() <= UPLOAD_BYTES_MAX as u64 {
            true => self.write(link, session, path),
            false => self.upload(here, link, session, path),
        }
    }

    fn write(&self, link: &mut Link<'_>, session: &str, path: &str) -> Result<FileChange, Failure> {
        let mut content = Vec::new();
        let mut file = &self.file;
        std::io::Seek::rewind(&mut file).map_err(|error| self.cannot(error))?;
        let read = file.take(UPLOAD_BYTES_MAX as u64 + 1).read_to_end(&mut content);
        read.map_err(|error| self.cannot(error))?;
        if content.len() > UPLOAD_BYTES_MAX {
            return Err(self.changed());
        }
        let (session, path) = (session.to_owned(), path.to_owned());
        let params = FilesWriteParams { session, path, mode: self.mode(), ..FilesWriteParams::default() };
        link.call_with_bytes::<op::FilesWrite>(&params, &content).map(|(change, _)| change)
    }

    fn changed(&self) -> Failure {
        Failure::new("file_changed", format!("{} was written while it was sent", self.from.display()))
            .hint("send it again once it is whole")
    }

    fn upload(&self, here: &Here, link: &mut Link<'_>, session: &str, path: &str) -> Result<FileChange, Failure> {
        let meta = &self.meta;
        let params = FilesUploadParams {
            session: session.to_owned(),
            path: path.to_owned(),
            size: meta.len(),
            // Another file, and the same one after a change, is another upload.
            tag: format!("{:x}x{:x}x{:x}x{:x}", meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()),
            mode: self.mode(),
            ..FilesUploadParams::default()
        };
        let mut offset = link.call::<op::FilesUpload>(&params)?.offset;
        let mut progress = Progress::new(&self.name, params.size, offset, here.json);
        let mut by_descriptor = !here.is_elsewhere();
        let mut buffer = Vec::new();
        while offset < params.size {
            let mut piece = FilesUploadParams { offset: Some(offset), ..params.clone() };
            if by_descriptor {
                piece.descriptor = u32::try_from(self.file.as_raw_fd()).ok();
                match link.call::<op::FilesUpload>(&piece) {
                    Ok(answer) if answer.offset > offset => offset = answer.offset,
                    Ok(_) => by_descriptor = false,
                    Err(failure) if failure.is("bad_request") => by_descriptor = false,
                    Err(failure) => return Err(failure),
                }
            } else {
                buffer.resize((UPLOAD_BYTES_MAX as u64).min(params.size - offset) as usize, 0);
                self.file.read_exact_at(&mut buffer, offset).map_err(|_| self.changed())?;
                offset = link.call_with_bytes::<op::FilesUpload>(&piece, &buffer)?.0.offset;
            }
            progress.at(offset);
            holdfast_pause::point("files.sent");
        }
        drop(progress);
        // It was this version from the first byte to the last.
        let now = self.file.metadata().map_err(|error| self.cannot(error))?;
        let version = |meta: &Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
        if version(&now) != version(meta) {
            return Err(self.changed());
        }
        let answer = link.call::<op::FilesUpload>(&FilesUploadParams { finish: true, ..params })?;
        answer.change.ok_or_else(|| Failure::new("internal", "the host did not say what it wrote"))
    }
}
