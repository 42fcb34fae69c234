//! What a run costs beside the shell's own round trip: `cargo bench -p holdfast --bench runs`.
//!
//! For bash, zsh and fish without files of the user's, three times of the command `true`, in turns: the bare shell on a bare
//! terminal from Enter to its next prompt; `run.start` on an open connection, answered when the run has ended; and the whole
//! program `holdfast run SESSION -- true`, its start included. What is above the bare shell is ours.

use holdfast_authority::Ask;
use holdfast_client::{Connection, Identity, connect};
use holdfast_types::{Home, SessionId};
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, NewParams};
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
    let new = NewParams {
        command: vec![shell.to_owned()],
        cwd: "/".into(),
        env: environment(dir.path()).map(|(name, value)| format!("{name}={value}")).to_vec(),
        ..NewParams::default()
    };
    let session = link.call::<op::New>(&new).expect("a session").id;
    let mut bare = Bare::start(shell, dir.path());
    let (mut own, mut asked, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..WARM + ROUNDS {
        own.push(timed(|| bare.round_trip()));
        asked.push(timed(|| run(&mut link, &human, session)));
        whole.push(timed(|| {
            let ran =
                program(dir.path()).args(["--as", "human:ann", "run", &session.to_string(), "--", "true"]).status();
            assert!(ran.expect("the program").success());
        }));
    }
    show(&format!("{shell}, bare"), &mut own);
    show(&format!("{shell}, run.start on a connection"), &mut asked);
    show(&format!("{shell}, holdfast run"), &mut whole);
    let _ = link.call::<op::End>(&EndParams { session: session.to_string(), grace_ms: 0, proof: None });
    let _ = host.kill();
    let _ = host.wait();
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
