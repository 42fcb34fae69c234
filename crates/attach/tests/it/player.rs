//! Tells a client what happens, and writes down what it does.

use holdfast_abi::protocol::{FromKeeper, ToKeeper};
use holdfast_attach::{Answer, Attached, Begin, Effect, Event, Input, Options, Paint, Picture, Request, Tag};
use holdfast_types::{Fence, Size};
use holdfast_wire::turns::TurnView;
use holdfast_wire::{Code, Fault};

/// The fence a client begins with.
pub const FENCE: u64 = 5;

/// What a client begins with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start {
    pub writes: bool,
    pub read_only: bool,
    /// The keeper can open its terminal.
    pub path: bool,
    pub answers: bool,
    /// The session is on another machine.
    pub far: bool,
}

/// A client, and who plays the others.
pub struct Player {
    pub attached: Attached,
    pub now_ms: u64,
    /// The last request.
    pub tag: Tag,
    /// Streams by when they were first seen.
    streams: Vec<u64>,
    began: Vec<Effect>,
}

/// A paint for a terminal of the session's size.
pub fn paint(offset: u64) -> Paint {
    Paint { offset, size: Size::clamped(80, 24), picture: Picture::Repaint(Vec::new()) }
}

pub fn turn() -> TurnView {
    TurnView { holder: None, fence: Fence(FENCE), queue: Vec::new(), frozen: None }
}

impl Player {
    pub fn new(start: Start) -> Player {
        let options = Options {
            read_only: start.read_only,
            chord: Some(0x1c),
            detach_key: b'd',
            path: start.path.then(|| b"/dev/pts/7".to_vec()),
            holds: true,
            far: start.far,
            us: "human:ann".parse().expect("a handle"),
            token: holdfast_types::ClientToken([3; 16]),
            session: holdfast_types::SessionId::from_random_bits(1),
            name: "work".into(),
            title: false,
            status: false,
        };
        let begin = Begin {
            client: 1,
            size: Size::clamped(80, 24),
            paint: paint(100),
            answers: start.answers,
            writes: start.writes,
            fence: FENCE,
            history: false,
            turn: turn(),
            asks: 0,
            greets: None,
            over: false,
            behind: None,
            random: 42,
        };
        let (attached, began) = Attached::begin(options, begin, 0);
        Player { attached, now_ms: 0, tag: Tag(0), streams: Vec::new(), began }
    }

    /// What it did at the beginning.
    pub fn began(&mut self) -> Vec<String> {
        let began = std::mem::take(&mut self.began);
        self.written(began)
    }

    /// Something happens; what it does at once, and at the end of the round.
    pub fn play(&mut self, input: Input<'_>) -> Vec<String> {
        let mut effects = self.attached.handle(self.now_ms, input);
        effects.extend(self.attached.handle(self.now_ms, Input::Settle));
        self.written(effects)
    }

    pub fn types(&mut self, keys: &str) -> Vec<String> {
        self.play(Input::Typed(keys.as_bytes()))
    }

    pub fn keeper(&mut self, frame: FromKeeper<'_>) -> Vec<String> {
        self.play(Input::Keeper(frame))
    }

    /// The keeper refused the so-manieth message of a stream, and this is the newest fence it has seen.
    pub fn refuses(&mut self, code: u8, fence: u64, message: (usize, u64)) -> Vec<String> {
        let (stream, seq) = (self.streams[message.0], message.1);
        self.keeper(FromKeeper::Refused { code, fence, stream, seq })
    }

    pub fn wrote(&mut self, message: (usize, u64)) -> Vec<String> {
        let (stream, seq) = (self.streams[message.0], message.1);
        self.keeper(FromKeeper::Written { stream, seq, head: 0 })
    }

    pub fn told_writes(&mut self, writes: bool, fence: u64) -> Vec<String> {
        self.play(Input::Event { client: self.attached.client(), event: Event::Writes { writes, fence } })
    }

    /// The last request is answered.
    pub fn answered(&mut self, answer: Answer) -> Vec<String> {
        self.play(Input::Answered { tag: self.tag, answer: Ok(answer) })
    }

    pub fn faulted(&mut self, code: Code) -> Vec<String> {
        self.play(Input::Answered { tag: self.tag, answer: Err(Fault::new(code, "no")) })
    }

    /// What waits to be typed.
    pub fn unsent(&self) -> Vec<String> {
        self.attached.unsent().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    fn message(&mut self, stream: u64, seq: u64, bytes: &[u8]) -> String {
        let number = self.streams.iter().position(|known| *known == stream).unwrap_or_else(|| {
            self.streams.push(stream);
            self.streams.len() - 1
        });
        format!("{number}.{seq} {}", String::from_utf8_lossy(bytes))
    }

    fn written(&mut self, effects: Vec<Effect>) -> Vec<String> {
        let mut out = Vec::new();
        for effect in effects {
            out.push(match effect {
                Effect::Keeper(frame) => match ToKeeper::decode(&frame).expect("a frame") {
                    ToKeeper::Input { fence, stream, seq, bytes } => {
                        format!("keeper: types {} under {fence}", self.message(stream, seq, bytes))
                    }
                    ToKeeper::Tty { flags, .. } => format!("keeper: tty {flags}"),
                    ToKeeper::TtyBack => "keeper: tty back".into(),
                    ToKeeper::Follow { position, .. } => format!("keeper: follow {position}"),
                    ToKeeper::Ack { position } => format!("keeper: ack {position}"),
                    ToKeeper::Sleep { position, .. } => format!("keeper: sleep {position}"),
                    other => format!("keeper: {other:?}"),
                },
                Effect::Ask(tag, request) => {
                    self.tag = tag;
                    match request {
                        Request::Send { client, stream, seq, bytes } => {
                            format!("host: types {} as {client}", self.message(stream, seq, &bytes))
                        }
                        Request::Resume { resume, .. } => {
                            format!("host: resume {}, answers {}", resume.client, resume.answers)
                        }
                        Request::Paint { size, .. } => format!("host: paint {size}"),
                        Request::Update { size: Some(size), .. } => format!("host: size {size}"),
                        Request::Update { answers: Some(answers), .. } => {
                            format!("host: answers {} left {} from {}", answers.on, answers.left, answers.from)
                        }
                        Request::Act { ask, .. } => format!("host: {ask:?}"),
                        other => format!("host: {other:?}"),
                    }
                }
                Effect::Put(bytes) => format!("terminal: {}", String::from_utf8_lossy(&bytes).escape_debug()),
                Effect::Read { at, bytes_max } => format!("read {at} at most {bytes_max}"),
                Effect::FindHost => "find a host".into(),
                Effect::End(end) => format!("end: {end:?}"),
            });
        }
        out
    }
}
