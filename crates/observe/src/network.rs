//! Whether sockets come and go, without a look at any process: a question cheap enough to be asked many times a second.
//!
//! The kernel counts the sockets of a network namespace and tells the counts in microseconds. Which sockets they are takes
//! a thousand times as long, so that is asked only after a count has moved. Counts are those of our own namespace, like
//! everything that is told of sockets here. One that opens while another closes may leave them as they were: who wants to
//! be sure looks from time to time all the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::graph::listening;

/// What the kernel tells at most in one of these files.
const TEXT_BYTES_MAX: usize = 4096;

/// The counts of sockets, as they were last.
#[derive(Debug)]
pub struct Network {
    files: Vec<File>,
    text: Vec<u8>,
    counts: Vec<u64>,
}

impl Network {
    /// The counts of ports that are open; with those of connections that were ever made, if these are wanted too.
    ///
    /// # Errors
    ///
    /// There are no counts here: the sockets must be looked at.
    pub fn new(with_connections: bool) -> io::Result<Network> {
        let mut files = vec![File::open("/proc/net/sockstat")?];
        // A kernel built without IPv6 has no second one.
        files.extend(File::open("/proc/net/sockstat6"));
        if with_connections {
            files.push(File::open("/proc/net/snmp")?);
        }
        let mut network = Network { files, text: vec![0; TEXT_BYTES_MAX], counts: Vec::new() };
        network.moved();
        if network.counts.is_empty() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel counts no sockets here"));
        }
        Ok(network)
    }

    /// Whether they are others than the last time.
    pub fn moved(&mut self) -> bool {
        let mut counts = Vec::with_capacity(self.counts.len());
        for file in &self.files {
            if let Ok(length) = file.read_at(&mut self.text, 0) {
                read_counts(&self.text[..length], &mut counts);
            }
        }
        let moved = counts != self.counts;
        self.counts = counts;
        moved
    }
}

/// What this machine's network namespace has ever connected to and sent: connections opened, datagrams sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opens {
    connections: u64,
    datagrams: u64,
}

impl Opens {
    /// Reads the kernel's counters: they only grow.
    ///
    /// # Errors
    ///
    /// There are none here.
    pub fn read() -> io::Result<Opens> {
        let text = std::fs::read_to_string("/proc/net/snmp")?;
        let six = std::fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
        opens(&text, &six)
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the kernel counts no connections here"))
    }
}

fn opens(text: &str, six: &str) -> Option<Opens> {
    let field = |kind: &str, name: &str| -> Option<u64> {
        let mut lines = text.lines().filter(|line| line.starts_with(kind));
        let (names, values) = (lines.next()?, lines.next()?);
        let at = names.split_ascii_whitespace().position(|word| word == name)?;
        values.split_ascii_whitespace().nth(at)?.parse().ok()
    };
    let sent = six.lines().filter_map(|line| line.strip_prefix("Udp6OutDatagrams"));
    let sent: u64 = sent.filter_map(|count| count.trim().parse::<u64>().ok()).sum();
    Some(Opens { connections: field("Tcp:", "ActiveOpens")?, datagrams: field("Udp:", "OutDatagrams")? + sent })
}

/// A number that is another one when other ports are open.
///
/// # Errors
///
/// The kernel does not tell.
pub fn ports_mark() -> io::Result<u64> {
    let mut mark = 0u64;
    listening(|inode| {
        // Spread, and added: the order in which they are listed does not count.
        mark = mark.wrapping_add((inode ^ inode >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    })?;
    Ok(mark)
}

/// The counts that move when a socket opens or connects: `inuse` of `sockstat`, opens and established ones of `snmp`.
fn read_counts(text: &[u8], counts: &mut Vec<u64>) {
    let text = String::from_utf8_lossy(text);
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("TCP:" | "TCP6:" | "UDP:" | "UDP6:") => {
                counts.extend(words.nth(1).and_then(|count| count.parse::<u64>().ok()));
            }
            // Names in one line, values in the next.
            Some("Tcp:") if names.is_empty() => names = words.collect(),
            Some("Tcp:") => {
                let wanted = names
                    .iter()
                    .zip(words)
                    .filter(|(name, _)| matches!(**name, "ActiveOpens" | "PassiveOpens" | "CurrEstab"));
                counts.extend(wanted.filter_map(|(_, count)| count.parse::<u64>().ok()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn counts_are_taken_by_their_names() {
        let mut counts = Vec::new();
        let text = "sockets: used 27\nTCP: inuse 8 orphan 0 tw 1 alloc 1 mem 221\nUDP: inuse 3 mem 0\nRAW: inuse 9\n\
                    TCP6: inuse 2\nUDP6: inuse x\nTcp: RtoMin ActiveOpens PassiveOpens CurrEstab InSegs\nTcp: 200 7 6 5 99\n";
        read_counts(text.as_bytes(), &mut counts);
        assert_eq!(counts, [8, 3, 2, 7, 6, 5]);
        let mut none = Vec::new();
        read_counts(b"TCP:\nTcp:\nTcp: 1 2\n\xff\xfe", &mut none);
        assert_eq!(none, [0u64; 0]);
    }

    #[test]
    fn what_was_ever_opened_is_read_by_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: RtoMin ActiveOpens\nTcp: 200 7\nUdp: InDatagrams OutDatagrams\nUdp: 1 4\n";
        assert_eq!(opens(text, "Udp6OutDatagrams  \t3\n"), Some(Opens { connections: 7, datagrams: 7 }));
        assert_eq!(opens("Tcp: ActiveOpens\n", ""), None);
        let before = Opens::read().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        assert_ne!(Opens::read().unwrap(), before);
    }

    #[test]
    fn a_port_that_opens_moves_the_counts_and_the_mark() {
        let mut network = Network::new(false).unwrap();
        let before = ports_mark().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = ports_mark().unwrap();
        assert_ne!(open, before);
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_ne!(ports_mark().unwrap(), open);
        drop((listener, datagrams));
        // Another on this machine may close one at the same moment, but not each time.
        network.moved();
        let mut held = Vec::new();
        let moves = (0..100).filter(|_| {
            held.push(TcpListener::bind("127.0.0.1:0").unwrap());
            network.moved()
        });
        assert!(moves.count() > 50);
    }

    #[test]
    fn a_connection_moves_the_counts_of_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut network = Network::new(true).unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // Ever made, so no other that ends can hide it.
        assert!(network.moved());
        drop(connection);
    }
}
