//! No bytes in a file make reading it panic or allocate without bound, the right checksum included.
#![no_main]

use holdfast_store::history::{Lines, decode};
use holdfast_store::keyframe::Keyframe;
use holdfast_store::{KEYFRAME, RUNS, lines};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let sealed = KEYFRAME.seal(input);
    assert_eq!(KEYFRAME.open(&sealed).expect("just sealed").bytes(), input);
    for file in [input, &sealed] {
        if let Some(keyframe) = KEYFRAME.open(file).ok().and_then(Keyframe::decode) {
            let again = KEYFRAME.seal(&keyframe.encode());
            assert_eq!(KEYFRAME.open(&again).ok().and_then(Keyframe::decode), Some(keyframe));
        }
        decode(file, &mut Lines::default());
        let _ = lines::decode::<Value>(&RUNS, file);
    }
});
