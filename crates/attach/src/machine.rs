//! The attached client itself: what it knows, and which part of it hears what.

use super::chord::Chord;
use super::duty::Duty;
use super::inputs::{AttachEnd, Effect, Input, Paint, Request, Tag};
use super::keys::Keys;
use super::line::Line;
use super::notice;
use super::output::View;
use super::status::{self, Status, TITLE_BACK};
use super::turns::Turns;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FromKeeper, ToKeeper, refused};
use holdfast_types::{ClientToken, Exit, Handle, SessionId, Size};
use holdfast_wire::params::Answers;
use holdfast_wire::turns::{HistoryPlace, TurnView};
use std::collections::VecDeque;

/// How a client is attached; none of it changes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Watch only.
    pub read_only: bool,
    /// The control byte that starts a chord; none: no key does anything but type.
    pub chord: Option<u8>,
    /// The second key that detaches.
    pub detach_key: u8,
    /// The terminal's path, where the keeper can open it too.
    pub path: Option<Vec<u8>>,
    /// The session waits for this terminal while it is slow.
    pub holds: bool,
    /// The session is on another machine: without the host there is neither output nor a way to type.
    pub far: bool,
    /// Who attaches.
    pub us: Handle,
    /// What the host knows this client by, whichever host it is.
    pub token: ClientToken,
    /// The session.
    pub session: SessionId,
    /// What the person calls it.
    pub name: String,
    /// The window's title says where the person is.
    pub title: bool,
    /// The last row says where the person is, who has the turn, and what waits elsewhere. The session is drawn above it.
    pub status: bool,
}

/// What the host said when it attached the client, and what else there is to begin with.
#[derive(Debug)]
pub struct Begin {
    /// The client's number.
    pub client: u32,
    /// The window's size.
    pub size: Size,
    /// The first paint.
    pub paint: Paint,
    /// This terminal answers queries.
    pub answers: bool,
    /// This client writes.
    pub writes: bool,
    /// The newest fence.
    pub fence: u64,
    /// The lines above the screen are wanted, and there are some.
    pub history: bool,
    /// Whose turn it is.
    pub turn: TurnView,
    /// Questions that wait for an answer.
    pub asks: u32,
    /// Who else is here, where the person is to be told; none: it knows its way around.
    pub greets: Option<Vec<Handle>>,
    /// The terminal shows another session, or this one: nothing there is worth keeping above.
    pub over: bool,
    /// How much of the history the terminal has already.
    pub behind: Option<HistoryPlace>,
    /// A random number: what is typed goes by streams that nobody else uses.
    pub random: u64,
}

/// An attached client.
#[derive(Debug)]
pub struct Attached {
    pub(crate) options: Options,
    /// The time, as of the input that is being handled.
    pub(crate) now_ms: u64,
    effects: Vec<Effect>,
    last_tag: u64,
    /// There is a connection to a host.
    pub(crate) host: bool,
    /// Since when the way to a session elsewhere is broken.
    pub(crate) away_since: Option<u64>,
    pub(crate) client: u32,
    /// Our terminal's size; what of it is for the session; and the session's size.
    pub(crate) window: Size,
    pub(crate) size: Size,
    pub(crate) session_size: Size,
    pub(crate) resizes: VecDeque<(u64, Size)>,
    /// Our window has changed since it was painted.
    pub(crate) rearranged: bool,
    /// Everything before it is on the terminal.
    pub(crate) position: u64,
    pub(crate) acked: u64,
    /// We write to the terminal; otherwise the keeper may.
    pub(crate) baton: bool,
    /// The keeper was asked to give it back.
    pub(crate) baton_asked: bool,
    pub(crate) view: View,
    pub(crate) answers: bool,
    pub(crate) duty: Duty,
    /// A paint is needed, with history or without; output waits for it.
    pub(crate) wanted: Option<bool>,
    pub(crate) paint_asked: Option<Tag>,
    /// It was asked for by a terminal that answers queries.
    pub(crate) paint_answers: bool,
    pub(crate) update_asked: Option<Tag>,
    pub(crate) resume_asked: Option<Tag>,
    /// Updates for a host that does not know us yet.
    pub(crate) updates: Vec<(Option<Size>, Option<Answers>)>,
    pub(crate) keys: Keys,
    pub(crate) turns: Turns,
    pub(crate) line: Line,
    pub(crate) status: Status,
    /// How much of the history the terminal has; asked for with the first paint that brings any.
    pub(crate) behind: Option<HistoryPlace>,
    /// Output went by that the terminal never showed.
    pub(crate) missed: bool,
    pub(crate) last_byte: u8,
    /// The session's command has ended.
    pub(crate) over: Option<Exit>,
}

