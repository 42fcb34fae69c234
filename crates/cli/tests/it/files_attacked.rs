//! Files of a session in the hands of somebody who means ill, or who is careless: what the host reads and writes for them, and what not.

use crate::files::{code, names, put};
use crate::gate::{BOT, with_bash};
use crate::http::Http;
use holdfast_harness::{Home, until};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_write_gives_no_program_the_rights_of_another() {
    let home = with_bash("");
    let tool = home.join("project/tool");
    std::fs::write(&tool, "trusted").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o6755)).unwrap();
    put(&home, "not trusted", "work:tool");
    assert_eq!(std::fs::metadata(&tool).unwrap().mode() & 0o7777, 0o755, "as the kernel does it for whoever writes");
    let small = home.join("small");
    std::fs::write(&small, "x").unwrap();
    std::fs::set_permissions(&small, std::fs::Permissions::from_mode(0o4711)).unwrap();
    home.ok(&["files", "put", small.to_str().unwrap(), "work:new"]);
    assert_eq!(std::fs::metadata(home.join("project/new")).unwrap().mode() & 0o7777, 0o711);
}

#[test]
fn a_write_to_a_hard_link_leaves_its_other_name_alone() {
    let home = with_bash("");
    std::fs::write(home.join("elsewhere"), "theirs").unwrap();
    std::fs::hard_link(home.join("elsewhere"), home.join("project/link")).unwrap();
    put(&home, "mine", "work:link");
    assert_eq!(std::fs::read_to_string(home.join("elsewhere")).unwrap(), "theirs");
    assert_eq!(std::fs::read_to_string(home.join("project/link")).unwrap(), "mine");
}

#[test]
fn what_has_arrived_of_an_upload_is_no_file_to_write() {
    let http = Http::with(with_bash(""));
    let body = json!({ "path": "up", "size": 6, "tag": "t", "offset": 0, "base64": "YWJj" });
    assert_eq!(http.post("/sessions/work/file/upload", body).body["offset"], 3);
    let listed = http.get("/sessions/work/files").body;
    let part = names(&listed)[0].to_owned();
    assert!(part.starts_with(".holdfast-"), "{part}");
    let over = http.home.run_with_input(&["--json", "files", "put", "-", &format!("work:{part}")], b"xyz");
    assert!(over.err.contains("\"denied\""), "{over}");
    // It is not mixed with what somebody put there by other means.
    std::fs::remove_file(http.home.join("project").join(&part)).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", http.home.join("project").join(&part)).unwrap();
    let body = json!({ "path": "up", "size": 6, "tag": "t", "offset": 0, "base64": "YWJj" });
    assert_ne!(http.post("/sessions/work/file/upload", body).status, 200);
}

#[test]
fn an_upload_that_was_given_up_is_removed_by_the_next_one() {
    let http = Http::with(with_bash(""));
    let begin = |tag: &str| {
        let body = json!({ "path": "up", "size": 6, "tag": tag, "offset": 0, "base64": "YWJj" });
        assert_eq!(http.post("/sessions/work/file/upload", body).status, 200);
        let parts = std::fs::read_dir(http.home.join("project")).unwrap().flatten();
        parts.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let old = begin("old");
    assert_eq!((old.len(), begin("young").len()), (1, 2), "both may be gone on with");
    let week = std::time::Duration::from_secs(8 * 24 * 60 * 60);
    let file = std::fs::File::options().write(true).open(&old[0]).unwrap();
    file.set_modified(std::time::SystemTime::now() - week).unwrap();
    let left = begin("another");
    assert!(left.len() == 2 && !left.contains(&old[0]), "{left:?}");
}

#[test]
fn a_process_in_mounts_of_its_own_is_not_followed_there() {
    let home = Home::new();
    let tree = home.join("tree");
    std::fs::create_dir_all(tree.join("inner")).unwrap();
    std::fs::write(tree.join("outer-file"), "outer").unwrap();
    let script = "mount -t tmpfs none inner && cd inner && echo inner > inner-file && echo ready; exec cat";
    let cwd = tree.to_str().unwrap();
    home.ok(&["new", "-d", "-n", "ns", "--cwd", cwd, "--", "unshare", "-Urm", "sh", "-c", script]);
    home.until_screen_shows("ns", "ready");
    // A path there is another file than the one of that name which is judged.
    let listed = home.json(&["files", "ls", "ns"]);
    assert_eq!(names(&listed), ["inner", "outer-file"], "{listed}");
    put(&home, "x", "ns:inner/made");
    assert!(tree.join("inner/made").exists());
}

#[test]
fn a_tree_that_was_moved_is_found_by_who_may_go_there_and_another_in_its_place_is_not_mistaken_for_it() {
    let http = Http::with(with_bash(""));
    let (project, moved) = (http.home.join("project"), http.home.join("moved"));
    std::fs::write(project.join("a"), "moved").unwrap();
    http.home.ok(&["actor", "new", "service:ci"]);
    http.home.ok(&["grant", "work", "--to", "service:ci", "--can", "observe,files:read"]);
    let token = http.home.ok(&["--as", "service:ci", "token", "new"]).trim().to_owned();
    let reads = |token: &str| http.ask_as(token, "GET", "/sessions/work/file?path=a", None).body;
    assert_eq!(reads(&token)["text"], "moved");
    std::fs::rename(&project, &moved).unwrap();
    assert_eq!(reads(&http.token)["text"], "moved", "the shell is there");
    assert_eq!(reads(&token)["code"], "no_such_file");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("a"), "another").unwrap();
    assert_eq!(reads(&http.token)["text"], "moved");
    assert_eq!(reads(&token)["text"], "another");
}

