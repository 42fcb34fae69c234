//! Waits that a checkpoint interrupted, in the processes that go on.
//!
//! CRIU makes a wait for ever (`poll`, `ppoll`) end with EINTR, which no signal would have done here: `tail -f` ends over it. While the
//! processes are still stopped, their threads are set to make that call again. A wait with an end is left alone: how long it had to go is
//! not known any more.

use std::ffi::CStr;

/// `mend PID…`: the processes are stopped.
pub fn mend(pids: &[&CStr]) -> i32 {
    for pid in pids.iter().filter_map(|pid| pid.to_str().ok()) {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            again(thread);
        }
    }
    0
}

#[cfg(target_arch = "x86_64")]
fn again(thread: libc::pid_t) {
    const EINTR: u64 = (-(libc::EINTR as i64)) as u64;
    /// The two bytes of `syscall`.
    const CALL_BYTES: u64 = 2;
    // SAFETY: the registers outlive the calls; the thread is stopped, and is let go of as it was found.
    unsafe {
        let none = std::ptr::null_mut::<libc::c_void>();
        if libc::ptrace(libc::PTRACE_SEIZE, thread, none, none) != 0 {
            return;
        }
        libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none);
        if libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL) == thread {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let is_read = libc::ptrace(libc::PTRACE_GETREGS, thread, none, &raw mut registers) == 0;
            let waits_for_ever = match registers.orig_rax as libc::c_long {
                libc::SYS_poll => registers.rdx as i32 == -1,
                libc::SYS_ppoll => registers.rdx == 0,
                _ => false,
            };
            if is_read && waits_for_ever && registers.rax == EINTR {
                registers.rax = registers.orig_rax;
                registers.rip -= CALL_BYTES;
                registers.orig_rax = u64::MAX;
                libc::ptrace(libc::PTRACE_SETREGS, thread, none, &raw mut registers);
            }
        }
        libc::ptrace(libc::PTRACE_DETACH, thread, none, none);
    }
}

/// Other machines have other registers: their waits end with EINTR.
#[cfg(not(target_arch = "x86_64"))]
fn again(_: libc::pid_t) {}
