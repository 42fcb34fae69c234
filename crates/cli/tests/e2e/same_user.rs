//! What another program of the same user cannot take from the host and the keeper.

use holdfast_harness::{gone, kill, program, until};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// A user that is not root: root looks into everything.
const SOMEBODY: u32 = 65_534;

/// A command as that user, or as who runs the tests where that is not root.
fn as_somebody(name: &Path) -> Command {
    let mut command = Command::new(name);
    if rustix::process::getuid().is_root() {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    command
}

fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

#[test]
fn no_program_of_the_same_user_reads_the_host_or_takes_the_keepers_terminal() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    // The build's directory may be closed to that user.
    let holdfast = dir.path().join("holdfast");
    std::fs::copy(program(), &holdfast).unwrap();
    if rustix::process::getuid().is_root() {
        chown(dir.path(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    let run = |args: &[&str]| -> Output {
        let mut command = as_somebody(&holdfast);
        command.env_clear().env("HOLDFAST_HOME", dir.path().join("home")).env("PATH", "/usr/bin:/bin");
        command.args(["--as", "agent:tester", "--json"]).args(args).current_dir(dir.path()).output().unwrap()
    };
    let json = |args: &[&str]| -> Value {
        let ran = run(args);
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        serde_json::from_slice(&ran.stdout).unwrap_or_default()
    };
    json(&["new", "-d", "-n", "kept", "--", "sleep", "1000"]);
    let child = json(&["info", "kept"])["pid"].as_u64().unwrap() as u32;
    let host = json(&["host", "status"])["pid"].as_u64().unwrap() as u32;
    let _ended = Ended([child, host]);
    let looks = |pid: u32| {
        let read = as_somebody(Path::new("/bin/cat")).arg(format!("/proc/{pid}/environ")).output().unwrap();
        let listed = as_somebody(Path::new("/bin/ls")).arg(format!("/proc/{pid}/fd")).output().unwrap();
        (read.status.success(), listed.status.success())
    };
    assert_eq!(looks(child), (true, true), "the session is the user's own");
    for (who, pid) in [("host", host), ("keeper", parent(child))] {
        assert_eq!(looks(pid), (false, false), "{who}");
        assert_eq!(std::fs::metadata(format!("/proc/{pid}/fd")).unwrap().uid(), 0, "{who}");
    }
    assert!(run(&["end", "kept", "--grace", "0"]).status.success());
    assert!(run(&["host", "stop"]).status.success());
    until("the host's end", || gone(host));
}

/// Ends what a failed test leaves.
struct Ended([u32; 2]);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|pid| kill(*pid));
        }
    }
}
