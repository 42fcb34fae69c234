//! Listing and reading: what only looks. Blocks, and is done on another thread.

use super::copy::read_at;
use super::ground::{Found, Ground, Root, each_name, refused};
use holdfast_types::{TimeMs, hex_bytes, hex_text};
use holdfast_wire::files::{
    ENTRIES_MAX, FileEntry, FileKind, FilesListAnswer, FilesListParams, FilesReadAnswer, FilesReadParams,
    READ_BYTES_MAX,
};
use holdfast_wire::{Code, Fault};
use rustix::fs::{AtFlags, FileType, Stat};
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A page of a directory. However many names it has, no more than a page of them is held.
pub(super) fn list(ground: Ground, params: &FilesListParams) -> Result<FilesListAnswer, Fault> {
    let root = ground.open()?;
    let path = params.path.as_deref().unwrap_or_default();
    let found = root.look(path)?;
    let shown = if path.is_empty() { found.path.clone() } else { path.to_owned() };
    if FileType::from_raw_mode(found.stat.st_mode) != FileType::Directory {
        let name = found.path.rsplit('/').next().unwrap_or_default().to_owned();
        return Ok(page(&root, &found, false, vec![entry(name, &found.stat, None)], None));
    }
    let after = match &params.after {
        Some(text) => Some(hex_bytes(text).ok_or_else(|| Fault::new(Code::BadRequest, "invalid `after`"))?),
        None => None,
    };
    let limit = params.limit.unwrap_or(ENTRIES_MAX).clamp(1, ENTRIES_MAX) as usize;
    let mut first = BinaryHeap::with_capacity(limit);
    let mut is_more = false;
    each_name(&found.at, &shown, |name| {
        if after.as_ref().is_some_and(|after| name <= after.as_slice()) {
            return true;
        }
        if first.len() < limit {
            first.push(name.to_vec());
            return true;
        }
        is_more = true;
        if first.peek().is_some_and(|last: &Vec<u8>| name < last.as_slice()) {
            first.pop();
            first.push(name.to_vec());
        }
        true
    })?;
    let names = first.into_sorted_vec();
    let next = names.last().filter(|_| is_more).map(|last| hex_text(last));
    let entries = names.iter().filter_map(|name| {
        let name = OsStr::from_bytes(name);
        // One that is gone by now is not listed.
        let stat = rustix::fs::statat(&found.at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let target = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => rustix::fs::readlinkat(&found.at, name, Vec::new()).ok(),
            _ => None,
        };
        let target = target.map(|target| target.to_string_lossy().into_owned());
        Some(entry(name.to_string_lossy().into_owned(), &stat, target))
    });
    let entries = entries.collect();
    Ok(page(&root, &found, true, entries, next))
}

fn page(root: &Root, found: &Found, is_dir: bool, entries: Vec<FileEntry>, next: Option<String>) -> FilesListAnswer {
    let cwd = format!("{}/{}", root.path.trim_end_matches('/'), root.cwd);
    let cwd = if cwd.len() > 1 { cwd.trim_end_matches('/').to_owned() } else { cwd };
    FilesListAnswer { path: found.path.clone(), root: root.path.clone(), cwd, is_dir, entries, next }
}

fn entry(name: String, stat: &Stat, target: Option<String>) -> FileEntry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    };
    FileEntry {
        name,
        kind,
        size: stat.st_size as u64,
        modified_ms: modified_ms(stat),
        mode: stat.st_mode & 0o7777,
        target,
    }
}

/// A piece of a file.
pub(super) fn read(ground: Ground, params: &FilesReadParams) -> Result<(FilesReadAnswer, Vec<u8>), Fault> {
    let (file, found) = ground.open()?.read(&params.path)?;
    let etag = etag(&found.stat);
    if params.etag.as_ref().is_some_and(|known| *known != etag) {
        return Err(Fault::new(Code::FileChanged, format!("{:?} has changed since it was read", params.path))
            .hint("read it again from its beginning"));
    }
    let size = found.stat.st_size as u64;
    if params.offset > size {
        return Err(Fault::new(Code::Ahead, format!("{:?} has {size} bytes", params.path)));
    }
    let most = params.max.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX).min(size - params.offset);
    let mut bytes = vec![0; most as usize];
    // Less than that where it is shorter by now.
    let have = read_at(&file, &mut bytes, params.offset).map_err(|error| io_refused(&error, &params.path))?;
    holdfast_pause::point("files.read");
    bytes.truncate(have);
    let answer = FilesReadAnswer {
        path: found.path,
        size,
        modified_ms: modified_ms(&found.stat),
        mode: found.stat.st_mode & 0o7777,
        etag,
        offset: params.offset,
        end: params.offset + have as u64 >= size,
    };
    Ok((answer, bytes))
}

/// Changes whenever the file does.
pub(super) fn etag(stat: &Stat) -> String {
    let time = |seconds: i64, nanoseconds: u64| (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(nanoseconds);
    let (written, changed) = (time(stat.st_mtime, stat.st_mtime_nsec), time(stat.st_ctime, stat.st_ctime_nsec));
    format!("{:x}-{:x}-{:x}-{written:x}-{changed:x}", stat.st_dev, stat.st_ino, stat.st_size)
}

fn modified_ms(stat: &Stat) -> TimeMs {
    (stat.st_mtime.max(0) as u64) * 1000 + stat.st_mtime_nsec / 1_000_000
}

/// An error of the system, as it is told.
pub(super) fn io_refused(error: &std::io::Error, shown: &str) -> Fault {
    match rustix::io::Errno::from_io_error(error) {
        Some(error) => refused(error, shown),
        None => Fault::new(Code::Internal, format!("{shown:?}: {error}")),
    }
}
