//! Hosts and clients at a relay: one that is as it should be, and one that is not.

use crate::world::{PATIENCE, ask, ask_at, client, host, relay, runtime, waiting};
use futures_util::{SinkExt, StreamExt};
use holdfast_channel::{Secret, prove_host};
use holdfast_relay::server::{Config, Limits, bind};
use holdfast_relay::{ReachError, RelayUrl};
use holdfast_types::{hex_bytes, hex_text};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async, client_async};

#[test]
fn a_client_is_joined_with_the_host_it_knows_and_both_know_one_channel() {
    let runtime = runtime();
    let url = relay(&runtime, Limits::default());
    assert!(matches!(ask(&url, client()), Err(ReachError::NotThere(_))));
    let arrivals = waiting(&url);
    let reached = ask(&url, client()).unwrap();
    assert_eq!(reached.handle, Some("human:ann".parse().unwrap()));
    let arrival = arrivals.recv_timeout(PATIENCE).unwrap();
    assert_eq!((arrival.binding, arrival.invite), (reached.binding, None));
    // More than any buffer on the way, both ways at once.
    let bytes: Vec<u8> = (0..4_000_000u32).map(|n| (n % 251) as u8).collect();
    let (near, far) = (reached.stream, arrival.stream);
    std::thread::scope(|scope| {
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (mut from, mut to, bytes) = (from, to, &bytes);
            scope.spawn(move || {
                to.write_all(bytes).unwrap();
                to.shutdown(std::net::Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut got = Vec::new();
                from.read_to_end(&mut got).unwrap();
                assert!(got == *bytes, "{} of {} bytes", got.len(), bytes.len());
            });
        }
    });
    // A key that the host does not know is told so by the host.
    assert!(matches!(ask(&url, Secret::new([9; 32])), Err(ReachError::Unknown)));
    assert!(matches!(ask_at(vec![], None, client()), Err(ReachError::NoRelay)));
}

/// A WebSocket to a path, or the status and text of the refusal.
async fn open(url: &RelayUrl, path: &str) -> Result<WebSocketStream<tokio::net::TcpStream>, (u16, String)> {
    let stream = tokio::net::TcpStream::connect((url.name(), url.port())).await.unwrap();
    match client_async(format!("ws://{}{path}", url.address()), stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
            let text = String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into_owned();
            Err((answer.status().as_u16(), text))
        }
        Err(error) => Err((0, error.to_string())),
    }
}