#[test]
fn who_may_not_read_files_gets_nothing_of_them_by_any_way() {
    let http = Http::with(with_bash(""));
    put(&http.home, "secret-text", "work:a");
    let watching = http.home.ok(&["--as", BOT, "token", "new", "--can", "observe,run,type"]).trim().to_owned();
    let write = json!({ "path": "a", "text": "x" });
    let edit = json!({ "path": "a", "old": "secret", "new": "x" });
    let upload = json!({ "path": "a", "size": 1, "tag": "t" });
    for (method, path, body) in [
        ("GET", "/sessions/work/files", None),
        ("GET", "/sessions/work/file?path=a", None),
        ("GET", "/sessions/work/files/changes", None),
        ("GET", "/sessions/work/files/changes/1", None),
        ("GET", "/sessions/work/tree/a", None),
        ("PUT", "/sessions/work/tree/a", Some(json!("x"))),
        ("PUT", "/sessions/work/file", Some(write)),
        ("POST", "/sessions/work/file/edit", Some(edit)),
        ("POST", "/sessions/work/file/upload", Some(upload)),
        ("POST", "/sessions/work/file/undo", Some(json!({}))),
    ] {
        let said = http.ask_as(&watching, method, path, body);
        assert_eq!(said.status, 403, "{method} {path}: {said:?}");
        assert!(!format!("{said:?}").contains("secret-text"), "{method} {path}: {said:?}");
    }
    assert_eq!(std::fs::read_to_string(http.home.join("project/a")).unwrap(), "secret-text");
}

#[test]
fn an_approved_write_replaces_what_the_human_saw_and_nothing_that_came_after() {
    let home = with_bash("policy = \"careful\"\n");
    home.ok(&["new", "-d", "-n", "home", "--cwd", home.path().to_str().unwrap(), "--", "bash"]);
    std::fs::create_dir(home.join(".ssh")).unwrap();
    let keys = home.join(".ssh/authorized_keys");
    let held = |text: &str| {
        let args = ["--as", BOT, "--json", "files", "put", "-", "home:.ssh/authorized_keys"];
        let said: Value = serde_json::from_str(&home.run_with_input(&args, text.as_bytes()).err).unwrap();
        said["error"]["details"]["approval"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let id = held("bot");
    std::fs::write(&keys, "came after").unwrap();
    home.run(&["approvals", "approve", &id]);
    until("the end of it", || home.json(&["approvals", "show", &id])["state"] == "failed");
    assert_eq!(std::fs::read_to_string(&keys).unwrap(), "came after");
    let id = held("bot again");
    home.ok(&["approvals", "approve", &id]);
    until("the write", || std::fs::read_to_string(&keys).is_ok_and(|text| text == "bot again"));
}

#[test]
fn what_was_undone_is_not_undone_again_and_what_is_no_longer_kept_says_so() {
    let home = with_bash("");
    let file = home.join("project/a");
    std::fs::write(&file, "first").unwrap();
    put(&home, "second", "work:a");
    // Larger than what is kept.
    let large = home.join("large");
    std::fs::write(&large, vec![7; 5 * 1024 * 1024]).unwrap();
    home.ok(&["files", "put", large.to_str().unwrap(), "work:a"]);
    home.ok(&["files", "undo", "work"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
    home.ok(&["files", "undo", "work"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "first");
    assert_eq!(code(&home, None, &["files", "undo", "work"]), "no_such_file");
    home.ok(&["files", "put", large.to_str().unwrap(), "work:b"]);
    put(&home, "short", "work:b");
    let changes = home.json(&["files", "changes", "work"]);
    assert_eq!(changes[0]["can_undo"], false, "{changes}");
    let said = home.fails(&["files", "undo", "work"]);
    assert!(said.contains("no longer kept"), "{said}");
    assert_eq!(std::fs::read_to_string(home.join("project/b")).unwrap(), "short");
}
