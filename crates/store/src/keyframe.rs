//! A screen at an offset and everything needed to go on from there: the content of `keyframe`.
//!
//! Eight numbers of 64 bits, little end first, the lines of history that are in no file yet, and the screen's own bytes. Version 1 had
//! a magic number before and a checksum behind them.

use crate::envelope::{Content, Unreadable};
use crate::sum::checksum;
use crate::{KEYFRAME, Survives, get, put};
use std::io;
use std::path::Path;

/// The file's name.
pub const NAME: &str = "keyframe";
const MAGIC_1: [u8; 8] = *b"HFKEYF1\0";

/// The screen at an offset and everything needed to go on from there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keyframe {
    /// Log position up to which the host has seen what was typed.
    pub log_position: u64,
    /// The history up to there.
    pub history: Remembered,
    /// Output the screen never saw, as `from` and `to`; equal: none.
    pub gap: (u64, u64),
    /// The screen's own keyframe.
    pub screen: Vec<u8>,
}

/// What a keyframe remembers of a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// Where the files stood.
    pub mark: HistoryMark,
    /// Lines that are in no file yet.
    pub pending: Vec<u8>,
    /// Lines that were too many to remember.
    pub unsaved_lines: u32,
}

/// A place in the history file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryMark {
    /// The segment written to.
    pub segment: u32,
    /// Its lines.
    pub lines: u32,
    /// Its length.
    pub bytes: u64,
}

impl Keyframe {
    /// The content of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Remembered { mark, pending, unsaved_lines } = &self.history;
        let mut out = Vec::with_capacity(64 + pending.len() + self.screen.len());
        let numbers = [
            self.log_position,
            u64::from(mark.segment),
            u64::from(mark.lines),
            mark.bytes,
            u64::from(*unsaved_lines),
            self.gap.0,
            self.gap.1,
            pending.len() as u64,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(pending);
        out.extend_from_slice(&self.screen);
        out
    }

    /// From a file's content; none if it is damaged.
    #[must_use]
    pub fn decode(content: Content<'_>) -> Option<Keyframe> {
        let mut rest = match content {
            Content::Sealed(bytes) => bytes,
            Content::Old(bytes) => {
                let (content, sum) = bytes.split_last_chunk::<8>()?;
                let is_sound = checksum(content) == u64::from_le_bytes(*sum);
                content.strip_prefix(&MAGIC_1).filter(|_| is_sound)?
            }
        };
        let mut number = || {
            let (front, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*front))
        };
        let log_position = number()?;
        let mark =
            HistoryMark { segment: number()?.try_into().ok()?, lines: number()?.try_into().ok()?, bytes: number()? };
        let unsaved_lines = number()?.try_into().ok()?;
        let gap = (number()?, number()?);
        let pending_bytes = usize::try_from(number()?).ok()?;
        let (pending, screen) = rest.split_at_checked(pending_bytes)?;
        let history = Remembered { mark, pending: pending.to_vec(), unsaved_lines };
        Some(Keyframe { log_position, history, gap, screen: screen.to_vec() })
    }

    /// Writes it into the session's directory.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        // Its session ends with the power.
        put(&KEYFRAME, dir, NAME, &self.encode(), Survives::Crash)
    }

    /// Reads it; none where there is none yet.
    pub fn load(dir: &Path) -> Result<Option<Keyframe>, Unreadable> {
        get(&KEYFRAME, &dir.join(NAME), Keyframe::decode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyframe() -> Keyframe {
        Keyframe {
            log_position: 56,
            history: Remembered {
                mark: HistoryMark { segment: 2, lines: 7, bytes: 999 },
                pending: b"line\n".to_vec(),
                unsaved_lines: 3,
            },
            gap: (5, 9),
            screen: vec![1, 2, 3],
        }
    }

    fn open(file: &[u8]) -> Option<Keyframe> {
        KEYFRAME.open(file).ok().and_then(Keyframe::decode)
    }

    fn old(keyframe: &Keyframe) -> Vec<u8> {
        let mut file = [&MAGIC_1[..], &keyframe.encode()].concat();
        file.extend_from_slice(&checksum(&file).to_le_bytes());
        file
    }

    #[test]
    fn a_keyframe_reads_back_and_any_flipped_bit_or_missing_byte_is_noticed() {
        for file in [KEYFRAME.seal(&keyframe().encode()), old(&keyframe())] {
            assert_eq!(open(&file), Some(keyframe()));
            for bit in 0..file.len() * 8 {
                let mut bad = file.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&bad), None, "bit {bit}");
            }
            for cut in 0..file.len() {
                assert_eq!(open(&file[..cut]), None, "cut at {cut}");
            }
        }
    }

    #[test]
    fn no_content_makes_it_panic() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut read = 0;
        for _ in 0..20_000 {
            let mut content = keyframe().encode();
            content.truncate(rng.usize(..=content.len()));
            if !content.is_empty() {
                let at = rng.usize(..content.len());
                content[at] = rng.u8(..);
            }
            read += u32::from(open(&KEYFRAME.seal(&content)).is_some());
        }
        assert!(read > 0);
    }
}
