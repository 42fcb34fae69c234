//! A journal through crashes, damage and full disks.

mod kept;

use super::*;
use holdfast_authority::journal::verify;
use holdfast_authority::{Ask, Burst, Caller, Effect, Input, Keys, Moment, Source, proof};
use holdfast_store::segments::{BROKEN_MAX, Lines, PENDING_BYTES_MAX, SEGMENT_BYTES_MAX, SEGMENTS_MAX, list};
use holdfast_types::{Actor, Nonce};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

const SECRET: [u8; 32] = [7; 32];

fn session() -> SessionId {
    SessionId::from_random_bits(7)
}

fn ann() -> Actor {
    Actor { id: proof::actor_id(&SECRET), handle: "human:ann".parse().unwrap() }
}

fn policy() -> Policy {
    Policy { vouched: [(ann().id, ann().handle)].into(), ..Policy::default() }
}

/// A session that records as a host does.
struct Host {
    journal: Journal,
    authority: Authority,
    now: u64,
    /// The authority behind each record.
    past: Vec<(u64, Authority)>,
}

impl Host {
    fn new(dir: &Path) -> Host {
        let opened = Journal::open(dir, session(), policy());
        assert_eq!(opened.note, None);
        Host::with(opened)
    }

    fn with(opened: Opened) -> Host {
        let Opened { journal, authority, .. } = opened;
        Host { now: authority.state().turn().hold().map_or(1, |hold| hold.active), journal, authority, past: vec![] }
    }

    fn begin(&mut self) -> io::Result<()> {
        let now = Moment { time_ms: self.now, at: self.now };
        let header = self.authority.rotate(session(), self.journal.last(), now);
        let begun = self.journal.begin_segment(&header);
        self.remember();
        begun
    }

    fn remember(&mut self) {
        self.past.push((self.journal.last().map_or(0, |last| last.seq), self.authority.clone()));
    }

    fn handle(&mut self, input: Input) -> io::Result<()> {
        self.now += 1;
        if self.journal.wants_segment() {
            let _ = self.begin();
        }
        let answer = self.authority.handle(input, Moment { time_ms: self.now, at: self.now });
        let records = answer.effects.iter().filter_map(|effect| match effect {
            Effect::Record(record) => Some(&**record),
            _ => None,
        });
        let written = self.journal.append(records);
        self.remember();
        written
    }

    fn types(&mut self, text: &str) -> io::Result<()> {
        let burst = Burst { from: self.now, to: self.now, len: 1, keys: Some(Keys(text.as_bytes().to_vec())) };
        let fence = self.authority.state().fence();
        self.handle(Input::Wrote { fence, burst, log: self.now, from: Source::Host })
    }

    fn seizes(&mut self) -> io::Result<()> {
        let ask = Ask::Seize { freeze: false, reason: "mine".into() };
        let proof = Some(proof::sign_act(&SECRET, session(), Nonce((self.now as u128).to_le_bytes()), &ask));
        self.handle(Input::Asked { by: Caller { actor: ann(), operator: None, token: None }, ask, proof })
    }

    /// The authority behind the last record with this number.
    fn at(&self, last: Option<Link>) -> Authority {
        let seq = last.map_or(0, |last| last.seq);
        let known = self.past.iter().find(|(past, _)| *past == seq).map(|(_, authority)| authority.clone());
        known.unwrap_or_else(|| Authority::new(policy()))
    }
}

/// Two segments with a few records each.
fn two_segments(dir: &Path) -> Host {
    let mut host = Host::new(dir);
    host.handle(Input::Started { by: ann() }).unwrap();
    host.seizes().unwrap();
    host.types("ls").unwrap();
    host.begin().unwrap();
    host.seizes().unwrap();
    host.types("rm").unwrap();
    host
}

