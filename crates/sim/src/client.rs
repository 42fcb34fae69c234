//! An attached terminal's client: `holdfast_attach`, as it is, on fake wires and a fake terminal.

use crate::cast::{Who, an_ask};
use crate::ctx::Ctx;
use crate::host::{Answer, Attached as Admission, Incoming, Request};
use crate::net::Heard;
use crate::program::replies;
use holdfast_abi::protocol::{FromKeeper, INPUT_BYTES_MAX, ToKeeper, VERSION};
use holdfast_abi::ring::{Copied, Ring};
use holdfast_attach::{self as attach, Attached, Begin, Effect, Event, Input, Paint, Picture, Tag};
use holdfast_authority::Ask;
use holdfast_screen::Screen;
use holdfast_types::{ClientToken, Fence, SessionId, Size};
use holdfast_wire::params::{Form, Painted};
use holdfast_wire::turns::TurnView;
use holdfast_wire::{Code, Fault};
use std::collections::BTreeMap;
use std::path::Path;

/// The control byte that starts a chord.
const CHORD: u8 = 0x1c;

/// Where it is with itself.
enum Stage {
    /// The host was asked to attach it.
    Asks { id: u64 },
    /// The keeper was shown the token.
    Knocks(Option<Box<Admission>>),
    /// It is attached.
    Attached(Box<Attached>),
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
    /// The size it attached with.
    first_size: Size,
    stage: Stage,
    ring: Ring,
    line: Option<usize>,
    /// Requests on the line that are not answered.
    asked: BTreeMap<u64, Tag>,
    wire: usize,
    connection: u32,
    /// Output was there the last time it was looked for.
    moved: bool,
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
            first_size: size,
            stage: Stage::Asks { id },
            ring: Ring::open(&file).expect("the ring is sound"),
            line: Some(line),
            asked: BTreeMap::new(),
            wire: 0,
            connection: 0,
            moved: false,
            window_changed: false,
            over: false,
        }
    }

    fn attached(&self) -> Option<&Attached> {
        match &self.stage {
            Stage::Attached(attached) => Some(attached),
            Stage::Asks { .. } | Stage::Knocks(_) => None,
        }
    }

    pub fn is_attached(&self) -> bool {
        self.attached().is_some()
    }

    pub fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// Its number at the host.
    pub fn number(&self) -> Option<u32> {
        match &self.stage {
            Stage::Asks { .. } => None,
            Stage::Knocks(admission) => admission.as_ref().map(|admission| admission.client),
            Stage::Attached(attached) => Some(attached.client()),
        }
    }

    /// Where it stands, for the log.
    pub fn describe(&self) -> String {
        format!("client {}: {:?}, connection {}, {:?}", self.terminal, self.who, self.connection, self.attached())
    }

    pub fn has_keys_to_send(&self) -> bool {
        self.attached().is_some_and(|attached| attached.unsent().next().is_some())
    }

    /// It leaves and says so, or it is killed.
    pub fn go(self, ctx: &mut Ctx, leaves: bool) {
        // What its terminal answered and it has not sent goes with it.
        let unread = ctx.terminals[self.terminal].read(usize::MAX);
        for bytes in self.attached().into_iter().flat_map(Attached::unsent).chain([unread.as_slice()]) {
            ctx.answers_dropped(&replies(bytes).1);
        }
        if let Some(line) = self.line {
            if let Some(client) = self.number().filter(|_| leaves) {
                ctx.lines[line].ask(Request::Leave { who: self.who, client });
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
            Stage::Asks { id } => self.read_admission(ctx, id),
            Stage::Knocks(_) => self.read_greeting(ctx),
            Stage::Attached(_) => {
                // What is ready is read in this order; something may just not be there yet.
                if std::mem::take(&mut self.window_changed) {
                    let size = ctx.terminals[self.terminal].size;
                    self.feed(ctx, Input::Window(size));
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
                    self.line = Some(ctx.connect_host());
                    self.feed(ctx, Input::HostBack);
                }
                self.feed(ctx, Input::Settle);
                for _ in 0..ctx.rng.u32(1..4) {
                    self.moved = false;
                    if !self.over {
                        self.feed(ctx, Input::Proceed);
                    }
                    if !self.moved {
                        break;
                    }
                }
            }
        }
    }

    /// The person asks for something about the turn: by a chord where there is one and the client reads the keys.
    pub fn ask(&mut self, ctx: &mut Ctx) {
        let (Some(attached), Some(line)) = (self.attached(), self.line) else { return };
        let (reads_keys, client) = (attached.reads_keys(), attached.client());
        let ask = an_ask(&mut ctx.rng, ctx.now);
        ctx.note(format_args!("client {}: asks {ask:?}", self.terminal));
        let key = match ask {
            Ask::Take => Some(b't'),
            Ask::Release => Some(b'r'),
            Ask::Thaw => Some(b'u'),
            _ => None,
        };
        match key.filter(|_| reads_keys) {
            Some(key) => self.feed(ctx, Input::Typed(&[CHORD, key])),
            None => {
                ctx.lines[line].ask(Request::Act { who: self.who, client: Some(client), ask });
            }
        }
    }

    /// Its window has another size.
    pub fn window_has_changed(&mut self, ctx: &mut Ctx, size: Size) {
        let terminal = &mut ctx.terminals[self.terminal];
        (terminal.size, terminal.resized_ms) = (size, ctx.now);
        self.window_changed = true;
    }

    fn read_admission(&mut self, ctx: &mut Ctx, asked: u64) {
        let Some(line) = self.line else { return };
        match ctx.lines[line].hear() {
            Incoming::Answer(id, Answer::Attached(admission)) if id == asked => {
                self.wire = ctx.net.connect();
                ctx.net.say(self.wire, ToKeeper::Hello { version: VERSION, role: 0, token: admission.token });
                self.stage = Stage::Knocks(Some(admission));
            }
            Incoming::Answer(..) => self.over = true,
            Incoming::Closed => {
                self.line = None;
                self.over = true;
            }
            // Who waits for an answer drops the events before it.
            Incoming::Event(..) | Incoming::Nothing => {}
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
        let Stage::Knocks(admission) = &mut self.stage else { return };
        let Some(admission) = admission.take() else { return };
        let answers = admission.answers;
        ctx.note(format_args!("client {}: attached as {}, answers {answers}", self.terminal, self.connection));
        ctx.oracle.connections.insert(self.connection, self.who);
        let options = attach::Options {
            read_only: self.options.read_only,
            chord: Some(CHORD),
            detach_key: b'd',
            path: self.options.has_path.then(|| (self.terminal as u64).to_le_bytes().to_vec()),
            holds: self.options.holds,
            far: false,
            us: self.who.actor().handle,
            token: ClientToken(admission.token),
            session: SessionId::from_random_bits(1),
            name: String::new(),
            title: false,
            status: false,
        };
        let Some(paint) = self.paint(ctx, &admission.painted, admission.bytes) else { return };
        let begin = Begin {
            client: admission.client,
            // A window that has changed since is heard of afterwards.
            size: self.first_size,
            paint,
            answers,
            writes: admission.writes,
            fence: admission.fence,
            history: admission.has_history && self.options.history,
            turn: turn(admission.fence),
            asks: 0,
            greets: None,
            over: false,
            behind: None,
            random: ctx.rng.u64(1 << 32..),
        };
        let (attached, effects) = Attached::begin(options, begin, ctx.now);
        ctx.terminals[self.terminal].at = attached.position();
        self.stage = Stage::Attached(Box::new(attached));
        let asked = self.perform(ctx, effects);
        self.painted(ctx, &asked);
    }

    fn read_keeper(&mut self, ctx: &mut Ctx) {
        while !self.over {
            match ctx.net.hear(self.wire) {
                Heard::Nothing => return,
                Heard::Closed => {
                    let head = self.ring.head();
                    self.feed(ctx, Input::KeeperGone { exit: None, head });
                }
                Heard::Frame(bytes) => match FromKeeper::decode(&bytes) {
                    Ok(frame) => {
                        self.feed(ctx, Input::Keeper(frame));
                        if let FromKeeper::Keys { bytes } = frame {
                            self.reports_dropped(ctx, bytes);
                        }
                    }
                    Err(error) => return ctx.fail(format!("a frame that is none reached a client: {error}")),
                },
            }
        }
    }

    fn read_keys(&mut self, ctx: &mut Ctx) {
        if self.attached().is_some_and(Attached::reads_keys) {
            let keys = ctx.terminals[self.terminal].read(INPUT_BYTES_MAX);
            if !keys.is_empty() {
                self.feed(ctx, Input::Typed(&keys));
                self.reports_dropped(ctx, &keys);
            }
        }
    }

    /// A terminal that neither writes nor answers sends no answers, for the oracle.
    fn reports_dropped(&self, ctx: &mut Ctx, keys: &[u8]) {
        let drops = |attached: &Attached| !attached.writes() && !attached.answers();
        if !self.options.read_only && self.attached().is_some_and(drops) {
            ctx.answers_dropped(&replies(keys).1);
        }
    }

    fn read_host(&mut self, ctx: &mut Ctx) {
        while let Some(line) = self.line {
            match ctx.lines[line].hear() {
                Incoming::Nothing => return,
                Incoming::Closed => {
                    self.line = None;
                    self.asked.clear();
                    self.feed(ctx, Input::HostGone);
                }
                Incoming::Event(method, params) => match Event::read(&method, params) {
                    Some((client, event)) => self.feed(ctx, Input::Event { client, event }),
                    None => ctx.fail(format!("a client heard of {method}")),
                },
                Incoming::Answer(id, answer) => self.answer(ctx, id, answer),
            }
        }
    }

    fn answer(&mut self, ctx: &mut Ctx, id: u64, answer: Answer) {
        let Some(tag) = self.asked.remove(&id) else { return };
        let answer = match answer {
            Answer::Painted { painted, bytes } => {
                let at = ctx.terminals[self.terminal].at;
                if painted.offset < at {
                    ctx.fail(format!(
                        "terminal {} stood at {at} and is painted as of {}",
                        self.terminal, painted.offset
                    ));
                }
                let Some(paint) = self.paint(ctx, &painted, bytes) else { return };
                let asked =
                    self.handle(ctx, Input::Answered { tag, answer: Ok(attach::Answer::Painted(Box::new(paint))) });
                return self.painted(ctx, &asked);
            }
            Answer::Refused { code } => return self.refused(ctx, tag, code),
            Answer::Updated { size } => attach::Answer::Updated(size),
            Answer::Resumed { client, writes, fence } => {
                attach::Answer::Resumed { client, writes, fence, turn: Box::new(turn(fence)) }
            }
            Answer::Sent { fence } => attach::Answer::Sent(fence),
            Answer::Attached(_) | Answer::Read { .. } | Answer::Acted | Answer::Ran => attach::Answer::Unreadable,
        };
        self.feed(ctx, Input::Answered { tag, answer: Ok(answer) });
    }

    /// The host refused something; if that was what was typed, everything that waited goes with it.
    fn refused(&mut self, ctx: &mut Ctx, tag: Tag, code: &'static str) {
        let unsent = |client: &Client| -> Vec<Vec<u8>> {
            client.attached().into_iter().flat_map(Attached::unsent).map(<[u8]>::to_vec).collect()
        };
        let before = unsent(self);
        let code = serde_json::from_value(code.into()).unwrap_or(Code::Denied);
        self.feed(ctx, Input::Answered { tag, answer: Err(Fault::new(code, "")) });
        if unsent(self).is_empty() && !before.is_empty() {
            ctx.note(format_args!("client {}: {} messages refused, {code:?}", self.terminal, before.len()));
            before.iter().for_each(|bytes| ctx.refused(bytes));
        }
    }

    /// The paint as the client gets it.
    fn paint(&self, ctx: &mut Ctx, painted: &Painted, bytes: Vec<u8>) -> Option<Paint> {
        let picture = match painted.form {
            Form::Repaint => Picture::Repaint(bytes),
            Form::Keyframe => match Screen::restore(&bytes) {
                Ok(screen) => Picture::Keyframe { history: Vec::new(), screen: Box::new(screen) },
                Err(error) => {
                    ctx.fail(format!("a keyframe that is none reached client {}: {error}", self.terminal));
                    return None;
                }
            },
        };
        ctx.note(format_args!("client {}: paint as {:?} at {}", self.terminal, painted.form, painted.offset));
        Some(Paint { offset: painted.offset, size: painted.size, picture })
    }

    /// A paint is on the terminal, or was too old.
    fn painted(&self, ctx: &mut Ctx, asked: &[u16]) {
        let Some(attached) = self.attached() else { return };
        ctx.terminals[self.terminal].at = attached.position();
        // A query whose beginning was painted is finished by what follows; a paint itself asks nothing.
        if !asked.is_empty() {
            ctx.fail(format!("the paint of terminal {} asks something", self.terminal));
        }
    }

    /// Tells the client what happened, and does what it says.
    fn feed(&mut self, ctx: &mut Ctx, input: Input<'_>) {
        let filtered = self.attached().is_some_and(Attached::filters);
        let asked = self.handle(ctx, input);
        for id in asked {
            ctx.counts.answered_by_terminal += 1;
            ctx.note(format_args!("terminal {}: answers query {id}", self.terminal));
        }
        // Only a paint changes the view otherwise.
        if let Some(attached) = self.attached().filter(|attached| attached.filters() && !filtered) {
            ctx.oracle.stops.push(attached.position());
        }
    }

    fn handle(&mut self, ctx: &mut Ctx, input: Input<'_>) -> Vec<u16> {
        let Stage::Attached(attached) = &mut self.stage else { return Vec::new() };
        let had_row = attached.has_row();
        let effects = attached.handle(ctx.now, input);
        ctx.counts.notices += u64::from(attached.has_row() && !had_row);
        self.perform(ctx, effects)
    }

    /// Does it; gives the queries that the terminal answered to what was written on it.
    fn perform(&mut self, ctx: &mut Ctx, effects: Vec<Effect>) -> Vec<u16> {
        let mut asked = Vec::new();
        for effect in effects {
            match effect {
                Effect::Keeper(frame) => ctx.net.say_bytes(self.wire, frame),
                Effect::Put(bytes) => asked.extend(ctx.terminals[self.terminal].put(&bytes)),
                Effect::Ask(tag, request) => self.request(ctx, tag, request),
                Effect::Read { at, bytes_max } => self.copy(ctx, at, bytes_max),
                Effect::End(_) => self.over = true,
                // A host is found where there is one.
                Effect::FindHost => {}
            }
        }
        asked
    }

    fn copy(&mut self, ctx: &mut Ctx, at: u64, bytes_max: usize) {
        let mut buffer = vec![0; bytes_max];
        match self.ring.copy(at, &mut buffer) {
            Copied::Bytes(count) => {
                self.moved = count > 0;
                if count > 0 {
                    ctx.show(self.terminal, at, &buffer[..count], &[]);
                }
                self.feed(ctx, Input::Output(&buffer[..count]));
            }
            Copied::Lapped { .. } | Copied::Ahead { .. } => {
                ctx.counts.client_laps += 1;
                ctx.note(format_args!("client {}: lapped at {at}", self.terminal));
                self.feed(ctx, Input::Lapped);
            }
        }
    }

    fn request(&mut self, ctx: &mut Ctx, tag: Tag, request: attach::Request) {
        let Some(line) = self.line else { return };
        let who = self.who;
        let request = match request {
            attach::Request::Resume { size, resume } => {
                Request::Attach { who, size, read_only: self.options.read_only, resume: Some(resume) }
            }
            attach::Request::Paint { size, history, answers, .. } => Request::Paint { who, size, history, answers },
            attach::Request::Update { client, size, answers } => Request::Update { who, client, size, answers },
            attach::Request::Send { client, stream, seq, bytes } => {
                ctx.counts.sent_through_host += 1;
                Request::Send { who, client: Some(client), stream, seq, bytes }
            }
            attach::Request::Act { client, ask } => Request::Act { who, client: Some(client), ask },
            attach::Request::View
            | attach::Request::Actors
            | attach::Request::Questions
            | attach::Request::Sessions
            | attach::Request::State(_)
            | attach::Request::Reply { .. } => {
                return ctx.fail(format!("client {} asks for {request:?}, and nobody pressed that", self.terminal));
            }
        };
        let id = ctx.lines[line].ask(request);
        self.asked.insert(id, tag);
    }
}

/// As much of the turn as a client's decisions need.
fn turn(fence: u64) -> TurnView {
    TurnView { holder: None, fence: Fence(fence), queue: Vec::new(), frozen: None }
}
