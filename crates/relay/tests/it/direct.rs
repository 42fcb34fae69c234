//! A host that listens itself.

use crate::world::{PATIENCE, ask_at, client, host, listening, relay, runtime, waiting};
use holdfast_channel::Secret;
use holdfast_relay::server::Limits;
use holdfast_relay::{ReachError, RelayUrl};
use holdfast_types::hex_text;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

fn here() -> (TcpListener, RelayUrl) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = RelayUrl::direct(&listener.local_addr().unwrap().to_string()).unwrap();
    (listener, url)
}

/// A port of this machine where nobody listens.
fn nobody() -> SocketAddr {
    here().0.local_addr().unwrap()
}

#[test]
fn a_host_that_listens_itself_is_reached_without_its_relay_and_one_that_does_not_through_it() {
    let runtime = runtime();
    let through = relay(&runtime, Limits::default());
    let (listener, direct) = here();
    let _waiting = waiting(&through);
    let arrivals = listening(listener);
    let reached = ask_at(vec![direct.clone(), through.clone()], None, client()).unwrap();
    assert_eq!((&reached.relay, reached.handle), (&direct, Some("human:ann".parse().unwrap())));
    let (mut near, mut far) = (reached.stream, arrivals.recv_timeout(PATIENCE).unwrap().stream);
    near.write_all(b"hello").unwrap();
    let mut got = [0; 5];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");
    let away = RelayUrl::direct(&nobody().to_string()).unwrap();
    assert_eq!(ask_at(vec![away, through.clone()], None, client()).unwrap().relay, through);
    // A key that it does not know is told so, as through a relay.
    assert!(matches!(ask_at(vec![direct], None, Secret::new([9; 32])), Err(ReachError::Unknown)));
}

#[test]
fn a_connection_through_a_relay_ends_once_the_host_answers_itself() {
    let runtime = runtime();
    let through = relay(&runtime, Limits::default());
    let _waiting = waiting(&through);
    let at = nobody();
    let direct = RelayUrl::direct(&at.to_string()).unwrap();
    let all = vec![direct.clone(), through.clone()];
    let soon = Some(Duration::from_millis(20));
    let mut moves = ask_at(all.clone(), soon, client()).unwrap();
    let stays = ask_at(all.clone(), None, client()).unwrap();
    assert_eq!((&moves.relay, &stays.relay), (&through, &through));
    let _arrivals = listening(TcpListener::bind(at).unwrap());
    moves.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(moves.stream.read(&mut [0; 1]).unwrap(), 0, "it is over, and whoever had it connects again");
    assert_eq!(ask_at(all, soon, client()).unwrap().relay, direct);
    stays.stream.set_nonblocking(true).unwrap();
    let still = (&stays.stream).read(&mut [0; 1]).unwrap_err();
    assert_eq!(still.kind(), std::io::ErrorKind::WouldBlock, "whoever does not resume stays");
}

#[test]
fn a_host_that_listens_answers_for_its_own_key_alone_and_serves_nothing_else() {
    let (listener, direct) = here();
    let _arrivals = listening(listener);
    let status = |path: &str, upgrade: bool| {
        let mut stream = TcpStream::connect((direct.name(), direct.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let upgrade = if upgrade {
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        } else {
            ""
        };
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n{upgrade}\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    let own = format!("/c/{}", hex_text(&host().public()));
    assert_eq!(status(&own, true), "101");
    let other = format!("/c/{}", hex_text(&Secret::new([7; 32]).public()));
    for (path, upgrade) in
        [(own.as_str(), false), (&other, true), ("/h", true), ("/d/00", true), ("/i", false), ("/", false)]
    {
        assert_eq!(status(path, upgrade), "404", "{path}");
    }
}
