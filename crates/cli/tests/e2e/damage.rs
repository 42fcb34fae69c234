//! Damaged files: that one session is affected at most, says so, and nothing that lives is killed.

use holdfast_harness::{Home, Random, Terminal, gone};
use std::os::unix::fs::FileExt;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flipped,
    Truncated,
    Emptied,
    Garbage,
}

impl Damage {
    fn does(self, path: &Path, random: &mut Random) {
        let mut bytes = std::fs::read(path).unwrap();
        match self {
            Damage::Flipped => {
                for _ in 0..8 {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            Damage::Truncated => bytes.truncate(random.below(bytes.len() as u64) as usize),
            Damage::Emptied => bytes.clear(),
            Damage::Garbage => bytes = random.bytes(bytes.len()),
        }
        std::fs::write(path, bytes).unwrap();
    }
}

const ALL: [Damage; 4] = [Damage::Flipped, Damage::Truncated, Damage::Emptied, Damage::Garbage];

/// A home whose host is down, with a damaged session and a sound one.
struct Scene {
    home: Home,
    pids: (u64, u64),
    dir: std::path::PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let home = Home::new();
        for name in ["hurt", "sound"] {
            // Enough lines for a history on disk.
            home.session(name, "stty -echo; seq 1 20000; echo ready; while read -r line; do echo got $line; done");
            home.until_screen_shows(name, "ready");
        }
        let dir = home.session_dir("hurt");
        holdfast_harness::until("a keyframe", || dir.join("keyframe").exists().then_some(()));
        let pids = (home.number("hurt", "pid"), home.number("sound", "pid"));
        home.kill_host();
        Scene { home, pids, dir }
    }

    /// The sound one goes on, and so does the process of the other.
    #[track_caller]
    fn others_are_fine(&self, what: &str) {
        assert!(!gone(self.pids.0 as u32) && !gone(self.pids.1 as u32), "{what}: nothing was killed");
        let view = self.home.json(&["info", "sound"]);
        assert_eq!((view["life"].as_str(), view["pid"].as_u64()), (Some("running"), Some(self.pids.1)), "{what}");
        self.home.ok(&["send", "sound", "--enter", what]);
        self.home.until_screen_shows("sound", &format!("got {what}"));
    }
}

#[test]
fn a_damaged_keyframe_costs_at_most_that_sessions_screen() {
    let mut random = Random::from_seed();
    for damage in ALL {
        let scene = Scene::new();
        damage.does(&scene.dir.join("keyframe"), &mut random);
        let view = scene.home.json(&["info", "hurt"]);
        assert_eq!(view["life"], "running", "{damage:?}");
        assert!(view["note"].as_str().is_some_and(|note| note.contains("keyframe")), "{damage:?}: {view}");
        // The ring still has it.
        scene.home.until_screen_shows("hurt", "ready");
        scene.home.ok(&["send", "hurt", "--enter", "on"]);
        scene.home.until_screen_shows("hurt", "got on");
        let (terminal, _client) = Terminal::attached(&scene.home, "hurt", "80x24");
        terminal.wait_text("got on");
        terminal.settle(&scene.home, "hurt");
        scene.others_are_fine(&format!("{damage:?}"));
    }
}

#[test]
fn a_damaged_history_costs_at_most_that_sessions_history() {
    let mut random = Random::from_seed();
    for damage in ALL {
        let scene = Scene::new();
        let files: Vec<_> = std::fs::read_dir(&scene.dir).unwrap().flatten().map(|entry| entry.path()).collect();
        let history: Vec<_> =
            files.iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("history")).collect();
        assert!(!history.is_empty(), "{files:?}");
        history.iter().for_each(|path| damage.does(path, &mut random));
        let shown = scene.home.ok(&["screen", "hurt", "--history", "10000"]);
        assert!(shown.contains("ready"), "{damage:?}");
        let (terminal, _client) = Terminal::attached(&scene.home, "hurt", "80x24");
        terminal.wait_text("ready");
        terminal.types("on\r");
        terminal.wait_text("got on");
        terminal.settle(&scene.home, "hurt");
        scene.others_are_fine(&format!("{damage:?}"));
    }
}

#[test]
fn a_damaged_spec_is_shown_as_such_and_its_processes_live() {
    let mut random = Random::from_seed();
    for damage in [Damage::Truncated, Damage::Emptied, Damage::Garbage] {
        let scene = Scene::new();
        damage.does(&scene.dir.join("spec"), &mut random);
        let all = scene.home.json(&["ls"]);
        let hurt = all.as_array().unwrap().iter().find(|s| s["name"] != "sound").unwrap_or_else(|| panic!("{all}"));
        assert_eq!(hurt["life"], "damaged", "{damage:?}");
        assert!(hurt["note"].as_str().unwrap().contains("spec"), "{hurt}");
        let name = hurt["name"].as_str().unwrap();
        assert!(scene.home.fails(&["send", name, "x"]).contains("cannot read the files"));
        scene.others_are_fine(&format!("{damage:?}"));
        let keeper = ring_keeper(&scene.dir);
        holdfast_harness::kill(keeper);
    }
}

