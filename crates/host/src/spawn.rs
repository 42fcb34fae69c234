//! Starting a keeper: the embedded program is put where it can be run, and told what to hold.

use holdfast_abi::start::{STARTED_BYTES, Stage, Start, Started};
use holdfast_store::{Survives, checksum, make_dir, replace_as};
use holdfast_wire::{Code, Fault};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A program that this crate's build script built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded(usize);

/// The keeper.
pub const KEEPER: Embedded = Embedded(0);
/// What stands around a portable session.
pub const PORTABLE: Embedded = Embedded(1);
/// The library that `criu restore` is started with.
pub const CTTY: Embedded = Embedded(2);

static EMBEDDED: [(&str, &[u8]); 3] = [
    ("holdfast-keeper", include_bytes!(concat!(env!("OUT_DIR"), "/keeper"))),
    ("holdfast-portable", include_bytes!(concat!(env!("OUT_DIR"), "/portable"))),
    ("holdfast-ctty", include_bytes!(concat!(env!("OUT_DIR"), "/ctty.so"))),
];

/// Their names: with the version, for people, and the hash, by which they are told apart. Looked at for every new session, so the hashes
/// are taken once.
static NAMES: LazyLock<[String; 3]> = LazyLock::new(|| {
    EMBEDDED.map(|(name, bytes)| format!("{name}-{}-{:016x}", env!("CARGO_PKG_VERSION"), checksum(bytes)))
});

/// The build of a keeper: the version of the program it came with, which earlier ones did not say, and the hash of its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeeperBuild {
    /// As in `0.1.0`.
    pub version: Option<String>,
    /// Sixteen hexadecimal digits.
    pub hash: String,
}

/// The keepers that this program starts.
#[must_use]
pub fn own_keeper() -> KeeperBuild {
    build_of(&NAMES[0]).expect("it was just named so")
}

/// The keeper that a process runs, by the file it was started from.
#[must_use]
pub fn keeper_of(pid: u32) -> Option<KeeperBuild> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let file = Path::new(std::str::from_utf8(words.split(|byte| *byte == 0).next()?).ok()?);
    build_of(file.file_name()?.to_str()?)
}

fn build_of(name: &str) -> Option<KeeperBuild> {
    let rest = name.strip_prefix(EMBEDDED[0].0)?.strip_prefix('-')?;
    let (version, hash) = rest.rsplit_once('-').map_or((None, rest), |(version, hash)| (Some(version), hash));
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| KeeperBuild { version: version.map(str::to_owned), hash: hash.to_owned() })
}

/// Puts a program into the state directory, under its own hash: an upgrade never touches the file that running keepers were started
/// from.
pub fn install(state: &Path, Embedded(which): Embedded) -> io::Result<PathBuf> {
    let dir = state.join("bin");
    let (name, bytes) = (NAMES[which].as_str(), EMBEDDED[which].1);
    let path = dir.join(name);
    if std::fs::metadata(&path).is_ok_and(|m| m.len() == bytes.len() as u64 && m.permissions().mode() & 0o100 != 0) {
        return Ok(path);
    }
    make_dir(&dir)?;
    replace_as(0o700, &dir, name, bytes, Survives::Crash)?;
    // Programs of earlier builds: keepers that run keep theirs open, nobody starts them again.
    let is_ours = |entry: &std::fs::DirEntry| NAMES.iter().any(|name| entry.file_name() == name.as_str());
    for old in std::fs::read_dir(&dir)?.flatten().filter(|entry| !is_ours(entry)) {
        let _ = std::fs::remove_file(old.path());
    }
    Ok(path)
}

/// What a keeper is called until it has a session: as long as an id, which it writes over it.
const NOBODYS: &str = "ses_..........................";

/// A keeper that has no orders yet.
#[derive(Debug)]
pub struct Waiting {
    /// What it runs.
    pub program: PathBuf,
    /// Its process.
    pub child: Child,
    /// Where it reads its orders; it ends with this.
    pub stream: UnixStream,
}

