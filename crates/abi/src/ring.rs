//! The ring: one file per session, written by its keeper only, mapped read-only by everybody else.
//!
//! ```text
//!    0  magic       8 bytes "HFRING2\0"
//!    8  capacity    u64, data bytes, a power of two
//!   16  log bytes   u64, a power of two
//!   24  keeper pid  u32        28  child pid  u32
//!   32  started     u64, ms since the epoch
//!   40  state       u32: 0 starting, 1 running, 2 ended (head, status and `ended` are final)
//!   44  status      u32, as wait(2) gives it
//!   48  ended       u64, ms since the epoch
//!   56  base        u64, offset of the first byte of this life
//!   64  head        u64, on a cache line of its own; starts at `base`
//!  128  log head    u64, on a cache line of its own; starts at `log base`
//!  192  log base    u64, position of the first log record of this life
//!  200  seal        u64, FNV-1a of the bytes at 8..28, 32..40, 56..64 and 192..200
//! 4096  data        `capacity` bytes
//!       log         `log bytes`, see [`crate::log`]
//! ```
//!
//! All numbers are little-endian; bytes not listed are zero. Offsets count bytes since the session began and never wrap. A
//! session that is recovered, restored or moved gets a new keeper and a new ring, and goes on counting: its `base` is the
//! head of the life before. The byte at offset `o` lies at `data[o & (capacity - 1)]`, whatever the base is; the log's
//! positions work the same way.
//!
//! The keeper reads the terminal straight into `data[head..]`, at most [`GUARD_BYTES`] at a time, and then publishes the new
//! head. So `[head, head + GUARD)` may be under way at any moment, and what a reader may trust is
//! `[max(base, head + GUARD - capacity), head)`, judged by a head loaded *after* the bytes were copied.
//!
//! **Version 1** ("HFRING1\0") has no `base`, `log base` and `seal`: both bases are 0. Keepers of that version may still run,
//! so readers take both; only version 2 is written. Any other digit is [`RingError::Unknown`].

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// First bytes of the file; the digit is the version.
pub const MAGIC: [u8; 8] = *b"HFRING2\0";
/// First bytes of a file of version 1.
pub const MAGIC_V1: [u8; 8] = *b"HFRING1\0";
/// Size of the header page.
pub const HEADER_BYTES: u64 = 4096;
/// What the keeper may be writing beyond the published head.
pub const GUARD_BYTES: u64 = 64 * 1024;
/// The log's size: about 700 keystrokes, or a large paste, between two visits of the host.
pub const LOG_BYTES: u64 = 64 * 1024;

/// Largest head. No sum of an offset and a size overflows below it; at 100 MB/s it takes 22 years to get there, so that a
/// header that says more is damaged.
pub const OFFSET_MAX: u64 = 1 << 56;
/// Largest base: half of that, so that a life that begins there has as much before it.
pub const BASE_MAX: u64 = OFFSET_MAX / 2;
/// What a reader looks at before it maps a ring.
const FIXED_BYTES: usize = 208;

/// [`Header::state`]: the child is not yet started.
pub const STATE_STARTING: u32 = 0;
/// [`Header::state`]: the child runs.
pub const STATE_RUNNING: u32 = 1;
/// [`Header::state`]: the session has ended, head and status are final.
pub const STATE_ENDED: u32 = 2;

/// The header page as it lies in the file.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// Data bytes.
    pub capacity: u64,
    /// Log bytes.
    pub log_bytes: u64,
    /// The keeper's process.
    pub keeper_pid: u32,
    /// The session's first process.
    pub child_pid: AtomicU32,
    /// When the keeper began, ms since the epoch.
    pub started_ms: u64,
    /// One of the `STATE_` numbers.
    pub state: AtomicU32,
    /// How the child ended, as `wait(2)` gives it.
    pub status: AtomicU32,
    /// When it ended, ms since the epoch.
    pub ended_ms: AtomicU64,
    base: u64,
    /// Offset of the next byte to come. Readers ask [`Ring::head`].
    head: AtomicU64,
    pad_to_log: [u8; 56],
    /// Position of the next log record to come. Readers ask [`Ring::log_head`].
    log_head: AtomicU64,
    pad_to_log_base: [u8; 56],
    log_base: u64,
    seal: u64,
}

const _: () = assert!(
    std::mem::offset_of!(Header, base) == 56
        && std::mem::offset_of!(Header, head) == 64
        && std::mem::offset_of!(Header, log_head) == 128
        && std::mem::offset_of!(Header, log_base) == 192
        && std::mem::size_of::<Header>() == FIXED_BYTES
);

/// Where a life of a session begins to count: the heads of the life before, zero for a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Base {
    /// Offset of the first output byte.
    pub output: u64,
    /// Position of the first log record.
    pub log: u64,
}

