//! What a person may set: a flag wins over the environment (`HOLDFAST_<KEY>`), that over `config.toml`, that over the
//! default.

use crate::failure::Failure;
use crate::values::{Bytes, Seconds, rights};
#[cfg(target_os = "linux")]
use crate::values::{bytes, reap_after};
#[cfg(target_os = "linux")]
use holdfast_host::{LogFormat, LogLevels, ReapRules};
use holdfast_screen::keys::{self, Key};
use holdfast_store::trust::read_ours;
use holdfast_types::Defaults;
use holdfast_wire::lives::Recovery;
#[cfg(target_os = "linux")]
use holdfast_wire::reaping::ReapAfter;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use toml::{Spanned, Value};

/// Every key, in the order of the manual.
pub const KEYS: [&str; 36] = [
    "chord",
    "detach_key",
    "greeting",
    "title",
    "status",
    "ring",
    "history_lines",
    "ended_keep",
    "runs_keep",
    "flows_keep",
    "flows_archive",
    "grace",
    "shell",
    "recover",
    "reap_after",
    "reap_warn",
    "reap_sessions_max",
    "reap_memory_max",
    "attach_history",
    "rights_human",
    "rights_agent",
    "rights_service",
    "rights_device",
    "rights_unknown",
    "rights_spawner",
    "metrics_listen",
    "log",
    "log_format",
    "notify",
    "policy",
    "lease",
    "lease_ttl",
    "lease_margin",
    "lease_ca",
    "lease_cert",
    "lease_key",
];

/// From HUP to KILL by default: editors save, databases flush.
const GRACE_MS: u64 = 5_000;

/// The settings that hold for this run of the program; `None`: not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The control byte that starts a chord; none: every key is typed.
    pub chord: Option<u8>,
    /// The second key that detaches.
    pub detach_key: u8,
    /// Say where the person is when a terminal meets a session for the first time.
    pub greeting: bool,
    /// Say it in the window's title.
    pub title: bool,
    /// And in a status line at the bottom.
    pub status: bool,
    /// Data bytes of a new session's ring.
    pub ring: Option<u64>,
    /// Lines of history kept per session.
    pub history_lines: Option<u32>,
    /// How long an ended session stays visible.
    pub ended_keep_ms: Option<u64>,
    /// How long the key of a run is remembered.
    pub runs_keep_ms: Option<u64>,
    /// How long a flow that has ended is kept.
    pub flows_keep_ms: Option<u64>,
    /// Where the histories of flows go before they are removed.
    pub flows_archive: Option<String>,
    /// From HUP to KILL.
    pub grace_ms: u64,
    /// The shell of a new session.
    pub shell: Option<String>,
    /// Whether lost sessions are recovered without being asked.
    pub recover: Recovery,
    /// Which sessions that nobody uses are ended.
    #[cfg(target_os = "linux")]
    pub reap: ReapRules,
    /// Bring the history into the terminal's scrollback on attach.
    pub attach_history: bool,
    /// What actors hold in a session before anything is granted.
    pub defaults: Defaults,
    /// Where the host's counters can be fetched.
    pub metrics_listen: Option<SocketAddr>,
    /// What the host logs.
    #[cfg(target_os = "linux")]
    pub log: LogLevels,
    /// How a line of its log looks.
    #[cfg(target_os = "linux")]
    pub log_format: LogFormat,
    /// Notification rules.
    #[cfg(target_os = "linux")]
    pub notify: Vec<holdfast_host::Rule>,
    /// By which policy acts are judged.
    #[cfg(target_os = "linux")]
    pub policy: holdfast_host::Choice,
    /// Where leases of sessions are kept.
    #[cfg(target_os = "linux")]
    pub lease: crate::lease::LeaseSettings,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            chord: Some(0x1c),
            detach_key: b'd',
            greeting: true,
            title: true,
            status: false,
            ring: None,
            history_lines: None,
            ended_keep_ms: None,
            runs_keep_ms: None,
            flows_keep_ms: None,
            flows_archive: None,
            grace_ms: GRACE_MS,
            shell: None,
            recover: Recovery::Manual,
            #[cfg(target_os = "linux")]
            reap: ReapRules::default(),
            attach_history: true,
            defaults: Defaults::default(),
            metrics_listen: None,
            #[cfg(target_os = "linux")]
            log: LogLevels::default(),
            #[cfg(target_os = "linux")]
            log_format: LogFormat::default(),
            #[cfg(target_os = "linux")]
            notify: Vec::new(),
            #[cfg(target_os = "linux")]
            policy: holdfast_host::Choice::default(),
            #[cfg(target_os = "linux")]
            lease: crate::lease::LeaseSettings::default(),
        }
    }
}

