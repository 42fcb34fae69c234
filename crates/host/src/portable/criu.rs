//! CRIU, by its command line: where it is, and how it is run.

use holdfast_observe::portable::Terminal;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names CRIU where it is not on the path.
pub const VARIABLE: &str = "HOLDFAST_CRIU";
/// How long a dump may take: some gigabytes to a slow disk. The processes stand still meanwhile.
const DUMP_MAX: Duration = Duration::from_secs(120);
/// How long a question may take.
const ASK_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Deleted files up to this size are part of the image.
const GHOST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes at the end of a log that are read for what went wrong.
const LOG_BYTES_MAX: u64 = 64 * 1024;
/// Descriptors by which the keeper's child gives CRIU the terminal (`crates/keeper/src/portable/restore.rs`).
const TERMINAL_FD: u32 = 60;
const TTY_FD: u32 = 61;
const LEADER_FD: u32 = 200;

/// Where CRIU is: named by the variable, fetched by `doctor --fix`, or installed.
#[must_use]
pub fn find(state: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let installed =
        ["/usr/sbin/criu", "/usr/bin/criu", "/usr/local/sbin/criu", "/usr/local/bin/criu"].map(PathBuf::from);
    let all = named.into_iter().chain([fetched(state)]).chain(installed);
    all.into_iter().find(|path| path.is_absolute() && path.is_file())
}

/// Where `doctor --fix` puts it.
#[must_use]
pub fn fetched(state: &Path) -> PathBuf {
    state.join("criu").join("criu")
}

/// Its version; an error where it does not run.
pub fn version(criu: &Path) -> io::Result<String> {
    let text = asked(Command::new(criu).arg("--version"))?;
    let version = text.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or(&text);
    Ok(version.trim().to_owned())
}

/// Whether this kernel has what it needs; what is missing otherwise.
pub fn check(criu: &Path) -> io::Result<()> {
    asked(Command::new(criu).arg("check")).map(drop)
}

/// Writes down which processor this is.
pub(crate) fn note_processor(criu: &Path, img: &Path) -> io::Result<()> {
    asked(Command::new(criu).args(["cpuinfo", "dump", "-D"]).arg(img)).map(drop)
}

/// Whether this processor has all that the image may use: a lesser one would restore it and then kill it.
pub(crate) fn fits_processor(criu: &Path, img: &Path) -> io::Result<()> {
    asked(Command::new(criu).args(["cpuinfo", "check", "-D"]).arg(img)).map(drop)
}

/// What a program says within its time.
fn asked(command: &mut Command) -> io::Result<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let status = until(&mut child, ASK_MAX)?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if status { Ok(said) } else { Err(io::Error::other(last_errors(&said))) }
}

/// Waits for a child; kills it where it takes too long.
fn until(child: &mut std::process::Child, most: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + most;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other("it took too long"));
        }
        std::thread::sleep(LOOK);
    }
}

/// Copies the processes below `init` into `img`, and leaves them stopped. Where they have a network of their own CRIU is run there by the
/// helper, so that it is not part of the image. Blocks.
pub(crate) fn dump(
    criu: &Path,
    helper: Option<&Path>,
    init: u32,
    img: &Path,
    terminal: &Terminal,
    mounts: &[String],
) -> io::Result<()> {
    let log = img.with_file_name("dump.log");
    let mut command = Command::new(helper.unwrap_or(criu));
    if helper.is_some() {
        command.arg("beside").arg(init.to_string()).arg(criu);
    }
    command.args(["dump", "-t", &init.to_string(), "-v2", "--leave-stopped", "-D"]).arg(img).arg("-o").arg(&log);
    command.args(["--tcp-close", "--network-lock", "nftables", "--file-locks", "--link-remap", "--force-irmap"]);
    command.args(["--skip-in-flight", "--manage-cgroups=ignore", "--ghost-limit", &GHOST_BYTES_MAX.to_string()]);
    command.args(["--external", &terminal.key, "--external", &terminal.tty_key, "--external", "mnt[/dev/pts]:pts"]);
    for mount in mounts {
        command.args(["--external", &format!("mnt[{mount}]:m{mount}")]);
    }
    // What it says before it has opened its log, which empties it, is why it did not start.
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?).spawn()?;
    if until(&mut child, DUMP_MAX)? { Ok(()) } else { Err(io::Error::other(errors_in(&log))) }
}

/// CRIU's words for a restore by the keeper's child.
pub(crate) fn restore(
    criu: &Path,
    img: &Path,
    work: &Path,
    terminal: &Terminal,
    mounts: &[String],
    source: impl Fn(&str) -> PathBuf,
) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        vec![criu.into(), "restore".into(), "-D".into(), img.into(), "-W".into(), work.into()];
    let mut add = |more: &[&str]| words.extend(more.iter().map(OsString::from));
    add(&["-o", "restore.log", "-v2", "-d", "-S", "--tcp-close", "--file-locks", "--link-remap"]);
    add(&["--manage-cgroups=ignore", "--external", "mnt[pts]:/dev/pts"]);
    add(&["--inherit-fd", &format!("fd[{TERMINAL_FD}]:{}", terminal.key)]);
    add(&["--inherit-fd", &format!("fd[{TTY_FD}]:{}", terminal.tty_key)]);
    for mount in mounts {
        add(&["--external", &format!("mnt[m{mount}]:{}", source(mount).display())]);
    }
    words.extend(["--root".into(), source("/").into_os_string()]);
    words
}

/// For the library that gives session leaders their terminal (`crates/host/ctty`).
pub(crate) fn leaders(terminal: &Terminal) -> String {
    let all: Vec<String> = terminal.leaders.iter().map(|pid| format!("{LEADER_FD}:{pid}")).collect();
    all.join(",")
}

/// What a log says went wrong.
pub(crate) fn errors_in(log: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let length = file.metadata().map_or(0, |file| file.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)));
        let _ = file.take(LOG_BYTES_MAX).read_to_end(&mut text);
    }
    last_errors(&String::from_utf8_lossy(&text))
}

/// The first errors in CRIU's text, without where in its source they are; the last line where there is none.
fn last_errors(text: &str) -> String {
    // A container without this right is no reason.
    let is_error = |line: &&str| line.contains("Error (") && !line.contains("RLIMIT_NOFILE");
    let plain = |line: &str| line.split_once("): ").map_or(line, |(_, said)| said).trim().to_owned();
    let errors: Vec<String> = text.lines().filter(is_error).take(3).map(plain).collect();
    match errors.is_empty() {
        false => errors.join("; "),
        true => text.lines().last().map_or_else(|| "CRIU did not say why".into(), |line| line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_the_first_errors_are_told_without_their_place_in_the_source() {
        let log = "(00.001) Warn  (criu/kerndat.c:1): odd\n\
                   (00.001) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self\n\
                   (00.002) Error (criu/sk-unix.c:9): unix: Can't dump half of stream unix connection.\n\
                   (00.003) Error (criu/cr-dump.c:7): Dumping FAILED.\n";
        assert_eq!(last_errors(log), "unix: Can't dump half of stream unix connection.; Dumping FAILED.");
        assert_eq!(last_errors("no such program\n"), "no such program");
        assert_eq!(last_errors(""), "CRIU did not say why");
    }
}
