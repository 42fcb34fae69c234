//! Commands as steps: said in one line, run without a standard input, judged by their exit code.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Says what happens now, in one line.
pub fn say(text: &str) {
    println!("xtask: {text}");
}

/// The cargo that runs us, so that a step uses the same toolchain.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Where cargo puts what it makes.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// A program in a directory.
pub fn program(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(dir);
    command
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    std::iter::once(name).chain(command.get_args().map(|arg| arg.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Says the command, runs it, gives its status.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    let line = shown(command);
    say(&line);
    command.stdin(Stdio::null());
    if FAILURES.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
        return command.status().with_context(|| format!("cannot run `{line}`"));
    }
    let began = Instant::now();
    let (status, tail) = with_tail(command).with_context(|| format!("cannot run `{line}`"))?;
    TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((began.elapsed(), line.clone()));
    if !status.success() {
        failed(format!("{line}: {status}\n{tail}"));
    }
    Ok(status)
}

/// What failed since [`keep_failures`], each with the end of what it printed.
static FAILURES: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// How long each command took since [`keep_failures`].
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(vec![]);

/// The commands that took longest so far, the longest first.
pub fn longest(count: usize) -> Vec<(Duration, String)> {
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    times.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    times.truncate(count);
    times
}

/// Lines of a failed command that are shown again.
const TAIL_LINES: usize = 120;

/// From now on the end of what failed commands print is kept: a log of CI is long, and read from its end.
pub fn keep_failures() {
    *FAILURES.lock().unwrap_or_else(PoisonError::into_inner) = Some(vec![]);
}

/// Keeps one failure, where they are kept.
pub fn failed(text: String) {
    if let Some(kept) = FAILURES.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        kept.push(text);
    }
}

/// What failed so far.
pub fn failures() -> Vec<String> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// Runs the command, shows what it prints while it does, and gives the last lines of it.
fn with_tail(command: &mut Command) -> std::io::Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // Ours would keep the pipe open.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut tail = VecDeque::new();
    let mut line = vec![];
    let mut reader = BufReader::new(reader);
    while reader.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        tail.push_back(String::from_utf8_lossy(&line).into_owned());
        if tail.len() > TAIL_LINES {
            tail.pop_front();
        }
        line.clear();
    }
    Ok((child.wait()?, tail.into_iter().collect()))
}

/// The same, for a command that must succeed.
pub fn must(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Whether the command runs and succeeds; nothing is shown.
pub fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Where PATH has this program.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Installs a cargo subcommand unless it is there. Without optimisation: it waits for what it starts, and is built in half the time.
pub fn cargo_has(root: &Path, subcommand: &str) -> Result<()> {
    if works(cargo(root).args([subcommand, "--version"])) {
        return Ok(());
    }
    must(cargo(root).args(["install", "--debug", "--locked", &format!("cargo-{subcommand}")]))
}

/// Our exit code for a child's status; a signal is 128+n, as in a shell.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_without_the_path_of_its_program() {
        assert_eq!(shown(Command::new("/usr/bin/apt-get").args(["install", "-y", "less"])), "apt-get install -y less");
    }

    #[test]
    fn a_failed_step_is_an_error_and_its_code_is_kept() {
        assert!(must(Command::new("sh").args(["-c", "exit 3"])).is_err());
        let code = |script: &str| format!("{:?}", exit_code(status(Command::new("sh").args(["-c", script])).unwrap()));
        assert_eq!(code("exit 3"), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code("kill -9 $$"), format!("{:?}", ExitCode::from(137)));
        assert!(!works(&mut Command::new("no-such-program-anywhere")));
        assert!(on_path("sh").is_some() && on_path("no-such-program-anywhere").is_none());
    }

    #[test]
    fn the_tail_of_a_command_is_the_end_of_both_its_streams() {
        let (status, tail) = with_tail(Command::new("sh").args(["-c", "seq 200; echo bad >&2; exit 3"])).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.ends_with("200\nbad\n"));
    }
}
