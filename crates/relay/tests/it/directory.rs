//! Several relays with one directory.

use crate::etcd::{Etcds, free_ports};
use crate::world::{ask, ask_at, bound, client, host, runtime, until, waiting};
use holdfast_relay::server::{Limits, Shared};
use holdfast_relay::{Cluster, ReachError, RelayUrl};
use holdfast_types::hex_text;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Short, so that a test sees it end.
const LEASE: Duration = Duration::from_secs(3);

/// A relay with a directory, which leaves when it is asked to and dies when it is dropped.
struct Relay {
    url: RelayUrl,
    leave: Option<oneshot::Sender<()>>,
    runtime: Option<tokio::runtime::Runtime>,
    served: tokio::task::JoinHandle<()>,
}

impl Relay {
    fn start(etcds: &Etcds) -> Relay {
        let (runtime, port) = (runtime(), free_ports(1)[0]);
        let url: RelayUrl = format!("http://127.0.0.1:{port}").parse().unwrap();
        let shared = Shared { cluster: Cluster::of(&etcds.named()).unwrap(), url: url.clone(), lease: LEASE };
        let bound = runtime.block_on(bound(port, Limits::default(), Some(shared)));
        let (leave, left) = oneshot::channel::<()>();
        // A relay whose test is over is not asked to leave.
        let over = async { drop(left.await) };
        let served = runtime.spawn(bound.serve_until(over));
        Relay { url, leave: Some(leave), runtime: Some(runtime), served }
    }

    fn leave(mut self) {
        self.leave.take().unwrap().send(()).unwrap();
        self.runtime.as_ref().unwrap().block_on(&mut self.served).unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Before the sender: it dies, and does not leave.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn through(known: &Relay) -> Option<RelayUrl> {
    ask(&known.url, client()).ok().map(|reached| reached.relay)
}

/// What a relay says to a browser that asks where the host is.
fn words(relay: &RelayUrl) -> String {
    let mut stream = TcpStream::connect(relay.address()).unwrap();
    let host = hex_text(&host().public());
    write!(stream, "GET /c/{host} HTTP/1.1\r\nhost: {}\r\n\r\n", relay.address()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_client_is_sent_on_to_the_relay_that_has_its_host_and_a_dead_relay_is_forgotten() {
    let etcds = Etcds::start(1);
    let [first, second] = [(); 2].map(|()| Relay::start(&etcds));
    assert!(matches!(ask(&second.url, client()), Err(ReachError::NotThere(_))), "nobody has it yet");
    let _arrivals = waiting(&first.url);
    until("the second relay to know", || through(&second).is_some());
    assert_eq!(through(&second), Some(first.url.clone()));
    assert_eq!(through(&first), Some(first.url.clone()));
    // Browsers ask in words.
    let words = |url| serde_json::from_str::<serde_json::Value>(&words(url)).unwrap();
    assert_eq!(words(&second.url), serde_json::json!({ "here": false, "elsewhere": first.url.to_string() }));
    assert_eq!(words(&first.url), serde_json::json!({ "here": true, "elsewhere": null }));
    assert_eq!(etcds.entries().len(), 1);
    // Dead, not gone: the second one sends clients there until the lease is over, and then to nobody.
    drop(first);
    until(
        "the dead relay to be forgotten",
        || matches!(ask(&second.url, client()), Err(ReachError::NotThere(at)) if at == second.url.to_string()),
    );
    assert_eq!(etcds.entries(), []);
}

#[test]
fn a_relay_that_ends_is_forgotten_at_once() {
    let etcds = Etcds::start(1);
    let relay = Relay::start(&etcds);
    let _arrivals = waiting(&relay.url);
    until("the entry", || etcds.entries().len() == 1);
    relay.leave();
    assert_eq!(etcds.entries(), [], "before its lease is over");
}

#[test]
fn while_the_directory_is_away_a_relay_serves_its_own_and_one_that_begins_anew_has_everything_again() {
    let mut etcds = Etcds::start(1);
    let [first, second] = [(); 2].map(|()| Relay::start(&etcds));
    let _arrivals = waiting(&first.url);
    until("the second relay to know", || through(&second).is_some());
    etcds.kill(0);
    assert_eq!(through(&first), Some(first.url.clone()));
    assert!(matches!(ask(&second.url, client()), Err(ReachError::NotThere(_))), "it cannot know");
    etcds.begin_anew(0);
    until("the second relay to know again", || through(&second) == Some(first.url.clone()));
}

#[test]
fn the_leader_of_three_etcds_is_killed_and_no_host_is_forgotten() {
    let mut etcds = Etcds::start(3);
    let [first, second] = [(); 2].map(|()| Relay::start(&etcds));
    let _arrivals = waiting(&first.url);
    until("the second relay to know", || through(&second).is_some());
    let before = etcds.entries();
    let leader = etcds.leader();
    etcds.kill(leader);
    until("the second relay to know again", || through(&second) == Some(first.url.clone()));
    assert_eq!(etcds.entries(), before, "under the same lease");
}

/// Answers every request with the same redirection, and counts.
fn sends_on(listener: TcpListener, to: String, asked: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 2048]);
            asked.fetch_add(1, Ordering::SeqCst);
            let _ = write!(stream, "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        }
    });
}

#[test]
fn relays_that_send_a_client_around_do_not_keep_it() {
    let [one, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [at_one, at_other] = [&one, &other].map(|listener| format!("http://{}", listener.local_addr().unwrap()));
    let asked = Arc::new(AtomicUsize::new(0));
    let path = format!("/c/{}", hex_text(&host().public()));
    sends_on(one, format!("{at_other}{path}"), Arc::clone(&asked));
    sends_on(other, format!("{at_one}{path}"), Arc::clone(&asked));
    let reached = ask_at(vec![at_one.parse().unwrap()], None, client());
    assert!(matches!(reached, Err(ReachError::NotThere(_))), "{reached:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
