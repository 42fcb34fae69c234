//! What a session starts with. A caller on this machine says everything; one from afar does not know this machine, and what it
//! leaves out is the host's user's: the shell, the home directory, the environment.

use crate::HostConfig;
use crate::user::{self, Other, User};
use holdfast_abi::ring::Base;
use holdfast_authority::identity;
use holdfast_types::{SessionName, Size};
use holdfast_wire::leases::Leasing;
use holdfast_wire::lives::Recovery;
use holdfast_wire::params::NewParams;
use holdfast_wire::reaping::ReapAfter;
use holdfast_wire::seam::Seam;
use holdfast_wire::wall::Wall;
use holdfast_wire::{Code, Fault};
use std::sync::OnceLock;

/// What nearly every terminal that will be attached understands.
const TERM: &str = "xterm-256color";
/// Where programs are looked for when the host itself does not know.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Variables of the session, terminal, login and service from which the host happened to be started: not those of a session it starts.
/// `HOLDFAST_HOME` is none of them: it says where, not who.
const OUTER: [&str; 36] = [
    "HOLDFAST_SESSION",
    "HOLDFAST_LIFE",
    "HOLDFAST_SESSION_NAME",
    "HOLDFAST_ENV",
    "HOLDFAST_ACTOR",
    "HOLDFAST_TOKEN",
    "HOLDFAST_URL",
    "TERM",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TERMINFO",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "VTE_VERSION",
    "WT_SESSION",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "SHLVL",
    "OLDPWD",
    "_",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "XDG_SESSION_ID",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "NOTIFY_SOCKET",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MANAGERPID",
    "SYSTEMD_EXEC_PID",
];

/// What a session starts with, nothing left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    pub name: Option<SessionName>,
    pub command: Vec<String>,
    pub argv0: Option<String>,
    pub cwd: String,
    pub env: Vec<String>,
    pub size: Size,
    pub ring_bytes: Option<u64>,
    /// Where its output and its log begin to count.
    pub base: Base,
    pub umask: u32,
    /// 0: the host's own limit.
    pub nofile: u64,
    pub integrate: Option<bool>,
    /// As whom it runs, where that is not the host's user.
    pub other: Option<Other>,
    /// The wall around its processes.
    pub wall: Option<Wall>,
    /// What of its processes is judged before it happens.
    pub gate: Option<Seam>,
    /// It is to be portable.
    pub is_portable: bool,
    /// What is run in it when its processes come from a checkpoint.
    pub on_resume: Option<String>,
    /// How often a checkpoint of it is made.
    pub checkpoint_every_ms: Option<u64>,
    /// How, once that was looked at.
    pub portable: Option<crate::portable::Portable>,
    /// Its home is a lease.
    pub lease: Option<Leasing>,
    /// Whether it gets another life by itself; none: as the host is configured.
    pub recover: Option<Recovery>,
    /// How often its command is run again where it fails.
    pub restart_on_failure: Option<u32>,
    /// How long it may be idle before it is reaped; none: as the host is configured.
    pub reap_after: Option<ReapAfter>,
}

/// Of a caller's environment, what a session of another user gets: nothing that could be a secret or a way to the caller.
const PASSED_ON: [&str; 5] = ["TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ"];

/// The shortest time after which a session may be reaped: each look costs the host something.
const REAP_MS_MIN: u64 = 1_000;

/// The shortest time between two checkpoints of a session: it stands still for each.
const CHECKPOINT_EVERY_MS_MIN: u64 = 1_000;

/// Most times a command is run again within ten minutes: with the pauses between them no more fit.
const RESTARTS_MAX: u32 = 100;

/// The user that a session shall run as.
pub(crate) fn other(name: &str) -> Result<Other, Fault> {
    let refused = |message: String, hint: &str| Err(Fault::new(Code::CannotStart, message).hint(hint));
    if !rustix::process::getuid().is_root() {
        let hint = "start the host as root, which can start sessions of others; its own files stay closed to them";
        return refused(format!("cannot run as {name}: the host does not run as root"), hint);
    }
    match user::by_name(name) {
        Some(other) if other.uid == 0 => refused(
            format!("{name} is root, as the host is: that keeps nobody out"),
            "name another user, or leave out --user",
        ),
        Some(other) => Ok(other),
        None => refused(format!("there is no user {name}"), "create one, for example: useradd --create-home NAME"),
    }
}

