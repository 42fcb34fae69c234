//! A host's control connection to one relay: kept up for as long as the host runs.

use crate::dial::Dialer;
use crate::random;
use crate::server::control::{Challenge, Dial, Registered, Registration};
use crate::stream::Socket;
use crate::url::RelayUrl;
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::{Secret, prove_host};
use holdfast_types::{Challenge as Nonce, HostKey, Signature};
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// How often a quiet relay is asked whether it is there.
const PING: Duration = Duration::from_secs(15);
/// After so much silence it is not. Counted from what was received, whatever was sent meanwhile.
const SILENT: Duration = Duration::from_secs(45);
/// How long each step of the registration may take.
const STEP: Duration = Duration::from_secs(10);
/// Between two tries, at first and at most: a relay that was restarted has its hosts back within a second, and one that is gone is not hammered.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A connection that lived so long was a good one: the next try comes at once.
const GOOD: Duration = Duration::from_secs(10);

/// How a host stands with a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Clients find it there.
    Up,
    /// They do not, and why.
    Down(String),
}

/// Registers, tells of clients to be picked up, and registers again whenever the connection is lost. Never ends by itself.
pub async fn wait(
    dialer: &Dialer,
    relay: &RelayUrl,
    secret: &Secret,
    stands: impl Fn(Standing),
    dial: impl Fn(String),
) {
    let mut pause = PAUSE_MIN;
    loop {
        let began = Instant::now();
        let why = once(dialer, relay, secret, &stands, &dial).await;
        stands(Standing::Down(why));
        pause = if began.elapsed() > GOOD { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
        tokio::time::sleep(jittered(pause)).await;
    }
}

/// A token goes into a path as it is.
fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Half of a pause to the whole of it: hosts that lost a relay together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let [byte] = random();
    pause / 2 + pause * u32::from(byte) / 512
}

/// One connection, until it is lost; why it was.
async fn once(
    dialer: &Dialer,
    relay: &RelayUrl,
    secret: &Secret,
    stands: &impl Fn(Standing),
    dial: &impl Fn(String),
) -> String {
    let mut socket = match dialer.dial(relay, "/h").await {
        Ok(socket) => socket,
        Err(error) => return error.to_string(),
    };
    if let Err(why) = register(&mut socket, relay, secret).await {
        return why;
    }
    stands(Standing::Up);
    let mut heard = Instant::now();
    loop {
        match timeout(PING, socket.next()).await {
            Ok(Some(Ok(message))) => {
                heard = Instant::now();
                if let Message::Text(text) = &message
                    && let Ok(Dial { dial: token }) = serde_json::from_str(text)
                    && is_token(&token)
                {
                    dial(token);
                }
            }
            Ok(Some(Err(error))) => return format!("the connection to {relay} broke: {error}"),
            Ok(None) => return format!("{relay} closed the connection"),
            Err(_) if heard.elapsed() >= SILENT => return format!("{relay} went silent"),
            Err(_) => {
                let sent = timeout(STEP, socket.send(Message::Ping(Bytes::new()))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return format!("the connection to {relay} broke");
                }
            }
        }
    }
}

async fn register(socket: &mut Socket, relay: &RelayUrl, secret: &Secret) -> Result<(), String> {
    let refused = |_| format!("{relay} did not accept this host's key");
    let Challenge { challenge: Nonce(challenge) } =
        next(socket).await.map_err(|()| format!("{relay} is not a relay"))?;
    let signature = Signature(prove_host(secret, &challenge, &relay.address()));
    let proof = Registration { host: HostKey(secret.public()), signature };
    let text = serde_json::to_string(&proof).map_err(|error| error.to_string())?;
    timeout(STEP, socket.send(Message::text(text)))
        .await
        .map_err(|_| ())
        .and_then(|sent| sent.map_err(|_| ()))
        .map_err(refused)?;
    let Registered { registered } = next(socket).await.map_err(refused)?;
    if registered { Ok(()) } else { Err(refused(())) }
}

async fn next<T: DeserializeOwned>(socket: &mut Socket) -> Result<T, ()> {
    match timeout(STEP, socket.next()).await {
        Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str(&text).map_err(|_| ()),
        _ => Err(()),
    }
}
