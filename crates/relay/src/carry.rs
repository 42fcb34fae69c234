//! A local socket's bytes through a sealed channel over a WebSocket, both ways, until one end is over.

use crate::stream::Socket;
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::{Channel, ChannelError, Kind};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};

/// After so much silence of ours we say that we are there.
const ALIVE: Duration = Duration::from_secs(5);
/// After so much silence of the other side the path is dead: three that were not heard.
const SILENT: Duration = Duration::from_secs(15);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);
/// Bytes sealed at once: large enough for speed, small enough that a key typed behind a flood does not wait long.
const PIECE_BYTES: usize = 32 * 1024;

/// Why a channel stopped carrying.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// A frame did not open.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The carrier broke.
    #[error("the connection broke: {0}")]
    Carrier(String),
    /// Nothing came for too long.
    #[error("nothing was heard for {} seconds", SILENT.as_secs())]
    Silent,
    /// The local end broke.
    #[error("the local end broke: {0}")]
    Local(#[from] io::Error),
}

impl From<Error> for Cut {
    fn from(error: Error) -> Cut {
        Cut::Carrier(error.to_string())
    }
}

/// Carries until both directions have ended, or one is cut. The local socket is closed then.
pub(crate) async fn carry(socket: Socket, channel: Channel, local: UnixStream) -> Result<(), Cut> {
    let began = Instant::now();
    let channel = Mutex::new(channel);
    let seal = |kind, body: &[u8]| {
        let now_ms = began.elapsed().as_millis() as u64;
        channel.lock().unwrap_or_else(PoisonError::into_inner).seal(kind, body, now_ms)
    };
    let (mut sink, mut source) = socket.split();
    let (mut from, mut to) = local.into_split();
    let up = async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let (kind, count) = match timeout(ALIVE, from.read(&mut buffer)).await {
                Err(_) => (Kind::Alive, 0),
                Ok(Ok(0)) => (Kind::End, 0),
                Ok(Ok(count)) => (Kind::Data, count),
                // Whoever was there closed it with something unread.
                Ok(Err(_)) => (Kind::End, 0),
            };
            for message in seal(kind, &buffer[..count])? {
                sink.send(Message::binary(message)).await?;
            }
            if kind == Kind::End {
                return Ok::<(), Cut>(());
            }
        }
    };
    let down = async {
        loop {
            let message = timeout(SILENT, source.next()).await.map_err(|_| Cut::Silent)?;
            let bytes = match message {
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(_)) | None => return Err(Cut::Carrier("it was closed".into())),
                Some(Err(error)) => return Err(error.into()),
            };
            let opened = channel.lock().unwrap_or_else(PoisonError::into_inner).open(&bytes);
            match opened? {
                (Kind::Data, body) => to.write_all(&body).await?,
                (Kind::Alive | Kind::Rekey, _) => {}
                (Kind::End, _) => {
                    let _ = to.shutdown().await;
                    return Ok(());
                }
            }
        }
    };
    let carried = tokio::try_join!(up, down).map(|_| ());
    let _ = timeout(GOODBYE, sink.close()).await;
    carried
}
