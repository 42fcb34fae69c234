//! A client that writes to its keeper directly, as an attached program does, frame by frame.

use crate::wait::{PATIENCE, poll};
use holdfast_abi::address::Address;
use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper, ToKeeper, Token, VERSION, Welcome};
use holdfast_types::{Fence, hex_bytes};
use holdfast_wire::params::AttachAnswer;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::path::Path;

/// A connection to a keeper that the host admitted.
pub struct Direct {
    socket: OwnedFd,
    /// What the keeper said at the door.
    pub welcome: Welcome,
    seq: u64,
}

impl Direct {
    /// Shows the keeper the token of an attach.
    pub fn of(attached: &AttachAnswer) -> Direct {
        let token = hex_bytes(&attached.token).unwrap().try_into().unwrap();
        Direct::open(Path::new(&attached.keeper), 0, token)
    }

    /// Takes the host's place, with the session's secret.
    pub fn as_host(keeper: &Path, secret: Token) -> Direct {
        Direct::open(keeper, 1, secret)
    }

    fn open(keeper: &Path, role: u8, token: Token) -> Direct {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let address = Address::of(keeper).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(address.path()).unwrap()).unwrap();
        send(&socket, ToKeeper::Hello { version: VERSION, role, token });
        let welcome = receive(&socket, "a welcome", |frame| match frame {
            FromKeeper::Welcome(welcome) => Some(welcome),
            _ => None,
        });
        Direct { socket, welcome, seq: 0 }
    }

    /// Says something.
    pub fn send(&self, frame: ToKeeper<'_>) {
        send(&self.socket, frame);
    }

    /// Waits for a frame that fits; others are passed over.
    #[track_caller]
    pub fn receive<T>(&self, what: &str, fits: impl FnMut(FromKeeper<'_>) -> Option<T>) -> T {
        receive(&self.socket, what, fits)
    }

    /// Types under a fence: the offset at which it was written, or the code of the refusal.
    #[track_caller]
    pub fn types(&mut self, fence: Fence, bytes: &[u8]) -> Result<u64, u8> {
        self.seq += 1;
        let (stream, wanted) = (u64::from(self.welcome.connection), self.seq);
        self.send(ToKeeper::Input { fence: fence.0, stream, seq: wanted, bytes });
        self.receive("an answer to what was typed", |frame| match frame {
            FromKeeper::Written { seq, head, .. } if seq == wanted => Some(Ok(head)),
            FromKeeper::Refused { seq, code, .. } if seq == wanted => Some(Err(code)),
            _ => None,
        })
    }
}

fn send(socket: &OwnedFd, frame: ToKeeper<'_>) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL).unwrap();
}

#[track_caller]
fn receive<T>(socket: &OwnedFd, what: &str, mut fits: impl FnMut(FromKeeper<'_>) -> Option<T>) -> T {
    let mut buffer = [0; FRAME_BYTES_MAX];
    let came = poll(|| match rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => panic!("the keeper closed the connection before {what}"),
        Ok((count, _)) => fits(FromKeeper::decode(&buffer[..count]).unwrap()),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => None,
        Err(error) => panic!("{error} before {what}"),
    });
    came.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for {what}"))
}
