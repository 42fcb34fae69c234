//! Where the host listens itself, for devices that reach it without a relay: `<state>/direct.json`.
//!
//! Off unless a human turned it on. Whoever connects is as much a stranger as at a relay: the same channel, the same guests, places of their own.

use crate::serve::Server;
use holdfast_relay::RelayUrl;
use holdfast_store::{DIRECT, Survives, get_json, put_json};
use holdfast_types::{Actor, Right};
use holdfast_wire::devices::{DIRECT_MAX, DirectParams, DirectView, RelaysAnswer};
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

pub(super) const FILE: &str = "direct.json";
/// Between two tries to listen: an address may come with its network.
const AGAIN: Duration = Duration::from_secs(5);
/// Routed as everything is that is not near, and nobody's: nothing is sent there.
const FAR_V4: &str = "192.0.2.1:9";
const FAR_V6: &str = "[2001:db8::1]:9";

/// As it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    listen: SocketAddr,
    addresses: Vec<String>,
}

/// Where the host really listens, or why it does not: for both threads.
#[derive(Debug, Default, Clone)]
pub(super) struct Listening(Arc<Mutex<Option<Result<SocketAddr, String>>>>);

impl Listening {
    fn set(&self, state: Option<Result<SocketAddr, String>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn get(&self) -> Option<Result<SocketAddr, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is wanted, and how it stands.
#[derive(Debug)]
pub(super) struct Own {
    state: PathBuf,
    kept: RefCell<Option<Kept>>,
    pub listening: Listening,
}

impl Own {
    pub fn load(state: &Path) -> Own {
        let kept = get_json(&DIRECT, &state.join(FILE)).map(Option::flatten).unwrap_or_else(|why| {
            tracing::error!("{}: {why}; this host does not listen itself", state.join(FILE).display());
            None
        });
        Own { state: state.to_owned(), kept: RefCell::new(kept), listening: Listening::default() }
    }

    /// Where to listen.
    pub fn wanted(&self) -> Option<SocketAddr> {
        self.kept.borrow().as_ref().map(|kept| kept.listen)
    }

    /// Where devices are told to find the host.
    pub fn addresses(&self) -> Vec<String> {
        match (&*self.kept.borrow(), self.listening.get()) {
            (Some(kept), Some(Ok(_))) if !kept.addresses.is_empty() => kept.addresses.clone(),
            (Some(_), Some(Ok(at))) => own_addresses(at).iter().map(ToString::to_string).collect(),
            (_, _) => Vec::new(),
        }
    }

    pub fn view(&self) -> Option<DirectView> {
        let listen = self.wanted()?;
        let (listen, why) = match self.listening.get() {
            Some(Ok(at)) => (at, None),
            Some(Err(why)) => (listen, Some(why)),
            None => (listen, None),
        };
        let up = matches!(self.listening.get(), Some(Ok(_)));
        Some(DirectView { listen: listen.to_string(), addresses: self.addresses(), up, why })
    }

    async fn keep(&self, kept: Option<Kept>) -> Result<(), Fault> {
        let (state, wanted) = (self.state.clone(), kept.clone());
        let write = move || put_json(&DIRECT, &state, FILE, &wanted, Survives::PowerCut);
        let written = crate::disk::at_disk(write).await;
        written.map_err(|error| Fault::new(Code::Unrecorded, format!("cannot write {FILE}: {error}")))?;
        *self.kept.borrow_mut() = kept;
        self.listening.set(None);
        Ok(())
    }
}

/// Whether the next host will listen itself.
pub(super) fn is_wanted(state: &Path) -> bool {
    matches!(get_json::<Option<Kept>>(&DIRECT, &state.join(FILE)), Ok(Some(Some(_))))
}

/// Where others reach a socket that listens here: at every address, so at the one that this machine speaks from.
fn own_addresses(at: SocketAddr) -> Vec<SocketAddr> {
    if !at.ip().is_unspecified() {
        return vec![at];
    }
    let from = |here: &str, far: &str| -> Option<IpAddr> {
        let socket = UdpSocket::bind(here).ok()?;
        socket.connect(far).ok()?;
        socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback())
    };
    let v6 = at.is_ipv6().then(|| from("[::]:0", FAR_V6)).flatten();
    [from("0.0.0.0:0", FAR_V4), v6].into_iter().flatten().map(|ip| SocketAddr::new(ip, at.port())).collect()
}

/// A socket that listens, as soon as there can be one.
pub(super) async fn bind(listen: SocketAddr, listening: &Listening) -> TcpListener {
    loop {
        match TcpListener::bind(listen).await.and_then(|listener| Ok((listener.local_addr()?, listener))) {
            Ok((at, listener)) => {
                tracing::info!("listens for devices at {at}");
                listening.set(Some(Ok(at)));
                return listener;
            }
            Err(error) => {
                tracing::warn!("cannot listen for devices at {listen}: {error}");
                listening.set(Some(Err(error.to_string())));
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Server {
    /// Listens itself, or stops. Clients that are connected stay until they go.
    pub(crate) async fn relay_direct(
        &self,
        params: &DirectParams,
        by: &Actor,
        path: &holdfast_door::Path,
    ) -> Result<RelaysAnswer, Fault> {
        if path.is_remote() {
            return Err(Fault::new(Code::Denied, "whether this host listens is decided on its own machine"));
        }
        self.registry.must_hold(by, Right::Configure, "let this host listen")?;
        if !self.registry.shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, "only a human may let this host listen for devices"));
        }
        self.relays.host_key()?;
        let bad = |message: String| Fault::new(Code::BadRequest, message);
        let kept = match &params.listen {
            None => None,
            Some(text) => {
                let listen = text
                    .parse()
                    .map_err(|_| bad(format!("invalid address {text:?}; expected IP:PORT, as in 0.0.0.0:7434")))?;
                if params.addresses.len() > DIRECT_MAX {
                    return Err(bad(format!("at most {DIRECT_MAX} addresses")));
                }
                for address in &params.addresses {
                    RelayUrl::direct(address)
                        .map_err(|_| bad(format!("invalid address {address:?}; expected NAME:PORT")))?;
                }
                Some(Kept { listen, addresses: params.addresses.clone() })
            }
        };
        let listen = kept.as_ref().map(|kept| kept.listen);
        self.relays.own.keep(kept).await?;
        self.relays.listen(listen);
        self.relays.list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_at_one_address_is_found_there_and_one_at_all_of_them_never_at_loopback() {
        let at: SocketAddr = "192.168.1.5:7434".parse().unwrap();
        assert_eq!(own_addresses(at), [at]);
        for found in own_addresses("0.0.0.0:7434".parse().unwrap()) {
            assert!(!found.ip().is_loopback() && !found.ip().is_unspecified() && found.port() == 7434, "{found}");
        }
    }

    #[test]
    fn a_damaged_file_opens_no_port() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Some(Kept { listen: "127.0.0.1:7434".parse().unwrap(), addresses: vec![] });
        put_json(&DIRECT, dir.path(), FILE, &kept, Survives::Crash).unwrap();
        assert!(Own::load(dir.path()).wanted().is_some() && is_wanted(dir.path()));
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Own::load(dir.path()).wanted().is_none() && !is_wanted(dir.path()));
    }
}
