//! The last row of the terminal, for a while: a notice, or a prompt.
//!
//! Written only while the terminal is ours and its keys too, so that the keeper neither paints nor reads meanwhile. Output
//! goes on; what the row hid comes back by a repaint.

use super::machine::Attached;
use super::notice::cut;
use super::prompt::Prompt;
use holdfast_abi::protocol::ToKeeper;

/// How long a notice stays: enough to read a line and reach for the keys.
const NOTICE_MS: u64 = 5_000;
/// Columns of what a terminal's own notification says: most show less.
const RING_COLUMNS_MAX: usize = 300;

/// What the last row shows, and will.
#[derive(Debug, Default)]
pub struct Line {
    /// To be shown once the terminal is ours; where a prompt is open, that is drawn instead.
    next: Option<String>,
    /// Arrived while a prompt was open: shown when it is closed.
    later: Option<String>,
    /// On the terminal, until then.
    until: Option<u64>,
    /// What keys are typed into.
    pub prompt: Option<Prompt>,
    /// What is on the terminal, and where the output stood.
    shown: String,
    at: u64,
    /// For the terminal itself, once it is ours: a bell, and a notification where it knows any.
    ring: Option<String>,
}

impl Line {
    /// A notice or a prompt has the row.
    pub fn is_up(&self) -> bool {
        self.until.is_some() || self.prompt.is_some()
    }

    /// It has the row, or will once the terminal is ours.
    pub fn needs_terminal(&self) -> bool {
        self.is_up() || self.next.is_some() || self.ring.is_some()
    }

    /// When the row goes back to the session; none where something else comes first.
    pub fn goes_at(&self) -> Option<u64> {
        self.until.filter(|_| self.next.is_none())
    }

    /// The row was drawn over: what it showed comes back with the next look.
    pub fn drawn_over(&mut self) {
        self.at = u64::MAX;
    }

    /// Everything was painted over; an open prompt comes back.
    pub fn painted_over(&mut self) {
        self.until = None;
        if self.prompt.is_some() {
            self.next.get_or_insert_default();
        }
    }
}

impl Attached {
    /// Tells the person something, as soon as the terminal is ours.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        let slot = if self.line.prompt.is_some() { &mut self.line.later } else { &mut self.line.next };
        *slot = Some(text.into());
    }

    /// Rings the terminal, as soon as it is ours; of several the last says it.
    pub(crate) fn ring_soon(&mut self, text: &str) {
        self.line.ring = Some(cut(text, RING_COLUMNS_MAX));
    }

    /// Rings, if the terminal is ours; else asks for it. The process that reads the keys may continue to.
    pub(crate) fn ring_if_ours(&mut self) {
        let painting = self.host && self.wanted.is_some();
        if self.line.ring.is_none() || painting || !self.take_terminal() {
            return;
        }
        let Some(text) = self.line.ring.take() else { return };
        // OSC 9 is iTerm2's, OSC 777 urxvt's; a terminal ignores the one it does not know. Both end in ST: a BEL would ring.
        self.put(format!("\x07\x1b]9;{text}\x1b\\\x1b]777;notify;holdfast;{text}\x1b\\").into_bytes());
        self.quiet_keeper()
    }

    /// Opens a prompt, or draws it again.
    pub(crate) fn show_prompt(&mut self, prompt: Prompt) {
        self.line.prompt = Some(prompt);
        self.line.next = Some(String::new());
    }

    /// The row is a notice's, or the session's again.
    pub(crate) fn close_prompt(&mut self) {
        self.line.prompt = None;
        self.line.next = self.line.later.take();
        self.line.until = Some(self.now_ms);
    }

    /// Gives the row back, by a repaint. While there is no host to paint it stays: output that waits would be worse.
    pub(crate) fn hide_line(&mut self) {
        if self.line.until.is_none() || self.line.prompt.is_some() {
            return;
        }
        if self.has_status() {
            // It had the status line's row.
            self.line.until = None;
            self.status.painted_over();
        } else if self.host {
            self.line.until = None;
            self.wanted.get_or_insert(false);
        } else {
            self.line.until = Some(self.now_ms);
        }
    }

    /// Shows what waits to be shown, if the terminal is ours; else asks for it.
    pub(crate) fn show_line(&mut self) {
        if self.line.goes_at().is_some_and(|at| at <= self.now_ms) {
            self.hide_line();
        }
        let painting = self.host && self.wanted.is_some();
        if self.line.next.is_none() || painting || !self.take_keys_back() || !self.take_terminal() {
            return;
        }
        let width = usize::from(self.size.cols());
        let Some(text) = self.line.next.take() else { return };
        if let Some(prompt) = &self.line.prompt {
            self.line.shown = cut(&prompt.line(width), width);
            self.line.until = None;
        } else {
            self.line.shown = cut(&text, width);
            self.line.until = Some(self.now_ms + NOTICE_MS);
        }
        self.write_line();
        self.quiet_keeper()
    }

    /// Output may have gone over the row.
    pub(crate) fn renew_line(&mut self) {
        if self.line.is_up() && self.line.at != self.position {
            self.write_line();
        }
    }

    fn write_line(&mut self) {
        self.line.at = self.position;
        let (row, text) = (self.window.rows(), &self.line.shown);
        let line = format!("\x1b7\x1b[0m\x1b(B\x0f\x1b[{row};1H\x1b[2K\x1b[7m{text}\x1b[0m\x1b8");
        self.put(line.into_bytes());
    }

    /// True when the terminal's keys are ours; else they are asked for.
    fn take_keys_back(&mut self) -> bool {
        if self.keys.is_read_by_keeper() {
            self.ask_keys_back();
        }
        self.keys.are_certainly_ours()
    }

    /// True when no other process writes to the terminal and we know what is on it; else it is asked for.
    pub(crate) fn take_terminal(&mut self) -> bool {
        let ours = self.baton || (!self.keys.keeper_paints && !self.baton_asked);
        if !ours {
            self.ask_for_baton();
        }
        ours
    }

    /// A keeper that would paint what this terminal must not see as it is, queries, is asked not to before it gets the terminal.
    pub(crate) fn keep_keeper_from_painting(&mut self) {
        if !self.keys.keeper_paints || self.answers || self.keys.is_read_by_keeper() {
            return;
        }
        self.paint_no_more()
    }

    fn paint_no_more(&mut self) {
        self.keys.keeper_paints = false;
        let Some(path) = self.options.path.clone() else { return };
        self.tell_keeper(ToKeeper::Tty { flags: 0, path: &path, patterns: Default::default() })
    }

    /// The keeper that gave the keys back may still paint: if it must not, we tell it so.
    pub(crate) fn quiet_keeper(&mut self) {
        let unwanted = self.keys.keeper_paints && (!self.answers || self.line.is_up());
        if !unwanted || !self.baton || !self.keys.are_certainly_ours() {
            return;
        }
        self.paint_no_more()
    }
}
