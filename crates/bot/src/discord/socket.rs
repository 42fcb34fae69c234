//! A WebSocket to the gateway, with TLS unless the gateway is on this machine.

use crate::config::check_api;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tungstenite::WebSocket;
use tungstenite::protocol::WebSocketConfig;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// How often a reader looks at the clock.
pub const LOOK: Duration = Duration::from_millis(200);
/// Longest event: a message has 4,000 characters.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A stream with or without TLS.
pub enum Stream {
    Plain(TcpStream),
    Sealed(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(into),
            Stream::Sealed(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Sealed(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Sealed(stream) => stream.flush(),
        }
    }
}

/// Connects to `wss://…`, or `ws://` on this machine.
pub fn connect(url: &str) -> Result<WebSocket<Stream>, String> {
    let (tls, rest) = match (url.strip_prefix("wss://"), url.strip_prefix("ws://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err("the gateway's address is none".into()),
    };
    if !tls && check_api(&format!("http://{}", rest.split('?').next().unwrap_or_default())).is_err() {
        return Err("the gateway is elsewhere and has no TLS".into());
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| "the gateway's port is none")?),
        None => (authority, if tls { 443 } else { 80 }),
    };
    let addresses = (host, port).to_socket_addrs().map_err(|_| "the gateway's host is not found")?;
    let stream = addresses.into_iter().find_map(|address| TcpStream::connect_timeout(&address, CONNECT).ok());
    let stream = stream.ok_or("the gateway cannot be reached")?;
    let failed = |_: io::Error| "the connection to the gateway failed".to_owned();
    stream.set_read_timeout(Some(CONNECT)).map_err(failed)?;
    stream.set_write_timeout(Some(CONNECT)).map_err(failed)?;
    let look = stream.try_clone().map_err(failed)?;
    let stream = if tls { sealed(host, stream)? } else { Stream::Plain(stream) };
    let config =
        WebSocketConfig::default().max_message_size(Some(EVENT_BYTES_MAX)).max_frame_size(Some(EVENT_BYTES_MAX));
    let slash = if rest.contains('/') { "" } else { "/" };
    let (scheme, query) = (if tls { "wss" } else { "ws" }, if rest.contains('?') { "" } else { "?v=10&encoding=json" });
    let url = format!("{scheme}://{rest}{slash}{query}");
    let opened = tungstenite::client::client_with_config(url, stream, Some(config));
    let (socket, _) = opened.map_err(|_| "the gateway does not speak WebSocket".to_owned())?;
    look.set_read_timeout(Some(LOOK)).map_err(failed)?;
    Ok(socket)
}

fn sealed(host: &str, stream: TcpStream) -> Result<Stream, String> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| "there is no TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| "the gateway's host is no name")?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|_| "there is no TLS")?;
    Ok(Stream::Sealed(Box::new(StreamOwned::new(connection, stream))))
}
