//! The host's socket is systemd's: a small activator in its place listens, and starts a host when somebody comes.

use holdfast_harness::{Home, Ran, gone, kill, program, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Starts the host with the socket as descriptor 3, and says whose it is: the shell becomes the host.
const AS_SYSTEMD: &str = r#"exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" host run"#;

fn host_run(home: &Home, socket: UnixListener) -> Command {
    let mut command = home.command(&["host", "run"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", AS_SYSTEMD]).arg(program()).stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)));
    for (key, value) in command.stdin(Stdio::null()).get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell
}

/// What a socket unit does: listens at a path, and starts the service when it is not running and somebody comes.
struct Unit {
    over: Arc<AtomicBool>,
    starts: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

fn bind(path: &Path) -> UnixListener {
    let dir = path.parent().unwrap();
    std::fs::create_dir_all(dir).unwrap();
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).unwrap()
}

impl Unit {
    fn listen(home: &Home) -> Unit {
        let socket = bind(&home.places().host_socket());
        let (over, starts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (ends, started, dir) = (Arc::clone(&over), Arc::clone(&starts), home.path().to_owned());
        let thread = std::thread::spawn(move || {
            let home = Home::at(&dir);
            let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !ends.load(Ordering::SeqCst) {
                if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&soon)) == Ok(1) {
                    started.fetch_add(1, Ordering::SeqCst);
                    host_run(&home, socket.try_clone().unwrap()).status().unwrap();
                }
            }
        });
        Unit { over, starts, thread: Some(thread) }
    }

    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pid(home: &Home) -> u32 {
    u32::try_from(home.json(&["host", "status"])["pid"].as_u64().unwrap()).unwrap()
}

/// Ends what the unit runs: it waits for it.
fn over(home: &Home, unit: Unit) {
    unit.over.store(true, Ordering::SeqCst);
    home.ok(&["end", "--all"]);
    home.ok(&["host", "stop"]);
}

#[test]
fn a_socket_that_systemd_passes_is_served_and_left_to_the_next_host() {
    let home = Home::new();
    let unit = Unit::listen(&home);
    let socket = home.places().host_socket();
    home.session("work", "echo ready; exec cat");
    let first = pid(&home);
    assert_eq!(unit.starts(), 1, "the first command came by the unit");
    home.until_screen_shows("work", "ready");

    kill(first);
    until("the host's end", || gone(first).then_some(()));
    home.ok(&["send", "work", "--enter", "after the crash"]);
    home.until_screen_shows("work", "after the crash");
    assert_eq!(unit.starts(), 2, "and so did the one after a crash");

    let second = pid(&home);
    let said = home.ok(&["host", "stop"]);
    assert!(said.contains("1 session kept running"), "{said}");
    assert!(gone(second) && socket.exists(), "the socket is systemd's, and stays");
    assert_eq!(unit.starts(), 2, "to stop the host does not start the next one");
    home.ok(&["host", "restart"]);
    assert_eq!(home.number("work", "incarnation"), 1);
    let third = pid(&home);
    assert_eq!(home.lock_holder(), Some(third));
    over(&home, unit);
}

#[test]
fn a_host_that_runs_leaves_for_the_one_that_systemd_starts() {
    let home = Home::new();
    home.session("work", "echo ready; exec cat");
    home.until_screen_shows("work", "ready");
    let before = pid(&home);
    let keeper = home.number("work", "keeper_pid");

    // As `systemctl --user enable --now holdfast-host.socket` does while a host runs.
    let unit = Unit::listen(&home);
    home.ok(&["send", "work", "--enter", "to the new one"]);
    home.until_screen_shows("work", "to the new one");
    assert!(gone(before) && pid(&home) != before);
    assert_eq!((unit.starts(), home.number("work", "keeper_pid")), (1, keeper));
    assert!(home.places().host_socket().exists(), "the host that left did not take systemd's socket with it");
    over(&home, unit);
}

#[test]
fn a_socket_of_another_place_is_refused() {
    let home = Home::new();
    home.ok(&["whoami"]);
    let socket = bind(&home.join("elsewhere/host.sock"));
    let ran: Ran = host_run(&home, socket).stderr(Stdio::piped()).output().unwrap().into();
    assert_eq!(ran.status, 1, "{ran}");
    assert!(ran.err.contains("check ListenStream="), "{ran}");
    assert_eq!(home.lock_holder(), None);
}
