use super::*;
use std::io::Write;

const STATE: &[u8] = b"holdfast 1 fish\nA secret-one\nB 2\n\x01\n\x01\n\x01end\n";

fn nobody() -> Changed {
    Changed::unknown(5)
}

/// A session's directory whose shell has written this.
fn session(state: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shell")).unwrap();
    write(dir.path(), state);
    dir
}

fn write(dir: &Path, state: &[u8]) {
    std::fs::write(dir.join("shell/state.0"), state).unwrap();
}

/// Takes what the shell wrote, and keeps it; whether it was a state.
fn kept(dir: &Path, cwd: Option<&str>) -> bool {
    let told = take(dir, 0, cwd).unwrap();
    let was = told.is_some();
    if let Some(told) = told.filter(|told| !told.news.is_empty()) {
        keep(dir, told, nobody()).unwrap();
    }
    forget(dir, 0);
    was
}

fn changed(dir: &Path) -> Vec<String> {
    load(dir).unwrap().entries(false).into_iter().map(|entry| entry.name).collect()
}

/// All files below a directory, in one.
fn everything(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        all.extend(if path.is_dir() { everything(&path) } else { std::fs::read(&path).unwrap() });
    }
    all
}

#[test]
fn hashes_are_kept_and_values_are_not() {
    let dir = session(STATE);
    assert!(kept(dir.path(), Some("/secret-dir")));
    assert_eq!(changed(dir.path()), [""; 0]);
    let text = String::from_utf8(STATE.to_vec()).unwrap();
    write(dir.path(), text.replace("secret-one", "secret-two").as_bytes());
    assert!(kept(dir.path(), Some("/secret-other")));
    assert_eq!(changed(dir.path()), ["A", "cwd"]);
    let all = String::from_utf8_lossy(&everything(dir.path())).into_owned();
    assert!(all.contains("\"A\"") && !all.contains("secret"), "{all}");
    write(dir.path(), STATE);
    assert!(kept(dir.path(), Some("/secret-dir")));
    assert_eq!(changed(dir.path()), [""; 0], "put back");
    assert_eq!(std::fs::metadata(dir.path().join("shell/state.0")).unwrap().len(), 0);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(dir.path().join(KEY)).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_same_value_has_another_hash_under_another_name_or_key() {
    let hash = |key: &[u8], name, value: &[u8]| Hasher::new(key).hash(Category::Variable, name, value);
    assert_eq!(hash(b"k", "A", b"1"), hash(b"k", "A", b"1"));
    let others = [hash(b"l", "A", b"1"), hash(b"k", "B", b"1"), hash(b"k", "A", b"2"), hash(b"k", "A1", b"")];
    assert!(others.iter().all(|other| *other != hash(b"k", "A", b"1")));
    assert_ne!(Hasher::new(b"k").hash(Category::Alias, "A", b"1"), hash(b"k", "A", b"1"));
}

#[test]
fn what_is_no_state_is_emptied_and_changes_nothing() {
    let dir = session(STATE);
    assert!(kept(dir.path(), None));
    for bad in [&STATE[..STATE.len() - 1], b"holdfast 9 fish\n", b"secret"] {
        write(dir.path(), bad);
        assert!(!kept(dir.path(), None), "{bad:?}");
        assert!(!is_left(dir.path()));
    }
    // Nor is a pipe, which would not end, or a link to whatever.
    let path = dir.path().join("shell/state.0");
    for link in ["/dev/zero", "/etc/passwd"] {
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(link, &path).unwrap();
        let _ = take(dir.path(), 0, None);
        forget(dir.path(), 0);
        assert!(!is_left(dir.path()), "{link}");
    }
    write(dir.path(), b"");
    assert!(!kept(dir.path(), None));
    assert_eq!(changed(dir.path()), [""; 0]);
}

#[test]
fn a_state_that_is_still_being_written_is_waited_for() {
    let dir = session(&STATE[..20]);
    let path = dir.path().join("shell/state.0");
    let mut shell = File::options().append(true).open(&path).unwrap();
    let taking = std::thread::spawn({
        let dir = dir.path().to_owned();
        move || kept(&dir, None)
    });
    // It was taken, and a new one is in its place.
    while std::fs::metadata(&path).unwrap().len() > 0 {
        std::thread::yield_now();
    }
    shell.write_all(&STATE[20..]).unwrap();
    assert!(taking.join().unwrap());
}

#[test]
fn the_first_state_is_what_the_others_are_compared_with_also_where_nobody_told_of_it() {
    let dir = session(&STATE.to_vec().replacen(b"one", b"two"));
    std::fs::write(dir.path().join("shell/state.2"), STATE).unwrap();
    assert!(kept(dir.path(), Some("/")));
    assert_eq!(changed(dir.path()), ["A"]);
    assert!(!is_left(dir.path()));
    // A second first one is a shell's that took the place of the first: it changes nothing by itself.
    std::fs::write(dir.path().join("shell/state.2"), STATE).unwrap();
    write(dir.path(), STATE);
    assert!(kept(dir.path(), Some("/")));
    assert_eq!(changed(dir.path()), [""; 0]);
}

#[test]
fn a_host_that_died_over_a_state_leaves_it_to_the_next() {
    let dir = session(STATE);
    assert!(kept(dir.path(), None));
    write(dir.path(), &STATE.to_vec().replacen(b"one", b"two"));
    drop(take(dir.path(), 0, None).unwrap().unwrap());
    assert!(is_left(dir.path()));
    // The shell went on.
    write(dir.path(), &STATE.to_vec().replacen(b"one", b"ten"));
    assert!(kept(dir.path(), None));
    assert!(is_left(dir.path()), "the second one");
    assert!(kept(dir.path(), None) && !is_left(dir.path()));
    assert_eq!(changed(dir.path()), ["A"]);
    write(dir.path(), STATE);
    clear(dir.path());
    assert!(!is_left(dir.path()));
}

#[test]
fn a_ledger_without_its_key_or_beyond_reading_begins_anew() {
    for damage in [KEY, LEDGER] {
        let dir = session(STATE);
        assert!(kept(dir.path(), None));
        std::fs::write(dir.path().join(damage), b"\xff{").unwrap();
        write(dir.path(), &STATE.to_vec().replacen(b"one", b"two"));
        assert!(kept(dir.path(), None));
        assert_eq!(changed(dir.path()), [""; 0], "{damage}");
        write(dir.path(), STATE);
        assert!(kept(dir.path(), None));
        assert_eq!(changed(dir.path()), ["A"], "{damage}");
    }
}

#[test]
fn a_ledger_and_a_key_of_the_version_before_are_read_and_gone_on_with() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1/sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr");
    let dir = session(STATE);
    for name in [KEY, LEDGER] {
        std::fs::copy(old.join(name), dir.path().join(name)).unwrap();
    }
    assert_eq!(changed(dir.path()), ["A", "cwd"]);
    let key = std::fs::read(dir.path().join(KEY)).unwrap();
    assert!(kept(dir.path(), None), "another shell's state is all changes");
    assert!(changed(dir.path()).len() > 2);
    assert_eq!(std::fs::read(dir.path().join(KEY)).unwrap(), key, "its hashes are of this key");
}

#[test]
fn a_torn_last_line_is_dropped_and_the_next_one_counts() {
    let dir = session(STATE);
    assert!(kept(dir.path(), None));
    let mut ledger = File::options().append(true).open(dir.path().join(LEDGER)).unwrap();
    ledger.write_all(b"{\"changed\":{\"by\":{\"kno").unwrap();
    write(dir.path(), &STATE.to_vec().replacen(b"one", b"two"));
    assert!(kept(dir.path(), None));
    assert_eq!(changed(dir.path()), ["A"]);
}

trait Replacen {
    fn replacen(self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replacen for Vec<u8> {
    fn replacen(mut self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = memchr::memmem::find(&self, from).expect("it is there");
        self.splice(at..at + from.len(), to.iter().copied());
        self
    }
}
