use super::*;

fn history(dir: &tempfile::TempDir, lines_max: u32) -> History {
    History::resume(dir.path(), lines_max, Remembered::default())
}

/// Appends numbered lines, flushing every so many as a session that rests now and then does.
fn fill(history: &mut History, range: std::ops::Range<u32>, rest_every: u32) {
    for n in range {
        history.pending().extend_from_slice(format!("line {n} {}\n", "x".repeat(90)).as_bytes());
        history.settle();
        if n % rest_every == 0 {
            history.flush().unwrap();
            history.forget_old();
        }
    }
}

fn first_word(lines: &Lines) -> String {
    String::from_utf8_lossy(&lines.encoded).split(' ').nth(1).unwrap_or("").to_owned()
}

#[test]
fn the_newest_lines_come_back_and_old_ones_make_room() {
    for rest_every in [400, 700, 3000, 1_000_000] {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 1000);
        fill(&mut history, 0..10_000, rest_every);
        let lines = history.tail(1000);
        assert_eq!(count_lines(&lines.encoded), 1000, "rests every {rest_every}");
        assert_eq!(first_word(&lines), "9000", "rests every {rest_every}");
        assert_eq!(first_word(&history.tail(10)), "9990");
        assert!(history.tail(0).encoded.is_empty());
        let files = std::fs::read_dir(dir.path()).unwrap().count();
        assert!(files <= 3, "{files} segments");
        assert!(history.pending.len() < 300_000, "lines that newer ones replaced are dropped");
    }
}

#[test]
fn a_flood_is_not_written_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = history(&dir, 1000);
    fill(&mut history, 1..50_000, 1_000_000);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(history.flush().unwrap());
    let bytes: u64 = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 30_000, "{bytes} bytes for 100,000 of repeated text");
    assert_eq!(first_word(&history.tail(1000)), "49000");
}

#[test]
fn what_was_written_after_the_keyframe_is_taken_back() {
    for rest_every in [400, 2500] {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 1000);
        fill(&mut history, 0..2600, rest_every);
        history.flush().unwrap();
        let remembered = history.remember();
        history.forget_old();
        let before = history.tail(1000).encoded;
        // Killed in the middle of a flush: nothing is forgotten before the next keyframe.
        fill(&mut history, 2601..4400, 1_000_000);
        history.flush().unwrap();
        let resumed = History::resume(dir.path(), 1000, remembered);
        assert_eq!(first_word(&resumed.tail(1000)), first_word(&Lines { encoded: before.clone(), damaged_blocks: 0 }));
        assert_eq!(resumed.tail(1000).encoded, before, "rests every {rest_every}");
    }
}

#[test]
fn lines_that_were_only_in_memory_are_missed_by_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = history(&dir, 5000);
    fill(&mut history, 0..10, 1_000_000);
    assert_eq!(history.remember().unsaved_lines, 0, "a few are part of the keyframe");
    fill(&mut history, 10..2000, 1_000_000);
    let resumed = History::resume(dir.path(), 5000, history.remember());
    let text = String::from_utf8(resumed.tail(5000).encoded).unwrap();
    assert!(text.contains("2000 lines were lost here"), "{text}");
}

#[test]
fn a_damaged_block_costs_only_its_own_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = history(&dir, 5000);
    fill(&mut history, 0..4000, 1_000_000);
    history.flush().unwrap();
    let path = dir.path().join("history.0");
    let sound = std::fs::read(&path).unwrap();
    let length = HISTORY.first_line(b"").len() + BLOCK_MAGIC.len();
    // In its text, in its length, in what it begins with.
    for at in [100, length, length - 1] {
        let mut bytes = sound.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        let lines = history.tail(5000);
        assert_eq!(lines.damaged_blocks, 1, "byte {at}");
        assert!(count_lines(&lines.encoded) > 3000, "byte {at}");
    }
}

/// Three blocks of a line each, and where each begins.
fn three() -> (Vec<u8>, Vec<Vec<u8>>) {
    let texts: Vec<Vec<u8>> = (1..4).map(|n| format!("line {n}\n").into_bytes()).collect();
    let blocks: Vec<Vec<u8>> = texts.iter().map(|text| encode_block(text)).collect();
    ([HISTORY.first_line(b""), blocks.concat()].concat(), texts)
}

