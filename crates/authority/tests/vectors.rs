//! `spec/vectors/proofs.json`: what an actor signs, byte by byte, and the signatures, replayed by every client.
//!
//! `HOLDFAST_BLESS=1 cargo test -p holdfast-authority --test vectors` writes the file anew.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // reads and writes the file of the vectors

use holdfast_authority::{Ask, proof, recorded};
use holdfast_types::{Actor, Nonce, SessionId, hex_text};
use serde_json::{Value, json};

const SECRET: [u8; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31,
];
/// 2023-11-14 22:13:20 UTC in its first six bytes.
const NONCE: [u8; 16] = [0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

fn actor() -> Actor {
    Actor { id: proof::actor_id(&SECRET), handle: "agent:python".parse().unwrap() }
}

fn identify() -> Value {
    let challenge: [u8; 32] = std::array::from_fn(|i| 0xff - i as u8);
    let bytes = proof::challenge_bytes(&challenge, proof::UNIX_BINDING, &actor());
    let signature = proof::sign(&SECRET, &bytes);
    proof::verify(actor().id, &bytes, &signature).unwrap();
    json!({
        "doc": "What `identify` signs on a unix socket.",
        "challenge": hex_text(&challenge),
        "binding": "unix",
        "bytes": hex_text(&bytes),
        "signature": signature,
    })
}

fn act(doc: &str, ask: &Ask) -> Value {
    let (session, nonce) = (SessionId::from_random_bits(1), Nonce(NONCE));
    let bytes = proof::act_bytes(session, &nonce, ask);
    let signed = proof::sign_act(&SECRET, session, nonce, ask);
    proof::verify_act(actor().id, session, ask, &signed).unwrap();
    json!({
        "doc": doc,
        "session": session,
        "nonce": nonce,
        // A text, not a value: what is signed is its bytes.
        "ask": serde_json::to_string(ask).unwrap(),
        "bytes": hex_text(&bytes),
        "signature": signed.signature,
    })
}

#[test]
fn the_written_proofs_are_those_of_the_authority() {
    let run = |command: &str| Ask::Run { key: "build-7".into(), command: recorded(command).into_owned() };
    let acts = [
        act("An ask without content is a text.", &Ask::Take),
        act("Fields stand in the order of their declaration.", &Ask::Seize { freeze: true, reason: "it loops".into() }),
        act("An actor is its key and its handle.", &Ask::Give { to: actor() }),
        act(
            "A command is signed as it is, in UTF-8, without escapes that JSON does not need.",
            &run("echo \"ä/é\"\t</b>"),
        ),
        act("Of a long one the beginning, its length and its hash.", &run(&"ä".repeat(3000))),
        act("The key of a run without one is empty.", &Ask::Run { key: String::new(), command: "true".into() }),
        act("Sizes are texts.", &Ask::Resize { size: "120x40".parse().unwrap() }),
        act("Numbers are numbers.", &Ask::Signal { number: 2, target: 0 }),
        act("The end of a session.", &Ask::End { grace_ms: 5000 }),
    ];
    let all = json!({ "secret": hex_text(&SECRET), "actor": actor(), "identify": identify(), "acts": acts });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/proofs.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&all).unwrap());
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == text, "spec/vectors/proofs.json is not what is signed: write it anew with HOLDFAST_BLESS=1");
}