impl Waiting {
    /// Whether it still waits.
    pub fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Starts a keeper that waits for its orders. Blocks until its program runs.
pub fn ahead(program: &Path) -> io::Result<Waiting> {
    begin(program, None, NOBODYS)
}

fn begin(program: &Path, apart: Option<&Path>, label: &str) -> io::Result<Waiting> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(apart.unwrap_or(program));
    if apart.is_some() {
        command.arg("apart").arg(program);
    }
    let child = command
        .arg(label)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Waiting { program: program.to_owned(), child, stream: ours })
}

/// Starts a keeper, or takes one that waits, and waits until the command runs, or cannot. One of a portable session is started by `apart`,
/// which makes it a mount namespace and becomes it.
pub async fn start(
    program: &Path,
    apart: Option<&Path>,
    ahead: Option<Waiting>,
    label: &str,
    start: &Start,
) -> Result<(Child, Started), Fault> {
    let failed = |what: &str, error: io::Error| {
        Fault::new(Code::CannotStart, format!("{what}: {error}")).hint("see `holdfast doctor`")
    };
    let begun = ahead.map_or_else(|| begin(program, apart, label), Ok);
    let Waiting { child, stream, .. } =
        begun.map_err(|e| failed(&format!("cannot run the keeper {}", program.display()), e))?;
    let answer = async {
        let mut stream = tokio::net::UnixStream::from_std(stream)?;
        stream.write_all(&start.encode()).await?;
        let mut bytes = [0; STARTED_BYTES];
        stream.read_exact(&mut bytes).await?;
        Started::decode(&bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    let started = match answer.await {
        Ok(started) => started,
        Err(error) => {
            reap(child);
            return Err(failed("the keeper ended before the command ran", error));
        }
    };
    match refusal(&started, start) {
        None => Ok((child, started)),
        Some(fault) => {
            reap(child);
            Err(fault)
        }
    }
}

/// Collects a keeper that ends by itself, without blocking anybody.
pub fn reap(mut child: Child) {
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    tokio::task::spawn_local(async move {
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
        }
    });
}

fn refusal(started: &Started, start: &Start) -> Option<Fault> {
    let why = io::Error::from_raw_os_error(started.errno);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // For programs: which of the two it was.
    let about = |mut fault: Fault, what: &str, value: &str| {
        fault.details = Some(Box::new(serde_json::json!({ what: value })));
        fault
    };
    let fault = match started.stage {
        Stage::Running => return None,
        Stage::Block => Fault::new(Code::CannotStart, "the keeper did not understand its orders")
            .hint("host and keeper are from different builds; run: holdfast host restart"),
        Stage::Ring => Fault::new(Code::CannotStart, format!("cannot create the ring file: {why}"))
            .hint("is the disk full? try a smaller ring: --ring 256k"),
        Stage::Terminal => Fault::new(Code::CannotStart, format!("cannot open a terminal: {why}"))
            .hint("see /proc/sys/kernel/pty/max and `holdfast doctor`"),
        Stage::Socket => Fault::new(Code::CannotStart, format!("cannot create the keeper's socket: {why}"))
            .hint("see `holdfast doctor` for the runtime directory"),
        Stage::Directory => {
            let cwd = text(&start.cwd);
            let fault = Fault::new(Code::CannotStart, format!("cannot start in {cwd}: {why}"))
                .hint("choose a directory that exists: --cwd DIR");
            about(fault, "cwd", &cwd)
        }
        Stage::Command => {
            let command = start.argv.first().map(|c| text(c)).unwrap_or_default();
            let fault = Fault::new(Code::CannotStart, format!("cannot run {command}: {why}"))
                .hint("Holdfast looks the command up in your PATH, and runs the words after `--` without a shell");
            about(fault, "command", &command)
        }
    };
    Some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keepers_file_says_its_build_and_earlier_ones_their_hash_alone() {
        let own = own_keeper();
        assert_eq!((own.version.as_deref(), own.hash.len()), (Some(env!("CARGO_PKG_VERSION")), 16));
        let old = build_of("holdfast-keeper-00112233445566ff").unwrap();
        assert_eq!((old.version, old.hash.as_str()), (None, "00112233445566ff"));
        for odd in [
            "holdfast-keeper",
            "holdfast-keeper-1",
            "holdfast-portable-0.1.0-00112233445566ff",
            "holdfast-keeper-0.1.0-x",
        ] {
            assert_eq!(build_of(odd), None, "{odd}");
        }
        assert_eq!(keeper_of(std::process::id()), None);
    }
}
