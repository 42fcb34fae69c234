//! Ids, actors, rights, offsets, fences, sizes and limits: the words every other crate speaks.
//!
//! Pure: no clock, no randomness, no file. An id is made from random bits the caller brings.

mod actor;
pub mod doing;
mod hex;
mod home;
mod id;
mod name;
mod notice;
mod places;
mod rights;
mod shaper;
mod size;
mod terms;

pub use actor::{Actor, ActorClass, Handle, HandleError};
pub use hex::{ActorId, Challenge, ClientToken, Hash, HexError, HostKey, Nonce, Proof, Signature, hex_bytes, hex_text};
pub use home::{Home, NoHome};
pub use id::{IdError, SessionId};
pub use name::{NAME_BYTES_MAX, NameError, SessionName};
pub use notice::Notice;
pub use places::{Full, Newcomers, Places};
pub use rights::{Defaults, Envelope, FOREVER, Right, Rights, RightsError, WRITING};
pub use shaper::{Channel, Shaper, shapers_text};
pub use size::{COLS_MAX, COLS_MIN, ROWS_MAX, ROWS_MIN, Size, SizeError};
pub use terms::{Cost, RUN_NEW, TERMS, Terms, Thread, Trace, TurnNeed, Who, terms_of};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Absolute position of a byte in a session's output, counted from its first byte; never wraps, never reused.
pub type Offset = u64;

/// Milliseconds since the Unix epoch; the caller brings it, pure code never reads a clock.
pub type TimeMs = u64;

/// A number that grows with each change of turn or incarnation; a write with an old fence is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// How a session's command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this status.
    Code(u8),
    /// A signal ended it.
    Signal(u8),
    /// The keeper is gone without a word: how the command ended cannot be known.
    Lost,
}

impl Exit {
    /// The status a shell would report: the code itself, 128+n for a signal, 1 where nothing is known.
    #[must_use]
    pub fn as_status(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128u8.saturating_add(signal),
            Exit::Lost => 1,
        }
    }

    /// From the raw status `wait(2)` gives.
    #[must_use]
    pub fn from_wait_status(status: i32) -> Exit {
        let low = (status & 0x7f) as u8;
        if low == 0 { Exit::Code(((status >> 8) & 0xff) as u8) } else { Exit::Signal(low) }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited {code}"),
            Exit::Signal(signal) => write!(f, "killed by signal {signal}"),
            Exit::Lost => write!(f, "lost"),
        }
    }
}

/// The smallest ring: the guard (64 KiB) and a client's window must fit several times over.
pub const RING_BYTES_MIN: u64 = 256 * 1024;
/// The default ring: fifteen milliseconds of the fastest flood, hours of a quiet shell.
pub const RING_BYTES_DEFAULT: u64 = 1024 * 1024;
/// The largest ring: beyond this a file on disk is the better place for output.
pub const RING_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Lines of history kept per session unless configured otherwise.
pub const HISTORY_LINES_DEFAULT: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_becomes_the_code_a_shell_would_report() {
        assert_eq!(Exit::from_wait_status(0x0300).as_status(), 3);
        assert_eq!(Exit::from_wait_status(9).as_status(), 137);
        assert_eq!(Exit::from_wait_status(0x8b), Exit::Signal(11), "the core-dump flag is not part of the signal");
    }
}
