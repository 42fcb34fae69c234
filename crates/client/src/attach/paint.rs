//! Painting: first the screen, then the lines above it, and again whenever we lost our place.

use super::output::View;
use super::run::Attached;
use super::{AttachError, failed};
use holdfast_abi::protocol::{FOLLOW_HOLDS, ToKeeper};
use holdfast_screen::{QueryFilter, Screen, Viewport};
use holdfast_wire::Fault;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Answers, Form, PaintParams, Painted};
use serde_json::Value;
use std::io;

const CLEAR: &[u8] = b"\x1b[H\x1b[J";
/// Terminals that know synchronized updates show a repaint at once, without its lines scrolling by.
const SYNC_ON: &[u8] = b"\x1b[?2026h";
const SYNC_OFF: &[u8] = b"\x1b[?2026l";

impl Attached<'_> {
    /// The first paint: what was on the terminal moves up into its scrollback, nothing is overwritten.
    pub(super) fn first_paint(&mut self, painted: &Painted, bytes: &[u8]) -> Result<(), AttachError> {
        let mut out = b"\r\n".repeat(usize::from(self.size.rows()).saturating_sub(1));
        out.extend_from_slice(CLEAR);
        self.take_view(painted, bytes, out)
    }

    /// Asks for a paint that is wanted, as soon as a host is there to ask.
    pub(super) fn ask_for_paint(&mut self) -> Result<(), AttachError> {
        let (Some(history), None) = (self.wanted, self.paint_asked) else { return Ok(()) };
        if !self.baton {
            return self.ask_for_baton();
        }
        // Said with the question: from the painted offset on the host no longer answers.
        let answers = self.answers.then_some(self.client);
        self.paint_answers = self.answers;
        let params = PaintParams { session: self.session.clone(), size: self.size, history, answers, remote: false };
        if let Some(host) = &mut self.host {
            match host.ask::<op::Paint>(&params, &[]) {
                Ok(id) => self.paint_asked = Some(id),
                Err(_) => self.host_is_gone(),
            }
        }
        Ok(())
    }

    /// The keeper may be painting: it says where it stopped, and only then is the terminal ours.
    pub(super) fn ask_for_baton(&mut self) -> Result<(), AttachError> {
        if self.baton || self.baton_asked {
            return Ok(());
        }
        self.baton_asked = true;
        self.tty_back()
    }

    /// The paint has come.
    pub(super) fn painted(&mut self, result: Result<Value, Fault>, bytes: &[u8]) -> Result<(), AttachError> {
        let wanted = self.wanted.take();
        let painted: Painted = match result {
            Ok(value) => serde_json::from_value(value)
                .map_err(|e| failed("cannot read the host's paint")(io::Error::new(io::ErrorKind::InvalidData, e)))?,
            // The session is gone from the host's books: what the ring has is all there is.
            Err(_) => return Ok(()),
        };
        let resized = painted.form == Form::Repaint && painted.size != self.size;
        if resized || self.paint_answers != self.answers {
            // The window changed while the paint was on its way, or we came to answer queries: this one is too old.
            self.wanted = wanted.or(Some(false));
            return Ok(());
        }
        // Queries that we were to answer and have filtered out are the host's.
        let left = if self.answers { self.duty.begin.take() } else { None }.unwrap_or(self.position);
        self.position = painted.offset;
        self.acked = painted.offset;
        self.resizes.retain(|(at, _)| *at > painted.offset);
        let mut out = holdfast_screen::start_over();
        out.extend_from_slice(SYNC_ON);
        let answered = self.answers;
        self.take_view(&painted, bytes, out)?;
        if answered && painted.form == Form::Keyframe {
            self.answers = false;
            self.update(None, Some(Answers { on: false, left, from: painted.offset }));
        } else if answered {
            self.update(None, Some(Answers { on: true, left, from: painted.offset }));
        }
        // Anew, because a reader that was lapped is not waited for until it follows again.
        self.tell_keeper(|position| ToKeeper::Follow { position, flags: FOLLOW_HOLDS })?;
        self.hand_over_keys()
    }

    fn take_view(&mut self, painted: &Painted, bytes: &[u8], mut out: Vec<u8>) -> Result<(), AttachError> {
        match painted.form {
            Form::Repaint => {
                if self.answers {
                    out.extend_from_slice(bytes);
                    self.view = View::Raw(None);
                } else {
                    // The paint may end within a query: its beginning is held back with its end.
                    let mut filter = QueryFilter::new();
                    filter.feed(bytes, &mut out);
                    self.view = View::Raw(Some(filter));
                }
                self.last_byte = b' ';
            }
            Form::Keyframe => {
                let (history, keyframe) = bytes.split_at_checked(painted.history_bytes).unwrap_or((bytes, &[]));
                out.extend_from_slice(history);
                if !history.is_empty() {
                    // The lines must be in the scrollback before the screen is drawn over them.
                    out.extend(b"\r\n".repeat(usize::from(self.size.rows()).saturating_sub(1)));
                    out.extend_from_slice(CLEAR);
                }
                let screen = Screen::restore(keyframe).map_err(|e| {
                    failed("cannot read the host's keyframe")(io::Error::new(io::ErrorKind::InvalidData, e))
                })?;
                let mut viewport = Viewport::new(self.size);
                out.extend_from_slice(&viewport.render(&screen));
                self.view = View::Drawn { screen: Box::new(screen), viewport, stale_since: None };
            }
        }
        self.session_size = painted.size;
        out.extend_from_slice(SYNC_OFF);
        self.put(&out);
        self.line.painted_over();
        Ok(())
    }
}
