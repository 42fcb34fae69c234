//! An attached terminal's client.
//!
//! Follows `crates/client/src/attach`: `mod` how it attaches, hears and goes on without a host, `view` what it shows and
//! types. Chords and notices are not here; a drawn view is told where it is, and not drawn.

mod view;

use crate::ctx::Ctx;
use crate::host::{Answer, Incoming, Request};
use crate::net::Heard;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FromKeeper, ToKeeper, VERSION, refused};
use holdfast_abi::ring::Ring;
use holdfast_screen::QueryFilter;
use holdfast_types::Size;
use holdfast_wire::params::{AnswerEvent, Answers, Painted, Resume};
use std::collections::VecDeque;
use std::path::Path;
use view::Keys;

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
    pub stuck_until: u64,
    options: Options,
    stage: Stage,
    ring: Ring,
    line: Option<usize>,
    wire: usize,
    pub connection: u32,
    client: u32,
    session_size: Size,
    resizes: VecDeque<(u64, Size)>,
    position: u64,
    acked: u64,
    baton: bool,
    baton_asked: bool,
    view: View,
    answers: bool,
    wanted: Option<bool>,
    paint_asked: Option<u64>,
    update_asked: Option<u64>,
    resume_asked: Option<u64>,
    keys: Keys,
    window_changed: bool,
    pub over: bool,
}

impl Client {
    /// A client that asks the host to be attached.
    pub fn start(ctx: &mut Ctx, dir: &Path, terminal: usize, options: Options) -> Client {
        let size = ctx.terminals[terminal].size;
        let line = ctx.connect_host();
        let id = ctx.lines[line].ask(Request::Attach { size, read_only: options.read_only, resume: None });
        let file = std::fs::File::open(dir.join("ring")).expect("the ring was made at the beginning");
        Client {
            terminal,
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
            wanted: None,
            paint_asked: None,
            update_asked: None,
            resume_asked: None,
            keys: Keys::new(ctx.rng.u64(1 << 32..), 0),
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
            "client {}: connection {}, attached {}, at {}, {view}, answers {}, baton {}/{}, wants paint {:?}/{:?}, host {}",
            self.terminal,
            self.connection,
            self.is_attached(),
            self.position,
            self.answers,
            self.baton,
            self.baton_asked,
            self.wanted,
            self.paint_asked,
            self.line.is_some(),
        )
    }

    pub fn has_keys_to_send(&self) -> bool {
        !self.keys.are_all_sent()
    }

    /// It leaves, or dies: for everybody else that is the same.
    pub fn go(self, ctx: &mut Ctx) {
        if let Some(line) = self.line {
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
        self.read_host(ctx);
        match self.stage {
            Stage::Asks { .. } => self.over |= self.line.is_none(),
            Stage::Knocks { .. } => self.read_greeting(ctx),
            Stage::Attached => {
                self.read_keeper(ctx);
                if self.line.is_none() && host_is_up && ctx.chance(30) {
                    self.host_is_back(ctx);
                }
                if std::mem::take(&mut self.window_changed) {
                    let size = ctx.terminals[self.terminal].size;
                    self.update(ctx, Some(size), None);
                }
                self.read_keys(ctx);
                self.retry_keys(ctx);
                for _ in 0..ctx.rng.u32(1..4) {
                    self.ask_for_paint(ctx);
                    if self.over || !self.pump(ctx) {
                        break;
                    }
                }
            }
        }
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
            FromKeeper::Keys { bytes } => {
                self.keys.handed_back();
                self.keys.typed(bytes);
            }
            FromKeeper::Written { seq, .. } => self.keys.written(seq),
            FromKeeper::Refused { code: refused::TTY, .. } => {}
            FromKeeper::Refused { fence, seq, .. } => self.keys.refused(seq, fence, ctx.now),
            FromKeeper::Resized { head, cols, rows } => self.resizes.push_back((head, Size::clamped(cols, rows))),
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
                Incoming::Event(method, params) => self.event(&method, params),
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
                    self.keys.fence = attached.fence;
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
            Answer::Resumed { client } if self.resume_asked == Some(id) => {
                self.resume_asked = None;
                self.client = client;
            }
            Answer::Painted { .. }
            | Answer::Updated { .. }
            | Answer::Resumed { .. }
            | Answer::Read { .. }
            | Answer::Sent
            | Answer::Refused => {}
        }
    }

    fn event(&mut self, method: &str, params: serde_json::Value) {
        if method == "answer" {
            let ours = serde_json::from_value::<AnswerEvent>(params).is_ok_and(|event| event.client == self.client);
            if ours && !self.answers && matches!(self.view, View::Raw(_)) {
                self.answers = true;
                self.wanted.get_or_insert(false);
            }
        }
    }

    fn host_is_gone(&mut self) {
        self.line = None;
        (self.paint_asked, self.update_asked, self.resume_asked) = (None, None, None);
    }

    fn host_is_back(&mut self, ctx: &mut Ctx) {
        let line = ctx.connect_host();
        let resume = Some(Resume { connection: self.connection, answers: self.answers });
        let size = ctx.terminals[self.terminal].size;
        let request = Request::Attach { size, read_only: self.options.read_only, resume };
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
        let request = Request::Update { client: self.client, connection: self.connection, size, answers };
        let id = ctx.lines[line].ask(request);
        if size.is_some() {
            self.update_asked = Some(id);
        }
    }
}
