//! What the host says, and how the client goes on while there is none.

use super::inputs::{Answer, AttachEnd, Effect, Event, Request, Tag};
use super::machine::Attached;
use super::notice::{BACK, HOST_AWAY, KEYS_LOST, RECONNECTING};
use super::output::View;
use super::status;
use holdfast_types::Size;
use holdfast_wire::Fault;
use holdfast_wire::params::{Answers, Resume};
use holdfast_wire::turns::TurnView;

/// Keys that were typed while the way to a session elsewhere was broken are typed there only if the break was this short: behind a
/// longer one nobody remembers what the screen showed.
const KEYS_AGE_MS_MAX: u64 = 5_000;

impl Attached {
    /// The host answered.
    pub(crate) fn answered(&mut self, tag: Tag, answer: Result<Answer, Fault>) {
        if self.keys.was_sent_as(tag) {
            self.sent(answer);
        } else if self.paint_asked == Some(tag) {
            self.paint_asked = None;
            match answer {
                Ok(Answer::Painted(paint)) => self.painted(*paint),
                // The session is gone from the host's books: what the ring has is all there is.
                _ => self.wanted = None,
            }
        } else if self.update_asked == Some(tag) {
            self.update_asked = None;
            if let Ok(Answer::Updated(size)) = answer {
                self.session_has_size(size);
            }
            self.repaint_rearranged();
        } else if self.resume_asked == Some(tag) {
            self.resume_asked = None;
            let updates = std::mem::take(&mut self.updates);
            if let Ok(Answer::Resumed { client, writes, fence, turn }) = answer {
                self.client = client;
                updates.into_iter().for_each(|(size, answers)| self.update(size, answers));
                self.resumed(&turn, writes, fence);
            }
        } else if self.status.was_asked(tag) {
            self.elsewhere_answered(tag, answer);
        } else {
            self.act_answered(tag, answer);
        }
    }

    /// A new host knows us again.
    fn resumed(&mut self, turn: &TurnView, writes: bool, fence: u64) {
        if let Some(since) = self.away_since.take() {
            let stale = self.now_ms.saturating_sub(since) > KEYS_AGE_MS_MAX || !self.keys.kept_the_turn(writes, fence);
            let lost = stale && self.keys.unsent().next().is_some();
            if lost {
                self.keys.drop_all();
            }
            self.say(if lost { KEYS_LOST } else { BACK });
        }
        self.repaint_rearranged();
        self.turns.known.saw(turn, &self.options.us);
        self.told_writes(writes, fence);
    }

    /// The host told us something.
    pub(crate) fn event(&mut self, event: Event) {
        match event {
            Event::Detached => self.end(AttachEnd::Detached),
            Event::Answer { from } => self.told_to_answer(from),
            Event::Writes { writes, fence } => self.told_writes(writes, fence),
            Event::Notice(notice) => self.noticed(&notice),
            Event::Ring(text) => self.ring_soon(&text),
        }
    }

    /// The host went away; the session does not care, and we go on while it is found again.
    pub(crate) fn host_is_gone(&mut self) {
        self.host = false;
        (self.paint_asked, self.update_asked, self.resume_asked) = (None, None, None);
        self.updates.clear();
        self.keys.host_gone(self.options.far);
        self.turns.host_gone();
        self.status.host_gone();
        if self.options.far && self.away_since.is_none() {
            self.away_since = Some(self.now_ms);
            self.say(RECONNECTING);
        }
        if !self.answers {
            // The next one will say it again.
            self.duty.begin = None;
        }
        self.want(Effect::FindHost);
    }

    /// The host was gone before it could be asked this.
    pub(crate) fn not_sent(&mut self, tag: Tag) {
        if self.turns.was_asked_as(tag) {
            self.say(HOST_AWAY);
        }
        self.host_is_gone();
    }

    /// There is a host again: it is told who we are.
    pub(crate) fn host_is_back(&mut self) {
        self.host = true;
        let resume = Resume { client: self.client, token: self.options.token, answers: self.answers };
        let tag = self.ask_host(Request::Resume { size: self.size, resume });
        self.resume_asked = Some(tag);
    }

    /// The person's window has another size.
    pub(crate) fn window_has_changed(&mut self, size: Size) {
        if size == self.window {
            return;
        }
        self.window = size;
        let size = status::room(size, self.options.status);
        self.size = size;
        self.status.painted_over();
        self.rearranged = true;
        if let View::Drawn { viewport, .. } = &mut self.view {
            viewport.resize(size);
        }
        self.update(Some(size), None);
    }

    /// Each terminal rearranges its lines in its own way when its window changes: none of them is where we think it is.
    fn repaint_rearranged(&mut self) {
        if std::mem::take(&mut self.rearranged) {
            self.wanted.get_or_insert(false);
        }
    }

    /// Tells the host what changed here.
    pub(crate) fn update(&mut self, size: Option<Size>, answers: Option<Answers>) {
        if !self.host {
            return;
        }
        if self.resume_asked.is_some() {
            // It takes updates of those it knows only. Of window sizes the last one counts.
            if answers.is_none() {
                self.updates.retain(|(_, answers)| answers.is_some());
            }
            return self.updates.push((size, answers));
        }
        let tag = self.ask_host(Request::Update { client: self.client, size, answers });
        if size.is_some() {
            self.update_asked = Some(tag);
        }
    }
}
