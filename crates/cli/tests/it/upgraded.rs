//! A home that the version before left: everything in it is still there.

use holdfast_harness::Home;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// As the host of the version before left it when it was killed; its machine went down then.
const HOME: &str = "../store/tests/v1";
const SESSION: &str = "sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &name);
        } else {
            std::fs::copy(&path, &name).unwrap();
            // What a checkout makes of a mode is its own.
            std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[test]
fn an_upgrade_loses_no_session_and_nothing_of_one() {
    let home = Home::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join(HOME);
    for part in ["actors", "runs", "sessions"] {
        copy(&old.join(part), &home.path().join(part));
    }
    let view = home.json(&["info", "s"]);
    assert_eq!((view["life"].as_str(), view["note"].as_str()), (Some("lost"), None), "{view}");
    let shown = home.ok(&["screen", "s", "--history", "9000"]);
    assert!(shown.contains("\n7999\n8000\n8001\n"), "{} lines", shown.lines().count());
    home.ok(&["journal", "s", "--verify"]);
    let run = home.json(&["run", "status", "build-1"]);
    assert_eq!((run["command"].as_str(), run["exit_code"].as_i64()), (Some("seq 1 4000"), Some(0)), "{run}");
    let asked = home.json(&["questions", "--all"]);
    assert_eq!(asked[0]["text"], "ready to go?", "{asked}");
    let actors = home.ok(&["actor", "ls"]);
    assert!(actors.contains("agent:bot"), "{actors}");
    // What was written since is of today.
    let spec = std::fs::read(home.path().join(SESSION).join("spec")).unwrap();
    assert!(spec.starts_with(b"holdfast spec 2 "), "{}", String::from_utf8_lossy(&spec));
}

#[test]
fn a_later_versions_session_is_shown_and_left_as_it_is() {
    let home = Home::new();
    let dir = home.path().join(SESSION);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(HOME).join(SESSION), &dir);
    let newer = holdfast_store::Format { version: 9, ..holdfast_store::SPEC }.seal(b"what nobody knows yet");
    std::fs::write(dir.join("spec"), &newer).unwrap();
    std::fs::write(dir.join("spec.2147483647-1.new"), b"half").unwrap();
    let all = home.json(&["ls", "--all"]);
    let view = all.as_array().unwrap().first().unwrap_or_else(|| panic!("{all}"));
    assert_eq!(view["life"], "damaged", "{view}");
    assert!(view["note"].as_str().is_some_and(|note| note.contains("version 9")), "{view}");
    assert_eq!(std::fs::read(dir.join("spec")).unwrap(), newer);
    assert!(!dir.join("spec.2147483647-1.new").exists(), "what a crash left is swept away");
}

#[test]
fn an_upgrade_restarts_the_host_and_names_every_keeper() {
    let home = Home::new();
    home.session("new", "echo ready; exec cat");
    home.session("other", "echo ready; exec cat");
    let before = home.host_pid();
    let told = home.json(&["upgrade"]);
    let host = told["host"]["pid"].as_u64().unwrap();
    assert_eq!(told["before"]["pid"].as_u64(), Some(u64::from(before)), "{told}");
    assert_eq!((told["host"]["version"].as_str(), told["version"].as_str()), (told["version"].as_str(), Some("0.1.0")));
    let kept = told["keepers"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "{told}");
    for keeper in kept {
        assert_eq!(
            (&keeper["current"], &keeper["served"], &keeper["version"]),
            (&true.into(), &true.into(), &"0.1.0".into()),
            "{told}"
        );
        assert_eq!(keeper["pid"].as_u64(), Some(home.number(keeper["session"].as_str().unwrap(), "keeper_pid")));
    }
    let said = home.ok(&["upgrade"]);
    assert!(said.contains(&format!("process {host})")) && said.contains("2 sessions kept running"), "{said}");
    assert!(said.contains("every keeper is of this build"), "{said}");
    let now = home.host_pid();
    let said = home.ok(&["upgrade", "--check"]);
    assert!(said.starts_with("host: version 0.1.0") && home.host_pid() == now, "--check restarts nothing: {said}");
}
