//! Sessions of another machine, over a real ssh: its own sshd, keys and home, all in this test.

use holdfast_client::{Connection, Identity};
use holdfast_harness::{CHORD, DETACH, Home, Terminal, kill, program, until};
use holdfast_wire::operations::op;
use holdfast_wire::params::ListParams;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// Two machines: the sessions are on the far one, the person is at the near one.
pub struct Two {
    pub near: Home,
    pub far: Home,
}

impl Two {
    /// ssh reaches the far one as `gpu`.
    pub fn new() -> Two {
        let two = Two { near: Home::new(), far: Home::new() };
        let dir = two.near.path().display();
        if rustix::process::getuid().is_root() {
            // Where sshd lets the process that reads a stranger's bytes live.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        for key in ["id", "host_key"] {
            let path = two.near.join(key);
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
            assert!(made.unwrap().success());
        }
        let far = two.far.path().display();
        let write = |name: &str, text: String| std::fs::write(two.near.join(name), text).unwrap();
        write(
            "sshd_config",
            format!(
                "HostKey {dir}/host_key\nAuthorizedKeysFile {dir}/id.pub\nStrictModes no\nUsePAM no\nPidFile none\n\
                 SetEnv HOLDFAST_HOME={far} SHELL=/bin/sh HOLDFAST_CRIU={}\n",
                holdfast_harness::criu().display()
            ),
        );
        write(
            "ssh_config",
            format!(
                "Host gpu\n  ProxyCommand /usr/sbin/sshd -i -f {dir}/sshd_config\n  IdentityFile {dir}/id\n  IdentitiesOnly yes\n  \
                 UserKnownHostsFile {dir}/known\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR\nHost away\n  ProxyCommand false\n"
            ),
        );
        write("ssh", format!("#!/bin/sh\nexec /usr/bin/ssh -F {dir}/ssh_config \"$@\"\n"));
        std::fs::set_permissions(two.near.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        two
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.near.command(args);
        command.env("HOLDFAST_SSH", self.near.join("ssh"));
        command
    }

    /// What a command at the near one printed and complained about, and whether it ended well.
    pub fn run(&self, args: &[&str]) -> (bool, String, String) {
        let ran = self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.success(), text(&ran.stdout), text(&ran.stderr))
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let (good, out, err) = self.run(args);
        assert!(good, "holdfast {args:?}: {out}{err}");
        out
    }

    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let (good, out, err) = self.run(args);
        assert!(!good, "holdfast {args:?}: {out}");
        err
    }

    pub fn add(&self) -> String {
        self.ok(&["hosts", "add", "gpu", "--ssh", "gpu", "--program", program().to_str().unwrap()])
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        // Ends the connection that commands share.
        let _ = self.run(&["hosts", "forget", "gpu"]);
    }
}

#[test]
fn a_session_elsewhere_is_listed_run_in_and_typed_into_over_ssh_by_an_actor_of_its_own() {
    let two = Two::new();
    two.far.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc"]);
    let added = two.add();
    assert!(added.contains("1 session;") && added.contains("you are human:tester."), "{added}");
    assert!(two.ok(&["--host", "gpu", "ls"]).contains("work"));
    assert_eq!(two.ok(&["run", "gpu/work", "--", "echo $((6 * 7))"]), "42\n");
    two.ok(&["send", "gpu/work", "--enter", "echo typed"]);
    two.far.until_screen_shows("work", "\ntyped");
    let by = two.far.ok(&["journal", "work"]);
    assert!(by.contains("human:tester."), "{by}");
    two.ok(&["release", "gpu/work"]);
    // Another actor of the near machine is another one there, too.
    two.ok(&["--as", "agent:bot", "run", "gpu/work", "--", "true"]);
    assert!(two.far.ok(&["actor", "ls"]).contains("agent:bot."));
    // What runs inside a session makes no human known, also where its host was killed before.
    let eve = r#"echo '{"handle":"human:eve","id":"KEY"}'"#.replace("KEY", &"ab".repeat(32));
    let host = two.far.json(&["host", "status"])["pid"].as_u64().unwrap() as u32;
    let script = format!("kill -9 {host}; {eve} | {} connect --admit 2>&1; true", program().display());
    two.far.ok(&["new", "-d", "-n", "eve", "--", "sh", "-c", &format!("read go; {script}; exec cat")]);
    two.far.ok(&["send", "eve", "--enter", "go"]);
    two.far.until_screen_shows("eve", "from outside of sessions");
    assert!(!two.far.join("actors/human.eve.pub").exists());
    // A session is started there, with what that machine has.
    two.ok(&["--host", "gpu", "new", "-d", "-n", "there", "--", "sh", "-c", "pwd; exec cat"]);
    assert!(two.far.ok(&["ls"]).contains("there"));
    let listed = two.ok(&["hosts", "ls"]);
    assert!(listed.contains("gpu") && listed.contains("up"), "{listed}");
    let unknown = two.fails(&["info", "cpu/work"]);
    assert!(unknown.contains("no host is called cpu") && unknown.contains("known hosts: gpu"), "{unknown}");
    let missing = two.fails(&["hosts", "add", "old", "--ssh", "gpu", "--program", "/no/holdfast"]);
    assert!(missing.contains("not installed there") && missing.contains("scp"), "{missing}");
    let away = two.fails(&["hosts", "add", "x", "--ssh", "away"]);
    assert!(away.contains("cannot reach the host x: ssh:") && away.contains("try: ssh away true"), "{away}");
    assert!(two.fails(&["--host", "gpu", "doctor"]).contains("this machine only"));
}

