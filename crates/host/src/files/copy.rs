//! Copies within the machine, from and to the same offset. Holes stay holes: a sparse file of a terabyte takes no terabyte.
//!
//! Without a sum the kernel copies by itself where it can. With one the bytes are read once, and hashed on another thread while they
//! are written: hashing takes longer than all the rest.

use super::sums::Hasher;
use rustix::fs::{SeekFrom, copy_file_range, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::mpsc;

/// Read, written and hashed at once: it stays in the processor's cache meanwhile.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Chunks that wait to be hashed.
const CHUNKS_MAX: usize = 8;
/// Copied by the kernel at once: more is not faster.
const SLICE_BYTES: u64 = 8 * 1024 * 1024;

/// Copies up to `most` bytes; gives how many there were.
pub fn copy(source: &File, to: &File, from: u64, most: u64) -> io::Result<u64> {
    walk(source, to, from, most, |_, _| Ok(()), |at, count| by_kernel(source, to, at, count.min(SLICE_BYTES)))
}

/// The same, and adds what was copied to a sum.
pub(super) fn copy_summed(source: &File, to: &File, from: u64, most: u64, sum: &mut Hasher) -> io::Result<u64> {
    let (full, fills) = mpsc::sync_channel::<Vec<u8>>(CHUNKS_MAX);
    let (free, frees) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for chunk in fills {
                sum.update(&chunk);
                let _ = free.send(chunk);
            }
        });
        let empty = |count: u64| {
            let mut chunk: Vec<u8> = frees.try_recv().unwrap_or_default();
            chunk.resize(count.min(CHUNK_BYTES) as usize, 0);
            chunk
        };
        let hash = |chunk| full.send(chunk).map_err(|_| io::Error::other("the thread that hashes is gone"));
        let hole = |mut left: u64| {
            while left > 0 {
                let mut chunk = empty(left);
                chunk.fill(0);
                left -= chunk.len() as u64;
                hash(chunk)?;
            }
            Ok(())
        };
        let data = |at: u64, count: u64| {
            let mut chunk = empty(count);
            let count = read_at(source, &mut chunk, at)?;
            chunk.truncate(count);
            to.write_all_at(&chunk, at)?;
            hash(chunk)?;
            Ok(count as u64)
        };
        let done = walk(source, to, from, most, |from, end| hole(end - from), data);
        // The other thread ends with this.
        drop(full);
        done
    })
}

/// Goes through a file's data and holes. What is beyond the end of `to` and a hole in the source becomes one there.
fn walk(
    source: &File,
    to: &File,
    from: u64,
    most: u64,
    mut hole: impl FnMut(u64, u64) -> io::Result<()>,
    mut data: impl FnMut(u64, u64) -> io::Result<u64>,
) -> io::Result<u64> {
    let meta = source.metadata()?;
    let end = meta.len().min(from.saturating_add(most));
    let is_sparse = meta.blocks() * 512 < meta.len();
    let mut at = from;
    while at < end {
        let (data_from, data_to) = if is_sparse { extent(source, at, end) } else { (at, end) };
        if data_from > at {
            // There may be something of an earlier try.
            if to.metadata()?.len() <= at {
                to.set_len(data_from)?;
                hole(at, data_from)?;
                at = data_from;
                continue;
            }
        }
        let mut at_data = at;
        while at_data < data_to {
            match data(at_data, data_to - at_data)? {
                // It is shorter by now.
                0 => return Ok(at_data - from),
                count => at_data += count,
            }
            holdfast_pause::point("files.copied");
        }
        at = at_data;
    }
    Ok(at.max(from) - from)
}

/// Where the next data begins and ends. What cannot be known is data.
fn extent(source: &File, at: u64, end: u64) -> (u64, u64) {
    let begin = match seek(source, SeekFrom::Data(at)) {
        Ok(begin) => begin.min(end),
        Err(Errno::NXIO) => end,
        Err(_) => return (at, end),
    };
    let until = seek(source, SeekFrom::Hole(begin)).unwrap_or(end).min(end);
    (begin, until.max(begin))
}

fn by_kernel(source: &File, to: &File, at: u64, count: u64) -> io::Result<u64> {
    let (mut from, mut into) = (at, at);
    loop {
        match copy_file_range(source, Some(&mut from), to, Some(&mut into), count as usize) {
            Ok(copied) => return Ok(copied as u64),
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                let mut chunk = vec![0; CHUNK_BYTES.min(count) as usize];
                let count = read_at(source, &mut chunk, at)?;
                to.write_all_at(&chunk[..count], at)?;
                return Ok(count as u64);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match file.read_at(&mut buffer[have..], at + have as u64) {
            Ok(0) => break,
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::files::HashKind;
    use std::io::Write;

    /// Data, a hole, data, a hole at the end.
    fn sparse() -> (File, Vec<u8>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 70_000]).unwrap();
        file.write_all_at(b"late", 5_000_000).unwrap();
        file.set_len(9_000_000).unwrap();
        let mut whole = vec![0; 9_000_000];
        whole[..70_000].fill(7);
        whole[5_000_000..5_000_004].copy_from_slice(b"late");
        (file, whole)
    }

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn a_copy_has_the_bytes_and_the_holes_also_in_parts_and_is_hashed_as_it_is() {
        let (source, whole) = sparse();
        for (step, kind) in [
            (u64::MAX, HashKind::Blake3),
            (4_999_999, HashKind::Sha256),
            (300_000, HashKind::Blake3),
            (65_536, HashKind::Sha256),
        ] {
            let (plain, summed) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            let (mut at, mut sum) = (0, Hasher::new(kind));
            while at < whole.len() as u64 {
                let copied = copy(&source, &plain, at, step).unwrap();
                assert_eq!(copied, copy_summed(&source, &summed, at, step, &mut sum).unwrap());
                assert!(copied > 0 && copied <= step);
                at += copied;
            }
            assert!(content(&plain) == whole && content(&summed) == whole, "step {step}");
            let mut expected = Hasher::new(kind);
            expected.update(&whole);
            assert_eq!(sum.hash(), expected.hash(), "step {step}");
            for copied in [&plain, &summed] {
                let blocks = copied.metadata().unwrap().blocks();
                assert!(blocks * 512 < 1_000_000, "step {step}: {blocks} blocks");
            }
        }
        assert_eq!(copy(&source, &tempfile::tempfile().unwrap(), 9_000_000, 10).unwrap(), 0);
        assert_eq!(copy(&source, &tempfile::tempfile().unwrap(), 10_000_000, 10).unwrap(), 0);
    }

    #[test]
    fn a_hole_over_something_that_was_there_is_zeros() {
        let (source, whole) = sparse();
        let to = tempfile::tempfile().unwrap();
        to.write_all_at(&vec![9; 6_000_000], 0).unwrap();
        assert_eq!(copy(&source, &to, 0, u64::MAX).unwrap(), whole.len() as u64);
        assert!(content(&to) == whole);
    }
}
