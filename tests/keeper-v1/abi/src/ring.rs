//! The ring: one file per session, written by its keeper only, mapped read-only by everybody else.
//!
//! ```text
//!    0  magic       8 bytes "HFRING1\0"
//!    8  capacity    u64, data bytes, a power of two
//!   16  log bytes   u64, a power of two
//!   24  keeper pid  u32        28  child pid  u32
//!   32  started     u64, ms since the epoch
//!   40  state       u32: 0 starting, 1 running, 2 ended (head, status and `ended` are final)
//!   44  status      u32, as wait(2) gives it
//!   48  ended       u64, ms since the epoch
//!   64  head        u64, on a cache line of its own
//!  128  log head    u64, on a cache line of its own
//! 4096  data        `capacity` bytes
//!       log         `log bytes`, see [`crate::log`]
//! ```
//!
//! All numbers are little-endian. Offsets count bytes since the session began and never wrap; the byte at offset `o` lies
//! at `data[o & (capacity - 1)]`. The keeper reads the terminal straight into `data[head..]`, at most [`GUARD_BYTES`] at a
//! time, and then publishes the new head. So `[head, head + GUARD)` may be under way at any moment, and what a reader may
//! trust is `[head + GUARD - capacity, head)`, judged by a head loaded *after* the bytes were copied.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// First bytes of the file; the digit is the version.
pub const MAGIC: [u8; 8] = *b"HFRING1\0";
/// Size of the header page.
pub const HEADER_BYTES: u64 = 4096;
/// What the keeper may be writing beyond the published head.
pub const GUARD_BYTES: u64 = 64 * 1024;
/// The log's size: about 700 keystrokes, or a large paste, between two visits of the host.
pub const LOG_BYTES: u64 = 64 * 1024;

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
    pad_to_head: [u8; 8],
    /// Offset of the next byte to come.
    pub head: AtomicU64,
    pad_to_log: [u8; 56],
    /// Offset of the next log record to come.
    pub log_head: AtomicU64,
}

