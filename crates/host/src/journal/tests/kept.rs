//! What is kept of segments that are gone.

use super::*;

/// Everything a reader gets, checked as `journal --verify` does.
#[track_caller]
fn checked(journal: &Journal) -> holdfast_authority::journal::Summary {
    let mut checker = holdfast_authority::journal::Checker::new();
    let (mut after, mut more) = (0, true);
    while more {
        let page = journal.reader().read(after, 200_000).unwrap();
        assert!(page.to > after || !page.more, "it gets on");
        for line in page.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            checker.line(line).unwrap_or_else(|broken| panic!("{broken}"));
        }
        (after, more) = (page.to, page.more);
    }
    checker.summary().unwrap().clone()
}

fn bot() -> Actor {
    Actor { id: proof::actor_id(&[8; 32]), handle: "agent:bot".parse().unwrap() }
}

/// An agent may seize here, so that it can act.
fn with_bot() -> Policy {
    let mut policy = policy();
    policy.vouched.insert(bot().id, bot().handle);
    policy.defaults.agent = holdfast_types::Right::Seize.into();
    policy
}

impl Host {
    /// Somebody asks for something and does not sign it.
    fn asks(&mut self, actor: Actor, ask: Ask) {
        self.now += 200;
        self.handle(Input::Asked { by: Caller { actor, operator: None, token: None }, ask, proof: None }).unwrap();
    }
}

fn seizure(reason: &str) -> Ask {
    Ask::Seize { freeze: false, reason: reason.to_owned() }
}

/// What is beside the segments.
fn kept_files(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    all.filter(|path| path.to_string_lossy().contains("journal-kept-")).collect()
}

#[test]
fn no_noise_pushes_out_what_was_asked_for_and_done_nor_what_a_human_did() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::with(Journal::open(dir.path(), session(), with_bot()));
    host.handle(Input::Started { by: ann() }).unwrap();
    host.seizes().unwrap();
    let signed = host.journal.last().unwrap().seq;
    host.types("what ann typed").unwrap();
    host.asks(ann(), Ask::Release);
    host.asks(bot(), seizure("what bot did"));
    let bots = host.journal.last().unwrap().seq;
    let noise = "x".repeat(SEGMENT_BYTES_MAX as usize / 2);
    for round in 0..2 * (SEGMENTS_MAX + 20) {
        host.types(&noise).unwrap();
        if round % 50 == 0 {
            let (now, opened) = (host.now, Journal::open(dir.path(), session(), with_bot()));
            host = Host { now, ..Host::with(opened) };
        }
    }
    assert!(list(dir.path(), "journal.").len() <= SEGMENTS_MAX && !dir.path().join("journal.1").exists());
    let text = String::from_utf8(host.journal.reader().read(0, 10_000).unwrap().bytes).unwrap();
    for kept in [signed, bots].map(|seq| format!("\"seq\":{seq},")) {
        assert!(text.contains(&kept), "{kept}: {text}");
    }
    for kept in ["\"started\"", "what ann typed", "what bot did", "\"release\""] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    let summary = checked(&host.journal);
    assert!(summary.has_all_kept() && summary.missing().is_none() && summary.kept.records >= 5, "{summary:?}");
    assert!(summary.signed >= 1 && summary.first > bots);
    let opened = Journal::open(dir.path(), session(), with_bot());
    assert_eq!((opened.damage, opened.authority), (None, host.authority.clone()));
    let [kept] = &kept_files(dir.path())[..] else { panic!("one file") };
    std::fs::write(kept, "").unwrap();
    let damage = Journal::open(dir.path(), session(), with_bot()).damage.unwrap();
    assert!(damage.contains("kept"), "{damage}");
}

#[test]
fn what_goes_is_read_ahead_on_another_thread_and_not_when_a_segment_begins() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::with(Journal::open(dir.path(), session(), with_bot()));
    host.handle(Input::Started { by: ann() }).unwrap();
    host.seizes().unwrap();
    host.types("what ann typed").unwrap();
    host.asks(ann(), Ask::Release);
    host.asks(bot(), seizure("noise"));
    let noise = "x".repeat(SEGMENT_BYTES_MAX as usize / 2);
    while host.journal.files().len() < SEGMENTS_MAX {
        assert!(host.journal.archives().is_none(), "nothing goes yet");
        host.types(&noise).unwrap();
    }
    // A segment that begins meanwhile does not wait for it: then nothing goes.
    let ahead = host.journal.archives().unwrap();
    assert!(host.journal.archives().is_none(), "once");
    while host.journal.files().len() == SEGMENTS_MAX {
        host.types(&noise).unwrap();
    }
    assert!(dir.path().join("journal.1").exists());
    host.journal.archived(std::thread::spawn(|| ahead.run()).join().unwrap());
    let ahead = host.journal.archives();
    assert!(ahead.is_none(), "what was kept does not count yet");
    // Of others than it was done for: it is done again, for all of them.
    while dir.path().join("journal.1").exists() {
        host.types(&noise).unwrap();
    }
    assert!(host.journal.files().len() <= SEGMENTS_MAX);
    let ahead = host.journal.archives().unwrap();
    host.journal.archived(std::thread::spawn(|| ahead.run()).join().unwrap());
    // What goes is not looked at any more.
    let oldest = host.journal.files().remove(0);
    std::fs::remove_file(&oldest).unwrap();
    let files = host.journal.files();
    while host.journal.files().contains(&files[0]) {
        host.types(&noise).unwrap();
    }
    let text = String::from_utf8(host.journal.reader().read(0, 10_000).unwrap().bytes).unwrap();
    assert!(text.contains("what ann typed"), "{text}");
    let summary = checked(&host.journal);
    assert!(summary.has_all_kept() && summary.missing().is_none(), "{summary:?}");
    assert_eq!(Journal::open(dir.path(), session(), with_bot()).damage, None);
}

#[test]
fn what_is_kept_is_bounded_and_humans_acts_go_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Host::with(Journal::open(dir.path(), session(), with_bot()));
    host.handle(Input::Started { by: ann() }).unwrap();
    let text = "y".repeat(100_000);
    for n in 0..400 {
        if n % 20 == 0 {
            host.asks(ann(), seizure(&format!("act {n} {text}")));
            host.asks(ann(), Ask::Release);
        } else {
            host.asks(bot(), seizure(&format!("act {n} {text}")));
        }
    }
    let [kept] = &kept_files(dir.path())[..] else { panic!("one file") };
    let bytes = std::fs::metadata(kept).unwrap().len();
    assert!((4 << 20..=9 << 20).contains(&bytes), "{bytes}");
    assert!(checked(&host.journal).has_all_kept());
    let text = String::from_utf8(host.journal.reader().read(0, 100_000_000).unwrap().bytes).unwrap();
    assert!(["act 0 y", "act 20 y", "act 40 y"].iter().all(|act| text.contains(act)), "humans' acts are there");
    assert!(!text.contains("act 1 y"), "the oldest of agents went");
}
