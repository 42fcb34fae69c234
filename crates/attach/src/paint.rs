//! Painting: first the screen, then the lines above it, and again whenever we lost our place.

use super::inputs::{Paint, Picture, Request};
use super::machine::Attached;
use super::output::{Above, View, scroll_off};
use holdfast_screen::{CLEAR, QueryFilter, Viewport};
use holdfast_wire::params::Answers;

/// Terminals that know synchronized updates show a repaint at once, without its lines scrolling by.
const SYNC_ON: &[u8] = b"\x1b[?2026h";
const SYNC_OFF: &[u8] = b"\x1b[?2026l";

impl Attached {
    /// The first paint: what was on the terminal moves up into its scrollback, and nothing is overwritten but another session's screen.
    pub(crate) fn first_paint(&mut self, paint: Paint, over: bool) {
        let rows = if over { 0 } else { usize::from(self.window.rows()).saturating_sub(1) };
        let mut out = b"\r\n".repeat(rows);
        out.extend_from_slice(CLEAR.as_bytes());
        self.take_view(paint, out);
    }

    /// Asks for a paint that is wanted, as soon as a host is there to ask.
    pub(crate) fn ask_for_paint(&mut self) {
        let (Some(history), None) = (self.wanted, self.paint_asked) else { return };
        if !self.baton {
            return self.ask_for_baton();
        }
        // Said with the question: from the painted offset on the host no longer answers.
        let answers = self.answers.then_some(self.client);
        self.paint_answers = self.answers;
        if self.host {
            let (behind, draws) = (self.behind.filter(|_| history), self.has_status());
            let tag = self.ask_host(Request::Paint { size: self.size, history, behind, draws, answers });
            self.paint_asked = Some(tag);
        }
    }

    /// The keeper may be painting: it says where it stopped, and only then is the terminal ours.
    pub(crate) fn ask_for_baton(&mut self) {
        if !self.baton && !self.baton_asked {
            self.baton_asked = true;
            self.tty_back();
        }
    }

    /// The paint has come.
    pub(crate) fn painted(&mut self, paint: Paint) {
        let wanted = self.wanted.take();
        let repaint = matches!(paint.picture, Picture::Repaint(_));
        let resized = repaint && paint.size != self.size;
        if resized || self.paint_answers != self.answers {
            // The window changed while the paint was on its way, or we came to answer queries: this one is too old.
            self.wanted = wanted.or(Some(false));
            return;
        }
        // Queries that we were to answer and have filtered out are the host's.
        let left = if self.answers { self.duty.begin.take() } else { None }.unwrap_or(self.position);
        let offset = paint.offset;
        self.position = offset;
        self.acked = offset;
        self.resizes.retain(|(at, _)| *at > offset);
        let mut out = holdfast_screen::start_over();
        out.extend_from_slice(SYNC_ON);
        let answered = self.answers;
        self.take_view(paint, out);
        if answered {
            self.answers = repaint;
            self.update(None, Some(Answers { on: repaint, left, from: offset }));
        }
        // Anew, because a reader that was lapped is not waited for until it follows again.
        self.follow();
        self.hand_over_keys();
    }

    fn take_view(&mut self, paint: Paint, mut out: Vec<u8>) {
        self.session_size = paint.size;
        match paint.picture {
            Picture::Repaint(bytes) => {
                if self.answers {
                    out.extend_from_slice(&bytes);
                    self.view = View::Raw(None);
                } else {
                    // The paint may end within a query: its beginning is held back with its end.
                    let mut filter = QueryFilter::new();
                    filter.feed(&bytes, &mut out);
                    self.view = View::Raw(Some(filter));
                }
                self.last_byte = b' ';
            }
            Picture::Keyframe { history, screen } => {
                scroll_off(&history, self.window, &mut out);
                let mut viewport = Viewport::new(self.size);
                out.extend_from_slice(&viewport.render(&screen));
                let above = Above::of(&screen);
                self.view = View::Drawn { screen, viewport, above, stale_since: None };
            }
        }
        out.extend_from_slice(SYNC_OFF);
        self.put(out);
        self.line.painted_over();
        self.status.painted_over();
    }
}
