//! The listener: who may connect, how many, and for how long without a word.

use crate::guard::{Names, Paces};
use crate::patient::Patient;
use crate::seats::{Seat, Seats};
use crate::{openapi, preview, rest};
use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use holdfast_door::{Cap, Handle, Path, Speaker};
use holdfast_wire::Fault;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How long a request's head, or a handshake, may take: a client that needs longer only holds a connection.
pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);
/// How long a peer may take nothing of an answer: a tunnel, not a closed laptop.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(90);
/// After so much silence a peer's machine is asked whether it is up, as often and with as many pauses: one that is not would hold
/// what it waited for.
const ALIVE_AFTER: Duration = Duration::from_secs(60);
const ALIVE_EVERY: Duration = Duration::from_secs(15);
const ALIVE_TRIES: u32 = 4;
/// Buffer of a connection at most: a long head fits.
pub(crate) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Where and how to listen, as it is also kept on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// Where.
    pub address: SocketAddr,
    /// With TLS.
    pub tls: Option<Tls>,
    /// Names under which this host may be asked, beside `localhost` and addresses.
    pub names: Vec<String>,
    /// Beyond this machine without TLS: the user said so.
    pub insecure: bool,
}

impl Listen {
    /// Whether the connection is private, or the user allowed that it is not.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.address.ip().is_loopback() || self.tls.is_some() || self.insecure
    }
}

/// A certificate and its key, PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The chain, ours first.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A listener that was bound.
pub struct Bound {
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    names: Names,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bound({:?})", self.listener.local_addr())
    }
}

impl Bound {
    /// Where it listens: with the port that was found where none was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Another descriptor of the socket: while it is open nobody else gets the port.
    pub fn listener(&self) -> io::Result<std::net::TcpListener> {
        self.listener.try_clone()
    }
}

/// Binds, unless a host before this one did and the socket was `held`; refuses to listen beyond this machine where what is said could be read on the way.
pub async fn bind(listen: &Listen, held: Option<std::net::TcpListener>) -> io::Result<Bound> {
    if !listen.is_allowed() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "listening beyond this machine needs TLS (--tls-cert, --tls-key) or, on a private network, --insecure-listen",
        ));
    }
    let tls = listen.tls.as_ref().map(acceptor).transpose()?;
    let known = std::iter::once("localhost".to_owned()).chain(listen.names.iter().cloned()).collect();
    let names = Names { known, tls: tls.is_some() };
    // Not tied to the runtime it was bound in: it is served on a thread of its own.
    let listener = match held {
        Some(held) => held,
        None => TcpListener::bind(listen.address).await?.into_std()?,
    };
    listener.set_nonblocking(true)?;
    Ok(Bound { listener, tls, names })
}

fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let bad =
        |path: &PathBuf, why: String| io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display()));
    let chain = CertificateDer::pem_file_iter(&tls.cert).map_err(|e| bad(&tls.cert, e.to_string()))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|e| bad(&tls.cert, e.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|e| bad(&tls.key, e.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| bad(&tls.cert, e.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Http {
    pub handle: Handle,
    pub names: Names,
    pub paces: Paces,
    pub openapi: String,
    pub previews: preview::Previews,
}

/// Serves until the host ends, on whatever runtime this is.
pub async fn serve(bound: Bound, handle: Handle) {
    let Ok(address) = bound.address() else { return };
    let Ok(listener) = TcpListener::from_std(bound.listener) else { return };
    let schema = holdfast_wire::schema::document();
    let endpoints = rest::endpoints(&schema);
    let openapi = openapi::document(&schema, &endpoints).to_string();
    let previews = preview::Previews::new(address, bound.tls.clone());
    let http = Arc::new(Http { handle, names: bound.names, paces: Paces::default(), openapi, previews });
    accept_all(listener, bound.tls, rest::router(http, endpoints)).await;
}

impl Http {
    /// Who sent a request, if its token is good, it does not ask too often, and there is a place for its connection.
    pub async fn admit(
        &self,
        extensions: &Extensions,
        headers: &HeaderMap,
        path: fn(Cap) -> Path,
    ) -> Result<Speaker, Fault> {
        let speaker = self.paces.admit(&self.handle, headers, path).await?;
        Seat::of(extensions).map_or(Ok(()), |seat| seat.known(&speaker))?;
        Ok(speaker)
    }
}

/// Answers everybody who connects, as far as there are places ([`Seats`]).
pub(crate) async fn accept_all(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router) {
    let seats = Arc::new(Seats::default());
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Out of descriptors: those who are connected go on.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (router, tls, seat) = (router.clone(), tls.clone(), seats.come(from.ip()));
        tokio::spawn(async move {
            tokio::select! {
                () = greet(stream, tls, router, &seat) => {}
                () = seat.over() => {}
            }
        });
    }
}

async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, seat: &Arc<Seat>) {
    // Keys go one by one.
    let _ = stream.set_nodelay(true);
    let alive = TcpKeepalive::new().with_time(ALIVE_AFTER).with_interval(ALIVE_EVERY).with_retries(ALIVE_TRIES);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&alive);
    let stream = Patient::new(stream, UNREAD_WAIT);
    match tls {
        None => converse(stream, router, seat).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_WAIT, tls.accept(stream)).await {
                converse(stream, router, seat).await;
            }
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router, seat: &Arc<Seat>) {
    let seat = Arc::downgrade(seat);
    let service = tower::service_fn(move |mut request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        // Held by whoever answers: a WebSocket has its connection's place for as long as it lives.
        seat.upgrade().map(|seat| request.extensions_mut().insert(seat));
        async move { tower::Service::call(&mut router, request.map(Body::new)).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .half_close(false)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let _ = connection.with_upgrades().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_kept_is_read_too() {
        let text = r#"{"address":"0.0.0.0:1","tls":["cert.pem","key.pem"],"names":[],"insecure":false}"#;
        let tls = Some(Tls { cert: "cert.pem".into(), key: "key.pem".into() });
        let address = "0.0.0.0:1".parse().unwrap();
        let listen = Listen { address, tls, names: Vec::new(), insecure: false };
        assert_eq!(serde_json::from_str::<Listen>(text).unwrap(), listen);
    }
}
