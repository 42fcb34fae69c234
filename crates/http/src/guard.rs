//! What comes before a question: whose page asks, with which token, and how often.
//!
//! A page of a stranger must not reach a host by its visitor's browser: names that are not ours are refused (a name can be made
//! to point anywhere), and so is every `Origin` but our own. A token is looked up by the host; here is only how often one may be
//! wrong.

use axum::http::{HeaderMap, Uri, header};
use holdfast_door::{Cap, Handle, Path, Shown, Speaker};
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Questions a token may ask in a second, for long: more than two cores answer, so that one program cannot starve the others.
const RATE_PER_SECOND: f64 = 1000.0;
/// Wrong tokens in a second, of all who try: a person mistypes, a program guesses.
const WRONG_PER_SECOND: f64 = 20.0;
/// Tokens whose pace is remembered: more than there can be.
const PACES_MAX: usize = 2000;

/// The subprotocol of a WebSocket that has the token behind it, where no header can be set.
pub const TOKEN_PROTOCOL: &str = "holdfast.token.";

/// Names under which this host may be asked, beside addresses.
#[derive(Debug, Clone)]
pub struct Names {
    /// The names.
    pub known: Vec<String>,
    /// It listens with TLS.
    pub tls: bool,
}

impl Names {
    /// Whether this is a name of ours. An address is: it cannot be made to point elsewhere.
    fn knows(&self, host: &str) -> bool {
        let name = name_of(host);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok() || self.known.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Refuses what a stranger's page sends.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Fault> {
        // Of two `Host` headers, one may be meant for a proxy.
        let said = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let mut said = said.chain(uri.authority().map(axum::http::uri::Authority::as_str)).peekable();
        let host = *said.peek().unwrap_or(&"");
        if let Some(other) = said.chain([host]).find(|said| !self.knows(said)) {
            return Err(Fault::new(Code::Denied, format!("unknown host name {:?}", name_of(other)))
                .hint("use the host's address, or allow this name: holdfast host start --http --name NAME"));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let ours = ["http://", "https://"].iter().any(|scheme| {
            let origin = origin.to_str().unwrap_or_default();
            origin.strip_prefix(scheme).is_some_and(|from| from.eq_ignore_ascii_case(host))
        });
        if ours {
            Ok(())
        } else {
            Err(Fault::new(Code::Denied, "pages of another origin may not send requests to this host"))
        }
    }
}

impl Names {
    /// Whether a request comes from a page of ours: only then a cookie is given or taken back. A browser says so by itself.
    pub fn must_be_page(&self, headers: &HeaderMap) -> Result<(), Fault> {
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let is_ours = site.is_some_and(|site| matches!(site, "same-origin" | "none"));
        // Where a browser is too old to say it, `Origin` was compared with our own name already.
        if is_ours || (site.is_none() && headers.contains_key(header::ORIGIN)) {
            return Ok(());
        }
        Err(Fault::new(Code::Denied, "only this host's own page may do that"))
    }
}

/// The name of the cookie that has a browser's token: with the port we are asked at.
pub fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.strip_prefix(name_of(host)).and_then(|port| port.strip_prefix(':')).unwrap_or("web");
    format!("holdfast-{port}")
}

pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, token)| token)
}

/// A `Host` without its port.
pub fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        Some(_) | None => host,
    }
}

/// What a page shows begins with this.
pub const PAGE: &str = "page_";

/// The token that came with a request. A page of ours shows that it has a key, and its cookie says for which token: a browser
/// sends a cookie to every port of a machine, to whatever listens there, and the key to nobody.
fn token(headers: &HeaderMap) -> Result<Shown, Fault> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let protocol =
        protocols.flat_map(|value| value.split(',')).find_map(|word| word.trim().strip_prefix(TOKEN_PROTOCOL));
    let shown = bearer.or(protocol);
    let shown = match shown.and_then(|shown| shown.strip_prefix(PAGE)) {
        Some(page) => cookie(headers).map(|cookie| Shown::Browser { cookie: cookie.into(), page: page.into() }),
        None => shown.map(|text| Shown::Text(text.to_owned())),
    };
    shown.ok_or_else(|| {
        Fault::new(Code::Unidentified, "this request has no token")
            .hint("send `Authorization: Bearer TOKEN`; to create a token: holdfast token new")
    })
}

/// How much of a second's share is left, and since when.
#[derive(Debug, Clone, Copy)]
struct Pace {
    left: f64,
    at: Instant,
}

impl Pace {
    fn take(&mut self, per_second: f64, now: Instant) -> bool {
        let since = now.duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + since * per_second).min(per_second), now);
        let there = self.left >= 1.0;
        self.left -= f64::from(u8::from(there));
        there
    }
}

/// Who asks how often.
#[derive(Debug, Default)]
pub struct Paces {
    tokens: Mutex<HashMap<String, Pace>>,
    wrong: Mutex<Option<Pace>>,
}

impl Paces {
    /// The id of a request's token, if it is good and does not ask too often.
    pub async fn admit(&self, handle: &Handle, headers: &HeaderMap, path: fn(Cap) -> Path) -> Result<Speaker, Fault> {
        self.check(handle, token(headers)?, path).await
    }

