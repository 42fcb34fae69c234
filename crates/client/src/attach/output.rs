//! Output: from the ring to the terminal, as it is or drawn.

use super::run::Attached;
use super::{AttachEnd, AttachError};
use holdfast_abi::protocol::ToKeeper;
use holdfast_abi::ring::Copied;
use holdfast_screen::{QueryFilter, Screen, Viewport};
use holdfast_types::Size;
use std::time::{Duration, Instant};

/// Bytes copied at once: several reads of a terminal, little enough to stay in the cache.
const COPY_BYTES: usize = 32 * 1024;
/// How often consumption is reported.
const ACK_BYTES: u64 = 64 * 1024;
/// A drawn screen is drawn at most this often.
const DRAW_EVERY: Duration = Duration::from_millis(16);

/// How the session appears on this terminal.
pub enum View {
    /// Byte for byte, less the queries that another terminal answers.
    Raw(Option<QueryFilter>),
    /// From a screen of our own, cropped to this terminal.
    Drawn {
        /// The session's screen.
        screen: Box<Screen>,
        /// What this terminal shows of it.
        viewport: Viewport,
        /// When it was drawn last, if not everything is drawn.
        stale_since: Option<Instant>,
    },
}

impl View {
    /// When the next drawing is due.
    pub fn next_draw(&self) -> Option<Duration> {
        match self {
            View::Raw(_) | View::Drawn { stale_since: None, .. } => None,
            View::Drawn { stale_since: Some(at), .. } => {
                Some((*at + DRAW_EVERY).saturating_duration_since(Instant::now()))
            }
        }
    }
}

impl Attached<'_> {
    /// Brings some output to the terminal; false when there is none, or it is not ours to write now.
    pub(super) fn pump(&mut self) -> Result<bool, AttachError> {
        if !self.baton || self.wanted.is_some() {
            return Ok(false);
        }
        while let Some((at, size)) = self.resizes.front().copied() {
            if at > self.position {
                break;
            }
            self.resizes.pop_front();
            if let View::Drawn { screen, .. } = &mut self.view {
                screen.resize(size);
                // Heard of too late: what came behind it was drawn at the old size.
                if at < self.position {
                    self.wanted.get_or_insert(false);
                }
            }
            self.session_has_size(size);
        }
        if self.wanted.is_some() {
            return Ok(false);
        }
        let mut limit = self.resizes.front().map_or(COPY_BYTES as u64, |(at, _)| at - self.position);
        if let Some(from) = self.duty.begin {
            self.begin_answering();
            if self.wanted.is_some() {
                return Ok(false);
            }
            // Filtered up to exactly there.
            limit = limit.min(from.checked_sub(self.position).filter(|left| *left > 0).unwrap_or(limit));
        }
        let wanted = (limit as usize).min(COPY_BYTES);
        // Taken out and put back: made once, a fresh one would be filled with zeros for every copy.
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(COPY_BYTES, 0);
        let copied = self.ring.copy(self.position, &mut buffer[..wanted]);
        let count = match copied {
            Copied::Bytes(count) => count,
            // We were too slow and the session did not wait: one gap, one fresh paint.
            Copied::Lapped { .. } | Copied::Ahead { .. } => {
                self.wanted = Some(false);
                return Ok(false);
            }
        };
        if count > 0 {
            self.show(&buffer[..count])?;
            self.position += count as u64;
        }
        self.buffer = buffer;
        self.draw(count == 0)?;
        if count == 0 {
            self.renew_line();
            self.keep_keeper_from_painting()?;
            self.baton = false;
            self.acked = self.position;
            self.tell_keeper(|position| ToKeeper::Sleep { position, wake_at: position + 1 })?;
        } else if self.position - self.acked >= ACK_BYTES {
            self.acked = self.position;
            self.tell_keeper(|position| ToKeeper::Ack { position })?;
        }
        Ok(count > 0)
    }

    fn show(&mut self, bytes: &[u8]) -> Result<(), AttachError> {
        match &mut self.view {
            View::Raw(None) => {
                self.last_byte = bytes[bytes.len() - 1];
                self.put(bytes);
            }
            View::Raw(Some(filter)) => {
                let mut out = Vec::with_capacity(bytes.len());
                filter.feed(bytes, &mut out);
                self.last_byte = *out.last().unwrap_or(&self.last_byte);
                self.put(&out);
            }
            View::Drawn { screen, stale_since, .. } => {
                screen.feed(bytes);
                // The host answers for a terminal that shows the session cropped; history is its business too.
                screen.take_replies();
                screen.drain_history(&mut Vec::new());
                stale_since.get_or_insert_with(Instant::now);
            }
        }
        Ok(())
    }

    /// Draws what changed, if it is time.
    pub(super) fn draw(&mut self, caught_up: bool) -> Result<(), AttachError> {
        let View::Drawn { screen, viewport, stale_since } = &mut self.view else { return Ok(()) };
        let due = stale_since.is_some_and(|since| caught_up || since.elapsed() >= DRAW_EVERY);
        if !due {
            return Ok(());
        }
        *stale_since = None;
        let bytes = viewport.render(screen);
        self.put(&bytes);
        Ok(())
    }

    /// Writes to the terminal; one that is gone ends the attachment, not the session.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.terminal.write(bytes).is_err() {
            self.end = Some(AttachEnd::HungUp);
        }
    }

    /// The session has this size: as long as it is ours too the output passes as it is, otherwise it is drawn.
    pub(super) fn session_has_size(&mut self, size: Size) {
        self.session_size = size;
        let fits = size == self.size;
        let raw = matches!(self.view, View::Raw(_));
        if fits != raw {
            self.wanted.get_or_insert(false);
        }
    }
}
