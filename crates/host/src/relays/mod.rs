//! The host behind relays: its key, the relays it waits at, and clients that arrive through them.
//!
//! Everything that a relay or a stranger can make expensive (TLS, handshakes, sealing) is done on a thread of its own, which asks nothing of the
//! host's thread but to serve a client whose channel is up. Until then a client is nobody: it has proven a key by its channel, and
//! says inside who it is.

mod devices;
mod direct;
mod enrol;
mod page;

pub use devices::Devices;
pub use enrol::{Arrived, passes_on};

use crate::serve::Server;
use devices::GuestList;
use holdfast_channel::Secret;
use holdfast_relay::{Arrival, Dialer, Direct, RelayUrl, Standing};
use holdfast_store::{HOST_KEY, RELAYS, Survives, create, get_json, put_json, seal_json};
use holdfast_types::{Home, HostKey, TimeMs, hex_bytes, hex_text};
use holdfast_wire::devices::{RelayView, RelaysAnswer};
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

/// Relays of a host: two or three do, and each costs a connection.
const RELAYS_MAX: usize = 8;
/// Clients at once, those whose channel is not up yet included: a relay that asks for more is not served.
const CLIENTS_MAX: usize = 512;
const KEY_FILE: &str = "host.key";
const RELAYS_FILE: &str = "relays.json";

/// The host's key as it is kept.
#[derive(Serialize, Deserialize)]
struct KeyFile {
    secret: String,
}

