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
