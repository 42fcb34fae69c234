//! Where the person is: the window's title, and the status line in the last row, where it is wanted.
//!
//! With a status line the session has one row less than the window, and is drawn: its own output could scroll the last row away.
//! What waits elsewhere is asked of the host while the line is there, and shown harmless like every text of others.

use super::inputs::{Answer, Request, Tag};
use super::machine::Attached;
use super::notice::{columns, cut, visible};
use super::output::View;
use holdfast_types::{SessionId, Size};
use holdfast_wire::Fault;
use holdfast_wire::attention::{Kind, Now};
use holdfast_wire::params::{Life, SessionView};
use std::collections::BTreeMap;

/// Puts the window's title aside, and takes it back.
const TITLE_ASIDE: &[u8] = b"\x1b[22;2t";
pub const TITLE_BACK: &[u8] = b"\x1b[23;2t";
/// Columns of a title: windows show less.
const TITLE_COLUMNS_MAX: usize = 80;
/// How often it is looked what waits elsewhere: a person looks up less often.
const LOOK_EVERY_MS: u64 = 5_000;
/// Other sessions that are looked at: more do not fit into a line.
const LOOKS_MAX: usize = 32;
/// Fewer rows than this are the session's alone.
const ROWS_MIN: u16 = 4;

/// What of a window is for the session.
pub fn room(window: Size, status: bool) -> Size {
    if status && window.rows() >= ROWS_MIN { Size::clamped(window.cols(), window.rows() - 1) } else { window }
}

/// The status line.
#[derive(Debug, Default)]
pub struct Status {
    /// What the row shows; none: something else.
    shown: Option<String>,
    /// Other sessions: their names, and how many questions are open there.
    others: BTreeMap<SessionId, (String, u32)>,
    /// What some of them wait for.
    waits: BTreeMap<SessionId, &'static str>,
    asked: Vec<(Tag, Option<SessionId>)>,
    /// When to look again.
    look_at: u64,
}

impl Status {
    /// The row may show anything now.
    pub fn painted_over(&mut self) {
        self.shown = None;
    }

    /// When to look what waits elsewhere.
    pub fn due(&self) -> Option<u64> {
        self.asked.is_empty().then_some(self.look_at)
    }

    /// It is the answer to one of ours.
    pub fn was_asked(&self, tag: Tag) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == tag)
    }

    /// Its answers will not come.
    pub fn host_gone(&mut self) {
        self.asked.clear();
    }

    /// What waits for a person in other sessions.
    fn elsewhere(&self) -> String {
        let asks = |count: u32| if count > 0 { Some("question") } else { None };
        let waiting: Vec<String> = self
            .others
            .iter()
            .filter_map(|(id, (name, count))| Some((name, asks(*count).or(self.waits.get(id).copied())?)))
            .map(|(name, why)| format!("{name} ({why})"))
            .collect();
        if waiting.is_empty() { String::new() } else { format!("waiting: {}", waiting.join(", ")) }
    }
}

impl Attached {
    /// The last row is the status line's.
    pub(crate) fn has_status(&self) -> bool {
        self.size != self.window
    }

    /// Names the session in the window's title; what its programs say there comes behind it.
    pub(crate) fn set_title(&mut self) {
        if self.options.title {
            let title = cut(&format!("{} — holdfast", self.options.name), TITLE_COLUMNS_MAX);
            self.put([TITLE_ASIDE, b"\x1b]2;", title.as_bytes(), b"\x1b\\"].concat());
        }
    }

    /// Asks what waits elsewhere, when it is time.
    pub(crate) fn look_elsewhere(&mut self) {
        let due = self.status.due().is_some_and(|at| at <= self.now_ms);
        if due && self.host && self.has_status() {
            self.status.look_at = self.now_ms + LOOK_EVERY_MS;
            let tag = self.ask_host(Request::Sessions);
            self.status.asked.push((tag, None));
        }
    }

    /// The host answered what others do.
    pub(crate) fn elsewhere_answered(&mut self, tag: Tag, answer: Result<Answer, Fault>) {
        let Some(at) = self.status.asked.iter().position(|(asked, _)| *asked == tag) else { return };
        let (_, of) = self.status.asked.remove(at);
        match (of, answer) {
            (None, Ok(Answer::Sessions(all))) => self.others_seen(&all),
            (Some(id), Ok(Answer::State(state))) => {
                match waits_for(&state.now) {
                    Some(what) => self.status.waits.insert(id, what),
                    None => self.status.waits.remove(&id),
                };
            }
            (Some(id), _) => {
                self.status.waits.remove(&id);
            }
            (None, _) => {}
        }
        self.show_status();
    }

    fn others_seen(&mut self, all: &[SessionView]) {
        let is_other = |session: &&SessionView| session.life == Life::Running && session.id != self.options.session;
        let others = all.iter().filter(is_other).map(|session| (session.id, (session.name.to_string(), session.asks)));
        self.status.others = others.collect();
        let ids: Vec<SessionId> = self.status.others.keys().copied().take(LOOKS_MAX).collect();
        self.status.waits.retain(|id, _| ids.contains(id));
        for id in ids {
            let tag = self.ask_host(Request::State(id));
            self.status.asked.push((tag, Some(id)));
        }
    }

    fn status_text(&self) -> String {
        let turn = match &self.turns.known.holder {
            None => "the turn is free".into(),
            Some(holder) if *holder == self.options.us => "your turn".into(),
            Some(holder) => format!("{holder} has the turn"),
        };
        let (width, elsewhere) = (usize::from(self.window.cols()), self.status.elsewhere());
        let left = visible(&format!(" {} · {turn} ", self.options.name));
        let room = width.saturating_sub(columns(&left));
        let right = cut(&elsewhere, room.saturating_sub(1));
        let gap = " ".repeat(room.saturating_sub(columns(&right) + 1));
        let line = cut(&format!("{left}{gap}{right}"), width);
        let rest = " ".repeat(width.saturating_sub(columns(&line)));
        line + &rest
    }

    /// Draws the line where it is not there, or has changed. A notice has its row first.
    pub(crate) fn show_status(&mut self) {
        if !self.has_status() || self.line.is_up() || !matches!(self.view, View::Drawn { .. }) {
            return;
        }
        let text = self.status_text();
        if self.status.shown.as_ref() == Some(&text) {
            return;
        }
        let row = self.window.rows();
        self.put(format!("\x1b7\x1b[0m\x1b(B\x0f\x1b[{row};1H\x1b[7m{text}\x1b[0m\x1b8").into_bytes());
        self.status.shown = Some(text);
    }
}

/// What a session waits for that only a person gives.
fn waits_for(now: &Now) -> Option<&'static str> {
    match now {
        Now::Waiting { kind: Kind::Password, .. } => Some("password"),
        Now::Waiting { kind: Kind::Choice, .. } => Some("choice"),
        Now::Waiting { kind: Kind::Line, prompt } if !prompt.is_empty() => Some("input"),
        // What shows no prompt only reads.
        Now::Waiting { kind: Kind::Line | Kind::Repl, .. } => None,
        Now::IdlePrompt | Now::Running | Now::BlockedElsewhere | Now::Unknown { .. } => None,
        Now::FullScreen | Now::Stopped | Now::Frozen { .. } | Now::Ended { .. } => None,
    }
}
