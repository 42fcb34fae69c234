//! Previews: a port that a session's processes listen on, opened in a browser.
//!
//! What listens there is not ours: its scripts must neither reach this host's page nor another preview. So each preview has a
//! listener of its own, and with it an origin of its own; on this machine also a name of its own (`hf-….localhost`), so that its
//! cookies go nowhere else. A browser comes in by a ticket that serves once, and gets a cookie that opens this preview and nothing
//! else. Neither ticket nor cookie is passed on.
//!
//! Who may use it is asked of the host with the first request of each second, and while a connection is open: the right to type
//! in the session, by the login that opened the preview.

mod enter;
mod forward;
mod serve;

use crate::guard;
use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest::read_json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use holdfast_door::{Path, Speaker};
use holdfast_wire::{Code, Fault};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Previews at once, each on one of as many ports behind the host's own: a firewall or `ssh -L` can let them all through.
const PREVIEWS_MAX: u16 = 16;
/// Of one actor: others find one too.
const OF_ONE_MAX: usize = 8;
/// How long a ticket serves: a browser uses it at once.
const TICKET_WAIT: Duration = Duration::from_secs(30);
/// Tickets of a preview that were not used yet: clicks in half a minute.
const TICKETS_MAX: usize = 16;
/// How long what the host said is taken as said: a page of a hundred files asks it once.
const SAID_WAIT: Duration = Duration::from_secs(1);
/// WebSockets of a preview at once: a few tabs.
const TUNNELS_MAX: usize = 32;
/// What is asked for in a request to open one.
const OPEN_BYTES_MAX: usize = 4096;

/// All previews of a host.
pub(crate) struct Previews {
    at: SocketAddr,
    tls: Option<TlsAcceptor>,
    open: Mutex<Vec<Arc<Preview>>>,
    /// One is opened at a time.
    opening: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Previews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Previews({:?})", self.at)
    }
}

/// One preview: a port of a session, for one login.
struct Preview {
    by: Speaker,
    /// The session's id.
    session: String,
    /// The port in the session.
    port: u16,
    /// Where it listens.
    at: u16,
    /// As a browser names it in `Host`.
    authority: String,
    /// As a browser names it in `Origin`.
    origin: String,
    is_tls: bool,
    /// What its cookie has.
    secret: String,
    tickets: Mutex<Vec<(String, Instant)>>,
    said: tokio::sync::Mutex<Option<(Instant, Option<SocketAddr>)>>,
    used: Mutex<Instant>,
    /// Connections that are open, and places for WebSockets that are free.
    connections: AtomicUsize,
    tunnels: Arc<Semaphore>,
    over: watch::Sender<bool>,
}

/// The routes.
pub fn routes() -> Router<Arc<Http>> {
    Router::new().route("/v1/previews", post(open))
}

async fn open(State(http): State<Arc<Http>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let opened = async {
        let by = http.admit(&head.extensions, &head.headers, Path::Http).await?;
        let fields = read_json(&head.headers, body, OPEN_BYTES_MAX).await?;
        let session = fields.get("session").and_then(Value::as_str);
        let port = fields.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let (Some(session), Some(port)) = (session, port) else {
            return Err(Fault::new(Code::BadRequest, "a preview needs a `session` and a `port`"));
        };
        let reached = http.handle.reach(&by, session, port, true).await?;
        if reached.address.is_none() {
            return Err(Fault::new(Code::NotFound, format!("no process of this session listens on port {port}"))
                .hint("is the server still running?"));
        }
        let name = name(&head.headers, http.previews.tls.is_some());
        let preview = http.previews.open(&http, by, reached.session, port, &name).await?;
        Ok(preview.ticket())
    };
    match opened.await {
        Ok(url) => axum::Json(json!({ "url": url })).into_response(),
        Err(fault) => Refused(fault).into_response(),
    }
}

/// The name under which a browser will ask for the preview: on this machine one of its own, elsewhere the one it knows this host by.
fn name(headers: &HeaderMap, is_tls: bool) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = guard::name_of(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_here = name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    // A certificate has no such names.
    if is_here && !is_tls { "localhost".into() } else { name.to_ascii_lowercase() }
}

