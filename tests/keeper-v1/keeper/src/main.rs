//! `holdfast-keeper <session id>`: see the library. The id is for people who read `ps`; everything else comes by
//! the start block on standard input.
//!
//! Without Rust's own start-up, which sets up a signal stack and a main thread's name that a process of one thread and no
//! handlers has no use for: 12 KiB less for every session that idles.
#![no_main]

/// Called by the C library.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    match holdfast_keeper::setup::start() {
        Some(keeper) => {
            keeper.run();
            0
        }
        None => 1,
    }
}