/// Another user's shell.
pub(crate) fn shell_of(other: &Other) -> String {
    if other.user.shell.is_empty() { "/bin/sh".to_owned() } else { other.user.shell.clone() }
}

/// Whether a variable belongs to a terminal or a login, and means nothing in another one.
pub(crate) fn is_of_a_login(key: &str) -> bool {
    OUTER.contains(&key) || PASSED_ON.contains(&key)
}

/// The environment of another user's session: its own, and what the caller's says of terminal and language.
pub(crate) fn environment_of(other: &Other, said: &[String], cwd: &str, shell: &str) -> Vec<String> {
    let User { name, home, .. } = &other.user;
    let passed = said.iter().filter(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        PASSED_ON.contains(&key) || key.starts_with("LC_")
    });
    let mut env: Vec<String> = passed.cloned().collect();
    if !env.iter().any(|pair| pair.starts_with("TERM=")) {
        set(&mut env, "TERM", TERM);
    }
    for (key, value) in
        [("PATH", PATH), ("HOME", home), ("USER", name), ("LOGNAME", name), ("SHELL", shell), ("PWD", cwd)]
    {
        set(&mut env, key, value);
    }
    env
}

impl Birth {
    /// Takes what was said, and the host's user's for what was not. `text` is what a run's shell is to execute.
    pub fn of(params: NewParams, text: Option<&str>, config: &HostConfig) -> Result<Birth, Fault> {
        let other = params.user.as_deref().map(other).transpose()?;
        let shell = || match &other {
            Some(other) => shell_of(other),
            None => shell(config.shell.clone()),
        };
        let command = match text {
            _ if !params.command.is_empty() => params.command,
            None => vec![shell()],
            Some(text) => vec![shell(), "-c".into(), text.to_owned()],
        };
        let cwd = match params.cwd {
            Some(cwd) if cwd.starts_with('/') => cwd,
            Some(cwd) => {
                return Err(Fault::new(Code::BadRequest, format!("the directory {cwd:?} is not an absolute path"))
                    .hint("use a path that starts with /, or omit it to use the home directory of the host's user"));
            }
            None => match &other {
                Some(other) if is_directory(&other.user.home) => other.user.home.clone(),
                Some(_) => "/".into(),
                None => home(),
            },
        };
        let mut env = match &other {
            Some(other) => environment_of(other, &params.env.unwrap_or_default(), &cwd, &shell()),
            None => params.env.unwrap_or_else(|| environment(&cwd, &shell())),
        };
        for pair in &params.env_add {
            let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(Fault::new(Code::BadRequest, format!("invalid variable {pair:?}; expected NAME=VALUE")));
            };
            set(&mut env, key, value);
        }
        if params.on_resume.is_some() && !params.portable {
            return Err(Fault::new(
                Code::BadRequest,
                "`on_resume` is for portable sessions: their processes can come back",
            )
            .hint("add --portable, or leave out --on-resume"));
        }
        if params.checkpoint_every_ms.is_some() && !params.portable {
            return Err(Fault::new(Code::BadRequest, "`checkpoint_every_ms` is for portable sessions")
                .hint("add --portable, or leave out --checkpoint-every"));
        }
        if params.checkpoint_every_ms.is_some_and(|ms| ms < CHECKPOINT_EVERY_MS_MIN) {
            let message = format!("`checkpoint_every_ms` is too short; at least {CHECKPOINT_EVERY_MS_MIN} ms");
            return Err(Fault::new(Code::BadRequest, message).hint("the session stands still for each checkpoint"));
        }
        must_be_leasable(params.lease, params.portable, params.ahead, config)?;
        let has_nul = |texts: &[String]| texts.iter().any(|text| text.contains('\0'));
        if has_nul(&command) || has_nul(&env) || has_nul(params.on_resume.as_slice()) || cwd.contains('\0') {
            return Err(Fault::new(Code::BadRequest, "the command, its directory or a variable contains a NUL byte"));
        }
        must_reap_late(params.reap_after)?;
        Ok(Birth {
            name: params.name,
            command,
            argv0: params.argv0,
            cwd,
            env,
            size: params.size,
            ring_bytes: params.ring_bytes,
            base: config.base,
            umask: params.umask.unwrap_or_else(umask),
            nofile: params.nofile.unwrap_or_else(|| FILE_LIMIT.get().copied().unwrap_or(0)),
            // What an integrated shell reads is in the host's home, which is closed to others.
            integrate: if other.is_some() { Some(false) } else { params.integrate },
            other,
            wall: params.wall,
            gate: params.gate,
            is_portable: params.portable,
            on_resume: params.on_resume,
            checkpoint_every_ms: params.checkpoint_every_ms,
            portable: None,
            lease: params.lease,
            recover: params.recover,
            restart_on_failure: params.restart_on_failure.map(|times| times.min(RESTARTS_MAX)),
            reap_after: params.reap_after,
        })
    }
}

