//! An attached terminal's client.
//!
//! Follows `crates/client/src/attach`: `mod` how it attaches, hears and goes on without a host, `view` what it shows, `keys`
//! what it types and when it answers, `line` when a notice is up. Chords and prompts are not here; a drawn view is told where
//! it is, and not drawn.

mod keys;
mod line;
mod view;

use crate::cast::{Who, an_ask};
use crate::ctx::Ctx;
use crate::host::{Answer, Incoming, Request};
use crate::net::Heard;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FromKeeper, ToKeeper, VERSION, refused};
use holdfast_abi::ring::Ring;
use holdfast_screen::QueryFilter;
use holdfast_types::Size;
use holdfast_wire::params::{AnswerEvent, Answers, Painted, Resume};
use holdfast_wire::turns::WritesEvent;
use keys::{Duty, Keys};
use line::Row;
use std::collections::VecDeque;
use std::path::Path;

/// How the session appears on the terminal.
enum View {
    Raw(Option<QueryFilter>),
    Drawn,
}

/// Where it is with itself.
enum Stage {
    /// The host was asked to attach it.
    Asks {
        id: u64,
    },
    /// The keeper was shown the token.
    Knocks {
        painted: Painted,
        bytes: Vec<u8>,
        history: bool,
    },
    Attached,
}

/// What a client is started with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub read_only: bool,
    /// The keeper can open its terminal.
    pub has_path: bool,
    /// It asks for the history too.
    pub history: bool,
    /// It may hold the program back.
    pub holds: bool,
}

/// A client.
pub(crate) struct Client {
    pub terminal: usize,
    pub who: Who,
    pub stuck_until: u64,
    options: Options,
    stage: Stage,
    ring: Ring,
    line: Option<usize>,
    wire: usize,
    pub connection: u32,
    pub client: u32,
    session_size: Size,
    resizes: VecDeque<(u64, Size)>,
    position: u64,
    acked: u64,
    baton: bool,
    baton_asked: bool,
    view: View,
    answers: bool,
    duty: Duty,
    row: Row,
    wanted: Option<bool>,
    paint_asked: Option<u64>,
    paint_answers: bool,
    update_asked: Option<u64>,
    resume_asked: Option<u64>,
    keys: Keys,
    window_changed: bool,
    pub over: bool,
}

impl Client {
    /// A client that asks the host to be attached.
    pub fn start(ctx: &mut Ctx, dir: &Path, terminal: usize, who: Who, options: Options) -> Client {
        let size = ctx.terminals[terminal].size;
        let line = ctx.connect_host();
        let id = ctx.lines[line].ask(Request::Attach { who, size, read_only: options.read_only, resume: None });
        let file = std::fs::File::open(dir.join("ring")).expect("the ring was made at the beginning");
        Client {
            terminal,
            who,
            stuck_until: 0,
            options,
            stage: Stage::Asks { id },
            ring: Ring::open(&file).expect("the ring is sound"),
            line: Some(line),
            wire: 0,
            connection: 0,
            client: 0,
            session_size: size,
            resizes: VecDeque::new(),
            position: 0,
            acked: 0,
            baton: true,
            baton_asked: false,
            view: View::Raw(None),
            answers: false,
            duty: Duty::default(),
            row: Row::default(),
            wanted: None,
            paint_asked: None,
            paint_answers: false,
            update_asked: None,
            resume_asked: None,
            keys: Keys::new(ctx.rng.u64(1 << 32..), options.read_only),
            window_changed: false,
            over: false,
        }
    }

    pub fn is_attached(&self) -> bool {
        matches!(self.stage, Stage::Attached)
    }

    pub fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// Where it stands, for the log.
    pub fn describe(&self) -> String {
        let view = match self.view {
            View::Raw(None) => "raw",
            View::Raw(Some(_)) => "filtered",
            View::Drawn => "drawn",
        };
        format!(
            "client {}: {:?} as {}, connection {}, attached {}, at {}, {view}, answers {}, {:?}, baton {}/{}, wants paint \
             {:?}/{:?}, host {}, {:?}",
            self.terminal,
            self.who,
            self.client,
            self.connection,
            self.is_attached(),
            self.position,
            self.answers,
            self.duty,
            self.baton,
            self.baton_asked,
            self.wanted,
            self.paint_asked,
            self.line.is_some(),
            self.keys,
        )
    }

    pub fn has_keys_to_send(&self) -> bool {
        !self.keys.are_all_sent()
    }

    /// It leaves and says so, or it is killed.
    pub fn go(self, ctx: &mut Ctx, leaves: bool) {
        self.drop_answers(ctx);
        if let Some(line) = self.line {
            if leaves && self.client != 0 {
                ctx.lines[line].ask(Request::Leave { who: self.who, client: self.client });
            }
            ctx.lines[line].client_closed = true;
        }
        if !matches!(self.stage, Stage::Asks { .. }) {
            ctx.net.close(self.wire);
        }
    }