impl Attached {
    /// Paints, follows, and hands the keys over.
    #[must_use]
    pub fn begin(options: Options, begin: Begin, now_ms: u64) -> (Attached, Vec<Effect>) {
        let chord = Chord::new(options.chord, options.detach_key);
        let offset = begin.paint.offset;
        let mut attached = Attached {
            now_ms,
            effects: Vec::new(),
            last_tag: 0,
            host: true,
            away_since: None,
            client: begin.client,
            window: begin.size,
            size: status::room(begin.size, options.status),
            session_size: begin.paint.size,
            resizes: VecDeque::new(),
            rearranged: false,
            position: offset,
            acked: offset,
            baton: true,
            baton_asked: false,
            view: View::Raw(None),
            answers: begin.answers,
            duty: Duty::default(),
            wanted: begin.history.then_some(true),
            paint_asked: None,
            paint_answers: false,
            update_asked: None,
            resume_asked: None,
            updates: Vec::new(),
            keys: Keys::new(chord, options.read_only, begin.writes, begin.fence, begin.random),
            turns: Turns::default(),
            line: Line::default(),
            status: Status::default(),
            behind: begin.behind,
            missed: false,
            last_byte: b'\n',
            over: None,
            options,
        };
        attached.turns.known.saw(&begin.turn, &attached.options.us);
        attached.set_title();
        attached.first_paint(begin.paint, begin.over);
        attached.follow();
        let (sign, detach_key) = (attached.chord_sign(), attached.options.detach_key);
        let waiting = notice::questions_wait(begin.asks, sign);
        let holder = attached.turns.known.holder.as_ref();
        let greets =
            begin.greets.map(|others| notice::greeting(&attached.options.name, &others, holder, sign, detach_key));
        let text = match (greets, waiting) {
            (Some(greeting), Some(waiting)) => Some(format!("{}·{waiting}", greeting)),
            (greeting, waiting) => greeting.or(waiting),
        };
        text.into_iter().for_each(|text| attached.say(text));
        // What there is to say at once.
        attached.show_line();
        attached.hand_over_keys();
        let effects = std::mem::take(&mut attached.effects);
        (attached, effects)
    }

    /// Takes what happened, and says what to do about it, in order.
    pub fn handle(&mut self, now_ms: u64, input: Input<'_>) -> Vec<Effect> {
        self.now_ms = now_ms;
        match input {
            Input::Typed(bytes) => self.typed(bytes),
            Input::Window(size) => self.window_has_changed(size),
            Input::Keeper(frame) => self.frame(frame),
            Input::KeeperGone { exit, head } => self.keeper_gone(exit, head),
            Input::Answered { tag, answer } => self.answered(tag, answer),
            Input::Event { client, event } if client == self.client => self.event(event),
            Input::Event { .. } => {}
            Input::NotSent(tag) => self.not_sent(tag),
            Input::HostGone => self.host_is_gone(),
            Input::HostBack => self.host_is_back(),
            Input::Settle => self.settle(),
            Input::Proceed => self.proceed(),
            Input::Output(bytes) => self.output(bytes),
            Input::Lapped => self.lapped(),
        }
        std::mem::take(&mut self.effects)
    }

    fn settle(&mut self) {
        self.settle_duty();
        self.look_elsewhere();
        self.show_line();
        self.show_status();
        self.ring_if_ours();
        self.quiet_keeper();
        self.retry_keys();
    }