/// The keeper's process, as the ring's header has it.
fn ring_keeper(dir: &Path) -> u32 {
    let mut number = [0; 4];
    std::fs::File::open(dir.join("ring")).unwrap().read_exact_at(&mut number, 24).unwrap();
    u32::from_le_bytes(number)
}

/// Writes into the ring's header in place, as a keeper of another version would have it; the keeper has it mapped.
fn write_ring(dir: &Path, at: u64, bytes: &[u8]) {
    std::fs::OpenOptions::new().write(true).open(dir.join("ring")).unwrap().write_all_at(bytes, at).unwrap();
}

#[test]
fn a_ring_of_an_unknown_version_is_shown_as_unknown_and_left_alive() {
    let scene = Scene::new();
    write_ring(&scene.dir, 6, b"7");
    let view = scene.home.json(&["info", "hurt"]);
    assert_eq!(view["life"], "unknown");
    assert!(view["note"].as_str().unwrap().contains("unknown version"), "{view}");
    assert!(scene.home.ok(&["ls"]).contains("unknown"));
    let refused = scene.home.fails(&["send", "hurt", "x"]);
    assert!(refused.contains("version"), "{refused}");
    for args in [&["attach", "hurt"][..], &["end", "hurt"], &["screen", "hurt"], &["logs", "hurt"]] {
        scene.home.run(args);
    }
    scene.others_are_fine("unknown");
    // The host that knows that version comes back.
    scene.home.kill_host();
    write_ring(&scene.dir, 6, b"2");
    scene.home.ok(&["send", "hurt", "--enter", "again"]);
    scene.home.until_screen_shows("hurt", "got again");
}

#[test]
fn a_ring_with_impossible_numbers_is_told_and_left_alive() {
    let scene = Scene::new();
    let mut before = [0; 256];
    std::fs::File::open(scene.dir.join("ring")).unwrap().read_exact_at(&mut before, 0).unwrap();
    // Capacity; log bytes; base; head, impossible and merely wrong; log head, log base; seal.
    for (at, number) in [
        (8, u64::MAX),
        (8, 0),
        (16, 3),
        (56, 1),
        (56, u64::MAX),
        (64, 12),
        (64, 1 << 40),
        (64, u64::MAX),
        (128, 8),
        (128, u64::MAX),
        (192, 8),
        (200, 0),
    ] {
        write_ring(&scene.dir, at, &u64::to_le_bytes(number));
        let what = format!("{number:#x} at {at}");
        let view = scene.home.json(&["info", "hurt"]);
        assert_eq!(view["life"], "damaged", "{what}: {view}");
        assert!(view["note"].as_str().is_some_and(|note| note.contains("ring file is damaged")), "{what}: {view}");
        for args in [&["send", "hurt", "x"][..], &["attach", "hurt"], &["end", "hurt"], &["resize", "hurt", "9x9"]] {
            assert_ne!(scene.home.run(args).status, 0, "{what}: {args:?}");
        }
        scene.home.run(&["logs", "hurt"]);
        let taken = scene.home.fails(&["new", "-d", "-n", "hurt", "--", "cat"]);
        assert!(taken.contains("already"), "{what}: its name is not given away: {taken}");
        scene.others_are_fine(&what);
        scene.home.kill_host();
        write_ring(&scene.dir, 0, &before);
    }
    scene.home.ok(&["send", "hurt", "--enter", "again"]);
    scene.home.until_screen_shows("hurt", "got again");
}

#[test]
fn flipped_bytes_in_the_rings_data_and_log_are_only_wrong_characters() {
    let mut random = Random::from_seed();
    let scene = Scene::new();
    for _ in 0..2000 {
        let at = 4096 + random.below((1 << 20) + (64 << 10) - 3);
        write_ring(&scene.dir, at, &random.bytes(3));
    }
    assert_eq!(scene.home.json(&["info", "hurt"])["life"], "running");
    scene.home.ok(&["screen", "hurt", "--history", "100"]);
    scene.home.ok(&["send", "hurt", "--enter", "on"]);
    scene.home.until_screen_shows("hurt", "got on");
    scene.others_are_fine("flipped");
}

