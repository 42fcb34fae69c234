//! The whole protocol over WebSocket: each binary message is one frame without its length.

use crate::listen::Http;
use crate::refusal::Refused;
use crate::rest::{HERE_BYTES_MAX, aside};
use crate::seats::Seat;
use axum::extract::ws::{CloseFrame, Message as Packet, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use holdfast_door::{Path, Speaker};
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use holdfast_wire::{Code, Fault, Message};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a client that wants no particular version is answered with.
const PROTOCOL: &str = "holdfast.v1";
/// An idle observer costs little: what is longer than this is read into a buffer of its own.
const BUFFER_BYTES: usize = 2048;
/// Questions read ahead of the host, and their bytes: a burst of short ones.
const AHEAD_MAX: usize = 64;
const AHEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the host may take for what a peer that left has said: it takes a question at once, or has too many of it.
const LEAVE_WAIT: Duration = Duration::from_secs(1);
/// A control frame has 125 bytes, two of them the code.
const REASON_BYTES_MAX: usize = 123;
/// How often a silent peer is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a peer may leave what it is sent unread, or a question unanswered: a tunnel, not a closed laptop.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// `GET /v1/connect`.
pub async fn connect(
    State(http): State<Arc<Http>>,
    headers: HeaderMap,
    seat: Option<Extension<Arc<Seat>>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response {
    let mut extensions = Extensions::new();
    let seat = seat.map(|Extension(seat)| extensions.insert(Arc::clone(&seat)).unwrap_or(seat));
    let speaker = match http.admit(&extensions, &headers, Path::Http).await {
        Ok(speaker) => speaker,
        Err(fault) => return Refused(fault).into_response(),
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let fault =
                Fault::new(Code::BadRequest, format!("this address is for WebSockets: {}", rejection.body_text()));
            return (rejection.status(), axum::Json(fault)).into_response();
        }
    };
    upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(REQUEST_BYTES_MAX)
        .max_frame_size(REQUEST_BYTES_MAX)
        .on_upgrade(|socket| async move {
            talk(socket, http, speaker).await;
            drop(seat);
        })
}

async fn talk(mut socket: WebSocket, http: Arc<Http>, speaker: Speaker) {
    let (say, incoming) = mpsc::channel(1);
    let (outgoing, mut hear) = mpsc::channel(1);
    if http.handle.connect(speaker, incoming, outgoing).await.is_err() {
        return;
    }
    // One that sleeps is asked, and one that does not answer is gone: its turn must not wait for it.
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
    let mut heard = tokio::time::Instant::now();
    let mut ahead = Ahead::default();
    let why = loop {
        tokio::select! {
            packet = socket.next(), if ahead.has_room() => {
                heard = tokio::time::Instant::now();
                match packet {
                    Some(Ok(Packet::Binary(content))) => match read_any(content.clone()).await {
                        Ok(message) => ahead.put(message, content.len()),
                        Err(why) => break Some((close_code::INVALID, why)),
                    },
                    Some(Ok(Packet::Ping(_) | Packet::Pong(_))) => {}
                    Some(Ok(Packet::Text(_))) => break Some((close_code::UNSUPPORTED, "frames must be binary".into())),
                    Some(Ok(Packet::Close(_)) | Err(_)) | None => break None,
                }
            }
            // The host takes questions one by one; a client that does not read its answers gets no further.
            room = say.reserve(), if !ahead.0.is_empty() => match (room, ahead.0.pop_front()) {
                (Ok(room), Some((message, _))) => {
                    room.send(Box::new(message));
                    heard = tokio::time::Instant::now();
                }
                (Ok(_) | Err(_), _) => break None,
            },
            message = hear.recv() => match message {
                Some(message) => if !write(&mut socket, &message).await { break None },
                None => break Some((close_code::AWAY, "the host has closed this connection".into())),
            },
            _ = ping.tick() => {
                // Nothing is heard of one that is not listened to.
                let is_gone = ahead.has_room() && heard.elapsed() > SILENCE_MAX;
                if is_gone || !send(&mut socket, Packet::Ping(Default::default())).await {
                    break None;
                }
            }
        }
    };
    // What it said before it left is done all the same, where the host takes it.
    let rest = async {
        for (message, _) in ahead.0 {
            if say.send(Box::new(message)).await.is_err() {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(LEAVE_WAIT, rest).await;
    drop((say, hear));
    if let Some((code, reason)) = why {
        send(&mut socket, Packet::Close(Some(CloseFrame { code, reason: cut(reason).into() }))).await;
    }
}

/// Questions the host has not taken yet, and their lengths. A few are read ahead, so that one who leaves is noticed while they
/// wait.
#[derive(Default)]
struct Ahead(VecDeque<(Message, usize)>);

impl Ahead {
    fn has_room(&self) -> bool {
        self.0.len() < AHEAD_MAX && self.0.iter().map(|(_, bytes)| bytes).sum::<usize>() < AHEAD_BYTES_MAX
    }

    fn put(&mut self, message: Message, bytes: usize) {
        self.0.push_back((message, bytes));
    }
}

/// As much of a reason as a close frame takes: the peer would take a longer one for a fault of ours.
fn cut(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}

/// What is long is read where that holds nobody up.
async fn read_any(content: axum::body::Bytes) -> Result<Message, String> {
    if content.len() <= HERE_BYTES_MAX {
        return read(&content);
    }
    aside(move || read(&content)).await.unwrap_or_else(|fault| Err(fault.message))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_to_what_a_frame_takes_between_characters() {
        assert_eq!(cut("short".into()), "short");
        assert_eq!(cut("é".repeat(100)), "é".repeat(61));
    }
}
