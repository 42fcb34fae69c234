//! What the sockets that were found are: asked of the kernel by `NETLINK_SOCK_DIAG`, and read from `/proc/net` where it
//! refuses.
//!
//! Both answer for our own network namespace only. A socket of a process in another one keeps its inode and its
//! protocol, and says that it is elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SocketFlags, netlink as protocols};

use super::{Family, ProcessId, SocketId, SocketKind, SocketNode, SocketState, procnet};
use crate::netlink;
use crate::proc::Proc;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const AF_UNIX: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
/// Names and peers of unix sockets: `UDIAG_SHOW_NAME | UDIAG_SHOW_PEER`.
const UNIX_SHOW: u32 = 1 | 4;
const UNIX_NAME: u16 = 0;
const UNIX_PEER: u16 = 2;
const STATE_LISTEN: u8 = 10;
/// A state each bit, from 1 on.
const STATES_ALL: u32 = 0xfff;
/// Listening sockets are in a table of their own, a small one: who has no connections is done after it.
const STATES_LISTEN: u32 = 1 << STATE_LISTEN;
/// What UDP calls a socket that takes from anyone.
const STATES_UNCONNECTED: u32 = 1 << 7;

/// The sockets of a session's processes.
pub(super) struct Sockets {
    nodes: BTreeMap<SocketId, SocketNode>,
    /// A descriptor of each, to ask for its protocol.
    seen_at: HashMap<SocketId, (u32, u32)>,
    our_network: Option<Vec<u8>>,
    /// Those whose state is not known yet.
    open: usize,
}

impl Sockets {
    pub(super) fn new(proc: &mut Proc) -> Sockets {
        let us = proc.process(std::process::id()).ok();
        let our_network = us.and_then(|us| proc.link(us, "ns/net").ok().map(<[u8]>::to_vec));
        Sockets { nodes: BTreeMap::new(), seen_at: HashMap::new(), our_network, open: 0 }
    }

    /// Whether a process is in our network namespace; one that may not be asked counts as elsewhere.
    pub(super) fn is_our_network(&self, proc: &mut Proc, dir: BorrowedFd<'_>) -> bool {
        self.our_network.as_deref().is_some_and(|ours| proc.link(dir, "ns/net") == Ok(ours))
    }

    /// A process holds a socket. One that was passed between namespaces is asked about if anyone of ours holds it.
    pub(super) fn held(&mut self, socket: SocketId, by: ProcessId, fd: u32, is_here: bool) {
        self.seen_at.entry(socket).or_insert((by.pid, fd));
        let node = self.nodes.entry(socket).or_insert_with(|| unknown(socket));
        if node.holders.last() != Some(&by) {
            node.holders.push(by);
        }
        if is_here && node.elsewhere {
            node.elsewhere = false;
            self.open += 1;
        }
    }

    /// Asks about them all; says whether there was an answer.
    pub(super) fn resolve(&mut self) -> bool {
        let is_known = self.open == 0 || self.ask().is_ok() || procnet::read(|facts| self.learn(facts));
        self.match_peers();
        for node in self.nodes.values_mut().filter(|node| node.unknown) {
            node.protocol = self.seen_at.get(&node.id).and_then(|(pid, fd)| protocol(*pid, *fd));
        }
        is_known
    }

    pub(super) fn into_nodes(self) -> Vec<SocketNode> {
        self.nodes.into_values().collect()
    }

    fn ask(&mut self) -> Result<(), Errno> {
        let socket = netlink::open(protocols::SOCK_DIAG, SocketFlags::empty())?;
        self.ask_unix(&socket)?;
        for (family, states) in [
            (AF_INET, STATES_LISTEN),
            (AF_INET6, STATES_LISTEN),
            (AF_INET, STATES_ALL & !STATES_LISTEN),
            (AF_INET6, STATES_ALL & !STATES_LISTEN),
        ] {
            self.ask_inet(&socket, family, IPPROTO_TCP, states)?;
        }
        self.ask_inet(&socket, AF_INET, IPPROTO_UDP, STATES_ALL)?;
        self.ask_inet(&socket, AF_INET6, IPPROTO_UDP, STATES_ALL)
    }

