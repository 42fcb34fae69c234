//! What must hold: no session is lost, no byte is lost within the ring, what was acknowledged happened once, journals verify, nothing
//! leaks.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::clients::http;
use super::dice::Dice;
use super::log::{Log, Outcome, judge};
use super::place::{HUMAN, Kind, Place, Session, memory_kib, open_files, signal, started};

/// Without any answer for this long the host counts as dead.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Growth of a host at rest between two equal rounds of work that is no leak.
const MEMORY_SLACK_KIB: u64 = 8 * 1024;
const FILES_SLACK: usize = 8;

/// How far a counter was read.
#[derive(Debug, Default, Clone)]
pub struct Read {
    offset: u64,
    /// What stood behind the last line end.
    rest: String,
    last: u64,
}

impl Read {
    /// Goes on with what stands behind the offset; what is wrong with it.
    fn take(&mut self, from: u64, to: u64, text: &str) -> Option<String> {
        if from != self.offset {
            return Some(format!("its output begins at {from} where {} was asked for", self.offset));
        }
        self.offset = to;
        self.rest.push_str(text);
        while let Some((line, rest)) = self.rest.split_once('\n') {
            let number = line.trim_end().strip_prefix("n ").and_then(|count| count.parse().ok());
            if number != Some(self.last + 1) {
                return Some(format!("it has {line:?} behind {}", self.last));
            }
            self.last += 1;
            self.rest = rest.to_owned();
        }
        None
    }
}

