//! The control connection of a host: it proves its key, and is told of clients.

use super::Relay;
use crate::random;
use crate::stream::Socket;
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::verify_host;
use holdfast_types::{Challenge as Nonce, HostKey, Signature};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// How long a host may take to sign.
const SIGN: Duration = Duration::from_secs(10);
/// After so much silence a host is gone: it pings three times as often.
const SILENT: Duration = Duration::from_secs(45);
/// Clients that wait for one host to dial back: it takes milliseconds.
const DIALS_MAX: usize = 32;
/// Longest message.
const TEXT_BYTES_MAX: usize = 1024;

/// The relay's challenge.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Challenge {
    pub challenge: Nonce,
}

/// The host's proof.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Registration {
    pub host: HostKey,
    pub signature: Signature,
}

/// It holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub registered: bool,
}

/// A client is there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Dial {
    pub dial: String,
}

/// A registered host.
#[derive(Debug, Clone)]
pub(super) struct Host {
    /// Tells a connection from the one that took its place.
    pub number: u64,
    /// Tokens of clients that wait.
    pub dial: mpsc::Sender<String>,
    /// Clients it may have at once.
    pub clients: Arc<Semaphore>,
}

/// Serves a host until it goes.
pub(super) async fn serve(relay: &Relay, mut socket: Socket, address: &str) {
    let challenge: [u8; 32] = random();
    if !say(&mut socket, &Challenge { challenge: Nonce(challenge) }).await {
        return;
    }
    let Ok(Some(Ok(Message::Text(text)))) = timeout(SIGN, socket.next()).await else { return };
    let proof = (text.len() <= TEXT_BYTES_MAX).then(|| serde_json::from_str::<Registration>(&text).ok()).flatten();
    let Some(Registration { host, signature }) = proof else { return };
    if !verify_host(&host.0, &challenge, address, &signature.0) {
        relay.counts.refused_hosts.add(1);
        let _ = say(&mut socket, &Registered { registered: false }).await;
        return;
    }
    let (dial, mut dials) = mpsc::channel(DIALS_MAX);
    let number = relay.counts.registrations.add(1);
    let clients = Arc::new(Semaphore::new(relay.limits.clients_of_host));
    // In place of another one of this host: its sender goes, and so does that connection.
    relay.hosts().insert(host, Host { number, dial, clients });
    relay.listed();
    if say(&mut socket, &Registered { registered: true }).await {
        talk(&mut socket, &mut dials).await;
    }
    let mut hosts = relay.hosts();
    if hosts.get(&host).is_some_and(|known| known.number == number) {
        hosts.remove(&host);
        relay.listed();
    }
}

async fn talk(socket: &mut Socket, dials: &mut mpsc::Receiver<String>) {
    let mut heard = Instant::now();
    loop {
        let left = SILENT.saturating_sub(heard.elapsed());
        tokio::select! {
            token = dials.recv() => {
                let Some(dial) = token else { return };
                if !say(socket, &Dial { dial }).await {
                    return;
                }
            }
            message = timeout(left, socket.next()) => match message {
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => return,
                // A ping is answered by the socket itself, when it is next read or written.
                Ok(Some(Ok(_))) => heard = Instant::now(),
            },
        }
    }
}

async fn say(socket: &mut Socket, what: &impl Serialize) -> bool {
    let Ok(text) = serde_json::to_string(what) else { return false };
    matches!(timeout(SIGN, socket.send(Message::text(text))).await, Ok(Ok(())))
}
