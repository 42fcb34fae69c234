//! The HTTP port while the host is away: it is nobody else's for a moment.

use crate::http::Http;
use holdfast_harness::{command_line, gone, kill, until};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Another program of the machine, which tries to get the port again and again.
struct Squatter {
    over: Arc<AtomicBool>,
    tries: Arc<AtomicU32>,
    thread: Option<std::thread::JoinHandle<bool>>,
}

impl Squatter {
    fn at(address: &str) -> Squatter {
        let (over, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (address, done, count) = (address.to_owned(), Arc::clone(&over), Arc::clone(&tries));
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if TcpListener::bind(&address).is_ok() {
                    return true;
                }
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
            false
        });
        Squatter { over, tries, thread: Some(thread) }
    }

    /// Until it has tried a few times more.
    fn tries_on(&self) {
        let before = self.tries.load(Ordering::Relaxed);
        let over = || self.thread.as_ref().is_none_or(std::thread::JoinHandle::is_finished);
        until("another try", || over() || self.tries.load(Ordering::Relaxed) > before + 3);
    }

    fn got_it(mut self) -> bool {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The process that holds the port beside the host, once it can be reached.
fn holder(http: &Http, but: u32) -> u32 {
    let holds = |pid: &u32| *pid != but && command_line(*pid).ends_with("host hold ") && !gone(*pid);
    let reachable = || std::os::unix::net::UnixStream::connect(http.home.places().http_socket()).is_ok();
    until("a holder of the port", || http.home.processes().into_iter().find(holds).filter(|_| reachable()))
}

#[test]
fn nobody_takes_the_same_port_of_the_other_family() {
    if let Err(error) = TcpListener::bind("[::1]:0") {
        // Then nobody can take it there.
        eprintln!("this machine has no [::1]: {error}");
        return;
    }
    let http = Http::new();
    let holder = holder(&http, 0);
    let port = http.address().rsplit_once(':').unwrap().1.to_owned();
    for other in [format!("[::1]:{port}"), format!("[::]:{port}")] {
        until("the other family", || TcpListener::bind(&other).is_err());
        http.home.kill_host();
        assert!(TcpListener::bind(&other).is_err(), "{other} can be taken");
        // Who asks there is told at once, and tries the other one.
        let refused = std::net::TcpStream::connect(format!("[::1]:{port}")).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        until("the next host", || http.home.host_answers());
    }
    http.home.ok(&["host", "stop"]);
    until("the holder's end", || gone(holder));
    drop(TcpListener::bind(format!("[::1]:{port}")).expect("free again"));
}

#[test]
fn nobody_takes_the_port_while_the_host_is_killed_or_restarted() {
    let http = Http::new();
    let answers = || http.get("/sessions").status == 200;
    let first = holder(&http, 0);
    let squatter = Squatter::at(http.address());
    let killed = http.home.kill_host();
    squatter.tries_on();
    until("the next host", || http.home.host_answers().filter(|pid| *pid != killed));
    assert!(answers(), "at the same address");
    http.home.ok(&["host", "restart"]);
    assert!(answers());
    // One that was killed is replaced, by a host that did not start it.
    kill(first);
    let second = holder(&http, first);
    let killed = http.home.kill_host();
    squatter.tries_on();
    until("the next host", || http.home.host_answers().filter(|pid| *pid != killed));
    assert!(answers());
    assert!(!squatter.got_it(), "another program took the port");
    http.home.ok(&["host", "stop"]);
    until("the holder's end", || gone(second));
    drop(TcpListener::bind(http.address()).expect("a port that is not used any more is free"));
}
