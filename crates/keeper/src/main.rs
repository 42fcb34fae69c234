//! The keeper.
fn main() {}
