//! The protocol as it is written down is the one that is spoken.

use holdfast_harness::Home;
use holdfast_types::{Terms, Trace};
use holdfast_wire::events::EVENTS;
use holdfast_wire::operations::Route;
use holdfast_wire::{Code, OPERATIONS};

fn written(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../spec/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_written_schema_is_the_tables() {
    let told = Home::new().ok(&["schema"]);
    assert!(told == written("schema.json"), "write it anew: cargo run -- schema > spec/schema.json");
}

#[test]
fn the_clients_ask_again_for_whatever_only_looks() {
    let files = ["../sdk/python/src/holdfast/_link.py", "../sdk/typescript/src/client.ts"].map(written);
    // `hello` is a connection's first word, and what an attached client paints is its connection's.
    let own = ["hello", "session.paint"];
    let looks = OPERATIONS.iter().filter(|row| row.terms.trace == Trace::Looks && !own.contains(&row.name));
    for row in looks {
        for text in &files {
            let (from, to) =
                (text.find("SAFE =").or(text.find("REPEATABLE =")), text.find("is_safe").or(text.find("mayRepeat")));
            let list = &text[from.unwrap()..to.unwrap()];
            assert!(list.contains(&format!("\"{}\"", row.name)), "a client gives up on {}", row.name);
        }
    }
}

#[test]
fn the_written_protocol_has_a_line_for_every_operation_event_and_code() {
    let text = written("protocol.md");
    let has = |line: String| {
        assert!(text.lines().any(|written| written.starts_with(&line)), "spec/protocol.md lacks: {line}")
    };
    for row in OPERATIONS {
        let Terms { who, rights, turn, cost, thread, trace, .. } = row.terms;
        let rights = if rights.is_empty() { "-".into() } else { rights.to_string().replace(',', ", ") };
        let needs = format!("{} | {rights} | {}", who.word(), turn.word());
        let costs = format!("{} | {} | {}", trace.word(), cost.word(), thread.word());
        let http = match row.route {
            Route::Get(path) => format!("`GET /v1{path}`"),
            Route::Post(path) => format!("`POST /v1{path}`"),
            Route::Put(path) => format!("`PUT /v1{path}`"),
            Route::Delete(path) => format!("`DELETE /v1{path}`"),
            Route::Connection => "the connection's own".into(),
        };
        has(format!("| `{}` | {needs} | {costs} | {http} | {} |", row.name, row.doc));
    }
    for event in EVENTS {
        has(format!("| `{}` |", event.name));
    }
    let schema: serde_json::Value = serde_json::from_str(&written("schema.json")).unwrap();
    let codes = schema["$defs"]["Code"]["oneOf"].as_array().unwrap();
    assert!(codes.len() > 30);
    for code in codes {
        let word = code["const"].as_str().unwrap();
        let _: Code = serde_json::from_value(code["const"].clone()).unwrap();
        has(format!("| `{word}` |"));
    }
}
