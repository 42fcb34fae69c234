//! The one line in front of a file's content: `holdfast <kind> <version> <checksum>`.
//!
//! Text, so that a person sees what a file is, and `tail -n +2` gives the content. The line keeps its form for ever; the version says
//! how the content is to be read. Version 1 is what was written before there was such a line.

use crate::sum::checksum_of;
use std::io;

/// How each sealed file begins. No content of version 1 begins like this.
const MAGIC: &[u8] = b"holdfast ";
/// Longest first line: kinds are short.
pub(crate) const LINE_BYTES_MAX: usize = 64;
/// Digits of a checksum.
const SUM_BYTES: usize = 16;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name in the first line.
    pub kind: &'static str,
    /// The newest version that is known, and the one that is written.
    pub version: u32,
}

/// Why a file has no content for us.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Its bytes are not what was written.
    #[error("the {kind} file is damaged")]
    Damaged {
        /// The kind of file.
        kind: &'static str,
    },
    /// A later version of this program wrote it.
    #[error(
        "the {kind} file is of version {found}, and this holdfast knows up to {known}: use the holdfast that wrote it"
    )]
    Newer {
        /// The kind of file.
        kind: &'static str,
        /// Its version.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// It could not be read at all.
    #[error("the {kind} file cannot be read")]
    Io {
        /// The kind of file.
        kind: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl From<Unreadable> for io::Error {
    fn from(unreadable: Unreadable) -> io::Error {
        match unreadable {
            Unreadable::Io { error, .. } => error,
            Unreadable::Damaged { .. } => io::Error::new(io::ErrorKind::InvalidData, unreadable),
            Unreadable::Newer { .. } => io::Error::new(io::ErrorKind::Unsupported, unreadable),
        }
    }
}

/// A file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// As [`Format::seal`] wrote it.
    Sealed(&'a [u8]),
    /// Version 1: nothing says yet that it is whole.
    Old(&'a [u8]),
}

impl<'a> Content<'a> {
    /// The bytes, of either version.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Content::Sealed(bytes) | Content::Old(bytes) => bytes,
        }
    }
}

impl Format {
    /// A file with this content.
    #[must_use]
    pub fn seal(&self, content: &[u8]) -> Vec<u8> {
        let mut file = self.first_line(content);
        file.extend_from_slice(content);
        file
    }

    pub(crate) fn first_line(&self, content: &[u8]) -> Vec<u8> {
        let label = format!("holdfast {} {} ", self.kind, self.version);
        let sum = checksum_of(label.as_bytes(), content);
        format!("{label}{sum:016x}\n").into_bytes()
    }

    /// The content of a file.
    pub fn open<'a>(&self, file: &'a [u8]) -> Result<Content<'a>, Unreadable> {
        if !file.starts_with(MAGIC) {
            return Ok(Content::Old(file));
        }
        let line = Line::of(file).ok_or_else(|| self.damaged())?;
        if !line.is_sound(line.behind) || line.kind != self.kind.as_bytes() {
            return Err(self.damaged());
        }
        self.must_know(line.version)?;
        Ok(Content::Sealed(line.behind))
    }

    /// What lies behind the first line of a file that grows: the line says nothing of it but its version.
    pub(crate) fn open_growing<'a>(&self, file: &'a [u8]) -> Result<Content<'a>, Unreadable> {
        match Line::of(file) {
            Some(line) if line.is_sound(b"") && line.kind == self.kind.as_bytes() => {
                self.must_know(line.version)?;
                Ok(Content::Sealed(line.behind))
            }
            _ => Ok(Content::Old(file)),
        }
    }

    /// Whether the beginning of a file says that it is of a later version. It may be damaged.
    pub(crate) fn looks_newer(&self, start: &[u8]) -> bool {
        Line::of(start).is_some_and(|line| line.kind == self.kind.as_bytes() && line.version > self.version)
    }

    /// It is not what was written.
    #[must_use]
    pub fn damaged(&self) -> Unreadable {
        Unreadable::Damaged { kind: self.kind }
    }

    pub(crate) fn io(&self, error: io::Error) -> Unreadable {
        Unreadable::Io { kind: self.kind, error }
    }

    pub(crate) fn must_know(&self, found: u32) -> Result<(), Unreadable> {
        match found {
            0 | 1 => Err(self.damaged()),
            found if found > self.version => Err(Unreadable::Newer { kind: self.kind, found, known: self.version }),
            _ => Ok(()),
        }
    }
}

