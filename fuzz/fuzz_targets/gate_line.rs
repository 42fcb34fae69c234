//! Any text is a line that is understood or is not; what is found in it stays within its bounds, and what destroys the system is never
//! lost behind what stands around it.
#![no_main]

use holdfast_gate::{Lexical, Line, Risk, Surroundings, look};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let own = vec!["/home/user/.config/holdfast".to_owned()];
    let around = Surroundings::new("/home/user/project", "/home/user", None, own);
    let line = Line::read(text);
    let seen = look(&line, &around, &Lexical);
    assert!(seen.writes.len() <= 201 && seen.deletes.len() <= 201 && line.commands.len() <= 1024);
    // The same again is the same.
    assert_eq!(look(&Line::read(text), &around, &Lexical), seen);
    // A command behind a whole line is seen whatever the line is, or the line is not understood.
    let behind = look(&Line::read(&format!("{text}\nrm -rf /")), &around, &Lexical);
    if seen.is_clear() && behind.is_clear() && !text.contains("<<") && !text.ends_with('\\') && !text.contains('#') {
        assert!(behind.risks.contains(&Risk::DestroysSystem), "{text:?}");
    }
});
