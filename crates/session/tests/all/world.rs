//! An outside that remembers what it was asked to do, and a keeper's log that tests write.

use holdfast_abi::log::{FLAG_ECHO_OFF, Kind, Record as Logged};
use holdfast_abi::protocol::{FromKeeper, ToKeeper, VERSION, Welcome};
use holdfast_authority::journal::Link;
use holdfast_authority::{Act, Ask, Authority, Caller, DeedId, Effect, Ending, Input, Moment, Policy, Record};
use holdfast_screen::Reply;
use holdfast_session::{
    Arrival, Core, Decided, Event, Fed, Now, Origin, Outside, Placing, Probed, Resumption, Run, Send, Sent, Ticket,
    Tracker, Undecided, Unwritten,
};
use holdfast_types::{Actor, ActorId, ClientToken, Defaults, Offset, SessionId, SessionName, Size};
use holdfast_wire::params::Resume;

/// The host's number at the keeper.
pub const HOST: u32 = 1;

pub fn actor(handle: &str) -> Actor {
    let mut id = [0; 32];
    id[..handle.len()].copy_from_slice(handle.as_bytes());
    Actor { id: ActorId(id), handle: handle.parse().unwrap() }
}

pub fn policy() -> Policy {
    let known = ["human:ann", "human:bob", "agent:bot"].map(actor);
    Policy { defaults: Defaults::default(), vouched: known.into_iter().map(|a| (a.id, a.handle)).collect() }
}

/// What the core did.
#[derive(Default)]
pub struct Outer {
    pub records: Vec<Record>,
    /// Frames to the keeper, as their bytes.
    frames: Vec<Vec<u8>>,
    pub told: Vec<(u32, Event)>,
    pub sent: Vec<(u64, Sent)>,
    pub log: Vec<u8>,
    pub names: Vec<SessionName>,
    pub output: Vec<u8>,
    /// Runs on disk, one for each change; the shell's token; keys that were given back.
    pub kept: Vec<Run>,
    pub token: String,
    pub freed: Vec<String>,
    /// Answers to queries in output that the screen has not seen yet.
    pub queries: Vec<Reply>,
    /// The disk is full.
    pub full: bool,
    /// The shell must be moved before anybody else writes.
    pub misplaced: bool,
    pub moving: bool,
    pub awaited: bool,
    random: u64,
}

impl Outside for Outer {
    fn head(&self) -> Offset {
        self.output.len() as u64
    }
    fn oldest(&self) -> Offset {
        0
    }
    fn ring_bytes(&self) -> u64 {
        1 << 20
    }
    fn log_head(&self) -> Option<u64> {
        Some(self.log.len() as u64)
    }
    fn log_base(&self) -> u64 {
        0
    }
    fn log_bytes(&self) -> u64 {
        1 << 16
    }
    fn log(&self, from: u64, to: u64) -> Vec<u8> {
        self.log[from as usize..to as usize].to_vec()
    }
    fn output(&self, from: Offset, max: usize) -> Vec<u8> {
        let from = (from as usize).min(self.output.len());
        self.output[from..].iter().take(max).copied().collect()
    }
    fn feed(&mut self, _: u32) -> Fed {
        Fed { replies: std::mem::take(&mut self.queries), ..Fed::default() }
    }
    fn seen(&self) -> Offset {
        0
    }
    fn saved(&self) -> Offset {
        0
    }
    fn is_screen_live(&self) -> bool {
        false
    }
    fn take_sizes(&mut self) -> bool {
        true
    }
    fn save_screen(&mut self, _: bool) {}
    fn waits_for_output(&self) -> bool {
        false
    }
    fn segment_due(&self) -> Option<Option<Link>> {
        None
    }
    fn begin_segment(&mut self, _: &Record) -> Result<(), Unwritten> {
        Ok(())
    }
    fn record(&mut self, records: &[Record], _: bool, _: &Authority) -> (u64, Result<(), Unwritten>) {
        let first = self.records.len() as u64;
        self.records.extend(records.iter().cloned());
        (first, self.retry_journal())
    }
    fn retry_journal(&mut self) -> Result<(), Unwritten> {
        if self.full { Err(Unwritten("no space".into())) } else { Ok(()) }
    }
    fn say(&mut self, frame: ToKeeper<'_>) -> bool {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.frames.push(bytes);
        true
    }
    fn keep_runs(&mut self, changed: &[Run]) -> Result<(), Unwritten> {
        self.retry_journal()?;
        self.kept.extend_from_slice(changed);
        Ok(())
    }
    fn tell_shell(&mut self, token: &str, _: Option<&[u8]>) -> Result<(), Unwritten> {
        self.token = token.to_owned();
        Ok(())
    }
    fn runs_moved(&mut self) {}
    fn free_key(&mut self, run: &Run) {
        self.freed.extend(run.key.clone());
    }
    fn reach_tree(&mut self, _: DeedId, frame: ToKeeper<'static>) -> Option<bool> {
        Some(self.say(frame))
    }
    fn cut_off_soon(&mut self, connections: Vec<u32>) {
        for connection in connections {
            self.say(ToKeeper::Expel { connection });
        }
    }
    fn rename(&mut self, name: &SessionName) -> Result<(), String> {
        self.names.push(name.clone());
        Ok(())
    }
    fn tell(&mut self, _: u64, client: u32, event: Event) {
        self.told.push((client, event));
    }
    fn sent(&mut self, ticket: Ticket, sent: Sent) {
        self.sent.push((ticket.0, sent));
    }
    fn probed(&mut self, _: Probed) {}
    fn place_writer(&mut self, core: Placing<'_>) {
        self.awaited = self.misplaced && core.writes_next.is_some();
    }
    fn is_writer_awaited(&self) -> bool {
        self.awaited
    }
    fn place_for(&mut self, _: ActorId, _: Placing<'_>) -> bool {
        self.moving = self.misplaced;
        self.moving
    }
    fn is_moving(&self) -> bool {
        self.moving
    }
    fn nobody_expected(&mut self) {}
    fn random(&mut self) -> u64 {
        self.random += 1;
        self.random
    }
    fn stirred(&mut self) {}
}

