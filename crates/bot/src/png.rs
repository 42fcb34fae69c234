//! A PNG of few colours: a palette, one byte a pixel.

use miniz_oxide::deflate::compress_to_vec_zlib;

/// Compression: a screen is mostly one colour, more effort gains little.
const LEVEL: u8 = 6;

/// A picture whose pixels are numbers of a palette's colours.
pub fn encode(width: usize, height: usize, palette: &[[u8; 3]], pixels: &[u8]) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = Vec::with_capacity(13);
    head.extend_from_slice(&(width as u32).to_be_bytes());
    head.extend_from_slice(&(height as u32).to_be_bytes());
    // Eight bits, with a palette, compressed and filtered as all are, not interlaced.
    head.extend_from_slice(&[8, 3, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &head);
    chunk(&mut out, b"PLTE", palette.as_flattened());
    let mut rows = Vec::with_capacity((width + 1) * height);
    for row in pixels.chunks(width.max(1)) {
        rows.push(0);
        rows.extend_from_slice(row);
    }
    chunk(&mut out, b"IDAT", &compress_to_vec_zlib(&rows, LEVEL));
    chunk(&mut out, b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], content: &[u8]) {
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend_from_slice(kind);
    out.extend_from_slice(content);
    let sum = crc(&out[from..]);
    out.extend_from_slice(&sum.to_be_bytes());
}

fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunks_sum_is_that_of_the_specification() {
        assert_eq!(crc(b"IEND"), 0xae42_6082);
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
    }
}