async fn next(socket: &mut WebSocketStream<tokio::net::TcpStream>) -> Option<Value> {
    match tokio::time::timeout(PATIENCE, socket.next()).await.unwrap() {
        Some(Ok(Message::Text(text))) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}

/// Registers by hand, with what is signed.
async fn register(
    url: &RelayUrl,
    signs: &Secret,
    says: &[u8; 32],
    address: &str,
) -> (WebSocketStream<tokio::net::TcpStream>, Option<Value>) {
    let mut socket = open(url, "/h").await.unwrap();
    let challenge = next(&mut socket).await.unwrap()["challenge"].as_str().and_then(hex_bytes).unwrap();
    let signature = prove_host(signs, &challenge.try_into().unwrap(), address);
    let proof = json!({ "host": hex_text(says), "signature": hex_text(&signature) });
    socket.send(Message::text(proof.to_string())).await.unwrap();
    let answer = next(&mut socket).await;
    (socket, answer)
}

#[test]
fn a_host_registers_its_own_key_alone_and_a_token_serves_once() {
    let runtime = runtime();
    let url = relay(&runtime, Limits::default());
    runtime.block_on(async {
        let (thief, me) = (Secret::new([7; 32]), host());
        let path = format!("/c/{}", hex_text(&me.public()));
        let refused = Some(json!({ "registered": false }));
        let (_, answer) = register(&url, &thief, &me.public(), &url.address()).await;
        assert_eq!(answer, refused, "with another's key");
        let (_, answer) = register(&url, &me, &me.public(), "other.example").await;
        assert_eq!(answer, refused, "what was signed for another relay");
        assert_eq!(open(&url, &path).await.unwrap_err().0, 404);
        let (mut control, answer) = register(&url, &me, &me.public(), &url.address()).await;
        assert_eq!(answer, Some(json!({ "registered": true })));
        let mut client = open(&url, &path).await.unwrap();
        let token = next(&mut control).await.unwrap()["dial"].as_str().unwrap().to_owned();
        for guess in ["0".repeat(32), token[..31].to_owned(), String::new(), "../h".into()] {
            assert_eq!(open(&url, &format!("/d/{guess}")).await.unwrap_err().0, 404, "{guess}");
        }
        let mut picked_up = open(&url, &format!("/d/{token}")).await.unwrap();
        assert_eq!(open(&url, &format!("/d/{token}")).await.unwrap_err().0, 404, "it was used");
        picked_up.send(Message::binary(vec![1, 2, 3])).await.unwrap();
        let passed = tokio::time::timeout(PATIENCE, client.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(passed, Message::binary(vec![1, 2, 3]));
        // Longer than any message of the channel: cut off.
        let _ = client.send(Message::binary(vec![0; 70_000])).await;
        let end = tokio::time::timeout(PATIENCE, picked_up.next()).await.unwrap();
        assert!(!matches!(end, Some(Ok(Message::Binary(_)))), "{end:?}");
        // The same host again: it takes its own place.
        let (_second, answer) = register(&url, &me, &me.public(), &url.address()).await;
        assert_eq!(answer, Some(json!({ "registered": true })));
        assert_eq!(next(&mut control).await, None, "the first one is let go");
        assert_eq!(open(&url, "/c/xyz").await.unwrap_err().0, 404);
        assert_eq!(open(&url, "/q").await.unwrap_err().0, 404);
    });
}

#[test]
fn one_address_has_so_many_connections_and_what_is_no_request_is_told() {
    let runtime = runtime();
    let url = relay(&runtime, Limits { of_address: 3, ..Limits::default() });
    let get = |text: &str| {
        let mut stream = TcpStream::connect((url.name(), url.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // One that is turned away may be gone already.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    assert!(get("GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"));
    assert!(get("GET /i HTTP/1.1\r\n\r\n").contains("holdfast accept"));
    assert!(get("HELO x\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(get("GET /x/ab HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let deadline = std::time::Instant::now() + PATIENCE;
    // A place is given back behind its answer, so one of these may be turned away: another takes its turn.
    let mut held = vec![];
    while !get("GET /healthz HTTP/1.1\r\n\r\n").is_empty() {
        assert!(std::time::Instant::now() < deadline, "it takes more");
        held.push(TcpStream::connect((url.name(), url.port())).unwrap());
    }
    drop(held);
    while !get("GET /metrics HTTP/1.1\r\n\r\n").contains("holdfast_relay_crowded_total") {
        assert!(std::time::Instant::now() < deadline, "it does not recover");
    }
}

#[test]
fn nobody_listens_beyond_this_machine_without_tls_unasked() {
    let runtime = runtime();
    let listen = "0.0.0.0:0".parse().unwrap();
    let config = Config { listen, tls: None, behind_proxy: false, name: None, limits: Limits::default(), shared: None };
    let refused = runtime.block_on(bind(&config)).unwrap_err();
    assert!(refused.to_string().contains("needs TLS"), "{refused}");
    assert!(runtime.block_on(bind(&Config { behind_proxy: true, ..config })).is_ok());
}

/// What a hostile relay does with the messages from host to client.
type Trick = fn(u32, Bytes, &mut Vec<Bytes>) -> Vec<Bytes>;

/// A relay that does as it likes: it believes every host, and passes on what a trick makes of the messages.
async fn hostile(listener: TcpListener, trick: Trick) {
    type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<WebSocketStream<tokio::net::TcpStream>>>>>;
    let waiting = Waiting::default();
    let dials: Arc<Mutex<Option<tokio::sync::mpsc::UnboundedSender<String>>>> = Arc::default();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (waiting, dials) = (Arc::clone(&waiting), Arc::clone(&dials));
        tokio::spawn(async move {
            let mut path = String::new();
            #[allow(clippy::result_large_err)] // the library's
            let keep = |request: &Request, response: Response| {
                path = request.uri().path().to_owned();
                Ok(response)
            };
            let mut socket = accept_hdr_async(stream, keep).await.unwrap();
            if path == "/h" {
                let challenge = json!({ "challenge": "00".repeat(32) });
                socket.send(Message::text(challenge.to_string())).await.unwrap();
                socket.next().await.unwrap().unwrap();
                socket.send(Message::text(json!({ "registered": true }).to_string())).await.unwrap();
                let (sender, mut tokens) = tokio::sync::mpsc::unbounded_channel();
                *dials.lock().unwrap() = Some(sender);
                while let Some(token) = tokens.recv().await {
                    socket.send(Message::text(json!({ "dial": token }).to_string())).await.unwrap();
                }
            } else if let Some(token) = path.strip_prefix("/d/") {
                let waits = waiting.lock().unwrap().remove(token);
                if let Some(waits) = waits {
                    let _ = waits.send(socket);
                }
            } else {
                let (token, (sender, picked_up)) = ("ab".repeat(16), oneshot::channel());
                waiting.lock().unwrap().insert(token.clone(), sender);
                dials.lock().unwrap().as_ref().unwrap().send(token).unwrap();
                let (mut to_host, mut from_host) = picked_up.await.unwrap().split();
                let (mut to_client, mut from_client) = socket.split();
                let up = async {
                    while let Some(Ok(message)) = from_client.next().await {
                        if to_host.send(message).await.is_err() {
                            break;
                        }
                    }
                };
                let down = async {
                    let (mut count, mut held) = (0, Vec::new());
                    while let Some(Ok(Message::Binary(message))) = from_host.next().await {
                        for made in trick(count, message, &mut held) {
                            if to_client.send(Message::Binary(made)).await.is_err() {
                                return;
                            }
                        }
                        count += 1;
                    }
                };
                tokio::select! { () = up => {}, () = down => {} }
            }
        });
    }
}

#[test]
fn a_hostile_relay_can_end_a_channel_and_nothing_else() {
    // Message 0 is the handshake's; 1 to 3 carry a word each.
    let tricks: [(&str, Trick); 6] = [
        ("flips", |n, message, _| {
            let mut bytes = message.to_vec();
            if n == 2 {
                bytes[3] ^= 1;
            }
            vec![bytes.into()]
        }),
        ("drops", |n, message, _| if n == 2 { vec![] } else { vec![message] }),
        ("repeats", |n, message, _| if n == 1 { vec![message.clone(), message] } else { vec![message] }),
        ("moves", |n, message, held| match n {
            2 => {
                held.push(message);
                vec![]
            }
            3 => vec![message, held.remove(0)],
            _ => vec![message],
        }),
        ("makes up", |n, message, _| if n == 2 { vec![vec![7; 60].into(), message] } else { vec![message] }),
        ("says goodbye early", |n, message, _| if n == 2 { vec![Bytes::new()] } else { vec![message] }),
    ];
    let runtime = runtime();
    for (name, trick) in tricks {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url: RelayUrl = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        runtime.spawn(hostile(listener, trick));
        let arrivals = waiting(&url);
        let mut reached = ask(&url, client()).unwrap();
        let mut arrival = arrivals.recv_timeout(PATIENCE).unwrap();
        reached.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut got = Vec::new();
        for word in [b"one", b"two", b"six"] {
            if arrival.stream.write_all(word).is_err() {
                break;
            }
            // Each in a message of its own: the next is written when it was seen, or is known not to come.
            let mut into = [0; 3];
            match reached.stream.read_exact(&mut into) {
                Ok(()) => got.extend_from_slice(&into),
                Err(_) if name == "drops" || name == "moves" => {}
                Err(_) => break,
            }
            if (name == "drops" || name == "moves") && word == b"one" {
                // The second is not awaited: it is held back.
                reached.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            }
        }
        assert_eq!(got, b"one", "a relay that {name}");
        reached.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let end = reached.stream.read_to_end(&mut rest);
        assert!(
            rest.is_empty() && !matches!(&end, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock),
            "{name}: {end:?}"
        );
    }
}
