//! Where a relay is: `https://NAME[:PORT]`; and where a host itself listens: `direct://NAME:PORT`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

const ADDRESS_BYTES_MAX: usize = 160;

/// A relay's address, or a host's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayUrl {
    scheme: Scheme,
    name: String,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Scheme {
    Tls,
    Plain,
    /// The host itself, without a relay in between. Plain: the sealed channel is all there is.
    Direct,
}

/// Why a text is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another form.
    #[error("invalid relay {0:?}; expected https://NAME or https://NAME:PORT")]
    Form(String),
    /// Everybody on the way would see who speaks to whom.
    #[error("{0} is not encrypted; use https:// (http:// is for relays on this machine)")]
    Plain(String),
}

impl RelayUrl {
    /// With TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.scheme == Scheme::Tls
    }

    /// The host listens there itself.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.scheme == Scheme::Direct
    }

    /// Where a host listens itself: `NAME:PORT`.
    pub fn direct(address: &str) -> Result<RelayUrl, UrlError> {
        format!("direct://{address}").parse()
    }

    /// The machine's name or address.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.trim_start_matches('[').trim_end_matches(']')
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.tls() { 443 } else { 80 })
    }

    /// `NAME` or `NAME:PORT`, as in the URL: what is sent as `Host`, and what a host signs.
    #[must_use]
    pub fn address(&self) -> String {
        self.port.map_or_else(|| self.name.clone(), |port| format!("{}:{port}", self.name))
    }

    fn is_loopback(&self) -> bool {
        self.name() == "localhost" || self.name().parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Tls => "https",
            Scheme::Plain => "http",
            Scheme::Direct => "direct",
        };
        write!(f, "{scheme}://{}", self.address())
    }
}

impl FromStr for RelayUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<RelayUrl, UrlError> {
        let form = || UrlError::Form(text.chars().take(80).collect());
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(form)?;
        let scheme = match scheme {
            "https" | "wss" => Scheme::Tls,
            "http" | "ws" => Scheme::Plain,
            "direct" => Scheme::Direct,
            _ => return Err(form()),
        };
        let address = rest.strip_suffix('/').unwrap_or(rest).to_ascii_lowercase();
        // The port stands behind the last colon, but an address in brackets has colons of its own.
        let (name, port) = match address.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name.to_owned(), Some(port.parse().map_err(|_| form())?)),
            _ => (address, None),
        };
        let is_v6 = name.starts_with('[') && name.ends_with(']');
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || (is_v6 && ":[]".contains(c));
        if name.is_empty() || name.len() > ADDRESS_BYTES_MAX || !name.chars().all(fits) || port == Some(0) {
            return Err(form());
        }
        // There is no port that people expect a host at.
        if scheme == Scheme::Direct && port.is_none() {
            return Err(form());
        }
        let url = RelayUrl { scheme, name, port };
        let is_plain = scheme == Scheme::Plain && !url.is_loopback();
        if is_plain { Err(UrlError::Plain(url.to_string())) } else { Ok(url) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_a_scheme_a_name_and_perhaps_a_port() {
        let read = |text: &str| text.parse::<RelayUrl>().map(|url| (url.to_string(), url.address(), url.port()));
        assert_eq!(read("https://Relay.example/"), Ok(("https://relay.example".into(), "relay.example".into(), 443)));
        assert_eq!(read("wss://r:8443"), Ok(("https://r:8443".into(), "r:8443".into(), 8443)));
        assert_eq!(read("http://127.0.0.1:80"), Ok(("http://127.0.0.1:80".into(), "127.0.0.1:80".into(), 80)));
        assert_eq!(read("http://[::1]:7000"), Ok(("http://[::1]:7000".into(), "[::1]:7000".into(), 7000)));
        assert_eq!("http://[::1]:7000".parse::<RelayUrl>().map(|url| url.name().to_owned()), Ok("::1".into()));
        assert!(matches!(read("http://relay.example"), Err(UrlError::Plain(_))));
        let direct = |text| RelayUrl::direct(text).map(|url| (url.to_string(), url.is_direct(), url.tls()));
        assert_eq!(direct("192.168.1.5:7434"), Ok(("direct://192.168.1.5:7434".into(), true, false)));
        assert_eq!(direct("[fd00::5]:7434"), Ok(("direct://[fd00::5]:7434".into(), true, false)));
        assert!(direct("192.168.1.5").is_err(), "a port is needed");
        for bad in [
            "",
            "relay.example",
            "https://",
            "https://a/b",
            "https://a:0",
            "https://a:x",
            "ftp://a",
            "https://a b",
            "https://u@a",
        ] {
            assert!(matches!(read(bad), Err(UrlError::Form(_))), "{bad}");
        }
    }
}
