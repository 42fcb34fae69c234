//! What a host counts, as OpenMetrics text.
//!
//! Every counter is an atomic of its own, so that any task may count at any moment. Labels come from closed sets, all of which are
//! there from the start: the text has the same lines however long a host runs. Counters begin at nothing with each host.

use holdfast_wire::Code;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Upper bounds of the buckets, in seconds: from what a seizure takes on an idle machine to what a person notices.
const BUCKETS: [f64; 14] =
    [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

const LIVES: [&str; 5] = ["running", "ended", "lost", "unknown", "damaged"];
const TURNS: [&str; 6] = ["wrote", "asked", "given", "seized", "lent", "freed"];
const CLASSES: [&str; 5] = ["human", "agent", "service", "device", "host"];
const REAPS: [&str; 3] = ["idle", "sessions", "memory"];
const FREEZES: [&str; 2] = ["false", "true"];

macro_rules! codes {
    ($( $code:ident $word:literal )*) => {
        /// Every code that crosses the wire, with its word.
        const CODES: &[(Code, &str)] = &[ $( (Code::$code, $word), )* ];

        /// Does not compile while a code is missing above.
        const fn is_listed(code: Code) -> bool {
            match code { $( Code::$code => true, )* }
        }
        const _: () = assert!(is_listed(Code::Internal));
    };
}

codes! {
    BadRequest "bad_request"
    UnknownOperation "unknown_operation"
    Version "version"
    NotFound "not_found"
    Ambiguous "ambiguous"
    NameTaken "name_taken"
    Ended "ended"
    Lost "lost"
    UnknownKeeper "unknown_keeper"
    CannotStart "cannot_start"
    Ahead "ahead"
    Busy "busy"
    Damaged "damaged"
    Unidentified "unidentified"
    Unconfirmed "unconfirmed"
    BadProof "bad_proof"
    NoSuchActor "no_such_actor"
    TurnHeld "turn_held"
    FenceStale "fence_stale"
    Denied "denied"
    Frozen "frozen"
    NotFrozen "not_frozen"
    NotHolder "not_holder"
    NotAttached "not_attached"
    NoSuchGrant "no_such_grant"
    TooWide "too_wide"
    TooLong "too_long"
    EmptyGrant "empty_grant"
    TooMany "too_many"
    EchoOn "echo_on"
    ShellBusy "shell_busy"
    KeyConflict "key_conflict"
    NoSuchRun "no_such_run"
    NoSuchToken "no_such_token"
    NoSuchInvite "no_such_invite"
    InviteOver "invite_over"
    NoSuchDevice "no_such_device"
    NoSuchRelay "no_such_relay"
    TooFast "too_fast"
    TooLarge "too_large"
    Stopping "stopping"
    NoSuchQuestion "no_such_question"
    QuestionClosed "question_closed"
    NoSuchFile "no_such_file"
    OutsideRoot "outside_root"
    NotAFile "not_a_file"
    FileChanged "file_changed"
    Unrecorded "unrecorded"
    ApprovalNeeded "approval_needed"
    NoSuchApproval "no_such_approval"
    ApprovalClosed "approval_closed"
    Internal "internal"
}

/// The word under which a code travels.
pub fn word_of(code: Code) -> &'static str {
    CODES.iter().find(|(known, _)| *known == code).map_or("", |(_, word)| word)
}

/// What is so at this moment, as the caller sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions whose command runs.
    pub running: u64,
    /// Sessions whose command has ended.
    pub ended: u64,
    /// Sessions whose keeper is gone.
    pub lost: u64,
    /// Sessions whose keeper's version is not known.
    pub unknown: u64,
    /// Sessions whose files cannot be read.
    pub damaged: u64,
    /// Attached clients.
    pub clients: u64,
    /// Requests that are being answered.
    pub requests: u64,
}

