use super::*;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

const CAPACITY: u64 = 2 * GUARD_BYTES;

/// A file in memory.
fn file() -> File {
    // SAFETY: the name ends with a zero byte.
    let fd = unsafe { libc::memfd_create(c"ring".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just opened and nobody else has it.
    unsafe { File::from_raw_fd(fd) }
}

fn create(base: Base) -> (File, Ring) {
    let file = file();
    let ring = Ring::create(&file, CAPACITY, base, 0x0a0b_0c0d, 0x1122_3344).unwrap();
    (file, ring)
}

fn put(file: &File, at: u64, number: u64) {
    file.write_all_at(&number.to_le_bytes(), at).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A file of this header, and zeros up to the end of the log.
fn with_header(header: &[u8]) -> File {
    let file = file();
    file.set_len(HEADER_BYTES + CAPACITY + LOG_BYTES).unwrap();
    file.write_all_at(header, 0).unwrap();
    file
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number near an edge: zero, a turn of the ring, the largest base, the largest offset, the end of all numbers.
    fn edge(&mut self) -> u64 {
        let edges = [0, CAPACITY, 1 << 32, BASE_MAX, OFFSET_MAX, u64::MAX];
        let near = self.below(2 * CAPACITY).wrapping_sub(CAPACITY);
        edges[self.below(6) as usize].wrapping_add(near)
    }
}

/// The output a session writes: the byte at each offset.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Writes as a keeper does, from the head on.
fn write(ring: &Ring, count: u64) {
    let end = ring.head() + count;
    while ring.head() < end {
        let head = ring.head();
        let (to, room) = ring.space(head);
        let count = (room as u64).min(end - head);
        for n in 0..count {
            // SAFETY: inside the room the ring gave, in a ring made for writing.
            unsafe { to.add(n as usize).write(byte(head + n)) };
        }
        ring.publish(head + count);
    }
}

/// The header of a ring whose keeper was of version 1, byte for byte. Never changes.
const V1: &str = concat!(
    "484652494e473100", // magic
    "0000020000000000", // capacity
    "0000010000000000", // log bytes
    "0d0c0b0a",         // keeper pid
    "04030201",         // child pid
    "4433221100000000", // started
    "02000000",         // state
    "00010000",         // status
    "8877665500000000", // ended
    "0000000000000000",
    "3930000000000000", // head
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "4800000000000000", // log head
);

/// The same of version 2, with bases. Never changes.
const V2: &str = concat!(
    "484652494e473200", // magic
    "0000020000000000", // capacity
    "0000010000000000", // log bytes
    "0d0c0b0a",         // keeper pid
    "00000000",         // child pid
    "4433221100000000", // started
    "00000000",         // state
    "00000000",         // status
    "0000000000000000", // ended
    "0807060504030000", // base
    "0807060504030000", // head
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "4002010000000000", // log head
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "4002010000000000", // log base
    "1850f1d09cb0b9a3", // seal
);

#[test]
fn the_header_of_version_1_is_frozen_and_read_with_bases_of_zero() {
    let file = with_header(&bytes(V1));
    for ring in [Ring::open(&file).unwrap(), Ring::open_lean(file.try_clone().unwrap()).unwrap()] {
        assert_eq!((ring.capacity(), ring.log_bytes()), (CAPACITY, LOG_BYTES));
        assert_eq!((ring.base(), ring.head(), ring.log_head(), ring.oldest()), (Base::default(), 12_345, 72, 0));
        let header = ring.header();
        assert_eq!((header.keeper_pid, header.started_ms), (0x0a0b_0c0d, 0x1122_3344));
        assert_eq!(header.child_pid.load(Ordering::Relaxed), 0x0102_0304);
        assert_eq!((header.state.load(Ordering::Relaxed), header.status.load(Ordering::Relaxed)), (STATE_ENDED, 256));
        assert_eq!(header.ended_ms.load(Ordering::Relaxed), 0x5566_7788);
    }
}

#[test]
fn the_header_of_version_2_is_frozen() {
    let base = Base { output: 0x0304_0506_0708, log: 0x0001_0240 };
    let (file, ring) = create(base);
    let mut page = [0; HEADER_BYTES as usize];
    file.read_exact_at(&mut page, 0).unwrap();
    assert_eq!(hex(&page[..FIXED_BYTES]), V2);
    assert!(page[FIXED_BYTES..].iter().all(|b| *b == 0), "what has no meaning yet is zero");
    let opened = Ring::open(&with_header(&bytes(V2))).unwrap();
    for ring in [ring, opened] {
        assert_eq!((ring.base(), ring.head(), ring.log_head()), (base, base.output, base.log));
        assert_eq!(ring.oldest(), base.output, "nothing before the base can be had");
    }
}

#[test]
fn another_version_is_unknown_whatever_the_rest_says() {
    for digit in (0..=u8::MAX).filter(|digit| !b"12".contains(digit)) {
        let (file, _) = create(Base::default());
        file.write_all_at(&[digit], 6).unwrap();
        assert!(matches!(Ring::open(&file), Err(RingError::Unknown)), "{digit}");
    }
}

#[test]
fn what_a_life_wrote_is_read_at_its_offsets_around_base_and_wrap() {
    let seed = 0x51ed_270b_0f4a_7c15u64;
    let mut random = Random(seed);
    let (mut read, mut lapped) = (0, 0);
    for _ in 0..60 {
        let output = random.edge().min(BASE_MAX);
        let (file, ring) = create(Base { output, log: 0 });
        write(&ring, random.below(3 * CAPACITY));
        let (head, oldest) = (ring.head(), ring.oldest());
        let kept = (head + GUARD_BYTES).saturating_sub(CAPACITY);
        assert_eq!(oldest, kept.max(output), "seed {seed:#x}");
        let readers = [Ring::open(&file).unwrap(), Ring::open_lean(file).unwrap()];
        let mut buffer = vec![0; CAPACITY as usize];
        for _ in 0..20 {
            let position = (oldest + random.below(3 * GUARD_BYTES)).saturating_sub(GUARD_BYTES);
            for reader in &readers {
                match reader.copy(position, &mut buffer) {
                    Copied::Bytes(count) => {
                        assert!((oldest..=head).contains(&position), "seed {seed:#x}: {position}");
                        assert!(count > 0 || position == head, "seed {seed:#x}: {position}");
                        assert!((position..).zip(&buffer[..count]).all(|(at, b)| byte(at) == *b), "seed {seed:#x}");
                        read += count;
                    }
                    Copied::Lapped { oldest: told } => {
                        assert!(position < oldest && told == oldest, "seed {seed:#x}: {position}");
                        lapped += 1;
                    }
                    Copied::Ahead { newest } => assert!(position > head && newest == head, "seed {seed:#x}"),
                }
            }
        }
    }
    assert!(read > 1 << 20 && lapped > 100, "seed {seed:#x}: {read} bytes, {lapped} times lapped");
}

#[test]
fn log_records_are_read_at_their_positions_around_base_and_wrap() {
    let mut random = Random(7);
    for _ in 0..60 {
        let log = random.edge().min(BASE_MAX) & !7;
        let (file, ring) = create(Base { output: 0, log });
        let reader = Ring::open_lean(file).unwrap();
        for _ in 0..8 {
            let position = ring.log_head();
            let record: Vec<u8> = (0..8 * (1 + random.below(2000))).map(|n| byte(position + n)).collect();
            // SAFETY: the ring was made for writing.
            unsafe { ring.append_log(position, &record) };
            assert_eq!(reader.log_head(), position + record.len() as u64);
            let mut copied = vec![0; record.len()];
            reader.copy_log(position, &mut copied);
            assert_eq!(copied, record, "from {position}");
        }
    }
}

/// A base no keeper may begin with is refused before anything is made.
#[test]
fn a_base_beyond_the_largest_is_no_ring() {
    for base in [
        Base { output: BASE_MAX + 1, log: 0 },
        Base { output: u64::MAX, log: 0 },
        Base { output: 0, log: BASE_MAX + 8 },
        Base { output: 0, log: u64::MAX },
        Base { output: 0, log: 4 },
    ] {
        let file = file();
        let error = Ring::create(&file, CAPACITY, base, 1, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{base:?}");
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}

#[test]
fn a_header_whose_offsets_cannot_be_is_damaged() {
    let base = Base { output: 1 << 30, log: 1 << 20 };
    for (at, number) in [
        (56, 0),
        (56, base.output - 1),
        (56, base.output + 1),
        (56, u64::MAX),
        (64, base.output - 1),
        (64, OFFSET_MAX + 1),
        (64, u64::MAX),
        (128, base.log - 8),
        (128, u64::MAX),
        (192, 0),
        (192, base.log + 8),
        (192, u64::MAX),
        (200, 0),
        (24, 1),
        (32, 0),
    ] {
        let (file, ring) = create(base);
        write(&ring, 100);
        put(&file, at, number);
        assert!(matches!(Ring::open(&file), Err(RingError::Damaged)), "{number:#x} at {at}");
        assert!(matches!(Ring::open_lean(file), Err(RingError::Damaged)), "{number:#x} at {at}");
    }
    for (at, number) in [(64, OFFSET_MAX + 1), (64, u64::MAX), (128, u64::MAX)] {
        let file = with_header(&bytes(V1));
        put(&file, at, number);
        assert!(matches!(Ring::open(&file), Err(RingError::Damaged)), "version 1: {number:#x} at {at}");
    }
}

/// A header that changes under an open ring: every answer stays within bounds.
#[test]
fn numbers_scribbled_into_the_header_of_an_open_ring_harm_no_reader() {
    let seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = Random(seed);
    let base = Base { output: 3 * CAPACITY + 17, log: 800 };
    let (file, ring) = create(base);
    write(&ring, 2 * CAPACITY);
    let readers = [Ring::open(&file).unwrap(), Ring::open_lean(file.try_clone().unwrap()).unwrap()];
    let mut buffer = vec![0; 4096];
    let mut answers = [0; 3];
    for _ in 0..20_000 {
        let at = [56, 64, 128, 192, 200][random.below(5) as usize];
        let number = if random.below(2) == 0 { random.edge() } else { random.next() };
        put(&file, at, number);
        let position = random.edge();
        for reader in &readers {
            assert_eq!(reader.base(), base);
            let (oldest, head) = (reader.oldest(), reader.head());
            assert!(base.output <= oldest && oldest <= head && head <= OFFSET_MAX, "seed {seed:#x}");
            assert!((base.log..=OFFSET_MAX).contains(&reader.log_head()), "seed {seed:#x}");
            reader.copy_log(position, &mut buffer);
            answers[match reader.copy(position, &mut buffer) {
                Copied::Bytes(count) => usize::from(count > buffer.len()),
                Copied::Lapped { oldest: told } => usize::from(told != oldest) + 1,
                Copied::Ahead { newest } => usize::from(newest != head) * 3 + 2,
            }] += 1;
        }
    }
    assert!(answers.iter().all(|count| *count > 100), "seed {seed:#x}: {answers:?}");
}

#[test]
fn what_was_never_written_is_known_once_a_ring_is_final_and_holds_nothing_that_can_be_read() {
    let page = HEADER_BYTES;
    for (base, written) in [
        (0, 0),
        (0, 1),
        (0, page),
        (0, CAPACITY - 1),
        (0, CAPACITY),
        (0, 3 * CAPACITY + 5),
        (CAPACITY - 3, 2),
        (CAPACITY - 3, 9),
        (5 * CAPACITY + page + 1, CAPACITY - page),
        (5 * CAPACITY + page + 1, 2 * page),
    ] {
        let (file, ring) = create(Base { output: base, log: base & !7 });
        write(&ring, written);
        // SAFETY: made by `create`.
        unsafe { ring.append_log(base & !7, &[7; 24]) };
        assert_eq!(ring.unwritten(), [], "it may still be written to");
        let (mut whole, mut log) = (vec![0; written.min(CAPACITY) as usize], vec![0; 24]);
        let read = |ring: &Ring, whole: &mut [u8]| {
            let mut at = ring.oldest();
            let mut done = 0;
            while at < ring.head() {
                let Copied::Bytes(count) = ring.copy(at, &mut whole[done..]) else { panic!("it is all there") };
                at += count as u64;
                done += count;
            }
            done
        };
        let before = read(&ring, &mut whole);
        ring.header().state.store(STATE_ENDED, Ordering::Release);
        let unwritten = ring.unwritten();
        let free: u64 = unwritten.iter().map(|pages| pages.end - pages.start).sum();
        let least = (CAPACITY - written.min(CAPACITY) + LOG_BYTES - 24).saturating_sub(6 * page);
        assert!(free >= least, "{base} {written}: {unwritten:?}");
        for pages in unwritten {
            assert!(pages.start >= HEADER_BYTES && pages.start.is_multiple_of(page) && pages.end.is_multiple_of(page));
            file.write_all_at(&vec![0xff; (pages.end - pages.start) as usize], pages.start).unwrap();
        }
        let reopened = Ring::open(&file).unwrap();
        let mut again = vec![0; whole.len()];
        assert_eq!(read(&reopened, &mut again), before);
        assert_eq!(again, whole, "{base} {written}");
        reopened.copy_log(base & !7, &mut log);
        assert_eq!(log, [7; 24], "{base} {written}");
    }
}
