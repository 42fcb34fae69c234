//! The relay itself: registers hosts, joins clients with them, and keeps nothing.

pub(crate) mod control;
mod counts;
mod directory;
pub(crate) mod head;
mod join;
pub(crate) mod places;
mod shell;

use crate::dial::{bad_pem, pem_chain, pem_key};
use crate::stream::{Socket, Stream};
use crate::{config, random};
use control::Host;
use counts::Counts;
use directory::Directory;
pub use directory::Shared;
use head::{Head, respond};
use holdfast_types::{HostKey, hex_text};
use places::{Full, Place, Places};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

/// How long a host may take to pick up a client, and how long a token is good.
const PICK_UP: Duration = Duration::from_secs(10);
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How a relay is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// A certificate chain and its key, PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// A proxy in front speaks TLS, and says for whom it asks.
    pub behind_proxy: bool,
    /// The name, with a port where the URL has one, under which hosts and clients know it; none: whatever they say.
    pub name: Option<String>,
    /// Its bounds.
    pub limits: Limits,
    /// The directory it shares with other relays; none: it knows its own hosts alone.
    pub shared: Option<Shared>,
}

/// What one relay bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address.
    pub of_address: usize,
    /// Clients of one host.
    pub clients_of_host: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        // About 20 kB for each connection that is idle: 400 MB. An office has one address. A host has a team's terminals.
        Limits { connections: 20_000, of_address: 512, clients_of_host: 256 }
    }
}

/// A relay that is bound.
pub struct Bound {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    relay: Arc<Relay>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bound({:?})", self.listener.local_addr())
    }
}

/// What connections share.
#[derive(Debug)]
pub(crate) struct Relay {
    hosts: Mutex<HashMap<HostKey, Host>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<(Socket, Place)>>>,
    places: Arc<Places>,
    counts: Counts,
    limits: Limits,
    name: Option<String>,
    behind_proxy: bool,
    directory: Option<Directory>,
}

/// Binds; refuses to listen beyond this machine without TLS unless a proxy has it.
pub async fn bind(config: &Config) -> io::Result<Bound> {
    if config.tls.is_none() && !config.behind_proxy && !config.listen.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "listening beyond this machine needs TLS (--tls-cert, --tls-key) or, with TLS in a proxy in front, --behind-proxy",
        ));
    }
    let tls = config.tls.as_ref().map(acceptor).transpose()?;
    let listener = TcpListener::bind(config.listen).await?;
    let relay = Relay {
        hosts: Mutex::default(),
        waiting: Mutex::default(),
        places: Arc::new(Places::new(config.limits.connections, config.limits.of_address)),
        counts: Counts::default(),
        limits: config.limits.clone(),
        name: config.name.as_ref().map(|name| name.to_ascii_lowercase()),
        behind_proxy: config.behind_proxy,
        directory: config.shared.as_ref().map(Directory::new).transpose()?,
    };
    Ok(Bound { listener, tls, relay: Arc::new(relay) })
}

