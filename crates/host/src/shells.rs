//! Shells that tell what they do: bash, zsh and fish, started with a script of ours after the user's own files.
//!
//! The script prints marks (see [`holdfast_screen::ShellMark`]) and leaves the shell's names and values in a file after each
//! command ([`state`]). Nothing of the user's is changed, and no variable of ours is in the environment of any child: the
//! session's directory reaches the shell in a file of its own (bash, zsh) or in an argument (fish). Only plain interactive
//! starts are touched; whatever is in doubt starts as it was asked for.
//!
//! What host and shell share in the session's directory `dir`, all for the user alone:
//!
//! | file | written by | content |
//! |---|---|---|
//! | `next` | host, before it types | the token of the next command; the shell repeats it in the marks C and D. It must exist: the shell empties it, and removes nothing |
//! | `run` | host, before it types | a command that cannot be typed, see [`keys`] |
//! | `traps` | bash, before each prompt | its traps, which it tells only outside of functions: part of the state that follows |
//! | `state.2`, then `state.0` and `state.1` | shell, in turn | its state with values, the first one in a file of its own; the mark A says which. The host takes it away (`….taken` for a moment) and keeps hashes ([`kept`], [`ledger`]) |
//!
//! Knows nothing of sessions or screens: what the marks mean for a run is decided by who reads them.

pub mod kept;
pub mod keys;
pub mod ledger;
pub mod state;

use crate::store::{checksum, make_dir, replace};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The scripts, by the name they are installed under.
const SCRIPTS: [(&str, &str); 3] = [
    ("bash.sh", include_str!("../shells/bash.sh")),
    ("zsh.zsh", include_str!("../shells/zsh.zsh")),
    ("fish.fish", include_str!("../shells/fish.fish")),
];

/// A shell that can be integrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// bash: nothing before 4.4, where it starts and says nothing.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Kind {
    /// By the program's name.
    pub fn of(program: &str) -> Option<Kind> {
        match program.rsplit('/').next()? {
            "bash" => Some(Kind::Bash),
            "zsh" => Some(Kind::Zsh),
            "fish" => Some(Kind::Fish),
            _ => None,
        }
    }
}

/// Programs that are shells when nothing is given to them to run.
const SHELLS: [&str; 13] =
    ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "elvish", "xonsh"];

/// Whether a command is a shell at a prompt: with options alone, and none that gives it a command.
pub fn is_interactive(command: &[String]) -> bool {
    let is_shell =
        |word: &String| word.rsplit('/').next().is_some_and(|name| SHELLS.contains(&name.trim_start_matches('-')));
    let is_option = |word: &String| {
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with('-') && rest != "--command" || !rest.contains('c'))
    };
    command.split_first().is_some_and(|(program, rest)| is_shell(program) && rest.iter().all(is_option))
}

/// How to start a shell so that it tells what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrated {
    /// Which shell it is.
    pub kind: Kind,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// What the shell reads from `dir`, by relative path.
    files: Vec<(&'static str, String)>,
}

/// Puts the scripts into the state directory, under their hash: shells that start while a new build takes over read one version.
pub fn install(state: &Path) -> io::Result<PathBuf> {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        format!("{:016x}", checksum(SCRIPTS.iter().map(|(_, text)| *text).collect::<String>().as_bytes()))
    });
    let all = state.join("shells");
    let dir = all.join(NAME.as_str());
    let sound = |(name, text): &(&str, &str)| std::fs::read(dir.join(name)).is_ok_and(|found| found == text.as_bytes());
    if SCRIPTS.iter().all(sound) {
        return Ok(dir);
    }
    make_dir(&dir)?;
    for (name, text) in SCRIPTS {
        replace(&dir, name, text.as_bytes())?;
    }
    for old in std::fs::read_dir(&all)?.flatten().filter(|entry| entry.file_name() != NAME.as_str()) {
        let _ = std::fs::remove_dir_all(old.path());
    }
    Ok(dir)
}

