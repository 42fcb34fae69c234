//! Two messages, and each side knows the other's key.
//!
//! | message | bytes |
//! |---|---|
//! | 1, client to host | version (1), mode (0: known, 1: invited), Noise message 1 with the payload: nothing, or the invite's id |
//! | 2, host to client | Noise message 2 with the payload: 0 and the handle by which the host knows the client; or 1: it does not |

use crate::frames::Channel;
use crate::key::{Secret, exchange_key};
use crate::{ChannelError, MESSAGE_BYTES_MAX};
use curve25519_dalek::montgomery::MontgomeryPoint;
use holdfast_types::Handle;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

/// The version of the channel.
pub const VERSION: u8 = 1;
/// Longest handshake message: the longest of them has some two hundred bytes.
pub const HANDSHAKE_BYTES_MAX: usize = 1024;

const KNOWN: &str = "Noise_IK_25519_AESGCM_SHA256";
const INVITED: &str = "Noise_IKpsk2_25519_AESGCM_SHA256";
/// What both sides mix in first, with version and mode behind it: a message for another protocol or mode does not open.
const PROLOGUE: &[u8] = b"holdfast channel";
const MODE_KNOWN: u8 = 0;
const MODE_INVITED: u8 = 1;
const WELCOME: u8 = 0;
const UNKNOWN: u8 = 1;
/// Where the invite's secret is mixed in.
const PSK_PLACE: u8 = 2;

/// What an invited client has: which invite, and its secret.
#[derive(Debug, Clone)]
pub struct Invited {
    /// Which.
    pub id: [u8; 16],
    /// What only host and guest know.
    pub secret: Secret32,
}

/// A secret that does not print.
pub type Secret32 = Zeroizing<[u8; 32]>;

/// Who asks to be let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// A key, in its X25519 form. It is proven by the channel's first frame, not before.
    Known([u8; 32]),
    /// A key that comes with an invite.
    Invited {
        /// The key, in its X25519 form.
        key: [u8; 32],
        /// Which invite.
        id: [u8; 16],
    },
}

/// What the host says to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Welcome {
    /// It knows the client by this handle.
    Known(Handle),
    /// It knows the invite.
    Invited,
    /// It does not know the client's key.
    Unknown,
}

/// The client's half.
#[derive(Debug)]
pub struct Initiator {
    state: HandshakeState,
    mode: u8,
}

/// The host's half, once it has read the first message.
#[derive(Debug)]
pub struct Responder {
    state: HandshakeState,
    asks: Asks,
}

impl Initiator {
    /// Begins: gives the first message. `random` is used up.
    pub fn new(
        secret: &Secret,
        host: &[u8; 32],
        invited: Option<&Invited>,
        random: [u8; 32],
    ) -> Result<(Initiator, Vec<u8>), ChannelError> {
        let mode = if invited.is_some() { MODE_INVITED } else { MODE_KNOWN };
        let (own, host, prologue) = (secret.exchange(), exchange_key(host)?, prologue(mode));
        let builder = builder(mode, random).local_private_key(&own[..]).and_then(|b| b.remote_public_key(&host));
        let builder = builder.and_then(|b| b.prologue(&prologue));
        let builder = match invited {
            Some(invited) => builder.and_then(|b| b.psk(PSK_PLACE, &invited.secret)),
            None => builder,
        };
        let mut state = builder.and_then(Builder::build_initiator).map_err(|_| ChannelError::Key)?;
        let payload = invited.map_or(&[][..], |invited| &invited.id);
        let mut message = vec![0; HANDSHAKE_BYTES_MAX];
        message[..2].copy_from_slice(&[VERSION, mode]);
        let length = state.write_message(payload, &mut message[2..]).map_err(|_| ChannelError::Key)?;
        message.truncate(2 + length);
        Ok((Initiator { state, mode }, message))
    }

    /// Reads the second message. A host that has another key than the expected one cannot have written it.
    pub fn finish(mut self, message: &[u8]) -> Result<(Channel, Welcome), ChannelError> {
        let payload = read(&mut self.state, message)?;
        let welcome = match (payload.split_first(), self.mode) {
            (Some((&WELCOME, handle)), MODE_KNOWN) => {
                let handle = std::str::from_utf8(handle).ok().and_then(|handle| handle.parse().ok());
                Welcome::Known(handle.ok_or(ChannelError::Handshake)?)
            }
            (Some((&WELCOME, [])), MODE_INVITED) => Welcome::Invited,
            (Some((&UNKNOWN, [])), MODE_KNOWN) => Welcome::Unknown,
            _ => return Err(ChannelError::Handshake),
        };
        Ok((Channel::new(self.state)?, welcome))
    }
}