/// Numbers of one name, by a label of a closed set.
#[derive(Debug, Clone)]
struct Labelled<M> {
    family: Family<[(&'static str, &'static str); 1], M>,
    label: &'static str,
    words: Vec<&'static str>,
}

impl<M: Metric + Default + Clone> Labelled<M> {
    fn new(label: &'static str, words: impl IntoIterator<Item = &'static str>) -> Labelled<M> {
        let one = Labelled { family: Family::default(), label, words: words.into_iter().collect() };
        for word in &one.words {
            drop(one.family.get_or_create(&[(label, *word)]));
        }
        one
    }

    /// Does something with the number of a word.
    fn with(&self, word: &str, change: impl FnOnce(&M)) {
        let known = self.words.iter().find(|known| **known == word);
        debug_assert!(known.is_some(), "{word} is not counted");
        if let Some(word) = known {
            change(&self.family.get_or_create(&[(self.label, *word)]));
        }
    }
}

/// A host's counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    since: Instant,
    attaches: Counter,
    detaches: Counter,
    reattaches: Counter,
    output_gaps: Counter,
    turn_changes: Labelled<Counter>,
    seizes: Labelled<Counter>,
    seize_cut: Histogram,
    seize_freeze: Histogram,
    refusals: Labelled<Counter>,
    acts: Labelled<Counter>,
    restarts_survived: Counter,
    reap_warnings: Labelled<Counter>,
    reaps_averted: Counter,
    reaps: Labelled<Counter>,
    journal_records: Counter,
    journal_syncs: Counter,
    journal_sync: Histogram,
    sessions: Labelled<Gauge>,
    clients: Gauge,
    requests: Gauge,
    uptime: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Everything at nothing; the host is up from now on.
    #[must_use]
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("holdfast");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "This host's version; always 1", build);
        let mut metrics = Metrics {
            since: Instant::now(),
            attaches: Counter::default(),
            detaches: Counter::default(),
            reattaches: Counter::default(),
            output_gaps: Counter::default(),
            turn_changes: Labelled::new("how", TURNS),
            seizes: Labelled::new("freeze", FREEZES),
            seize_cut: Histogram::new(BUCKETS),
            seize_freeze: Histogram::new(BUCKETS),
            refusals: Labelled::new("code", CODES.iter().map(|(_, word)| *word)),
            acts: Labelled::new("class", CLASSES),
            restarts_survived: Counter::default(),
            reap_warnings: Labelled::new("why", REAPS),
            reaps_averted: Counter::default(),
            reaps: Labelled::new("why", REAPS),
            journal_records: Counter::default(),
            journal_syncs: Counter::default(),
            journal_sync: Histogram::new(BUCKETS),
            sessions: Labelled::new("life", LIVES),
            clients: Gauge::default(),
            requests: Gauge::default(),
            uptime: Gauge::default(),
            registry,
        };
        metrics.register();
        metrics
    }

    /// Names everything that is counted; `_total` is added to the names of counters.
    fn register(&mut self) {
        let all = &mut self.registry;
        all.register("attaches", "Clients that attached", self.attaches.clone());
        all.register("detaches", "Attached clients that left or were cut off", self.detaches.clone());
        all.register("reattaches", "Attaches to a session that had been attached to", self.reattaches.clone());
        all.register("output_gaps", "Times a reader missed output that is no longer kept", self.output_gaps.clone());
        all.register("turn_changes", "Changes of the turn, by how it was come by", self.turn_changes.family.clone());
        all.register("seizes", "Seized turns, by whether the tree was frozen", self.seizes.family.clone());
        all.register("seize_cut_seconds", "Until the old holder could write no more", self.seize_cut.clone());
        all.register("seize_freeze_seconds", "Until the whole tree stood still", self.seize_freeze.clone());
        all.register("refusals", "Refusals and failures, by code", self.refusals.family.clone());
        all.register("acts", "Recorded acts, by the class of who did them", self.acts.family.clone());
        let survived = "Sessions that went on without a host until this one took them up";
        all.register("host_restarts_survived", survived, self.restarts_survived.clone());
        all.register(
            "reap_warnings",
            "Warnings that a session is reaped soon, by why",
            self.reap_warnings.family.clone(),
        );
        let averted = "Sessions that were used or kept, or had no reason to go any more, after a warning";
        all.register("reaps_averted", averted, self.reaps_averted.clone());
        all.register("reaps", "Sessions that were reaped, by why", self.reaps.family.clone());
        all.register("journal_records", "Records passed to journals", self.journal_records.clone());
        all.register("journal_syncs", "Syncs of journals", self.journal_syncs.clone());
        all.register("journal_sync_seconds", "How long a sync of a journal took", self.journal_sync.clone());
        all.register("sessions", "Sessions, by their life", self.sessions.family.clone());
        all.register("clients", "Attached clients", self.clients.clone());
        all.register("requests", "Requests that are being answered, this one included", self.requests.clone());
        all.register("uptime_seconds", "How long this host runs", self.uptime.clone());
    }

    /// A client attached; `again`: to a session that somebody had been attached to before.
    pub fn attached(&self, again: bool) {
        self.attaches.inc();
        self.reattaches.inc_by(u64::from(again));
    }

    /// An attached client left or was cut off.
    pub fn detached(&self) {
        self.detaches.inc();
    }

    /// A reader was told that output is no longer kept.
    pub fn output_gap(&self) {
        self.output_gaps.inc();
    }

    /// The turn changed: `wrote`, `asked`, `given`, `seized` or `freed`.
    pub fn turn_changed(&self, how: &str) {
        self.turn_changes.with(how, one_more);
    }

    /// A turn was seized: how long until nothing more of the old holder could reach the terminal, and until the tree stood
    /// still, where it did.
    pub fn seized(&self, freeze: bool, cut: Duration, frozen: Option<Duration>) {
        self.seizes.with(FREEZES[usize::from(freeze)], one_more);
        self.seize_cut.observe(cut.as_secs_f64());
        if let Some(frozen) = frozen {
            self.seize_freeze.observe(frozen.as_secs_f64());
        }
    }

    /// Something was refused, or failed, with this code.
    pub fn refused(&self, code: &str) {
        self.refusals.with(code, one_more);
    }

    /// A record was passed to a journal; it is an act of an actor of this class, or of `host`.
    pub fn recorded(&self, class: &str, is_act: bool) {
        self.journal_records.inc();
        if is_act {
            self.acts.with(class, one_more);
        }
    }

    /// A session is to be reaped: for `idle`, `sessions` or `memory`.
    pub fn reap_warned(&self, why: &str) {
        self.reap_warnings.with(why, one_more);
    }

    /// And is not.
    pub fn reap_averted(&self) {
        self.reaps_averted.inc();
    }

    /// It was.
    pub fn reaped(&self, why: &str) {
        self.reaps.with(why, one_more);
    }

    /// A session that went on without a host was taken up.
    pub fn survived(&self) {
        self.restarts_survived.inc();
    }

    /// A journal's file was synced.
    pub fn synced(&self, took: Duration) {
        self.journal_syncs.inc();
        self.journal_sync.observe(took.as_secs_f64());
    }

    /// All of it as text.
    #[must_use]
    pub fn render(&self, now: &Gauges) -> String {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (life, count) in LIVES.into_iter().zip([now.running, now.ended, now.lost, now.unknown, now.damaged]) {
            self.sessions.with(life, |gauge| {
                gauge.set(number(count));
            });
        }
        self.clients.set(number(now.clients));
        self.requests.set(number(now.requests));
        self.uptime.set(self.since.elapsed().as_secs_f64());
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}