#[test]
fn strange_things_in_the_sessions_directory_are_left_alone() {
    let scene = Scene::new();
    let sessions = scene.home.join("sessions");
    std::fs::write(sessions.join("a-file"), "x").unwrap();
    std::fs::create_dir(sessions.join("a-directory")).unwrap();
    std::fs::create_dir(sessions.join("ses_zzzz")).unwrap();
    std::fs::write(sessions.join("ses_00000000000000000000000009"), "a file with an id's name").unwrap();
    std::os::unix::fs::symlink("/nowhere", sessions.join("ses_00000000000000000000000008")).unwrap();
    scene.others_are_fine("strange");
    assert_eq!(scene.home.json(&["info", "hurt"])["life"], "running");
    assert!(sessions.join("a-file").exists() && sessions.join("a-directory").exists());
}

/// A session in which an agent typed and was then revoked; its host is down.
fn revoked() -> (Home, std::path::PathBuf) {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; while read -r line; do echo got $line; done");
    home.until_screen_shows("s", "ready");
    home.ok(&["actor", "new", "agent:bot"]);
    assert_eq!(home.run_as("agent:bot", &["send", "s", "--enter", "one"]).status, 0);
    home.until_screen_shows("s", "got one");
    home.ok(&["seize", "s", "--reason", "enough"]);
    home.ok(&["revoke", "s", "--to", "agent:bot"]);
    home.ok(&["release", "s"]);
    assert_ne!(home.run_as("agent:bot", &["send", "s", "--enter", "two"]).status, 0);
    let dir = home.session_dir("s");
    home.kill_host();
    (home, dir)
}

/// Whatever happened to a journal, who was revoked stays so; it is said wherever one looks, and a human grants anew.
#[track_caller]
fn fails_closed(home: &Home, what: &str) {
    assert_ne!(home.run_as("agent:bot", &["send", "s", "--enter", "three"]).status, 0, "{what}");
    assert!(home.ok(&["ls"]).contains("JOURNAL DAMAGED"), "{what}");
    let view = home.json(&["info", "s"]);
    assert!(view["damaged"].is_string(), "{what}: {view}");
    assert!(home.ok(&["info", "s"]).contains("DAMAGED: "), "{what}");
    let verified = home.run(&["journal", "s", "--verify"]);
    assert_ne!(verified.status, 0, "{what}: {verified}");
    assert!(!verified.out.contains("sound"), "{what}: {verified}");
    // Also for the next host, and a human still acts.
    home.kill_host();
    assert_ne!(home.run_as("agent:bot", &["send", "s", "--enter", "four"]).status, 0, "{what}");
    home.ok(&["send", "s", "--enter", "human"]);
    home.until_screen_shows("s", "got human");
    home.ok(&["release", "s"]);
    home.ok(&["grant", "s", "--to", "agent:bot", "--can", "observe,type"]);
    assert_eq!(home.run_as("agent:bot", &["send", "s", "--enter", "granted"]).status, 0, "{what}");
    home.until_screen_shows("s", "got granted");
    home.kill_host();
    assert_eq!(home.run_as("agent:bot", &["send", "s", "--enter", "still"]).status, 0, "{what}: told once");
    assert!(!home.ok(&["screen", "s"]).contains("three"), "{what}");
}

#[test]
fn a_flipped_bit_in_a_journal_gives_nobody_back_what_was_revoked() {
    let (home, dir) = revoked();
    let path = dir.join("journal.1");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = String::from_utf8_lossy(&bytes).find("\"revoke\"").expect("the revocation");
    bytes[at + 2] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    fails_closed(&home, "a flipped bit");
}

#[test]
fn a_journal_whose_end_was_cut_off_gives_nobody_back_what_was_revoked() {
    let (home, dir) = revoked();
    let path = dir.join("journal.1");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("\"revoke\"").expect("the revocation");
    let line = text[..at].rfind('\n').unwrap() + 1;
    std::fs::write(&path, &text[..line]).unwrap();
    fails_closed(&home, "the revocation and what is behind it are gone");
}

#[test]
fn a_journal_that_is_gone_gives_nobody_back_what_was_revoked() {
    let (home, dir) = revoked();
    std::fs::remove_file(dir.join("journal.1")).unwrap();
    fails_closed(&home, "no journal");
}

#[test]
fn records_that_vanish_under_a_running_host_are_missed_by_verify() {
    let home = Home::new();
    home.session("s", "exec cat");
    home.ok(&["take", "s"]);
    home.ok(&["release", "s"]);
    assert_eq!(home.run(&["journal", "s", "--verify"]).status, 0);
    let path = home.session_dir("s").join("journal.1");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.trim_end().rfind('\n').unwrap() + 1;
    std::fs::write(&path, &text[..line]).unwrap();
    let told = home.run(&["journal", "s", "--verify"]);
    assert!(told.status != 0 && told.err.contains("cut off"), "{told}");
}