/// What actors may do, what is run and what is ended comes from the file only: the environment of the process that starts the host must
/// not widen it.
fn is_for_the_file(key: &str) -> bool {
    key.starts_with("rights_")
        || key.starts_with("reap_")
        || key.starts_with("lease")
        || ["notify", "policy"].contains(&key)
}

/// A value as it was found.
enum Found {
    /// Of the environment: everything is text there.
    Variable(String),
    /// Of the file.
    Typed(Value),
}

impl Config {
    /// Reads the file, if there is one, then the environment.
    pub fn load(file: &Path, get: impl Fn(&str) -> Option<OsString>) -> Result<Config, Failure> {
        let mut config = Config::default();
        // It says what is run, and who may do what.
        if let Some(text) = read_ours(file)? {
            config.read_file(file, &text)?;
        }
        for key in KEYS.into_iter().filter(|key| !is_for_the_file(key)) {
            let variable = format!("HOLDFAST_{}", key.to_ascii_uppercase());
            let Some(value) = get(&variable).filter(|v| !v.is_empty()) else { continue };
            let value = Found::Variable(value.to_string_lossy().into_owned());
            config.set(key, value).map_err(|why| wrong(format!("{variable}: {why}")))?;
        }
        Ok(config)
    }

    fn read_file(&mut self, file: &Path, text: &str) -> Result<(), Failure> {
        let line = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
        let place = |at: usize| format!("{}:{}", file.display(), line(at));
        let table: BTreeMap<Spanned<String>, Spanned<Value>> = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |s| s.start);
            wrong(format!("{}: {}", place(at), error.message()))
        })?;
        // In the order of the file: the first mistake is the one to look at first.
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let at = place(key.span().start);
            if !KEYS.contains(&key.get_ref().as_str()) {
                return Err(unknown(&at, key.get_ref()));
            }
            self.set(key.get_ref(), Found::Typed(value.into_inner()))
                .map_err(|why| wrong(format!("{at}: {}: {why}", key.get_ref())))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, found: Found) -> Result<(), String> {
        match key {
            "chord" => self.chord = chord(&found.text()?)?,
            "detach_key" => self.detach_key = detach_key(&found.text()?)?,
            "greeting" => self.greeting = found.flag()?,
            "title" => self.title = found.flag()?,
            "status" => self.status = status(&found.text()?)?,
            "ring" => self.ring = Some(found.text_or_number()?.parse::<Bytes>().map_err(|e| e.to_string())?.0),
            "history_lines" => self.history_lines = Some(found.number()?),
            "ended_keep" => self.ended_keep_ms = Some(found.time_ms()?),
            "runs_keep" => self.runs_keep_ms = Some(found.time_ms()?),
            "flows_keep" => self.flows_keep_ms = Some(found.time_ms()?),
            "flows_archive" => self.flows_archive = Some(directory(found.text()?)?),
            "grace" => self.grace_ms = found.time_ms()?,
            "shell" => self.shell = Some(found.text()?),
            "recover" => self.recover = recovery(&found.text()?)?,
            "attach_history" => self.attach_history = found.flag()?,
            "rights_human" => self.defaults.human = rights(&found.text()?)?,
            "rights_agent" => self.defaults.agent = rights(&found.text()?)?,
            "rights_service" => self.defaults.service = rights(&found.text()?)?,
            "rights_device" => self.defaults.device = rights(&found.text()?)?,
            "rights_unknown" => self.defaults.unknown = rights(&found.text()?)?,
            "rights_spawner" => self.defaults.spawner = rights(&found.text()?)?,
            "metrics_listen" => self.metrics_listen = Some(loopback(&found.text()?)?),
            other => return self.set_of_host(other, found),
        }
        Ok(())
    }

    /// What only a host reads.
    #[cfg(target_os = "linux")]
    fn set_of_host(&mut self, key: &str, found: Found) -> Result<(), String> {
        match key {
            "reap_after" => {
                self.reap.after_ms = match reap_after(&found.text_or_number()?)? {
                    ReapAfter::Never => None,
                    ReapAfter::Idle(ms) => Some(ms),
                };
            }
            "reap_warn" => self.reap.warn_ms = found.time_ms()?,
            "reap_sessions_max" => self.reap.sessions_max = Some(found.number()?),
            "reap_memory_max" => self.reap.memory_max = Some(memory(&found.text_or_number()?)?),
            "log" => self.log = found.text()?.parse()?,
            "log_format" => self.log_format = found.text()?.parse()?,
            "policy" => self.policy = found.text()?.parse()?,
            "lease" => self.lease.store = crate::lease::LeaseSettings::store(&found.text()?)?,
            "lease_ttl" => self.lease.ttl_ms = Some(found.time_ms()?),
            "lease_margin" => self.lease.margin_ms = Some(found.time_ms()?),
            "lease_ca" => self.lease.ca = Some(found.text()?.into()),
            "lease_cert" => self.lease.cert = Some(found.text()?.into()),
            "lease_key" => self.lease.key = Some(found.text()?.into()),
            "notify" => self.notify = crate::notify::rules(found.value())?,
            other => return Err(format!("unknown key `{other}`")),
        }
        Ok(())
    }

    /// No host runs here that would read them; one file may serve several machines.
    #[cfg(not(target_os = "linux"))]
    fn set_of_host(&mut self, _: &str, _: Found) -> Result<(), String> {
        Ok(())
    }
}

