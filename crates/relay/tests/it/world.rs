//! A host, a client and a relay on this machine.

use holdfast_channel::{Secret, exchange_key};
use holdfast_relay::server::{Bound, Config, Limits, Shared, bind};
use holdfast_relay::{
    Arrival, Dialer, Direct, Guests, ReachError, Reached, RelayUrl, Standing, Wanted, answer, reach, wait,
};
use holdfast_types::{Handle, HostKey};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn host() -> Secret {
    Secret::new([1; 32])
}

pub fn client() -> Secret {
    Secret::new([2; 32])
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A relay on this machine, for as long as the runtime lives.
pub fn relay(runtime: &tokio::runtime::Runtime, limits: Limits) -> RelayUrl {
    let bound = runtime.block_on(bound(0, limits, None));
    let address = bound.address().unwrap();
    runtime.spawn(bound.serve());
    format!("http://{address}").parse().unwrap()
}

/// A relay that is bound to a port of this machine; 0 is any.
pub async fn bound(port: u16, limits: Limits, shared: Option<Shared>) -> Bound {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    bind(&Config { listen, tls: None, behind_proxy: false, name: None, limits, shared }).await.unwrap()
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct One;

impl Guests for One {
    fn known(&self, key: &[u8; 32]) -> Option<Handle> {
        (*key == exchange_key(&client().public()).unwrap()).then(|| "human:ann".parse().unwrap())
    }

    fn invite(&self, _: &[u8; 16]) -> Option<[u8; 32]> {
        None
    }
}

/// A host that waits at a relay, and gives those who arrive; until the test ends.
pub fn waiting(url: &RelayUrl) -> Receiver<Arrival> {
    let (sender, arrivals) = channel();
    let (up, is_up) = channel();
    let url = url.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let dialer = Dialer::new(None).unwrap();
            let sender = Rc::new(sender);
            let stands = |standing| {
                if standing == Standing::Up {
                    let _ = up.send(());
                }
            };
            let dial = |token: String| {
                let (dialer, url, sender) = (dialer.clone(), url.clone(), Rc::clone(&sender));
                tokio::task::spawn_local(async move {
                    answer(&dialer, &url, &token, &host(), &One, |arrival| drop(sender.send(arrival))).await;
                });
            };
            wait(&dialer, &url, &host(), stands, dial).await;
        });
    });
    is_up.recv_timeout(PATIENCE).unwrap();
    arrivals
}

pub fn ask(url: &RelayUrl, secret: Secret) -> Result<Reached, ReachError> {
    ask_at(vec![url.clone()], None, secret)
}

/// At several places, and perhaps moving to the host's own address.
pub fn ask_at(at: Vec<RelayUrl>, moves_every: Option<Duration>, secret: Secret) -> Result<Reached, ReachError> {
    reach(Wanted { at, moves_every }, HostKey(host().public()), secret, None)
}

/// The same host, listening itself; until the test ends.
pub fn listening(listener: TcpListener) -> Receiver<Arrival> {
    let (sender, arrivals) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let direct = Direct::new(Arc::new(host()), Arc::new(One));
            direct.serve(listener, move |arrival| drop(sender.send(arrival))).await;
        });
    });
    arrivals
}
