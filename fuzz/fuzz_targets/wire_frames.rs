//! Any stream is frames or an error, any frame a message or a fault, any request a call or a fault.
#![no_main]

use holdfast_wire::frame::Frame;
use holdfast_wire::{Body, Call, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Ok(Some((frame, length))) = Frame::decode(rest, 1 << 20) {
        if let Ok(message) = Message::decode(frame) {
            let mut out = Vec::new();
            message.encode(&mut out);
            let (again, _) = Frame::decode(&out, 1 << 21).expect("an own frame is sound").expect("and whole");
            assert_eq!(Message::decode(again).expect("an own message reads back"), message);
            if let Body::Request { method, params, .. } = message.body {
                let _ = Call::decode(&method, params);
            }
        }
        rest = &rest[length..];
    }
    // A message alone, so that the fuzzer need not find out the length first.
    if let Ok(Message { body: Body::Request { method, params, .. }, .. }) = Message::decode(Frame { json: input, bytes: &[] }) {
        let _ = Call::decode(&method, params);
    }
});
