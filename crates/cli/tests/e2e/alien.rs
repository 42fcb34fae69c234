//! Hosts and keepers of other versions.

use holdfast_abi::protocol::{FromKeeper, refused};
use holdfast_harness::{Home, Terminal, until};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A keeper that speaks another version: it refuses every hello, and counts them.
fn alien_keeper(path: &Path) -> &'static AtomicUsize {
    let hellos: &'static AtomicUsize = Box::leak(Box::default());
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    // It ends with the test's process.
    std::thread::spawn(move || {
        while let Ok(visitor) = rustix::net::accept_with(&socket, SocketFlags::CLOEXEC) {
            let _ = rustix::net::recv(&visitor, &mut [0u8; 8192], RecvFlags::empty());
            let mut out = Vec::new();
            FromKeeper::Refused { code: refused::VERSION, fence: 0, stream: 0, seq: 0 }.encode(&mut out);
            let _ = rustix::net::send(&visitor, &out, SendFlags::NOSIGNAL);
            hellos.fetch_add(1, Ordering::SeqCst);
        }
    });
    hellos
}

#[test]
fn a_new_host_serves_the_keepers_of_the_old_one() {
    let home = Home::new();
    home.session("s", "stty -echo; echo ready; while read -r line; do echo got $line; done");
    home.until_screen_shows("s", "ready");
    let (terminal, _client) = Terminal::attached(&home, "s", "80x24");
    let keeper = home.number("s", "keeper_pid");
    for n in 0..3 {
        home.kill_host();
        // The installed program was replaced: the keeper program of the old one is gone from the disk too.
        std::fs::remove_dir_all(home.join("bin")).unwrap();
        home.ok(&["send", "s", "--enter", &format!("round {n}")]);
        terminal.wait_text(&format!("got round {n}"));
        assert_eq!(home.number("s", "keeper_pid"), keeper);
        home.session(&format!("new{n}"), "echo fresh; exec cat");
        home.until_screen_shows(&format!("new{n}"), "fresh");
    }
}

#[test]
fn a_keeper_of_an_unknown_version_is_shown_as_unknown_and_left_alone() {
    let home = Home::new();
    home.session("old", "stty -echo; echo ready; while read -r line; do echo got $line; done");
    home.session("other", "exec cat");
    home.until_screen_shows("old", "ready");
    let pid = home.number("old", "pid");
    let id = home.json(&["info", "old"])["id"].as_str().unwrap().to_owned();
    home.kill_host();
    let socket = home.join("run").join(format!("{id}.k"));
    let aside = home.join("run").join("aside");
    std::fs::rename(&socket, &aside).unwrap();
    let hellos = alien_keeper(&socket);
    let view = home.json(&["info", "old"]);
    assert_eq!(view["life"], "unknown", "{view}");
    assert!(view["note"].as_str().unwrap().contains("version"), "{view}");
    assert!(home.ok(&["ls"]).contains("unknown"));
    assert_eq!(hellos.load(Ordering::SeqCst), 1, "asked once");
    for args in [&["end", "old"][..], &["send", "old", "x"], &["resize", "old", "9x9"], &["attach", "old"]] {
        assert_ne!(home.run(args).status, 0, "{args:?}");
    }
    assert!(home.fails(&["send", "old", "x"]).contains("version"));
    assert!(home.fails(&["new", "-d", "-n", "old", "--", "cat"]).contains("already"), "its name is not given away");
    assert!(socket.exists(), "its socket is left alone");
    assert!(!holdfast_harness::gone(pid as u32), "and so is its process");
    assert_eq!(home.json(&["info", "other"])["life"], "running");
    home.run(&["end", "--all", "--grace", "0"]);
    assert!(!holdfast_harness::gone(pid as u32), "even when everything is ended");
    // The right version is back.
    home.kill_host();
    std::fs::rename(&aside, &socket).unwrap();
    home.ok(&["send", "old", "--enter", "back"]);
    home.until_screen_shows("old", "got back");
    until("its end", || (home.run(&["end", "old", "--grace", "0"]).status == 0).then_some(()));
}