fn acceptor((cert, key): &(PathBuf, PathBuf)) -> io::Result<TlsAcceptor> {
    let (chain, secret) = (pem_chain(cert)?, pem_key(key)?);
    let config = ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| bad_pem(cert, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl Bound {
    /// Where it listens: with the port that was found where none was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `over`, then takes its hosts out of the directory.
    pub async fn serve_until(self, over: impl Future<Output = ()>) {
        let relay = Arc::clone(&self.relay);
        tokio::select! {
            () = self.serve() => {}
            () = over => {}
        }
        if let Some(directory) = &relay.directory {
            directory.leave().await;
        }
    }

    /// Serves for ever.
    pub async fn serve(self) {
        let listed = async {
            match &self.relay.directory {
                Some(directory) => directory.follow(&self.relay).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.accept() => {}
            () = listed => {}
        }
    }

    async fn accept(&self) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else {
                // Out of descriptors: those who are connected go on.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (relay, tls) = (Arc::clone(&self.relay), self.tls.clone());
            tokio::spawn(async move { relay.greet(stream, from.ip(), tls).await });
        }
    }
}

impl Relay {
    fn hosts(&self) -> MutexGuard<'_, HashMap<HostKey, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<(Socket, Place)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host came or went: the directory is told.
    fn listed(&self) {
        if let Some(directory) = &self.directory {
            directory.changed();
        }
    }

    async fn greet(self: Arc<Self>, stream: TcpStream, from: IpAddr, tls: Option<TlsAcceptor>) {
        // Behind a proxy all come from one address until their heads are read: only the whole is bounded before.
        let first = if self.behind_proxy { None } else { Some(self.places.take(from)) };
        if let Some(Err(_)) = first {
            // A place is not even had for an answer.
            self.counts.crowded.add(1);
            return;
        }
        let _ = stream.set_nodelay(true);
        let mut stream = match tls {
            None => Stream::Plain(stream),
            Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                Ok(Ok(stream)) => Stream::Tls(Box::new(stream.into())),
                Ok(Err(_)) | Err(_) => return,
            },
        };
        let Some(head) = head::read(&mut stream).await else {
            return respond(&mut stream, "400 Bad Request", "text/plain", "not a request this relay understands\n")
                .await;
        };
        let place = match first {
            Some(place) => place,
            None => {
                let said = head.forwarded.as_deref().and_then(|text| text.parse().ok());
                self.places.take(said.unwrap_or(from))
            }
        };
        match place {
            Ok(place) => self.answer(stream, head, place).await,
            Err(full) => {
                self.counts.crowded.add(1);
                let (status, text) = match full {
                    Full::All => ("503 Service Unavailable", "this relay is full; try another one, or later\n"),
                    Full::Address => ("429 Too Many Requests", "too many connections from this address\n"),
                };
                respond(&mut stream, status, "text/plain", text).await;
            }
        }
    }

    async fn answer(self: Arc<Self>, mut stream: Stream, head: Head, place: Place) {
        let plain = "text/plain";
        if let Some(name) = self.name.as_ref().filter(|name| **name != head.host && !head.path.starts_with("/healthz"))
        {
            let text = format!("this relay is {name}\n");
            return respond(&mut stream, "421 Misdirected Request", plain, &text).await;
        }
        let Some(key) = head.key.clone() else {
            return match head.path.as_str() {
                "/healthz" => respond(&mut stream, "200 OK", plain, "ok\n").await,
                "/metrics" => {
                    let directory = self.directory.as_ref().map(Directory::is_up);
                    let text = self.counts.text(self.hosts().len(), self.places.open(), directory);
                    respond(&mut stream, "200 OK", "text/plain; version=0.0.4", &text).await;
                }
                path if path.starts_with("/c/") => self.tell_where(stream, &path["/c/".len()..]).await,
                path if path == "/i" || path.starts_with("/i/") => match shell::file(path) {
                    Some((kind, extra, bytes)) => head::file(&mut stream, kind, &extra, bytes).await,
                    None => respond(&mut stream, "404 Not Found", plain, "no such path\n").await,
                },
                "/" => respond(&mut stream, "200 OK", plain, "a holdfast relay\n").await,
                _ => respond(&mut stream, "404 Not Found", plain, "no such path\n").await,
            };
        };
        match head.path.trim_start_matches('/').split_once('/') {
            None if head.path == "/h" => {
                if let Some(socket) = upgraded(stream, &key, head.rest).await {
                    control::serve(&self, socket, &head.host).await;
                }
                drop(place);
            }
            Some(("c", host)) => self.client(stream, &key, head.rest, host, place).await,
            Some(("d", token)) => {
                let waits = self.waiting().remove(token);
                let Some(waits) = waits else {
                    return respond(&mut stream, "404 Not Found", plain, "the token is unknown, used or too old\n")
                        .await;
                };
                if let Some(socket) = upgraded(stream, &key, head.rest).await {
                    let _ = waits.send((socket, place));
                }
            }
            _ => respond(&mut stream, "404 Not Found", plain, "no such path\n").await,
        }
    }

    /// Says in words where a host is, for browsers: they are not told why a WebSocket was refused, and follow no redirect of one.
    async fn tell_where(&self, mut stream: Stream, host: &str) {
        let asked = host.parse::<HostKey>().ok();
        let is_here = asked.is_some_and(|host| self.hosts().contains_key(&host));
        let elsewhere = match asked.zip(self.directory.as_ref()) {
            Some((asked, directory)) if !is_here => directory.elsewhere(&asked).await.map(|url| url.to_string()),
            _ => None,
        };
        let text = serde_json::json!({ "here": is_here, "elsewhere": elsewhere }).to_string();
        head::words(&mut stream, &text).await;
    }

    async fn client(&self, mut stream: Stream, key: &str, rest: Vec<u8>, host: &str, place: Place) {
        let plain = "text/plain";
        let asked = host.parse::<HostKey>().ok();
        let known = asked.and_then(|host| self.hosts().get(&host).cloned());
        let Some(host) = known else {
            if let Some((asked, directory)) = asked.zip(self.directory.as_ref())
                && let Some(other) = directory.elsewhere(&asked).await
            {
                self.counts.sent_on.add(1);
                return head::redirect(&mut stream, &format!("{other}/c/{host}")).await;
            }
            self.counts.not_there.add(1);
            return respond(&mut stream, "404 Not Found", plain, "that host is not connected to this relay\n").await;
        };
        let (token, (sender, picked_up)) = (hex_text(&random::<16>()), oneshot::channel());
        let Ok(_client) = host.clients.clone().try_acquire_owned() else {
            self.counts.crowded.add(1);
            return respond(&mut stream, "429 Too Many Requests", plain, "too many clients of that host\n").await;
        };
        let waits = Waits(self, token.clone());
        self.waiting().insert(token.clone(), sender);
        if host.dial.try_send(token).is_err() {
            self.counts.crowded.add(1);
            return respond(&mut stream, "429 Too Many Requests", plain, "that host is busy; try again\n").await;
        }
        // Nothing refers to the host's control connection any more: if it goes, this one goes on.
        drop(host.dial);
        let Some(mut client) = upgraded(stream, key, rest).await else { return };
        let picked_up = timeout(PICK_UP, picked_up).await;
        drop(waits);
        let Ok(Ok((host, hosts_place))) = picked_up else {
            self.counts.not_dialled.add(1);
            let frame = CloseFrame { code: CloseCode::Again, reason: "the host does not answer".into() };
            let _ = timeout(HANDSHAKE, client.close(Some(frame))).await;
            return;
        };
        self.counts.joined.add(1);
        join::join(client, host, &self.counts.bytes).await;
        drop((place, hosts_place));
    }
}

/// A token that nobody waits for any more is forgotten.
struct Waits<'a>(&'a Relay, String);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

pub(crate) async fn upgraded(mut stream: Stream, key: &str, rest: Vec<u8>) -> Option<Socket> {
    timeout(HANDSHAKE, head::upgrade(&mut stream, key)).await.ok()?.ok()?;
    Some(WebSocketStream::from_partially_read(stream, rest, Role::Server, Some(config())).await)
}