const _: () = assert!(std::mem::offset_of!(Header, head) == 64 && std::mem::offset_of!(Header, log_head) == 128);

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
    base: *mut u8,
    mapped_bytes: usize,
    capacity: u64,
    log_bytes: u64,
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
        let (capacity, log_bytes) = Ring::check(file)?;
        let bytes = HEADER_BYTES + capacity + log_bytes;
        Ring::map(file, capacity, log_bytes, bytes, libc::PROT_READ).map_err(RingError::Io)
    }

    /// Maps the header page alone and reads everything else from the file: for a reader that rarely looks and must not
    /// keep a page of every session resident.
    pub fn open_lean(file: File) -> Result<Ring, RingError> {
        let (capacity, log_bytes) = Ring::check(&file)?;
        let mut ring = Ring::map(&file, capacity, log_bytes, HEADER_BYTES, libc::PROT_READ).map_err(RingError::Io)?;
        ring.file = Some(file);
        Ok(ring)
    }

    /// Data and log bytes of a file that is a sound ring.
    fn check(file: &File) -> Result<(u64, u64), RingError> {
        let length = file.metadata().map_err(RingError::Io)?.len();
        if length < HEADER_BYTES {
            return Err(RingError::Damaged);
        }
        let mut header = [0u8; 24];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut header, 0).map_err(RingError::Io)?;
        if header[..8] != MAGIC {
            return Err(RingError::Unknown);
        }
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let (capacity, log_bytes) = (number(8), number(16));
        let sizes_hold = capacity.is_power_of_two()
            && log_bytes.is_power_of_two()
            && (2 * GUARD_BYTES..=1 << 40).contains(&capacity)
            && log_bytes <= 1 << 30
            && HEADER_BYTES + capacity + log_bytes == length;
        if !sizes_hold {
            return Err(RingError::Damaged);
        }
        Ok((capacity, log_bytes))
    }

    /// Lays out an empty file as a ring and maps it for writing. The space is allocated up front: a file system that
    /// fills up later must not take bytes from a session that runs.
    pub fn create(file: &File, capacity: u64, keeper_pid: u32, started_ms: u64) -> io::Result<Ring> {
        let length = HEADER_BYTES + capacity + LOG_BYTES;
        // SAFETY: the descriptor is open; fallocate has no memory effects.
        let failed = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length as libc::off_t) } != 0;
        if failed {
            let error = io::Error::last_os_error();
            // Where a file system cannot allocate ahead, a sparse file is the next best.
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error);
            }
            file.set_len(length)?;
        }
        let ring = Ring::map(file, capacity, LOG_BYTES, length, libc::PROT_READ | libc::PROT_WRITE)?;
        let header = ring.base.cast::<Header>();
        // SAFETY: the page is mapped writable and nobody else knows the file yet: the magic, which readers look for,
        // is written last.
        unsafe {
            (*header).capacity = capacity;
            (*header).log_bytes = LOG_BYTES;
            (*header).keeper_pid = keeper_pid;
            (*header).started_ms = started_ms;
            fence(Ordering::Release);
            (*header).magic = MAGIC;
        }
        Ok(ring)
    }

    fn map(file: &File, capacity: u64, log_bytes: u64, bytes: u64, protection: i32) -> io::Result<Ring> {
        let mapped_bytes = bytes as usize;
        // SAFETY: a fresh shared mapping of a file; the kernel picks the address.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped_bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Without this the first touch reads ahead: 128 KiB of page cache for an empty session.
        // SAFETY: the range was just mapped; the advice changes no content.
        unsafe { libc::madvise(base, mapped_bytes, libc::MADV_RANDOM) };
        Ok(Ring { base: base.cast(), mapped_bytes, capacity, log_bytes, file: None })
    }

    /// The header page.
    #[must_use]
    pub fn header(&self) -> &Header {
        // SAFETY: `base` maps at least the header page, page-aligned; every field that changes is an atomic.
        unsafe { &*self.base.cast::<Header>() }
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

    /// Offset of the next byte to come.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.header().head.load(Ordering::Acquire)
    }

    /// The oldest offset a reader may trust now.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        (self.head() + GUARD_BYTES).saturating_sub(self.capacity)
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
        let oldest = (self.header().head.load(Ordering::Relaxed) + GUARD_BYTES).saturating_sub(self.capacity);
        if position < oldest { Copied::Lapped { oldest } } else { Copied::Bytes(count) }
    }

    /// Copies log bytes, wherever they wrap. The caller judges by [`Header::log_head`] what they are worth.
    pub fn copy_log(&self, position: u64, buffer: &mut [u8]) {
        let mut done = 0;
        while done < buffer.len() {
            let at = (position + done as u64) & (self.log_bytes - 1);
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
                std::ptr::copy_nonoverlapping(self.base.add(at as usize), buffer.as_mut_ptr(), buffer.len());
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

    /// Writer: appends to the log and makes it visible. The caller has checked that it fits.
    ///
    /// # Safety
    /// The ring must have been made by [`Ring::create`]: a reader's mapping is not writable.
    pub unsafe fn append_log(&self, bytes: &[u8]) {
        let position = self.header().log_head.load(Ordering::Relaxed);
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

    fn data(&self, at: u64) -> *mut u8 {
        // SAFETY: `at < capacity`, so the result lies inside the mapping.
        unsafe { self.base.add((HEADER_BYTES + at) as usize) }
    }

    fn log(&self, at: u64) -> *mut u8 {
        // SAFETY: `at < log_bytes`, so the result lies inside the mapping.
        unsafe { self.base.add((HEADER_BYTES + self.capacity + at) as usize) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; no reference into it outlives self.
        unsafe { libc::munmap(self.base.cast(), self.mapped_bytes) };
    }
}