/// Checks the chain over all segments and gives the number of its last record.
#[track_caller]
fn verified(dir: &Path) -> u64 {
    let mut last = None;
    for number in list(dir, "journal.") {
        let bytes = std::fs::read(dir.join(format!("journal.{number}"))).unwrap();
        let summary = verify(&bytes, last).unwrap_or_else(|broken| panic!("journal.{number}: {broken}"));
        assert_eq!((summary.session, summary.torn_bytes), (session(), 0));
        last = Some(summary.last);
    }
    last.map_or(0, |last| last.seq)
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

/// What the file beside the segments said when the first of two was written.
fn pin_behind(dir: &Path, host: &Host) {
    let bytes = std::fs::read(dir.join("journal.1")).unwrap();
    let last = verify(&bytes, None).unwrap().last;
    assert!(host.journal.last().unwrap().seq > last.seq);
    pin::write(&dir.join("journal-last"), &format!("{} {}", last.seq, last.hash)).unwrap();
}

/// Opens what was done to a journal: a sound prefix of what was recorded, which goes on.
#[track_caller]
fn goes_on(dir: &Path, before: &Host) -> (Option<String>, u64) {
    let opened = Journal::open(dir, session(), policy());
    assert_eq!(opened.authority, before.at(opened.journal.last()));
    let (note, sound) = (opened.note.clone(), opened.journal.last().map_or(0, |last| last.seq));
    let damage = opened.damage.clone();
    assert_eq!(damage, note, "nothing is noted but damage");
    let mut host = Host { now: before.now, ..Host::with(opened) };
    if let Some(what) = damage {
        host.handle(Input::Damaged { what }).unwrap();
        assert!(host.authority.state().damaged().is_some());
    }
    host.seizes().unwrap();
    assert_eq!(Some(verified(dir)), host.journal.last().map(|last| last.seq));
    let again = Journal::open(dir, session(), policy());
    assert_eq!((again.authority, again.note), (host.authority, None));
    (note, sound)
}

#[test]
fn a_journal_reads_back_as_the_authority_that_wrote_it() {
    let dir = tempfile::tempdir().unwrap();
    let none = Journal::open(dir.path(), session(), policy());
    assert_eq!((none.authority, none.note, none.journal.last()), (Authority::new(policy()), None, None));
    assert!(none.journal.wants_segment());
    assert_eq!(list(dir.path(), "journal."), [0; 0], "nothing is on disk before there is a record");
    let host = two_segments(dir.path());
    let opened = Journal::open(dir.path(), session(), policy());
    assert_eq!((opened.authority, opened.note), (host.authority.clone(), None));
    assert_eq!(opened.journal.last(), host.journal.last());
    assert!(!opened.journal.wants_segment());
    assert_eq!(goes_on(dir.path(), &host), (None, 7));
    let mode = std::fs::metadata(dir.path().join("journal.2")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_crash_at_any_byte_leaves_a_prefix_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let host = two_segments(dir.path());
    let length = std::fs::metadata(dir.path().join("journal.2")).unwrap().len();
    let mut ends = std::collections::BTreeSet::new();
    for cut in 0..=length {
        let crashed = copy(dir.path());
        let path = crashed.path().join("journal.2");
        // A host that is killed has not said yet that the record is there.
        pin_behind(crashed.path(), &host);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let (note, sound) = goes_on(crashed.path(), &host);
        assert_eq!(note, None, "cut at {cut}");
        ends.insert(sound);
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [4, 5, 6, 7], "every record was the last once");
}

#[test]
fn damage_is_set_aside_and_told_and_the_chain_goes_on_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let host = two_segments(dir.path());
    let bytes = std::fs::read(dir.path().join("journal.2")).unwrap();
    let mut ends = std::collections::BTreeSet::new();
    for at in (0..bytes.len() - 1).step_by(5) {
        let damaged = copy(dir.path());
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        std::fs::write(damaged.path().join("journal.2"), &flipped).unwrap();
        let (note, sound) = goes_on(damaged.path(), &host);
        let note = note.unwrap_or_else(|| panic!("byte {at} was changed unnoticed"));
        assert!(note.contains("journal.broken-2"), "{note}");
        let aside = std::fs::read(damaged.path().join("journal.broken-2")).unwrap();
        assert!(flipped.ends_with(&aside) && aside.len() >= bytes.len() - at, "byte {at}");
        ends.insert(sound);
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn a_journal_of_nothing_but_damage_begins_anew_and_forgets_old_damage() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..2 * BROKEN_MAX as u64 {
        let number = list(dir.path(), "journal.").last().map_or(1, |last| last + 1);
        for file in list(dir.path(), "journal.").into_iter().chain([number]) {
            std::fs::write(dir.path().join(format!("journal.{file}")), "garbage").unwrap();
        }
        let opened = Journal::open(dir.path(), session(), policy());
        let note = opened.note.clone().unwrap();
        assert!(note.starts_with("the journal was damaged (record 1: not a record): it begins anew, "), "{note}");
        let mut host = Host::with(opened);
        host.handle(Input::Started { by: ann() }).unwrap();
        assert_eq!(verified(dir.path()), 2, "round {n}");
    }
    assert_eq!(list(dir.path(), "journal.broken-").len(), BROKEN_MAX);
}

#[test]
fn another_sessions_journal_is_not_taken_for_this_ones() {
    let dir = tempfile::tempdir().unwrap();
    two_segments(dir.path());
    let other = Journal::open(dir.path(), SessionId::from_random_bits(8), policy());
    assert_eq!((other.authority, other.journal.last()), (Authority::new(policy()), None));
    let note = other.note.unwrap();
    assert!(note.ends_with("kept in journal.broken-2 and journal.broken-1"), "{note}");
}

#[test]
fn a_full_segment_is_followed_by_another_and_the_oldest_goes() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::new(dir.path());
    host.handle(Input::Started { by: ann() }).unwrap();
    let text = "x".repeat(SEGMENT_BYTES_MAX as usize / 4);
    for _ in 0..4 * (SEGMENTS_MAX + 2) {
        host.types(&text).unwrap();
        assert!(host.journal.files().len() <= SEGMENTS_MAX);
    }
    let numbers = list(dir.path(), "journal.");
    assert_eq!((numbers.len(), numbers[0] > 1), (SEGMENTS_MAX, true), "{numbers:?}");
    let oldest = host.journal.reader().read(0, 1).unwrap();
    assert!(oldest.from > 1 && oldest.from == oldest.to && oldest.more);
    assert_eq!(goes_on(dir.path(), &host).0, None);
}

#[test]
fn reading_gives_every_line_once_from_anywhere_in_pages_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = two_segments(dir.path());
    let end = Lines { from: 8, to: 7, more: false, bytes: vec![] };
    for reopened in [false, true] {
        if reopened {
            host.journal = Journal::open(dir.path(), session(), policy()).journal;
        }
        let all = [1, 2].map(|n| std::fs::read(dir.path().join(format!("journal.{n}"))).unwrap()).concat();
        let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 7);
        for after in 0..=7 {
            for max_bytes in (0..all.len() + 1).step_by(97) {
                let (mut got, mut at, mut more) = (Vec::new(), after, after < 7);
                while more {
                    let page = host.journal.reader().read(at, max_bytes).unwrap();
                    let count = memchr::memchr_iter(b'\n', &page.bytes).count() as u64;
                    assert!(page.bytes.len() <= max_bytes || count == 1);
                    assert_eq!((page.from, page.to), (at + 1, at + count));
                    got.extend(page.bytes);
                    (at, more) = (page.to, page.more);
                }
                assert_eq!(got, lines[after as usize..].concat());
            }
        }
        assert_eq!(host.journal.reader().read(0, usize::MAX).unwrap().bytes, all);
        assert_eq!(
            [7, 8, u64::MAX].map(|after| host.journal.reader().read(after, 9).unwrap()),
            [0; 3].map(|_| end.clone())
        );
    }
    host.journal.files.set_room_for_tests(Some(20));
    assert!(host.types("waits").is_err());
    assert_eq!(host.journal.reader().read(7, 9).unwrap(), end, "what waits is not on disk");
}