#[test]
fn files_go_over_ssh_and_go_on_where_they_were_cut_off() {
    let two = Two::new();
    let tree = crate::transfers::tree(&two.far);
    two.add();
    let command = |args: &[&str]| two.command(args);
    // The connection that commands share dies.
    let breaks = || {
        let near = two.near.path().display().to_string();
        let control = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = holdfast_harness::command_line(pid);
            let is_ssh = line.contains("/ssh_config") || line.contains("[mux]");
            (is_ssh && line.contains(&near)).then_some(pid)
        });
        control.collect::<Vec<_>>().into_iter().for_each(kill);
    };
    let way = crate::transfers::Way { near: &two.near, far: &two.far, command: &command, breaks: &breaks };
    way.carries_files(&tree);
}

#[test]
fn a_terminal_attached_over_ssh_sizes_types_and_goes_on_when_the_way_breaks() {
    let two = Two::new();
    two.far.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc"]);
    two.add();
    let terminal = Terminal::new("90x30");
    let mut client = terminal.start(two.command(&["attach", "gpu/work"]));
    terminal.wait_text("bash-");
    terminal.types("echo $((6 * 7))\r");
    terminal.wait_for("the answer", |seen| seen.screen.rows_text().iter().any(|row| row.trim_end() == "42"));
    let size = || two.far.json(&["info", "work"])["size"].as_str().unwrap_or_default().to_owned();
    until("the session's size", || size() == "90x30");
    terminal.resize("100x20", &client);
    until("the new size", || size() == "100x20");
    // The host there dies, and the way with it.
    let host = two.far.json(&["host", "status"])["pid"].as_u64().unwrap() as u32;
    kill(host);
    terminal.wait_text("reconnect");
    terminal.types("echo $((40 + 3))\r");
    terminal.wait_for("the answer", |seen| seen.screen.rows_text().iter().any(|row| row.trim_end() == "43"));
    let shown = two.far.ok(&["screen", "work"]);
    assert_eq!(shown.matches("40 + 3").count(), 1, "typed once: {shown}");
    // Somebody there types: it is shown here.
    two.far.ok(&["seize", "work", "--reason", "a look"]);
    two.far.ok(&["send", "work", "--enter", "echo from there"]);
    terminal.wait_for("what was typed there", |seen| {
        seen.screen.rows_text().iter().any(|row| row.trim_end() == "from there")
    });
    terminal.types([CHORD, b"?"].concat());
    terminal.types(b"q");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    terminal.wait_text("holdfast attach gpu/work");
    let mut client = terminal.start(two.command(&["attach", "gpu/work"]));
    until("the client", || two.far.json(&["info", "work"])["clients"].as_array().is_some_and(|all| !all.is_empty()));
    two.far.ok(&["end", "work", "--grace", "0"]);
    client.wait();
    terminal.wait_text("session gpu/work:");
}

#[test]
fn a_socket_of_this_machine_speaks_to_a_host_elsewhere() {
    let two = Two::new();
    two.far.ok(&["new", "-d", "-n", "work", "--", "cat"]);
    two.add();
    let socket = two.near.join("gpu.sock");
    let mut connect = two.command(&["connect", "gpu", "--socket", socket.to_str().unwrap()]);
    let mut connect = connect.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the socket", || socket.exists());
    // Whoever speaks through it proves its own key, as everywhere.
    let places = two.far.places();
    let who = Identity::load_or_make(&places, &"agent:sdk".parse().unwrap()).unwrap();
    let mut through = Connection::open(UnixStream::connect(&socket).unwrap(), &who).unwrap();
    let all = through.call::<op::List>(&ListParams { all: false }).unwrap();
    assert_eq!(all.iter().map(|session| session.name.as_str()).collect::<Vec<_>>(), ["work"]);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    connect.kill().unwrap();
    connect.wait().unwrap();
}
