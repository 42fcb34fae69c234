use std::os::unix::fs::PermissionsExt;

use holdfast_abi::ring::BASE_MAX;
use holdfast_abi::start::{START_BYTES_MAX, Stage, Start};
use holdfast_keeper::sys;

use crate::harness::*;

/// Starts what must fail; the answer, and what is left in the directory.
fn failure(change: impl FnOnce(&mut Start, &Scratch)) -> (Stage, i32, Vec<String>) {
    let dir = Scratch::new();
    let mut start = shell(&dir, "true");
    change(&mut start, &dir);
    let (started, mut process) = launch(&start.encode());
    assert_eq!(process.wait().unwrap().code(), Some(1));
    let mut left: Vec<_> =
        std::fs::read_dir(&dir.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    (started.stage, started.errno, left)
}

#[test]
fn each_failure_names_its_stage_and_leaves_nothing() {
    let none: Vec<String> = vec![];
    assert_eq!(failure(|s, _| s.ring_path = b"relative".to_vec()), (Stage::Block, libc::EINVAL, none.clone()));
    assert_eq!(failure(|s, _| s.ring_bytes = 3 << 20), (Stage::Ring, libc::EINVAL, none.clone()));
    assert_eq!(failure(|s, _| s.ring_bytes = 1 << 17), (Stage::Ring, libc::EINVAL, none.clone()));
    assert_eq!(failure(|s, _| s.base.output = BASE_MAX + 1), (Stage::Ring, libc::EINVAL, none.clone()));
    assert_eq!(failure(|s, _| s.base.log = u64::MAX), (Stage::Ring, libc::EINVAL, none.clone()));
    assert_eq!(failure(|s, _| s.ring_path = b"/nowhere/ring".to_vec()), (Stage::Ring, libc::ENOENT, none.clone()));
    assert_eq!(failure(|s, _| s.socket_path = b"/nowhere/sock".to_vec()), (Stage::Socket, libc::ENOENT, none.clone()));
    assert_eq!(failure(|s, _| s.cwd = b"/nowhere".to_vec()), (Stage::Directory, libc::ENOENT, none.clone()));
    assert_eq!(failure(|s, _| s.cwd = b"/etc/passwd".to_vec()), (Stage::Directory, libc::ENOTDIR, none.clone()));
    assert_eq!(failure(|s, _| s.argv[0] = b"no-such".to_vec()), (Stage::Command, libc::ENOENT, none.clone()));
    assert_eq!(failure(|s, _| s.argv[0] = b"/etc/passwd".to_vec()), (Stage::Command, libc::EACCES, none.clone()));
    assert_eq!(failure(|s, _| s.env = vec![b"PATH=/nowhere".to_vec()]), (Stage::Command, libc::ENOENT, none));
}

#[test]
fn what_was_there_before_is_not_removed() {
    let touched = |name: &'static str| failure(move |_, dir| std::fs::write(dir.path(name), b"mine").unwrap());
    assert_eq!(touched("ring"), (Stage::Ring, libc::EEXIST, vec!["ring".into()]));
    assert_eq!(touched("sock"), (Stage::Socket, libc::EADDRINUSE, vec!["sock".into()]));
}

#[test]
fn a_block_that_makes_no_sense_is_answered() {
    let too_long = (START_BYTES_MAX as u32 + 1).to_le_bytes();
    for block in [&b""[..], b"\x04\0\0\0abc", b"\x04\0\0\0abcd", &too_long] {
        let (started, mut process) = launch(block);
        assert_eq!(started.stage, Stage::Block, "{block:?}");
        assert_eq!(process.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn the_child_gets_exactly_what_was_asked_for() {
    let dir = Scratch::new();
    let script = "echo $0 $A; pwd; umask; ulimit -Sn; tty; stty size; ps -o tpgid=,sid= -p $$; stty -a; \
                  grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/$$/fd; env; echo done";
    let mut start = shell(&dir, script);
    start.argv0 = b"other-sh".to_vec();
    start.umask = 0o27;
    start.nofile = 77;
    start.size = (91, 17);
    start.env.push(b"A=b c".to_vec());
    let mut session = Session::start(dir, &start);
    assert_eq!(session.ended(), 0);
    let text = session.text();
    let lines: Vec<&str> = text.lines().collect();
    let pid = session.child.to_string();
    assert_eq!(lines[0], "other-sh b c");
    assert_eq!(lines[1], session.dir.0.to_str().unwrap());
    assert_eq!((lines[2], lines[3], lines[5]), ("0027", "77", "17 91"));
    assert!(lines[4].starts_with("/dev/pts/"), "{}", lines[4]);
    assert_eq!(lines[6].split_whitespace().collect::<Vec<_>>(), [&pid, &pid]);
    assert!(text.contains(" iutf8"));
    assert!(text.contains("SigBlk:\t0000000000000000") && text.contains("SigIgn:\t0000000000000000"), "{text}");
    let (_, after) = text.split_once("SigIgn:").unwrap();
    let names: Vec<&str> = after.lines().skip(1).take_while(|line| !line.contains('=')).collect();
    let descriptors: Vec<&str> = names.iter().flat_map(|line| line.split_whitespace()).collect();
    assert_eq!(descriptors, ["0", "1", "2"], "{text}");
    let mut env: Vec<&str> = after.lines().filter(|line| line.contains('=') && !line.starts_with("PWD=")).collect();
    env.retain(|line| !line.starts_with("_=") && !line.starts_with("OLDPWD="));
    env.sort();
    assert_eq!(env, ["A=b c", "PATH=/usr/bin:/bin", "TERM=dumb"]);
}

#[test]
fn a_script_without_an_interpreter_line_runs() {
    let dir = Scratch::new();
    let script = dir.path("script");
    std::fs::write(&script, "echo ran $1\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut start = shell(&dir, "");
    start.argv = vec![b"./script".to_vec(), b"well".to_vec()];
    let mut session = Session::start(dir, &start);
    assert_eq!(session.ended(), 0);
    assert_eq!(session.text(), "ran well\r\n");
}

#[test]
fn files_are_private_and_long_socket_paths_work() {
    let dir = Scratch::new();
    let deep = dir.path(&"d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let mut start = shell(&dir, "read line");
    start.socket_path = bytes(&deep.join("sock"));
    let session = Session::start(dir, &start);
    for path in [session.dir.path("ring"), deep.join("sock")] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Clients reach it the same way.
    let directory = std::fs::File::open(&deep).unwrap();
    let short = format!("/proc/self/fd/{}/sock", std::os::fd::AsRawFd::as_raw_fd(&directory));
    let mut host = Connection::to(std::path::Path::new(&short));
    host.send(holdfast_abi::protocol::ToKeeper::Hello { version: 1, role: 1, token: SECRET });
    host.welcomed();
}

#[test]
fn signals_do_not_end_a_keeper_and_it_holds_nothing_of_its_starter() {
    let mut session = Session::shell("echo up; read line");
    session.wait_for_text("up");
    for signal in
        [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGUSR1, libc::SIGPIPE, libc::SIGTSTP]
    {
        sys::kill(session.keeper as i32, signal);
    }
    let mut host = session.host();
    host.sync();
    assert!(session.is_running());
    assert_eq!(std::fs::read_link(format!("/proc/{}/cwd", session.keeper)).unwrap().to_str(), Some("/"));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", session.keeper)).unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    assert_eq!(fields[3], session.keeper.to_string(), "its own session");
    for fd in 0..3 {
        let target = std::fs::read_link(format!("/proc/{}/fd/{fd}", session.keeper)).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
    }
}

#[test]
fn the_ring_is_locked_as_long_as_the_keeper_lives_whatever_became_of_its_files() {
    use std::os::fd::AsFd;
    let session = Session::shell("exec cat");
    let ring = std::fs::File::open(session.dir.path("ring")).unwrap();
    for name in ["ring", "sock"] {
        std::fs::remove_file(session.dir.path(name)).unwrap();
    }
    assert_eq!(sys::lock(ring.as_fd()).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    sys::kill(session.keeper as i32, libc::SIGKILL);
    eventually("the lock", || sys::lock(ring.as_fd()).ok());
}

#[test]
fn a_preface_is_the_first_output_of_a_life_that_goes_on() {
    let dir = Scratch::new();
    let preface = b"[life 2]\r\n".to_vec();
    let base = holdfast_abi::ring::Base { output: (1 << 20) - 3, log: 64 };
    let start = Start { preface: preface.clone(), base, ..shell(&dir, "echo on; exec cat") };
    let session = Session::start(dir, &start);
    let wanted = [preface.as_slice(), b"on\r\n"].concat();
    eventually("the output", || (session.ring.head() >= base.output + wanted.len() as u64).then_some(()));
    let mut read = Vec::new();
    while read.len() < wanted.len() {
        let mut part = vec![0; wanted.len() - read.len()];
        match session.ring.copy(base.output + read.len() as u64, &mut part) {
            holdfast_abi::ring::Copied::Bytes(count) => read.extend_from_slice(&part[..count]),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read, wanted);
}
