//! The protocol as it is written down is the one that is spoken.

use crate::home::Home;

#[test]
fn the_written_schema_is_the_tables() {
    let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/schema.json")).unwrap();
    let told = Home::new().ok(&["schema"]);
    assert!(told == written, "write it anew: cargo run -- schema > spec/schema.json");
}
