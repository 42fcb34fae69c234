//! What a host counts, in the Prometheus text format.
//!
//! Every counter is an atomic of its own, so that any task may render them at any moment. Labels come from closed sets: the
//! text has the same lines however long a host runs. Counters begin at nothing with each host.

use holdfast_wire::Code;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Upper bounds of the buckets, in microseconds and as seconds: from what a seizure takes on an idle machine to what a
/// person notices.
const BUCKETS: [(u64, &str); 14] = [
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
];

const TURNS: [&str; 5] = ["wrote", "asked", "given", "seized", "freed"];
const CLASSES: [&str; 5] = ["human", "agent", "service", "device", "host"];
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
    UnknownKeeper "unknown_keeper"
    CannotStart "cannot_start"
    Ahead "ahead"
    Busy "busy"
    Damaged "damaged"
    Unidentified "unidentified"
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
    TooFast "too_fast"
    TooLarge "too_large"
    Stopping "stopping"
    NoSuchQuestion "no_such_question"
    QuestionClosed "question_closed"
    Unrecorded "unrecorded"
    Internal "internal"
}

/// The word under which a code travels.
pub fn word_of(code: Code) -> &'static str {
    CODES.iter().find(|(known, _)| *known == code).map_or("", |(_, word)| word)
}

/// A number that grows.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long something took, by buckets.
#[derive(Debug, Default)]
struct Histogram {
    /// One for each bound, and one for what took longer.
    buckets: [Counter; BUCKETS.len() + 1],
    sum_ns: Counter,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let fits = |(bound_us, _): &(u64, &str)| took <= Duration::from_micros(*bound_us);
        self.buckets[BUCKETS.iter().position(fits).unwrap_or(BUCKETS.len())].add(1);
        self.sum_ns.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }
}

/// Counts a word of a closed set.
fn count<'a>(words: impl IntoIterator<Item = &'a str>, counters: &[Counter], word: &str) {
    let counter = words.into_iter().zip(counters).find(|(known, _)| *known == word);
    debug_assert!(counter.is_some(), "{word} is not counted");
    if let Some((_, counter)) = counter {
        counter.add(1);
    }
}

/// What is so at this moment, as the caller sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions whose command runs.
    pub running: u64,
    /// Sessions whose command has ended.
    pub ended: u64,
    /// Sessions whose keeper's version is not known.
    pub unknown: u64,
    /// Sessions whose files cannot be read.
    pub damaged: u64,
    /// Attached clients.
    pub clients: u64,
    /// Requests that are being answered.
    pub requests: u64,
}

/// A host's counters.
#[derive(Debug)]
pub struct Metrics {
    since: Instant,
    attaches: Counter,
    detaches: Counter,
    reattaches: Counter,
    output_gaps: Counter,
    turn_changes: [Counter; TURNS.len()],
    seizes: [Counter; FREEZES.len()],
    seize_cut: Histogram,
    seize_freeze: Histogram,
    refusals: [Counter; CODES.len()],
    acts: [Counter; CLASSES.len()],
    restarts_survived: Counter,
    journal_records: Counter,
    journal_sync: Histogram,
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
        Metrics {
            since: Instant::now(),
            attaches: Counter::default(),
            detaches: Counter::default(),
            reattaches: Counter::default(),
            output_gaps: Counter::default(),
            turn_changes: Default::default(),
            seizes: Default::default(),
            seize_cut: Histogram::default(),
            seize_freeze: Histogram::default(),
            refusals: std::array::from_fn(|_| Counter::default()),
            acts: Default::default(),
            restarts_survived: Counter::default(),
            journal_records: Counter::default(),
            journal_sync: Histogram::default(),
        }
    }

    /// A client attached; `again`: to a session that somebody had been attached to before.
    pub fn attached(&self, again: bool) {
        self.attaches.add(1);
        self.reattaches.add(u64::from(again));
    }

    /// An attached client left or was cut off.
    pub fn detached(&self) {
        self.detaches.add(1);
    }

    /// A reader was told that output is no longer kept.
    pub fn output_gap(&self) {
        self.output_gaps.add(1);
    }

    /// The turn changed: `wrote`, `asked`, `given`, `seized` or `freed`.
    pub fn turn_changed(&self, how: &str) {
        count(TURNS, &self.turn_changes, how);
    }

    /// A turn was seized: how long until nothing more of the old holder could reach the terminal, and until the tree stood
    /// still, where it did.
    pub fn seized(&self, freeze: bool, cut: Duration, frozen: Option<Duration>) {
        self.seizes[usize::from(freeze)].add(1);
        self.seize_cut.observe(cut);
        if let Some(frozen) = frozen {
            self.seize_freeze.observe(frozen);
        }
    }

    /// Something was refused, or failed, with this code.
    pub fn refused(&self, code: &str) {
        count(CODES.iter().map(|(_, word)| *word), &self.refusals, code);
    }

    /// A record was passed to a journal; it is an act of an actor of this class, or of `host`.
    pub fn recorded(&self, class: &str, is_act: bool) {
        self.journal_records.add(1);
        if is_act {
            count(CLASSES, &self.acts, class);
        }
    }

    /// A session that went on without a host was taken up.
    pub fn survived(&self) {
        self.restarts_survived.add(1);
    }

    /// A journal's file was synced.
    pub fn synced(&self, took: Duration) {
        self.journal_sync.observe(took);
    }

    /// All of it as text.
    #[must_use]
    pub fn render(&self, now: &Gauges) -> String {
        let mut text = Text::default();
        text.counter("attaches_total", "Clients that attached.", &self.attaches);
        text.counter("detaches_total", "Attached clients that left or were cut off.", &self.detaches);
        text.counter("reattaches_total", "Attaches to a session that had been attached to.", &self.reattaches);
        text.counter("output_gaps_total", "Times a reader missed output that is no longer kept.", &self.output_gaps);
        let turns = TURNS.into_iter().zip(&self.turn_changes);
        text.counters("turn_changes_total", "Changes of the turn, by how it was come by.", "how", turns);
        let seizes = FREEZES.into_iter().zip(&self.seizes);
        text.counters("seizes_total", "Seized turns, by whether the tree was frozen.", "freeze", seizes);
        text.histogram("seize_cut_seconds", "Until the old holder could write no more.", &self.seize_cut);
        text.histogram("seize_freeze_seconds", "Until the whole tree stood still.", &self.seize_freeze);
        let refusals = CODES.iter().map(|(_, word)| *word).zip(&self.refusals);
        text.counters("refusals_total", "Refusals and failures, by code.", "code", refusals);
        let acts = CLASSES.into_iter().zip(&self.acts);
        text.counters("acts_total", "Recorded acts, by the class of who did them.", "class", acts);
        let survived = "Sessions that went on without a host until this one took them up.";
        text.counter("host_restarts_survived_total", survived, &self.restarts_survived);
        text.counter("journal_records_total", "Records passed to journals.", &self.journal_records);
        text.head("journal_syncs_total", "counter", "Syncs of journals.");
        text.sample("journal_syncs_total", &[], self.journal_sync.count());
        text.histogram("journal_sync_seconds", "How long a sync of a journal took.", &self.journal_sync);
        text.head("sessions", "gauge", "Sessions, by their life.");
        let lives =
            [("running", now.running), ("ended", now.ended), ("unknown", now.unknown), ("damaged", now.damaged)];
        lives.into_iter().for_each(|(life, count)| text.sample("sessions", &[("life", life)], count));
        text.head("clients", "gauge", "Attached clients.");
        text.sample("clients", &[], now.clients);
        text.head("requests", "gauge", "Requests that are being answered, this one included.");
        text.sample("requests", &[], now.requests);
        text.head("uptime_seconds", "gauge", "How long this host runs.");
        text.sample("uptime_seconds", &[], format_args!("{:.3}", self.since.elapsed().as_secs_f64()));
        text.head("build_info", "gauge", "This host's version; always 1.");
        text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        text.0
    }
}