    fn ask_inet(&mut self, socket: &OwnedFd, family: u8, protocol: u8, states: u32) -> Result<(), Errno> {
        if self.open == 0 {
            return Ok(());
        }
        inet_each(socket, family, protocol, states, |facts| self.learn(facts))
    }

    fn ask_unix(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        // struct unix_diag_req: family, protocol, padding, states, inode, what to show, and a cookie that is not used.
        let mut request = [0; 24];
        request[0] = AF_UNIX;
        request[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        request[12..16].copy_from_slice(&UNIX_SHOW.to_ne_bytes());
        netlink::dump(socket, BY_FAMILY, &request, |answer| {
            if let Some(facts) = unix(answer) {
                self.learn(facts);
            }
        })
    }

    fn learn(&mut self, facts: Facts) {
        let Some(node) = self.nodes.get_mut(&facts.id).filter(|node| node.unknown && !node.elsewhere) else { return };
        node.unknown = false;
        node.family = Some(facts.family);
        node.kind = facts.kind;
        node.state = facts.state;
        node.local = facts.local;
        node.remote = facts.remote;
        node.path = facts.path;
        node.peer = facts.peer;
        self.open -= 1;
    }

    /// The two ends of a connection within the session have each other's addresses.
    fn match_peers(&mut self) {
        let ends = |node: &SocketNode| Some((node.kind?, node.local?, node.remote?));
        let by_ends: HashMap<_, SocketId> =
            self.nodes.values().filter_map(|node| Some((ends(node)?, node.id))).collect();
        for node in self.nodes.values_mut() {
            if let Some((kind, local, remote)) = ends(node) {
                node.peer = by_ends.get(&(kind, remote, local)).copied();
            }
        }
    }
}

/// Gives every socket of our network namespace that takes connections or datagrams.
///
/// # Errors
///
/// The kernel does not answer such questions.
pub(crate) fn listening(mut each: impl FnMut(u64)) -> io::Result<()> {
    let socket = netlink::open(protocols::SOCK_DIAG, SocketFlags::empty())?;
    for (protocol, states) in [(IPPROTO_TCP, STATES_LISTEN), (IPPROTO_UDP, STATES_UNCONNECTED)] {
        for family in [AF_INET, AF_INET6] {
            inet_each(&socket, family, protocol, states, |facts| each(facts.id.0))?;
        }
    }
    Ok(())
}

/// Asks about the sockets of one family, protocol and set of states.
fn inet_each(
    socket: &OwnedFd,
    family: u8,
    protocol: u8,
    states: u32,
    mut each: impl FnMut(Facts),
) -> Result<(), Errno> {
    // struct inet_diag_req_v2: family, protocol, extensions, padding, states, and an address that is not used.
    let mut request = [0; 56];
    request[0] = family;
    request[1] = protocol;
    request[4..8].copy_from_slice(&states.to_ne_bytes());
    let asked = netlink::dump(socket, BY_FAMILY, &request, |answer| {
        if let Some(facts) = inet(answer, protocol) {
            each(facts);
        }
    });
    // A kernel built without IPv6 does not answer about it.
    asked.or_else(|error| if error == Errno::NOENT { Ok(()) } else { Err(error) })
}

fn unknown(id: SocketId) -> SocketNode {
    SocketNode {
        id,
        family: None,
        kind: None,
        state: None,
        protocol: None,
        local: None,
        remote: None,
        path: None,
        peer: None,
        holders: Vec::new(),
        elsewhere: true,
        unknown: true,
    }
}

/// The kernel gives every socket's protocol a name, and shows it to every process that may open the descriptor's link.
fn protocol(pid: u32, fd: u32) -> Option<String> {
    let mut name = [0; 32];
    let length = rustix::fs::getxattr(format!("/proc/{pid}/fd/{fd}"), "system.sockprotoname", &mut name[..]).ok()?;
    let name = name.get(..length)?;
    Some(String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned())
}

/// What was said about one socket.
pub(super) struct Facts {
    pub(super) id: SocketId,
    pub(super) family: Family,
    pub(super) kind: Option<SocketKind>,
    pub(super) state: Option<SocketState>,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    pub(super) path: Option<String>,
    pub(super) peer: Option<SocketId>,
}

/// The kernel's numbers of TCP's states, which the other protocols borrow.
pub(super) fn state(number: u8) -> Option<SocketState> {
    Some(match number {
        1 => SocketState::Established,
        2 | 3 | 12 => SocketState::Connecting,
        4..=6 | 8 | 9 | 11 => SocketState::Closing,
        7 => SocketState::Unconnected,
        STATE_LISTEN => SocketState::Listening,
        _ => return None,
    })
}

/// struct inet_diag_msg: family, state, timer, retransmits, ports and addresses in network order …, and the inode last.
fn inet(answer: &[u8], protocol: u8) -> Option<Facts> {
    let family = *answer.first()?;
    let address = |port: usize, at: usize| -> Option<SocketAddr> {
        let port = u16::from_be_bytes(answer.get(port..port + 2)?.try_into().ok()?);
        let ip: IpAddr = match family {
            AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(answer.get(at..at + 4)?).ok()?).into(),
            _ => Ipv6Addr::from(<[u8; 16]>::try_from(answer.get(at..at + 16)?).ok()?).into(),
        };
        Some(SocketAddr::new(ip, port))
    };
    // A connection that no process holds any more has no inode.
    let inode = netlink::u32_at(answer, 68).filter(|inode| *inode != 0)?;
    Some(Facts {
        id: SocketId(inode.into()),
        family: if family == AF_INET { Family::Inet } else { Family::Inet6 },
        kind: Some(if protocol == IPPROTO_TCP { SocketKind::Stream } else { SocketKind::Dgram }),
        state: state(*answer.get(1)?),
        local: address(4, 8),
        remote: address(6, 24).filter(|remote| remote.port() != 0),
        path: None,
        peer: None,
    })
}

