//! What a run costs beside the shell's own round trip: `cargo bench -p holdfast --bench runs`.
//!
//! For bash, zsh and fish with nothing but a prompt of the user's, times of the command `true`, in turns: the bare shell on a
//! bare terminal from Enter to its next prompt; `run.start` on an open connection, answered when the run has ended; and the whole
//! program `holdfast run SESSION -- true`, its start included. What is above the bare shell is ours. Then the same line typed
//! into a session whose shell is not integrated and into one whose shell is, until the next prompt: the difference is what the
//! integration costs at each prompt.

use holdfast_authority::Ask;
use holdfast_client::{Connection, Identity, connect};
use holdfast_types::{Home, SessionId};
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, NewParams, ReadParams, SendParams, SessionParams};
use holdfast_wire::runs::RunStartParams;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;
/// Rounds before anything counts: caches, and fish's first prompts.
const WARM: usize = 10;
/// A prompt that no shell draws by itself.
const PROMPT: &str = "@@ ";

fn main() {
    println!("{:<34} {:>9} {:>9} {:>9}", "milliseconds", "least", "p50", "p90");
    for shell in ["bash", "zsh", "fish"] {
        if Command::new(shell).arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("{shell}: not installed");
            continue;
        }
        measure(shell);
    }
}

fn measure(shell: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let home = Home::under(dir.path());
    let human = Identity::make(&home, &"human:ann".parse().expect("a handle"), None).expect("a key");
    let mut host = program(dir.path()).args(["host", "run"]).spawn().expect("the program");
    let mut link = connected(&home, &human);
    for (file, text) in [(".bashrc", "PS1='@@ '"), (".zshrc", "PS1='@@ '"), (".config/fish/config.fish", FISH)] {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, text).expect("a file");
    }
    let session = start(&mut link, shell, dir.path(), true);
    let as_it_is = start(&mut link, shell, dir.path(), false);
    let mut bare = Bare::start(shell, dir.path());
    let (mut own, mut asked, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let (mut typed, mut typed_as_it_is) = (Vec::new(), Vec::new());
    let mut seq = 0;
    for _ in 0..WARM + ROUNDS {
        own.push(timed(|| bare.round_trip()));
        asked.push(timed(|| run(&mut link, &human, session)));
        whole.push(timed(|| {
            let ran =
                program(dir.path()).args(["--as", "human:ann", "run", &session.to_string(), "--", "true"]).status();
            assert!(ran.expect("the program").success());
        }));
        seq += 1;
        typed.push(until_next_prompt(&mut link, session, seq));
        typed_as_it_is.push(until_next_prompt(&mut link, as_it_is, seq));
    }
    show(&format!("{shell}, bare"), &mut own);
    show(&format!("{shell}, run.start on a connection"), &mut asked);
    show(&format!("{shell}, holdfast run"), &mut whole);
    show(&format!("{shell}, typed, not integrated"), &mut typed_as_it_is);
    show(&format!("{shell}, typed, integrated"), &mut typed);
    for session in [session, as_it_is] {
        let _ = link.call::<op::End>(&EndParams { session: session.to_string(), grace_ms: 0, proof: None });
    }
    let _ = host.kill();
    let _ = host.wait();
}

/// Nothing that fish draws by itself.
const FISH: &str = "function fish_prompt; printf '@@ '; end; function fish_right_prompt; end; set -U fish_greeting";

fn start(link: &mut Connection, shell: &str, dir: &Path, integrate: bool) -> SessionId {
    let new = NewParams {
        command: vec![shell.to_owned()],
        cwd: Some("/".into()),
        env: Some(environment(dir).map(|(name, value)| format!("{name}={value}")).to_vec()),
        integrate: Some(integrate),
        ..NewParams::default()
    };
    let session = link.call::<op::New>(&new).expect("a session").id;
    let mut from = 0;
    read_until_prompt(link, session, &mut from);
    session
}