/// How to start `command` with the scripts installed at `scripts`, if it is a shell started plainly. `env` is changed only then.
/// Before the start, [`Integrated::prepare`] must have been called.
pub fn integrate(
    command: &[String],
    argv0: Option<&str>,
    env: &mut Vec<Vec<u8>>,
    scripts: &Path,
    dir: &Path,
) -> Option<Integrated> {
    let (program, arguments) = command.split_first()?;
    let login = argv0.is_some_and(|name| name.starts_with('-'));
    let (scripts, dir) = (scripts.to_str()?, dir.to_str()?);
    match Kind::of(program)? {
        Kind::Bash => bash(program, arguments, login, env, scripts, dir),
        Kind::Zsh => zsh(program, arguments, env, scripts, dir),
        Kind::Fish => fish(program, arguments, scripts, dir),
    }
}

impl Integrated {
    /// Makes the session's directory and what the shell reads there.
    pub fn prepare(&self, dir: &Path) -> io::Result<()> {
        make_dir(dir)?;
        for name in ["next", "state.0", "state.1", "state.2", "traps"] {
            replace(dir, name, b"")?;
        }
        for (name, text) in &self.files {
            let path = dir.join(name);
            let parent = path.parent().expect("it is inside the directory");
            make_dir(parent)?;
            replace(parent, &path.file_name().expect("it has a name").to_string_lossy(), text.as_bytes())?;
        }
        Ok(())
    }
}

/// Where bash reads its start from.
const BASH_START: &str = "start.bash";

fn bash(
    program: &str,
    arguments: &[String],
    mut login: bool,
    env: &mut Vec<Vec<u8>>,
    scripts: &str,
    dir: &str,
) -> Option<Integrated> {
    let (mut rc, mut profile, mut rcfile, mut kept) = (true, true, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--norc" => rc = false,
            "--noprofile" => profile = false,
            "--rcfile" | "--init-file" => rcfile = Some(rest.next()?),
            "--login" => {
                login = true;
                kept.push(argument.clone());
            }
            "--noediting" => kept.push(argument.clone()),
            short => {
                if !letters_of(short, "il") {
                    return None;
                }
                login |= short.contains('l');
                kept.push(argument.clone());
            }
        }
    }
    // It would be a POSIX shell, which reads other files.
    if lookup(env, "POSIXLY_CORRECT").is_some() {
        return None;
    }
    let own = format!(". {} {}\n", quote(&format!("{scripts}/bash.sh")), quote(dir));
    let start = format!("{dir}/{BASH_START}");
    let mut argv = vec![program.to_owned()];
    let text = if login || !rc {
        // Neither reads an rc file. In POSIX mode an interactive bash reads $ENV and nothing else, and stays a login shell.
        argv.push("--posix".into());
        let posix = env_back("ENV", lookup(env, "ENV"));
        set(env, "ENV", &start);
        let profiles = if login && profile { BASH_PROFILES } else { "" };
        format!("{BASH_NO_POSIX}{posix}{profiles}{own}")
    } else {
        // bash reads the system's file by itself, where it was built with one.
        argv.extend(["--rcfile".into(), start]);
        let file = match rcfile {
            None => "~/.bashrc".to_owned(),
            Some(path) if path.contains('/') => quote(path),
            // `.` would look for it in PATH.
            Some(path) => quote(&format!("./{path}")),
        };
        format!("if [ -r {file} ]; then . {file}; fi\n{own}")
    };
    argv.extend(kept);
    // Long options come first.
    argv[1..].sort_by_key(|argument| usize::from(!argument.starts_with("--") && !argument.starts_with('/')));
    Some(Integrated { kind: Kind::Bash, argv, files: vec![(BASH_START, text)] })
}

