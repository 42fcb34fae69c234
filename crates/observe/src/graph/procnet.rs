//! Sockets from `/proc/net`, where netlink is refused: slower, and without the peers of unix sockets.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::sockets::{Facts, state, unix_kind};
use super::{Family, SocketId, SocketKind, SocketState};

/// Reads all the lists; says whether one of them could be read.
pub(super) fn read(mut each: impl FnMut(Facts)) -> bool {
    let mut is_read = false;
    let inet = |kind: SocketKind, family: Family| move |line: &str| inet(line, kind, family);
    is_read |= lines("tcp", inet(SocketKind::Stream, Family::Inet), &mut each);
    is_read |= lines("tcp6", inet(SocketKind::Stream, Family::Inet6), &mut each);
    is_read |= lines("udp", inet(SocketKind::Dgram, Family::Inet), &mut each);
    is_read |= lines("udp6", inet(SocketKind::Dgram, Family::Inet6), &mut each);
    is_read |= lines("unix", unix, &mut each);
    is_read
}

fn lines(name: &str, parse: impl Fn(&str) -> Option<Facts>, each: &mut impl FnMut(Facts)) -> bool {
    let Ok(file) = File::open(format!("/proc/self/net/{name}")) else { return false };
    let mut file = BufReader::with_capacity(64 << 10, file);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if let Some(facts) = parse(&String::from_utf8_lossy(&line)) {
            each(facts);
        }
        line.clear();
    }
    true
}

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 …`
fn inet(line: &str, kind: SocketKind, family: Family) -> Option<Facts> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let inode = words.get(9)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Facts {
        id: SocketId(inode),
        family,
        kind: Some(kind),
        state: state(u8::from_str_radix(words.get(3)?, 16).ok()?),
        local: Some(address(words.get(1)?)?),
        remote: Some(address(words.get(2)?)?).filter(|remote| remote.port() != 0),
        path: None,
        peer: None,
    })
}

/// Words of 32 bits as this machine prints them, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = if ip.len() == 8 {
        Ipv4Addr::from(word(0)?).into()
    } else {
        let words = [word(0)?, word(1)?, word(2)?, word(3)?];
        Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()
    };
    Some(SocketAddr::new(ip, port))
}

/// `0000: 00000002 00000000 00010000 0001 01 12345 /run/x`; the sixth is the state of the kernel's `socket`, and a flag
/// in the fourth says that it listens.
fn unix(line: &str) -> Option<Facts> {
    let line = line.trim_end_matches('\n');
    let mut words = line.splitn(8, ' ').skip(3);
    let listens = u32::from_str_radix(words.next()?, 16).ok()? & 0x10000 != 0;
    let kind = unix_kind(u8::from_str_radix(words.next()?, 16).ok()?);
    let state = match words.next()? {
        _ if listens => Some(SocketState::Listening),
        "01" => Some(SocketState::Unconnected),
        "02" => Some(SocketState::Connecting),
        "03" => Some(SocketState::Established),
        "04" => Some(SocketState::Closing),
        _ => None,
    };
    // Inodes are padded with blanks to five columns, so the rest is split again.
    let rest = line.splitn(7, ' ').nth(6)?.trim_start();
    let (inode, path) = rest.split_once(' ').map_or((rest, None), |(inode, path)| (inode, Some(path.to_owned())));
    Some(Facts {
        id: SocketId(inode.parse().ok()?),
        family: Family::Unix,
        kind,
        state,
        local: None,
        remote: None,
        path,
        peer: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_tcp_is_read() {
        let line =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 100";
        let facts = inet(line, SocketKind::Stream, Family::Inet).unwrap();
        assert_eq!((facts.id, facts.state), (SocketId(12345), Some(SocketState::Listening)));
        assert_eq!((facts.local, facts.remote), (Some("127.0.0.1:8080".parse().unwrap()), None));
        let six =
            "  0: 00000000000000000000000001000000:0016 00000000000000000000000001000000:1234 01 0:0 0:0 0 0 0 77 1";
        let facts = inet(six, SocketKind::Stream, Family::Inet6).unwrap();
        assert_eq!(
            (facts.local, facts.remote),
            (Some("[::1]:22".parse().unwrap()), Some("[::1]:4660".parse().unwrap()))
        );
    }

    #[test]
    fn a_line_of_unix_is_read_with_its_blanks() {
        let facts = unix("0000000000000000: 00000002 00000000 00010000 0001 01   345 /run/a b\n").unwrap();
        assert_eq!(
            (facts.id, facts.state, facts.kind),
            (SocketId(345), Some(SocketState::Listening), Some(SocketKind::Stream))
        );
        assert_eq!(facts.path.as_deref(), Some("/run/a b"));
        let facts = unix("0000000000000000: 00000003 00000000 00000000 0002 03 1234567").unwrap();
        assert_eq!((facts.state, facts.path), (Some(SocketState::Established), None));
    }

    #[test]
    fn headings_and_nonsense_are_nobody() {
        for line in [
            "",
            "  sl  local_address rem_address   st tx_queue",
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "0: x y z",
        ] {
            assert!(inet(line, SocketKind::Stream, Family::Inet).is_none(), "{line}");
            assert!(unix(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_listener_of_ours_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let mut found = Vec::new();
        assert!(read(|facts| found.push((facts.local, facts.state))));
        assert!(found.contains(&(Some(local), Some(SocketState::Listening))));
    }
}