/// Reads the host's key, and makes it at first. Two hosts cannot make two: the one that comes second takes the first one's.
pub fn load_key(state: &Path) -> io::Result<Secret> {
    let path = state.join(KEY_FILE);
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged", path.display()));
    loop {
        if let Some(KeyFile { secret }) = get_json(&HOST_KEY, &path)? {
            let bytes = hex_bytes(&secret).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
            return Ok(Secret::new(bytes));
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the kernel gives random bytes");
        match create(&path, &seal_json(&HOST_KEY, &KeyFile { secret: hex_text(&secret) })?) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
}

/// Whether the next host will wait at a relay or listen itself: then nobody who comes that way could start it.
#[must_use]
pub fn waits_at_relays(home: &Home) -> bool {
    let known = get_json::<Vec<String>>(&RELAYS, &home.state.join(RELAYS_FILE));
    known.is_ok_and(|known| known.is_some_and(|known| !known.is_empty())) || direct::is_wanted(&home.state)
}

/// What this machine calls itself, up to the first dot.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fits = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    name.trim().split('.').next().unwrap_or_default().chars().filter(fits).take(64).collect()
}

/// How the host stands with each relay, for both threads.
type Standings = Arc<Mutex<BTreeMap<RelayUrl, (Standing, TimeMs)>>>;

/// What the thread of the relays is told.
#[derive(Debug)]
enum Order {
    Wait(RelayUrl),
    Leave(RelayUrl),
    /// Listen for clients here, or nowhere.
    Listen(Option<SocketAddr>),
}

/// The host's side of its relays.
#[derive(Debug)]
pub struct Relays {
    home: Home,
    /// None: the key's file is damaged; nothing works by relays then, and everything else does.
    key: Result<Secret, String>,
    orders: mpsc::UnboundedSender<Order>,
    standings: Standings,
    own: direct::Own,
    /// Taken by the thread when it starts.
    begin: std::cell::RefCell<Option<mpsc::UnboundedReceiver<Order>>>,
}

impl Relays {
    /// Reads key and relays; nothing is dialled yet.
    pub fn load(home: &Home) -> Relays {
        let key = load_key(&home.state).map_err(|error| error.to_string());
        if let Err(why) = &key {
            tracing::error!(
                "{}: {why}; this host cannot be reached through relays",
                home.state.join(KEY_FILE).display()
            );
        }
        let known: Vec<String> =
            get_json(&RELAYS, &home.state.join(RELAYS_FILE)).map(Option::unwrap_or_default).unwrap_or_else(|why| {
                tracing::error!("{}: {why}; no relay is dialled", home.state.join(RELAYS_FILE).display());
                Vec::new()
            });
        let (orders, begin) = mpsc::unbounded_channel();
        let standings = Standings::default();
        let (own, begin) = (direct::Own::load(&home.state), std::cell::RefCell::new(Some(begin)));
        let relays = Relays { home: home.clone(), key, orders, standings, own, begin };
        relays.own.wanted().into_iter().for_each(|listen| relays.listen(Some(listen)));
        known.iter().filter_map(|url| url.parse().ok()).for_each(|url| relays.order(url));
        relays
    }

    fn standings(&self) -> MutexGuard<'_, BTreeMap<RelayUrl, (Standing, TimeMs)>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, url: RelayUrl) {
        self.standings().insert(url.clone(), (Standing::Down("connecting".into()), crate::now_ms()));
        let _ = self.orders.send(Order::Wait(url));
    }

    fn listen(&self, at: Option<SocketAddr>) {
        let _ = self.orders.send(Order::Listen(at));
    }

    /// Where it can be reached without a relay.
    pub fn direct(&self) -> Vec<String> {
        self.own.addresses()
    }

    /// The public half of the host's key.
    pub fn host_key(&self) -> Result<HostKey, Fault> {
        let secret =
            self.key.as_ref().map_err(|why| Fault::new(Code::Damaged, format!("this host has no key: {why}")))?;
        Ok(HostKey(secret.public()))
    }

    /// What the host calls itself.
    pub fn name(&self) -> String {
        machine_name()
    }

    /// Where the host can be reached.
    pub fn urls(&self) -> Vec<String> {
        self.standings().keys().map(ToString::to_string).collect()
    }

    /// Its relays.
    pub fn list(&self) -> Result<RelaysAnswer, Fault> {
        let view = |(url, (standing, since)): (&RelayUrl, &(Standing, TimeMs))| RelayView {
            url: url.to_string(),
            up: *standing == Standing::Up,
            since_ms: *since,
            why: if let Standing::Down(why) = standing { Some(why.clone()) } else { None },
        };
        Ok(RelaysAnswer {
            key: self.host_key()?,
            name: self.name(),
            relays: self.standings().iter().map(view).collect(),
            direct: self.own.view(),
        })
    }

    fn parse(url: &str) -> Result<RelayUrl, Fault> {
        url.parse().map_err(|error: holdfast_relay::UrlError| Fault::new(Code::BadRequest, error.to_string()))
    }

    async fn keep(&self, urls: Vec<String>) -> Result<(), Fault> {
        let state = self.home.state.clone();
        let write = move || put_json(&RELAYS, &state, RELAYS_FILE, &urls, Survives::PowerCut);
        let written = crate::disk::at_disk(write).await;
        written.map_err(|error| Fault::new(Code::Unrecorded, format!("cannot write the relays: {error}")))
    }

    /// Waits at one more.
    pub async fn add(&self, url: &str) -> Result<RelaysAnswer, Fault> {
        self.host_key()?;
        let url = Relays::parse(url)?;
        if url.is_direct() {
            return Err(Fault::new(Code::BadRequest, format!("{url} is not a relay"))
                .hint("to be reached without one: holdfast relay direct --listen IP:PORT"));
        }
        let mut urls = self.urls();
        if urls.contains(&url.to_string()) {
            return self.list();
        }
        if urls.len() >= RELAYS_MAX {
            return Err(Fault::new(Code::TooMany, format!("this host waits at {RELAYS_MAX} relays already"))
                .hint("remove one: holdfast relay remove URL"));
        }
        urls.push(url.to_string());
        self.keep(urls).await?;
        self.order(url);
        self.list()
    }

    /// Waits there no longer. Clients that came through it stay until they go.
    pub async fn remove(&self, url: &str) -> Result<RelaysAnswer, Fault> {
        let url = Relays::parse(url)?;
        let mut urls = self.urls();
        if !urls.contains(&url.to_string()) {
            return Err(Fault::new(Code::NoSuchRelay, format!("this host does not wait at {url}"))
                .hint("see `holdfast relay ls`"));
        }
        urls.retain(|known| *known != url.to_string());
        self.keep(urls).await?;
        self.standings().remove(&url);
        let _ = self.orders.send(Order::Leave(url));
        self.list()
    }
}

