//! One session's files, apart from its ring: `spec`, `keyframe`, `env`.
//!
//! Every file is replaced whole: written beside and renamed, so that a reader or a crash finds the old one or the new one.
//! A keyframe that cannot be read costs the screen, never the session.

use crate::history::Remembered;
use holdfast_types::{Exit, SessionId, SessionName, Size, TimeMs};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// What a session is, from its birth on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Identity.
    pub id: SessionId,
    /// Human name; changes with a rename.
    pub name: SessionName,
    /// Command and arguments.
    pub command: Vec<String>,
    /// Where it started.
    pub cwd: String,
    /// The size it started with.
    pub size: Size,
    /// Data bytes of its ring.
    pub ring_bytes: u64,
    /// Proves the host to the keeper, hexadecimal.
    pub secret: String,
    /// When it started.
    pub created_ms: TimeMs,
    /// The shell it is, started so that it tells what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<crate::shells::Kind>,
    /// It was made for one run alone: nobody looks for it once it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
    /// How it ended; absent while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
}

/// Makes a directory and its parents for the user alone.
pub fn make_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Replaces a file whole.
pub fn replace(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let beside = dir.join(format!("{name}.new"));
    let written = std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| std::fs::rename(&beside, dir.join(name)));
    if written.is_err() {
        // A full disk must not also keep half a file.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

impl Spec {
    /// Writes the spec into the session's directory.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(self).expect("texts and numbers always serialise");
        replace(dir, "spec", &json)
    }

    /// Reads the spec of a session's directory.
    pub fn load(dir: &Path) -> io::Result<Spec> {
        let json = std::fs::read(dir.join("spec"))?;
        serde_json::from_slice(&json).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }
}

const KEYFRAME_MAGIC: [u8; 8] = *b"HFKEYF1\0";

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

/// Tells a damaged file from a sound one: each step is a bijection, so that a change of up to eight bytes in a row is always
/// noticed. Eight bytes at a time, because history passes through it at the speed of a flood.
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

impl Keyframe {
    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Remembered { mark, pending, unsaved_lines } = &self.history;
        let mut out = Vec::with_capacity(80 + pending.len() + self.screen.len());
        out.extend_from_slice(&KEYFRAME_MAGIC);
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
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads a file's bytes; `None` if they are damaged or of another version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Keyframe> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = content.strip_prefix(&KEYFRAME_MAGIC)?;
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
        replace(dir, "keyframe", &self.encode())
    }

    /// Reads it: `Ok(None)` where there is none yet, an error where it is damaged.
    pub fn load(dir: &Path) -> io::Result<Option<Keyframe>> {
        match std::fs::read(dir.join("keyframe")) {
            Ok(bytes) => Keyframe::decode(&bytes)
                .map(Some)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the keyframe file is damaged")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyframe_reads_back_and_any_flipped_or_missing_byte_is_noticed() {
        let keyframe = Keyframe {
            log_position: 56,
            history: Remembered {
                mark: HistoryMark { segment: 2, lines: 7, bytes: 999 },
                pending: b"line\n".to_vec(),
                unsaved_lines: 3,
            },
            gap: (5, 9),
            screen: vec![1, 2, 3],
        };
        let bytes = keyframe.encode();
        assert_eq!(Keyframe::decode(&bytes), Some(keyframe));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert_eq!(Keyframe::decode(&bad), None, "flipped at {at}");
            assert_eq!(Keyframe::decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