fn one_more(counter: &Counter) {
    counter.inc();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A sample's name, labels and value.
    type Sample = (String, Vec<(String, String)>, f64);

    fn is_name(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    }

    /// Reads one sample, or says what is wrong with it.
    fn sample(line: &str) -> Sample {
        let at = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
        let (name, mut rest) = line.split_at(at);
        assert!(is_name(name) && name.starts_with("holdfast_"), "{line}");
        let mut labels = vec![];
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
                assert!(is_name(label), "{line}");
                let (mut value, mut chars) = (String::new(), after.char_indices());
                let end = loop {
                    match chars.next().unwrap_or_else(|| panic!("no end of a label: {line}")) {
                        (at, '"') => break at,
                        (_, '\\') => value.push(match chars.next() {
                            Some((_, 'n')) => '\n',
                            Some((_, c @ ('"' | '\\'))) => c,
                            other => panic!("{other:?} escaped: {line}"),
                        }),
                        (_, c) => value.push(c),
                    }
                };
                labels.push((label.to_owned(), value));
                rest = &after[end + 1..];
                match rest.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => break,
                }
            }
            rest = rest.strip_prefix('}').unwrap_or_else(|| panic!("no end of labels: {line}"));
        }
        let value = rest.strip_prefix(' ').and_then(|number| number.parse().ok());
        (name.to_owned(), labels, value.unwrap_or_else(|| panic!("no number: {line}")))
    }

    /// Reads a whole text: each family has one HELP and one TYPE, before its samples and only they; the last line says that it is.
    fn parsed(text: &str) -> Vec<Sample> {
        let text = text.strip_suffix("# EOF\n").expect("an end");
        let (mut samples, mut families) = (vec![], vec![]);
        let mut lines = text.lines().peekable();
        while let Some(head) = lines.next() {
            let (family, help) = head.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).expect(head);
            assert!(!help.is_empty() && !families.contains(&family), "{head}");
            families.push(family);
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")?.strip_prefix(family)).expect(head);
            let kind = kind.trim();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let read = sample(line);
                let suffix = read.0.strip_prefix(family).expect(line);
                let allowed: &[&str] = match kind {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    "counter" => &["_total"],
                    "info" => &["_info"],
                    "gauge" => &[""],
                    other => panic!("{other}: {head}"),
                };
                assert!(allowed.contains(&suffix), "{line}");
                assert!(!samples.iter().any(|(n, l, _): &Sample| (n, l) == (&read.0, &read.1)), "twice: {line}");
                samples.push(read);
            }
        }
        samples
    }

    /// The value of a sample, by its name and its label's value.
    #[track_caller]
    fn value(samples: &[Sample], name: &str, label: &str) -> f64 {
        let is_it = |(n, labels, _): &&Sample| {
            n == &format!("holdfast_{name}") && labels.first().map_or("", |(_, value)| value) == label
        };
        samples.iter().find(is_it).unwrap_or_else(|| panic!("no {name} {label}")).2
    }

    #[test]
    fn every_line_reads_back_and_says_what_was_counted() {
        let metrics = Arc::new(Metrics::new());
        let same = metrics.clone();
        let other = std::thread::spawn(move || same.attached(true));
        metrics.attached(false);
        other.join().unwrap();
        metrics.detached();
        metrics.output_gap();
        for how in ["wrote", "asked", "given", "seized", "freed", "freed"] {
            metrics.turn_changed(how);
        }
        metrics.seized(true, Duration::from_micros(80), Some(Duration::from_millis(3)));
        metrics.seized(false, Duration::from_secs(2), None);
        metrics.refused("turn_held");
        for (class, is_act) in [("human", true), ("agent", true), ("host", true), ("host", true), ("host", false)] {
            metrics.recorded(class, is_act);
        }
        metrics.survived();
        metrics.synced(Duration::from_micros(1500));
        let gauges = Gauges { running: 7, ended: 1, lost: 4, unknown: 0, damaged: 3, clients: 2, requests: 1 };
        let text = metrics.render(&gauges);
        let samples = parsed(&text);
        let expected = [
            ("attaches_total", "", 2.0),
            ("reattaches_total", "", 1.0),
            ("detaches_total", "", 1.0),
            ("output_gaps_total", "", 1.0),
            ("turn_changes_total", "wrote", 1.0),
            ("turn_changes_total", "freed", 2.0),
            ("seizes_total", "true", 1.0),
            ("seizes_total", "false", 1.0),
            ("seize_cut_seconds_bucket", "0.00005", 0.0),
            ("seize_cut_seconds_bucket", "0.0001", 1.0),
            ("seize_cut_seconds_bucket", "1.0", 1.0),
            ("seize_cut_seconds_bucket", "+Inf", 2.0),
            ("seize_cut_seconds_sum", "", 2.00008),
            ("seize_freeze_seconds_count", "", 1.0),
            ("refusals_total", "turn_held", 1.0),
            ("refusals_total", "denied", 0.0),
            ("acts_total", "human", 1.0),
            ("acts_total", "host", 2.0),
            ("host_restarts_survived_total", "", 1.0),
            ("journal_records_total", "", 5.0),
            ("journal_syncs_total", "", 1.0),
            ("journal_sync_seconds_sum", "", 0.0015),
            ("sessions", "running", 7.0),
            ("sessions", "lost", 4.0),
            ("sessions", "unknown", 0.0),
            ("sessions", "damaged", 3.0),
            ("clients", "", 2.0),
            ("build_info", env!("CARGO_PKG_VERSION"), 1.0),
        ];
        for (name, label, number) in expected {
            assert_eq!(value(&samples, name, label), number, "{name} {label}\n{text}");
        }
        assert!((0.0..60.0).contains(&value(&samples, "uptime_seconds", "")));
    }

    #[test]
    fn histograms_are_cumulative_and_the_last_bucket_is_the_count() {
        let metrics = Metrics::new();
        let mut took = Duration::from_micros(1);
        let mut sum = 0.0;
        for _ in 0..40 {
            metrics.synced(took);
            sum += took.as_secs_f64();
            took = took * 3 / 2;
        }
        let edge = Duration::from_micros(50);
        metrics.seized(true, edge, Some(edge + Duration::from_nanos(1)));
        let samples = parsed(&metrics.render(&Gauges::default()));
        for (name, count) in [("journal_sync_seconds", 40.0), ("seize_cut_seconds", 1.0), ("seize_freeze_seconds", 1.0)]
        {
            let family = format!("holdfast_{name}_bucket");
            let buckets: Vec<&Sample> = samples.iter().filter(|(found, _, _)| *found == family).collect();
            let bounds: Vec<f64> = buckets.iter().map(|(_, labels, _)| labels[0].1.parse().unwrap()).collect();
            assert_eq!((buckets.len(), bounds.last()), (BUCKETS.len() + 1, Some(&f64::INFINITY)));
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
            assert!(buckets.is_sorted_by_key(|(_, _, value)| *value), "{buckets:?}");
            assert_eq!(buckets.last().unwrap().2, count);
            assert_eq!(value(&samples, &format!("{name}_count"), ""), count);
        }
        assert!((value(&samples, "journal_sync_seconds_sum", "") - sum).abs() < 1e-6);
        let lowest = |name: &str| value(&samples, &format!("{name}_bucket"), "0.00005");
        assert_eq!((lowest("seize_cut_seconds"), lowest("seize_freeze_seconds")), (1.0, 0.0), "a bound is inclusive");
    }

    #[test]
    fn every_code_is_counted_by_the_word_it_travels_under() {
        let metrics = Metrics::new();
        for (code, word) in CODES {
            assert_eq!(serde_json::to_value(code).unwrap(), *word);
            metrics.refused(word);
        }
        let samples = parsed(&metrics.render(&Gauges::default()));
        assert!(CODES.iter().all(|(_, word)| value(&samples, "refusals_total", word) == 1.0));
    }
}