    fn frame(&mut self, frame: FromKeeper<'_>) {
        match frame {
            FromKeeper::Wake { position } => {
                (self.baton, self.baton_asked) = (true, false);
                if position > self.position {
                    self.last_byte = b' ';
                }
                self.position = position.max(self.position);
                self.acked = self.position;
            }
            FromKeeper::Keys { bytes } => self.keys_handed_back(bytes),
            FromKeeper::Written { stream, seq, .. } => self.keys.written(stream, seq),
            FromKeeper::Refused { code: refused::TTY, .. } => self.keys.terminal_refused(),
            FromKeeper::Refused { code, fence, stream, seq } => self.input_refused(code, fence, stream, seq),
            FromKeeper::Resized { head, cols, rows } => {
                self.resizes.push_back((head, Size::clamped(cols, rows)));
                // The keeper would go on painting for the old size.
                self.ask_for_baton();
            }
            FromKeeper::Exited { status, .. } => {
                self.over = Some(Exit::from_wait_status(status as i32));
                self.baton = true;
            }
            FromKeeper::Welcome(_)
            | FromKeeper::Joined { .. }
            | FromKeeper::Left { .. }
            | FromKeeper::Logged { .. }
            | FromKeeper::Fenced { .. }
            | FromKeeper::Probed { .. } => {}
        }
    }

    /// The keeper's connection ended without a word: it was killed, or it let us go.
    fn keeper_gone(&mut self, exit: Option<Exit>, head: u64) {
        if self.over.is_some() {
            return;
        }
        let Some(exit) = exit else { return self.end(AttachEnd::Detached) };
        self.over = Some(exit);
        if !self.baton {
            // Whether the last few bytes were painted by it is not known: they are not painted twice.
            self.position = head;
            self.baton = true;
        }
    }

    pub(crate) fn follow(&mut self) {
        let (position, flags) = (self.position, if self.options.holds { FOLLOW_HOLDS } else { 0 });
        self.tell_keeper(ToKeeper::Follow { position, flags });
    }

    pub(crate) fn tell_keeper(&mut self, frame: ToKeeper<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.effects.push(Effect::Keeper(bytes));
    }

    /// Asks the host, which must be there.
    pub(crate) fn ask_host(&mut self, request: Request) -> Tag {
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        self.effects.push(Effect::Ask(tag, request));
        tag
    }

    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.effects.push(Effect::Put(bytes));
        }
    }

    pub(crate) fn want(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn end(&mut self, end: AttachEnd) {
        self.effects.push(Effect::End(end));
    }

    /// When [`Input::Settle`] or [`Input::Proceed`] is due by time alone.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        let notice = self.line.goes_at().filter(|_| self.host && self.wanted.is_none());
        let look = self.status.due().filter(|_| self.host && self.has_status());
        [notice, look, self.keys.retry_at(), self.view.next_draw()].into_iter().flatten().min()
    }

    /// The terminal's keys are to be read, and given as [`Input::Typed`].
    #[must_use]
    pub fn reads_keys(&self) -> bool {
        self.keys.are_ours()
    }

    /// In a flood: nothing but output needs a look until this is false. A keeper that has our keys looks for us.
    #[must_use]
    pub fn floods(&self) -> bool {
        self.acked != self.position && !self.keys.are_ours()
    }

    /// The session's command has ended; the keeper says nothing more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// This client's number at the host.
    #[must_use]
    pub fn client(&self) -> u32 {
        self.client
    }

    /// Everything before this offset is on the terminal.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// It writes to the keeper.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.keys.writes
    }

    /// Its terminal answers queries.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// It filters queries out of what it shows.
    #[must_use]
    pub fn filters(&self) -> bool {
        matches!(self.view, View::Raw(Some(_)))
    }

    /// A notice or a prompt is in the last row.
    #[must_use]
    pub fn has_row(&self) -> bool {
        self.line.is_up()
    }

    /// Keys that were typed and are not known to have arrived.
    pub fn unsent(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.unsent()
    }

    /// Everything before this offset reached the terminal and its scrollback; none: some of it did not.
    #[must_use]
    pub fn shown(&self) -> Option<u64> {
        // A paint with the history may still be on its way.
        (!self.missed && self.wanted != Some(true)).then_some(self.position)
    }

    /// What leaves the terminal as the shell expects it.
    #[must_use]
    pub fn farewell(&self, end: AttachEnd) -> Vec<u8> {
        let ended = matches!(end, AttachEnd::Ended(_));
        // Another session is painted over it.
        let in_place = end == AttachEnd::Switches || (ended && matches!(self.view, View::Raw(_)));
        let mut out = holdfast_screen::leave(!in_place);
        if self.options.title {
            out.extend_from_slice(TITLE_BACK);
        }
        if ended && in_place && self.last_byte != b'\n' {
            out.extend_from_slice(b"\r\n");
        }
        out
    }
}
