//! Netlink messages: a header of 16 bytes, then what the protocol says. All numbers are in the machine's own order.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, sendto, socket_with,
};

pub(crate) const HEADER_BYTES: usize = 16;
const KIND_ERROR: u16 = 2;
const KIND_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// The kernel fills at most this much of an answer at once.
const ANSWER_BYTES: usize = 32 << 10;

/// One message of an answer.
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) body: &'a [u8],
}

/// A socket to the kernel.
pub(crate) fn open(protocol: Protocol, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags | SocketFlags::CLOEXEC, Some(protocol))
}

/// Sends one message to the kernel.
pub(crate) fn send(socket: &OwnedFd, kind: u16, flags: u16, body: &[u8]) -> Result<(), Errno> {
    let mut message = vec![0; HEADER_BYTES];
    let length = u32::try_from(HEADER_BYTES + body.len()).map_err(|_| Errno::MSGSIZE)?;
    message[0..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    message.extend_from_slice(body);
    sendto(socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map(drop)
}

/// Receives one datagram; `None` for what is not from the kernel.
pub(crate) fn receive<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>, Errno> {
    let (_, length, from) = recvfrom(socket, &mut *buffer, RecvFlags::empty())?;
    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
    let is_kernel = from.is_some_and(|from| from.pid() == 0);
    Ok(buffer.get(..length).filter(|_| is_kernel))
}

/// The messages of a datagram; ends at the first that is not whole.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 4)?;
        let body = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

/// Asks for a list and gives each of its messages.
pub(crate) fn dump(socket: &OwnedFd, kind: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    send(socket, kind, DUMP, body)?;
    let mut buffer = vec![0; ANSWER_BYTES];
    loop {
        let datagram = match receive(socket, &mut buffer) {
            Ok(Some(datagram)) => datagram,
            Ok(None) | Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        for message in messages(datagram) {
            match message.kind {
                KIND_DONE => return Ok(()),
                KIND_ERROR => {
                    let code = u32_at(message.body, 0).map_or(0, |code| (code as i32).wrapping_neg());
                    return if code == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(code)) };
                }
                _ => each(message.body),
            }
        }
    }
}

/// The attributes that follow a message's fixed part: kind and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_lie_about_their_length_end_the_list() {
        let whole = [20u32.to_ne_bytes(), 9u32.to_ne_bytes(), [0; 4], [0; 4], [1, 2, 3, 4]].concat();
        for (bytes, expected) in [
            (whole.clone(), 1),
            ([whole.clone(), whole.clone()].concat(), 2),
            ([whole.clone(), whole[..10].to_vec()].concat(), 1),
            ([whole.clone(), vec![0xff; 16]].concat(), 1),
            (vec![0; 64], 0),
            (vec![], 0),
        ] {
            assert_eq!(messages(&bytes).count(), expected, "{bytes:?}");
        }
        assert_eq!(messages(&whole).next().map(|message| message.body.to_vec()), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn attributes_end_where_they_are_not_whole() {
        let bytes = [[5, 0, 7, 0], [9, 0, 0, 0], [8, 0, 2, 0], [1, 1, 1, 1], [9, 0, 0, 0]].concat();
        let found: Vec<(u16, Vec<u8>)> = attributes(&bytes).map(|(kind, value)| (kind, value.to_vec())).collect();
        assert_eq!(found, [(7, vec![9]), (2, vec![1; 4])]);
        assert_eq!(attributes(&[0; 8]).count(), 0);
    }
}