    /// One round of its loop. `host_is_up`: there is a host to find.
    pub fn turn(&mut self, ctx: &mut Ctx, host_is_up: bool) {
        let stuck = ctx.now < self.stuck_until;
        ctx.terminals[self.terminal].stuck = stuck;
        if stuck || self.over {
            return;
        }
        match self.stage {
            Stage::Asks { .. } => {
                self.read_host(ctx);
                self.over |= self.line.is_none();
            }
            Stage::Knocks { .. } => {
                self.read_host(ctx);
                self.read_greeting(ctx);
            }
            Stage::Attached => {
                // What is ready is read in this order; something may just not be there yet.
                if std::mem::take(&mut self.window_changed) {
                    let size = ctx.terminals[self.terminal].size;
                    self.update(ctx, Some(size), None);
                }
                if ctx.chance(85) {
                    self.read_keeper(ctx);
                }
                if ctx.chance(85) {
                    self.read_keys(ctx);
                }
                if ctx.chance(85) {
                    self.read_host(ctx);
                }
                if self.line.is_none() && host_is_up && ctx.chance(30) {
                    self.host_is_back(ctx);
                }
                self.settle_duty(ctx);
                self.show_line(ctx);
                self.quiet_keeper(ctx);
                self.retry_keys(ctx);
                for _ in 0..ctx.rng.u32(1..4) {
                    let moved = !self.over && self.pump(ctx);
                    self.ask_for_paint(ctx);
                    if !moved {
                        break;
                    }
                }
            }
        }
    }

    /// The person asks for something about the turn.
    pub fn ask(&mut self, ctx: &mut Ctx) {
        let there = self.is_attached() && self.resume_asked.is_none();
        let Some(line) = self.line.filter(|_| there) else { return };
        let ask = an_ask(&mut ctx.rng, ctx.now);
        ctx.note(format_args!("client {}: asks {ask:?}", self.terminal));
        ctx.lines[line].ask(Request::Act { who: self.who, client: Some(self.client), ask });
    }

    fn read_greeting(&mut self, ctx: &mut Ctx) {
        match ctx.net.hear(self.wire) {
            Heard::Nothing => {}
            Heard::Closed => self.over = true,
            Heard::Frame(bytes) => match FromKeeper::decode(&bytes) {
                Ok(FromKeeper::Welcome(welcome)) => {
                    self.connection = welcome.connection;
                    self.begin(ctx);
                }
                // Its host died before the keeper heard of it: the person tries again.
                _ => self.over = true,
            },
        }
    }

    fn begin(&mut self, ctx: &mut Ctx) {
        let Stage::Knocks { painted, bytes, history } = std::mem::replace(&mut self.stage, Stage::Attached) else {
            return;
        };
        ctx.note(format_args!("client {}: attached as {}, answers {}", self.terminal, self.connection, self.answers));
        ctx.oracle.connections.insert(self.connection, self.who);
        self.position = painted.offset;
        self.acked = painted.offset;
        self.wanted = history.then_some(true);
        self.take_view(ctx, &painted, &bytes);
        let flags = self.follow_flags();
        self.tell_keeper(ctx, |position| ToKeeper::Follow { position, flags });
        self.hand_over_keys(ctx);
    }

    fn follow_flags(&self) -> u8 {
        if self.options.holds { FOLLOW_HOLDS } else { 0 }
    }