/// What was handed to the keeper to be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub fence: u64,
    pub stream: u64,
    pub seq: u64,
    pub bytes: String,
}

/// A session with its keeper connected.
pub struct World {
    pub core: Core,
    pub out: Outer,
    pub now_ms: u64,
    last_ticket: u64,
}

impl World {
    pub fn new() -> World {
        let (session, size) = (SessionId::from_random_bits(7), Size::clamped(80, 24));
        let core = Core::new(session, Authority::new(policy()), size, Origin::New, 5, Tracker::default());
        let mut world = World { core, out: Outer::default(), now_ms: 1_000_000, last_ticket: 0 };
        world.decide(Input::Started { by: actor("human:ann") }).unwrap();
        world.connect(HOST, 0);
        world.frame(FromKeeper::Probed { foreground: 0, iflag: 0, oflag: 0, lflag: 0, unread: 0 });
        world.out.frames.clear();
        world
    }

    fn connect(&mut self, connection: u32, fence: u64) {
        let (version, size) = (VERSION, self.core.size);
        let (cols, rows) = (size.cols(), size.rows());
        let welcome =
            Welcome { version, connection, features: 0, head: 0, log_head: 0, fence, cols, rows, child_pid: 0 };
        let now = self.now();
        self.core.connected(&mut self.out, now, &welcome);
    }

    /// The host is killed right after it recorded what somebody asks for; the next one takes the session over. `at` are the
    /// clients that are still there, with their connections to the keeper.
    pub fn killed_at(&mut self, who: &str, ask: Ask, at: &[(u32, u32)]) {
        let mut authority = self.core.authority().clone();
        let by = Caller { actor: actor(who), operator: None, token: None };
        let moment = Moment { time_ms: self.now_ms, at: 0 };
        let answer = authority.handle(Input::Asked { by, ask, proof: None }, moment);
        answer.reply.unwrap();
        for effect in answer.effects {
            if let Effect::Record(record) = effect {
                self.out.records.push(*record);
            }
        }
        let (session, fence) = (SessionId::from_random_bits(7), self.core.fence().0);
        let authority = Authority::replay(policy(), &self.out.records);
        self.core = Core::new(session, authority, self.core.size, Origin::Found, 5, Tracker::default());
        self.out.frames.clear();
        self.out.told.clear();
        self.connect(HOST + 1, fence);
        for (client, connection) in at {
            self.frame(FromKeeper::Joined {
                connection: *connection,
                pid: *client,
                token: [*client as u8; 16],
                rights: 1,
            });
        }
        self.frame(FromKeeper::Probed { foreground: 0, iflag: 0, oflag: 0, lflag: 0, unread: 0 });
    }

    /// A client that outlived its host reports back.
    pub fn resume(&mut self, who: &str, client: u32) -> Option<u32> {
        let back = Resumption {
            was: Resume { client, token: ClientToken([client as u8; 16]), answers: false },
            actor: actor(who),
            pid: 1,
            tty: String::new(),
            size: self.core.size,
            draws: false,
            peer: 1,
        };
        let now = self.now();
        self.core.resume(&mut self.out, now, back).unwrap()
    }