/// Each look at an idle session costs something.
fn must_reap_late(after: Option<ReapAfter>) -> Result<(), Fault> {
    match after {
        Some(ReapAfter::Idle(ms)) if ms < REAP_MS_MIN => {
            Err(Fault::new(Code::BadRequest, format!("`reap_after` is too short; at least {REAP_MS_MIN} ms")))
        }
        _ => Ok(()),
    }
}

/// A lease needs a store; and one that kills, processes that end with their keeper.
fn must_be_leasable(lease: Option<Leasing>, portable: bool, ahead: bool, config: &HostConfig) -> Result<(), Fault> {
    let Some(lease) = lease else { return Ok(()) };
    if config.lease.is_none() {
        return Err(Fault::new(Code::CannotStart, "this host has no store of leases")
            .hint("set `lease = \"etcd=http://NAME:PORT\"` in config.toml, and run: holdfast host restart"));
    }
    if lease.hard && !portable {
        let message = "a hard fence kills the keeper, and only a portable session's processes end with that";
        return Err(Fault::new(Code::BadRequest, message).hint("add --portable, or leave out --hard-fence"));
    }
    if ahead {
        return Err(Fault::new(Code::BadRequest, "a leased session cannot be started ahead of need"));
    }
    Ok(())
}

/// The soft limit of open files the host was started with: sessions get that one, where nothing is said.
static FILE_LIMIT: OnceLock<u64> = OnceLock::new();

/// Before the host raises its own; none: there is none.
pub fn keep_file_limit(limit: Option<u64>) {
    let _ = FILE_LIMIT.set(limit.unwrap_or(0));
}

pub(crate) fn set(env: &mut Vec<String>, key: &str, value: &str) {
    let start = format!("{key}=");
    env.retain(|pair| !pair.starts_with(&start));
    env.push(start + value);
}

/// The host's user. Kept once it was found: a directory across a network must not hold up each session anew.
fn user() -> Option<&'static User> {
    static FOUND: OnceLock<User> = OnceLock::new();
    FOUND.get().or_else(|| user::find().map(|user| FOUND.get_or_init(|| user)))
}

/// As `holdfast new` chooses it: the configured one, `$SHELL`, the user's login shell, `/bin/sh`.
pub(crate) fn shell(configured: Option<String>) -> String {
    let variable = || variable("SHELL");
    let passwd = || user().map(|user| user.shell.clone()).filter(|shell| !shell.is_empty());
    configured.or_else(variable).or_else(passwd).unwrap_or_else(|| "/bin/sh".into())
}

/// The home directory: `$HOME`, the one the system knows, the root. One that is not there would keep every session away.
pub(crate) fn home() -> String {
    let there = |home: &String| is_directory(home);
    let known = || user().map(|user| user.home.clone()).filter(there);
    variable("HOME").filter(there).or_else(known).unwrap_or_else(|| "/".into())
}

pub(crate) fn is_directory(path: &str) -> bool {
    path.starts_with('/') && std::path::Path::new(path).is_dir()
}

fn variable(key: &str) -> Option<String> {
    std::env::var(key).ok().filter(|value| !value.is_empty())
}

/// The host's environment without what belongs to who started it.
pub(crate) fn environment(cwd: &str, shell: &str) -> Vec<String> {
    let all = std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    cleaned(all.collect(), user(), cwd, shell)
}

