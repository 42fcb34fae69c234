//! What a session's processes need where they are to go on: files and directories that they have open or mapped, a processor, mounts; and
//! whether this machine has all that.
//!
//! CRIU finds files by their paths. One that is missing or has another size it refuses in the middle of a restore; one of the same size
//! with other bytes it takes, and the program goes on with what is not its own. So all of them are compared before, by checksum.

use crate::portable::criu;
use crate::portable::kept::summed;
use holdfast_types::Home;
use holdfast_wire::moves::{MoveOffer, NeededFile};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that a session may need: more than any has open and mapped.
pub(super) const FILES_MAX: usize = 8192;
/// Longest description of a processor.
const PROCESSOR_BYTES_MAX: usize = 64 * 1024;
/// Refusals that are told; more are no help.
const REFUSED_MAX: usize = 20;
/// Checksums that are remembered.
const SUMS_MAX: usize = 16 * 1024;
/// Left free beside what arrives.
pub(super) const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// What is mounted anew in each session, or is no file.
const OWN_KIND: [&str; 4] = ["/dev/", "/proc/", "/sys/", "/memfd:"];
const REGULAR: u32 = 0o100_000;
const KIND: u32 = 0o170_000;
const SOCKET: u32 = 0o140_000;

/// What tells a file from itself after a change: no program can set the time of the last change.
type Print = (u64, u64, u64, i64, i64);

/// Checksums of files as they were seen last: a move looks twice, and the second time the session stands still.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums(Arc<Mutex<HashMap<Print, u64>>>);

impl Sums {
    fn of(&self, path: &Path) -> io::Result<u64> {
        let file = File::open(path)?;
        let print = |file: &File| -> io::Result<Print> {
            let meta = file.metadata()?;
            Ok((meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec()))
        };
        let before = print(&file)?;
        let known = |map: &HashMap<Print, u64>| map.get(&before).copied();
        if let Some(sum) = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(sum);
        }
        let (_, sum) = summed(&file)?;
        if print(&file)? == before {
            let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if map.len() >= SUMS_MAX {
                map.clear();
            }
            map.insert(before, sum);
        }
        Ok(sum)
    }
}

pub(super) fn sum_text(sum: u64) -> String {
    format!("{sum:016x}")
}

/// What the processes below this init have open and mapped. While they run, what they write is not compared: it changes. Blocks.
pub(super) fn files(init: u32, own: &str, is_still: bool, sums: &Sums) -> io::Result<Vec<NeededFile>> {
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    for process in holdfast_observe::portable::inside(init)? {
        let at = format!("/proc/{}", process.pid);
        for name in ["exe", "cwd"] {
            found.entry(link(&format!("{at}/{name}"))).or_default();
        }
        for entry in fs::read_dir(format!("{at}/fd")).into_iter().flatten().flatten() {
            let number = entry.file_name().to_string_lossy().into_owned();
            let writes = is_writable(&format!("{at}/fdinfo/{number}"));
            *found.entry(link(&format!("{at}/fd/{number}"))).or_default() |= writes;
        }
        for line in fs::read_to_string(format!("{at}/maps")).unwrap_or_default().lines() {
            // Address, permissions, offset, device, inode, and then the path.
            let path = line.splitn(6, char::is_whitespace).nth(5).unwrap_or_default().trim_start();
            found.entry(path.to_owned()).or_default();
        }
    }
    let is_needed = |path: &str| {
        path.starts_with('/')
            && !path.ends_with(" (deleted)")
            && !OWN_KIND.iter().any(|kind| path.starts_with(kind))
            && !Path::new(path).starts_with(own)
    };
    let mut needed = Vec::new();
    for (path, writes) in found.into_iter().filter(|(path, _)| is_needed(path)) {
        let seen = PathBuf::from(format!("/proc/{init}/root{path}"));
        let Ok(meta) = fs::metadata(&seen) else { continue };
        if meta.mode() & KIND == SOCKET {
            continue;
        }
        let (mut bytes, mut sum) = (0, String::new());
        if meta.mode() & KIND == REGULAR && (is_still || !writes) {
            (bytes, sum) = (meta.len(), sum_text(sums.of(&seen)?));
        }
        needed.push(NeededFile { path, mode: meta.mode(), bytes, sum });
        if needed.len() > FILES_MAX {
            return Err(io::Error::other(format!("it has more than {FILES_MAX} files open")));
        }
    }
    Ok(needed)
}

fn link(path: &str) -> String {
    fs::read_link(path).map_or_else(|_| String::new(), |to| to.to_string_lossy().into_owned())
}

fn is_writable(fdinfo: &str) -> bool {
    let text = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = text.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 3 != 0)
}

/// The processor, as CRIU describes it. Blocks.
pub(super) fn processor(criu: &Path, state: &Path) -> io::Result<String> {
    let dir = scratch(state)?;
    let noted = criu::note_processor(criu, &dir).and_then(|()| fs::read(dir.join("cpuinfo.img")));
    let _ = fs::remove_dir_all(&dir);
    noted.map(|bytes| holdfast_types::hex_text(&bytes))
}