impl Base {
    /// A keeper can begin here. Records are multiples of eight bytes, so their positions are too.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.output <= BASE_MAX && self.log <= BASE_MAX && self.log.is_multiple_of(8)
    }
}

/// What a ring's header says once and for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fixed {
    capacity: u64,
    log_bytes: u64,
    keeper_pid: u32,
    started_ms: u64,
    base: Base,
}

impl Fixed {
    /// The checksum over all of it, FNV-1a: a base that is off by a bit would name other bytes than the session wrote.
    fn seal(&self) -> u64 {
        let numbers = [self.started_ms, self.base.output, self.base.log].map(u64::to_le_bytes);
        let bytes = [self.capacity.to_le_bytes(), self.log_bytes.to_le_bytes()].into_iter().flatten();
        let bytes = bytes.chain(self.keeper_pid.to_le_bytes()).chain(numbers.into_iter().flatten());
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Reads them from the header of a file of this length.
    fn read(header: &[u8; FIXED_BYTES], length: u64) -> Result<Fixed, RingError> {
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let is_v1 = header[..8] == MAGIC_V1;
        if !is_v1 && header[..8] != MAGIC {
            return Err(RingError::Unknown);
        }
        let fixed = Fixed {
            capacity: number(8),
            log_bytes: number(16),
            keeper_pid: number(24) as u32,
            started_ms: number(32),
            base: if is_v1 { Base::default() } else { Base { output: number(56), log: number(192) } },
        };
        let Fixed { capacity, log_bytes, base, .. } = fixed;
        let sizes_hold = capacity.is_power_of_two()
            && log_bytes.is_power_of_two()
            && (2 * GUARD_BYTES..=1 << 40).contains(&capacity)
            && log_bytes <= 1 << 30
            && HEADER_BYTES + capacity + log_bytes == length;
        let base_holds = base.is_sound() && (is_v1 || number(200) == fixed.seal());
        if sizes_hold && base_holds { Ok(fixed) } else { Err(RingError::Damaged) }
    }
}

/// Why a ring file cannot be used.
#[derive(Debug)]
pub enum RingError {
    /// The file cannot be opened, measured or mapped.
    Io(io::Error),
    /// Not a ring, or one of a version this build does not know.
    Unknown,
    /// A ring whose numbers contradict each other or the file's length.
    Damaged,
}

impl std::fmt::Display for RingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RingError::Io(_) => "the ring file cannot be read",
            RingError::Unknown => "the ring file has an unknown version",
            RingError::Damaged => "the ring file is damaged",
        })
    }
}

impl std::error::Error for RingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RingError::Io(error) => Some(error),
            RingError::Unknown | RingError::Damaged => None,
        }
    }
}

/// What a copy out of the ring gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// This many bytes; 0 when the reader has caught up.
    Bytes(usize),
    /// The reader was lapped: the oldest offset that can still be had. The buffer's content is worthless.
    Lapped {
        /// Oldest offset still in the ring.
        oldest: u64,
    },
    /// The position lies beyond the head.
    Ahead {
        /// The head now.
        newest: u64,
    },
}

/// A mapped ring. Readers map it read-only; the one writer is the keeper.
#[derive(Debug)]
pub struct Ring {
    page: *mut u8,
    mapped_bytes: usize,
    capacity: u64,
    log_bytes: u64,
    base: Base,
    /// Where data is read from when only the header page is mapped.
    file: Option<File>,
}