    fn tell_keeper<'f>(&mut self, ctx: &mut Ctx, frame: impl FnOnce(u64) -> ToKeeper<'f>) {
        ctx.net.say(self.wire, frame(self.position));
    }

    fn read_keeper(&mut self, ctx: &mut Ctx) {
        loop {
            match ctx.net.hear(self.wire) {
                Heard::Nothing => return,
                Heard::Closed => {
                    self.over = true;
                    return;
                }
                Heard::Frame(bytes) => match FromKeeper::decode(&bytes) {
                    Ok(frame) => self.frame(ctx, frame),
                    Err(error) => ctx.fail(format!("a frame that is none reached a client: {error}")),
                },
            }
        }
    }

    fn frame(&mut self, ctx: &mut Ctx, frame: FromKeeper<'_>) {
        match frame {
            FromKeeper::Wake { position } => {
                (self.baton, self.baton_asked) = (true, false);
                self.position = position.max(self.position);
                self.acked = self.position;
            }
            FromKeeper::Keys { bytes } => self.keys_handed_back(ctx, bytes),
            FromKeeper::Written { stream, seq, .. } => self.keys.written(stream, seq),
            FromKeeper::Refused { code: refused::TTY, .. } => {}
            FromKeeper::Refused { code, fence, stream, seq } => self.input_refused(ctx, code, fence, stream, seq),
            FromKeeper::Resized { head, cols, rows } => {
                self.resizes.push_back((head, Size::clamped(cols, rows)));
                self.ask_for_baton(ctx);
            }
            FromKeeper::Exited { .. }
            | FromKeeper::Welcome(_)
            | FromKeeper::Joined { .. }
            | FromKeeper::Left { .. }
            | FromKeeper::Logged { .. }
            | FromKeeper::Probed { .. } => {}
        }
    }

    fn read_host(&mut self, ctx: &mut Ctx) {
        loop {
            let Some(line) = self.line else { return };
            match ctx.lines[line].hear() {
                Incoming::Nothing => return,
                Incoming::Closed => return self.host_is_gone(),
                Incoming::Event(method, params) => self.event(ctx, &method, params),
                Incoming::Answer(id, answer) => self.answer(ctx, id, answer),
            }
        }
    }

    fn answer(&mut self, ctx: &mut Ctx, id: u64, answer: Answer) {
        match answer {
            Answer::Attached(attached) => {
                if matches!(self.stage, Stage::Asks { id: asked } if asked == id) {
                    self.client = attached.client;
                    self.answers = attached.answers;
                    self.keys.adopt(attached.writes, attached.fence);
                    self.session_size = attached.painted.size;
                    self.wire = ctx.net.connect();
                    ctx.net.say(self.wire, ToKeeper::Hello { version: VERSION, role: 0, token: attached.token });
                    let history = attached.has_history && self.options.history;
                    self.stage = Stage::Knocks { painted: attached.painted, bytes: attached.bytes, history };
                }
            }
            Answer::Painted { painted, bytes } if self.paint_asked == Some(id) => {
                self.paint_asked = None;
                self.painted(ctx, &painted, &bytes);
            }
            Answer::Updated { size } if self.update_asked == Some(id) => {
                self.update_asked = None;
                self.session_has_size(ctx, size);
            }
            Answer::Resumed { client, writes, fence } if self.resume_asked == Some(id) => {
                self.resume_asked = None;
                self.client = client;
                self.told_writes(ctx, writes, fence);
            }
            Answer::Sent { fence } if self.keys.was_sent_as(id) => self.sent(ctx, Ok(fence)),
            Answer::Refused { code } if self.keys.was_sent_as(id) => self.sent(ctx, Err(code)),
            Answer::Refused { .. } if matches!(self.stage, Stage::Asks { id: asked } if asked == id) => {
                self.over = true
            }
            Answer::Refused { .. } if self.paint_asked == Some(id) => (self.paint_asked, self.wanted) = (None, None),
            Answer::Refused { .. } if self.update_asked == Some(id) => self.update_asked = None,
            Answer::Refused { .. } if self.resume_asked == Some(id) => self.resume_asked = None,
            Answer::Painted { .. }
            | Answer::Updated { .. }
            | Answer::Resumed { .. }
            | Answer::Read { .. }
            | Answer::Sent { .. } => {}
            Answer::Acted | Answer::Refused { .. } => self.say(),
        }
    }

    fn event(&mut self, ctx: &mut Ctx, method: &str, params: serde_json::Value) {
        // Every event is for one client.
        if params.get("client").and_then(serde_json::Value::as_u64) != Some(self.client.into()) {
            return;
        }
        match method {
            "detached" => self.over = true,
            "answer" => {
                let event: AnswerEvent = serde_json::from_value(params).expect("the host sends what it says it does");
                self.told_to_answer(ctx, event.from);
            }
            "writes" => {
                let event: WritesEvent = serde_json::from_value(params).expect("the host sends what it says it does");
                self.told_writes(ctx, event.writes, event.fence.0);
            }
            "notice" => self.say(),
            other => ctx.fail(format!("a client heard of {other}")),
        }
    }

    fn host_is_gone(&mut self) {
        self.line = None;
        (self.paint_asked, self.update_asked, self.resume_asked) = (None, None, None);
        self.keys.host_gone();
        if !self.answers {
            self.duty.begin = None;
        }
    }

    fn host_is_back(&mut self, ctx: &mut Ctx) {
        let line = ctx.connect_host();
        let resume = Some(Resume { client: self.client, connection: self.connection, answers: self.answers });
        let size = ctx.terminals[self.terminal].size;
        let request = Request::Attach { who: self.who, size, read_only: self.options.read_only, resume };
        self.resume_asked = Some(ctx.lines[line].ask(request));
        self.line = Some(line);
    }

    /// Its window has another size.
    pub fn window_has_changed(&mut self, ctx: &mut Ctx, size: Size) {
        let terminal = &mut ctx.terminals[self.terminal];
        (terminal.size, terminal.resized_ms) = (size, ctx.now);
        self.window_changed = true;
    }

    fn update(&mut self, ctx: &mut Ctx, size: Option<Size>, answers: Option<Answers>) {
        let Some(line) = self.line else { return };
        let request =
            Request::Update { who: self.who, client: self.client, connection: self.connection, size, answers };
        let id = ctx.lines[line].ask(request);
        if size.is_some() {
            self.update_asked = Some(id);
        }
    }
}