/// Reads every counter along, by offset, until it is over; how far it came.
pub fn read_along(place: &Place, log: &Log, over: &AtomicBool) -> HashMap<String, Read> {
    let counters = place.of_kind(|kind| matches!(kind, Kind::Counts | Kind::CountsInPython));
    let mut read: HashMap<String, Read> = HashMap::new();
    let mut answered = Instant::now();
    while !over.load(Ordering::Relaxed) {
        for session in &counters {
            match read_on(place, session, read.entry(session.name.clone()).or_default()) {
                Ok(wrong) => {
                    answered = Instant::now();
                    log.count("looks at counters");
                    wrong.into_iter().for_each(|wrong| log.violation(format!("{}: {wrong}", session.name)));
                }
                Err(_) if answered.elapsed() < SILENCE_MAX => std::thread::sleep(Duration::from_millis(100)),
                Err(error) => {
                    log.violation(format!("no answer over HTTP for {} s: {error:#}", SILENCE_MAX.as_secs()));
                    answered = Instant::now();
                }
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    read
}

fn read_on(place: &Place, session: &Session, read: &mut Read) -> Result<Option<String>> {
    let path = format!("/v1/sessions/{}/output?from={}", session.name, read.offset);
    let (status, answer) = http(place, "GET", &path, &Value::Null)?;
    let (Some(from), Some(to), Some(text)) = (answer["from"].as_u64(), answer["to"].as_u64(), answer["text"].as_str())
    else {
        anyhow::bail!("{status}: {answer}");
    };
    Ok(read.take(from, to, text))
}

/// Every session is the process that it was.
pub fn sessions_live(place: &Place, log: &Log) {
    for session in &place.sessions {
        if started(session.pid).as_ref() != Some(&session.started) {
            log.violation(format!("the process of {} ({:?}) is gone", session.name, session.kind));
        }
        if started(session.keeper).is_none() {
            log.violation(format!("the keeper of {} is gone", session.name));
        }
    }
    log.count("looks at all processes");
}

/// A few journals, while they are written.
pub fn some_journals(place: &Place, log: &Log, dice: &mut Dice) {
    for _ in 0..4 {
        if let Some(session) = dice.one(&place.sessions) {
            verify(place, log, session);
        }
    }
}

fn verify(place: &Place, log: &Log, session: &Session) {
    // A host that was killed meanwhile is no fault of the journal: asked again.
    for attempt in 0..3 {
        match place.run(HUMAN, &["journal", &session.name, "--verify"]) {
            Ok(ran) if ran.status == 0 => return log.count("journals verified"),
            Ok(ran) if attempt == 2 => {
                log.violation(format!("the journal of {} does not verify: {}{}", session.name, ran.out, ran.err));
            }
            Err(error) if attempt == 2 => log.violation(format!("{error:#}")),
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(500)),
        }
    }
}

/// Everything once more, with nobody at work.
pub fn at_the_end(place: &Place, log: &Log, mut read: HashMap<String, Read>) -> Result<()> {
    for session in &place.sessions {
        signal(session.keeper, "CONT");
    }
    sessions_live(place, log);
    let listed = http(place, "GET", "/v1/sessions", &Value::Null)?.1;
    for session in &place.sessions {
        let view = listed.as_array().and_then(|all| all.iter().find(|one| one["name"] == session.name.as_str()));
        let life = view.map_or("missing", |view| view["life"].as_str().unwrap_or_default());
        if life != "running" {
            log.violation(format!("{} is {life} at the end", session.name));
        }
    }
    let mut numbers = 0;
    for session in place.of_kind(|kind| matches!(kind, Kind::Counts | Kind::CountsInPython)) {
        let along = read.entry(session.name.clone()).or_default();
        if let Some(wrong) = read_on(place, session, along)? {
            log.violation(format!("{}: {wrong}", session.name));
        }
        numbers += along.last;
    }
    log.note(format!("numbers counted and read without a gap: {numbers}"));
    typed_once(place, log)?;
    ran_once(place, log);
    place.sessions.iter().for_each(|session| verify(place, log, session));
    no_leak(place, log);
    for needed in ["lines typed", "runs ended", "looks", "kills of the host", "journals verified"] {
        if log.counted(needed) == 0 {
            log.violation(format!("the soak was empty: no {needed}"));
        }
    }
    Ok(())
}

/// Where each typed line comes back once: only whole lines are there, and each as often as its outcome says.
fn typed_once(place: &Place, log: &Log) -> Result<()> {
    let deeds = log.all_typed();
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for session in place.of_kind(|kind| kind == Kind::Repeats) {
        let name = &session.name;
        let (_, answer) = http(place, "GET", &format!("/v1/sessions/{name}/output?from=0"), &Value::Null)?;
        let text = answer["text"].as_str().unwrap_or_default();
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && *line != "ready") {
            if !deeds.iter().any(|deed| deed.token == line && deed.session == *name) {
                log.violation(format!("{name} was typed {line:?}, which nobody typed there"));
            }
            *found.entry((name.clone(), line.to_owned())).or_default() += 1;
        }
    }
    let times =
        |session: &str, token: &str| found.get(&(session.to_owned(), token.to_owned())).copied().unwrap_or_default();
    let seized = deeds.iter().filter(|deed| deed.outcome == Outcome::Seized);
    let dropped = seized.clone().filter(|deed| times(&deed.session, &deed.token) == 0).count();
    log.note(format!("lines typed right before a seizure: {}, of which it dropped {dropped}", seized.count()));
    judge(&deeds, |deed| times(&deed.session, &deed.token))
        .into_iter()
        .for_each(|wrong| log.violation(format!("typed: {wrong}")));
    Ok(())
}

/// The ledgers have each run as often as its outcome says.
fn ran_once(place: &Place, log: &Log) {
    let ledger =
        |session: &str| std::fs::read_to_string(place.work().join(format!("{session}.ledger"))).unwrap_or_default();
    let ledgers: HashMap<&str, String> =
        place.sessions.iter().map(|one| (one.name.as_str(), ledger(&one.name))).collect();
    let times = |session: &str, token: &str| {
        ledgers.get(session).map_or(0, |text| text.lines().filter(|line| *line == token).count())
    };
    let wrong = judge(&log.all_run(), |deed| times(&deed.session, &deed.token));
    wrong.into_iter().for_each(|wrong| log.violation(format!("run: {wrong}")));
}

/// The same work three times: the host has no more files and little more memory after the last than after the first.
fn no_leak(place: &Place, log: &Log) {
    let mut seen = vec![];
    for round in 0..3 {
        for number in 0..40 {
            let Some(session) = place.sessions.get(number % place.sessions.len()) else { continue };
            let _ = http(place, "GET", &format!("/v1/sessions/{}/output?from=0", session.name), &Value::Null);
            let body =
                json!({ "new": {}, "command": "true", "wait_ms": 20_000, "key": format!("leak-{round}-{number}") });
            if number % 8 == 0 {
                let _ = http(place, "POST", "/v1/runs", &body);
            }
        }
        let Some(host) = place.host_pid() else { return log.violation("no host at the end".into()) };
        seen.push((host, open_files(host), memory_kib(host)));
    }
    let (first, last) = (seen[0], seen[2]);
    log.note(format!(
        "host at rest: {} files and {} KiB, then {} files and {} KiB after the same work twice more",
        first.1, first.2, last.1, last.2
    ));
    if first.0 != last.0 {
        log.violation("the host died by itself".into());
    }
    // A session that has ended is kept for a day, with its files closed.
    if last.1 > first.1 + FILES_SLACK || last.2 > first.2 + MEMORY_SLACK_KIB {
        log.violation(format!("the host grows: {first:?}, then {last:?}"));
    }
    let keepers = place.sessions.iter().map(|session| (open_files(session.keeper), memory_kib(session.keeper)));
    let (files, memory) = keepers.fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
    log.note(format!("largest keeper: {files} files, {memory} KiB"));
    if files > 64 || memory > 16 * 1024 {
        log.violation(format!("a keeper has {files} files and {memory} KiB"));
    }
    let text = std::fs::read_to_string(place.home().join("host.log")).unwrap_or_default();
    if text.contains("panicked at") {
        log.violation("a host panicked: see host.log".into());
    }
}

#[test]
fn a_counter_is_read_across_any_cut_and_a_gap_is_noticed() {
    let text = "n 1\r\nn 2\r\nn 3\r\n";
    for cut in 0..text.len() {
        let mut read = Read::default();
        assert_eq!(read.take(0, cut as u64, &text[..cut]), None);
        assert_eq!(read.take(cut as u64, text.len() as u64, &text[cut..]), None);
        assert_eq!(read.last, 3);
    }
    assert!(Read::default().take(0, 5, "n 2\r\n").is_some());
    assert!(Read::default().take(7, 12, "n 1\r\n").is_some());
}
