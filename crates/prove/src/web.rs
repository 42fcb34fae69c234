//! Clients over HTTP: the REST interface that SDKs use, and the WebSocket that the page attaches through.

use crate::place::Place;
use crate::trial::{Stop, broken};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

/// The host's HTTP interface.
pub struct Web {
    address: String,
    agent: ureq::Agent,
}

impl Web {
    /// Makes the host listen on a free port of this machine.
    pub fn open(place: &Place) -> Result<Web, Stop> {
        place.ok(&["host", "start", "--http", "127.0.0.1:0"])?;
        let status = place.json(&["host", "status"])?;
        let address =
            status["http"].as_str().and_then(|url| url.strip_prefix("http://")).unwrap_or_default().to_owned();
        if address.is_empty() {
            return Err(broken("the HTTP interface", status));
        }
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30)));
        Ok(Web { address, agent: config.build().into() })
    }

    /// A token for an actor, with at most these rights.
    pub fn token(place: &Place, actor: &str, can: &str) -> Result<String, Stop> {
        Ok(place.ok(&["token", "new", "--as", actor, "--can", can, "--for", "10m"])?.trim().to_owned())
    }

    /// Asks by GET; the status and the answer.
    pub fn get(&self, token: &str, path: &str) -> Result<(u16, Value), Stop> {
        let url = format!("http://{}{path}", self.address);
        let mut answer = self
            .agent
            .get(&url)
            .header("Authorization", &format!("Bearer {token}"))
            .call()
            .map_err(|error| broken(path, error))?;
        let text = answer.body_mut().read_to_string().map_err(|error| broken(path, error))?;
        Ok((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default()))
    }

    /// A session's output from an offset on: the bytes as text, where they began and where they end.
    pub fn output(&self, token: &str, session: &str, from: u64) -> Result<(u64, u64, String), Stop> {
        let (status, answer) = self.get(token, &format!("/v1/sessions/{session}/output?from={from}&wait=5"))?;
        match (status, answer["from"].as_u64(), answer["to"].as_u64(), answer["text"].as_str()) {
            (200, Some(from), Some(to), Some(text)) => Ok((from, to, text.to_owned())),
            _ => Err(broken("output over HTTP", format!("{status}: {answer}"))),
        }
    }

    /// The address of the page with a session, for a browser that has nothing of it yet.
    pub fn page(&self, token: &str, session: &str) -> String {
        format!("http://{}/#token={token}&session={session}", self.address)
    }

    /// Connects as a page does.
    pub fn socket(&self, token: &str) -> Result<Page, Stop> {
        let fail = |error: String| broken("the WebSocket", error);
        let mut request = format!("ws://{}/v1/connect", self.address)
            .into_client_request()
            .map_err(|error| fail(error.to_string()))?;
        let protocols = format!("holdfast.v1, holdfast.token.{token}").parse().map_err(|_| fail("a token".into()))?;
        request.headers_mut().insert("sec-websocket-protocol", protocols);
        let stream = TcpStream::connect(&self.address).map_err(|error| fail(error.to_string()))?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(|error| fail(error.to_string()))?;
        let (socket, _) = tungstenite::client(request, stream).map_err(|error| fail(error.to_string()))?;
        let mut page = Page { socket, next: 0 };
        page.ask("hello", &json!({ "versions": [1] }), &[])?;
        Ok(page)
    }
}

/// A connection through the WebSocket.
pub struct Page {
    socket: WebSocket<TcpStream>,
    next: u64,
}

impl Page {
    /// Asks something; the result and the raw bytes behind it.
    pub fn ask(&mut self, method: &str, params: &Value, bytes: &[u8]) -> Result<(Value, Vec<u8>), Stop> {
        self.next += 1;
        let text = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string();
        let mut frame = vec![if bytes.is_empty() { 1 } else { 2 }];
        if !bytes.is_empty() {
            frame.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        frame.extend_from_slice(text.as_bytes());
        frame.extend_from_slice(bytes);
        self.socket.send(Message::Binary(frame.into())).map_err(|error| broken(method, error))?;
        loop {
            let Message::Binary(frame) = self.socket.read().map_err(|error| broken(method, error))? else { continue };
            let Some((message, bytes)) = split(&frame) else { return Err(broken(method, "a frame of a wrong form")) };
            if message["id"] != self.next {
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(broken(method, error)),
                None => Ok((message["result"].clone(), bytes)),
            };
        }
    }
}

/// A frame's JSON and its bytes.
fn split(frame: &[u8]) -> Option<(Value, Vec<u8>)> {
    let (kind, rest) = frame.split_first()?;
    let (text, bytes) = match kind {
        1 => (rest, &[][..]),
        2 => {
            let (length, rest) = rest.split_first_chunk()?;
            rest.split_at_checked(u32::from_le_bytes(*length) as usize)?
        }
        _ => return None,
    };
    Some((serde_json::from_slice(text).ok()?, bytes.to_vec()))
}
