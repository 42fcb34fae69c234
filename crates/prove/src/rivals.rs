//! The same experiments on the neighbours, where they are installed: what their users know, and where they stop.

use crate::place::{alive, kill};
use crate::trial::{Stop, Trial, broken, wait};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A neighbour: how it starts a detached session with a command, and which process holds it.
struct Rival {
    name: &'static str,
    start: fn(&Path, &str) -> Vec<String>,
}

const RIVALS: &[Rival] = &[
    Rival {
        name: "tmux",
        start: |dir, job| words(&["tmux", "-S", &socket(dir), "-f", "/dev/null", "new-session", "-d", job]),
    },
    Rival { name: "dtach", start: |dir, job| words(&["dtach", "-n", &socket(dir), "sh", "-c", job]) },
    Rival { name: "screen", start: |_, job| words(&["screen", "-dmS", "holdfast-prove", "sh", "-c", job]) },
];

/// Starts a job in each, kills the process that holds it, and looks whether the job lives.
pub fn neighbours(t: &mut Trial) -> Result<(), Stop> {
    let mut tried = 0;
    for rival in RIVALS {
        if !installed(rival.name) {
            t.saw(format!("{}: not installed", rival.name));
            continue;
        }
        tried += 1;
        let lives = outlives_its_daemon(t, rival)?;
        let verdict = if lives { "lives" } else { "dies with it" };
        t.saw(format!("{}: its daemon is killed (-9): the session {verdict}", rival.name));
        t.saw(format!("{}: no turn, no attribution, no record of who typed", rival.name));
        t.figure(&format!("{}: session after kill -9 of its daemon", rival.name), verdict);
    }
    match tried {
        0 => Err(Stop::NotProvided("neither tmux nor dtach nor screen is installed".into())),
        _ => Ok(()),
    }
}

fn outlives_its_daemon(t: &Trial, rival: &Rival) -> Result<bool, Stop> {
    let place = t.place()?;
    let dir = place.path(rival.name);
    fs::create_dir_all(&dir).map_err(|error| broken("a directory", error))?;
    let ledger = dir.join("ledger");
    // The parent of the job is the daemon that holds its terminal.
    let job = format!(
        "echo $$ $PPID > {0}.new; mv {0}.new {0}; exec sh -c 'trap \"\" USR1; while read -r _; do :; done'",
        ledger.display()
    );
    let mut command = (rival.start)(&dir, &job).into_iter();
    let program = command.next().unwrap_or_default();
    let started = Command::new(program)
        .args(command)
        .current_dir(&dir)
        .env("SCREENDIR", screen_dir(&dir)?)
        .env_remove("TMUX")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !started.is_ok_and(|status| status.success()) {
        return Err(broken(rival.name, "it does not start"));
    }
    let mut pids = None;
    wait("the neighbour's job runs", || {
        pids = fs::read_to_string(&ledger).ok().and_then(|text| {
            let (job, daemon) = text.trim().split_once(' ')?;
            Some((job.parse::<u32>().ok()?, daemon.parse::<u32>().ok()?))
        });
        pids.is_some()
    })?;
    let Some((job, daemon)) = pids else { return Err(broken(rival.name, "no job")) };
    kill(daemon);
    wait("the neighbour's daemon is gone", || !alive(daemon))?;
    // A hangup reaches the job at once or never: the kernel sends it when the last holder of the terminal is gone.
    let lives = wait("the job ends", || !alive(job)).is_err();
    if lives {
        kill(job);
    }
    Ok(lives)
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
