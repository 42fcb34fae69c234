//! Files that the version before envelopes wrote are read: a session's keyframe and history here, the others where their values are known.

use holdfast_store::history::{History, Lines, decode};
use holdfast_store::keyframe::Keyframe;
use std::path::{Path, PathBuf};

fn session() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/v1/sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr")
}

fn lines(encoded: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(encoded).lines().map(str::to_owned).collect()
}

#[test]
fn a_keyframe_and_its_history_are_read_and_gone_on_with_in_blocks_of_today() {
    let keyframe = Keyframe::load(&session()).unwrap().expect("it is there");
    assert_eq!(keyframe.history.mark.segment, 2);
    assert!(!keyframe.screen.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let (old, here) = (session().join("history.2"), dir.path().join("history.2"));
    std::fs::copy(&old, &here).unwrap();
    let mut history = History::resume(dir.path(), 10_000, keyframe.history.clone());
    let before = lines(&history.tail(10_000).encoded);
    assert!(before.windows(2).any(|pair| pair == ["8000", "8001"]), "{} lines", before.len());
    for n in 0..6000 {
        history.pending().extend_from_slice(format!("later {n}\n").as_bytes());
    }
    history.settle();
    assert!(history.flush().unwrap());
    let after = lines(&history.tail(20_000).encoded);
    assert_eq!(after.last().map(String::as_str), Some("later 5999"));
    assert!(after.windows(2).any(|pair| pair == ["8000", "8001"]));
    let bytes = std::fs::read(&here).unwrap();
    assert!(bytes.starts_with(&std::fs::read(&old).unwrap()), "what is there stays");
    let mut all = Lines::default();
    decode(&bytes, &mut all);
    assert_eq!(all.damaged_blocks, 0);
}

#[test]
fn damage_in_an_old_history_costs_that_block_alone() {
    let file = std::fs::read(session().join("history.2")).unwrap();
    let mut whole = Lines::default();
    decode(&file, &mut whole);
    let mut damaged = 0;
    for at in (0..file.len()).step_by(37) {
        let mut bad = file.clone();
        bad[at] ^= 0x10;
        let mut lines = Lines::default();
        decode(&bad, &mut lines);
        damaged += lines.damaged_blocks;
    }
    assert!(damaged > 0 && whole.damaged_blocks == 0);
}