/// A file's first line, and what is behind it.
struct Line<'a> {
    /// Everything before the checksum.
    label: &'a [u8],
    kind: &'a [u8],
    version: u32,
    sum: &'a [u8],
    behind: &'a [u8],
}

impl Line<'_> {
    fn of(file: &[u8]) -> Option<Line<'_>> {
        let end = memchr::memchr(b'\n', &file[..file.len().min(LINE_BYTES_MAX)])?;
        let (label, sum) = file[..end].split_at_checked(end.checked_sub(SUM_BYTES)?)?;
        let mut words = label.strip_prefix(MAGIC)?.strip_suffix(b" ")?.split(|byte| *byte == b' ');
        let (kind, version) = (words.next()?, words.next()?);
        let version = std::str::from_utf8(version).ok()?.parse().ok()?;
        Some(Line { label, kind, version, sum, behind: &file[end + 1..] })
    }

    fn is_sound(&self, content: &[u8]) -> bool {
        self.sum == format!("{:016x}", checksum_of(self.label, content)).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: Format = Format { kind: "note", version: 3 };

    #[test]
    fn the_first_line_is_pinned() {
        let file = NOTE.seal(b"hello");
        assert_eq!(String::from_utf8_lossy(&file), "holdfast note 3 8fc7120d42b1e101\nhello");
    }

    #[test]
    fn what_was_sealed_opens_and_any_flipped_bit_or_missing_byte_is_noticed() {
        for content in [&b""[..], b"x", b"holdfast note 3 ", &[0xff; 100]] {
            let file = NOTE.seal(content);
            assert_eq!(NOTE.open(&file).unwrap(), Content::Sealed(content));
            for bit in 0..file.len() * 8 {
                let mut bad = file.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                // One that no longer looks sealed is for the decoder of version 1, and none of those takes it.
                let opened = NOTE.open(&bad);
                assert!(!matches!(opened, Ok(Content::Sealed(_))), "bit {bit} of {content:?}");
                assert!(!matches!(opened, Err(Unreadable::Newer { .. })), "bit {bit} of {content:?}");
            }
            for cut in 0..file.len() {
                assert!(!matches!(NOTE.open(&file[..cut]), Ok(Content::Sealed(_))), "cut at {cut}");
            }
        }
    }

    #[test]
    fn another_kind_or_version_is_not_taken_for_this_one() {
        let seal = |kind, version| Format { kind, version }.seal(b"x");
        assert!(matches!(NOTE.open(&seal("node", 3)), Err(Unreadable::Damaged { .. })));
        assert!(matches!(NOTE.open(&seal("note", 1)), Err(Unreadable::Damaged { .. })));
        assert!(matches!(NOTE.open(&seal("note", 2)), Ok(Content::Sealed(b"x"))));
        let newer = NOTE.open(&seal("note", 4)).unwrap_err();
        assert_eq!(
            newer.to_string(),
            "the note file is of version 4, and this holdfast knows up to 3: use the holdfast that wrote it"
        );
        assert!(matches!(NOTE.open(b"{}"), Ok(Content::Old(b"{}"))));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut taken = 0;
        for _ in 0..20_000 {
            let mut content = vec![0; rng.usize(..40)];
            rng.fill(&mut content);
            let mut bytes = NOTE.seal(&content);
            for _ in 0..rng.usize(..4) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(b' '..b'z');
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            taken += u32::from(matches!(NOTE.open(&bytes), Ok(Content::Sealed(_))));
        }
        assert!(taken > 50, "{taken}");
    }
}
