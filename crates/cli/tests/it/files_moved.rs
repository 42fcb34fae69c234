//! Files on their way into and out of a session: cut off at any point, changed meanwhile, in great numbers, with holes.

use crate::files::{code, names, noise, put};
use crate::gate::with_bash;
use crate::http::Http;
use holdfast_harness::{Home, Ran, kill, until};
use serde_json::{Value, json};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const BYTES: usize = 20 * 1024 * 1024;
/// Put over the beginning of what has arrived: it is in the end only if nothing was sent twice.
const MARK: &[u8] = b"arrived before";

fn begin(home: &Home, args: &[&str]) -> Child {
    home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn ends_well(client: Child) {
    let ran = Ran::from(client.wait_with_output().unwrap());
    assert_eq!(ran.status, 0, "{ran}");
}

fn ends_with(client: Child, code: &str) {
    let ran = Ran::from(client.wait_with_output().unwrap());
    assert!(ran.status != 0 && ran.err.contains(&format!("\"{code}\"")), "{ran}");
}

/// The one hidden file in a directory.
fn part(dir: &Path) -> Option<PathBuf> {
    let hidden = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("part");
    std::fs::read_dir(dir).unwrap().flatten().find(hidden).map(|entry| entry.path())
}

fn mark(dir: &Path) -> u64 {
    let part = part(dir).expect("what has arrived");
    std::fs::OpenOptions::new().write(true).open(&part).unwrap().write_all_at(MARK, 0).unwrap();
    part.metadata().unwrap().len()
}

fn is_marked(file: &Path, content: &[u8]) -> bool {
    let found = std::fs::read(file).unwrap();
    found.starts_with(MARK) && found[MARK.len()..] == content[MARK.len()..]
}

fn source(dir: &Path) -> (PathBuf, Vec<u8>) {
    let (path, content) = (dir.join("big.bin"), noise(BYTES));
    std::fs::write(&path, &content).unwrap();
    (path, content)
}

#[test]
fn an_upload_goes_on_where_host_or_client_were_killed() {
    let home = with_bash("");
    let (project, local) = (home.join("project"), tempfile::tempdir().unwrap());
    let (source, content) = source(local.path());
    let args = ["--json", "files", "put", source.to_str().unwrap(), "work:big.bin"];
    let goal = project.join("big.bin");
    for (passes, is_client) in [(1, false), (40, false), (79, false), (1, true), (40, true)] {
        let pause = home.pause("files.copied");
        let mut client = begin(&home, &args);
        for _ in 1..passes {
            drop(pause.reached());
        }
        let paused = pause.reached();
        if is_client {
            kill(client.id());
        }
        home.kill_host();
        drop((paused, pause));
        let length = part(&project).unwrap().metadata().unwrap().len();
        assert_eq!(length, passes * 256 * 1024, "as far as it was");
        if is_client {
            client.wait().unwrap();
            mark(&project);
            home.ok(&args);
            assert!(is_marked(&goal, &content), "{passes}");
        } else {
            ends_well(client);
            assert!(std::fs::read(&goal).unwrap() == content, "{passes}");
        }
        assert!(part(&project).is_none());
        home.ok(&["journal", "work", "--verify"]);
        std::fs::remove_file(&goal).unwrap();
    }
}

#[test]
fn a_download_goes_on_where_host_or_client_were_killed() {
    let home = with_bash("");
    let local = tempfile::tempdir().unwrap();
    let (_, content) = source(&home.join("project"));
    let goal = local.path().join("got.bin");
    let args = ["--json", "files", "get", "work:big.bin", goal.to_str().unwrap()];
    for passes in [1, 2] {
        let pause = home.pause("files.copied");
        let mut client = begin(&home, &args);
        for _ in 1..passes {
            drop(pause.reached());
        }
        let paused = pause.reached();
        let other = code(&home, None, &["files", "get", "work:big.bin", goal.to_str().unwrap()]);
        assert_eq!(other, "busy", "two do not write one file");
        kill(client.id());
        client.wait().unwrap();
        drop((paused, pause));
        assert_eq!(mark(local.path()), passes * 8 * 1024 * 1024);
        home.kill_host();
        home.ok(&args);
        assert!(is_marked(&goal, &content), "{passes}");
        assert!(part(local.path()).is_none());
        std::fs::remove_file(&goal).unwrap();
    }
    // The client lives on.
    let pause = home.pause("files.copied");
    let client = begin(&home, &args);
    let paused = pause.reached();
    home.kill_host();
    drop((paused, pause));
    ends_well(client);
    assert!(std::fs::read(&goal).unwrap() == content);
    // What is left of another version is of no use, and is removed.
    let pause = home.pause("files.copied");
    let mut client = begin(&home, &args);
    let paused = pause.reached();
    kill(client.id());
    client.wait().unwrap();
    drop((paused, pause));
    std::fs::write(home.join("project/big.bin"), "another").unwrap();
    home.ok(&args);
    assert_eq!(std::fs::read_to_string(&goal).unwrap(), "another");
    assert!(part(local.path()).is_none());
}

#[test]
fn a_file_that_is_written_or_cut_meanwhile_is_not_passed_off_as_whole() {
    let home = with_bash("");
    let (project, local) = (home.join("project"), tempfile::tempdir().unwrap());
    let (far, content) = source(&project);
    let file = std::fs::OpenOptions::new().write(true).open(&far).unwrap();
    let goal = local.path().join("got");
    let get = ["--json", "files", "get", "work:big.bin", goal.to_str().unwrap()];
    for length in [BYTES as u64 / 4, BYTES as u64 * 2] {
        let pause = home.pause("files.copied");
        let client = begin(&home, &get);
        let paused = pause.reached();
        file.set_len(length).unwrap();
        drop((paused, pause));
        ends_with(client, "file_changed");
        assert_eq!(std::fs::read_dir(local.path()).unwrap().count(), 0, "neither the file nor a part of it");
    }
    // To standard output it ends with the error.
    let pause = home.pause("files.read");
    let client = begin(&home, &["--json", "files", "get", "work:big.bin", "-"]);
    drop(pause.reached());
    let paused = pause.reached();
    file.set_len(3).unwrap();
    drop((paused, pause));
    ends_with(client, "file_changed");
    // Whoever asks for it gets what there is.
    std::fs::write(&far, &content).unwrap();
    let pause = home.pause("files.copied");
    let client = begin(&home, &["files", "get", "--changing", "work:big.bin", goal.to_str().unwrap()]);
    let paused = pause.reached();
    file.write_all_at(b"more", BYTES as u64).unwrap();
    drop((paused, pause));
    ends_well(client);
    assert!(std::fs::read(&goal).unwrap() == content, "as long as it was at first");
    assert!(part(local.path()).is_none());
    // Upwards.
    let (near, _) = source(local.path());
    let pause = home.pause("files.copied");
    let client = begin(&home, &["--json", "files", "put", near.to_str().unwrap(), "work:up"]);
    let paused = pause.reached();
    std::fs::write(&near, noise(BYTES / 2)).unwrap();
    drop((paused, pause));
    ends_with(client, "file_changed");
    assert!(!project.join("up").exists());
}

#[test]
fn a_file_is_known_by_its_sha_256_up_to_64_mib_and_by_its_blake3_beyond() {
    let http = Http::with(with_bash(""));
    let (project, local) = (http.home.join("project"), tempfile::tempdir().unwrap());
    let near = local.path().join("disk");
    let file = std::fs::File::create(&near).unwrap();
    let of = |bytes: u64| {
        file.set_len(bytes).unwrap();
        http.home.json(&["files", "put", near.to_str().unwrap(), "work:disk"])
    };
    let sha256 = |path: &Path| {
        let ran = std::process::Command::new("sha256sum").arg(path).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()[..64].to_owned()
    };
    let small = of(64 << 20);
    assert_eq!((&small["after"], &small["after_kind"]), (&json!(sha256(&near)), &Value::Null));
    let large = of((64 << 20) + 1);
    let blake3_of = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let expected = blake3_of(&vec![0; (64 << 20) + 1]);
    assert_eq!((&large["after"], &large["after_kind"]), (&json!(expected), &json!("blake3")));
    assert_eq!((&large["before"], &large["before_kind"]), (&small["after"], &Value::Null));
    let journal = http.home.ok(&["journal", "work"]);
    let said = format!("sha256 {} to blake3 {}", &small["after"].as_str().unwrap()[..12], &expected[..12]);
    assert!(journal.contains(&said), "{said}: {journal}");
    // A sender that knows the SHA-256 is held to it.
    let body = "a".repeat((64 << 20) + 1);
    std::fs::write(&near, &body).unwrap();
    let send = |hash: String| {
        let head = format!("PUT /v1/sessions/work/tree/up?tag=t&size={} HTTP/1.1\r\nHost: localhost", body.len());
        let token = format!("Authorization: Bearer {}\r\nConnection: close", http.token);
        let sent = http.raw(&format!("{head}\r\n{token}\r\nContent-Length: {}\r\n\r\n{}", 64 << 20, &body[1..]));
        assert!(sent.starts_with("HTTP/1.1 202"), "{sent}");
        let ask = |more: Value| {
            let mut asked = json!({ "path": "up", "size": body.len(), "tag": "t" });
            asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            http.post("/sessions/work/file/upload", asked)
        };
        ask(json!({ "offset": 64 << 20, "base64": "YQ==" }));
        ask(json!({ "finish": true, "hash": hash }))
    };
    assert_eq!(send(blake3_of(body.as_bytes())).body["code"], "file_changed");
    let done = send(sha256(&near));
    assert_eq!(done.body["change"]["after"], blake3_of(body.as_bytes()), "{done:?}");
    assert!(std::fs::read(project.join("up")).unwrap() == body.as_bytes());
}

#[test]
fn holes_stay_holes_and_a_terabyte_of_them_takes_no_time() {
    let home = with_bash("");
    let (project, local) = (home.join("project"), tempfile::tempdir().unwrap());
    let huge = std::fs::File::create(project.join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    huge.write_all_at(b"in the middle", 1 << 39).unwrap();
    let goal = local.path().join("huge");
    home.ok(&["files", "get", "work:huge", goal.to_str().unwrap()]);
    let got = std::fs::File::open(&goal).unwrap();
    let mut bytes = [0; 13];
    got.read_exact_at(&mut bytes, 1 << 39).unwrap();
    let meta = got.metadata().unwrap();
    assert_eq!((&bytes, meta.len()), (b"in the middle", 1 << 40));
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    // To replace it would take a hash of all of it.
    let refused = home.run_with_input(&["--json", "files", "put", "-", "work:huge"], b"x");
    assert!(refused.err.contains("too_large"), "{refused}");
    // Up: what is hashed has the zeros.
    let near = local.path().join("sparse");
    let file = std::fs::File::create(&near).unwrap();
    file.write_all_at(b"end", 99 << 20).unwrap();
    let written = home.json(&["files", "put", near.to_str().unwrap(), "work:sparse"]);
    let meta = std::fs::metadata(project.join("sparse")).unwrap();
    assert!(meta.len() == (99 << 20) + 3 && meta.blocks() * 512 < 1 << 20, "{meta:?}");
    let zeros = [vec![0; 99 << 20], b"end".to_vec()].concat();
    assert_eq!(written["after"], blake3::hash(&zeros).to_hex().as_str());
    // Over it, and it is known what was there.
    let over = home.json(&["files", "put", near.to_str().unwrap(), "work:sparse"]);
    assert_eq!((&over["before"], &over["after"]), (&written["after"], &written["after"]));
    // What somebody else wrote there is hashed anew.
    std::fs::OpenOptions::new().write(true).open(project.join("sparse")).unwrap().write_all_at(b"x", 5).unwrap();
    let over = home.json(&["files", "put", near.to_str().unwrap(), "work:sparse"]);
    assert_ne!(over["before"], written["after"]);
}

#[test]
fn a_directory_of_a_hundred_thousand_comes_page_by_page() {
    let http = Http::with(with_bash(""));
    let project = http.home.join("project");
    for number in 0..100_000 {
        std::fs::File::create(project.join(format!("f{number:06}"))).unwrap();
    }
    let before = http.peak_kib();
    let (mut after, mut seen) = (String::new(), 0);
    for _ in 0..3 {
        let page = http.get(&format!("/sessions/work/files?limit=1000{after}")).body;
        assert_eq!(names(&page).first(), Some(&format!("f{seen:06}").as_str()));
        seen += names(&page).len();
        after = format!("&after={}", page["next"].as_str().unwrap());
    }
    assert_eq!(seen, 3_000);
    let all = http.home.json(&["files", "ls", "work", "--limit", "20000"]);
    let all = names(&all);
    assert_eq!((all.len(), all[19_999]), (20_000, "f019999"));
    assert!(all.is_sorted());
    // The names in hexadecimal are where pages begin.
    let last: String = b"f098999".iter().map(|byte| format!("{byte:02x}")).collect();
    let page = http.get(&format!("/sessions/work/files?after={last}")).body;
    assert_eq!((names(&page).len(), names(&page)[999]), (1_000, "f099999"));
    assert!(page["next"].is_null(), "{}", page["next"]);
    let grown = http.peak_kib().saturating_sub(before);
    assert!(grown < 32 * 1024, "the host grew by {grown} KiB");
    assert_eq!(http.get("/sessions/work/files?after=zz").status, 400);
}

#[test]
fn a_download_replaces_the_file_that_was_asked_for_and_no_other() {
    let home = with_bash("");
    let (project, local) = (home.join("project"), tempfile::tempdir().unwrap());
    let get = |name: &str| {
        let mut command = home.command(&["--json", "files", "get", &format!("work:{name}")]);
        Ran::from(command.current_dir(local.path()).output().unwrap())
    };
    // Named as asked for, whatever the host says it is.
    std::fs::write(project.join(".bashrc"), "hostile").unwrap();
    symlink(".bashrc", project.join("notes")).unwrap();
    assert_eq!(get("notes").status, 0);
    assert_eq!(std::fs::read_to_string(local.path().join("notes")).unwrap(), "hostile");
    assert!(!local.path().join(".bashrc").exists());
    // A name may be as long as names can be.
    let long = "n".repeat(255);
    std::fs::write(project.join(&long), "long").unwrap();
    assert_eq!(get(&long).status, 0);
    assert_eq!(std::fs::read_to_string(local.path().join(&long)).unwrap(), "long");
    // A link in the place of its hidden file is not followed.
    put(&home, "text", "work:a.txt");
    let meta = std::fs::metadata(project.join("a.txt")).unwrap();
    let time = |seconds: i64, rest: i64| seconds as u64 * 1_000_000_000 + rest as u64;
    let (written, changed) = (time(meta.mtime(), meta.mtime_nsec()), time(meta.ctime(), meta.ctime_nsec()));
    let etag = format!("{:x}-{:x}-{:x}-{written:x}-{changed:x}", meta.dev(), meta.ino(), meta.size());
    let planted = local.path().join(format!(".a.txt.{etag}.holdfast-part"));
    symlink("victim", &planted).unwrap();
    std::fs::write(local.path().join("victim"), "untouched").unwrap();
    assert_ne!(get("a.txt").status, 0);
    assert_eq!(std::fs::read_to_string(local.path().join("victim")).unwrap(), "untouched");
    std::fs::remove_file(&planted).unwrap();
    until("the download", || get("a.txt").status == 0);
    assert_eq!(std::fs::read_to_string(local.path().join("a.txt")).unwrap(), "text");
}
