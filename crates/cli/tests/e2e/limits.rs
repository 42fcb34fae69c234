//! What a machine or a person may run out of, or get wrong.

use holdfast_harness::{Home, Terminal, gone, open_files, poll, until};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// A small file system of its own, unmounted at the end.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    /// Needs root, as CI has it.
    fn mount(size: &str) -> SmallDisk {
        let dir = tempfile::Builder::new().prefix("hfd").tempdir().unwrap();
        let text = |bytes: &[u8]| CString::new(bytes).unwrap();
        let (target, kind) = (text(dir.path().as_os_str().as_bytes()), text(b"tmpfs"));
        let options = text(format!("size={size},mode=700").as_bytes());
        // SAFETY: every pointer is a string that lives until the call returns.
        let failed =
            unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) } != 0;
        assert!(!failed, "this test mounts a file system and needs root: {}", std::io::Error::last_os_error());
        SmallDisk { dir }
    }

    /// Takes all the space there is; gives the file that has it.
    fn fill(&self) -> PathBuf {
        let path = self.dir.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        for size in [1 << 20, 4096, 1] {
            while std::io::Write::write_all(&mut file, &vec![1; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let target = CString::new(self.dir.path().as_os_str().as_bytes()).unwrap();
        // SAFETY: the string lives until the call returns.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_full_disk_cuts_an_upload_off_and_it_goes_on_once_there_is_space() {
    let (home, disk) = (Home::new(), SmallDisk::mount("12m"));
    let tree = disk.dir.path();
    home.ok(&["new", "-d", "-n", "s", "--cwd", tree.to_str().unwrap(), "--", "cat"]);
    std::fs::write(tree.join("goal"), "the old one").unwrap();
    let content: Vec<u8> = (0..9 << 20).map(|at: u32| (at % 251) as u8).collect();
    let near = home.join("near");
    std::fs::write(&near, &content).unwrap();
    let filler = tree.join("filler");
    std::fs::write(&filler, vec![1; 6 << 20]).unwrap();
    let put = ["files", "put", near.to_str().unwrap(), "s:goal"];
    let refused = home.fails(&put);
    assert!(refused.contains("no space is left") && refused.contains("free some space"), "{refused}");
    assert_eq!(std::fs::read_to_string(tree.join("goal")).unwrap(), "the old one");
    // A short write leaves nothing behind.
    let before = std::fs::read_dir(tree).unwrap().count();
    let short = home.run_with_input(&["files", "put", "-", "s:short"], &content[..3 << 20]);
    assert!(short.status != 0 && short.err.contains("no space is left"), "{short}");
    assert_eq!(std::fs::read_dir(tree).unwrap().count(), before);
    std::fs::remove_file(&filler).unwrap();
    home.ok(&put);
    assert!(std::fs::read(tree.join("goal")).unwrap() == content);
    home.ok(&["journal", "s", "--verify"]);
    // Downwards the same.
    std::fs::rename(tree.join("goal"), tree.join("source")).unwrap();
    let (from, to) = ("s:source", tree.join("copy"));
    let refused = home.fails(&["files", "get", from, to.to_str().unwrap()]);
    assert!(refused.contains("No space left") && !to.exists(), "{refused}");
    home.ok(&["end", "s"]);
}

#[test]
fn a_full_disk_refuses_new_sessions_clearly_and_takes_nothing_from_running_ones() {
    let disk = SmallDisk::mount("48m");
    let home = Home::at(disk.dir.path());
    home.session("s", "stty -echo; echo ready; while read -r line; do seq 1 $line; echo got $line; done");
    home.until_screen_shows("s", "ready");
    let pid = home.number("s", "pid");
    let (terminal, _client) = Terminal::attached(&home, "s", "80x24");
    let filler = disk.fill();
    let refused = home.fails(&["new", "-d", "-n", "more", "--", "cat"]);
    assert!(refused.contains("No space left") && refused.contains("disk"), "{refused}");
    assert!(!home.ok(&["ls"]).contains("more"), "nothing is left of it");
    assert_eq!(std::fs::read_dir(home.join("sessions")).unwrap().count(), 1, "not even a directory");
    // Through the ring several times over, with nowhere to save anything.
    terminal.types("400000\r");
    terminal.wait_text("got 400000");
    terminal.settle(&home, "s");
    let note = home.json(&["info", "s"])["note"].as_str().unwrap_or_default().to_owned();
    assert!(note.contains("cannot save"), "a person is told: {note:?}");
    home.kill_host();
    terminal.types("3\r");
    terminal.wait_text("got 3");
    assert!(poll(|| home.host_answers()).is_some(), "a host starts on a full disk: {:?}", home.run(&["ls"]));
    std::fs::remove_file(filler).unwrap();
    home.ok(&["new", "-d", "-n", "more", "--", "cat"]);
    home.ok(&["send", "s", "--enter", "2000"]);
    home.until_screen_shows("s", "got 2000");
    let shown = home.ok(&["screen", "s", "--history", "3000"]);
    let numbers: Vec<u32> = shown.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let expected: Vec<u32> = (1..=2000).collect();
    assert!(numbers.ends_with(&expected), "what came after space returned is all there");
    assert_eq!(home.number("s", "pid"), pid);
    let look = terminal.settle(&home, "s");
    drop(_client);
    let (again, _client) = Terminal::attached(&home, "s", "80x24");
    again.wait_look(&home, "s", &look);
}

#[test]
fn without_descriptors_left_new_sessions_are_refused_and_running_ones_are_fine() {
    let home = Home::new();
    let mut host = home.command(&["host", "run"]);
    // SAFETY: setrlimit is safe between fork and exec.
    unsafe {
        host.pre_exec(|| {
            let limit = rustix::process::Rlimit { current: Some(60), maximum: Some(60) };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
            Ok(())
        });
    }
    let mut host = host.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = home.host_pid();
    assert_eq!(pid, host.id());
    let mut started = 0;
    let refused = loop {
        let ran = home.run(&["new", "-d", "-n", &format!("s{started}"), "--", "cat"]);
        if ran.status != 0 {
            break ran.err;
        }
        started += 1;
        assert!(started < 60, "never refused");
    };
    assert!(refused.contains("Too many open files"), "{refused}");
    assert!(started > 3, "only {started}: {refused}");
    for n in 0..started {
        home.ok(&["send", &format!("s{n}"), "--enter", "hello"]);
        home.until_screen_shows(&format!("s{n}"), "hello");
    }
    assert_eq!(home.host_pid(), pid, "it lives");
    home.ok(&["end", "s0", "--grace", "0"]);
    home.ok(&["new", "-d", "-n", "again", "--", "cat"]);
    // One that has more finds all of them.
    holdfast_harness::kill(pid);
    host.wait().unwrap();
    let all = home.json(&["ls"]);
    assert_eq!(all.as_array().unwrap().len(), started, "{all}");
    assert!(all.as_array().unwrap().iter().all(|s| s["life"] == "running"), "{all}");
    assert!(open_files(home.host_pid()) > 10);
}

#[test]
fn what_cannot_be_recorded_is_not_typed_but_a_seizure_and_an_end_still_work() {
    let disk = SmallDisk::mount("16m");
    let home = Home::at(disk.dir.path());
    home.session("s", "stty raw -echo; exec cat > /dev/null");
    home.ok(&["send", "s", "x"]);
    let filler = disk.fill();
    // The last page of the journal has some room left.
    let refused = (0..200).map(|_| home.run(&["--json", "send", "s", "x"])).find(|sent| sent.status != 0);
    let refused = refused.expect("a full disk is noticed").err;
    assert!(refused.contains("\"unrecorded\""), "{refused}");
    let note = |home: &Home| home.json(&["info", "s"])["note"].as_str().map(str::to_owned);
    assert!(note(&home).is_some_and(|note| note.contains("journal cannot be written")), "{:?}", note(&home));
    let seized = home.json(&["seize", "s", "--freeze", "--reason", "the disk is full"]);
    assert_eq!(seized["turn"]["holder"]["how"], "seized", "{seized}");
    home.ok(&["thaw", "s"]);
    home.ok(&["seize", "s", "--reason", "once more, without a freeze"]);
    std::fs::remove_file(filler).unwrap();
    home.ok(&["send", "s", "x"]);
    assert_eq!(note(&home), None, "what can be written again is not told of");
    let journal = home.ok(&["journal", "s"]);
    assert!(journal.contains("the disk is full") && journal.contains("once more"), "{journal}");
    home.ok(&["journal", "s", "--verify"]);
    let again = disk.fill();
    home.ok(&["end", "s", "--grace", "0"]);
    std::fs::remove_file(again).unwrap();
}

#[test]
fn a_host_with_too_few_descriptors_for_its_sessions_gives_none_of_them_up() {
    let home = Home::new();
    for n in 0..30 {
        home.session(&format!("s{n}"), "exec cat");
    }
    home.kill_host();
    let mut host = home.command(&["host", "run"]);
    // SAFETY: setrlimit is safe between fork and exec.
    unsafe {
        host.pre_exec(|| {
            let limit = rustix::process::Rlimit { current: Some(60), maximum: Some(60) };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
            Ok(())
        });
    }
    let mut host = host.stdout(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(home.host_pid(), host.id(), "it answers all the same");
    let all = home.json(&["ls"]);
    assert_eq!(all.as_array().unwrap().len(), 30, "{all}");
    let served = all.as_array().unwrap().iter().find(|s| s["pid"].as_u64() > Some(0)).expect("some are served");
    let name = served["name"].as_str().unwrap();
    home.ok(&["send", name, "--enter", "hello"]);
    home.until_screen_shows(name, "hello");
    holdfast_harness::kill(host.id());
    host.wait().unwrap();
    let all = home.json(&["ls"]);
    let running = all.as_array().unwrap().iter().filter(|s| s["life"] == "running").count();
    assert_eq!(running, 30, "{all}");
}

#[test]
fn of_many_hosts_started_at_once_one_serves_and_the_others_yield() {
    let home = Home::new();
    let mut all: Vec<_> =
        (0..8).map(|_| home.command(&["host", "run"]).stdout(std::process::Stdio::null()).spawn().unwrap()).collect();
    let serving = home.host_pid();
    let mut yielded = 0;
    for host in &mut all {
        if host.id() == serving {
            continue;
        }
        let status = until("a host to yield", || host.try_wait().unwrap());
        assert!(status.success(), "{status}");
        yielded += 1;
    }
    assert_eq!(yielded, 7);
    home.session("s", "exec cat");
    assert_eq!(home.host_pid(), serving);
    home.ok(&["host", "stop"]);
    for mut host in all {
        host.wait().unwrap();
    }
}

#[test]
fn twenty_commands_at_once_on_an_empty_home_start_one_host() {
    let home = Home::new();
    let mut all: Vec<_> = (0..20)
        .map(|n| {
            home.command(&["new", "-d", "-n", &format!("s{n}"), "--", "cat"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for one in &mut all {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(home.json(&["ls"]).as_array().unwrap().len(), 20);
    let hosts =
        home.processes().into_iter().filter(|pid| holdfast_harness::command_line(*pid).contains("host run")).count();
    assert_eq!(hosts, 1);
}

#[test]
fn a_wrong_name_directory_or_command_is_refused_with_what_to_do() {
    let home = Home::new();
    home.session("taken", "exec cat");
    for (args, says) in [
        (&["new", "-d", "-n", "taken", "--", "cat"][..], "already running"),
        (&["new", "-d", "--cwd", "/does/not/exist", "--", "cat"], "/does/not/exist"),
        (&["new", "-d", "--", "no-such-command"], "no-such-command"),
        (&["new", "-d", "--", "/etc/passwd"], "/etc/passwd"),
        (&["new", "-d", "--", "/"], "cannot run /"),
        (&["new", "-d", "--", ""], "cannot run"),
        (&["new", "-d", "-n", "bad name", "--", "cat"], "bad name"),
        (&["attach", "nobody"], "terminal"),
        (&["info", "nobody"], "nobody"),
        (&["resize", "taken", "0x0"], "0x0"),
        (&["rename", "taken", "x y"], "x y"),
        (&["logs", "taken", "--from", "99999"], "99999"),
    ] {
        let told = home.fails(args);
        assert!(told.contains(says), "{args:?}: {told}");
    }
    assert_eq!(home.json(&["ls", "--all"]).as_array().unwrap().len(), 1, "nothing is left of them");
    assert_eq!(std::fs::read_dir(home.join("sessions")).unwrap().count(), 1);
    let run = std::fs::read_dir(home.join("run")).unwrap().count();
    assert_eq!(run, 3, "host.lock, host.sock and one keeper");
}

#[test]
fn a_very_long_home_path_works() {
    let dir = tempfile::Builder::new().prefix("hfl").tempdir().unwrap();
    let path = dir.path().join("a-long-directory-name".repeat(5)).join("another-one".repeat(5));
    std::fs::create_dir_all(&path).unwrap();
    assert!(path.as_os_str().len() > 150);
    let home = Home::at(&path);
    home.session("s", "stty -echo; echo ready; while read -r line; do echo got $line; done");
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("ready");
    home.kill_host();
    terminal.types("x\r");
    terminal.wait_text("got x");
    terminal.settle(&home, "s");
    terminal.types(holdfast_harness::DETACH);
    assert_eq!(client.wait(), 0);
    home.ok(&["end", "s", "--grace", "0"]);
    drop(home);
    assert!(Path::new(&path).exists());
}

#[test]
fn tiny_and_huge_windows_are_survived() {
    let home = Home::new();
    home.session("s", "stty -echo; echo 'some text that wraps 漢字漢字'; seq 1 100; echo ready; exec cat");
    home.until_screen_shows("s", "ready");
    for size in ["1x1", "10000x10000", "65535x1", "1x65535", "2x2", "80x24"] {
        home.run(&["resize", "s", size]);
        assert_eq!(home.json(&["info", "s"])["life"], "running", "{size}");
        home.ok(&["screen", "s", "--history", "100"]);
    }
    let (terminal, client) = Terminal::attached(&home, "s", "80x24");
    terminal.wait_text("ready");
    let host = home.host_pid();
    for size in ["2x1", "1000x1000", "2x1000", "1000x1", "80x24"] {
        terminal.resize(size, &client);
        until(&format!("the size {size}"), || (home.size("s") == size).then_some(()));
    }
    terminal.types("still here\r");
    terminal.wait_text("still here");
    terminal.settle(&home, "s");
    assert_eq!(home.host_pid(), host);
    assert!(!gone(client.pid));
}

/// Resident memory of a process, in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_endless_control_string_grows_nobodys_memory() {
    let home = Home::new();
    let script = "stty raw -echo; printf 'ready\\r\\n'; head -c 1 >/dev/null; printf '\\033]0;'; head -c 10000000 /dev/zero | tr '\\0' x; printf '\\033\\\\done\\r\\n'; exec cat";
    home.session("s", script);
    home.until_screen_shows("s", "ready");
    let (terminal, client) = Terminal::attached(&home, "s", "80x24");
    let (second, cropped) = Terminal::attached(&home, "s", "70x20");
    let host = home.host_pid();
    let keeper = home.number("s", "keeper_pid") as u32;
    let everybody = [host, keeper, client.pid, cropped.pid];
    let before = everybody.map(resident_kib);
    home.ok(&["send", "s", "x"]);
    terminal.wait_text("done");
    second.wait_text("done");
    home.until_screen_shows("s", "done");
    for (pid, before) in everybody.into_iter().zip(before) {
        let now = resident_kib(pid);
        // The ring's own pages count too.
        assert!(now < before + 6 * 1024, "{}: {before} KiB before, {now} KiB now", holdfast_harness::command_line(pid));
    }
}
