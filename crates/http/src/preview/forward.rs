//! A request on its way to what listens in a session, and the answer on its way back: without what is ours, and as if it had been
//! asked on this machine.

use super::enter::{COOKIES, plain};
use super::{Preview, is_over};
use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

/// A server of this machine answers at once, unless it is stopped or has too many to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Headers that are between two neighbours only.
const HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];
/// What a request says of who asked: we say it ourselves.
const SAID_BY_US: [&str; 8] =
    ["host", "origin", "referer", "cookie", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
/// What an answer would do to all ports of a name, this host's page among them.
const OF_ALL_PORTS: [&str; 3] = ["strict-transport-security", "clear-site-data", "alt-svc"];

/// Asks what listens there.
pub(super) async fn forward(preview: &Preview, to: SocketAddr, mut request: hyper::Request<Incoming>) -> Response {
    let upgrade = upgrade_of(request.headers());
    let permit = match upgrade.is_some().then(|| preview.tunnels.clone().try_acquire_owned()).transpose() {
        Ok(permit) => permit,
        Err(_) => return plain(StatusCode::TOO_MANY_REQUESTS, "This preview has too many WebSockets open."),
    };
    let browser = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = asked(preview, request.headers(), upgrade.as_ref());
    let none = || {
        let text = format!("What listens on port {} of this session does not answer.", preview.port);
        plain(StatusCode::BAD_GATEWAY, &text)
    };
    let Some(mut response) = ask(to, request).await else { return none() };
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let headers = answered(preview, response.headers());
        *response.headers_mut() = headers;
        return response.map(Body::new);
    }
    // Who was not asked to switch must not.
    let (Some(browser), Some(permit)) = (browser, permit) else { return none() };
    let server = hyper::upgrade::on(&mut response);
    let mut over = preview.over.subscribe();
    tokio::spawn(async move {
        tokio::select! {
            () = is_over(&mut over) => {}
            () = join(browser, server, permit) => {}
        }
    });
    let mut headers = answered(preview, response.headers());
    for name in [header::CONNECTION, header::UPGRADE] {
        response.headers().get(&name).map(|value| headers.insert(name, value.clone()));
    }
    *response.headers_mut() = headers;
    response.map(|_| Body::empty())
}

async fn ask(to: SocketAddr, request: hyper::Request<Incoming>) -> Option<hyper::Response<Incoming>> {
    let stream = tokio::time::timeout(CONNECT_WAIT, TcpStream::connect(to)).await.ok()?.ok()?;
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    // Ends with its answer, which is the browser's connection to take.
    tokio::spawn(async move { connection.with_upgrades().await });
    sender.send_request(request).await.ok()
}

/// Carries bytes both ways until one side is done.
async fn join(browser: OnUpgrade, server: OnUpgrade, _permit: OwnedSemaphorePermit) {
    let (Ok(browser), Ok(server)) = tokio::join!(browser, server) else { return };
    let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(browser), &mut TokioIo::new(server)).await;
}

/// The protocol that a request asks to switch to.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_asked = names(headers, header::CONNECTION).any(|name| name == "upgrade");
    headers.get(header::UPGRADE).filter(|_| is_asked).cloned()
}

/// The words of a list, in small letters.
fn names(headers: &HeaderMap, list: HeaderName) -> impl Iterator<Item = String> {
    let all = headers.get_all(list).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase())
}

/// Without what is between two neighbours only.
fn passed(headers: &HeaderMap, without: &[&str]) -> HeaderMap {
    let named: Vec<String> = names(headers, header::CONNECTION).collect();
    let is_passed = |name: &str| !HOP.contains(&name) && !without.contains(&name) && !named.iter().any(|n| n == name);
    let all = headers.iter().filter(|(name, _)| is_passed(name.as_str()));
    let mut passed = HeaderMap::new();
    for (name, value) in all {
        passed.append(name.clone(), value.clone());
    }
    passed
}

/// A request's headers as the server in the session gets them. Development servers check `Host` and `Origin`, which were checked
/// here: both name what the server is called on this machine.
fn asked(preview: &Preview, headers: &HeaderMap, upgrade: Option<&HeaderValue>) -> HeaderMap {
    let mut passed = passed(headers, &SAID_BY_US);
    let mut put = |name: HeaderName, text: &str| HeaderValue::from_str(text).ok().map(|v| passed.insert(name, v));
    let there = format!("localhost:{}", preview.port);
    put(header::HOST, &there);
    if headers.contains_key(header::ORIGIN) {
        put(header::ORIGIN, &format!("http://{there}"));
    }
    let referer = headers.get(header::REFERER).and_then(|value| value.to_str().ok());
    if let Some(path) = referer.and_then(|from| from.strip_prefix(&preview.origin)).filter(|path| path.starts_with('/'))
        && !path.starts_with("/.holdfast/")
    {
        put(header::REFERER, &format!("http://{there}{path}"));
    }
    put(HeaderName::from_static("x-forwarded-host"), &preview.authority);
    put(HeaderName::from_static("x-forwarded-proto"), if preview.is_tls { "https" } else { "http" });
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookies = cookies.flat_map(|value| value.split(';')).map(str::trim);
    let cookies: Vec<&str> = cookies.filter(|pair| !pair.is_empty() && !is_ours(pair)).collect();
    if !cookies.is_empty() {
        put(header::COOKIE, &cookies.join("; "));
    }
    if let Some(upgrade) = upgrade {
        passed.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        passed.insert(header::UPGRADE, upgrade.clone());
    }
    passed
}

