//! `holdfast-keeper <session id>`: see the library. The id is for people who read `ps`, and for a host that looks whether a session has a
//! keeper; one that was started ahead writes it there with its orders. Everything else comes by the start block on standard input.
//!
//! Without Rust's own start-up, which sets up a signal stack and a main thread's name that a process of one thread and no
//! handlers has no use for: 12 KiB less for every session that idles.
#![no_main]

/// Called by the C library.
///
/// # Safety
///
/// `words` are the `count` words of the command line, as the C library has them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: i32, words: *const *mut libc::c_char) -> i32 {
    // SAFETY: these are what the C library passed, and nothing else in this process reads or writes them.
    let label = unsafe { holdfast_keeper::sys::word(count, words, 1) };
    match holdfast_keeper::setup::start(label) {
        Some(keeper) => {
            keeper.run();
            0
        }
        None => 1,
    }
}
