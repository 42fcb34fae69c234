//! Dialling a relay: TCP, TLS, and the upgrade to a WebSocket.

use crate::stream::{Socket, Stream};
use crate::url::RelayUrl;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::LOCATION;

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
    /// Another relay has the host.
    #[error("{0} says that {1} has it")]
    Elsewhere(String, RelayUrl),
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
        connector(authorities, None).map(Dialer)
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
                let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                if answer.status() == StatusCode::TEMPORARY_REDIRECT
                    && let Some(to) = location.and_then(|location| sent_on(url, location, path))
                {
                    return Err(DialError::Elsewhere(url.to_string(), to));
                }
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

/// TLS with the world's authorities and those in a PEM file, and perhaps a certificate chain and key of our own, PEM files.
pub(crate) fn connector(
    authorities: Option<&Path>,
    certificate: Option<&(PathBuf, PathBuf)>,
) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for authority in authorities.map(pem_chain).transpose()?.unwrap_or_default() {
        roots.add(authority).map_err(io::Error::other)?;
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match certificate {
        None => config.with_no_client_auth(),
        Some((chain, key)) => {
            let (chain, secret) = (pem_chain(chain)?, pem_key(key)?);
            config.with_client_auth_cert(chain, secret).map_err(|error| bad_pem(key, &error))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates in a PEM file.
pub(crate) fn pem_chain(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    chain.map_err(|error| bad_pem(path, &error))
}

/// The key in a PEM file.
pub(crate) fn pem_key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| bad_pem(path, &error))
}

/// What is wrong with a file, by its name.
pub(crate) fn bad_pem(path: &Path, why: &dyn std::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display()))
}

/// Where a relay that does not have a host sends its clients: another relay, for the same host, and nowhere else. A relay with TLS sends nobody to one
/// without: that would be a service of the client's own machine.
fn sent_on(from: &RelayUrl, location: &str, path: &str) -> Option<RelayUrl> {
    let to: RelayUrl = location.strip_suffix(path)?.parse().ok()?;
    (to != *from && !to.is_direct() && (to.tls() || !from.tls())).then_some(to)
}

impl DialError {
    /// The relay is there, and what was asked for is not.
    #[must_use]
    pub fn is_not_there(&self) -> bool {
        matches!(self, DialError::Refused(_, status, _) if *status == StatusCode::NOT_FOUND.as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_sent_to_another_relay_for_the_same_host_and_nowhere_else() {
        let to =
            |from: &str, location: &str| sent_on(&from.parse().unwrap(), location, "/c/ab").map(|url| url.to_string());
        assert_eq!(to("https://a", "https://b:8443/c/ab"), Some("https://b:8443".into()));
        assert_eq!(to("http://127.0.0.1:1", "http://127.0.0.1:2/c/ab"), Some("http://127.0.0.1:2".into()));
        for bad in [
            "https://a/c/ab",
            "https://b/c/cd",
            "https://b",
            "/c/ab",
            "",
            "http://127.0.0.1:22/c/ab",
            "http://b/c/ab",
            "direct://127.0.0.1:22/c/ab",
        ] {
            assert_eq!(to("https://a", bad), None, "{bad}");
        }
    }
}
