//! Sessions of another machine through a relay: a real relay, with whatever can happen to it.

use holdfast_client::{Connection, Identity};
use holdfast_harness::{DETACH, Home, Ran, Terminal, holds_within, until};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ListParams, Nothing};
use holdfast_wire::questions::QuestionListParams;
use holdfast_wire::runs::RunListParams;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A relay process.
pub struct Relay {
    child: Child,
    pub address: String,
}

impl Relay {
    pub fn start(home: &Home) -> Relay {
        Relay::at(home, "127.0.0.1:0")
    }

    pub fn at(home: &Home, listen: &str) -> Relay {
        let mut command = home.command(&["relay", "--listen", listen]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        Relay { child, address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Passes connections on to a relay, and keeps every byte it sees.
struct Tap {
    address: String,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    fn before(relay: &Relay) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (to, seen) = (relay.address.clone(), Arc::<Mutex<Vec<u8>>>::default());
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&to) else { continue };
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    let all = Arc::clone(&all);
                    std::thread::spawn(move || {
                        let mut buffer = [0; 16 * 1024];
                        while let Ok(count @ 1..) = from.read(&mut buffer) {
                            all.lock().unwrap().extend_from_slice(&buffer[..count]);
                            if to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Tap { address, seen }
    }

    fn has(&self, text: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        seen.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// Two machines: the sessions are on the far one, the person is at the near one.
pub struct Two {
    pub near: Home,
    pub far: Home,
}

impl Two {
    pub fn new() -> Two {
        Two { near: Home::new(), far: Home::new() }
    }

    /// The near one accepts an invite of the far one, and calls it `gpu`.
    pub fn invited(&self, args: &[&str]) -> Value {
        let made = self.far.json(&[&["invite"], args].concat());
        let link = made["link"].as_str().unwrap();
        let ran = self.near.run_with_input(&["accept", "--name", "gpu", "-"], link.as_bytes());
        assert_eq!(ran.status, 0, "{ran}");
        made
    }
}

#[track_caller]
fn accept(home: &Home, link: &str) -> Ran {
    home.run_with_input(&["accept", "-"], link.as_bytes())
}

#[test]
fn a_session_behind_a_relay_is_listed_run_in_and_typed_into_and_the_relay_sees_none_of_it() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    let tap = Tap::before(&relay);
    let url = format!("http://{}", tap.address);
    two.far.ok(&["new", "-d", "-n", "secret-work", "--", "bash", "--norc"]);
    let no_relay = two.far.fails(&["invite", "secret-work"]);
    assert!(no_relay.contains("waits at no relay") && no_relay.contains("holdfast relay add"), "{no_relay}");
    assert!(two.far.ok(&["relay", "add", &url]).contains("connected to"));
    let listed = two.far.ok(&["relay", "ls"]);
    assert!(listed.contains(&url) && listed.contains("up"), "{listed}");
    two.invited(&["--host-wide"]);
    assert!(two.near.ok(&["--host", "gpu", "ls"]).contains("secret-work"));
    assert_eq!(two.near.ok(&["run", "gpu/secret-work", "--", "echo $((1234567 * 8))"]), "9876536\n");
    two.near.ok(&["send", "gpu/secret-work", "--enter", "echo typed-from-afar"]);
    two.far.until_screen_shows("secret-work", "\ntyped-from-afar");
    let by = two.far.ok(&["journal", "secret-work"]);
    assert!(by.contains("human:tester."), "{by}");
    let hosts = two.near.ok(&["hosts", "ls"]);
    assert!(hosts.contains("gpu") && hosts.contains("relay http") && hosts.contains("up"), "{hosts}");
    let devices = two.far.ok(&["devices", "ls"]);
    assert!(devices.contains("human:tester.") && devices.contains("(host)"), "{devices}");
    // A program that speaks the protocol goes through as who opened the way.
    let socket = two.near.join("gpu.sock");
    let mut connect = two.near.command(&["connect", "gpu", "--socket", socket.to_str().unwrap()]);
    let mut connect = connect.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the socket", || socket.exists());
    let who = Identity::load_or_make(&two.near.places(), &"agent:sdk".parse().unwrap()).unwrap();
    let mut through = Connection::open(UnixStream::connect(&socket).unwrap(), &who).unwrap();
    assert_eq!(through.call::<op::List>(&ListParams { all: false }).unwrap().len(), 1);
    connect.kill().unwrap();
    connect.wait().unwrap();
    // What the relay leg carried.
    let key = two.far.ok(&["host", "key"]);
    assert!(tap.has(key.trim()), "the tap sees which host is meant, so it sees something");
    for hidden in ["secret-work", "typed-from-afar", "9876536", "session.send", "human:tester", "jsonrpc"] {
        assert!(!tap.has(hidden), "the relay leg shows {hidden:?}");
    }
    let metrics = relay.get("/metrics");
    assert!(metrics.contains("holdfast_relay_hosts 1") && !metrics.contains(key.trim()), "{metrics}");
    assert!(relay.get("/healthz").contains("ok"));
    // A browser is told in words where the host is, and gets a shell that nothing else may frame or add to.
    let told = relay.get(&format!("/c/{}", key.trim()));
    assert!(told.contains("access-control-allow-origin: *") && told.contains(r#""here":true"#), "{told}");
    for elsewhere in ["/c/", "/c/00", &format!("/c/{}", "0".repeat(64))] {
        assert!(relay.get(elsewhere).contains(r#""here":false"#), "{elsewhere}");
    }
    let shell = relay.get("/i?x=1");
    for header in
        ["frame-ancestors 'none'", "default-src 'none'", "referrer-policy: no-referrer", "cross-origin-opener-policy"]
    {
        assert!(shell.contains(header), "{shell}");
    }
    assert!(shell.contains("/i/shell.js") && relay.get("/i/../../etc/passwd").contains("404"), "{shell}");
}

#[test]
fn files_go_through_a_relay_and_go_on_where_they_were_cut_off() {
    let two = Two::new();
    let relay = std::cell::RefCell::new(Relay::start(&two.near));
    let (url, address) = (relay.borrow().url(), relay.borrow().address.clone());
    let tree = crate::transfers::tree(&two.far);
    two.far.ok(&["relay", "add", &url]);
    two.invited(&["--host-wide"]);
    let command = |args: &[&str]| two.near.command(args);
    // The relay dies, and another one takes its place.
    let breaks = || {
        relay.borrow_mut().stop();
        *relay.borrow_mut() = Relay::at(&two.near, &address);
    };
    let way = crate::transfers::Way { near: &two.near, far: &two.far, command: &command, breaks: &breaks };
    way.carries_files(&tree);
}

#[test]
fn an_invite_opens_what_it_says_once_and_says_why_it_does_not() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    two.far.session("shared", "while read line; do echo got $line; done");
    two.far.session("private", "exec cat");
    let made = two.invited(&["shared", "--can", "observe"]);
    // What was shared, and nothing else.
    let listed = two.near.ok(&["--host", "gpu", "ls"]);
    assert!(listed.contains("shared") && !listed.contains("private"), "{listed}");
    assert!(two.near.fails(&["screen", "gpu/private"]).contains("private"));
    let denied = two.near.fails(&["send", "gpu/shared", "--enter", "hi"]);
    assert!(denied.contains("type"), "{denied}");
    assert!(!two.near.run(&["--host", "gpu", "new", "-d", "--", "true"]).err.is_empty());
    for args in
        [&["--host", "gpu", "token", "new"][..], &["--host", "gpu", "actor", "ls"], &["--host", "gpu", "devices", "ls"]]
    {
        two.near.fails(args);
    }
    // Used, revoked, expired, damaged, unknown.
    let link = made["link"].as_str().unwrap().to_owned();
    let third = Home::new();
    let used = accept(&third, &link);
    assert!(used.status != 0 && used.err.contains("already used"), "{used}");
    let open = two.far.json(&["invite", "shared"]);
    two.far.ok(&["invites", "revoke", open["invite"]["id"].as_str().unwrap()]);
    let revoked = accept(&third, open["link"].as_str().unwrap());
    assert!(revoked.status != 0 && revoked.err.contains("was revoked"), "{revoked}");
    let short = two.far.json(&["invite", "shared", "--for", "1s"]);
    until("its end", || two.far.ok(&["invites", "ls"]).contains("expired"));
    let expired = accept(&third, short["link"].as_str().unwrap());
    assert!(expired.status != 0 && expired.err.contains("has expired"), "{expired}");
    let cut = accept(&third, &link[..link.len() - 9]);
    assert!(cut.status != 0 && cut.err.contains("invite link"), "{cut}");
    // A guess: everything right but the secret.
    let (start, code) = link.split_once('#').unwrap();
    let flipped = if code.as_bytes()[90] == b'A' { 'B' } else { 'A' };
    let guessed = accept(&third, &format!("{start}#{}{flipped}{}", &code[..90], &code[91..]));
    assert!(guessed.status != 0 && !third.join("hosts.json").exists(), "{guessed}");
    // A guest can be thrown out.
    two.far.ok(&["devices", "revoke", two.far.json(&["devices", "ls"])[0]["id"].as_str().unwrap()]);
    let out = two.near.fails(&["--host", "gpu", "ls"]);
    assert!(out.contains("does not know human:tester") && out.contains("invite"), "{out}");
}

#[test]
fn a_guest_of_one_session_learns_nothing_of_the_machine() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    let direct = two.far.json(&["relay", "direct", "--listen", "127.0.0.1:0"]);
    let direct = direct["direct"]["listen"].as_str().unwrap().to_owned();
    two.far.session("shared", "cd /; exec cat");
    two.far.session("private", "exec cat");
    two.invited(&["shared", "--can", "observe"]);
    let socket = two.near.join("gpu.sock");
    let mut connect = two.near.command(&["connect", "gpu", "--socket", socket.to_str().unwrap()]);
    let mut connect = connect.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the socket", || socket.exists());
    let who = Identity::load_or_make(&two.near.places(), &"agent:sdk".parse().unwrap()).unwrap();
    let mut guest = Connection::open(UnixStream::connect(&socket).unwrap(), &who).unwrap();
    let status = guest.call::<op::Status>(&Nothing {}).unwrap();
    assert_eq!(status.version, env!("CARGO_PKG_VERSION"));
    assert_eq!((status.pid, status.started_ms, status.running, status.clients), (0, 0, 0, 0), "{status:?}");
    // Whatever else concerns the host is told nothing, or refused.
    let none = &Nothing {};
    let may = QuestionListParams { session: None, all: true };
    let answers = [
        format!("{status:?}"),
        format!("{:?}", guest.call::<op::Me>(none)),
        format!("{:?}", guest.call::<op::Metrics>(none)),
        format!("{:?}", guest.call::<op::Actors>(none)),
        format!("{:?}", guest.call::<op::TokenList>(none)),
        format!("{:?}", guest.call::<op::RelayList>(none)),
        format!("{:?}", guest.call::<op::InviteList>(none)),
        format!("{:?}", guest.call::<op::DeviceList>(none)),
        format!("{:?}", guest.call::<op::PolicyGet>(none)),
        format!("{:?}", guest.call::<op::QuestionList>(&may)),
        format!("{:?}", guest.call::<op::RunList>(&RunListParams { session: None })),
    ];
    let machine = [two.far.path().to_str().unwrap().to_owned(), relay.address.clone(), "private".into(), direct];
    for answer in &answers {
        assert!(!machine.iter().any(|secret| answer.contains(secret)), "{answer}");
    }
    assert_eq!(guest.hello().direct, Vec::<String>::new());
    assert!(guest.call::<op::Stop>(none).is_err());
    let sessions = guest.call::<op::List>(&ListParams { all: true }).unwrap();
    assert_eq!(sessions.iter().map(|session| session.name.as_str()).collect::<Vec<_>>(), ["shared"]);
    connect.kill().unwrap();
    connect.wait().unwrap();
    // Whoever is invited to the whole host is told, and a device without an end has none.
    let devices = two.far.json(&["devices", "ls"]);
    assert!(devices[0].get("until_ms").is_none(), "{devices}");
    assert!(two.far.ok(&["devices", "ls"]).contains("no end"));
    assert_ne!(two.far.json(&["host", "status"])["pid"], 0);
}

#[test]
fn a_device_that_is_revoked_is_out_within_a_second_also_while_it_is_attached() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    two.far.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc"]);
    two.invited(&["--host-wide"]);
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(two.near.command(&["attach", "gpu/work"]));
    terminal.wait_text("bash-");
    assert_eq!(two.far.clients("work"), 1);
    let device = two.far.json(&["devices", "ls"])[0]["id"].as_str().unwrap().to_owned();
    assert!(two.far.json(&["devices", "ls"])[0]["connections"].as_u64() >= Some(1));
    // It invites another one, which goes with it.
    let made = two.near.json(&["--host", "gpu", "invite", "--host-wide", "--can", "observe,type"]);
    let third = Home::new();
    let ran = third.run_with_input(&["accept", "--name", "gpu", "-"], made["link"].as_str().unwrap().as_bytes());
    assert_eq!(ran.status, 0, "{ran}");
    assert!(third.ok(&["--host", "gpu", "ls"]).contains("work"));
    assert!(third.fails(&["end", "gpu/work"]).contains("end"), "more than it was invited to");
    assert!(two.near.fails(&["--host", "gpu", "token", "new"]).contains("host's own machine"));
    two.far.ok(&["devices", "revoke", &device]);
    let revoked = Instant::now();
    assert!(holds_within(Duration::from_secs(1), || two.far.clients("work") == 0), "still attached");
    assert!(revoked.elapsed() < Duration::from_secs(2));
    terminal.wait_text("reconnect");
    terminal.types("echo not $((6 * 7))\r");
    terminal.types(DETACH);
    client.wait();
    assert!(!two.far.ok(&["screen", "work"]).contains("not 42"));
    third.fails(&["--host", "gpu", "ls"]);
    third.fails(&["send", "gpu/work", "x"]);
}

#[test]
fn a_terminal_goes_on_through_another_relay_when_one_is_killed_and_loses_and_doubles_nothing() {
    let two = Two::new();
    let mut relays = [Relay::start(&two.near), Relay::start(&two.near)];
    for relay in &relays {
        two.far.ok(&["relay", "add", &relay.url()]);
    }
    // Every line that is typed is counted, and the output floods meanwhile.
    let count = "n=0; stty -echo; while read line; do n=$((n + 1)); echo \"line $n: $line\" >> log; seq 1 400; echo \"had $line\"; done";
    two.far.session("work", count);
    two.invited(&["--host-wide"]);
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(two.near.command(&["attach", "gpu/work"]));
    until("the client", || two.far.clients("work") == 1);
    for n in 0..30 {
        if n == 10 {
            relays[0].stop();
        }
        if n == 20 {
            // The other one goes, and comes back at its address.
            let address = relays[1].address.clone();
            relays[1].stop();
            relays[1] = Relay::at(&two.near, &address);
        }
        terminal.types(format!("key{n}\r"));
        terminal.wait_for("the line's output", |seen| seen.shows(&format!("had key{n}")));
    }
    let log = std::fs::read_to_string(two.far.join("log")).unwrap();
    let expected: String = (0..30).map(|n| format!("line {}: key{n}\n", n + 1)).collect();
    assert_eq!(log, expected);
    // The host dies, and the next one is found through the relay, which nobody there starts by hand.
    let host = two.far.kill_host();
    assert_ne!(two.far.host_pid(), host);
    terminal.types("after\r");
    terminal.wait_for("the next host", |seen| seen.shows("had after"));
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    // What the terminal shows is what the session shows.
    let shown = two.far.ok(&["screen", "work"]);
    assert!(shown.contains("had after"), "{shown}");
}

#[test]
fn a_relay_with_tls_is_believed_by_its_certificate() {
    let two = Two::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    // In no home: what names one belongs to it.
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let mut relay = two.near.command(&[&["relay", "--listen", "127.0.0.1:0"], &tls[..]].concat());
    let mut relay = relay.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(relay.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().unwrap().to_owned();
    let url = format!("https://localhost:{port}");
    let unknown = two.far.fails(&["relay", "add", &url]);
    assert!(unknown.contains("not connected") && unknown.contains("certificate"), "{unknown}");
    two.far.ok(&["relay", "remove", &url]);
    two.far.ok(&["host", "stop"]);
    let with = |home: &Home, args: &[&str]| {
        let ran = home.command(args).env("HOLDFAST_RELAY_CA", &cert).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    with(&two.far, &["relay", "add", &url]);
    let link = with(&two.far, &["invite", "--host-wide"]);
    with(&two.near, &["accept", "--name", "gpu", link.trim()]);
    assert_eq!(with(&two.near, &["--json", "--host", "gpu", "ls"]).trim(), "[]");
    relay.kill().unwrap();
    relay.wait().unwrap();
}

#[test]
fn another_host_in_the_place_of_one_is_not_spoken_to() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    two.invited(&["--host-wide"]);
    let key = two.far.ok(&["host", "key"]).trim().to_owned();
    // The same name with another key.
    let other = Home::new();
    let other_key = other.ok(&["host", "key"]).trim().to_owned();
    assert_ne!(key, other_key);
    let changed = two.near.fails(&["hosts", "add", "gpu", "--relay", &relay.url(), "--key", &other_key]);
    assert!(changed.contains("another key") && changed.contains(&key), "{changed}");
    // A relay that leads to a host with another key: the name in the path is changed on the way.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let liar = format!("http://{}", listener.local_addr().unwrap());
    other.ok(&["relay", "add", &relay.url()]);
    let (to, from_key, to_key) = (relay.address.clone(), key.clone(), other_key);
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(&to).unwrap();
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let (wanted, given) = (from_key.clone(), to_key.clone());
            std::thread::spawn(move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    let bytes = if text.contains(&wanted) {
                        text.replace(&wanted, &given).into_bytes()
                    } else {
                        buffer[..count].to_vec()
                    };
                    if to.write_all(&bytes).is_err() {
                        break;
                    }
                }
            });
            let (mut from, mut to) = (far, near);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    let refused = two.near.fails(&["hosts", "add", "again", "--relay", &liar, "--key", &key]);
    assert!(refused.contains("did not prove again's key") && refused.contains("nothing was sent"), "{refused}");
    // The right way works without an invite: this machine is known there.
    let added = two.near.ok(&["hosts", "add", "again", "--relay", &relay.url(), "--key", &key]);
    assert!(added.contains("added again"), "{added}");
    // One that is not there, and one whose relay is not there.
    two.far.ok(&["relay", "remove", &relay.url()]);
    until("its leaving", || two.near.run(&["--host", "gpu", "ls"]).err.contains("not connected to"));
}