    /// What is said of a secret; of a wrong one only so often.
    pub fn of_secret<T>(&self, said: Result<T, Fault>) -> Result<T, Fault> {
        match said {
            Err(fault) if fault.code == Code::Unidentified => {
                let now = Instant::now();
                let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
                let pace = wrong.get_or_insert(Pace { left: WRONG_PER_SECOND, at: now });
                Err(if pace.take(WRONG_PER_SECOND, now) { fault } else { too_fast() })
            }
            said => said,
        }
    }

    /// The same, of a token that was shown.
    pub async fn check(&self, handle: &Handle, shown: Shown, path: fn(Cap) -> Path) -> Result<Speaker, Fault> {
        let speaker = self.of_secret(handle.check(shown, path).await)?;
        let Some(token) = speaker.path.cap().map(|cap| cap.token.clone()) else { return Ok(speaker) };
        let now = Instant::now();
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= PACES_MAX {
            tokens.retain(|_, pace| now.duration_since(pace.at) < Duration::from_secs(1));
        }
        let fresh = Pace { left: RATE_PER_SECOND, at: now };
        if tokens.entry(token).or_insert(fresh).take(RATE_PER_SECOND, now) { Ok(speaker) } else { Err(too_fast()) }
    }
}

fn too_fast() -> Fault {
    Fault::new(Code::TooFast, "too many requests in one second").hint("try again in a second")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn names_that_are_not_ours_and_foreign_pages_are_refused() {
        let names = Names { known: vec!["localhost".into(), "box.lan".into()], tls: false };
        let check = |pairs| names.check(&headers(pairs), &Uri::from_static("/v1/host")).is_ok();
        for ours in ["localhost", "LOCALHOST:7433", "127.0.0.1:7433", "[::1]:7433", "192.168.1.7", "box.lan:80"] {
            assert!(names.knows(ours), "{ours}");
        }
        assert!(!names.knows("evil.example") && !names.knows("localhost.evil.example:7433") && !names.knows(""));
        assert!(check(&[("host", "localhost:7433")]));
        assert!(!check(&[("host", "evil.example:7433")]));
        assert!(!check(&[]));
        assert!(check(&[("host", "localhost:7433"), ("origin", "http://localhost:7433")]));
        assert!(!check(&[("host", "localhost:7433"), ("origin", "http://localhost:9999")]));
        assert!(!check(&[("host", "localhost:7433"), ("origin", "https://evil.example")]));
        assert!(!check(&[("host", "localhost:7433"), ("origin", "null")]));
        assert!(!check(&[("host", "localhost"), ("host", "evil.example")]));
        assert!(!check(&[("host", "evil.example"), ("host", "localhost")]));
        let asked = |uri: &'static str, host| {
            let uri = Uri::from_static(uri);
            names.check(&headers(&[("host", host)]), &uri).is_ok()
        };
        assert!(asked("http://localhost:7433/v1/host", "localhost:7433"));
        assert!(!asked("http://evil.example/v1/host", "localhost"));
        assert!(!asked("http://localhost@evil.example/v1/host", "localhost"));
        for odd in ["localhost.", "[fe80::1%25eth0]:80", "127.0.0.1.evil.example", "0x7f.1", "localhost:80:80", ":80"] {
            assert!(!names.knows(odd), "{odd}");
        }
    }

    fn token_of(pairs: &[(&'static str, &'static str)]) -> Result<String, Fault> {
        token(&headers(pairs)).map(|shown| match shown {
            Shown::Text(text) => text,
            Shown::Browser { cookie, page } => format!("{cookie} and {page}"),
        })
    }

    #[test]
    fn a_cookie_is_half_of_what_a_browser_shows_and_its_ports() {
        let (host, cookie) = (("host", "localhost:7433"), ("cookie", "a=b; holdfast-7433=hf_3; holdfast-80=hf_4"));
        let half = ("authorization", "Bearer page_56");
        assert_eq!(token_of(&[host, cookie, half]).unwrap(), "hf_3 and 56");
        let protocols = ("sec-websocket-protocol", "holdfast.v1, holdfast.token.page_56");
        assert_eq!(token_of(&[host, cookie, protocols]).unwrap(), "hf_3 and 56");
        for alone in [&[host, cookie][..], &[host, half], &[("host", "localhost:1"), cookie, half]] {
            assert_eq!(token_of(alone).unwrap_err().code, Code::Unidentified, "{alone:?}");
        }
    }

    #[test]
    fn a_token_comes_in_a_header_or_as_a_subprotocol() {
        assert_eq!(token_of(&[("authorization", "Bearer hf_1")]).unwrap(), "hf_1");
        assert_eq!(token_of(&[("authorization", "bearer  hf_1")]).unwrap(), "hf_1");
        let protocols = "holdfast.v1, holdfast.token.hf_2";
        assert_eq!(token_of(&[("sec-websocket-protocol", protocols)]).unwrap(), "hf_2");
        assert_eq!(token_of(&[("authorization", "Basic x")]).unwrap_err().code, Code::Unidentified);
    }

    #[test]
    fn a_pace_is_a_seconds_share_and_grows_again() {
        let start = Instant::now();
        let mut pace = Pace { left: 3.0, at: start };
        let taken = (0..10).filter(|_| pace.take(3.0, start)).count();
        assert_eq!(taken, 3);
        assert!(!pace.take(3.0, start + Duration::from_millis(100)));
        assert!(pace.take(3.0, start + Duration::from_millis(400)));
    }
}
