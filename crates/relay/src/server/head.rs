//! The head of a request: which path, and whether it asks for a WebSocket.

use crate::stream::Stream;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// How long a head may take.
const HEAD: Duration = Duration::from_secs(10);
/// Longest head: a browser behind proxies.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;

/// What was asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub path: String,
    /// `Host`, in lower case.
    pub host: String,
    /// The last address a proxy says it forwards for.
    pub forwarded: Option<String>,
    /// The key of a WebSocket's handshake.
    pub key: Option<String>,
    /// What came behind the head.
    pub rest: Vec<u8>,
}

/// Reads a head. None: it is none, too long, or too late.
pub(crate) async fn read(stream: &mut Stream) -> Option<Head> {
    tokio::time::timeout(HEAD, async {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            match parse(&bytes) {
                Ok(Some(head)) => return Some(head),
                Ok(None) if bytes.len() < HEAD_BYTES_MAX => {}
                Ok(None) | Err(()) => return None,
            }
            bytes.reserve(1024);
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
    })
    .await
    .ok()
    .flatten()
}

/// Whole, cut (none), or not a request.
fn parse(bytes: &[u8]) -> Result<Option<Head>, ()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes).map_err(|_| ())? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    if request.method != Some("GET") {
        return Err(());
    }
    let header = |name: &str| {
        let mut found = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        found.next_back().and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    let says = |name: &str, word: &str| {
        header(name).is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let upgrades = says("connection", "upgrade") && says("upgrade", "websocket") && says("sec-websocket-version", "13");
    Ok(Some(Head {
        path: request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
        host: header("host").unwrap_or_default().to_ascii_lowercase(),
        forwarded: header("x-forwarded-for").and_then(|all| all.rsplit(',').next()).map(|last| last.trim().to_owned()),
        key: header("sec-websocket-key").filter(|_| upgrades).map(str::to_owned),
        rest: bytes[length..].to_vec(),
    }))
}

/// Answers with the upgrade.
pub(crate) async fn upgrade(stream: &mut Stream, key: &str) -> io::Result<()> {
    let accept = derive_accept_key(key.as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await
}

/// What runs no program and asks for nothing.
const STRICT: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Headers that not every answer has.
pub(crate) struct Extra {
    /// The page's policy.
    pub policy: &'static str,
    /// Whole lines.
    pub more: &'static str,
}

/// Answers with a text, and closes.
pub(crate) async fn respond(stream: &mut Stream, status: &str, kind: &str, text: &str) {
    answer(stream, status, &format!("content-type: {kind}; charset=utf-8\r\n"), STRICT, text.as_bytes()).await;
}

/// Answers with a file, and closes.
pub(crate) async fn file(stream: &mut Stream, kind: &str, extra: &Extra, bytes: &[u8]) {
    answer(stream, "200 OK", &format!("content-type: {kind}\r\n{}", extra.more), extra.policy, bytes).await;
}

/// Answers a page of whatever origin in JSON, and closes: there is nothing in it that it could not ask for itself.
pub(crate) async fn words(stream: &mut Stream, json: &str) {
    let headers = "content-type: application/json\r\naccess-control-allow-origin: *\r\n";
    answer(stream, "200 OK", headers, STRICT, json.as_bytes()).await;
}

/// Sends a client to another relay, and closes.
pub(crate) async fn redirect(stream: &mut Stream, to: &str) {
    let headers = format!("location: {to}\r\ncontent-type: text/plain; charset=utf-8\r\n");
    answer(stream, "307 Temporary Redirect", &headers, STRICT, b"another relay has that host\n").await;
}

async fn answer(stream: &mut Stream, status: &str, headers: &str, policy: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: {policy}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(HEAD, write).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_whole_cut_or_none() {
        let text = "GET /c/ab?x=1 HTTP/1.1\r\nHost: Relay.Example\r\nX-Forwarded-For: 1.1.1.1, 10.0.0.9\r\nConnection: keep-alive, Upgrade\r\n\
                    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n\r\nrest";
        let head = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.host.as_str()), ("/c/ab", "relay.example"));
        assert_eq!((head.forwarded.as_deref(), head.key.as_deref()), (Some("10.0.0.9"), Some("abc")));
        assert_eq!(head.rest, b"rest");
        for at in 0..text.len() - 5 {
            assert_eq!(parse(&text.as_bytes()[..at]), Ok(None), "cut at {at}");
        }
        assert_eq!(parse(b"POST / HTTP/1.1\r\n\r\n"), Err(()));
        assert_eq!(parse(b"\x16\x03\x01"), Err(()));
        assert_eq!(
            parse(b"GET / HTTP/1.1\r\nSec-WebSocket-Key: abc\r\n\r\n").unwrap().unwrap().key,
            None,
            "no upgrade is asked for"
        );
    }
}
