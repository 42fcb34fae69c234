//! A host's end of one client's connection: dial back, or take it as it comes, find out who asks, carry.

use crate::carry::carry;
use crate::dial::Dialer;
use crate::random;
use crate::stream::Socket;
use crate::url::RelayUrl;
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::{Asks, Responder, Secret};
use holdfast_types::Handle;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

/// How long a client may take to say its first word.
const FIRST: Duration = Duration::from_secs(10);

/// Whom a host lets into a channel. Asked on the thread that carries: it must not block.
pub trait Guests {
    /// The handle of a known key, in its X25519 form.
    fn known(&self, key: &[u8; 32]) -> Option<Handle>;
    /// The secret of an invite, also of one that is used up: its guest is told so inside.
    fn invite(&self, id: &[u8; 16]) -> Option<[u8; 32]>;
}

/// A client whose channel is up. Who it is is proven inside.
#[derive(Debug)]
pub struct Arrival {
    /// What it says and hears.
    pub stream: UnixStream,
    /// What its actor has to sign.
    pub binding: [u8; 32],
    /// The key of its channel, in its X25519 form: its actor's.
    pub key: [u8; 32],
    /// The invite it came with.
    pub invite: Option<[u8; 16]>,
}

/// Picks up a client, and carries until one end is over.
pub async fn answer(
    dialer: &Dialer,
    relay: &RelayUrl,
    token: &str,
    secret: &Secret,
    guests: &impl Guests,
    arrived: impl FnOnce(Arrival),
) {
    if let Ok(socket) = dialer.dial(relay, &format!("/d/{token}")).await {
        receive(socket, secret, guests, arrived).await;
    }
}

/// Carries a client's connection until one end is over. Whoever does not speak the channel, or knows nobody here, is hung up on.
pub(crate) async fn receive(mut socket: Socket, secret: &Secret, guests: &impl Guests, arrived: impl FnOnce(Arrival)) {
    let Ok(Some(Ok(Message::Binary(first)))) = tokio::time::timeout(FIRST, socket.next()).await else { return };
    let Ok(responder) = Responder::read(secret, &first, random()) else { return };
    let (key, invite, answered) = match responder.asks() {
        Asks::Known(key) => match guests.known(&key) {
            Some(handle) => (key, None, responder.welcome(&handle)),
            None => {
                if let Ok(refusal) = responder.refuse() {
                    let _ = socket.send(Message::binary(refusal)).await;
                    let _ = socket.close(None).await;
                }
                return;
            }
        },
        Asks::Invited { key, id } => match guests.invite(&id) {
            Some(secret) => (key, Some(id), responder.welcome_guest(&secret)),
            None => return,
        },
    };
    let Ok((channel, second)) = answered else { return };
    if socket.send(Message::binary(second)).await.is_err() {
        return;
    }
    let pair = || -> std::io::Result<_> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        Ok((ours, tokio::net::UnixStream::from_std(theirs)?))
    };
    let Ok((stream, local)) = pair() else { return };
    arrived(Arrival { stream, binding: channel.binding(), key, invite });
    let _ = carry(socket, channel, local).await;
}