impl Found {
    #[cfg(target_os = "linux")]
    fn value(self) -> Value {
        match self {
            Found::Variable(text) => Value::String(text),
            Found::Typed(value) => value,
        }
    }

    fn text(self) -> Result<String, String> {
        match self {
            Found::Variable(text) | Found::Typed(Value::String(text)) => Ok(text),
            Found::Typed(value) => Err(format!("expected a string in quotes, not {}", kind(&value))),
        }
    }

    fn text_or_number(self) -> Result<String, String> {
        match self {
            Found::Typed(Value::Integer(number)) => Ok(number.to_string()),
            other => other.text(),
        }
    }

    fn time_ms(self) -> Result<u64, String> {
        self.text_or_number()?.parse::<Seconds>().map(|s| s.ms).map_err(|e| e.to_string())
    }

    fn number(self) -> Result<u32, String> {
        let number = match self {
            Found::Variable(text) => text.parse().ok(),
            Found::Typed(Value::Integer(number)) => u32::try_from(number).ok(),
            Found::Typed(value) => return Err(format!("expected a whole number, not {}", kind(&value))),
        };
        number.ok_or_else(|| format!("expected a whole number from 0 to {}", u32::MAX))
    }

    fn flag(self) -> Result<bool, String> {
        match self {
            Found::Variable(text) if text == "1" => Ok(true),
            Found::Variable(text) if text == "0" => Ok(false),
            Found::Variable(text) => text.parse().map_err(|_| "expected true or false".into()),
            Found::Typed(Value::Boolean(flag)) => Ok(flag),
            Found::Typed(value) => Err(format!("expected true or false, not {}", kind(&value))),
        }
    }
}

fn directory(text: String) -> Result<String, String> {
    if std::path::Path::new(&text).is_absolute() { Ok(text) } else { Err("expected an absolute path".into()) }
}

fn recovery(word: &str) -> Result<Recovery, String> {
    match word {
        "auto" => Ok(Recovery::Auto),
        "manual" => Ok(Recovery::Manual),
        _ => Err("expected \"auto\" or \"manual\"".into()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

fn wrong(message: String) -> Failure {
    Failure::new("config", message)
}

fn unknown(at: &str, key: &str) -> Failure {
    let near = KEYS.iter().map(|k| (strsim::damerau_levenshtein(k, &key.to_ascii_lowercase()), k)).min();
    let failure = wrong(format!("{at}: unknown key `{key}`"));
    match near {
        // Half of a word that is wrong is no slip of the finger.
        Some((distance, near)) if distance * 2 < key.len() => failure.hint(format!("did you mean `{near}`?")),
        Some(_) | None => failure.hint(format!("known keys: {}", KEYS.join(", "))),
    }
}

/// Memory of all sessions; below what a few shells take it is a slip of the finger.
#[cfg(target_os = "linux")]
fn memory(text: &str) -> Result<u64, String> {
    const MIN: u64 = 1 << 20;
    let expected = || "expected at least 1 MiB, for example \"2GiB\"".to_owned();
    bytes(text).map_err(|_| expected())?.filter(|bytes| *bytes >= MIN).ok_or_else(expected)
}

/// Where the status line is, if anywhere.
fn status(text: &str) -> Result<bool, String> {
    match text {
        "bottom" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected \"bottom\" or \"off\"".into()),
    }
}

/// `C-x` as the byte it sends; `none`: nothing.
fn chord(text: &str) -> Result<Option<u8>, String> {
    if text == "none" {
        return Ok(None);
    }
    let letter = text.strip_prefix("C-").or_else(|| text.strip_prefix("c-"));
    let mut letters = letter.unwrap_or_default().chars();
    match (letters.next().and_then(keys::control), letters.next()) {
        (Some(byte), None) => Ok(Some(byte)),
        _ => Err("expected a control key, for example \"C-a\", or \"none\"".into()),
    }
}

/// An address that only this machine can reach: the counters show names of sessions and actors without a login.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err("expected a loopback address, for example \"127.0.0.1:9464\"".into()),
        Err(_) => Err("expected an address and a port, for example \"127.0.0.1:9464\"".into()),
    }
}

