//! The daemon of a machine: finds keepers, keeps screens, answers clients.

use holdfast_types::Home;

/// What a host can be told by configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Data bytes of a new session's ring.
    pub ring_bytes: u64,
    /// Lines of history kept per session.
    pub history_lines: u32,
    /// How long an ended session stays visible, in milliseconds.
    pub ended_keep_ms: u64,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig {
            ring_bytes: holdfast_types::RING_BYTES_DEFAULT,
            history_lines: holdfast_types::HISTORY_LINES_DEFAULT,
            ended_keep_ms: 24 * 60 * 60 * 1000,
        }
    }
}

/// How a host's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It was asked to stop.
    Stopped,
    /// Another host serves this home already.
    Yielded,
}

/// Serves a home until asked to stop.
pub fn run(_home: &Home, _config: &HostConfig) -> std::io::Result<Ran> {
    Ok(Ran::Yielded)
}
