//! The sealed channel between a client and a host: whatever carries its messages can neither read nor change them.
//!
//! `Noise_IK_25519_AESGCM_SHA256` between a client that knows the host's key and a host that knows the client's; for the first
//! contact `Noise_IKpsk2_25519_AESGCM_SHA256`, with the secret of an invite. Behind the handshake each side sends frames of four
//! kinds ([`Kind`]). `spec/channel.md` has the bytes, `spec/vectors/channel.json` examples.
//!
//! What makes it safe:
//!
//! - Frames have implied numbers: one that is changed, lost, repeated, delayed behind another or made up does not open, and the
//!   channel is dead from then on ([`ChannelError::Dead`]). There is no second try.
//! - The handshake's first message can be repeated by others, so nothing it says has an effect: a host only looks up who asks.
//! - [`Channel::binding`] is of this channel alone. An actor signs it, so a proof made for one host cannot be used at another.
//! - Keys change after so many frames, bytes and minutes; a peer that does not change them is cut off.
//!
//! Knows no sockets, clocks or files: the caller passes messages, `now` and random bytes.

mod frames;
mod handshake;
mod key;
mod link;
mod page;
mod registration;

pub use frames::{Channel, DATA_BYTES_MAX, Kind, MESSAGE_BYTES_MAX, REKEY_BYTES, REKEY_FRAMES, REKEY_MS};
pub use handshake::{Asks, HANDSHAKE_BYTES_MAX, Initiator, Invited, Responder, VERSION, Welcome};
pub use key::{Secret, exchange_key};
pub use link::{InviteLink, LinkError, RELAYS_MAX};
pub use page::{page_bytes, sign_page, verify_page};
pub use registration::{challenge_bytes, prove_host, verify_host};

/// Why a channel is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// A key that cannot be used: no point on the curve, or a weak one.
    #[error("the key cannot be used")]
    Key,
    /// A handshake message of another version.
    #[error("the other side speaks version {0} of the channel")]
    Version(u8),
    /// The other side could not prove its key, or its message was changed.
    #[error("the other side did not prove its key")]
    Handshake,
    /// A frame that did not open, or is none.
    #[error("a frame was changed, lost, repeated or made up")]
    Frame,
    /// The other side uses one key for too long.
    #[error("the other side does not change its key")]
    Stale,
    /// More bytes than a frame holds.
    #[error("too many bytes for one frame")]
    Long,
    /// An earlier error, or an end.
    #[error("the channel is over")]
    Dead,
}