fn scratch(state: &Path) -> io::Result<PathBuf> {
    let dir = super::place(state).join(format!("look-{:016x}", crate::random()));
    holdfast_store::make_dir(&super::place(state))?;
    holdfast_store::make_dir(&dir)?;
    Ok(dir)
}

/// Where a path that the session sees is on this machine.
pub(super) fn here(offer: &MoveOffer, home: &Home, path: &str) -> PathBuf {
    let below = |seen: &str, real: &Path| Path::new(path).strip_prefix(seen).ok().map(|rest| real.join(rest));
    below(&offer.state, &home.state).or_else(|| below(&offer.run, &home.run)).unwrap_or_else(|| path.into())
}

/// Everything that this machine lacks of what a session needs, for people. Blocks.
pub(super) fn missing(home: &Home, offer: &MoveOffer, sums: &Sums) -> Vec<String> {
    let mut refused = lasting(home, offer);
    refused.extend(changing(home, offer, sums));
    refused
}

/// Of that, what will not change while the session is on its way.
fn lasting(home: &Home, offer: &MoveOffer) -> Vec<String> {
    let mut refused = Vec::new();
    if !rustix::process::getuid().is_root() {
        refused.push("the host there does not run as root: only root can bring processes back".to_owned());
        return refused;
    }
    match criu::find(&home.state) {
        None => refused.push("CRIU is not installed there: run `holdfast doctor --fix` on that machine".into()),
        Some(found) => refused.extend(unfit(&found, home, offer)),
    }
    if let Some(user) = &offer.user
        && crate::user::by_name(user).is_none()
    {
        refused.push(format!("there is no user {user} there"));
    }
    refused
}

/// And what may.
pub(super) fn changing(home: &Home, offer: &MoveOffer, sums: &Sums) -> Vec<String> {
    let mut refused = Vec::new();
    if Path::new(&offer.own) != Path::new(&offer.state).join("own") {
        refused.push(format!("it sees its own directory as {}, which no host has", offer.own));
    }
    let odd = |path: &String| !path.starts_with('/') || path.contains(['\\', ':', '[', ']', ',', '\0']);
    let mounts = offer.mounts.iter().chain([&offer.state, &offer.run]);
    for mount in mounts.filter(|mount| **mount != offer.own) {
        if odd(mount) || !Path::new(mount).is_dir() {
            refused.push(format!("the directory {mount} is not there: mkdir -p {mount}"));
        }
    }
    if let Ok(disk) = rustix::fs::statvfs(&home.state) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // What is packed on its way is unpacked beside itself.
        let needed = offer.bytes.saturating_mul(2).saturating_add(SPARE_BYTES);
        if free < needed {
            refused.push(format!("there is no room: it may take {} MiB, {} MiB are free", needed >> 20, free >> 20));
        }
    }
    let different = offer.files.iter().filter_map(|file| differs(home, offer, file, sums));
    refused.extend(different.take(REFUSED_MAX));
    refused
}

/// Whether CRIU and the processor here can take it.
fn unfit(found: &Path, home: &Home, offer: &MoveOffer) -> Option<String> {
    let number = |text: &str| -> Vec<u32> { text.split('.').map_while(|part| part.parse().ok()).collect() };
    match criu::version(found) {
        Ok(version) if number(&version) < number(&offer.criu) => {
            return Some(format!("CRIU there is {version}, older than {}: update it", offer.criu));
        }
        Ok(_) => {}
        Err(error) => return Some(format!("CRIU does not run there: {error}")),
    }
    let bytes = holdfast_types::hex_bytes(&offer.processor).filter(|bytes| bytes.len() <= PROCESSOR_BYTES_MAX);
    let Some(bytes) = bytes else { return Some("its processor is not described".into()) };
    let checked = scratch(&home.state).and_then(|dir| {
        let fits = fs::write(dir.join("cpuinfo.img"), bytes).and_then(|()| criu::fits_processor(found, &dir));
        let _ = fs::remove_dir_all(&dir);
        fits
    });
    checked.err().map(|error| format!("the processor there lacks what it was started with: {error}"))
}

/// How a file here is not what the session has.
fn differs(home: &Home, offer: &MoveOffer, file: &NeededFile, sums: &Sums) -> Option<String> {
    let (path, real) = (&file.path, here(offer, home, &file.path));
    let Ok(meta) = fs::metadata(&real) else { return Some(format!("{path} is not there")) };
    if meta.mode() & KIND != file.mode & KIND {
        return Some(format!("{path} is something else there"));
    }
    if meta.mode() != file.mode && file.mode & KIND == REGULAR {
        return Some(format!("{path} has mode {:o} there, not {:o}", meta.mode() & 0o7777, file.mode & 0o7777));
    }
    if file.sum.is_empty() {
        return None;
    }
    if meta.len() != file.bytes {
        return Some(format!("{path} has {} bytes there, not {}", meta.len(), file.bytes));
    }
    match sums.of(&real) {
        Ok(sum) if sum_text(sum) == file.sum => None,
        Ok(_) => Some(format!("{path} has other content there")),
        Err(error) => Some(format!("{path} cannot be read there: {error}")),
    }
}