/// Undoes what starting in POSIX mode has done so far.
const BASH_NO_POSIX: &str = "set +o posix; shopt -u inherit_errexit 2>/dev/null; unset POSIXLY_CORRECT
if [ \"$HISTFILE\" = ~/.sh_history ]; then HISTFILE=~/.bash_history; fi
";

/// What a login shell reads.
const BASH_PROFILES: &str = "if [ -r /etc/profile ]; then . /etc/profile; fi
if [ -r ~/.bash_profile ]; then . ~/.bash_profile
elif [ -r ~/.bash_login ]; then . ~/.bash_login
elif [ -r ~/.profile ]; then . ~/.profile; fi
";

fn zsh(program: &str, arguments: &[String], env: &mut Vec<Vec<u8>>, scripts: &str, dir: &str) -> Option<Integrated> {
    if !arguments.iter().all(|argument| argument == "--login" || letters_of(argument, "ilfd")) {
        return None;
    }
    // Without rc files zsh would not read ours either: it is told so a little later.
    let bare = arguments.iter().any(|argument| !argument.starts_with("--") && argument.contains('f'));
    let kept = arguments.iter().map(|a| if a.starts_with("--") { a.clone() } else { a.replace('f', "") });
    let argv = [program.to_owned()].into_iter().chain(kept.filter(|a| a != "-")).collect();
    // zsh looks for each file where ZDOTDIR points at that moment: from here on at the user's own.
    let own = env_back("ZDOTDIR", lookup(env, "ZDOTDIR"));
    let user = if bare {
        "unsetopt rcs\n"
    } else {
        "if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then source \"${ZDOTDIR-$HOME}/.zshenv\"; fi\n"
    };
    let script = quote(&format!("{scripts}/zsh.zsh"));
    let text = format!("{own}{user}if [[ -o interactive ]]; then source {script} {}; fi\n", quote(dir));
    set(env, "ZDOTDIR", &format!("{dir}/zsh"));
    Some(Integrated { kind: Kind::Zsh, argv, files: vec![("zsh/.zshenv", text)] })
}

fn fish(program: &str, arguments: &[String], scripts: &str, dir: &str) -> Option<Integrated> {
    let plain = |a: &String| matches!(a.as_str(), "--login" | "--interactive" | "--no-config") || letters_of(a, "ilN");
    if !arguments.iter().all(plain) {
        return None;
    }
    let quote = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let source = format!("source {} {}", quote(&format!("{scripts}/fish.fish")), quote(dir));
    let mut argv = vec![program.to_owned(), "--init-command".into(), source];
    argv.extend_from_slice(arguments);
    Some(Integrated { kind: Kind::Fish, argv, files: Vec::new() })
}

/// A run's output without what zsh prints behind it, before any of its hooks: a reversed `%`, blanks over the line's rest, and back.
/// Only as zsh prints it unless told otherwise.
#[must_use]
pub fn without_line_mark(output: &[u8]) -> &[u8] {
    let cut = || {
        let blanks = output.strip_suffix(b"\r \r")?;
        let mark = blanks.trim_ascii_end();
        ZSH_LINE_MARKS.iter().find_map(|own| mark.strip_suffix(*own)).filter(|_| mark.len() < blanks.len())
    };
    cut().unwrap_or(output)
}

/// Output of a command that may go on, before what zsh prints behind it or the beginning of that.
pub fn before_line_mark(output: &[u8]) -> &[u8] {
    let blanks = [&b"\r \r"[..], b"\r ", b"\r"].iter().find_map(|end| output.strip_suffix(*end)).unwrap_or(output);
    let mark = &blanks[..blanks.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)];
    let begun = |own: &&[u8]| (1..own.len()).rev().find_map(|length| output.strip_suffix(&own[..length]));
    let whole = ZSH_LINE_MARKS.iter().find_map(|own| mark.strip_suffix(*own));
    // The two begin alike: what is left before the longer beginning.
    let rest = || ZSH_LINE_MARKS.iter().filter_map(begun).min_by_key(|rest| rest.len());
    whole.or_else(rest).unwrap_or(output)
}

/// `%B%S%#%s%b`, for users and for root.
const ZSH_LINE_MARKS: [&[u8]; 2] = [b"\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m", b"\x1b[1m\x1b[7m#\x1b[27m\x1b[1m\x1b[0m"];

/// Whether an argument is a group of these one-letter options and nothing else.
fn letters_of(argument: &str, letters: &str) -> bool {
    argument.strip_prefix('-').is_some_and(|given| !given.is_empty() && given.chars().all(|c| letters.contains(c)))
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A line of sh that puts a variable back to what it was in the environment.
fn env_back(name: &str, value: Option<String>) -> String {
    match value {
        Some(value) => format!("export {name}={}\n", quote(&value)),
        None => format!("unset {name}\n"),
    }
}

fn lookup(env: &[Vec<u8>], name: &str) -> Option<String> {
    let value = env.iter().find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn set(env: &mut Vec<Vec<u8>>, name: &str, value: &str) {
    let start = format!("{name}=");
    env.retain(|pair| !pair.starts_with(start.as_bytes()));
    env.push(format!("{start}{value}").into_bytes());
}

#[cfg(test)]
mod tests;
