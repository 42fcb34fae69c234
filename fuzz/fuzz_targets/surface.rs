//! What comes over a network: any WebSocket message is a request or an error, and any object the parameters of an operation, or a
//! fault. What was read says the same when it is written and read again.
#![no_main]

use holdfast_wire::frame::Frame;
use holdfast_wire::{Body, Call, Message, OPERATIONS};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

/// Reads parameters as an operation's.
fn call(method: &str, params: &Value) {
    let _ = Call::decode(method, params.clone());
}

fuzz_target!(|input: &[u8]| {
    // A message as a WebSocket carries it.
    if let Ok(message) = Frame::decode_content(input).map_err(drop).and_then(|frame| Message::decode(frame).map_err(drop)) {
        let mut out = Vec::new();
        message.encode(&mut out);
        let again = Frame::decode_content(&out[4..]).expect("an own frame is sound");
        assert_eq!(Message::decode(again).expect("an own message reads back"), message);
        if let Body::Request { method, params, .. } = message.body {
            call(&method, &params);
        }
    }
    // The first byte chooses the operation, so that the fuzzer need not find out its name.
    let Some((which, rest)) = input.split_first() else { return };
    let row = OPERATIONS[usize::from(*which) % OPERATIONS.len()];
    if let Ok(params) = serde_json::from_slice::<Value>(rest) {
        call(row.name, &params);
    }
    // The same from a query, where every value is a text or JSON of its own.
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(rest) {
        let json = serde_json::from_str(&value).unwrap_or_else(|_| Value::String(value.into_owned()));
        fields.insert(name.into_owned(), json);
    }
    call(row.name, &Value::Object(fields));
});
