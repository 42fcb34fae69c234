//! Any datagram is a frame or an error, and a frame written out again reads as the same; so are log records and start blocks.
#![no_main]

use holdfast_abi::log::Record;
use holdfast_abi::protocol::{FromKeeper, ToKeeper};
use holdfast_abi::start::Start;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut out = Vec::new();
    if let Ok(frame) = ToKeeper::decode(input) {
        frame.encode(&mut out);
        assert_eq!(ToKeeper::decode(&out), Ok(frame));
    }
    if let Ok(frame) = FromKeeper::decode(input) {
        frame.encode(&mut out);
        assert_eq!(FromKeeper::decode(&out), Ok(frame));
    }
    let mut rest = input;
    while let Some((record, length)) = Record::decode(rest) {
        assert!(length > 0 && length <= rest.len());
        out.clear();
        record.encode(&mut out);
        assert_eq!(Record::decode(&out).map(|(again, _)| again), Some(record));
        rest = &rest[length..];
    }
    if let Some(start) = Start::decode(input) {
        assert_eq!(Start::decode(&start.encode()[4..]), Some(start));
    }
});
