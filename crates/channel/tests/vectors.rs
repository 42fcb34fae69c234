//! `spec/vectors/channel.json`: both handshakes, frames of each kind and a changed key, byte by byte, for clients in other languages.
//!
//! `HOLDFAST_BLESS=1 cargo test -p holdfast-channel --test vectors` writes the file anew.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // reads and writes the file of the vectors

use holdfast_channel::{Channel, Initiator, InviteLink, Invited, Kind, Responder, Secret, Welcome, exchange_key};
use holdfast_channel::{REKEY_MS, challenge_bytes, page_bytes, prove_host, sign_page};
use holdfast_types::{HostKey, hex_text};
use serde_json::{Value, json};
use zeroize::Zeroizing;

const HOST: [u8; 32] = [0x11; 32];
const CLIENT: [u8; 32] = [0x22; 32];
const CLIENT_RANDOM: [u8; 32] = [0x33; 32];
const HOST_RANDOM: [u8; 32] = [0x44; 32];
const INVITE_ID: [u8; 16] = [0x55; 16];
const INVITE_SECRET: [u8; 32] = [0x66; 32];

fn host() -> Secret {
    Secret::new(HOST)
}

fn frames(doc: &str, from: &mut Channel, to: &mut Channel, sends: &[(Kind, &[u8], u64)]) -> Vec<Value> {
    let mut all = Vec::new();
    for (kind, body, now_ms) in sends {
        let messages = from.seal(*kind, body, *now_ms).unwrap();
        let opened: Vec<_> = messages.iter().map(|message| to.open(message).unwrap()).collect();
        for (message, (kind, body)) in messages.iter().zip(opened) {
            all.push(json!({
                "from": doc, "kind": kind as u8, "body": hex_text(&body), "message": hex_text(message),
            }));
        }
    }
    all
}

fn handshake(doc: &str, invited: Option<&Invited>) -> Value {
    let host = host();
    let (initiator, first) = Initiator::new(&Secret::new(CLIENT), &host.public(), invited, CLIENT_RANDOM).unwrap();
    let responder = Responder::read(&host, &first, HOST_RANDOM).unwrap();
    let answered = match invited {
        Some(invited) => responder.welcome_guest(&invited.secret),
        None => responder.welcome(&"human:ann.phone".parse().unwrap()),
    };
    let (mut theirs, second) = answered.unwrap();
    let (mut ours, welcome) = initiator.finish(&second).unwrap();
    assert_eq!(ours.binding(), theirs.binding());
    let mut sent = frames("client", &mut ours, &mut theirs, &[(Kind::Data, b"hello", 0), (Kind::Alive, b"", 0)]);
    sent.extend(frames("host", &mut theirs, &mut ours, &[(Kind::Data, b"welcome", 0), (Kind::Alive, b"", 0)]));
    // Due by time: a frame of its own changes the key, then comes what was to be sent.
    sent.extend(frames(
        "client",
        &mut ours,
        &mut theirs,
        &[(Kind::Data, b"again", REKEY_MS), (Kind::End, b"", REKEY_MS)],
    ));
    sent.extend(frames("host", &mut theirs, &mut ours, &[(Kind::End, b"", 0)]));
    json!({
        "doc": doc,
        "message_1": hex_text(&first),
        "message_2": hex_text(&second),
        "says": match welcome { Welcome::Known(handle) => handle.to_string(), _ => String::new() },
        "binding": hex_text(&ours.binding()),
        "frames": sent,
    })
}

#[test]
fn the_written_channel_is_that_of_this_crate() {
    let invited = Invited { id: INVITE_ID, secret: Zeroizing::new(INVITE_SECRET) };
    let (_, first) = Initiator::new(&Secret::new(CLIENT), &host().public(), None, CLIENT_RANDOM).unwrap();
    let refusal = Responder::read(&host(), &first, HOST_RANDOM).unwrap().refuse().unwrap();
    let link = InviteLink {
        relays: vec!["https://relay.example".into(), "https://other.example:8443".into()],
        host: HostKey(host().public()),
        name: "gpu".into(),
        id: INVITE_ID,
        secret: invited.secret.clone(),
    };
    let challenge: [u8; 32] = std::array::from_fn(|i| 0xff - i as u8);
    let page = [("page.js.gz", [0x77; 32]), ("page.css.gz", [0x88; 32])];
    let all = json!({
        "host": {
            "secret": hex_text(&HOST), "public": hex_text(&host().public()),
            "x25519": hex_text(&exchange_key(&host().public()).unwrap()),
        },
        "client": {
            "secret": hex_text(&CLIENT), "public": hex_text(&Secret::new(CLIENT).public()),
            "x25519": hex_text(&exchange_key(&Secret::new(CLIENT).public()).unwrap()),
        },
        "client_ephemeral": hex_text(&CLIENT_RANDOM),
        "host_ephemeral": hex_text(&HOST_RANDOM),
        "invite": { "id": hex_text(&INVITE_ID), "secret": hex_text(&INVITE_SECRET), "link": link.text() },
        "known": handshake("Noise_IK_25519_AESGCM_SHA256: the host knows the client's key.", None),
        "invited": handshake("Noise_IKpsk2_25519_AESGCM_SHA256: the client has an invite.", Some(&invited)),
        "unknown": { "doc": "The host does not know the client's key.", "message_1": hex_text(&first), "message_2": hex_text(&refusal) },
        "registration": {
            "doc": "What a host signs for a relay.",
            "challenge": hex_text(&challenge), "address": "relay.example",
            "bytes": hex_text(&challenge_bytes(&challenge, "relay.example")),
            "signature": hex_text(&prove_host(&host(), &challenge, "relay.example")),
        },
        "page": {
            "doc": "What a host signs for browsers: the page's version, its files and their digests.",
            "version": "0.1.0",
            "files": page.iter().map(|(name, digest)| json!({ "name": name, "digest": hex_text(digest) })).collect::<Vec<_>>(),
            "bytes": hex_text(&page_bytes("0.1.0", &page)),
            "signature": hex_text(&sign_page(&host(), "0.1.0", &page)),
        },
    });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/channel.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&all).unwrap());
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "spec/vectors/channel.json is not what the channel does: write it anew with HOLDFAST_BLESS=1"
    );
}