    /// What was said to the keeper since the last look, but for who writes and how far the log was read.
    pub fn said(&mut self) -> Vec<String> {
        let shown = |bytes: &Vec<u8>| match ToKeeper::decode(bytes).unwrap() {
            frame @ (ToKeeper::Resize { .. }
            | ToKeeper::Signal { .. }
            | ToKeeper::End { .. }
            | ToKeeper::Expel { .. }) => Some(format!("{frame:?}")),
            _ => None,
        };
        std::mem::take(&mut self.out.frames).iter().filter_map(shown).collect()
    }

    /// How deeds ended, by their words.
    pub fn endings(&self) -> Vec<(&str, &Ending)> {
        self.out.records.iter().filter_map(ending).collect()
    }

    pub fn now(&self) -> Now {
        Now { time_ms: self.now_ms, clock_ms: self.now_ms }
    }

    pub fn decide(&mut self, input: Input) -> Result<Decided, Undecided> {
        let now = self.now();
        self.core.decide(&mut self.out, now, input)
    }

    pub fn ask(&mut self, who: &str, ask: Ask) -> Result<Decided, Undecided> {
        self.decide(Input::Asked { by: Caller { actor: actor(who), operator: None, token: None }, ask, proof: None })
    }

    pub fn frame(&mut self, frame: FromKeeper<'_>) {
        let now = self.now();
        self.core.frame(&mut self.out, now, frame);
    }

    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let now = self.now();
        self.core.tick(&mut self.out, now);
    }

    /// Bytes of somebody's; gives their ticket.
    pub fn send(&mut self, who: &str, stream: u64, seq: u64, text: &str) -> u64 {
        let by = Caller { actor: actor(who), operator: None, token: None };
        let bytes = text.as_bytes().to_vec();
        self.send_as(Send { by, fence: None, stream, seq, bytes, secret: false, force: false })
    }

    pub fn send_as(&mut self, send: Send) -> u64 {
        self.last_ticket += 1;
        let (now, ticket) = (self.now(), Ticket(self.last_ticket));
        self.core.send(&mut self.out, now, ticket, send);
        self.last_ticket
    }

    /// A terminal attaches; gives its number.
    pub fn attach(&mut self, who: &str) -> u32 {
        let (size, token) = (Size::clamped(80, 24), [9; 16]);
        let arrival = Arrival {
            actor: actor(who),
            pid: 1,
            tty: String::new(),
            size,
            read_only: false,
            remote: false,
            draws: false,
            sizes: true,
            peer: 1,
            token,
        };
        let now = self.now();
        let (client, _) = self.core.arrive(&mut self.out, now, arrival).unwrap();
        self.frame(FromKeeper::Joined { connection: 20 + client, pid: 1, token, rights: 1 });
        client
    }

    /// What was handed to the keeper since the last look.
    pub fn typed(&mut self) -> Vec<Typed> {
        let typed = |bytes: &Vec<u8>| match ToKeeper::decode(bytes).unwrap() {
            ToKeeper::Input { fence, stream, seq, bytes } => {
                Some(Typed { fence, stream, seq, bytes: String::from_utf8(bytes.to_vec()).unwrap() })
            }
            _ => None,
        };
        std::mem::take(&mut self.out.frames).iter().filter_map(typed).collect()
    }

    /// The writers named to the keeper since the last look, with their fences.
    pub fn writers(&mut self) -> Vec<(u64, u32)> {
        let writer = |bytes: &Vec<u8>| match ToKeeper::decode(bytes).unwrap() {
            ToKeeper::Writer { fence, connection } => Some((fence, connection)),
            _ => None,
        };
        std::mem::take(&mut self.out.frames).iter().filter_map(writer).collect()
    }

    /// The keeper refuses a frame.
    pub fn refuses(&mut self, code: u8, stream: u64, seq: u64) {
        let fence = self.core.fence().0;
        self.frame(FromKeeper::Refused { code, fence, stream, seq });
    }

    /// The keeper writes bytes, which it has in its log first.
    pub fn writes(&mut self, connection: u32, fence: u64, stream: u64, bytes: &[u8], flags: u8) {
        let kept = if flags & FLAG_ECHO_OFF == 0 { bytes } else { &[] };
        let record = Logged {
            kind: Kind::Input,
            flags,
            count: bytes.len() as u16,
            connection,
            fence,
            at: 0,
            stream,
            seq: 1,
            time_ms: self.now_ms,
            bytes: kept,
        };
        record.encode(&mut self.out.log);
    }
}

fn ending(record: &Record) -> Option<(&str, &Ending)> {
    let Act::Did { what, ending, .. } = &record.act else { return None };
    Some((what, ending))
}