#[test]
fn what_a_full_disk_does_not_take_waits_in_order_and_never_leaves_half_a_line() {
    let mut failed = 0;
    for room in (0..4000).step_by(61) {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::new(dir.path());
        host.journal.files.set_room_for_tests(Some(room));
        let mut results = vec![host.handle(Input::Started { by: ann() })];
        results.extend((0..6).map(|n| if n % 3 == 0 { host.begin() } else { host.types("ls") }));
        let waits = host.journal.files.waiting_bytes() > 0;
        assert_eq!(results.last().unwrap().is_err(), waits);
        assert!(results.is_sorted_by_key(Result::is_err), "an error while anything waits");
        failed += usize::from(waits);
        for number in list(dir.path(), "journal.") {
            let bytes = std::fs::read(dir.path().join(format!("journal.{number}"))).unwrap();
            assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "room {room}");
        }
        assert_eq!(goes_on(copy(dir.path()).path(), &host).0, None, "killed while something waits");
        host.journal.files.set_room_for_tests(None);
        host.journal.retry().unwrap();
        assert_eq!(goes_on(dir.path(), &host), (None, 8));
    }
    assert!(failed > 30, "{failed}");
}

#[test]
fn a_device_that_is_full_is_an_error_and_not_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.1");
    let mut host = Host { journal: Journal::new(dir.path(), session()), ..Host::new(dir.path()) };
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let error = host.handle(Input::Started { by: ann() }).unwrap_err();
    assert_eq!((error.kind(), host.journal.is_unsynced()), (io::ErrorKind::StorageFull, false));
    std::fs::remove_file(&path).unwrap();
    host.seizes().unwrap();
    assert_eq!(goes_on(dir.path(), &host), (None, 3));
}

