//! The relay, and both ways to it.
//!
//! A host dials out to a relay and waits there ([`wait`]); a client asks the relay for that host ([`reach`]); the relay joins the two
//! ([`server`]). A host that listens itself is dialled without one ([`Direct`]). What passes through is the sealed channel of `holdfast-channel`: the relay sees that two keys speak, when, and how much.
//! `spec/relay.md` has the protocol.
//!
//! What makes it safe:
//!
//! - A host is registered under a key only if it signs a fresh challenge for this relay with it.
//! - Tokens by which a host picks up a client are 128 random bits, serve once, and end after ten seconds.
//! - Everything is bounded: connections per address and in all, clients per host, messages, silence. Nothing is queued: a side that does not
//!   read stops the other by TCP.
//! - Neither end believes the relay anything: a message that was changed, lost or made up ends the channel, and both ends go on by another.
//!
//! Decides nothing about sessions, actors or rights: a host does that, inside the channel.

mod answer;
mod carry;
mod dial;
mod direct;
pub mod etcd;
mod reach;
pub mod server;
mod stream;
mod url;
mod wait;

pub use answer::{Arrival, Guests, answer};
pub use dial::{CA_VARIABLE, DialError, Dialer};
pub use direct::Direct;
pub use etcd::{Cluster, Member};
pub use reach::{ReachError, Reached, Wanted, reach};
pub use url::{RelayUrl, UrlError};
pub use wait::{Standing, wait};

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// How a WebSocket is held: small buffers, since most connections are idle, and no message longer than the channel's.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * holdfast_channel::MESSAGE_BYTES_MAX)
        .max_message_size(Some(holdfast_channel::MESSAGE_BYTES_MAX))
        .max_frame_size(Some(holdfast_channel::MESSAGE_BYTES_MAX))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}