// SAFETY: the mapping is valid until drop whichever thread uses it; shared fields are atomics, data is only copied.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Maps a ring for reading.
    pub fn open(file: &File) -> Result<Ring, RingError> {
        let fixed = Ring::check(file)?;
        let bytes = HEADER_BYTES + fixed.capacity + fixed.log_bytes;
        Ring::map(file, fixed, bytes, libc::PROT_READ).map_err(RingError::Io)?.with_sound_heads()
    }

    /// Maps the header page alone and reads everything else from the file: for a reader that rarely looks and must not
    /// keep a page of every session resident.
    pub fn open_lean(file: File) -> Result<Ring, RingError> {
        let fixed = Ring::check(&file)?;
        let mut ring = Ring::map(&file, fixed, HEADER_BYTES, libc::PROT_READ).map_err(RingError::Io)?;
        ring.file = Some(file);
        ring.with_sound_heads()
    }

    /// The heads lie where they can be. Looked at in the mapping: a read of the file could meet one half-written.
    fn with_sound_heads(self) -> Result<Ring, RingError> {
        let Header { head, log_head, .. } = self.header();
        let holds = (self.base.output..=OFFSET_MAX).contains(&head.load(Ordering::Acquire))
            && (self.base.log..=OFFSET_MAX).contains(&log_head.load(Ordering::Acquire));
        if holds { Ok(self) } else { Err(RingError::Damaged) }
    }

    /// What the header of a sound ring says.
    fn check(file: &File) -> Result<Fixed, RingError> {
        let length = file.metadata().map_err(RingError::Io)?.len();
        if length < HEADER_BYTES {
            return Err(RingError::Damaged);
        }
        let mut header = [0u8; FIXED_BYTES];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut header, 0).map_err(RingError::Io)?;
        Fixed::read(&header, length)
    }

    /// Lays out an empty file as a ring and maps it for writing. The space is allocated up front: a file system that
    /// fills up later must not take bytes from a session that runs.
    pub fn create(file: &File, capacity: u64, base: Base, keeper_pid: u32, started_ms: u64) -> io::Result<Ring> {
        if !base.is_sound() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fixed = Fixed { capacity, log_bytes: LOG_BYTES, keeper_pid, started_ms, base };
        let length = HEADER_BYTES + capacity + LOG_BYTES;
        allocate(file, length)?;
        let ring = Ring::map(file, fixed, length, libc::PROT_READ | libc::PROT_WRITE)?;
        let header = ring.page.cast::<Header>();
        // SAFETY: the page is mapped writable and nobody else knows the file yet: the magic, which readers look for,
        // is written last.
        unsafe {
            (*header).capacity = capacity;
            (*header).log_bytes = LOG_BYTES;
            (*header).keeper_pid = keeper_pid;
            (*header).started_ms = started_ms;
            (*header).base = base.output;
            (*header).head.store(base.output, Ordering::Relaxed);
            (*header).log_base = base.log;
            (*header).log_head.store(base.log, Ordering::Relaxed);
            (*header).seal = fixed.seal();
            fence(Ordering::Release);
            (*header).magic = MAGIC;
        }
        Ok(ring)
    }

    fn map(file: &File, fixed: Fixed, bytes: u64, protection: i32) -> io::Result<Ring> {
        let mapped_bytes = bytes as usize;
        // SAFETY: a fresh shared mapping of a file; the kernel picks the address.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped_bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Without this the first touch reads ahead: 128 KiB of page cache for an empty session.
        // SAFETY: the range was just mapped; the advice changes no content.
        unsafe { libc::madvise(page, mapped_bytes, libc::MADV_RANDOM) };
        let Fixed { capacity, log_bytes, base, .. } = fixed;
        Ok(Ring { page: page.cast(), mapped_bytes, capacity, log_bytes, base, file: None })
    }

    /// The header page.
    #[must_use]
    pub fn header(&self) -> &Header {
        // SAFETY: `page` maps at least the header page, page-aligned; every field that changes is an atomic.
        unsafe { &*self.page.cast::<Header>() }
    }

    /// Data bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Log bytes.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Where this life began to count.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// Offset of the next byte to come. Whatever happens to the header of a ring that is open, it lies between the base and
    /// [`OFFSET_MAX`].
    #[must_use]
    pub fn head(&self) -> u64 {
        self.header().head.load(Ordering::Acquire).clamp(self.base.output, OFFSET_MAX)
    }

    /// Position of the next log record to come, bounded like [`Ring::head`].
    #[must_use]
    pub fn log_head(&self) -> u64 {
        self.header().log_head.load(Ordering::Acquire).clamp(self.base.log, OFFSET_MAX)
    }

    /// The oldest offset a reader may trust now.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        (self.head() + GUARD_BYTES).saturating_sub(self.capacity).max(self.base.output)
    }

    /// Copies bytes from `position` on, up to the end of the buffer, the head, or the ring's edge.
    pub fn copy(&self, position: u64, buffer: &mut [u8]) -> Copied {
        let head = self.head();
        if position > head {
            return Copied::Ahead { newest: head };
        }
        let at = position & (self.capacity - 1);
        let count = (head - position).min(buffer.len() as u64).min(self.capacity - at) as usize;
        self.copy_out(HEADER_BYTES + at, &mut buffer[..count]);
        fence(Ordering::Acquire);
        let oldest = self.oldest();
        if position < oldest { Copied::Lapped { oldest } } else { Copied::Bytes(count) }
    }

    /// Copies log bytes, wherever they wrap. The caller judges by [`Ring::log_head`] what they are worth.
    pub fn copy_log(&self, position: u64, buffer: &mut [u8]) {
        let mut done = 0;
        while done < buffer.len() {
            let at = position.wrapping_add(done as u64) & (self.log_bytes - 1);
            let count = (buffer.len() - done).min((self.log_bytes - at) as usize);
            self.copy_out(HEADER_BYTES + self.capacity + at, &mut buffer[done..done + count]);
            done += count;
        }
    }

    /// Copies from the file's byte `at`. The keeper may overwrite it meanwhile; callers check and throw away.
    fn copy_out(&self, at: u64, buffer: &mut [u8]) {
        match &self.file {
            // A file that is cut short under us gives zeros, never a fault.
            Some(file) => {
                let read = std::os::unix::fs::FileExt::read_exact_at(file, buffer, at);
                if read.is_err() {
                    buffer.fill(0);
                }
            }
            // SAFETY: without a file everything is mapped, and callers stay inside; the buffer is private.
            None => unsafe {
                std::ptr::copy_nonoverlapping(self.page.add(at as usize), buffer.as_mut_ptr(), buffer.len());
            },
        }
    }

    /// Writer: where the next bytes go and how many fit in one read.
    #[must_use]
    pub fn space(&self, head: u64) -> (*mut u8, usize) {
        let at = head & (self.capacity - 1);
        (self.data(at), (self.capacity - at).min(GUARD_BYTES) as usize)
    }

    /// Writer: makes everything before `head` visible; must come before the next bytes are written.
    pub fn publish(&self, head: u64) {
        self.header().head.store(head, Ordering::Release);
        fence(Ordering::Release);
    }

    /// Writer: appends to the log, whose head is at `position`, and makes it visible. The caller has checked that it fits.
    ///
    /// # Safety
    /// The ring must have been made by [`Ring::create`]: a reader's mapping is not writable.
    pub unsafe fn append_log(&self, position: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = (position + done as u64) & (self.log_bytes - 1);
            let count = (bytes.len() - done).min((self.log_bytes - at) as usize);
            // SAFETY: inside the mapping, which is writable as the caller promises.
            unsafe { std::ptr::copy_nonoverlapping(bytes[done..].as_ptr(), self.log(at), count) };
            done += count;
        }
        self.header().log_head.store(position + bytes.len() as u64, Ordering::Release);
    }

    /// Writer: lets go of the data pages; they stay in the file and fault in again when needed.
    pub fn release_pages(&self) {
        // SAFETY: a shared file mapping loses no content by this advice.
        unsafe { libc::madvise(self.data(0).cast(), (self.capacity + self.log_bytes) as usize, libc::MADV_DONTNEED) };
    }

    /// The pages of the file that were never written to, in a ring that is final: nobody reads them, and their space can go back
    /// to the file system. Of one that is still written to: none.
    #[must_use]
    pub fn unwritten(&self) -> Vec<Range<u64>> {
        if self.header().state.load(Ordering::Acquire) != STATE_ENDED {
            return Vec::new();
        }
        let data = unwritten_of(HEADER_BYTES, self.capacity, self.base.output, self.head());
        let log = unwritten_of(HEADER_BYTES + self.capacity, self.log_bytes, self.base.log, self.log_head());
        data.into_iter().chain(log).filter(|pages| !pages.is_empty()).collect()
    }

    fn data(&self, at: u64) -> *mut u8 {
        // SAFETY: `at < capacity`, so the result lies inside the mapping.
        unsafe { self.page.add((HEADER_BYTES + at) as usize) }
    }

    fn log(&self, at: u64) -> *mut u8 {
        // SAFETY: `at < log_bytes`, so the result lies inside the mapping.
        unsafe { self.page.add((HEADER_BYTES + self.capacity + at) as usize) }
    }
}

/// Gives an empty file its space.
#[cfg(target_os = "linux")]
fn allocate(file: &File, length: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open; fallocate has no memory effects.
    let failed = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length as libc::off_t) } != 0;
    if !failed {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Where a file system cannot allocate ahead, a sparse file is the next best.
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) { file.set_len(length) } else { Err(error) }
}

/// Keepers run on Linux: only tests make a ring here.
#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Whole pages of a part of the file, at `start` and `size` bytes long, that hold nothing of what was written from `base` to `head`.
fn unwritten_of(start: u64, size: u64, base: u64, head: u64) -> [Range<u64>; 2] {
    let pages =
        |from: u64, to: u64| start + from.next_multiple_of(HEADER_BYTES)..start + to / HEADER_BYTES * HEADER_BYTES;
    let (first, last) = (base & (size - 1), head & (size - 1));
    match head - base {
        written if written >= size => [0..0, 0..0],
        0 => [pages(0, size), 0..0],
        // It wraps: what is free lies between its end and its beginning.
        _ if last <= first => [pages(last, first), 0..0],
        _ => [pages(0, first), pages(last, size)],
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; no reference into it outlives self.
        unsafe { libc::munmap(self.page.cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests;
