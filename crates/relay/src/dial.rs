//! Dialling a relay: TCP, TLS, and the upgrade to a WebSocket.

use crate::stream::{Socket, Stream};
use crate::url::RelayUrl;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::http::StatusCode;

/// Names a PEM file with further authorities for relays' certificates: those of a company, or a relay's own.
pub const CA_VARIABLE: &str = "HOLDFAST_RELAY_CA";

/// How long a relay may take to answer: a slow line, not a dead one.
const DIAL: Duration = Duration::from_secs(10);
/// As much of a relay's answer as is shown.
const ANSWER_CHARS_MAX: usize = 120;

/// Why a relay was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It is not there, or its certificate is not good.
    #[error("cannot connect to {0}: {1}")]
    Connect(String, io::Error),
    /// It does not answer.
    #[error("{0} does not answer")]
    Silent(String),
    /// It answered, and does not serve this.
    #[error("{0} refused: {2}")]
    Refused(String, u16, String),
    /// It is no relay.
    #[error("{0} is not a relay: {1}")]
    NoRelay(String, String),
}

/// Dials relays, with the authorities that their certificates may come from.
#[derive(Clone)]
pub struct Dialer(TlsConnector);

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    /// With the world's authorities, and those in a PEM file.
    pub fn new(authorities: Option<&Path>) -> io::Result<Dialer> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = authorities {
            let bad = |why: String| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{CA_VARIABLE}={}: {why}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| bad(e.to_string()))? {
                let certificate = certificate.map_err(|e| bad(e.to_string()))?;
                roots.add(certificate).map_err(|e| bad(e.to_string()))?;
            }
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Dialer(TlsConnector::from(Arc::new(config))))
    }

    /// As the environment says.
    pub fn from_env() -> io::Result<Dialer> {
        Dialer::new(std::env::var_os(CA_VARIABLE).filter(|path| !path.is_empty()).as_ref().map(Path::new))
    }

    /// A WebSocket to a path of the relay.
    pub(crate) async fn dial(&self, url: &RelayUrl, path: &str) -> Result<Socket, DialError> {
        tokio::time::timeout(DIAL, self.dial_now(url, path)).await.map_err(|_| DialError::Silent(url.to_string()))?
    }

    async fn dial_now(&self, url: &RelayUrl, path: &str) -> Result<Socket, DialError> {
        let failed = |error| DialError::Connect(url.to_string(), error);
        let stream = TcpStream::connect((url.name(), url.port())).await.map_err(failed)?;
        // Keys go one by one.
        let _ = stream.set_nodelay(true);
        let stream = if url.tls() {
            let name = ServerName::try_from(url.name().to_owned()).map_err(|e| failed(io::Error::other(e)))?;
            Stream::Tls(Box::new(self.0.connect(name, stream).await.map_err(failed)?.into()))
        } else {
            Stream::Plain(stream)
        };
        let asked = format!("{}://{}{path}", if url.tls() { "wss" } else { "ws" }, url.address());
        match client_async_with_config(asked, stream, Some(crate::config())).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                let text = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                let text: String = text.trim().chars().filter(|c| !c.is_control()).take(ANSWER_CHARS_MAX).collect();
                let reason = answer.status().canonical_reason().unwrap_or_default().to_owned();
                let text = if text.is_empty() { reason } else { text };
                Err(DialError::Refused(url.to_string(), answer.status().as_u16(), text))
            }
            Err(Error::Io(error)) => Err(failed(error)),
            Err(error) => Err(DialError::NoRelay(url.to_string(), error.to_string())),
        }
    }
}

impl DialError {
    /// The relay is there, and what was asked for is not.
    #[must_use]
    pub fn is_not_there(&self) -> bool {
        matches!(self, DialError::Refused(_, status, _) if *status == StatusCode::NOT_FOUND.as_u16())
    }
}