/// Begins to wait at the relays, and serves whoever arrives.
pub fn begin(server: &Rc<Server>) {
    let relays = &server.relays;
    let (Some(orders), Ok(secret)) = (relays.begin.borrow_mut().take(), relays.key.clone()) else { return };
    let (arrivals, mut arrived) = mpsc::channel(64);
    let mut orders = orders;
    let thread = Thread {
        secret: Arc::new(secret),
        guests: server.devices.borrow().guests(),
        standings: Arc::clone(&relays.standings),
        listening: relays.own.listening.clone(),
        arrivals,
        room: Arc::new(Semaphore::new(CLIENTS_MAX)),
    };
    // Most hosts have no relay: the thread comes with the first.
    tokio::task::spawn_local(async move {
        let Some(first) = orders.recv().await else { return };
        let run = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => tokio::task::LocalSet::new().block_on(&runtime, thread.run(first, orders)),
            Err(error) => tracing::error!("relays: {error}"),
        };
        if let Err(error) = std::thread::Builder::new().name("holdfast-relay".into()).spawn(run) {
            tracing::error!("relays: {error}");
        }
    });
    let server = Rc::clone(server);
    tokio::task::spawn_local(async move {
        while let Some(arrival) = arrived.recv().await {
            tokio::task::spawn_local(Rc::clone(&server).serve_arrival(arrival));
        }
    });
}

/// What the thread of the relays has.
struct Thread {
    secret: Arc<Secret>,
    guests: Arc<GuestList>,
    standings: Standings,
    listening: direct::Listening,
    arrivals: mpsc::Sender<Arrival>,
    room: Arc<Semaphore>,
}

impl Thread {
    async fn run(self, first: Order, mut orders: mpsc::UnboundedReceiver<Order>) {
        let dialer = match Dialer::from_env() {
            Ok(dialer) => dialer,
            Err(error) => return tracing::error!("relays: {error}"),
        };
        let this = Rc::new(self);
        let mut waiting: BTreeMap<RelayUrl, AbortHandle> = BTreeMap::new();
        let mut listens: Option<AbortHandle> = None;
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Wait(url) => {
                    let waits = tokio::task::spawn_local(Rc::clone(&this).wait(dialer.clone(), url.clone()));
                    if let Some(other) = waiting.insert(url, waits.abort_handle()) {
                        other.abort();
                    }
                }
                Order::Leave(url) => waiting.remove(&url).iter().for_each(AbortHandle::abort),
                Order::Listen(at) => {
                    listens.iter().for_each(AbortHandle::abort);
                    let listen = |at| tokio::task::spawn_local(Rc::clone(&this).listen(at)).abort_handle();
                    listens = at.map(listen);
                }
            }
            next = orders.recv().await;
        }
    }

    /// Clients that are connected go on when it is aborted.
    async fn listen(self: Rc<Self>, at: SocketAddr) {
        let listener = direct::bind(at, &self.listening).await;
        let direct = Direct::new(Arc::clone(&self.secret), Arc::clone(&self.guests));
        direct.serve(listener, move |arrival| drop(self.arrivals.try_send(arrival))).await;
    }

    async fn wait(self: Rc<Self>, dialer: Dialer, url: RelayUrl) {
        let stands = |standing: Standing| {
            let mut standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
            // One that was left meanwhile is not listed again.
            if let Some(known) = standings.get_mut(&url)
                && known.0 != standing
            {
                match &standing {
                    Standing::Up => tracing::info!("waits at {url}"),
                    Standing::Down(why) => tracing::warn!("{why}"),
                }
                *known = (standing, crate::now_ms());
            }
        };
        let dial = |token: String| {
            // Whoever is too many is not picked up, and told so by the relay.
            let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else { return };
            let (this, dialer, url) = (Rc::clone(&self), dialer.clone(), url.clone());
            tokio::task::spawn_local(async move {
                let arrived = |arrival| drop(this.arrivals.try_send(arrival));
                holdfast_relay::answer(&dialer, &url, &token, &this.secret, &*this.guests, arrived).await;
                drop(place);
            });
        };
        holdfast_relay::wait(&dialer, &url, &self.secret, stands, dial).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_and_is_for_its_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let first = load_key(dir.path()).unwrap();
        assert_eq!(load_key(dir.path()).unwrap().public(), first.public());
        let path = dir.path().join(KEY_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A damaged one is told, and not replaced: clients know the host by it.
        std::fs::write(&path, "x").unwrap();
        assert!(load_key(dir.path()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }
}
