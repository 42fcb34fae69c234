//! Opens a link that logs in, in the person's browser, without showing it to the machine's other users.
//!
//! The arguments of a program can be read by every user. So the browser is started with an address on loopback that has
//! nothing secret in it, and whoever asks there is sent on to the link, once, if it is this user: the kernel says whose a
//! connection within the machine is. A file would do as well, but browsers in sandboxes cannot read most directories.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::geteuid;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A browser that was not running may take this long to ask; nobody waits longer for the prompt.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often to look whether the opener has failed.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A browser sends its request at once.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Longest head of a request that is read: a browser's has a few hundred bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Opens a link; gives false where nobody came for it.
pub fn open(link: &str) -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut opener = Command::new("xdg-open")
        .arg(format!("http://{}/", listener.local_addr()?))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    send_on(&listener, link, is_ours, || Instant::now() < deadline && !has_failed(&mut opener))
}

fn has_failed(opener: &mut Child) -> bool {
    matches!(opener.try_wait(), Ok(Some(status)) if !status.success())
}

/// Answers until somebody of ours was sent to the link, or it is time to stop.
fn send_on(
    listener: &TcpListener,
    link: &str,
    is_ours: impl Fn(SocketAddr, SocketAddr) -> bool,
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<bool> {
    let here = listener.local_addr()?;
    let patience = LOOK_EVERY.try_into().expect("short times fit");
    while goes_on() {
        match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let (stream, from) = listener.accept()?;
        // Before it is heard: what somebody else sends is not even read.
        let ours = is_ours(from, here);
        // One that breaks off is no reason to stop: the browser may come next.
        if answer(stream, here, ours.then_some(link)).unwrap_or(false) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Answers one request, with the link for whoever may have it; gives whether it was sent there.
fn answer(mut stream: TcpStream, here: SocketAddr, link: Option<&str>) -> io::Result<bool> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let asks = link.is_some() && asks_for_link(&head(&mut stream)?, here);
    let always = "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Length: 0\r\nConnection: close";
    let said = match link.filter(|_| asks) {
        Some(link) => format!("HTTP/1.1 302 Found\r\nLocation: {link}\r\n{always}\r\n\r\n"),
        None => format!("HTTP/1.1 403 Forbidden\r\n{always}\r\n\r\n"),
    };
    stream.write_all(said.as_bytes())?;
    Ok(asks)
}

/// A request's head, as far as it came.
fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut piece)? {
            0 => break,
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    Ok(head)
}

/// Whether a request is a browser's for this very address, and not for an icon or by another name.
fn asks_for_link(head: &[u8], here: SocketAddr) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let asks = lines.next().is_some_and(|line| line.starts_with("GET / HTTP/1."));
    let host = lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("host"));
    asks && host.is_some_and(|(_, host)| host.trim() == here.to_string())
}

/// Whether a connection within the machine is of this process's user.
fn is_ours(from: SocketAddr, here: SocketAddr) -> bool {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let owner = tables.iter().find_map(|table| owner(&std::fs::read_to_string(table).ok()?, from, here));
    owner == Some(geteuid().as_raw())
}

/// The user whose end of a connection this is, by the kernel's table.
fn owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
        ((local, remote) == (from, to)).then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

/// An address as the kernel's table has it: words in this machine's order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let bytes: [u8; 16] = words.try_into().ok()?;
            IpAddr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "http://127.0.0.1:7433/#code=0123";

    #[test]
    fn the_kernels_table_says_whose_a_connection_is() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1D09 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n\
            1: 0100007F:A3B8 0100007F:1D09 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0\n\
            2: 0100007F:1D09 0100007F:A3B8 01 00000000:00000000 00:00000000 00000000     7        0 3 1 0\n";
        let (browser, host) = ("127.0.0.1:41912".parse().unwrap(), "127.0.0.1:7433".parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(owner(table, browser, host), Some(1000));
            assert_eq!(owner(table, host, browser), Some(7), "the other end");
            assert_eq!(address("0000000000000000FFFF00000100007F:A3B8"), Some(browser), "by way of IPv6");
        }
        assert_eq!(owner(table, "127.0.0.1:41913".parse().unwrap(), host), None);
        assert_eq!(address("nonsense:1"), None);
    }

    /// What comes back for each of these requests, one after the other, while `is_ours` says whose they are.
    fn asked(requests: &[(bool, &str)]) -> (Vec<String>, bool) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let here = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(move || {
                let ask = |request: &str| {
                    let mut stream = TcpStream::connect(here).unwrap();
                    stream.write_all(request.replace("HERE", &here.to_string()).as_bytes()).unwrap();
                    let mut answer = String::new();
                    let _ = stream.read_to_string(&mut answer);
                    answer
                };
                requests.iter().map(|(_, request)| ask(request)).collect::<Vec<_>>()
            });
            let turn = std::cell::Cell::new(0);
            let ours = |_, _| requests[turn.replace(turn.get() + 1)].0;
            let sent = send_on(&listener, LINK, ours, || turn.get() < requests.len());
            (asking.join().unwrap(), sent.unwrap())
        })
    }

    #[test]
    fn the_link_is_for_this_users_browser_and_for_no_other() {
        let get = "GET / HTTP/1.1\r\nHost: HERE\r\n\r\n";
        let strange = [
            (false, get),
            (true, "GET /favicon.ico HTTP/1.1\r\nHost: HERE\r\n\r\n"),
            (true, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            (true, "GET / HTTP/1.1\r\n\r\n"),
            (true, "POST / HTTP/1.1\r\nHost: HERE\r\n\r\n"),
        ];
        let (answers, sent) = asked(&strange);
        assert!(answers.iter().all(|answer| !answer.contains("code=")) && !sent, "{answers:?}");
        let (answers, sent) = asked(&[(false, get), (true, get)]);
        assert!(!answers[0].contains("code=") && answers[1].contains(&format!("Location: {LINK}\r\n")), "{answers:?}");
        assert!(sent);
    }

    #[test]
    fn a_connection_of_this_process_is_its_users() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let _ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_theirs, from) = listener.accept().unwrap();
        assert!(is_ours(from, listener.local_addr().unwrap()));
        assert!(!is_ours("127.0.0.1:1".parse().unwrap(), listener.local_addr().unwrap()), "no such connection");
    }
}
