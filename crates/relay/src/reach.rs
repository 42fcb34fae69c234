//! A client's way to a host: where it listens itself, or through whichever of its relays answers first.

use crate::carry::carry;
use crate::dial::{DialError, Dialer};
use crate::random;
use crate::stream::Socket;
use crate::url::RelayUrl;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::{Channel, ChannelError, Initiator, Invited, Secret, Welcome};
use holdfast_types::{Handle, HostKey, hex_text};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

/// How long a relay has before the next one is tried beside it: longer than most take.
const NEXT: Duration = Duration::from_millis(300);
/// The same for a host's own addresses: in the same network it answers sooner, and elsewhere nobody waits for it longer than that.
const NEXT_BEHIND_DIRECT: Duration = Duration::from_millis(80);
/// How long the host may take to answer.
const ANSWER: Duration = Duration::from_secs(15);

/// Where a host may be.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Its own addresses, then its relays: in the order in which they are tried.
    pub at: Vec<RelayUrl>,
    /// A connection through a relay ends once the host answers at one of its own addresses, which are tried this often: whoever resumes then goes
    /// on without the relay. None: it stays.
    pub moves_every: Option<Duration>,
}

/// A way to a host.
#[derive(Debug)]
pub struct Reached {
    /// Speaks the protocol to the host.
    pub stream: UnixStream,
    /// What the actor signs.
    pub binding: [u8; 32],
    /// By which handle the host knows us; none for the guest of an invite.
    pub handle: Option<Handle>,
    /// Through which relay, or at which address of its own.
    pub relay: RelayUrl,
}

/// Why a host was not reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// No relay is known.
    #[error("no relay is known for it")]
    NoRelay,
    /// A relay.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The relay is there, and the host is not.
    #[error("it is not connected to {0}")]
    NotThere(String),
    /// The host did not answer in time, or hung up.
    #[error("it did not answer through {0}")]
    NoAnswer(String),
    /// Somebody else answered.
    #[error("whoever answered through {0} did not prove the host's key")]
    Impostor(String),
    /// The host does not know this key.
    #[error("it does not know this key")]
    Unknown,
    /// A key that cannot be used.
    #[error("the host's key is not a usable key")]
    Key,
    /// Something of this machine.
    #[error("{0}")]
    Here(#[from] std::io::Error),
}

impl ReachError {
    /// How much it says: of several relays' failures the most telling is shown.
    fn weight(&self) -> u8 {
        match self {
            ReachError::Unknown | ReachError::Impostor(_) => 4,
            ReachError::NoAnswer(_) => 3,
            ReachError::NotThere(_) => 2,
            ReachError::Dial(_) => 1,
            ReachError::NoRelay | ReachError::Key | ReachError::Here(_) => 0,
        }
    }
}

/// Reaches a host, and carries until one end is over, on a thread of its own.
pub fn reach(wanted: Wanted, host: HostKey, secret: Secret, invited: Option<Invited>) -> Result<Reached, ReachError> {
    let (sender, reached) = std::sync::mpsc::channel();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Err(error.into()))),
        };
        runtime.block_on(async {
            let joined = join(&wanted.at, &host, &secret, invited.as_ref()).await;
            let ready = joined.and_then(|joined| {
                let (ours, theirs) = UnixStream::pair()?;
                theirs.set_nonblocking(true)?;
                let local = tokio::net::UnixStream::from_std(theirs)?;
                let binding = joined.channel.binding();
                let reached = Reached { stream: ours, binding, handle: joined.handle, relay: joined.relay };
                Ok((reached, joined.socket, joined.channel, local))
            });
            match ready {
                Ok((reached, socket, channel, local)) => {
                    let every = wanted.moves_every.filter(|_| !reached.relay.is_direct());
                    if sender.send(Ok(reached)).is_ok() {
                        tokio::select! {
                            _ = carry(socket, channel, local) => {}
                            () = answers_itself(&wanted.at, &host, &secret, every) => {}
                        }
                    }
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        });
    };
    std::thread::Builder::new().name("relay".into()).spawn(work)?;
    reached.recv().unwrap_or_else(|_| Err(std::io::Error::other("the relay's thread ended").into()))
}

