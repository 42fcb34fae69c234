//! The checksum of all files.

/// Tells a damaged file from a sound one: each step is a bijection, so that a change of up to eight bytes in a row is always
/// noticed. Eight bytes at a time, because history passes through it at the speed of a flood.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(ODD);
        mixed ^ (mixed >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| step(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(hash, u64::from_le_bytes(last))
}

/// A checksum of both, that can be had without copying the content.
pub(crate) fn checksum_of(label: &[u8], content: &[u8]) -> u64 {
    // The content's first: where only the content is changed, only the first word is.
    checksum(&[&checksum(content).to_le_bytes(), label].concat())
}
