//! Garbage on the sockets: whoever sends it is cut off, everybody else is unaffected.

use holdfast_harness::{Home, Random, Terminal, gone, until};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A session with a terminal attached; both must be there afterwards.
struct Bystander {
    home: Home,
    terminal: Terminal,
    client: holdfast_harness::Client,
    host: u32,
    pid: u64,
    round: usize,
}

impl Bystander {
    fn new() -> Bystander {
        let home = Home::new();
        home.session("s", "stty -echo; echo ready; while read -r line; do echo got $line; done");
        let (terminal, client) = Terminal::attached(&home, "s", "80x24");
        terminal.wait_text("ready");
        let (host, pid) = (home.host_pid(), home.number("s", "pid"));
        Bystander { home, terminal, client, host, pid, round: 0 }
    }

    #[track_caller]
    fn unaffected(&mut self) {
        self.round += 1;
        self.terminal.types(format!("round {}\r", self.round));
        self.terminal.wait_text(&format!("got round {}", self.round));
        assert_eq!(self.home.host_pid(), self.host, "the same host");
        assert_eq!(self.home.number("s", "pid"), self.pid, "the same child");
        assert!(!gone(self.client.pid), "the same client");
        self.terminal.settle(&self.home, "s");
    }
}

/// Says something on the host's socket and gives what came back until the host hung up, or said nothing for a while.
fn say(home: &Home, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(home.places().host_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32 + 1).to_le_bytes();
    [&length[..], &[kind], payload].concat()
}

#[test]
fn garbage_on_the_hosts_socket_hurts_nobody_else() {
    let mut bystander = Bystander::new();
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let json = |text: &str| frame(1, text.as_bytes());
    let speeches: Vec<Vec<u8>> = vec![
        vec![],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 4],
        u32::MAX.to_le_bytes().to_vec(),
        frame(9, b"{}"),
        frame(1, b"\xff\xfe"),
        frame(2, &[0xff, 0xff, 0xff, 0xff]),
        json("{}"),
        json("null"),
        json(&deep),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.fly"}"#),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.new","params":{"command":[],"cwd":""}}"#),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.new","params":{"command":["x\u0000y"],"cwd":"/"}}"#),
        json(
            r#"{"jsonrpc":"2.0","id":1,"method":"session.new","params":{"command":["cat"],"cwd":"/","env":["=", "a", "K=\u0000"]}}"#,
        ),
        json(
            r#"{"jsonrpc":"2.0","id":1,"method":"session.new","params":{"command":["cat"],"cwd":"/","ring_bytes":18446744073709551615}}"#,
        ),
        json(
            r#"{"jsonrpc":"2.0","id":1,"method":"session.read","params":{"session":"s","from":18446744073709551615}}"#,
        ),
        json(
            r#"{"jsonrpc":"2.0","id":1,"method":"session.send","params":{"session":"s","stream":1,"seq":18446744073709551615}}"#,
        ),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.send","params":{"session":"s","stream":1,"seq":0}}"#),
        json(
            r#"{"jsonrpc":"2.0","id":1,"method":"session.attach","params":{"session":"s","size":"80x24","resume":{"connection":1,"answers":true}}}"#,
        ),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.update","params":{"session":"s","client":77,"size":"9x9"}}"#),
        json(r#"{"jsonrpc":"2.0","id":1,"method":"session.screen","params":{"session":"s","history":4294967295}}"#),
        json(
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"session.wait","params":{"session":"s","timeout_ms":1}}"#,
        ),
        json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        json(r#"{"jsonrpc":"2.0","method":"host.stop"}"#),
        [&(9u32 << 20).to_le_bytes()[..], &[1]].concat(),
        [&(7u32 << 20).to_le_bytes()[..], &[1], &vec![b' '; 1 << 20]].concat(),
    ];
    for speech in &speeches {
        say(&bystander.home, speech);
    }
    bystander.unaffected();
    let mut random = Random::from_seed();
    for _ in 0..200 {
        let count = random.below(300) as usize;
        let mut bytes = random.bytes(count);
        if count > 5 && random.below(2) == 0 {
            // A frame that is whole, with garbage inside.
            bytes[..4].copy_from_slice(&(count as u32 - 4).to_le_bytes());
            bytes[4] = 1 + (random.below(2) as u8);
        }
        let mut stream = UnixStream::connect(bystander.home.places().host_socket()).unwrap();
        let _ = stream.write_all(&bytes);
    }
    bystander.unaffected();
    let before = holdfast_harness::open_files(bystander.host);
    assert!(before < 60, "connections are let go: {before} descriptors");
}

#[test]
fn a_large_send_with_a_seq_at_its_end_does_not_crash_the_host() {
    let mut bystander = Bystander::new();
    let params = br#"{"jsonrpc":"2.0","id":1,"method":"session.send","params":{"session":"s","stream":1,"seq":18446744073709551615}}"#;
    let mut payload = (params.len() as u32).to_le_bytes().to_vec();
    payload.extend_from_slice(params);
    payload.extend_from_slice(&[b'\n'; 10_000]);
    say(&bystander.home, &frame(2, &payload));
    bystander.unaffected();
}

/// A connection to a keeper's socket.
fn keeper(path: &Path) -> Option<rustix::fd::OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).ok()?;
    Some(socket)
}

#[test]
fn garbage_on_a_keepers_socket_hurts_nobody_else() {
    let mut bystander = Bystander::new();
    let id = bystander.home.json(&["info", "s"])["id"].as_str().unwrap().to_owned();
    let path = bystander.home.join("run").join(format!("{id}.k"));
    let mut random = Random::from_seed();
    for round in 0..300 {
        let Some(socket) = keeper(&path) else { continue };
        for _ in 0..random.below(4) + 1 {
            let count = [0, 1, 5, 18, 19, 200, 8192, 9000, 60_000][random.below(9) as usize];
            let mut bytes = random.bytes(count);
            if let Some(kind) = bytes.first_mut() {
                *kind %= 0x14;
            }
            if round % 5 == 0 && count == 19 {
                // A hello with a wrong token, as a host and as a client.
                bytes[..3].copy_from_slice(&[1, 1, (round % 2) as u8]);
            }
            let _ = rustix::net::send(&socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
    bystander.unaffected();
}

#[test]
fn silent_connections_to_a_keeper_do_not_shut_others_out_for_ever() {
    let mut bystander = Bystander::new();
    let id = bystander.home.json(&["info", "s"])["id"].as_str().unwrap().to_owned();
    let path = bystander.home.join("run").join(format!("{id}.k"));
    let silent: Vec<_> = (0..200).map_while(|_| keeper(&path)).collect();
    bystander.unaffected();
    drop(silent);
    until("another terminal to be attached", || {
        let terminal = Terminal::new("80x24");
        let _client = terminal.run(&bystander.home, &["attach", "s"]);
        holdfast_harness::poll(|| terminal.peek(|seen| seen.shows("ready")).then_some(()))
    });
    bystander.unaffected();
}

#[test]
fn a_thousand_idle_connections_to_the_host_hurt_nobody() {
    let mut bystander = Bystander::new();
    let before = holdfast_harness::open_files(bystander.host);
    let idle: Vec<_> =
        (0..500).filter_map(|_| UnixStream::connect(bystander.home.places().host_socket()).ok()).collect();
    bystander.unaffected();
    drop(idle);
    until("them to be let go", || (holdfast_harness::open_files(bystander.host) <= before + 3).then_some(()));
}
