//! A shell's states on their way from the files it writes to the session's ledger, and the ledger on disk.
//!
//! A state file has values. It is taken away before it is read: whatever the shell writes next goes into a new one, and what
//! it is about to write into the old one is waited for. Once its hashes are kept it is gone. The key they are made with is a
//! file of its own: a hash without it says nothing, not even of a value that can be guessed.
//!
//! Everything here blocks.

use super::ledger::{CWD, Ledger, Line, News};
use super::state::{Category, parse_state};
use crate::store::replace;
use hmac::{Hmac, Mac};
use holdfast_store::{SHELL, SHELL_KEY, Survives, Unreadable, get, lines, put};
use holdfast_types::TimeMs;
use holdfast_wire::env::Changed;
use rustix::fs::{Mode, OFlags};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};
use zeroize::Zeroizing;

/// The file with the first state; the others are 0 and 1.
const FIRST: u8 = 2;
/// The ledger.
const LEDGER: &str = "shell.jsonl";
/// What hashes are made with.
const KEY: &str = "shell.key";

/// Longest state that is read: ten times what a zsh with all its completions loaded writes.
const STATE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Longest ledger: a longer one is none of ours.
const LEDGER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a shell may take to write the rest of its state: it is at it.
const REST_WAIT: Duration = Duration::from_millis(200);
/// How often it is looked at.
const REST_EVERY: Duration = Duration::from_millis(5);

/// Makes hashes of values.
#[derive(Clone)]
pub struct Hasher(Hmac<Sha256>);

impl Hasher {
    fn new(key: &[u8]) -> Hasher {
        Hasher(Hmac::new_from_slice(key).expect("a key may have any length"))
    }

    /// The kind and the name are part of it: equal values of two names are not seen to be equal.
    pub fn hash(&self, category: Category, name: &str, value: &[u8]) -> u64 {
        let mut mac = self.0.clone();
        mac.update(&[category as u8]);
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(value);
        first_bytes(mac)
    }

    /// Tells this key from another.
    fn check(&self) -> u64 {
        first_bytes(self.0.clone())
    }
}

fn first_bytes(mac: Hmac<Sha256>) -> u64 {
    let all = mac.finalize().into_bytes();
    u64::from_le_bytes(std::array::from_fn(|at| all[at]))
}

/// The session's key; made where there is none.
fn hasher(dir: &Path) -> io::Result<Hasher> {
    match get(&SHELL_KEY, &dir.join(KEY), |content| <[u8; 32]>::try_from(content.bytes()).ok().map(Zeroizing::new)) {
        Ok(Some(key)) => Ok(Hasher::new(&*key)),
        Ok(None) | Err(Unreadable::Damaged { .. }) => make_key(dir),
        Err(why) => Err(why.into()),
    }
}

fn make_key(dir: &Path) -> io::Result<Hasher> {
    let key = Zeroizing::new([crate::random_token(), crate::random_token()].concat());
    put(&SHELL_KEY, dir, KEY, &key, Survives::Crash)?;
    Ok(Hasher::new(&key))
}

/// The ledger of a session; empty where none can be read.
pub fn load(dir: &Path) -> io::Result<Ledger> {
    let lines = read_lines(dir)?;
    if lines.is_empty() {
        // Nothing was told: no key is made to read nothing with.
        return Ok(Ledger::default());
    }
    Ok(Ledger::read(lines, hasher(dir)?.check()))
}

fn read_lines(dir: &Path) -> io::Result<Vec<Line>> {
    Ok(lines::load(&SHELL, &dir.join(LEDGER), LEDGER_BYTES_MAX)?)
}

/// What a state says that the ledger does not.
#[derive(Debug)]
pub struct Told {
    /// What is new.
    pub news: News,
    /// When the shell wrote it.
    pub at_ms: TimeMs,
    /// The ledger before.
    pub ledger: Ledger,
    check: u64,
}

