//! Keeps programs from typing into their own terminal by the kernel: `TIOCSTI` and `TIOCLINUX` are refused to this process and to
//! everything it starts, whatever `dev.tty.legacy_tiocsti` says for the machine. What is typed so passes host and journal by.
//!
//! Installed by root, before it becomes another user: so it needs no `no_new_privs`, and `sudo` works as ever.

use std::io;

/// What is refused, as the request of `ioctl(2)`: the same numbers on every architecture that is known below.
const REFUSED: [u32; 2] = [0x5412, 0x541c];

/// Architectures as `AUDIT_ARCH_*` has them, and the numbers of `ioctl(2)` in each: of the machine and of what else it runs.
#[cfg(target_arch = "x86_64")]
const CALLS: &[(u32, &[u32])] = &[(0xc000_003e, &[16, 0x4000_0000 + 16, 0x4000_0000 + 514]), (0x4000_0003, &[54])];
#[cfg(target_arch = "aarch64")]
const CALLS: &[(u32, &[u32])] = &[(0xc000_00b7, &[29]), (0x4000_0028, &[54])];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLS: &[(u32, &[u32])] = &[];

/// Where `struct seccomp_data` has the call, the architecture, and the lower half of the second argument: the kernel looks at no more.
const CALL: u32 = 0;
const ARCH: u32 = 4;
const REQUEST: u32 = 24;

/// Refuses them from now on.
pub fn refuse() -> io::Result<()> {
    let mut filter = program();
    if filter.is_empty() {
        return Ok(());
    }
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call returns. It takes rights away and changes no memory.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn program() -> Vec<libc::sock_filter> {
    let mut all = Vec::new();
    for (arch, calls) in CALLS {
        let calls: Vec<_> = calls.iter().flat_map(|call| check(*call)).collect();
        // Of another architecture: on to the next.
        all.extend([load(ARCH), unless(*arch, calls.len())]);
        all.extend(calls);
    }
    if !all.is_empty() {
        all.push(answer(libc::SECCOMP_RET_ALLOW));
    }
    all
}

/// If the call is this one, looks at what is asked of the terminal.
fn check(call: u32) -> Vec<libc::sock_filter> {
    let mut asks = vec![load(REQUEST)];
    for request in REFUSED {
        asks.extend([unless(request, 1), answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32)]);
    }
    asks.push(answer(libc::SECCOMP_RET_ALLOW));
    [vec![load(CALL), unless(call, asks.len())], asks].concat()
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

    #[test]
    fn no_jump_leads_beyond_the_program() {
        let all = program();
        assert_eq!(all.last().map(|last| last.k), (!all.is_empty()).then_some(libc::SECCOMP_RET_ALLOW));
        for (at, step) in all.iter().enumerate() {
            assert!(at + 1 + usize::from(step.jf) < all.len() || step.code == (libc::BPF_RET | libc::BPF_K) as u16);
        }
    }
}