impl Responder {
    /// Reads the first message. It may be an old one that somebody repeats: nothing may change by it.
    pub fn read(secret: &Secret, message: &[u8], random: [u8; 32]) -> Result<Responder, ChannelError> {
        let mode = match message {
            [VERSION, mode @ (MODE_KNOWN | MODE_INVITED), ..] => *mode,
            [VERSION, ..] | [] => return Err(ChannelError::Handshake),
            [version, ..] => return Err(ChannelError::Version(*version)),
        };
        let (own, prologue) = (secret.exchange(), prologue(mode));
        let builder = builder(mode, random).local_private_key(&own[..]).and_then(|b| b.prologue(&prologue));
        let mut state = builder.and_then(Builder::build_responder).map_err(|_| ChannelError::Key)?;
        let payload = read(&mut state, &message[2..])?;
        let key = state.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(ChannelError::Handshake)?;
        let asks = match (mode, payload.len()) {
            (MODE_KNOWN, 0) => Asks::Known(key),
            (MODE_INVITED, 16) => Asks::Invited { key, id: payload.try_into().map_err(|_| ChannelError::Handshake)? },
            _ => return Err(ChannelError::Handshake),
        };
        Ok(Responder { state, asks })
    }

    /// Who asks.
    #[must_use]
    pub fn asks(&self) -> Asks {
        self.asks
    }

    /// Lets a known client in, under its handle: gives the second message.
    pub fn welcome(self, handle: &Handle) -> Result<(Channel, Vec<u8>), ChannelError> {
        let payload = [&[WELCOME], handle.to_string().as_bytes()].concat();
        self.answer(&payload)
    }

    /// Lets the guest of an invite in: gives the second message, which only its secret opens.
    pub fn welcome_guest(mut self, secret: &[u8; 32]) -> Result<(Channel, Vec<u8>), ChannelError> {
        self.state.set_psk(PSK_PLACE.into(), secret).map_err(|_| ChannelError::Key)?;
        self.answer(&[WELCOME])
    }

    /// Tells a client that its key is not known: gives the second message.
    pub fn refuse(self) -> Result<Vec<u8>, ChannelError> {
        self.answer(&[UNKNOWN]).map(|(_, message)| message)
    }

    fn answer(mut self, payload: &[u8]) -> Result<(Channel, Vec<u8>), ChannelError> {
        let mut message = vec![0; HANDSHAKE_BYTES_MAX];
        let length = self.state.write_message(payload, &mut message).map_err(|_| ChannelError::Handshake)?;
        message.truncate(length);
        Ok((Channel::new(self.state)?, message))
    }
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, ChannelError> {
    if message.len() > HANDSHAKE_BYTES_MAX {
        return Err(ChannelError::Handshake);
    }
    let mut payload = vec![0; MESSAGE_BYTES_MAX];
    let length = state.read_message(message, &mut payload).map_err(|_| ChannelError::Handshake)?;
    payload.truncate(length);
    Ok(payload)
}

fn prologue(mode: u8) -> Vec<u8> {
    [PROLOGUE, &[VERSION, mode]].concat()
}

fn builder<'a>(mode: u8, random: [u8; 32]) -> Builder<'a> {
    let name = if mode == MODE_INVITED { INVITED } else { KNOWN };
    let resolver: BoxedCryptoResolver = Box::new(Crypto(random));
    Builder::with_resolver(name.parse().expect("both names are sound"), resolver)
}

/// ring's cipher and hash, and random bytes from the caller.
struct Crypto([u8; 32]);

impl CryptoResolver for Crypto {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(Zeroizing::new(self.0)))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519::default())),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

/// Gives its bytes once: a handshake draws one key.
struct Once(Option<Zeroizing<[u8; 32]>>);

impl Random for Once {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), snow::Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == into.len()).ok_or(snow::Error::Rng)?;
        into.copy_from_slice(&bytes[..]);
        Ok(())
    }
}

/// X25519, as Noise calls for it.
#[derive(Default)]
struct X25519 {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, secret: &[u8]) {
        self.secret.copy_from_slice(&secret[..32]);
        self.public = MontgomeryPoint::mul_base_clamped(*self.secret).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        let mut secret = Zeroizing::new([0; 32]);
        random.try_fill_bytes(&mut secret[..])?;
        self.set(&secret[..]);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret[..]
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public = public.first_chunk().ok_or(snow::Error::Dh)?;
        let shared = Zeroizing::new(MontgomeryPoint(*public).mul_clamped(*self.secret).to_bytes());
        // A point of small order would make the secret everybody's.
        if *shared == [0; 32] {
            return Err(snow::Error::Dh);
        }
        out.get_mut(..32).ok_or(snow::Error::Dh)?.copy_from_slice(&shared[..]);
        Ok(())
    }
}