#[test]
fn what_waits_is_bounded_and_a_header_carries_what_was_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::new(dir.path());
    host.handle(Input::Started { by: ann() }).unwrap();
    host.journal.files.set_room_for_tests(Some(0));
    let text = "x".repeat(100_000);
    for _ in 0..40 {
        assert!(host.types(&text).is_err());
    }
    let waits = host.journal.files.waiting_bytes();
    assert!((PENDING_BYTES_MAX..PENDING_BYTES_MAX + 2 * text.len()).contains(&waits), "{waits}");
    assert!(host.journal.wants_segment());
    let fence = host.authority.state().fence();
    host.journal.files.set_room_for_tests(None);
    host.journal.retry().unwrap();
    host.seizes().unwrap();
    assert!(host.authority.state().fence() > fence);
    assert_eq!(goes_on(dir.path(), &host).0, None);
}

#[test]
fn a_file_that_somebody_removed_or_cut_is_followed_by_a_segment_with_the_state() {
    for cut in [None, Some(10)] {
        let dir = tempfile::tempdir().unwrap();
        let mut host = two_segments(dir.path());
        while host.journal.unsynced().is_some() {}
        let path = dir.path().join("journal.2");
        match cut {
            None => std::fs::remove_file(&path).unwrap(),
            Some(length) => OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap(),
        }
        assert!(host.types("lost").is_err());
        assert!(host.journal.wants_segment());
        host.types("kept").unwrap();
        let opened = Journal::open(dir.path(), session(), policy());
        assert_eq!(opened.authority, host.authority);
        let note = opened.note.expect("what is missing is told");
        assert!(note.contains("missing") || note.contains("altered"), "{note}");
    }
}

#[test]
fn what_was_written_is_given_out_to_be_synced_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::new(dir.path());
    assert!(!host.journal.is_unsynced() && host.journal.unsynced().is_none());
    host.handle(Input::Started { by: ann() }).unwrap();
    host.begin().unwrap();
    host.types("ls").unwrap();
    let mut synced = 0;
    while let Some(path) = host.journal.unsynced() {
        File::open(path).unwrap().sync_data().unwrap();
        synced += 1;
    }
    assert_eq!((synced, host.journal.is_unsynced()), (3, false), "two segments, and the directory of their names");
    host.types("ls").unwrap();
    assert!(host.journal.unsynced().is_some() && host.journal.unsynced().is_none());
}

#[test]
fn records_without_a_header_before_them_are_refused_and_so_is_a_header_out_of_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::new(dir.path());
    let now = Moment { time_ms: 1, at: 0 };
    let header = host.authority.rotate(session(), None, now);
    assert!(host.journal.append([&Record { act: Act::Started, ..header.clone() }]).is_err());
    let other = host.authority.rotate(SessionId::from_random_bits(8), None, now);
    assert!(host.journal.begin_segment(&other).is_err());
    host.journal.begin_segment(&header).unwrap();
    assert!(host.journal.begin_segment(&header).is_err(), "it carries on an end that is no longer the end");
    assert_eq!(verified(dir.path()), 1);
}

