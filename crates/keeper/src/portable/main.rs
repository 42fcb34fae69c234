//! `holdfast-portable`: everything a portable session has around its command, so that CRIU can keep a copy of it and bring it back.
//!
//! | words | what it becomes |
//! |---|---|
//! | `apart PROGRAM ARGUMENT…` | PROGRAM (the keeper) in a mount namespace of its own, with a devpts of its own |
//! | `begin INIT ROOT FROM COUNT (FROM MOUNT)… ARGV0 COMMAND ARGUMENT…` | the keeper's child: makes the session's namespaces and waits for its init |
//! | `init ARGV0 COMMAND ARGUMENT…` | pid 1 of the session: starts the command on descriptor 3, the terminal, and reaps |
//! | `restore DONE LOG INPUT CANONICAL CRIU ARGUMENT…` | the keeper's child: has CRIU bring the session's init back, and waits for it |
//! | `within LOG NETWORK COUNT (LOWER UPPER WORK PLACE)… WORD…` | for a branch: one of the two before, above files and a network of its own |
//! | `beside PID PROGRAM ARGUMENT…` | PROGRAM (CRIU) in the network of a session |
//! | `enter PID DIRECTORY LOG PROGRAM ARGUMENT…` | PROGRAM inside a session, waited for |
//! | `mend PID…` | nothing: starts waits again that a checkpoint interrupted in these stopped processes |
//! | `take TERMINAL FILE` | nothing: takes what was typed and not read into FILE; ends with 1 where lines are edited there, with 0 where not |
//! | `give TERMINAL FILE` | nothing: puts it back |
//!
//! The keeper knows nothing of it: its child is this program, which ends as the session's command did. The keeper's death ends it, which
//! ends the init, which ends everything in the session: a life that is over has no process left.
//!
//! It is part of every image, so it is small, static, and never replaced while its session exists.
#![no_main]

mod begin;
mod init;
mod kernel;
mod mend;
mod restore;
mod typed;
mod within;

use std::ffi::CStr;

/// Called by the C library.
///
/// # Safety
/// `arguments` has `count` texts that end with a zero byte, and then a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: i32, arguments: *const *const libc::c_char) -> i32 {
    // SAFETY: as promised.
    let words: Vec<&CStr> =
        (1..count.max(1) as usize).map(|at| unsafe { CStr::from_ptr(*arguments.add(at)) }).collect();
    obey(&words)
}

/// Does what the words say.
fn obey(words: &[&CStr]) -> i32 {
    match words.split_first().map(|(word, rest)| (word.to_bytes(), rest)) {
        Some((b"apart", rest)) => begin::apart(rest),
        Some((b"begin", rest)) => begin::begin(rest),
        Some((b"init", rest)) => init::init(rest),
        Some((b"restore", rest)) => restore::restore(rest),
        Some((b"within", rest)) => within::within(rest),
        Some((b"beside", rest)) => within::beside(rest),
        Some((b"enter", rest)) => within::enter(rest),
        Some((b"mend", rest)) => mend::mend(rest),
        Some((b"take", rest)) => typed::take(rest),
        Some((b"give", rest)) => typed::give(rest),
        _ => kernel::give_up(c"this is for keepers: see holdfast new --portable"),
    }
}
