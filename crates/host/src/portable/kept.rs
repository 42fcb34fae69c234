//! Checkpoints on disk. One that is not whole is never listed: it gets its name last, after everything in it was synced.

use holdfast_observe::portable::Terminal;
use holdfast_store::{CHECKPOINT, Survives, checksum, get_json, make_dir, put_json};
use holdfast_types::{Offset, SessionId, SessionName};
use holdfast_wire::portable::CheckpointView;
use holdfast_wire::runs::RunId;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Checkpoints of one session: each may have gigabytes.
pub(crate) const CHECKPOINTS_MAX: usize = 8;
/// Files of an image: a few for each process.
const FILES_MAX: usize = 1 << 18;
/// Read at once for a checksum.
const CHUNK_BYTES: usize = 1 << 20;
/// Files of an image from this size on are kept compressed.
const PACK_BYTES_MIN: u64 = 64 * 1024;
/// How their names end.
const PACKED: &str = ".lz4";
/// What is being made.
const PARTIAL: &str = ".partial";
/// Longest typed-ahead input and screen.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// A checkpoint, as its `manifest` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// As users see it.
    pub view: CheckpointView,
    /// The terminal, as CRIU names it.
    pub terminal: String,
    pub tty: String,
    pub leaders: Vec<u32>,
    /// Its lines were edited by the kernel.
    pub canonical: bool,
    /// An integrated shell that can be asked for its line stood at a prompt.
    #[serde(default)]
    pub prompt: bool,
    /// The run that was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Where the output stood.
    #[serde(default)]
    pub head: Offset,
    /// The image's files: name, size, checksum.
    pub files: Vec<(String, u64, u64)>,
    /// The sizes of those that are packed, before that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packed: Vec<(String, u64)>,
}

impl Manifest {
    /// What CRIU is told of the terminal.
    pub fn terminal(&self) -> Terminal {
        Terminal { key: self.terminal.clone(), tty_key: self.tty.clone(), leaders: self.leaders.clone() }
    }
}

/// Where a session's checkpoints lie.
pub(crate) fn place(dir: &Path) -> PathBuf {
    dir.join("checkpoints")
}

/// A new id.
pub(crate) fn new_id() -> String {
    format!("ckp_{:012x}", crate::random() & 0xffff_ffff_ffff)
}

/// A text that can be a checkpoint's id: nothing else becomes part of a path.
pub(crate) fn is_id(text: &str) -> bool {
    text.strip_prefix("ckp_").is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The directory of one that is being made.
pub(crate) fn partial(dir: &Path, id: &str) -> PathBuf {
    place(dir).join(format!("{id}{PARTIAL}"))
}

/// Makes that directory.
pub(crate) fn begin(dir: &Path, id: &str) -> io::Result<PathBuf> {
    make_dir(&place(dir))?;
    sweep(dir);
    let partial = partial(dir, id);
    make_dir(&partial)?;
    make_dir(&partial.join("img"))?;
    Ok(partial)
}

/// Removes what was never finished.
pub(crate) fn sweep(dir: &Path) {
    for entry in fs::read_dir(place(dir)).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().ends_with(PARTIAL) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Seals what was dumped, and gives it its name among the checkpoints of the session with the directory `into`. Blocks as long as the disk
/// does.
pub(crate) fn seal(dir: &Path, into: &Path, mut manifest: Manifest) -> io::Result<Manifest> {
    let id = manifest.view.id.clone();
    let partial = partial(dir, &id);
    // A branch begins from its image at once.
    if dir == into {
        manifest.packed = pack(&partial.join("img"))?;
    }
    manifest.files = files(&partial.join("img"), true)?;
    for name in ["screen", "input"] {
        File::open(partial.join(name))?.sync_all()?;
    }
    manifest.view.bytes = manifest.files.iter().map(|(_, bytes, _)| bytes).sum();
    put_json(&CHECKPOINT, &partial, "manifest", &manifest, Survives::PowerCut)?;
    holdfast_pause::point("checkpoint.sealed");
    make_dir(&place(into))?;
    fs::rename(&partial, place(into).join(&id))?;
    File::open(place(into))?.sync_all()?;
    Ok(manifest)
}

/// Compresses the large files of an image: their names and sizes before that. What CRIU wrote goes file by file, so that the disk needs
/// little more than the image.
fn pack(img: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut packed = Vec::new();
    for entry in fs::read_dir(img)? {
        let entry = entry?;
        let (bytes, name) = (entry.metadata()?.len(), entry.file_name().to_string_lossy().into_owned());
        if bytes >= PACK_BYTES_MIN && entry.file_type()?.is_file() {
            holdfast_store::packed::pack(&entry.path(), &img.join(format!("{name}{PACKED}")))?;
            fs::remove_file(entry.path())?;
            packed.push((name, bytes));
        }
    }
    Ok(packed)
}

/// Whether there is room for an image's unpacked files.
pub(crate) fn fits(dir: &Path, manifest: &Manifest) -> io::Result<()> {
    let bytes = manifest.packed.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
    let disk = rustix::fs::statvfs(dir)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < bytes {
        return Err(io::Error::other(format!("there is no room to unpack it: it takes {} MiB", bytes >> 20)));
    }
    Ok(())
}

/// An image as CRIU reads it, in a new directory. Blocks as long as the disk does.
pub(crate) fn unpack(dir: &Path, manifest: &Manifest, to: &Path) -> io::Result<()> {
    let img = image(dir, &manifest.view.id);
    make_dir(to)?;
    for (name, ..) in &manifest.files {
        match manifest.packed.iter().find(|(plain, _)| name.strip_suffix(PACKED) == Some(plain)) {
            Some((plain, bytes)) => {
                if holdfast_store::packed::unpack(&img.join(name), &to.join(plain), *bytes)? != *bytes {
                    return Err(io::Error::other(format!("{plain} is shorter than it was")));
                }
            }
            None => fs::hard_link(img.join(name), to.join(name))?,
        }
    }
    Ok(())
}

/// Gives a branch its own checkpoint: the image's files are shared until the last branch that has them removes them.
pub(crate) fn share(from: &Path, id: &str, into: &Path, manifest: &Manifest) -> io::Result<()> {
    let (from, to) = (place(from).join(id), place(into).join(&manifest.view.id));
    make_dir(&to.join("img"))?;
    for (name, ..) in &manifest.files {
        fs::hard_link(from.join("img").join(name), to.join("img").join(name))?;
    }
    for name in ["screen", "input"] {
        fs::hard_link(from.join(name), to.join(name))?;
    }
    put_json(&CHECKPOINT, &to, "manifest", manifest, Survives::Crash)
}

/// The files of an image with their checksums; all closed to others, and synced if asked.
fn files(img: &Path, sync: bool) -> io::Result<Vec<(String, u64, u64)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(img)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("an odd name in the image"))?;
        if all.len() >= FILES_MAX || !entry.file_type()?.is_file() {
            return Err(io::Error::other(format!("{name} does not belong in an image")));
        }
        let file = File::open(entry.path())?;
        if sync {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.sync_all()?;
        }
        let (bytes, sum) = summed(&file)?;
        all.push((name, bytes, sum));
    }
    all.sort();
    Ok(all)
}