#[test]
fn a_journal_of_the_version_before_is_read_and_gone_on_with() {
    let id = "ses_6jt1jh3shw3k6p9hrh3z5cdncr";
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1/sessions").join(id);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.1");
    std::fs::copy(old.join("journal.1"), &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let opened = Journal::open(dir.path(), id.parse().unwrap(), policy());
    assert_eq!((opened.note, opened.journal.wants_segment()), (None, false));
    let last = opened.journal.last().unwrap();
    assert_eq!(opened.journal.reader().read(0, usize::MAX).unwrap().bytes, before);
    let (mut journal, mut authority) = (opened.journal, opened.authority);
    let header = authority.rotate(id.parse().unwrap(), Some(last), Moment { time_ms: u64::MAX, at: 100_000 });
    journal.begin_segment(&header).unwrap();
    assert_eq!(journal.last().unwrap().seq, last.seq + 1);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_later_versions_journal_stays_as_it_is_and_takes_no_records() {
    let dir = tempfile::tempdir().unwrap();
    two_segments(dir.path());
    let line = b"{\"seq\":8,\"version\":2,\"prev\":\"what nobody knows yet\"}\n";
    std::fs::write(dir.path().join("journal.3"), line).unwrap();
    let opened = Journal::open(dir.path(), session(), policy());
    let note = opened.note.clone().unwrap();
    assert!(note.contains("version 2"), "{note}");
    let mut host = Host::with(opened);
    assert!(host.handle(Input::Started { by: ann() }).is_err());
    assert!(host.seizes().is_err());
    assert_eq!(std::fs::read(dir.path().join("journal.3")).unwrap(), line);
    assert_eq!(list(dir.path(), "journal."), [1, 2, 3]);
    assert!(list(dir.path(), "journal.broken-").is_empty());
}

/// What is missing of a journal to which something was done, as the next host finds it; the host behind it finds nothing more.
#[track_caller]
fn missing(dir: &Path, before: &Host) -> String {
    let opened = Journal::open(dir, session(), policy());
    let what = opened.damage.clone().expect("it is noticed");
    let mut host = Host { now: before.now, ..Host::with(opened) };
    host.handle(Input::Damaged { what: what.clone() }).unwrap();
    host.seizes().unwrap();
    let again = Journal::open(dir, session(), policy());
    assert_eq!((again.damage, again.authority), (None, host.authority.clone()), "it is told once");
    what
}

#[test]
fn an_end_that_is_cut_off_between_two_records_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let host = two_segments(dir.path());
    let whole = std::fs::read(dir.path().join("journal.2")).unwrap();
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &whole).map(|at| at + 1).collect();
    for end in &ends[..ends.len() - 1] {
        let cut = copy(dir.path());
        std::fs::write(cut.path().join("journal.2"), &whole[..*end]).unwrap();
        let what = missing(cut.path(), &host);
        assert!(what.ends_with("to 7 are missing"), "{what}");
    }
    let gone = copy(dir.path());
    std::fs::remove_file(gone.path().join("journal.2")).unwrap();
    assert_eq!(missing(gone.path(), &host), "the journal was damaged: records 5 to 7 are missing");
    let all = copy(dir.path());
    for file in ["journal.1", "journal.2"] {
        std::fs::remove_file(all.path().join(file)).unwrap();
    }
    assert_eq!(missing(all.path(), &host), "the journal was damaged: none of its records is there");
}

#[test]
fn segments_that_were_deleted_at_the_beginning_or_in_between_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = two_segments(dir.path());
    host.begin().unwrap();
    host.types("three").unwrap();
    for (file, told) in [("journal.1", "records 1 to 4 are missing"), ("journal.2", "records 5 to 7 are missing")] {
        let gone = copy(dir.path());
        std::fs::remove_file(gone.path().join(file)).unwrap();
        assert_eq!(missing(gone.path(), &host), format!("the journal was damaged: {told}"));
    }
}

#[test]
fn the_file_that_says_which_record_is_the_last_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let host = two_segments(dir.path());
    let gone = copy(dir.path());
    std::fs::remove_file(gone.path().join("journal-last")).unwrap();
    assert!(missing(gone.path(), &host).contains("journal-last"));
    let other = copy(dir.path());
    let last = host.journal.last().unwrap();
    pin::write(&other.path().join("journal-last"), &format!("{} {}", last.seq, "7".repeat(64))).unwrap();
    assert_eq!(missing(other.path(), &host), "the journal was damaged: record 7 was replaced");
}
