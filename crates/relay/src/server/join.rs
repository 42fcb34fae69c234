//! Two sockets joined: each message of one side goes to the other, whole and in order.

use super::counts::Count;
use crate::stream::Socket;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// How long a side may send nothing, or take nothing: channels say `alive` every few seconds.
const STUCK: Duration = Duration::from_secs(60);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Joins until one side goes.
pub(super) async fn join(client: Socket, host: Socket, bytes: &Count) {
    let ((mut to_client, from_client), (mut to_host, from_host)) = (client.split(), host.split());
    // Each direction by itself: a side that does not read holds back what comes to it, and nothing else. When one side has
    // gone, what it said last has been passed on.
    tokio::select! {
        () = pass(from_client, &mut to_host, bytes) => {}
        () = pass(from_host, &mut to_client, bytes) => {}
    }
    let _ = timeout(GOODBYE, async { tokio::join!(to_client.close(), to_host.close()) }).await;
}

async fn pass(mut from: SplitStream<Socket>, to: &mut SplitSink<Socket, Message>, bytes: &Count) {
    loop {
        match timeout(STUCK, from.next()).await {
            Ok(Some(Ok(Message::Binary(message)))) => {
                bytes.add(message.len() as u64);
                if !matches!(timeout(STUCK, to.send(Message::Binary(message))).await, Ok(Ok(()))) {
                    return;
                }
            }
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