/// A file's length and checksum. Blocks as long as the disk does.
pub(crate) fn summed(file: &File) -> io::Result<(u64, u64)> {
    let (mut bytes, mut sums, mut chunk) = (0, Vec::new(), Vec::with_capacity(CHUNK_BYTES));
    loop {
        chunk.clear();
        let count = file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if count == 0 {
            return Ok((bytes, checksum(&sums)));
        }
        bytes += count as u64;
        sums.extend_from_slice(&checksum(&chunk).to_le_bytes());
    }
}

/// Whether an image is as it was sealed. Blocks as long as the disk does. A cut image would make CRIU loop for ever.
pub(crate) fn verify(dir: &Path, manifest: &Manifest) -> io::Result<()> {
    let img = image(dir, &manifest.view.id);
    let damaged = |what: String| Err(io::Error::other(what));
    // Sizes first: they say most of it, at once.
    for (name, bytes, _) in &manifest.files {
        match fs::metadata(img.join(name)) {
            Ok(file) if file.len() == *bytes => {}
            Ok(file) => return damaged(format!("{name} has {} bytes in place of {bytes}", file.len())),
            Err(error) => return damaged(format!("{name}: {error}")),
        }
    }
    for (kept, found) in manifest.files.iter().zip(files(&img, false)?) {
        if *kept != found {
            return damaged(format!("{} is damaged", kept.0));
        }
    }
    Ok(())
}

/// Its image.
pub(crate) fn image(dir: &Path, id: &str) -> PathBuf {
    place(dir).join(id).join("img")
}

/// A small file of a checkpoint.
pub(crate) fn small(dir: &Path, id: &str, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(place(dir).join(id).join(name)) {
        let _ = file.take(SMALL_BYTES_MAX).read_to_end(&mut bytes);
    }
    bytes
}

/// A checkpoint of this session.
pub(crate) fn load(dir: &Path, id: &str) -> io::Result<Manifest> {
    if !is_id(id) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let manifest: Option<Manifest> = get_json(&CHECKPOINT, &place(dir).join(id).join("manifest"))
        .map_err(|why| io::Error::other(why.to_string()))?;
    manifest.filter(|manifest| manifest.view.id == id).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// All checkpoints of a session, oldest first. One that cannot be read says so.
pub(crate) fn list(dir: &Path, session: SessionId, name: &SessionName) -> Vec<CheckpointView> {
    let mut all = Vec::new();
    for entry in fs::read_dir(place(dir)).into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().into_string().ok().filter(|id| is_id(id)) else { continue };
        match load(dir, &id) {
            Ok(manifest) => all.push(manifest.view),
            Err(error) => {
                let made = entry.metadata().map_or(0, |file| file.mtime().max(0) as u64 * 1000);
                all.push(unreadable(id, session, name.clone(), made, error.to_string()));
            }
        }
    }
    all.sort_by(|a, b| (a.at_ms, &a.id).cmp(&(b.at_ms, &b.id)));
    all
}

/// The newest that can be read.
pub(crate) fn newest(dir: &Path, session: SessionId, name: &SessionName) -> Option<String> {
    list(dir, session, name).into_iter().rev().find(|view| view.damaged.is_none()).map(|view| view.id)
}

fn unreadable(id: String, session: SessionId, name: SessionName, at_ms: u64, why: String) -> CheckpointView {
    CheckpointView {
        id,
        session,
        name,
        at_ms,
        incarnation: 0,
        size: holdfast_types::Size::default(),
        bytes: 0,
        still_ms: 0,
        programs: Vec::new(),
        cut: Vec::new(),
        mounts: Vec::new(),
        kernel: String::new(),
        criu: String::new(),
        automatic: false,
        damaged: Some(why),
    }
}

/// Removes a checkpoint. First its name: a half-removed one is none.
pub(crate) fn remove(dir: &Path, id: &str) -> io::Result<()> {
    if !is_id(id) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let away = partial(dir, id);
    fs::rename(place(dir).join(id), &away)?;
    fs::remove_dir_all(&away)
}