fn cleaned(mut all: Vec<(String, String)>, user: Option<&User>, cwd: &str, shell: &str) -> Vec<String> {
    // A forwarded agent is that of who was logged in, and passed on to nobody else.
    let forwarded = all.iter().any(|(key, _)| key == "SSH_CONNECTION");
    all.retain(|(key, value)| {
        let of_a_login = OUTER.contains(&key.as_str()) || (forwarded && key == "SSH_AUTH_SOCK");
        !of_a_login && identity::marker([(key.as_str(), value.as_str())]).is_none()
    });
    let missing = |key: &str| !all.iter().any(|(known, value)| known == key && !value.is_empty());
    let name = user.map(|user| user.name.as_str());
    let filled = [("PATH", Some(PATH)), ("SHELL", Some(shell)), ("USER", name), ("LOGNAME", name)];
    let filled: Vec<_> = filled.into_iter().filter(|(key, _)| missing(key)).collect();
    let home = user.map(|user| user.home.as_str()).filter(|home| !home.is_empty() && missing("HOME"));
    let mut env: Vec<String> = all.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    for (key, value) in filled.into_iter().chain([("HOME", home)]) {
        value.into_iter().for_each(|value| set(&mut env, key, value));
    }
    set(&mut env, "TERM", TERM);
    set(&mut env, "PWD", cwd);
    env
}

/// The file mode mask of this process, which can be read without setting it there alone.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    mask.unwrap_or(0o022)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A shell's.
    pub fn birth() -> Birth {
        Birth::of(NewParams { env: Some(Vec::new()), ..NewParams::default() }, None, &HostConfig::default()).unwrap()
    }

    fn pairs(texts: &[&str]) -> Vec<(String, String)> {
        let pair = |text: &&str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        texts.iter().filter_map(pair).collect()
    }

    #[test]
    fn an_environment_is_the_hosts_without_its_starters_and_with_what_every_program_needs() {
        let ann = User { name: "ann".into(), home: "/home/ann".into(), shell: "/bin/zsh".into() };
        let host = [
            "LANG=C.UTF-8",
            "HOLDFAST_HOME=/h",
            "HOLDFAST_SESSION=ses_x",
            "HOLDFAST_ACTOR=human:ann",
            "TMUX=/x",
            "TERM=dumb",
            "GEMINI_CLI=1",
            "SSH_CONNECTION=1",
            "SSH_AUTH_SOCK=/tmp/agent",
            "USER=root",
        ];
        let env = cleaned(pairs(&host), Some(&ann), "/srv", "/bin/zsh");
        let expected = [
            "LANG=C.UTF-8",
            "HOLDFAST_HOME=/h",
            "USER=root",
            &format!("PATH={PATH}"),
            "SHELL=/bin/zsh",
            "LOGNAME=ann",
            "HOME=/home/ann",
            "TERM=xterm-256color",
            "PWD=/srv",
        ];
        assert_eq!(env, expected);
        let own = cleaned(pairs(&["SSH_AUTH_SOCK=/run/agent"]), None, "/", "/bin/sh");
        assert!(own.contains(&"SSH_AUTH_SOCK=/run/agent".to_owned()), "{own:?}");
    }

    #[test]
    fn what_was_said_stays_the_whole_environment_and_more_is_laid_over_it() {
        let said = |env: Option<&[&str]>, add: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
            let params = NewParams { env: env.map(texts), env_add: texts(add), ..NewParams::default() };
            Birth::of(params, None, &HostConfig::default()).map(|birth| birth.env)
        };
        assert_eq!(said(Some(&[]), &[]).unwrap(), [""; 0]);
        assert_eq!(said(Some(&["A=1", "B=2"]), &["A=3", "C="]).unwrap(), ["B=2", "A=3", "C="]);
        assert!(said(None, &["A=3"]).unwrap().contains(&"A=3".to_owned()));
        for wrong in ["A", "=1", "A=\0"] {
            assert_eq!(said(Some(&[]), &[wrong]).unwrap_err().code, Code::BadRequest, "{wrong:?}");
        }
    }

    #[test]
    fn a_run_without_words_is_the_users_shell_with_its_text() {
        let config = HostConfig { shell: Some("/bin/zsh".into()), ..HostConfig::default() };
        let command = |words: &[&str], text| {
            let command = words.iter().map(|&word| word.to_owned()).collect();
            let params = NewParams { command, cwd: Some("/".into()), ..NewParams::default() };
            Birth::of(params, text, &config).unwrap().command
        };
        assert_eq!(command(&[], None), ["/bin/zsh"]);
        assert_eq!(command(&[], Some("make | tee log")), ["/bin/zsh", "-c", "make | tee log"]);
        assert_eq!(command(&["make"], Some("make")), ["make"]);
    }
}
