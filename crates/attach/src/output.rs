//! Output: from the ring to the terminal, as it is or drawn.

use super::inputs::{AttachEnd, Effect};
use super::machine::Attached;
use holdfast_abi::protocol::ToKeeper;
use holdfast_screen::{CLEAR, QueryFilter, Screen, Viewport, history_ansi};
use holdfast_types::Size;

/// Bytes copied at once: several reads of a terminal, little enough to stay in the cache.
const COPY_BYTES: usize = 32 * 1024;
/// How often consumption is reported.
const ACK_BYTES: u64 = 64 * 1024;
/// A drawn screen is drawn at most this often.
const DRAW_EVERY_MS: u64 = 16;

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
        /// What left it.
        above: Above,
        /// When it was drawn last, if not everything is drawn.
        stale_since: Option<u64>,
    },
}

/// Lines that left the session's screen while it is drawn: they belong into the scrollback of a terminal of any size.
#[derive(Debug, Default)]
pub struct Above {
    /// Not on the terminal yet, encoded.
    lines: Vec<u8>,
    /// How many the terminal has, or will.
    told: u64,
    /// How many the screen has given away.
    drained: u64,
    /// The program threw away what is above the screen.
    cleared: bool,
}

impl Above {
    /// For a terminal that has what is above this screen.
    pub fn of(screen: &Screen) -> Above {
        Above { told: screen.undrained_lines() as u64, ..Above::default() }
    }

    /// Takes what is new, after each few bytes: the screen keeps no more than it needs.
    fn gather(&mut self, screen: &mut Screen) {
        if screen.take_cleared() {
            *self = Above { cleared: true, ..Above::default() };
        }
        let all = self.drained + screen.undrained_lines() as u64;
        let new = all.saturating_sub(self.told) as usize;
        self.lines.extend_from_slice(screen.newest_lines(new));
        self.told = self.told.max(all);
        self.drained += u64::from(screen.drain_history(&mut Vec::new()));
    }

    /// What brings it onto a terminal, whose screen is blank then; nothing where nothing is new.
    fn take(&mut self, size: Size) -> Vec<u8> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.cleared) {
            out.extend_from_slice(b"\x1b[3J");
        }
        if !self.lines.is_empty() {
            out.extend_from_slice(b"\x1b[m");
            out.extend_from_slice(CLEAR.as_bytes());
            let mut lines = Vec::new();
            history_ansi(&std::mem::take(&mut self.lines), &mut lines);
            scroll_off(&lines, size, &mut out);
        }
        out
    }
}

/// Brings lines into the scrollback of a terminal whose cursor is at home on a blank screen, and leaves it so.
pub fn scroll_off(lines: &[u8], size: Size, out: &mut Vec<u8>) {
    if !lines.is_empty() {
        out.extend_from_slice(lines);
        out.extend(b"\r\n".repeat(usize::from(size.rows()).saturating_sub(1)));
        out.extend_from_slice(CLEAR.as_bytes());
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            View::Raw(None) => "Raw",
            View::Raw(Some(_)) => "Filtered",
            View::Drawn { .. } => "Drawn",
        })
    }
}

impl View {
    /// When the next drawing is due.
    pub fn next_draw(&self) -> Option<u64> {
        match self {
            View::Raw(_) => None,
            View::Drawn { stale_since, .. } => stale_since.map(|at| at + DRAW_EVERY_MS),
        }
    }
}

impl Attached {
    /// Asks for some output, unless there is none to show or the terminal is not ours.
    pub(crate) fn proceed(&mut self) {
        match self.next_read() {
            Some(bytes_max) => self.want(Effect::Read { at: self.position, bytes_max }),
            None => self.has_moved(false),
        }
    }

    fn next_read(&mut self) -> Option<usize> {
        if !self.baton || self.wanted.is_some() {
            return None;
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
            return None;
        }
        let mut limit = self.resizes.front().map_or(COPY_BYTES as u64, |(at, _)| at - self.position);
        if let Some(from) = self.duty.begin {
            self.begin_answering();
            if self.wanted.is_some() {
                return None;
            }
            // Filtered up to exactly there.
            limit = limit.min(from.checked_sub(self.position).filter(|left| *left > 0).unwrap_or(limit));
        }
        Some((limit as usize).min(COPY_BYTES))
    }

    /// We were too slow and the session did not wait: one gap, one fresh paint.
    pub(crate) fn lapped(&mut self) {
        self.missed = true;
        self.wanted = Some(false);
        self.has_moved(false);
    }

    /// Output from where we stand.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.show(bytes);
            self.position += bytes.len() as u64;
        }
        self.draw(bytes.is_empty());
        if bytes.is_empty() {
            self.renew_line();
            self.show_status();
            self.keep_keeper_from_painting();
            self.baton = false;
            self.acked = self.position;
            self.tell_keeper(ToKeeper::Sleep { position: self.position, wake_at: self.position + 1 });
        } else if self.position - self.acked >= ACK_BYTES {
            self.acked = self.position;
            self.tell_keeper(ToKeeper::Ack { position: self.position });
        }
        self.has_moved(!bytes.is_empty());
    }

    fn has_moved(&mut self, moved: bool) {
        self.ask_for_paint();
        if let (Some(exit), false, None) = (self.over, moved, self.wanted) {
            self.end(AttachEnd::Ended(exit));
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        match &mut self.view {
            View::Raw(None) => {
                self.last_byte = bytes[bytes.len() - 1];
                self.put(bytes.to_vec());
            }
            View::Raw(Some(filter)) => {
                let mut out = Vec::with_capacity(bytes.len());
                filter.feed(bytes, &mut out);
                self.last_byte = *out.last().unwrap_or(&self.last_byte);
                self.put(out);
            }
            View::Drawn { screen, above, stale_since, .. } => {
                screen.feed(bytes);
                // The host answers for a terminal that shows the session cropped.
                screen.take_replies();
                above.gather(screen);
                stale_since.get_or_insert(self.now_ms);
            }
        }
    }

    /// Draws what changed, if it is time.
    fn draw(&mut self, caught_up: bool) {
        let View::Drawn { screen, viewport, above, stale_since } = &mut self.view else { return };
        let due = stale_since.is_some_and(|since| caught_up || self.now_ms >= since + DRAW_EVERY_MS);
        if due {
            *stale_since = None;
            let mut bytes = above.take(self.window);
            let is_over = !bytes.is_empty();
            if is_over {
                viewport.resize(self.size);
                bytes.splice(..0, *b"\x1b[?2026h");
            }
            bytes.extend_from_slice(&viewport.render(screen));
            self.put(bytes);
            if is_over {
                self.line.drawn_over();
                self.status.painted_over();
            }
        }
    }

    /// The session has this size: as long as it is ours too the output passes as it is, otherwise it is drawn.
    pub(crate) fn session_has_size(&mut self, size: Size) {
        self.session_size = size;
        let fits = size == self.size && !self.has_status();
        let raw = matches!(self.view, View::Raw(_));
        if fits != raw {
            self.wanted.get_or_insert(false);
        }
    }
}