/// The text as it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        self.0.write_fmt(line).expect("a string takes any text");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.add(format_args!("# HELP holdfast_{name} {help}\n# TYPE holdfast_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.add(format_args!("holdfast_{name}"));
        for (i, (label, of)) in labels.iter().enumerate() {
            let before = if i == 0 { '{' } else { ',' };
            self.add(format_args!("{before}{label}=\"{}\"", escaped(of)));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        self.add(format_args!("{after} {value}\n"));
    }

    fn counter(&mut self, name: &str, help: &str, counter: &Counter) {
        self.head(name, "counter", help);
        self.sample(name, &[], counter.get());
    }

    fn counters<'a>(&mut self, name: &str, help: &str, label: &str, all: impl Iterator<Item = (&'a str, &'a Counter)>) {
        self.head(name, "counter", help);
        all.for_each(|(of, counter)| self.sample(name, &[(label, of)], counter.get()));
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bounds = BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        // The count is what the buckets add up to: observations that come meanwhile make no two lines differ.
        let mut count = 0;
        for (bound, bucket) in bounds.zip(&histogram.buckets) {
            count += bucket.get();
            self.sample(&format!("{name}_bucket"), &[("le", bound)], count);
        }
        let sum_ns = histogram.sum_ns.get();
        let sum = format!("{}.{:09}", sum_ns / 1_000_000_000, sum_ns % 1_000_000_000);
        self.sample(&format!("{name}_sum"), &[], sum);
        self.sample(&format!("{name}_count"), &[], count);
    }
}

/// A label's value between its quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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

    /// Reads a whole text: each family has one HELP and one TYPE, before its samples and only they.
    fn parsed(text: &str) -> Vec<Sample> {
        assert!(text.ends_with('\n'));
        let (mut samples, mut families) = (vec![], vec![]);
        let mut lines = text.lines().peekable();
        while let Some(head) = lines.next() {
            let (family, help) = head.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).expect(head);
            assert!(!help.is_empty() && !families.contains(&family), "{head}");
            families.push(family);
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")?.strip_prefix(family)).expect(head);
            let kind = kind.trim();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{head}");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{head}");
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let read = sample(line);
                let suffix = read.0.strip_prefix(family).expect(line);
                let allowed: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
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
        let gauges = Gauges { running: 7, ended: 1, unknown: 0, damaged: 3, clients: 2, requests: 1 };
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
            ("seize_cut_seconds_bucket", "1", 1.0),
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
        for (bound_us, seconds) in BUCKETS {
            assert_eq!(seconds.parse::<f64>().unwrap(), Duration::from_micros(bound_us).as_secs_f64());
        }
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

    #[test]
    fn labels_are_escaped() {
        let odd = "odd \"\\\n,} é";
        let mut text = Text::default();
        text.sample("odd", &[("a", odd), ("b", "")], 1);
        let labels = [("a", odd), ("b", "")].map(|(label, value)| (label.to_owned(), value.to_owned()));
        assert_eq!(sample(text.0.trim_end()), ("holdfast_odd".to_owned(), labels.to_vec(), 1.0));
    }
}
