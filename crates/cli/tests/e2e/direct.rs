//! Sessions of another machine without a relay in between, where it can be reached so.

use crate::relays::{Relay, Two};
use holdfast_client::{Connection, Identity};
use holdfast_harness::{DETACH, Home, Terminal, until};
use holdfast_wire::devices::DirectParams;
use holdfast_wire::operations::op;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

/// How the near machine reaches the far one now.
fn path(two: &Two) -> String {
    two.near.json(&["hosts", "ls"])[0]["path"].as_str().unwrap_or_default().to_owned()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Connections at a relay, but for the one that asks.
fn connections(relay: &Relay) -> u64 {
    let metrics = relay.get("/metrics");
    let line = metrics.lines().find(|line| line.starts_with("holdfast_relay_connections "));
    line.and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or_else(|| panic!("{metrics}")) - 1
}

#[test]
fn a_host_that_listens_is_reached_without_its_relay_and_through_it_when_it_stops() {
    let two = Two::new();
    let mut relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    two.far.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc"]);
    assert!(two.far.ok(&["relay", "direct"]).contains("does not listen"));
    two.invited(&["--host-wide"]);
    assert_eq!(path(&two), "relay");
    let told = two.far.ok(&["relay", "direct", "--listen", &format!("127.0.0.1:{}", free_port())]);
    assert!(told.contains("listens on 127.0.0.1:"), "{told}");
    // Said inside the channel, and used at once.
    assert_eq!(path(&two), "direct");
    relay.stop();
    assert_eq!(two.near.ok(&["run", "gpu/work", "--", "echo $((6 * 7))"]), "42\n");
    assert!(two.far.ok(&["journal", "work"]).contains("human:tester."));
    // A killed host listens again.
    two.far.kill_host();
    two.far.host_pid();
    assert_eq!(path(&two), "direct");
    let relay = Relay::at(&two.near, &relay.address.clone());
    until("the relay", || two.far.ok(&["relay", "ls"]).contains("  up"));
    two.far.ok(&["relay", "direct", "--off"]);
    assert_eq!(path(&two), "relay");
    // What is used is not taken, and what is wrong is said.
    let taken = two.far.fails(&["relay", "direct", "--listen", &relay.address]);
    assert!(taken.contains("cannot listen") && taken.contains("--off"), "{taken}");
    assert!(
        two.far.fails(&["relay", "direct", "--listen", "127.0.0.1:0", "--address", "nowhere"]).contains("NAME:PORT")
    );
    assert!(two.far.fails(&["relay", "add", "direct://127.0.0.1:1"]).contains("not a relay"));
    // Neither an agent nor a device opens a port.
    let agent = two.far.fails(&["--as", "agent:bot", "relay", "direct", "--listen", "127.0.0.1:0"]);
    assert!(agent.contains("`configure`"), "{agent}");
    let device = two.near.fails(&["--host", "gpu", "relay", "direct", "--listen", "127.0.0.1:0"]);
    assert!(device.contains("this machine only"), "{device}");
    let socket = two.near.join("gpu.sock");
    let mut connect = two.near.command(&["connect", "gpu", "--socket", socket.to_str().unwrap()]);
    let mut connect = connect.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the socket", || socket.exists());
    let who = Identity::load_or_make(&two.near.places(), &"agent:sdk".parse().unwrap()).unwrap();
    let mut through = Connection::open(UnixStream::connect(&socket).unwrap(), &who).unwrap();
    let params = DirectParams { listen: Some("127.0.0.1:0".into()), ..DirectParams::default() };
    let refused = through.call::<op::RelayDirect>(&params).unwrap_err().to_string();
    assert!(refused.contains("own machine"), "{refused}");
    connect.kill().unwrap();
    connect.wait().unwrap();
}

#[test]
fn an_attached_terminal_moves_from_the_relay_to_the_host_itself_and_back() {
    let two = Two::new();
    let relay = Relay::start(&two.near);
    two.far.ok(&["relay", "add", &relay.url()]);
    let listen = format!("127.0.0.1:{}", free_port());
    two.far.ok(&["relay", "direct", "--listen", &listen]);
    let count =
        "n=0; stty -echo; while read line; do n=$((n + 1)); echo \"line $n: $line\" >> log; echo \"had $line\"; done";
    two.far.session("work", count);
    two.invited(&["--host-wide"]);
    assert_eq!(path(&two), "direct", "it knows the address");
    let terminal = Terminal::new("80x24");
    let mut client = terminal.start(two.near.command(&["attach", "gpu/work"]));
    until("the client", || two.far.clients("work") == 1);
    let types = |text: &str| {
        terminal.types(format!("{text}\r"));
        terminal.wait_for("the line's output", |seen| seen.shows(&format!("had {text}")));
    };
    types("one");
    assert_eq!(connections(&relay), 1, "the host waits there, and nobody else");
    // It listens no more, and its connections break: back to the relay.
    two.far.ok(&["relay", "direct", "--off"]);
    two.far.kill_host();
    types("two");
    until("the way through the relay", || connections(&relay) == 3);
    // It listens again.
    two.far.ok(&["relay", "direct", "--listen", &listen]);
    until("the way without the relay", || connections(&relay) == 1);
    types("three");
    drop(relay);
    types("four");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    let log = std::fs::read_to_string(two.far.join("log")).unwrap();
    assert_eq!(log, "line 1: one\nline 2: two\nline 3: three\nline 4: four\n");
}

#[test]
fn a_host_that_listens_needs_no_relay_for_an_invite() {
    let two = Two::new();
    two.far.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc"]);
    two.far.ok(&["relay", "direct", "--listen", "127.0.0.1:0"]);
    let made = two.invited(&["--host-wide"]);
    assert!(made["link"].as_str().unwrap().starts_with("direct://127.0.0.1:"), "{made}");
    assert_eq!(path(&two), "direct");
    assert!(two.near.ok(&["--host", "gpu", "ls"]).contains("work"));
    // Somebody else at that address is not spoken to.
    let other = Home::new();
    let key = other.ok(&["host", "key"]).trim().to_owned();
    let at = made["link"].as_str().unwrap().split("/i#").next().unwrap().to_owned();
    let refused = two.near.fails(&["hosts", "add", "other", "--relay", &at, "--key", &key]);
    assert!(refused.contains("not connected") || refused.contains("did not prove"), "{refused}");
}