/// Microseconds from Enter to the next prompt, of a line that was typed before.
fn until_next_prompt(link: &mut Connection, session: SessionId, seq: u64) -> u64 {
    let mut from = link.call::<op::Get>(&SessionParams { session: session.to_string() }).expect("it is there").head;
    let mut params = SendParams {
        session: session.to_string(),
        stream: 1,
        seq: 2 * seq - 1,
        client: None,
        fence: None,
        secret: false,
        force: false,
        in_order: false,
    };
    link.call_with_bytes::<op::Send>(&params, b"true").expect("it is typed");
    // Its echo: what comes then is the command's.
    let mut echo = Vec::new();
    while !echo.windows(4).any(|part| part == b"true") {
        echo.extend(read(link, session, &mut from));
    }
    params.seq += 1;
    timed(|| {
        link.call_with_bytes::<op::Send>(&params, b"\r").expect("it is typed");
        read_until_prompt(link, session, &mut from);
    })
}

fn read(link: &mut Connection, session: SessionId, from: &mut u64) -> Vec<u8> {
    let params = ReadParams { session: session.to_string(), from: Some(*from), max: None, wait_ms: 1_000 };
    let (answer, bytes) = link.call_with_bytes::<op::Read>(&params, &[]).expect("it has output");
    *from = answer.to;
    bytes
}

fn read_until_prompt(link: &mut Connection, session: SessionId, from: &mut u64) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut seen = Vec::new();
    while !seen.windows(PROMPT.len()).any(|part| part == PROMPT.as_bytes()) {
        assert!(Instant::now() < until, "no prompt: {:?}", String::from_utf8_lossy(&seen));
        seen.extend(read(link, session, from));
    }
}

fn environment(dir: &Path) -> [(&'static str, String); 4] {
    [
        ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())),
        ("HOME", dir.display().to_string()),
        ("TERM", "xterm-256color".into()),
        ("PS1", PROMPT.into()),
    ]
}

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env("HOLDFAST_HOME", dir).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn connected(home: &Home, who: &Identity) -> Connection {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match connect(home, who) {
            Ok(link) => return link,
            Err(error) if Instant::now() > until => panic!("no host: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn run(link: &mut Connection, who: &Identity, session: SessionId) {
    let command = "true".to_owned();
    let proof = Some(who.prove(session, &Ask::Run { key: String::new(), command: command.clone() }));
    let params = RunStartParams {
        session: Some(session.to_string()),
        command,
        wait_ms: 20_000,
        proof,
        ..RunStartParams::default()
    };
    let answer = link.call::<op::RunStart>(&params).expect("it runs");
    assert_eq!(answer.run.exit_code, Some(0), "{answer:?}");
}

/// A shell on a terminal of its own, with nothing of ours.
struct Bare {
    terminal: File,
    shell: Child,
}

impl Bare {
    fn start(shell: &str, dir: &Path) -> Bare {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).expect("a terminal");
        unlockpt(&ours).expect("a terminal");
        let path = ptsname(&ours, Vec::new()).expect("a terminal").into_string().expect("a path");
        let theirs = || OpenOptions::new().read(true).write(true).open(&path).expect("its other side");
        let plain: &[&str] = match shell {
            "bash" => &["--norc", "--noprofile", "-i"],
            "zsh" => &["-f", "-i"],
            _ => &["--no-config", "-i", "-C", "function fish_prompt; printf '@@ '; end"],
        };
        let shell = Command::new("setsid")
            .args(["-c", shell])
            .args(plain)
            .env_clear()
            .envs(environment(dir))
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .expect("setsid of util-linux");
        let mut bare = Bare { terminal: File::from(ours), shell };
        bare.until_prompt();
        bare
    }

    fn round_trip(&mut self) {
        self.terminal.write_all(b"true\r").expect("a terminal takes keys");
        self.until_prompt();
    }

    fn until_prompt(&mut self) {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !seen.windows(PROMPT.len()).any(|part| part == PROMPT.as_bytes()) {
            let count = self.terminal.read(&mut buffer).expect("the shell lives");
            seen.extend_from_slice(&buffer[..count]);
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn timed(what: impl FnOnce()) -> u64 {
    let began = Instant::now();
    what();
    began.elapsed().as_micros() as u64
}

fn show(what: &str, micros: &mut Vec<u64>) {
    micros.drain(..WARM);
    micros.sort_unstable();
    let at = |part: usize| micros[(micros.len() - 1) * part / 100] as f64 / 1000.0;
    println!("{what:<34} {:>9.2} {:>9.2} {:>9.2}", at(0), at(50), at(90));
}
