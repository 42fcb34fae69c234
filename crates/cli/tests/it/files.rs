//! Files of a session: list, read, write, edit, undo; that nothing leads out of the tree, and that each write is judged and on record.

use crate::gate::{BOT, with_bash};
use crate::http::Http;
use crate::mcp::Agent;
use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn code(home: &Home, who: Option<&str>, args: &[&str]) -> String {
    let args = [&["--json"], args].concat();
    let ran = who.map_or_else(|| home.run(&args), |who| home.run_as(who, &args));
    assert_ne!(ran.status, 0, "{args:?}: {ran}");
    let error: Value = serde_json::from_str(&ran.err).unwrap_or_else(|_| panic!("{args:?}: {ran}"));
    error["error"]["code"].as_str().unwrap().to_owned()
}

pub fn put(home: &Home, text: &str, place: &str) -> Value {
    let ran = home.run_with_input(&["--json", "files", "put", "-", place], text.as_bytes());
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{place}: {ran}"))
}

pub fn names(listed: &Value) -> Vec<&str> {
    listed["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn files_are_listed_read_and_written_from_the_live_directory_on() {
    let home = with_bash("");
    let project = home.join("project");
    std::fs::create_dir(project.join("src")).unwrap();
    std::fs::write(project.join("src/main.c"), "int main;\n").unwrap();
    std::fs::set_permissions(project.join("src/main.c"), std::fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(names(&home.json(&["files", "ls", "work"])), ["src"]);
    home.ok(&["run", "work", "--", "cd src"]);
    let listed = home.json(&["files", "ls", "work:"]);
    assert_eq!(names(&listed), ["main.c"]);
    assert_eq!(listed["cwd"], json!(project.join("src").canonicalize().unwrap()));
    assert_eq!(names(&home.json(&["files", "ls", "work:.."])), ["src"]);
    assert_eq!(home.ok(&["files", "get", "work:main.c", "-"]), "int main;\n");
    let written = put(&home, "int main(void);\n", "work:main.c");
    assert_eq!(written["path"], json!(project.join("src/main.c").canonicalize().unwrap()));
    assert_eq!(std::fs::read_to_string(project.join("src/main.c")).unwrap(), "int main(void);\n");
    let mode = std::fs::metadata(project.join("src/main.c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "it keeps its mode");
    put(&home, "new", "work:../new.txt");
    assert_eq!(std::fs::read_to_string(project.join("new.txt")).unwrap(), "new");
    let text = home.ok(&["files", "ls", "work:.."]);
    assert!(text.contains("-rw-r--r--") && text.contains("src/"), "{text}");
    assert_eq!(code(&home, None, &["files", "get", "work:nothing"]), "no_such_file");
    assert_eq!(code(&home, None, &["files", "get", "work:../src"]), "not_a_file");
    // A write that fails leaves nothing behind.
    assert_eq!(code(&home, None, &["files", "put", "/etc/hostname", "work:nowhere/x"]), "no_such_file");
    assert_eq!(std::fs::read_dir(project.join("src")).unwrap().count(), 1);
}

#[test]
fn nothing_leads_out_of_the_tree() {
    let home = with_bash("");
    let project = home.join("project");
    std::fs::write(home.join("secret"), "secret").unwrap();
    symlink("../secret", project.join("up")).unwrap();
    symlink(home.join("secret"), project.join("absolute")).unwrap();
    symlink("..", project.join("parent")).unwrap();
    symlink("/proc/self/root", project.join("magic")).unwrap();
    symlink("../made", project.join("dangling")).unwrap();
    let out = ["../secret", "up", "absolute", "parent/secret", "magic/etc/passwd", "a/../../secret", "/etc/passwd"];
    for path in out {
        let found = code(&home, None, &["files", "get", &format!("work:{path}")]);
        assert!(matches!(&*found, "outside_root" | "no_such_file"), "{path}: {found}");
        let put = home.run_with_input(&["files", "put", "-", &format!("work:{path}")], b"x");
        assert_ne!(put.status, 0, "{path}: {put}");
    }
    assert_ne!(home.run_with_input(&["files", "put", "-", "work:dangling"], b"x").status, 0);
    assert_eq!(std::fs::read_to_string(home.join("secret")).unwrap(), "secret");
    assert!(!home.join("made").exists());
    // What is Holdfast's own is out of reach wherever a session is.
    home.ok(&["new", "-d", "-n", "top", "--cwd", home.path().to_str().unwrap(), "--", "bash"]);
    assert_eq!(home.ok(&["files", "get", "top:secret", "-"]), "secret");
    for path in ["config.toml", "policy/x.cedar", "run/host.sock", "sessions", "actors", "tokens.json"] {
        for who in [None, Some(BOT)] {
            let listed = code(&home, who, &["files", "ls", &format!("top:{path}")]);
            assert!(matches!(&*listed, "outside_root" | "no_such_file"), "{path}: {listed}");
            let put = ["files", "put", "/etc/hostname", &format!("top:{path}")];
            let put = code(&home, who, &put);
            assert!(matches!(&*put, "outside_root" | "no_such_file" | "not_a_file"), "{path}: {put}");
        }
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_link_never_lets_a_write_out() {
    let home = with_bash("");
    let (project, outside) = (home.join("project"), tempfile::tempdir().unwrap());
    std::fs::create_dir(project.join("dir")).unwrap();
    std::fs::write(outside.path().join("file"), "untouched").unwrap();
    symlink(outside.path(), project.join("link")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (over, project) = (Arc::clone(&over), project.clone());
        move || {
            let mut swaps = 0u64;
            while !over.load(Ordering::Relaxed) {
                use rustix::fs::{CWD, RenameFlags};
                let exchange = RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, project.join("dir"), CWD, project.join("link"), exchange).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let mut done = 0;
    for round in 0..40 {
        let ran = home.run_with_input(&["files", "put", "-", "work:dir/file"], format!("{round}").as_bytes());
        done += u32::from(ran.status == 0);
        let got = home.run(&["files", "get", "work:dir/file", "-"]);
        assert_ne!(got.out, "untouched", "read from outside");
    }
    over.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(swaps > 100, "only {swaps} swaps");
    assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "untouched", "after {done} writes");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn pipes_and_devices_are_never_opened() {
    let home = with_bash("");
    let project = home.join("project");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
    for name in ["pipe", "socket"] {
        let place = format!("work:{name}");
        assert_eq!(code(&home, None, &["files", "get", &place]), "not_a_file");
        assert_ne!(home.run_with_input(&["files", "put", "-", &place], b"x").status, 0);
    }
    let listed = home.json(&["files", "ls", "work"]);
    assert!(listed["entries"].as_array().unwrap().iter().all(|entry| entry["kind"] == "special"), "{listed}");
    // The kernel's own files would tell of the host, not of the session.
    home.ok(&["run", "work", "--", "cd /proc/self"]);
    assert_eq!(code(&home, None, &["files", "get", "work:environ"]), "not_a_file");
}

#[test]
fn each_write_is_in_the_journal_with_both_hashes_and_can_be_undone() {
    let home = with_bash("");
    let file = home.join("project/a.txt");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let first = put(&home, "one\n2\n", "work:a.txt");
    assert_eq!((first["before"].as_str().unwrap().len(), &first["id"]), (64, &json!(1)));
    let edited = home.json(&["files", "edit", "work:a.txt", "--replace", "one", "--with", "uno"]);
    let diff = edited["diff"].as_str().unwrap();
    assert!(diff.contains("-one\n+uno\n 2\n"), "{diff}");
    assert_eq!(edited["change"]["before"], first["after"]);
    let journal = home.ok(&["journal", "work", "--json"]);
    let hash = |value: &Value| value.as_str().unwrap().to_owned();
    for (name, change) in [("files.write", &first), ("files.edit", &edited["change"])] {
        let acts: Vec<&str> = journal.lines().filter(|line| line.contains(name) && line.contains("asked")).collect();
        assert_eq!(acts.len(), 1, "{name}: {journal}");
        assert!(acts[0].contains(&hash(&change["before"])) && acts[0].contains(&hash(&change["after"])), "{acts:?}");
    }
    assert!(home.ok(&["journal", "work"]).contains("human:tester  wrote "));
    home.ok(&["journal", "work", "--verify"]);
    let changes = home.json(&["files", "changes", "work"]);
    assert_eq!(changes.as_array().unwrap().len(), 2);
    assert_eq!((&changes[0]["can_undo"], &changes[0]["can_diff"]), (&json!(true), &json!(true)));
    assert!(home.ok(&["files", "diff", "work", "1"]).contains("-two\n+2\n"));
    // One by one, back to what it was.
    home.ok(&["files", "undo", "work"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n2\n");
    home.ok(&["files", "undo", "work:a.txt"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    assert_eq!(code(&home, None, &["files", "undo", "work"]), "no_such_file");
    // A file that was made is gone after; one that changed since is left alone.
    put(&home, "made", "work:made");
    home.ok(&["files", "undo", "work"]);
    assert!(!home.join("project/made").exists());
    put(&home, "mine", "work:a.txt");
    std::fs::write(&file, "theirs").unwrap();
    assert_eq!(code(&home, None, &["files", "undo", "work"]), "file_changed");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
    // Only one's own.
    assert_eq!(code(&home, Some(BOT), &["files", "undo", "work"]), "no_such_file");
}

#[test]
fn a_text_is_replaced_only_where_it_is_there_once() {
    let home = with_bash("");
    std::fs::write(home.join("project/a"), "x y x").unwrap();
    let edit = |old: &str| code(&home, None, &["files", "edit", "work:a", "--replace", old, "--with", "z"]);
    assert_eq!(
        (edit("x"), edit("nothing"), edit("")),
        ("file_changed".into(), "file_changed".into(), "bad_request".into())
    );
    assert_eq!(std::fs::read_to_string(home.join("project/a")).unwrap(), "x y x");
    home.ok(&["files", "edit", "work:a", "--replace", "x y", "--with", "z"]);
    assert_eq!(std::fs::read_to_string(home.join("project/a")).unwrap(), "z x");
    // In one's own editor; another's change meanwhile is not lost.
    let edit = |editor: &str| home.command(&["files", "edit", "work:a"]).env("EDITOR", editor).output().unwrap();
    assert!(edit("sed -i s/z/edited/").status.success());
    assert_eq!(std::fs::read_to_string(home.join("project/a")).unwrap(), "edited x");
    let path = home.join("project/a").display().to_string();
    let ran = edit(&format!("sh -c 'echo theirs > {path}; echo mine > \"$0\"'"));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success() && said.contains("your text is in "), "{said}");
    assert_eq!(std::fs::read_to_string(home.join("project/a")).unwrap(), "theirs\n");
    let kept = said.lines().find_map(|line| line.trim().strip_prefix("your text is in ")).unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine\n");
    std::fs::remove_dir_all(std::path::Path::new(kept).parent().unwrap()).unwrap();
}

#[test]
fn agents_write_as_the_policy_says_and_a_human_approves_the_rest() {
    let home = with_bash("policy = \"careful\"\n");
    let bot = |text: &str, place: &str| {
        let args = ["--as", BOT, "--json", "files", "put", "-", place];
        let ran = home.run_with_input(&args, text.as_bytes());
        let said = if ran.out.trim().is_empty() { ran.err } else { ran.out };
        serde_json::from_str::<Value>(&said).unwrap()
    };
    assert_eq!(bot("free", "work:free")["size"], 4);
    // What lets somebody in is asked about, wherever it is written from.
    home.ok(&["new", "-d", "-n", "home", "--cwd", home.path().to_str().unwrap(), "--", "bash"]);
    std::fs::create_dir(home.join(".ssh")).unwrap();
    let held = bot("key", "home:.ssh/authorized_keys");
    assert_eq!(held["error"]["code"], "approval_needed", "{held}");
    let id = held["error"]["details"]["approval"].as_str().unwrap();
    let shown = home.json(&["approvals", "show", id]);
    let path = home.path().canonicalize().unwrap().join(".ssh/authorized_keys");
    assert_eq!((&shown["act"], &shown["writes"]), (&json!("write"), &json!([path])));
    assert_eq!(std::fs::read_dir(home.join(".ssh")).unwrap().count(), 0, "nothing is there yet");
    // What was approved is what is written: another text is another act.
    assert_ne!(bot("other", "home:.ssh/authorized_keys")["error"]["details"]["approval"].as_str(), Some(id));
    home.ok(&["approvals", "approve", id]);
    until("the write", || std::fs::read_to_string(&path).is_ok_and(|text| text == "key"));
    let journal = home.ok(&["journal", "home", "--json"]);
    assert!(journal.lines().any(|act| act.contains("files.write") && act.contains(id)), "{journal}");
    let short = code(&home, Some(BOT), &["files", "put", "/etc/hostname", "home:.ssh/config"]);
    assert_eq!(short, "approval_needed");
    std::fs::write(home.join("large"), vec![1; 5 * 1024 * 1024]).unwrap();
    let large = home.join("large").display().to_string();
    let upload = code(&home, Some(BOT), &["files", "put", &large, "home:.ssh/config"]);
    assert_eq!(upload, "denied", "an upload cannot wait");
    // `locked` permits agents no write at all, and people all of them.
    let locked = with_bash("policy = \"locked\"\n");
    let args = ["--json", "files", "put", "/etc/hostname", "work:x"];
    let denied = locked.run_as(BOT, &args);
    assert!(denied.err.contains("\"denied\""), "{denied}");
    let denied = locked.run_with_input(&["--as", BOT, "--json", "files", "put", "-", "work:x"], b"x");
    assert!(denied.err.contains("gate.unlisted"), "{denied}");
    assert_eq!(std::fs::read_dir(locked.join("project")).unwrap().count(), 0, "nothing was put beside it either");
    put(&locked, "mine", "work:x");
}

#[test]
fn who_only_observes_reads_no_file_and_who_was_seized_from_writes_none() {
    let http = Http::with(with_bash(""));
    std::fs::write(http.home.join("project/a"), "text").unwrap();
    let watching = http.home.ok(&["--as", BOT, "token", "new", "--can", "observe,run,type"]).trim().to_owned();
    for path in ["/sessions/work/files", "/sessions/work/file?path=a", "/sessions/work/files/changes"] {
        assert_eq!(http.ask_as(&watching, "GET", path, None).status, 403, "{path}");
        assert_eq!(http.get(path).status, 200, "{path}");
    }
    let reading = http.home.ok(&["--as", BOT, "token", "new", "--can", "files:read"]).trim().to_owned();
    assert_eq!(http.ask_as(&reading, "GET", "/sessions/work/file?path=a", None).body["text"], "text");
    assert_eq!(http.ask_as(&reading, "GET", "/sessions/work/screen", None).status, 403);
    let write = json!({ "path": "a", "text": "x" });
    let denied = http.ask_as(&reading, "PUT", "/sessions/work/file", Some(write.clone()));
    assert_eq!(denied.status, 403, "{denied:?}");
    assert_eq!(http.ask_as(&http.token, "PUT", "/sessions/work/file", Some(write.clone())).status, 200);
    http.home.ok(&["seize", "work", "--reason", "stop", "--freeze"]);
    let frozen = http.ask_as(&http.token, "PUT", "/sessions/work/file", Some(write));
    assert_eq!(frozen.body["code"], "frozen", "{frozen:?}");
    put(&http.home, "mine", "work:a");
    http.home.ok(&["thaw", "work"]);
}

#[test]
fn who_can_neither_run_nor_type_stays_where_the_session_was_started() {
    let http = Http::with(with_bash(""));
    std::fs::write(http.home.join("elsewhere"), "private").unwrap();
    http.home.ok(&["run", "work", "--", "cd .."]);
    let path = "/sessions/work/file?path=elsewhere";
    assert_eq!(http.get(path).status, 200, "an agent goes where the shell goes");
    http.home.ok(&["actor", "new", "service:ci"]);
    http.home.ok(&["grant", "work", "--to", "service:ci", "--can", "observe,files:read"]);
    let token = http.home.ok(&["--as", "service:ci", "token", "new"]).trim().to_owned();
    assert_eq!(http.ask_as(&token, "GET", path, None).body["code"], "no_such_file");
    let listed = http.ask_as(&token, "GET", "/sessions/work/files", None).body;
    assert_eq!(listed["root"], json!(http.home.join("project").canonicalize().unwrap()));
}

#[test]
fn a_wall_holds_for_files_too() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let inside = outside.path().join("work");
    std::fs::create_dir(&inside).unwrap();
    let (cwd, wall) = (outside.path().to_str().unwrap(), inside.to_str().unwrap());
    let made = home.run(&["new", "-d", "-n", "w", "--cwd", cwd, "--wall", wall, "--", "bash"]);
    if made.err.contains("this kernel cannot put up the wall") {
        eprintln!("not tested: {made}");
        return;
    }
    put(&home, "in", "w:work/in");
    let beyond = home.run_with_input(&["--json", "files", "put", "-", "w:beyond"], b"out");
    assert!(beyond.err.contains("wall"), "{beyond}");
    assert!(!outside.path().join("beyond").exists());
    // From behind it the host writes nothing into another session's tree.
    home.ok(&["new", "-d", "-n", "other", "--cwd", cwd, "--", "bash"]);
    let program = holdfast_harness::program();
    let command = format!("echo x | {} files put - other:beyond; echo status $?", program.display());
    let ran = home.json(&["run", "w", "--", &command]);
    assert!(ran["output"].as_str().unwrap().contains("status 1"), "{ran}");
    assert!(!outside.path().join("beyond").exists());
}

#[test]
fn large_directories_come_page_by_page() {
    let home = with_bash("");
    for number in 0..2_500 {
        std::fs::write(home.join("project").join(format!("f{number:05}")), "").unwrap();
    }
    let all = home.json(&["files", "ls", "work"]);
    let all = names(&all);
    assert_eq!((all.len(), all[0], all[2_499]), (2_500, "f00000", "f02499"));
    assert!(all.is_sorted());
    let page = home.json(&["files", "ls", "work", "--limit", "7"]);
    assert_eq!((names(&page).len(), page["next"].is_string()), (7, true));
}

/// Bytes that are no text and repeat nowhere.
pub fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

#[test]
fn an_upload_that_was_recorded_is_finished_after_host_and_client_were_killed() {
    let home = with_bash("");
    let (project, local) = (home.join("project"), tempfile::tempdir().unwrap());
    let (source, content) = (local.path().join("big.bin"), noise(20 * 1024 * 1024));
    std::fs::write(&source, &content).unwrap();
    let args = ["files", "put", source.to_str().unwrap(), "work:big.bin"];
    let begin = || home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The host dies after it remembered the write and before the file is in its place; the client goes on by itself.
    let pause = home.pause("files.remembered");
    let client = begin();
    let paused = pause.reached();
    home.kill_host();
    drop((paused, pause));
    let ran = client.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(std::fs::read(project.join("big.bin")).unwrap() == content);
    assert_eq!(std::fs::read_dir(&project).unwrap().count(), 1, "nothing is left beside it");
    // The client dies: the part stays, and the same command goes on.
    std::fs::write(&source, [&content[..], b"more"].concat()).unwrap();
    let pause = home.pause("files.recorded");
    let mut client = begin();
    let paused = pause.reached();
    let part = std::fs::read_dir(&project).unwrap().flatten().find(|entry| entry.file_name() != "big.bin").unwrap();
    assert_eq!(part.metadata().unwrap().len(), content.len() as u64 + 4);
    kill(client.id());
    client.wait().unwrap();
    home.kill_host();
    drop((paused, pause));
    assert!(std::fs::read(project.join("big.bin")).unwrap() == content, "the old one, whole");
    home.ok(&args);
    assert_eq!(std::fs::metadata(project.join("big.bin")).unwrap().len(), content.len() as u64 + 4);
    assert_eq!(std::fs::read_dir(&project).unwrap().count(), 1);
}

#[test]
fn an_upload_over_http_can_be_resumed_from_what_arrived() {
    let http = Http::with(with_bash(""));
    let content = noise(300_000);
    let ask = |more: Value| {
        let mut body = json!({ "path": "up.bin", "size": content.len(), "tag": "t1" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        http.post("/sessions/work/file/upload", body)
    };
    let base64 = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    assert_eq!(ask(json!({})).body, json!({ "offset": 0 }));
    let sent = ask(json!({ "offset": 0, "base64": base64(&content[..200_000]) }));
    assert_eq!(sent.body, json!({ "offset": 200_000 }), "{sent:?}");
    http.home.kill_host();
    http.home.ok(&["host", "start"]);
    assert_eq!(ask(json!({})).body, json!({ "offset": 200_000 }), "another host finds it");
    assert_eq!(ask(json!({ "offset": 250_000, "base64": "AAAA" })).status, 416);
    assert_eq!(ask(json!({ "finish": true })).status, 416, "not all of it has arrived");
    ask(json!({ "offset": 200_000, "base64": base64(&content[200_000..]) }));
    let wrong = "0".repeat(64);
    assert_eq!(ask(json!({ "finish": true, "hash": wrong })).body["code"], "file_changed");
    assert_eq!(ask(json!({})).body, json!({ "offset": 0 }), "what was not what it should be is gone");
    ask(json!({ "offset": 0, "base64": base64(&content) }));
    let done = ask(json!({ "finish": true }));
    assert_eq!((done.status, &done.body["change"]["size"]), (200, &json!(300_000)), "{done:?}");
    assert_eq!(ask(json!({ "finish": true })).body, done.body, "told again");
    assert!(std::fs::read(http.home.join("project/up.bin")).unwrap() == content);
    // A descriptor is for those at the host's own socket.
    let other = json!({ "path": "up.bin", "size": 3, "tag": "t2", "offset": 0, "descriptor": 0 });
    assert_eq!(http.post("/sessions/work/file/upload", other).status, 400);
}

#[test]
fn a_file_is_downloaded_in_ranges_and_uploaded_as_a_stream() {
    let http = Http::with(with_bash(""));
    let file = http.home.join("project/a b.html");
    std::fs::write(&file, "0123456789").unwrap();
    let ask = |head: &str, more: &str, body: &str| {
        let head = format!("{head} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}", http.token);
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        http.raw(&format!("{head}\r\nConnection: close\r\n{length}{more}\r\n{body}"))
    };
    let path = "/v1/sessions/work/tree/a%20b.html";
    let whole = ask(&format!("GET {path}"), "", "");
    assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n\r\n0123456789"), "{whole}");
    let head = whole.to_ascii_lowercase();
    for said in ["content-disposition: attachment", "sandbox", "nosniff", "application/octet-stream"] {
        assert!(head.contains(said), "{said}: {whole}");
    }
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let part = ask(&format!("GET {path}"), "Range: bytes=2-4\r\n", "");
    assert!(part.starts_with("HTTP/1.1 206") && part.ends_with("\r\n\r\n234"), "{part}");
    assert!(part.to_ascii_lowercase().contains("content-range: bytes 2-4/10"), "{part}");
    let beyond = ask(&format!("GET {path}"), "Range: bytes=10-\r\n", "");
    assert!(beyond.starts_with("HTTP/1.1 416") && beyond.contains("bytes */10"), "{beyond}");
    assert!(ask(&format!("GET {path}"), &format!("If-None-Match: {etag}\r\n"), "").starts_with("HTTP/1.1 304"));
    let stale = ask(&format!("GET {path}"), "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n", "");
    assert!(stale.starts_with("HTTP/1.1 200"), "{stale}");
    let head = ask(&format!("HEAD {path}"), "", "");
    assert!(head.to_ascii_lowercase().contains("content-length: 10") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(ask("GET /v1/sessions/work/tree/%2e%2e/config.toml", "", "").starts_with("HTTP/1.1 40"));
    // Up: whole, and from where it was cut off.
    let put = ask(&format!("PUT {path}"), "", "new content");
    assert!(put.starts_with("HTTP/1.1 200") && put.contains("\"size\":11"), "{put}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new content");
    let first = ask(&format!("PUT {path}?tag=t&size=6"), "", "abc");
    assert!(first.starts_with("HTTP/1.1 202") && first.contains("\"offset\":3"), "{first}");
    let rest = ask(&format!("PUT {path}?tag=t&size=6&offset=3"), "", "def");
    assert!(rest.starts_with("HTTP/1.1 200"), "{rest}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "abcdef");
}

#[test]
fn a_session_of_another_user_has_no_files_that_the_host_would_reach_as_itself() {
    let home = Home::new();
    if !rustix::process::getuid().is_root() {
        assert!(home.fails(&["new", "-d", "--user", "nobody"]).contains("does not run as root"));
        return;
    }
    home.ok(&["new", "-d", "-n", "theirs", "--user", "nobody", "--cwd", "/tmp", "--", "sh"]);
    assert_eq!(code(&home, None, &["files", "ls", "theirs"]), "denied");
    assert_eq!(code(&home, None, &["files", "put", "/etc/hostname", "theirs:hf-test"]), "denied");
    let said = home.fails(&["files", "get", "theirs:x"]);
    assert!(said.contains("holdfast run theirs -- cat FILE"), "{said}");
}

#[test]
fn an_agent_lists_reads_writes_and_edits_files_by_tools() {
    let home = with_bash("");
    let project = home.join("project");
    std::fs::write(project.join("a.txt"), "one\ntwo\n").unwrap();
    let mut agent = Agent::start(&home, &[], "bot");
    let there = |more: Value| {
        let mut all = json!({ "session": "work" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let listed = agent.ok("list_files", there(json!({})));
    assert_eq!(listed["names"], json!(["a.txt"]));
    assert_eq!(agent.ok("read_file", there(json!({ "path": "a.txt" })))["text"], "one\ntwo\n");
    let edited = agent.call("edit_file", there(json!({ "path": "a.txt", "old": "two", "new": "2" })));
    assert!(!edited.is_error && edited.text.contains("-two\n+2\n"), "{}", edited.text);
    agent.ok("write_file", there(json!({ "path": "b.txt", "text": "made" })));
    assert_eq!(std::fs::read_to_string(project.join("b.txt")).unwrap(), "made");
    let long = "ü".repeat(50_000);
    std::fs::write(project.join("long"), &long).unwrap();
    let first = agent.ok("read_file", there(json!({ "path": "long" })));
    let rest = agent.ok("read_file", there(json!({ "path": "long", "offset": first["next"] })));
    assert_eq!(format!("{}{}", first["text"].as_str().unwrap(), rest["text"].as_str().unwrap()), long);
    for (tool, more) in
        [("read_file", json!({})), ("edit_file", json!({ "old": "a", "new": "b" })), ("write_file", json!({}))]
    {
        let mut arguments = there(json!({ "path": "../config.toml" }));
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(agent.refused(tool, arguments)["code"], "outside_root", "{tool}");
    }
    let changes = home.json(&["files", "changes", "work"]);
    assert!(changes[0]["by"].as_str().unwrap().starts_with("agent:"), "{changes}");
}