/// Takes one of the shell's state files and reads it. None: it is empty, or no state.
pub fn take(dir: &Path, file: u8, cwd: Option<&str>) -> io::Result<Option<Told>> {
    if file != FIRST {
        keep_first(dir)?;
    }
    let shell = dir.join("shell");
    let (name, taken) = (format!("state.{file}"), taken(&shell, file));
    // One that is there already was taken by a host that died over it.
    if !taken.exists() {
        if std::fs::symlink_metadata(shell.join(&name)).map_or(0, |metadata| metadata.len()) == 0 {
            return Ok(None);
        }
        let state = shell.join(&name);
        // Where there are no links the shell may find it missing, and makes it anew.
        std::fs::hard_link(&state, &taken).or_else(|_| std::fs::rename(&state, &taken))?;
        // On a full disk it stays where it is until it is forgotten.
        let _ = replace(&shell, &name, b"");
    }
    let hasher = hasher(dir)?;
    let deadline = Instant::now() + REST_WAIT;
    loop {
        let Some((bytes, at_ms)) = read_state(&taken)? else { return Ok(None) };
        if let Some(state) = parse_state(&bytes, |category, name, value| hasher.hash(category, name, value)) {
            drop(bytes);
            let ledger = Ledger::read(read_lines(dir)?, hasher.check());
            let cwd = cwd.map(|cwd| hasher.hash(Category::Cwd, CWD, cwd.as_bytes()));
            let news = ledger.news(state, cwd);
            return Ok(Some(Told { news, at_ms, ledger, check: hasher.check() }));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        std::thread::sleep(REST_EVERY);
    }
}

/// The first state, where nobody saw the prompt that told of it, before any other.
fn keep_first(dir: &Path) -> io::Result<()> {
    if let Ok(Some(told)) = take(dir, FIRST, None)
        && told.ledger.since_ms().is_none()
    {
        let at_ms = told.at_ms;
        keep(dir, told, Changed::unknown(at_ms))?;
    }
    forget(dir, FIRST);
    Ok(())
}

/// Lets go of a state file that was taken, and with it of its values.
pub fn forget(dir: &Path, file: u8) {
    let shell = dir.join("shell");
    let (state, taken) = (shell.join(format!("state.{file}")), taken(&shell, file));
    let file_at = |path: &Path| std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file);
    if let (Some(here), Some(there)) = (file_at(&state), file_at(&taken))
        && (here.dev(), here.ino()) == (there.dev(), there.ino())
    {
        // Nothing could be put in its place.
        let _ = File::options().write(true).open(&state).and_then(|file| file.set_len(0));
    }
    let _ = std::fs::remove_file(taken);
}

/// Whether a file waits to be read that some host was told of, or never was.
pub fn is_left(dir: &Path) -> bool {
    let shell = dir.join("shell");
    let has = |path: PathBuf| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    (0..=FIRST).any(|file| has(shell.join(format!("state.{file}"))) || has(taken(&shell, file)))
}

/// The shell is no more: what it wrote last goes too.
pub fn clear(dir: &Path) {
    let shell = dir.join("shell");
    for file in 0..=FIRST {
        let _ = std::fs::remove_file(shell.join(format!("state.{file}")));
        let _ = std::fs::remove_file(taken(&shell, file));
    }
}

fn taken(shell: &Path, file: u8) -> PathBuf {
    shell.join(format!("state.{file}.taken"))
}

/// Keeps what is new.
pub fn keep(dir: &Path, told: Told, by: Changed) -> io::Result<()> {
    let Told { news, mut ledger, check, .. } = told;
    let changed = news.into_lines(by, check);
    let is_first = ledger.since_ms().is_none();
    for line in &changed {
        ledger.apply(line.clone());
    }
    let written = if is_first {
        lines::rewrite(&SHELL, dir, LEDGER, &changed)
    } else if ledger.is_stale() {
        lines::rewrite(&SHELL, dir, LEDGER, &ledger.lines())
    } else {
        lines::append(&SHELL, &dir.join(LEDGER), &changed)
    };
    written.map(drop)
}

/// A state file's bytes, and when they were written. None: it is no plain file, or too long.
fn read_state(path: &Path) -> io::Result<Option<(Zeroizing<Vec<u8>>, TimeMs)>> {
    // What lies there is the session's to choose: neither a pipe nor a link to one shall hold us up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > STATE_BYTES_MAX {
        return Ok(None);
    }
    let written = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let mut bytes = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
    Read::by_ref(&mut file).take(STATE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some((bytes, written.map_or_else(crate::now_ms, |at| at.as_millis() as TimeMs))))
}

#[cfg(test)]
mod tests;