/// Ends once the host answers where it listens itself.
async fn answers_itself(at: &[RelayUrl], host: &HostKey, secret: &Secret, every: Option<Duration>) {
    let direct: Vec<RelayUrl> = at.iter().filter(|url| url.is_direct()).cloned().collect();
    let Some(every) = every.filter(|_| !direct.is_empty()) else { return std::future::pending().await };
    loop {
        tokio::time::sleep(every).await;
        if join(&direct, host, secret, None).await.is_ok() {
            return;
        }
    }
}

struct Joined {
    socket: Socket,
    channel: Channel,
    handle: Option<Handle>,
    relay: RelayUrl,
}

async fn join(
    relays: &[RelayUrl],
    host: &HostKey,
    secret: &Secret,
    invited: Option<&Invited>,
) -> Result<Joined, ReachError> {
    let dialer = Dialer::from_env()?;
    let mut left = relays.iter();
    let mut tries = FuturesUnordered::new();
    let mut worst: Option<ReachError> = None;
    let behind = |relay: &RelayUrl| if relay.is_direct() { NEXT_BEHIND_DIRECT } else { NEXT };
    let mut pause = NEXT;
    let keep = |error: ReachError, worst: &mut Option<ReachError>| {
        if worst.as_ref().is_none_or(|known| known.weight() < error.weight()) {
            *worst = Some(error);
        }
    };
    loop {
        if tries.is_empty() {
            match left.next() {
                Some(relay) => {
                    pause = behind(relay);
                    tries.push(through(&dialer, relay, host, secret, invited));
                }
                None => return Err(worst.unwrap_or(ReachError::NoRelay)),
            }
        }
        let is_more = left.len() > 0;
        tokio::select! {
            tried = tries.next() => match tried {
                Some(Ok(joined)) => return Ok(joined),
                Some(Err(error)) => keep(error, &mut worst),
                None => {}
            },
            () = tokio::time::sleep(pause), if is_more => {
                if let Some(relay) = left.next() {
                    pause = behind(relay);
                    tries.push(through(&dialer, relay, host, secret, invited));
                }
            }
        }
    }
}

async fn through(
    dialer: &Dialer,
    relay: &RelayUrl,
    host: &HostKey,
    secret: &Secret,
    invited: Option<&Invited>,
) -> Result<Joined, ReachError> {
    let path = format!("/c/{}", hex_text(&host.0));
    let mut relay = relay.clone();
    let mut dialled = dialer.dial(&relay, &path).await;
    // Once: relays that send a client around in a circle do not keep it.
    if let Err(DialError::Elsewhere(_, other)) = dialled {
        relay = other;
        dialled = dialer.dial(&relay, &path).await;
    }
    let mut socket = match dialled {
        Err(DialError::Elsewhere(..)) => return Err(ReachError::NotThere(relay.to_string())),
        Err(error) if error.is_not_there() => return Err(ReachError::NotThere(relay.to_string())),
        other => other?,
    };
    let (initiator, first) =
        Initiator::new(secret, &host.0, invited, random()).map_err(|_: ChannelError| ReachError::Key)?;
    let no_answer = || ReachError::NoAnswer(relay.to_string());
    socket.send(Message::binary(first)).await.map_err(|_| no_answer())?;
    let second = loop {
        match tokio::time::timeout(ANSWER, socket.next()).await {
            Ok(Some(Ok(Message::Binary(bytes)))) => break bytes,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Ok(_) | Err(_) => return Err(no_answer()),
        }
    };
    let (channel, welcome) = initiator.finish(&second).map_err(|_| ReachError::Impostor(relay.to_string()))?;
    let handle = match welcome {
        Welcome::Known(handle) => Some(handle),
        Welcome::Invited => None,
        Welcome::Unknown => return Err(ReachError::Unknown),
    };
    Ok(Joined { socket, channel, handle, relay })
}
