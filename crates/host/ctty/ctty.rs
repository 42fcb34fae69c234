//! Preloaded into `criu restore`: gives each session leader its controlling terminal before its children are forked.
//!
//! CRIU takes the terminal for the leader only after the children exist, so all of them would have lost `/dev/tty` and job control. It
//! calls `setsid` for each leader first: that is the place. `CRIU_CTTY` has `descriptor:pid,…`: a descriptor of the terminal, and the
//! pid of the leader inside its namespace. The descriptors are kept open against CRIU's closing of what it does not know, until each
//! process of the tree has passed.
//!
//! No library is linked: whatever C library runs CRIU, this fits.
#![no_std]

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};

/// Leaders on the session's terminal: a shell, and what took the terminal over from it.
const LEADERS_MAX: usize = 16;
const TIOCSCTTY: usize = 0x540e;

static FDS: [AtomicI32; LEADERS_MAX] = [const { AtomicI32::new(-1) }; LEADERS_MAX];
static PIDS: [AtomicI32; LEADERS_MAX] = [const { AtomicI32::new(0) }; LEADERS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static IN_TREE: AtomicBool = AtomicBool::new(false);

#[cfg(target_arch = "x86_64")]
mod number {
    pub const CLOSE: usize = 3;
    pub const IOCTL: usize = 16;
    pub const GETPGID: usize = 121;
    pub const SETSID: usize = 112;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const CLOSE: usize = 57;
    pub const IOCTL: usize = 29;
    pub const GETPGID: usize = 155;
    pub const SETSID: usize = 157;
}

fn call(number: usize, a: usize, b: usize, c: usize) -> isize {
    let result: isize;
    // SAFETY: the calls made here take numbers alone; the kernel touches no memory of ours.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c, options(nostack));
    }
    result
}

fn known() -> impl Iterator<Item = usize> {
    0..COUNT.load(Relaxed)
}

fn let_go(i: usize) {
    let fd = FDS[i].swap(-1, Relaxed);
    if fd >= 0 {
        call(number::CLOSE, fd as usize, 0, 0);
    }
}

/// `setsid(2)`, and the leader's terminal with it.
#[unsafe(no_mangle)]
pub extern "C" fn setsid() -> i32 {
    let leader = call(number::SETSID, 0, 0, 0) as i32;
    IN_TREE.store(true, Relaxed);
    for i in known() {
        if leader > 1 && PIDS[i].load(Relaxed) == leader {
            let fd = FDS[i].load(Relaxed);
            if fd >= 0 {
                // Taken from the keeper's child, which started as its leader.
                call(number::IOCTL, fd as usize, TIOCSCTTY, 1);
            }
            let_go(i);
        }
    }
    leader.max(-1)
}

/// `close(2)`, but not of the terminals.
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: i32) -> i32 {
    if fd >= 0 && known().any(|i| FDS[i].load(Relaxed) == fd) {
        return 0;
    }
    // A descriptor that was not open is the only failure there is, and CRIU closes some twice.
    call(number::CLOSE, fd as usize, 0, 0).max(-1) as i32
}

/// `getpgrp(2)`: CRIU calls it in each process once sessions stand.
#[unsafe(no_mangle)]
pub extern "C" fn getpgrp() -> i32 {
    if IN_TREE.load(Relaxed) {
        known().for_each(let_go);
    }
    call(number::GETPGID, 0, 0, 0) as i32
}

/// Reads `CRIU_CTTY`; called by the loader with the program's arguments and environment.
extern "C" fn begin(_count: i32, _arguments: *const *const u8, environment: *const *const u8) {
    let mut at = environment;
    // SAFETY: the loader passes a list that ends with a null pointer, of texts that end with a zero byte.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if let Some(value) = value_of(*at, b"CRIU_CTTY=") {
                read(value);
            }
            at = at.add(1);
        }
    }
}

/// # Safety
/// `text` ends with a zero byte.
unsafe fn value_of(text: *const u8, key: &[u8]) -> Option<*const u8> {
    for (i, expected) in key.iter().enumerate() {
        // SAFETY: every byte before was one of the key's, so the text goes on.
        if unsafe { *text.add(i) } != *expected {
            return None;
        }
    }
    // SAFETY: the key's bytes are part of the text.
    Some(unsafe { text.add(key.len()) })
}

/// # Safety
/// `text` ends with a zero byte.
unsafe fn read(mut text: *const u8) {
    let (mut fd, mut number, mut count) = (0i32, 0i32, 0);
    loop {
        // SAFETY: nothing is read behind the zero byte.
        let byte = unsafe { *text };
        match byte {
            b'0'..=b'9' => number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0')),
            b':' => (fd, number) = (number, 0),
            _ => {
                if number > 0 && count < LEADERS_MAX {
                    FDS[count].store(fd, Relaxed);
                    PIDS[count].store(number, Relaxed);
                    count += 1;
                    COUNT.store(count, Relaxed);
                }
                number = 0;
                if byte != b',' {
                    return;
                }
            }
        }
        // SAFETY: this byte was not the last.
        text = unsafe { text.add(1) };
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(i32, *const *const u8, *const *const u8) = begin;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Named by the compiled core library; nothing unwinds here.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}