impl Previews {
    pub fn new(at: SocketAddr, tls: Option<TlsAcceptor>) -> Previews {
        Previews { at, tls, open: Mutex::default(), opening: tokio::sync::Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Preview>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The preview of this port for this login; the same one where it is open already.
    async fn open(
        &self,
        http: &Arc<Http>,
        by: Speaker,
        session: String,
        port: u16,
        name: &str,
    ) -> Result<Arc<Preview>, Fault> {
        let _alone = self.opening.lock().await;
        let is_it = |open: &&Arc<Preview>| {
            open.is_of(&by) && open.session == session && open.port == port && open.is_called(name)
        };
        if let Some(known) = self.all().iter().find(is_it) {
            return Ok(Arc::clone(known));
        }
        self.make_room(&by).await?;
        let (at, listeners) = self.bind().await?;
        let is_tls = self.tls.is_some();
        let preview = Arc::new(Preview::new(by, session, port, at, name, is_tls));
        self.all().push(Arc::clone(&preview));
        tokio::spawn(serve::serve(Arc::clone(http), Arc::clone(&preview), listeners, self.tls.clone()));
        Ok(preview)
    }

    /// One actor's previews are bounded; of those that nobody has open, the one that was used least lately goes.
    async fn make_room(&self, by: &Speaker) -> Result<(), Fault> {
        let idle = {
            let all = self.all();
            let of_one: Vec<_> = all.iter().filter(|open| open.by.actor.id == by.actor.id).collect();
            if of_one.len() < OF_ONE_MAX && all.len() < usize::from(PREVIEWS_MAX) {
                return Ok(());
            }
            of_one.into_iter().filter(|open| !open.is_used()).min_by_key(|open| open.last_used()).cloned()
        };
        let Some(idle) = idle else {
            return Err(Fault::new(Code::TooMany, "too many previews are open").hint("close some of their tabs"));
        };
        idle.end();
        // Until its port is free.
        idle.over.closed().await;
        Ok(())
    }

    /// A port behind the host's own, in both families: a browser may try either for `localhost`.
    async fn bind(&self) -> Result<(u16, Vec<TcpListener>), Fault> {
        for step in 1..=PREVIEWS_MAX {
            // Browsers leave out the usual ports, and a name without one would be another.
            let Some(port) = self.at.port().checked_add(step).filter(|port| ![80, 443].contains(port)) else {
                continue;
            };
            let Ok(first) = TcpListener::bind((self.at.ip(), port)).await else { continue };
            let other: IpAddr = match self.at.ip() {
                IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
                IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => return Ok((port, vec![first])),
            };
            match TcpListener::bind((other, port)).await {
                Ok(second) => return Ok((port, vec![first, second])),
                // Somebody else would get what a browser means for us.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                // This machine has only one of them.
                Err(_) => return Ok((port, vec![first])),
            }
        }
        let (from, to) = (self.at.port().saturating_add(1), self.at.port().saturating_add(PREVIEWS_MAX));
        Err(Fault::new(Code::TooMany, format!("no free port for a preview between {from} and {to}"))
            .hint("close some previews, or the programs that use these ports"))
    }

    fn forget(&self, gone: &Arc<Preview>) {
        self.all().retain(|open| !Arc::ptr_eq(open, gone));
    }
}

impl Preview {
    fn new(by: Speaker, session: String, port: u16, at: u16, name: &str, is_tls: bool) -> Preview {
        let name = if name == "localhost" { format!("hf-{}.localhost", &random()[..12]) } else { name.to_owned() };
        let scheme = if is_tls { "https" } else { "http" };
        let authority = format!("{name}:{at}");
        Preview {
            by,
            session,
            port,
            at,
            origin: format!("{scheme}://{authority}"),
            authority,
            is_tls,
            secret: random(),
            tickets: Mutex::default(),
            said: tokio::sync::Mutex::default(),
            used: Mutex::new(Instant::now()),
            connections: AtomicUsize::new(0),
            tunnels: Arc::new(Semaphore::new(TUNNELS_MAX)),
            over: watch::Sender::new(false),
        }
    }

    /// Whether it was opened by this login: another one of the same actor may have fewer rights, or end earlier.
    fn is_of(&self, by: &Speaker) -> bool {
        let token = |speaker: &Speaker| speaker.path.cap().map(|cap| cap.token.clone());
        self.by.actor == by.actor && token(&self.by) == token(by)
    }

    fn is_called(&self, name: &str) -> bool {
        guard::name_of(&self.authority) == name || (name == "localhost" && self.has_own_name())
    }

    /// No other preview ever has its origin.
    fn has_own_name(&self) -> bool {
        guard::name_of(&self.authority).ends_with(".localhost")
    }

    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_used(&self) -> bool {
        self.connections.load(Ordering::Relaxed) > 0 || self.tunnels.available_permits() < TUNNELS_MAX
    }

    fn use_now(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Closes it, with all its connections.
    fn end(&self) {
        self.over.send_replace(true);
    }

    /// Where its port is reached now; an error where this login may no longer.
    async fn address(&self, http: &Http) -> Result<Option<SocketAddr>, Fault> {
        let mut said = self.said.lock().await;
        if let Some((at, address)) = *said
            && at.elapsed() < SAID_WAIT
        {
            return Ok(address);
        }
        let address = http.handle.reach(&self.by, &self.session, self.port, false).await?.address;
        *said = Some((Instant::now(), address));
        Ok(address)
    }
}

/// Waits until a preview is over.
async fn is_over(over: &mut watch::Receiver<bool>) {
    // Without what it gives: that cannot wait on another thread.
    let _ = over.wait_for(|is_over| *is_over).await.map(|_| ());
}

/// 128 random bits as text.
fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel gives random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether what this fault says lasts: who asks again gets the same answer.
fn is_final(fault: &Fault) -> bool {
    matches!(fault.code, Code::Denied | Code::Unidentified | Code::NotFound | Code::Ended | Code::Lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_this_machine_a_preview_has_a_name_of_its_own() {
        let name = |host: &'static str, tls| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            super::name(&headers, tls)
        };
        for here in ["127.0.0.1:7433", "localhost:7433", "[::1]:7433", "LocalHost"] {
            assert_eq!(name(here, false), "localhost", "{here}");
        }
        assert_eq!(name("127.0.0.1:7433", true), "127.0.0.1");
        assert_eq!(name("Box.example:7433", true), "box.example");
        assert_eq!(name("192.168.1.7:7433", false), "192.168.1.7");
    }
}
