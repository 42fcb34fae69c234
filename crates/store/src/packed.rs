//! Files that are kept compressed, as LZ4 frames: large ones, written and read once.

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Read and written at once.
const CHUNK_BYTES: usize = 1 << 20;

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Writes a compressed copy, which is new and closed to others. Blocks as long as the disk does.
///
/// # Errors
///
/// A file cannot be read or written, or is there already.
pub fn pack(from: &Path, to: &Path) -> io::Result<()> {
    let mut packed = FrameEncoder::new(BufWriter::with_capacity(CHUNK_BYTES, create(to)?));
    io::copy(&mut BufReader::with_capacity(CHUNK_BYTES, File::open(from)?), &mut packed)?;
    packed.finish().map_err(io::Error::other)?.flush()
}

/// Writes what was packed to a new file that is closed to others, and gives its size. Blocks as long as the disk does.
///
/// # Errors
///
/// It is damaged, or more than `max_bytes`; or a file cannot be read or written.
pub fn unpack(from: &Path, to: &Path, max_bytes: u64) -> io::Result<u64> {
    let packed = FrameDecoder::new(BufReader::with_capacity(CHUNK_BYTES, File::open(from)?));
    let mut file = BufWriter::with_capacity(CHUNK_BYTES, create(to)?);
    let bytes = io::copy(&mut packed.take(max_bytes.saturating_add(1)), &mut file)?;
    file.flush()?;
    if bytes > max_bytes {
        return Err(io::Error::other("it is larger than it was when it was packed"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_and_damage_or_excess_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let [plain, packed, back] = ["plain", "packed", "back"].map(|name| dir.path().join(name));
        let mut rng = fastrand::Rng::with_seed(1);
        let bytes: Vec<u8> = (0..3_000_000).map(|at| if at % 4096 < 2000 { rng.u8(..) } else { 7 }).collect();
        std::fs::write(&plain, &bytes).unwrap();
        pack(&plain, &packed).unwrap();
        let size = std::fs::metadata(&packed).unwrap().len();
        assert!(size < bytes.len() as u64 * 2 / 3, "{size}");
        assert_eq!(unpack(&packed, &back, bytes.len() as u64).unwrap(), bytes.len() as u64);
        assert!(std::fs::read(&back).unwrap() == bytes);
        assert!(unpack(&packed, &back, u64::MAX).is_err(), "it is there already");
        std::fs::remove_file(&back).unwrap();
        assert!(unpack(&packed, &back, bytes.len() as u64 - 1).is_err(), "more than was promised");
        for cut in [3, size / 2, size - 100] {
            let mut damaged = std::fs::read(&packed).unwrap();
            damaged.truncate(cut as usize);
            std::fs::write(&packed, damaged).unwrap();
            std::fs::remove_file(&back).unwrap();
            assert!(unpack(&packed, &back, u64::MAX).is_err(), "cut at {cut}");
            std::fs::remove_file(&packed).unwrap();
            pack(&plain, &packed).unwrap();
        }
    }
}
