//! How the host types for somebody, and what is asked about the turn, as in the host's `session/acts` and `session/turns`.

use super::decide::Decided;
use super::{Answer, Crashed, Host};
use crate::cast::Who;
use crate::ctx::Ctx;
use holdfast_abi::protocol::{ToKeeper, refused};
use holdfast_authority::{Ask, Burst, Caller, Input, Keys, OperatorId, Reply};

const WRITTEN_WAIT_MS: u64 = 5_000;
const ROOM_WAIT_MS: u64 = 5_000;
const PROBE_WAIT_MS: u64 = 2_000;
const FULL_PAUSE_MS: u64 = 5;
const STREAMS_MAX: usize = 1024;
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;

/// Input on its way for somebody.
pub(super) struct Sending {
    line: usize,
    id: u64,
    by: Caller,
    stream: u64,
    seq: u64,
    bytes: Vec<u8>,
    room_until: u64,
    stage: Stage,
    heard: Option<Sent>,
    probed: Option<u32>,
}

/// What it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Whether an earlier host typed it.
    Before {
        until: u64,
    },
    /// What the terminal says of itself.
    Probing {
        until: u64,
    },
    Typing {
        fence: u64,
        until: u64,
    },
    Pausing {
        fence: u64,
        until: u64,
    },
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Written,
    Refused(u8),
}

/// What a step of a sending came to.
enum Step {
    Waits,
    Done(Answer),
}

impl Host {
    #[allow(clippy::too_many_arguments)] // the parameters of one request
    pub(super) fn send(
        &mut self,
        ctx: &mut Ctx,
        line: usize,
        id: u64,
        who: Who,
        client: Option<u32>,
        (stream, seq): (u64, u64),
        bytes: Vec<u8>,
    ) -> Result<(), Crashed> {
        let by = Caller { actor: who.actor(), operator: client.map(OperatorId) };
        let mut sending = Sending {
            line,
            id,
            by,
            stream,
            seq,
            bytes,
            room_until: ctx.now + ROOM_WAIT_MS,
            stage: Stage::Probing { until: 0 },
            heard: None,
            probed: None,
        };
        if self.streams.len() >= STREAMS_MAX {
            self.streams.clear();
        }
        let last = self.streams.get(&stream).copied();
        let is_new = last.is_none_or(|last| seq > last);
        self.streams.insert(stream, seq.max(last.unwrap_or(0)));
        if is_new && (last.is_some() || self.authority.state().restarts() == 0) {
            self.probe(ctx, &mut sending)?;
        } else {
            self.type_once(ctx, u64::MAX, stream, seq, b"")?;
            sending.stage = Stage::Before { until: ctx.now + WRITTEN_WAIT_MS };
        }
        self.sends.push(sending);
        Ok(())
    }

    fn probe(&mut self, ctx: &mut Ctx, sending: &mut Sending) -> Result<(), Crashed> {
        self.say(ctx, ToKeeper::Probe)?;
        self.probes.push_back((sending.stream, sending.seq));
        (sending.heard, sending.probed) = (None, None);
        sending.stage = Stage::Probing { until: ctx.now + PROBE_WAIT_MS };
        Ok(())
    }

    fn type_once(&mut self, ctx: &mut Ctx, fence: u64, stream: u64, seq: u64, bytes: &[u8]) -> Result<(), Crashed> {
        self.say(ctx, ToKeeper::Input { fence, stream, seq, bytes })
    }

    pub(super) fn answer_typed(&mut self, stream: u64, seq: u64, sent: Sent) {
        let waits = |s: &&mut Sending| matches!(s.stage, Stage::Before { .. } | Stage::Typing { .. });
        let sending = self.sends.iter_mut().filter(waits).find(|s| (s.stream, s.seq) == (stream, seq));
        if let Some(sending) = sending {
            sending.heard.get_or_insert(sent);
        }
    }

    pub(super) fn probed(&mut self, lflag: u32) {
        let Some(key) = self.probes.pop_front() else { return };
        let waits = |s: &&mut Sending| matches!(s.stage, Stage::Probing { .. }) && s.probed.is_none();
        if let Some(sending) = self.sends.iter_mut().filter(waits).find(|s| (s.stream, s.seq) == key) {
            sending.probed = Some(lflag);
        }
    }

    /// Whatever is under way goes a step on.
    pub(super) fn go_on_sending(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        for mut sending in std::mem::take(&mut self.sends) {
            match self.send_step(ctx, &mut sending)? {
                Step::Waits => self.sends.push(sending),
                Step::Done(answer) => {
                    self.reach()?;
                    ctx.lines[sending.line].answer(sending.id, answer);
                }
            }
        }
        Ok(())
    }

