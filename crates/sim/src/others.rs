//! Those who are not attached: readers that follow by offset through the host, senders that type through it, and those who
//! only ask for the turn.

use crate::cast::{Who, an_ask};
use crate::ctx::Ctx;
use crate::host::{Answer, Incoming, Request};
use crate::program::Token;

/// Follows the output from a distance; holds nothing back.
#[derive(Debug)]
pub(crate) struct Reader {
    number: usize,
    line: Option<usize>,
    asked: bool,
    pub position: u64,
}

impl Reader {
    pub fn new(number: usize) -> Reader {
        Reader { number, line: None, asked: false, position: 0 }
    }

    pub fn turn(&mut self, ctx: &mut Ctx, host_is_up: bool) {
        let Some(line) = self.line else {
            self.line = host_is_up.then(|| ctx.connect_host());
            self.asked = false;
            return;
        };
        match ctx.lines[line].hear() {
            Incoming::Closed => self.line = None,
            Incoming::Answer(_, Answer::Read { gap, from, bytes }) => {
                self.asked = false;
                if let Some(gap) = gap {
                    if gap.from != self.position || gap.to != from || gap.to <= gap.from {
                        ctx.fail(format!("reader {} at {} was told of a gap {gap:?}", self.number, self.position));
                    }
                    ctx.counts.reader_gaps += 1;
                    self.position = from;
                }
                ctx.followed(format_args!("reader {}", self.number), self.position, from, &bytes);
                self.position = from + bytes.len() as u64;
            }
            Incoming::Answer(_, _) => {
                ctx.fail(format!("reader {} asked for {} and was refused", self.number, self.position));
            }
            Incoming::Event(..) | Incoming::Nothing if !self.asked => {
                self.asked = true;
                ctx.lines[line].ask(Request::Read { from: self.position });
            }
            Incoming::Event(..) | Incoming::Nothing => {}
        }
    }
}

/// Types through the host: one frame after the other, and the same again where a host died in between.
#[derive(Debug)]
pub(crate) struct Sender {
    line: Option<usize>,
    asked: bool,
    who: Who,
    stream: u64,
    seq: u64,
    pub source: u8,
    pub last_token: u32,
    bytes: Vec<u8>,
}

impl Sender {
    pub fn new(stream: u64, source: u8, who: Who) -> Sender {
        Sender { line: None, asked: false, who, stream, seq: 0, source, last_token: 0, bytes: Vec::new() }
    }

    pub fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn turn(&mut self, ctx: &mut Ctx, host_is_up: bool, may_begin: bool) {
        let Some(line) = self.line else {
            self.line = host_is_up.then(|| ctx.connect_host());
            self.asked = false;
            return;
        };
        match ctx.lines[line].hear() {
            Incoming::Closed => self.line = None,
            // The same again, a little later.
            Incoming::Answer(_, Answer::Refused { code: "busy" }) => self.asked = false,
            Incoming::Answer(_, answer) => {
                self.asked = false;
                let bytes = std::mem::take(&mut self.bytes);
                if let Answer::Refused { .. } = answer {
                    ctx.refused(&bytes);
                }
            }
            Incoming::Event(..) | Incoming::Nothing => {}
        }
        if self.bytes.is_empty() && may_begin && ctx.chance(20) {
            self.seq += 1;
            // Now and then a large paste: it fills the log and the queue.
            let tokens = if ctx.chance(15) { ctx.rng.u32(500..1000) } else { ctx.rng.u32(1..20) };
            for _ in 0..tokens {
                self.last_token += 1;
                Token { source: self.source, number: self.last_token }.encode(&mut self.bytes);
            }
        }
        if let (false, false, Some(line)) = (self.asked, self.bytes.is_empty(), self.line) {
            self.asked = true;
            let (who, stream, seq, bytes) = (self.who, self.stream, self.seq, self.bytes.clone());
            ctx.counts.sent_through_host += 1;
            ctx.lines[line].ask(Request::Send { who, client: None, stream, seq, bytes });
        }
    }
}

/// Runs commands, each under a key of its own, and again with the same key until it was told that the run is there.
#[derive(Debug)]
pub(crate) struct Runner {
    line: Option<usize>,
    who: Who,
    asked: bool,
    number: u32,
    step: u32,
    /// Something stands at the prompt: it is sent away by Enter.
    clears: bool,
    seq: u64,
}

impl Runner {
    /// Its runs have the numbers from `first` on, `step` apart.
    pub fn new(who: Who, first: u32, step: u32) -> Runner {
        Runner { line: None, who, asked: false, number: first, step, clears: false, seq: 0 }
    }

    pub fn turn(&mut self, ctx: &mut Ctx, host_is_up: bool, may_begin: bool) {
        let Some(line) = self.line else {
            self.line = host_is_up.then(|| ctx.connect_host());
            self.asked = false;
            return;
        };
        match ctx.lines[line].hear() {
            Incoming::Closed => self.line = None,
            Incoming::Answer(_, answer) => {
                self.asked = false;
                match answer {
                    Answer::Ran => self.number += self.step,
                    Answer::Refused { code } => self.clears = code == "shell_busy" && ctx.chance(30),
                    _ => {}
                }
            }
            Incoming::Event(..) | Incoming::Nothing => {}
        }
        if let (false, true, Some(line)) = (self.asked, may_begin && ctx.chance(60), self.line) {
            self.asked = true;
            let who = self.who;
            ctx.lines[line].ask(if std::mem::take(&mut self.clears) {
                self.seq += 1;
                let (stream, seq) = (1000 + u64::from(self.step), self.seq);
                Request::Send { who, client: None, stream, seq, bytes: b"\r".to_vec() }
            } else {
                ctx.counts.runs_asked += 1;
                Request::Run { who, number: self.number }
            });
        }
    }

    pub fn is_done(&self) -> bool {
        !self.asked
    }
}

/// Asks for the turn, or gives it away, without a terminal.
#[derive(Debug)]
pub(crate) struct Asker {
    line: Option<usize>,
    who: Who,
}

impl Asker {
    pub fn new(who: Who) -> Asker {
        Asker { line: None, who }
    }

    pub fn turn(&mut self, ctx: &mut Ctx, host_is_up: bool) {
        let Some(line) = self.line else {
            self.line = host_is_up.then(|| ctx.connect_host());
            return;
        };
        if matches!(ctx.lines[line].hear(), Incoming::Closed) {
            self.line = None;
            return;
        }
        let ask = an_ask(&mut ctx.rng, ctx.now);
        ctx.note(format_args!("{}: asks {ask:?}", self.who.actor().handle));
        ctx.lines[line].ask(Request::Act { who: self.who, client: None, ask });
    }
}
