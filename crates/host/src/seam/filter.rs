//! The filter that makes the kernel ask before a process becomes another program.
//!
//! `execve` and `execveat` of each architecture that the machine runs stop the process until the listener's doer answers.
//! `io_uring_setup` is refused: what a ring does passes no filter. A call of an architecture that is not known is refused too.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// How wide a process's pointers are, by what it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// It is `execveat`: a directory comes first.
    pub at: bool,
    /// Bytes of a pointer in its lists.
    pub pointer: usize,
}

/// Of an architecture: its number as `AUDIT_ARCH_*` has it, and in it `execve`, `execveat` and the bytes of a pointer, once for each
/// way to count calls; and the numbers of `io_uring_setup`.
struct Arch {
    audit: u32,
    calls: &'static [(u32, u32, usize)],
    ring: &'static [u32],
}

/// Calls of x32 have this bit.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHS: &[Arch] = &[
    // x32 has numbers of its own for these, and the kernel takes those of 64 bits with its bit as well.
    Arch {
        audit: 0xc000_003e,
        calls: &[(59, 322, 8), (X32 + 520, X32 + 545, 4), (X32 + 59, X32 + 322, 4)],
        ring: &[425, X32 + 425],
    },
    Arch { audit: 0x4000_0003, calls: &[(11, 358, 4)], ring: &[425] },
];
#[cfg(target_arch = "aarch64")]
const ARCHS: &[Arch] = &[
    Arch { audit: 0xc000_00b7, calls: &[(221, 281, 8)], ring: &[425] },
    Arch { audit: 0x4000_0028, calls: &[(11, 387, 4)], ring: &[425] },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHS: &[Arch] = &[];

/// Where `struct seccomp_data` has the call and the architecture.
const CALL: u32 = 0;
const ARCH: u32 = 4;

const SET_MODE_FILTER: libc::c_uint = 1;
const GET_ACTION_AVAIL: libc::c_uint = 2;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
/// Linux 5.19: a process that is asked about is interrupted by nothing but its death. Without it a timer that rings more often than the
/// answer takes keeps it from ever getting through.
const WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;

/// What a call is, by architecture and number; none: it is none of those that are asked about.
pub(super) fn call_of(audit: u32, number: u32) -> Option<Call> {
    let arch = ARCHS.iter().find(|arch| arch.audit == audit)?;
    arch.calls.iter().find_map(|(plain, at, pointer)| match number {
        number if number == *plain => Some(Call { at: false, pointer: *pointer }),
        number if number == *at => Some(Call { at: true, pointer: *pointer }),
        _ => None,
    })
}

/// Whether this kernel can ask; or why not.
pub fn can() -> Result<(), &'static str> {
    if ARCHS.is_empty() {
        return Err("this architecture is not known");
    }
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads the four bytes of `action`, and changes nothing.
    let there = unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0 as libc::c_ulong, &raw const action) };
    if there == 0 { Ok(()) } else { Err("this kernel has no seccomp user notification") }
}

/// Puts the filter on this process and all it will start. What comes back is where the kernel asks.
///
/// Where this process may not do so otherwise, it gives up set-user-id programs first (`no_new_privs`).
pub fn install() -> io::Result<OwnedFd> {
    match installed() {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            rustix::thread::set_no_new_privs(true)?;
            installed()
        }
        done => done,
    }
}

fn installed() -> io::Result<OwnedFd> {
    let with = |flags: libc::c_ulong| {
        let mut filter = program();
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the kernel copies the program, which lives until the call returns. It takes rights away and changes no memory.
        let made =
            unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, NEW_LISTENER | flags, &raw const program) };
        match i32::try_from(made) {
            // SAFETY: a descriptor that the kernel has just made for us, and that nobody else has.
            Ok(made) if made >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(made) }),
            Ok(_) | Err(_) => Err(io::Error::last_os_error()),
        }
    };
    match with(WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => with(0),
        made => made,
    }
}

fn program() -> Vec<libc::sock_filter> {
    let refuse = || answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    let mut all = vec![load(ARCH)];
    for arch in ARCHS {
        let mut within = vec![load(CALL)];
        for call in arch.calls.iter().flat_map(|(plain, at, _)| [*plain, *at]) {
            within.extend([unless(call, 1), answer(libc::SECCOMP_RET_USER_NOTIF)]);
        }
        for call in arch.ring {
            within.extend([unless(*call, 1), refuse()]);
        }
        within.push(answer(libc::SECCOMP_RET_ALLOW));
        all.push(unless(arch.audit, within.len()));
        all.extend(within);
    }
    all.push(refuse());
    all
}

fn load(at: u32) -> libc::sock_filter {
    step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, at)
}

/// Leaves out the next so many steps unless what was loaded is this.
fn unless(value: u32, steps: usize) -> libc::sock_filter {
    step((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, steps as u8, value)
}

fn answer(what: u32) -> libc::sock_filter {
    step((libc::BPF_RET | libc::BPF_K) as u16, 0, what)
}

fn step(code: u16, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call, by walking through it as the kernel does.
    fn says(audit: u32, number: u32) -> u32 {
        let all = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = all[at];
            at += 1;
            match u32::from(step.code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    loaded = if step.k == ARCH { audit } else { number };
                }
                code if code == libc::BPF_RET | libc::BPF_K => return step.k,
                _ => at += if loaded == step.k { 0 } else { usize::from(step.jf) },
            }
        }
    }

    #[test]
    fn programs_are_asked_about_in_each_architecture_and_rings_refused() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        for arch in ARCHS {
            for (plain, at, pointer) in arch.calls {
                assert_eq!(says(arch.audit, *plain), libc::SECCOMP_RET_USER_NOTIF);
                assert_eq!(says(arch.audit, *at), libc::SECCOMP_RET_USER_NOTIF);
                assert_eq!(call_of(arch.audit, *at), Some(Call { at: true, pointer: *pointer }));
            }
            assert!(arch.ring.iter().all(|call| says(arch.audit, *call) == refused));
            assert_eq!((says(arch.audit, 1), call_of(arch.audit, 1)), (libc::SECCOMP_RET_ALLOW, None));
        }
        assert_eq!(says(0x1234, 59), refused, "of an architecture that is not known");
    }
}