/// An answer's headers as the browser gets them.
fn answered(preview: &Preview, headers: &HeaderMap) -> HeaderMap {
    let mut passed = passed(headers, &OF_ALL_PORTS);
    if let header::Entry::Occupied(entry) = passed.entry(header::SET_COOKIE) {
        let (_, all) = entry.remove_entry_mult();
        let kept: Vec<HeaderValue> = all.filter(|value| value.to_str().is_ok_and(|text| !is_ours(text))).collect();
        for value in kept {
            passed.append(header::SET_COOKIE, value);
        }
    }
    // What the server calls itself is another machine's for the browser.
    let location = passed.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let own = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].map(|name| format!("http://{name}:{}", preview.port));
    let path = location.and_then(|to| own.iter().find_map(|own| to.strip_prefix(own.as_str())));
    let path = path.filter(|path| path.is_empty() || path.starts_with(['/', '?', '#']));
    let there = path.and_then(|path| HeaderValue::from_str(&format!("{}{path}", preview.origin)).ok());
    if let Some(there) = there {
        passed.insert(header::LOCATION, there);
    }
    passed
}

/// Whether a cookie is this host's: neither told to what listens in a session nor taken from it.
fn is_ours(pair: &str) -> bool {
    let name = pair.trim_start();
    name.get(..COOKIES.len()).is_some_and(|start| start.eq_ignore_ascii_case(COOKIES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_door::{Cap, Path, Speaker};
    use holdfast_types::{Actor, ActorId, Rights};

    fn preview() -> Preview {
        let cap = Cap { token: "tok".into(), can: Rights::ALL, until_ms: u64::MAX };
        let actor = Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() };
        Preview::new(Speaker { actor, path: Path::Http(cap) }, "ses_1".into(), 3000, 7434, "box.example", true)
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    fn told(headers: &HeaderMap) -> Vec<String> {
        let mut told: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        told.sort();
        told
    }

    #[test]
    fn what_listens_is_asked_as_on_its_own_machine_and_told_nothing_of_ours() {
        let asked = asked(
            &preview(),
            &headers(&[
                ("host", "box.example:7434"),
                ("origin", "https://box.example:7434"),
                ("referer", "https://box.example:7434/a?b"),
                ("cookie", "holdfast-preview-7434=s; theirs=1; Holdfast-7433=t"),
                ("cookie", "more=2"),
                ("connection", "close, x-hop"),
                ("x-hop", "1"),
                ("x-forwarded-for", "6.6.6.6"),
                ("transfer-encoding", "chunked"),
                ("accept", "*/*"),
            ]),
            None,
        );
        let expected = [
            "accept: */*",
            "cookie: theirs=1; more=2",
            "host: localhost:3000",
            "origin: http://localhost:3000",
            "referer: http://localhost:3000/a?b",
            "x-forwarded-host: box.example:7434",
            "x-forwarded-proto: https",
        ];
        assert_eq!(told(&asked), expected);
    }

    #[test]
    fn a_ticket_is_in_no_referer_and_a_strangers_is_not_passed_on() {
        for from in ["https://box.example:7434/.holdfast/enter?ticket=t", "https://box.example:74345/", "https://x/"] {
            let asked = asked(&preview(), &HeaderMap::from_iter([(header::REFERER, from.parse().unwrap())]), None);
            assert_eq!(asked.get(header::REFERER), None, "{from}");
        }
    }

    #[test]
    fn an_answer_reaches_neither_our_cookies_nor_the_other_ports() {
        let answered = answered(
            &preview(),
            &headers(&[
                ("set-cookie", "holdfast-7433=mine; Path=/"),
                ("set-cookie", "theirs=1"),
                ("strict-transport-security", "max-age=1"),
                ("clear-site-data", "\"cookies\""),
                ("location", "http://localhost:3000/next"),
                ("keep-alive", "timeout=5"),
            ]),
        );
        assert_eq!(told(&answered), ["location: https://box.example:7434/next", "set-cookie: theirs=1"]);
        let location = |to: &'static str| told(&super::answered(&preview(), &headers(&[("location", to)])));
        assert_eq!(location("http://localhost:30001/"), ["location: http://localhost:30001/"]);
        assert_eq!(location("/next"), ["location: /next"]);
    }
}