    fn send_step(&mut self, ctx: &mut Ctx, sending: &mut Sending) -> Result<Step, Crashed> {
        let now = ctx.now;
        match (sending.stage, sending.heard.take()) {
            (Stage::Before { .. }, Some(Sent::Written)) => {
                return Ok(Step::Done(Answer::Sent { fence: self.fence().0 }));
            }
            (Stage::Before { .. }, Some(Sent::Refused(_))) => self.probe(ctx, sending)?,
            (Stage::Before { until }, None) if until <= now => {
                self.streams.remove(&sending.stream);
                return Ok(Step::Done(Answer::Refused { code: "busy" }));
            }
            (Stage::Probing { until }, _) if sending.probed.is_some() || until <= now => {
                return self.allow_typing(ctx, sending);
            }
            (Stage::Typing { fence, .. }, Some(Sent::Written)) => return Ok(Step::Done(Answer::Sent { fence })),
            (Stage::Typing { fence, .. }, Some(Sent::Refused(refused::FULL))) if now < sending.room_until => {
                self.drain_log(ctx, true)?;
                sending.stage = Stage::Pausing { fence, until: now + FULL_PAUSE_MS };
            }
            (Stage::Typing { .. }, Some(Sent::Refused(refused::STALE))) if now < sending.room_until => {
                self.probe(ctx, sending)?;
            }
            (Stage::Typing { .. }, Some(Sent::Refused(_))) => {
                return Ok(Step::Done(Answer::Refused { code: "busy" }));
            }
            (Stage::Typing { fence, until }, None) if until <= now => return Ok(Step::Done(Answer::Sent { fence })),
            (Stage::Pausing { fence, until }, _) if until <= now => self.typing(ctx, sending, fence)?,
            (Stage::Before { .. } | Stage::Typing { .. } | Stage::Probing { .. } | Stage::Pausing { .. }, _) => {}
        }
        Ok(Step::Waits)
    }

    fn typing(&mut self, ctx: &mut Ctx, sending: &mut Sending, fence: u64) -> Result<(), Crashed> {
        self.type_once(ctx, fence, sending.stream, sending.seq, &sending.bytes)?;
        sending.stage = Stage::Typing { fence, until: ctx.now + WRITTEN_WAIT_MS };
        Ok(())
    }

    fn allow_typing(&mut self, ctx: &mut Ctx, sending: &mut Sending) -> Result<Step, Crashed> {
        let hidden = sending.probed.take().is_none_or(|lflag| lflag & ECHO == 0 && lflag & ICANON != 0);
        let at = self.ring.head();
        let keys = (!hidden).then(|| Keys(sending.bytes.clone()));
        let burst = Burst { from: at, to: at, len: sending.bytes.len() as u64, keys };
        match self.decide(ctx, Input::Typed { by: sending.by.clone(), fence: None, burst })? {
            Ok(Decided { reply, .. }) => {
                ctx.judge_recorded((sending.stream, sending.seq), &sending.bytes);
                let fence = match reply {
                    Reply::Turn { fence } => fence.0,
                    Reply::Done | Reply::Waiting { .. } | Reply::Granted(_) | Reply::Revoked(_) => self.fence().0,
                };
                self.typing(ctx, sending, fence)?;
                Ok(Step::Waits)
            }
            Err(refusal) => {
                ctx.counts.keys_refused += 1;
                Ok(Step::Done(Answer::Refused { code: refusal.code() }))
            }
        }
    }

    /// Takes, requests, withdraws, gives, releases, seizes, thaws, grants or revokes.
    pub(super) fn act(&mut self, ctx: &mut Ctx, who: Who, client: Option<u32>, ask: Ask) -> Result<Answer, Crashed> {
        let by = Caller { actor: who.actor(), operator: client.map(OperatorId) };
        let thawed = ask == Ask::Thaw;
        match self.decide(ctx, Input::Asked { by, ask, proof: None })? {
            Ok(decided) => {
                ctx.counts.acts += 1;
                ctx.counts.thaws += u64::from(thawed);
                if let Some(freeze) = decided.still {
                    self.still(ctx, freeze)?;
                    self.say_writer(ctx)?;
                }
                Ok(Answer::Acted)
            }
            Err(refusal) => Ok(Answer::Refused { code: refusal.code() }),
        }
    }

    /// Somebody lets a frozen session go on, so that a run can end.
    pub fn thaw(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        if self.is_frozen() {
            self.act(ctx, Who(0), None, Ask::Thaw)?;
        }
        Ok(())
    }

    /// As `Session::leave`.
    pub(super) fn leave(&mut self, ctx: &mut Ctx, who: Who, client: u32) -> Result<Answer, Crashed> {
        if !self.own_client(client, who) {
            return Ok(Answer::Refused { code: "not_attached" });
        }
        Ok(match self.decide(ctx, Input::Left { operator: OperatorId(client) })? {
            Ok(_) => Answer::Acted,
            Err(refusal) => Answer::Refused { code: refusal.code() },
        })
    }

    pub(super) fn own_client(&self, client: u32, who: Who) -> bool {
        self.clients.iter().any(|c| c.id == client && c.actor.as_ref() == Some(&who.actor()))
    }
}
