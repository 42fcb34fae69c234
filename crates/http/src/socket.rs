//! The whole protocol over WebSocket: each binary message is one frame without its length.

use crate::listen::Http;
use crate::refusal::Refused;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as Packet, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use holdfast_wire::Message;
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a client that wants no particular version is answered with.
const PROTOCOL: &str = "holdfast.v1";
/// An idle observer costs little: what is longer than this is read into a buffer of its own.
const BUFFER_BYTES: usize = 2048;
/// How often a silent peer is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a peer may leave what it is sent unread, or a question unanswered: a tunnel, not a closed laptop.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// `GET /v1/connect`.
pub async fn connect(
    State(http): State<Arc<Http>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response {
    let token = match http.paces.admit(&http.handle, &http.names, &headers).await {
        Ok(token) => token,
        Err(fault) => return Refused(fault).into_response(),
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(REQUEST_BYTES_MAX)
        .max_frame_size(REQUEST_BYTES_MAX)
        .on_upgrade(|socket| talk(socket, http, token))
}

async fn talk(mut socket: WebSocket, http: Arc<Http>, token: String) {
    let (say, incoming) = mpsc::channel(1);
    let (outgoing, mut hear) = mpsc::channel(1);
    if http.handle.connect(token, incoming, outgoing).await.is_err() {
        return;
    }
    // One that sleeps is asked, and one that does not answer is gone: its turn must not wait for it.
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
    let mut heard = tokio::time::Instant::now();
    let why = loop {
        tokio::select! {
            // A question that is being handed over must not be dropped half-way: the host takes it before we go on.
            packet = socket.next() => {
                heard = tokio::time::Instant::now();
                let message = match packet {
                    Some(Ok(Packet::Binary(content))) => match read(&content) {
                        Ok(message) => message,
                        Err(why) => break Some((close_code::INVALID, why)),
                    },
                    Some(Ok(Packet::Ping(_) | Packet::Pong(_))) => continue,
                    Some(Ok(Packet::Text(_))) => break Some((close_code::UNSUPPORTED, "frames are binary".into())),
                    Some(Ok(Packet::Close(_)) | Err(_)) | None => break None,
                };
                tokio::select! {
                    said = say.send(message) => if said.is_err() { break None },
                    // The host takes questions one by one; whoever does not read its answers gets no further.
                    () = pass_on(&mut hear, &mut socket) => break None,
                }
            }
            message = hear.recv() => match message {
                Some(message) => if !write(&mut socket, &message).await { break None },
                None => break Some((close_code::AWAY, "the host has closed this connection".into())),
            },
            _ = ping.tick() => {
                let is_gone = heard.elapsed() > SILENCE_MAX;
                if is_gone || !send(&mut socket, Packet::Ping(Default::default())).await {
                    break None;
                }
            }
        }
    };
    drop((say, hear));
    if let Some((code, reason)) = why {
        send(&mut socket, Packet::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    }
}

/// Writes what the host says until it says no more.
async fn pass_on(hear: &mut mpsc::Receiver<Message>, socket: &mut WebSocket) {
    while let Some(message) = hear.recv().await {
        if !write(socket, &message).await {
            return;
        }
    }
}

fn read(content: &[u8]) -> Result<Message, String> {
    let frame = Frame::decode_content(content).map_err(|error| error.to_string())?;
    Message::decode(frame).map_err(|fault| fault.message)
}

async fn write(socket: &mut WebSocket, message: &Message) -> bool {
    let mut out = Vec::new();
    message.encode(&mut out);
    // The length is the carrier's business.
    send(socket, Packet::Binary(axum::body::Bytes::from(out).slice(4..))).await
}

/// Whether it was sent.
async fn send(socket: &mut WebSocket, packet: Packet) -> bool {
    matches!(tokio::time::timeout(SILENCE_MAX, SinkExt::send(socket, packet)).await, Ok(Ok(())))
}
