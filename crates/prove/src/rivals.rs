//! The same experiments on the neighbours, where they are installed: what their users know, and where they stop.

use crate::place::{alive, kill};
use crate::trial::{Stop, Trial, broken, wait};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A neighbour: how it starts a detached session with a command, and how one of its clients types.
struct Rival {
    name: &'static str,
    start: fn(&Path, &str) -> Vec<String>,
    /// The words of a client that types a text; without them it copies its standard input.
    types: fn(&Path, &str) -> Vec<String>,
    enter: &'static str,
}

const RIVALS: &[Rival] = &[
    Rival {
        name: "tmux",
        start: |dir, job| words(&["tmux", "-S", &socket(dir), "-f", "/dev/null", "new-session", "-d", job]),
        types: |dir, text| words(&["tmux", "-S", &socket(dir), "send-keys", text]),
        enter: "Enter",
    },
    Rival {
        name: "dtach",
        start: |dir, job| words(&["dtach", "-n", &socket(dir), "sh", "-c", job]),
        types: |dir, _| words(&["dtach", "-p", &socket(dir)]),
        enter: "\r",
    },
    Rival {
        name: "screen",
        start: |_, job| words(&["screen", "-dmS", "holdfast-prove", "sh", "-c", job]),
        types: |_, text| words(&["screen", "-S", "holdfast-prove", "-X", "stuff", text]),
        enter: "\r",
    },
];

/// Starts a job in each, has two clients type at once, kills the process that holds it, and looks whether the job lives.
pub fn neighbours(t: &mut Trial) -> Result<(), Stop> {
    let mut tried = 0;
    for rival in RIVALS {
        if !installed(rival.name) {
            t.saw(format!("{}: not installed", rival.name));
            continue;
        }
        tried += 1;
        try_one(t, rival)?;
    }
    match tried {
        0 => Err(Stop::NotProvided("neither tmux nor dtach nor screen is installed".into())),
        _ => Ok(()),
    }
}

fn try_one(t: &mut Trial, rival: &Rival) -> Result<(), Stop> {
    let name = rival.name;
    let place = t.place()?;
    let dir = place.path(name);
    fs::create_dir_all(&dir).map_err(|error| broken("a directory", error))?;
    let (job, daemon) = start(rival, &dir)?;
    t.saw(format!("{name}: the client that started the session is gone, and the session lives"));

    for text in ["one types ", "another types", rival.enter] {
        run(rival, &dir, &(rival.types)(&dir, text), text)?;
    }
    let mut heard = String::new();
    wait("the neighbour's job reads a line", || {
        heard = fs::read_to_string(dir.join("heard")).unwrap_or_default();
        heard.ends_with('\n')
    })?;
    // One line with the bytes of both, in whatever order they came.
    let mixed = heard.lines().count() == 1 && heard.trim_end().len() == "one types another types".len();
    t.saw(format!("{name}: two clients typed at once; the program read one line: {:?}", heard.trim_end()));
    let verdict = if mixed { "mixed in one line, nobody is refused or named" } else { "kept apart" };
    t.figure(&format!("{name}: two writers"), verdict);

    kill(daemon);
    wait("the neighbour's daemon is gone", || !alive(daemon))?;
    // A hangup reaches the job at once or never: the kernel sends it when the last holder of the terminal is gone.
    let lives = wait("the job ends", || !alive(job)).is_err();
    if lives {
        kill(job);
    }
    let verdict = if lives { "lives" } else { "dies with it" };
    t.saw(format!("{name}: its daemon was killed (-9): the session {verdict}"));
    t.figure(&format!("{name}: session after kill -9 of its daemon"), verdict);
    Ok(())
}

/// Starts a job that writes down each line that it reads; its process, and the daemon that holds its terminal.
fn start(rival: &Rival, dir: &Path) -> Result<(u32, u32), Stop> {
    let ledger = dir.join("ledger");
    // The parent of the job is the daemon.
    let job = format!(
        "echo $$ $PPID > {0}.new; mv {0}.new {0}; exec sh -c 'while read -r line; do echo \"$line\" >> {1}; done'",
        ledger.display(),
        dir.join("heard").display()
    );
    run(rival, dir, &(rival.start)(dir, &job), "")?;
    let mut pids = None;
    wait("the neighbour's job runs", || {
        pids = fs::read_to_string(&ledger).ok().and_then(|text| {
            let (job, daemon) = text.trim().split_once(' ')?;
            Some((job.parse::<u32>().ok()?, daemon.parse::<u32>().ok()?))
        });
        pids.is_some()
    })?;
    pids.ok_or_else(|| broken(rival.name, "no job"))
}

/// Runs a command of a neighbour to its end.
fn run(rival: &Rival, dir: &Path, words: &[String], input: &str) -> Result<(), Stop> {
    let Some((program, rest)) = words.split_first() else { return Err(broken(rival.name, "no command")) };
    let spawned = Command::new(program)
        .args(rest)
        .current_dir(dir)
        .env("SCREENDIR", screen_dir(dir)?)
        .env_remove("TMUX")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = spawned.map_err(|error| broken(rival.name, error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that takes the text as a word may be gone already.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait().map_err(|error| broken(rival.name, error))?;
    if status.success() { Ok(()) } else { Err(broken(rival.name, format!("{} ended with {status}", words.join(" ")))) }
}

/// A directory for screen's sockets, which screen wants for its user alone.
fn screen_dir(dir: &Path) -> Result<PathBuf, Stop> {
    use std::os::unix::fs::DirBuilderExt;
    let path = dir.join("screens");
    if !path.exists() {
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| broken("a directory", error))?;
    }
    Ok(path)
}

fn socket(dir: &Path) -> String {
    dir.join("socket").display().to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
