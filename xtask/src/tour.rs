//! `cargo xtask tour`: a person's terminal, played and drawn: docs/images/tour.svg and tour.cast.
//!
//! The terminal is a tmux of its own, on a socket in a fresh home. What is typed is in [`SCENES`]; after each step the screen is
//! captured with its colours. The pictures become one animated SVG, which needs no script and no font but the reader's own, and an
//! asciicast for players.

mod draw;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::step::{cargo, must, say, target, works};

const COLS: u16 = 84;
const ROWS: u16 = 20;
/// A step that has not shown what it should by then never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a typed line stands before Enter.
const TYPED_TENTHS: u32 = 9;

/// What is done, and what the screen shows then.
enum Act {
    /// A line is typed, with Enter.
    Line(&'static str),
    /// Keys are pressed, as tmux names them.
    Keys(&'static [&'static str]),
    /// Somebody else runs `holdfast` beside the terminal.
    Beside(&'static [&'static str]),
    /// The client that is attached is killed.
    KillClient,
}

/// Acts, the text that must then stand on the screen, and how long a reader looks at it, in tenths of a second.
const SCENES: &[(Act, &str, u32)] = &[
    (Act::Line("holdfast new build"), "build$", 12),
    (Act::Line("for i in $(seq 99); do echo compiling $i; sleep 1; done"), "compiling 3", 14),
    (Act::KillClient, "Killed", 18),
    (Act::Line("# the terminal's client was killed; the build was not"), "was not", 18),
    (Act::Line("holdfast ls"), "running", 26),
    (Act::Line("holdfast attach build"), "compiling 7", 22),
    (Act::Keys(&["C-c"]), "^C", 8),
    (Act::Keys(&["C-\\", "r"]), "the turn is free", 8),
    (
        Act::Beside(&["--as", "agent:claude", "run", "build", "--", "echo hello from an agent"]),
        "hello from an agent",
        24,
    ),
    (Act::Keys(&["C-\\", "d"]), "detached", 14),
    (Act::Line("clear; holdfast journal build --since 1m | tail -6"), "agent:claude", 40),
];

/// Plays the tour and writes the drawings.
pub fn run(root: &Path) -> Result<ExitCode> {
    // As for the tests, with the same features: what they built is used again.
    must(cargo(root).args(["test", "--locked", "--workspace", "--no-run", "--quiet"]))?;
    let stage = Stage::new(&target(root).join("debug/holdfast"))?;
    let mut frames = vec![];
    for (act, wanted, tenths) in SCENES {
        if let Act::Line(line) = act {
            stage.tmux(&["send-keys", "-t", "tour", "-l", line])?;
            // A long line wraps; its beginning is enough.
            let begun: String = line.chars().take(20).collect();
            frames.push(draw::Frame { screen: stage.shows(&begun)?, tenths: TYPED_TENTHS });
            stage.act(&Act::Keys(&["Enter"]))?;
        } else {
            stage.act(act)?;
        }
        let screen = stage.shows(wanted)?;
        if *tenths > 0 {
            frames.push(draw::Frame { screen, tenths: *tenths });
        }
    }
    drop(stage);
    let images = root.join("docs/images");
    fs::write(images.join("tour.svg"), draw::svg(&frames, COLS, ROWS))?;
    fs::write(images.join("tour.cast"), draw::cast(&frames, COLS, ROWS))?;
    say(&format!("wrote docs/images/tour.svg and tour.cast: {} pictures", frames.len()));
    Ok(ExitCode::SUCCESS)
}

/// A home, and a terminal in it.
struct Stage {
    home: PathBuf,
}

impl Stage {
    fn new(holdfast: &Path) -> Result<Stage> {
        let home = std::env::temp_dir().join(format!("hftour{}", std::process::id()));
        fs::create_dir(&home).with_context(|| format!("cannot make {}", home.display()))?;
        fs::create_dir(home.join("tools"))?;
        std::os::unix::fs::symlink(holdfast, home.join("tools/holdfast"))?;
        fs::write(home.join(".bashrc"), "PS1='\\[\\e[32m\\]${HOLDFAST_SESSION_NAME:-laptop}\\[\\e[0m\\]$ '\n")?;
        fs::write(home.join("config.toml"), "greeting = false\ntitle = false\n")?;
        fs::write(home.join("tmux.conf"), "set -g status off\nset -g escape-time 0\n")?;
        let stage = Stage { home };
        let (cols, rows) = (COLS.to_string(), ROWS.to_string());
        stage.tmux(&["new-session", "-d", "-s", "tour", "-x", &cols, "-y", &rows, "bash"])?;
        stage.shows("laptop$")?;
        // A human is made at a terminal, once; the tour begins behind that.
        stage.act(&Act::Line("holdfast actor new human:ann; clear; echo ready"))?;
        stage.shows("\nlaptop$")?;
        stage.act(&Act::Line("clear"))?;
        Ok(stage)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.home.join("tools").display());
        command.env_clear().env("PATH", path).env("HOME", &self.home).env("HOLDFAST_HOME", &self.home);
        command.env("HOLDFAST_TEST_TOP", std::process::id().to_string());
        command.env("HOLDFAST_ACTOR", "human:ann").env("SHELL", "/bin/bash").env("LANG", "C.UTF-8");
        command.env("TERM", "xterm-256color").env("BASH_SILENCE_DEPRECATION_WARNING", "1").current_dir(&self.home);
        command
    }

    fn tmux(&self, args: &[&str]) -> Result<String> {
        let mut tmux = self.command("tmux");
        tmux.arg("-S").arg(self.home.join("tmux")).arg("-f").arg(self.home.join("tmux.conf"));
        let output = tmux.args(args).output().context("cannot run tmux")?;
        if !output.status.success() {
            bail!("tmux {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn act(&self, act: &Act) -> Result<()> {
        match act {
            Act::Line(line) => {
                self.tmux(&["send-keys", "-t", "tour", "-l", line])?;
                self.tmux(&["send-keys", "-t", "tour", "Enter"]).map(drop)
            }
            Act::Keys(keys) => self.tmux(&[&["send-keys", "-t", "tour"], *keys].concat()).map(drop),
            Act::Beside(words) => {
                let deadline = Instant::now() + PATIENCE;
                loop {
                    // The person's turn ends a moment after the key.
                    let output = self.command("holdfast").args(*words).output()?;
                    if output.status.success() {
                        return Ok(());
                    }
                    if Instant::now() > deadline {
                        bail!("holdfast {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
                    }
                }
            }
            Act::KillClient => {
                let shell = self.tmux(&["display-message", "-p", "-t", "tour", "#{pane_pid}"])?;
                let children = format!("/proc/{0}/task/{0}/children", shell.trim());
                let client = fs::read_to_string(children)?.split_whitespace().next().context("no client")?.to_owned();
                if works(Command::new("kill").args(["-KILL", &client])) {
                    Ok(())
                } else {
                    bail!("cannot kill {client}")
                }
            }
        }
    }

    /// Waits for a text, and gives the screen with its colours.
    fn shows(&self, wanted: &str) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let plain = self.tmux(&["capture-pane", "-p", "-t", "tour"])?;
            if plain.contains(wanted) {
                return self.tmux(&["capture-pane", "-e", "-p", "-t", "tour"]);
            }
            if Instant::now() > deadline {
                bail!("the tour waited in vain for {wanted:?}; the terminal shows:\n{plain}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The terminal first: a client that is still attached would start another host.
        let _ = self.tmux(&["kill-server"]);
        for args in [["end", "--all", "--grace", "0"].as_slice(), &["host", "stop"]] {
            works(self.command("holdfast").args(args));
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}