fn read(file: &[u8]) -> Lines {
    let mut lines = Lines::default();
    decode(file, &mut lines);
    lines
}

#[test]
fn a_flipped_bit_or_a_cut_costs_the_blocks_it_is_in_and_never_gives_other_lines() {
    let (file, texts) = three();
    assert_eq!((read(&file).encoded, read(&file).damaged_blocks), (texts.concat(), 0));
    for bit in 0..file.len() * 8 {
        let mut bad = file.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let lines = read(&bad);
        let text = String::from_utf8(lines.encoded).unwrap();
        assert!(text.lines().count() >= 2, "bit {bit}: {text}");
        assert!(text.lines().all(|line| texts.contains(&format!("{line}\n").into_bytes())), "bit {bit}: {text}");
        assert_eq!(lines.damaged_blocks, 1, "bit {bit}");
    }
    for cut in 0..file.len() {
        assert!(texts.concat().starts_with(&read(&file[..cut]).encoded), "cut at {cut}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = fastrand::Rng::with_seed(5);
    let (file, _) = three();
    for _ in 0..20_000 {
        let mut bytes = file.clone();
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        bytes.truncate(rng.usize(..=bytes.len()));
        read(&bytes);
    }
}

#[test]
fn what_was_read_is_not_used_once_the_files_have_moved_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = history(&dir, 5000);
    fill(&mut history, 0..1000, 999);
    let past = history.wanted(5000).unwrap().read();
    fill(&mut history, 1001..1010, 1_000_000);
    let lines = history.tail_behind(5000, Some(&past)).unwrap();
    assert_eq!(lines.encoded, history.tail(5000).encoded, "what is in memory only comes behind it");
    fill(&mut history, 1010..2000, 1_000_000);
    history.flush().unwrap();
    assert!(history.tail_behind(5000, Some(&past)).is_none() && history.tail_behind(5000, None).is_none());
    assert!(history.tail_behind(0, None).unwrap().encoded.is_empty());
    fill(&mut history, 2000..2100, 1_000_000);
    assert!(history.wanted(100).is_none(), "memory has them");
    assert_eq!(first_word(&history.tail_behind(100, None).unwrap()), "2000");
}

#[test]
fn a_history_that_was_thrown_away_is_on_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::resume(dir.path(), 100_000, Remembered::default());
    let fill = |history: &mut History, text: &str| {
        history.pending().extend_from_slice(format!("{text}\n").repeat(2 * BLOCK_BYTES / text.len()).as_bytes());
        history.settle();
    };
    for again in 0..3 {
        fill(&mut history, "hunter2");
        assert!(history.flush().unwrap());
        history.forget_old();
        fill(&mut history, "hunter2");
        history.clear();
        assert!(history.is_empty() && history.tail(10).encoded.is_empty());
        if again == 1 {
            fill(&mut history, "later");
            history.lines_max = 10;
        }
        assert!(history.flush().unwrap(), "its files are to be forgotten");
        history.forget_old();
        let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert_eq!(files.len(), usize::from(again == 1), "{files:?}");
        history.lines_max = 100_000;
        history.clear();
    }
    let again = History::resume(dir.path(), 100_000, history.remember());
    assert!(again.is_empty() && again.tail(10).encoded.is_empty());
}

#[test]
fn a_later_versions_segments_are_left_as_they_are() {
    for segment in [0, 1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("history.{segment}"));
        let newer = crate::Format { version: 3, ..HISTORY }.first_line(b"");
        std::fs::write(&path, [&newer[..], b"what nobody knows yet"].concat()).unwrap();
        let before = std::fs::read(&path).unwrap();
        let mut history = history(&dir, 1000);
        fill(&mut history, 0..3000, 500);
        assert_eq!(first_word(&history.tail(10)), "2990");
        assert_eq!(std::fs::read(&path).unwrap(), before, "history.{segment}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