/// struct unix_diag_msg: family, kind, state, padding, inode, cookie; then attributes.
fn unix(answer: &[u8]) -> Option<Facts> {
    let mut facts = Facts {
        id: SocketId(netlink::u32_at(answer, 4)?.into()),
        family: Family::Unix,
        kind: unix_kind(*answer.get(1)?),
        state: state(*answer.get(2)?),
        local: None,
        remote: None,
        path: None,
        peer: None,
    };
    for (kind, value) in netlink::attributes(answer.get(16..)?) {
        match kind {
            UNIX_NAME => facts.path = Some(unix_path(value)),
            UNIX_PEER => facts.peer = netlink::u32_at(value, 0).filter(|peer| *peer != 0).map(|at| SocketId(at.into())),
            _ => {}
        }
    }
    Some(facts)
}

pub(super) fn unix_kind(number: u8) -> Option<SocketKind> {
    match number {
        1 => Some(SocketKind::Stream),
        2 => Some(SocketKind::Dgram),
        5 => Some(SocketKind::Seqpacket),
        _ => None,
    }
}

/// A name that starts with a zero is abstract; a path may end with one.
fn unix_path(name: &[u8]) -> String {
    match name.split_first() {
        Some((0, rest)) => format!("@{}", String::from_utf8_lossy(rest)),
        _ => String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_cut_short_are_nobody() {
        let whole = [AF_INET; 72];
        assert!(inet(&whole, IPPROTO_TCP).is_some());
        for length in 0..72 {
            assert!(inet(&whole[..length], IPPROTO_TCP).is_none(), "{length}");
            assert!(length >= 16 || unix(&whole[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn abstract_names_start_with_an_at_sign() {
        assert_eq!(unix_path(b"\0bus"), "@bus");
        assert_eq!(unix_path(b"/run/x\0"), "/run/x");
        assert_eq!(unix_path(b""), "");
    }
}