/// A key that nothing else is behind the chord.
fn detach_key(text: &str) -> Result<u8, String> {
    let key = single_byte(text)?;
    match holdfast_client::chord_key(key) {
        Some(what) => Err(format!("{text:?} is taken: behind the chord it {what}")),
        None => Ok(key),
    }
}

fn single_byte(text: &str) -> Result<u8, String> {
    match text.parse::<Key>().as_ref().map(|key| key.0.as_slice()) {
        Ok([byte]) => Ok(*byte),
        Ok(_) | Err(_) => Err("expected one key, for example \"d\"".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Right, Rights};

    fn load(text: &str, vars: &[(&str, &str)]) -> Result<Config, Failure> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        Config::load(&file, |key| vars.iter().find(|(k, _)| *k == key).map(|(_, v)| v.into()))
    }

    #[test]
    fn every_key_can_be_set_in_the_file() {
        let text = r#"
            chord = "C-a"
            detach_key = "x"
            greeting = false
            title = false
            status = "bottom"
            ring = "2MiB"
            history_lines = 500
            ended_keep = "2h"
            runs_keep = "2d"
            flows_keep = "60d"
            flows_archive = "/srv/flows"
            grace = 3
            shell = "/bin/dash"
            recover = "auto"
            reap_after = "12h"
            reap_warn = "5m"
            reap_sessions_max = 50
            reap_memory_max = "4GiB"
            attach_history = false
            rights_human = "all"
            rights_agent = "observe"
            rights_service = "observe,run"
            rights_device = "observe,type"
            rights_unknown = ""
            rights_spawner = "none"
            metrics_listen = "[::1]:9464"
            log = "warn,holdfast_host::notify=debug"
            log_format = "json"
            policy = "careful"
            [[notify]]
            on = ["exit"]
            ring = true
        "#;
        let expected = Config {
            chord: Some(1),
            detach_key: b'x',
            greeting: false,
            title: false,
            status: true,
            ring: Some(2 << 20),
            history_lines: Some(500),
            ended_keep_ms: Some(7_200_000),
            runs_keep_ms: Some(172_800_000),
            flows_keep_ms: Some(5_184_000_000),
            flows_archive: Some("/srv/flows".into()),
            grace_ms: 3_000,
            shell: Some("/bin/dash".into()),
            recover: Recovery::Auto,
            reap: ReapRules {
                after_ms: Some(43_200_000),
                warn_ms: 300_000,
                sessions_max: Some(50),
                memory_max: Some(4 << 30),
            },
            attach_history: false,
            defaults: Defaults {
                human: Rights::ALL,
                agent: Right::Observe.into(),
                service: Rights::of(&[Right::Observe, Right::Run]),
                device: Rights::of(&[Right::Observe, Right::Type]),
                unknown: Rights::NONE,
                spawner: Rights::NONE,
            },
            metrics_listen: Some("[::1]:9464".parse().unwrap()),
            log: "warn,holdfast_host::notify=debug".parse().unwrap(),
            log_format: LogFormat::Json,
            notify: vec![holdfast_host::Rule {
                on: vec![holdfast_host::On::Exit],
                session: None,
                by: holdfast_host::Deliver::Ring,
            }],
            policy: holdfast_host::Choice::Ready("careful"),
            ..Config::default()
        };
        assert_eq!(load(text, &[]).unwrap(), expected);
    }

    #[test]
    fn leases_are_set_in_the_file_and_not_by_the_environment() {
        let text = "lease = 'etcd=http://127.0.0.1:2379'\nlease_ttl = 10\nlease_margin = '2s'\nlease_ca = '/ca.pem'\n\
                    lease_cert = '/cert.pem'\nlease_key = '/key.pem'";
        let expected = crate::lease::LeaseSettings {
            store: crate::lease::LeaseSettings::store("etcd=http://127.0.0.1:2379").unwrap(),
            ttl_ms: Some(10_000),
            margin_ms: Some(2_000),
            ca: Some("/ca.pem".into()),
            cert: Some("/cert.pem".into()),
            key: Some("/key.pem".into()),
        };
        assert_eq!(load(text, &[("HOLDFAST_LEASE_TTL", "99")]).unwrap().lease, expected);
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let vars = [("HOLDFAST_GRACE", "1s"), ("HOLDFAST_ATTACH_HISTORY", "0"), ("HOLDFAST_HISTORY_LINES", "7")];
        let config = load("grace = \"9s\"\nhistory_lines = 1", &vars).unwrap();
        assert_eq!((config.grace_ms, config.attach_history, config.history_lines), (1_000, false, Some(7)));
    }

    #[test]
    fn what_is_ended_is_said_in_the_file_alone_and_never_is_the_default() {
        let config = load("", &[("HOLDFAST_REAP_AFTER", "1s"), ("HOLDFAST_REAP_SESSIONS_MAX", "1")]).unwrap();
        assert_eq!(config.reap, ReapRules::default());
        assert_eq!((config.reap.after_ms, config.reap.has_limits()), (None, false));
        assert_eq!(load("reap_after = \"never\"", &[]).unwrap().reap.after_ms, None);
    }

    #[test]
    fn the_chord_can_be_none() {
        assert_eq!(load("chord = \"none\"", &[]).unwrap().chord, None);
        assert_eq!(load("", &[("HOLDFAST_CHORD", "none")]).unwrap().chord, None);
    }

    #[test]
    fn no_file_means_the_defaults() {
        assert_eq!(Config::load(Path::new("/nowhere/config.toml"), |_| None).unwrap(), Config::default());
    }

    #[test]
    fn a_mistake_names_file_line_and_what_was_expected() {
        let mistakes = [
            ("ring = \"1MiB\"\ngarce = 1", ":2: unknown key `garce`"),
            ("ring = true", ":1: ring: expected a string in quotes, not true or false"),
            ("\n\nring = \"1k\"", ":3: ring: expected 256 KiB to 1024 MiB"),
            ("history_lines = \"5\"", ":1: history_lines: expected a whole number, not a string"),
            ("detach_key = \"s\"", ":1: detach_key: \"s\" is taken: behind the chord it seizes the turn"),
            ("chord = \"d\"", ":1: chord: expected a control key"),
            ("status = \"top\"", ":1: status: expected \"bottom\" or \"off\""),
            ("title = \"yes\"", ":1: title: expected true or false, not a string"),
            ("flows_archive = \"flows\"", ":1: flows_archive: expected an absolute path"),
            ("reap_after = \"soon\"", ":1: reap_after: expected never, or a time of at least 1 s"),
            ("reap_after = \"10ms\"", ":1: reap_after: expected never, or a time"),
            ("reap_memory_max = \"1k\"", ":1: reap_memory_max: expected at least 1 MiB"),
            ("reap_sessions_max = -1", ":1: reap_sessions_max: expected a whole number"),
            ("reap_afer = \"1h\"", ":1: unknown key `reap_afer`"),
            ("grace = \"soon\"", ":1: grace: expected seconds"),
            ("rights_agent = \"observe,fly\"", ":1: rights_agent: unknown right \"fly\""),
            ("metrics_listen = \"9464\"", ":1: metrics_listen: expected an address and a port"),
            ("metrics_listen = \"0.0.0.0:9464\"", ":1: metrics_listen: expected a loopback address"),
            ("log = \"loud\"", ":1: log: expected off, error, warn, info, debug or trace"),
            ("log_format = \"xml\"", ":1: log_format: expected text or json"),
            ("ring = \"1MiB\"\nchord C-a", ":2: "),
        ];
        for (text, expected) in mistakes {
            let failure = load(text, &[]).unwrap_err();
            assert!(failure.message().contains(expected), "{text:?}: {}", failure.message());
        }
    }
}
