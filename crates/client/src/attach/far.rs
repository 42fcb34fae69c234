//! A session on another machine, as its keeper and its ring would look from here.
//!
//! The attached terminal speaks to a keeper and copies from a ring. Here both are played from what the host pushes: output
//! events fill a small buffer in the ring's place, keys go to the host under the fence the terminal has, and everything a keeper
//! would say is said from that. The buffer holds no more than was granted to the host, so a slow terminal holds nothing back but
//! itself: what the host's ring has lost by then is a gap, and a fresh paint.
//!
//! Knows no terminal and keeps nothing over a broken connection: the next one follows from where the buffer ends.

use crate::connection::Connection;
use holdfast_abi::protocol::{FromKeeper, ToKeeper, refused};
use holdfast_abi::ring::Copied;
use holdfast_types::{Exit, Fence, Offset, SessionId, Size};
use holdfast_wire::attention::Until;
use holdfast_wire::follow::{CreditParams, FollowParams, OutputEvent, UnfollowParams};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, SendParams, SessionParams, SessionView, WaitParams};
use holdfast_wire::{Code, Fault};
use serde_json::Value;
use std::collections::VecDeque;

/// Output that may be under way: a second of a fast line, little enough that Ctrl-C shows at once.
const WINDOW_BYTES: u64 = 512 * 1024;

/// How long is waited before output is followed again that has ended while its session runs: a host that has just come needs a moment to
/// reach the keeper.
const AGAIN_MS: u64 = 250;

/// What a keeper would do.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Send this frame.
    Frame(Vec<u8>),
    /// Be gone; with an exit the session has ended.
    Gone {
        /// How it ended.
        exit: Option<Exit>,
        /// Where its output ends.
        head: Offset,
    },
}

/// Keys that the host was asked to type.
#[derive(Debug)]
struct Typing {
    /// The request's id.
    id: u64,
    fence: u64,
    stream: u64,
    seq: u64,
}

/// The other machine's keeper and ring.
#[derive(Debug)]
pub struct Far {
    session: SessionId,
    /// The client's number at the host.
    client: u32,
    /// Output that was not consumed yet, and where it begins.
    output: VecDeque<u8>,
    start: Offset,
    size: Size,
    /// The number under which output comes; each connection and each new place begins another.
    follow: u32,
    is_followed: bool,
    /// The terminal sleeps at the first offset, and is woken at the second.
    sleeps: Option<(Offset, Offset)>,
    /// Keys under way.
    typing: Option<Typing>,
    /// The request that tells how the session ended.
    ending: Option<u64>,
    /// The request whose answer ends a pause, behind which output is followed again.
    pausing: Option<u64>,
    said: VecDeque<Said>,
}

impl Far {
    /// From where the terminal was painted.
    pub fn new(session: SessionId, client: u32, offset: Offset, size: Size) -> Far {
        Far {
            session,
            client,
            output: VecDeque::new(),
            start: offset,
            size,
            follow: 0,
            is_followed: false,
            sleeps: None,
            typing: None,
            ending: None,
            pausing: None,
            said: VecDeque::new(),
        }
    }

    /// What the keeper says next.
    pub fn take_said(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    fn head(&self) -> Offset {
        self.start + self.output.len() as u64
    }

    fn say(&mut self, frame: FromKeeper<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.said.push_back(Said::Frame(bytes));
    }

    /// Copies output as from a ring.
    pub fn copy(&mut self, at: Offset, into: &mut [u8]) -> Copied {
        if at < self.start {
            return Copied::Lapped { oldest: self.start };
        }
        if at > self.head() {
            return Copied::Ahead { newest: self.head() };
        }
        let skip = (at - self.start) as usize;
        let count = into.len().min(self.output.len() - skip);
        let (front, back) = self.output.as_slices();
        let from_front = front.get(skip..).unwrap_or_default();
        let first = from_front.len().min(count);
        into[..first].copy_from_slice(&from_front[..first]);
        let rest = skip.saturating_sub(front.len());
        into[first..count].copy_from_slice(&back[rest..rest + count - first]);
        Copied::Bytes(count)
    }

    /// The terminal tells the keeper something.
    pub fn tell(&mut self, frame: &[u8], host: Option<&mut Connection>) {
        match ToKeeper::decode(frame) {
            Ok(ToKeeper::Follow { position, .. }) => self.follow_from(position, host),
            Ok(ToKeeper::Ack { position }) => self.consumed(position, host),
            Ok(ToKeeper::Sleep { position, wake_at }) => {
                self.consumed(position, host);
                self.sleeps = Some((position, wake_at));
                self.wake();
            }
            // Its path is a terminal of this machine.
            Ok(ToKeeper::Tty { .. }) => {
                self.say(FromKeeper::Refused { code: refused::TTY, fence: 0, stream: 0, seq: 0 })
            }
            Ok(ToKeeper::TtyBack) => {
                self.say(FromKeeper::Keys { bytes: b"" });
                if let Some((position, _)) = self.sleeps.take() {
                    self.say(FromKeeper::Wake { position });
                }
            }
            Ok(ToKeeper::Input { fence, stream, seq, bytes }) => self.type_keys(fence, (stream, seq), bytes, host),
            // Nothing else is a client's to say.
            Ok(_) | Err(_) => {}
        }
    }

    fn wake(&mut self) {
        if let Some((position, wake_at)) = self.sleeps
            && self.head() >= wake_at
        {
            self.sleeps = None;
            self.say(FromKeeper::Wake { position });
        }
    }

    /// Everything before is on the terminal: the host may send as much again.
    fn consumed(&mut self, position: Offset, host: Option<&mut Connection>) {
        let count = position.saturating_sub(self.start).min(self.output.len() as u64);
        self.output.drain(..count as usize);
        self.start += count;
        if let Some(host) = host.filter(|_| count > 0 && self.is_followed) {
            // A connection that is broken says so when it is read.
            let _ = host.ask::<op::Credit>(&CreditParams { follow: self.follow, bytes: count }, &[]);
        }
    }

    fn follow_from(&mut self, position: Offset, host: Option<&mut Connection>) {
        if self.is_followed && (self.start..=self.head()).contains(&position) {
            return self.consumed(position, host);
        }
        self.output.clear();
        self.start = position;
        let Some(host) = host else { return };
        if self.is_followed {
            let _ = host.ask::<op::Unfollow>(&UnfollowParams { follow: self.follow }, &[]);
        }
        self.follow_on(host);
    }

    /// Follows from where the buffer ends.
    fn follow_on(&mut self, host: &mut Connection) {
        self.follow += 1;
        let credit = WINDOW_BYTES.saturating_sub(self.output.len() as u64);
        let (session, from) = (self.session.to_string(), Some(self.head()));
        let params = FollowParams { session, follow: self.follow, from, credit };
        self.is_followed = host.ask::<op::Follow>(&params, &[]).is_ok();
    }

    fn type_keys(&mut self, fence: u64, (stream, seq): (u64, u64), bytes: &[u8], host: Option<&mut Connection>) {
        let params = SendParams {
            session: self.session.to_string(),
            stream,
            seq,
            client: Some(self.client),
            fence: Some(Fence(fence)),
            secret: false,
            force: false,
            in_order: false,
        };
        if let Some(id) = host.and_then(|host| host.ask::<op::Send>(&params, bytes).ok()) {
            self.typing = Some(Typing { id, fence, stream, seq });
        }
    }

    /// The connection is gone: nothing comes until the next one.
    pub fn lost(&mut self) {
        (self.is_followed, self.typing, self.ending, self.pausing) = (false, None, None, None);
    }

    /// Another connection knows this client by another number.
    pub fn back(&mut self, client: u32, host: &mut Connection) {
        self.client = client;
        self.follow_on(host);
    }

    /// The host pushed output.
    pub fn pushed(&mut self, event: OutputEvent, bytes: &[u8], host: &mut Connection) {
        if event.follow != self.follow || !self.is_followed {
            return;
        }
        // A host that sends more than it was granted is not believed to send what follows, either.
        let is_too_much = self.output.len() + bytes.len() > WINDOW_BYTES as usize;
        if event.from != self.head() || is_too_much {
            // A gap: the terminal finds itself lapped, and is painted. What it never sees is not under way any more.
            let unseen = self.output.len() as u64 + if is_too_much { bytes.len() as u64 } else { 0 };
            let _ = host.ask::<op::Credit>(&CreditParams { follow: self.follow, bytes: unseen }, &[]);
            self.output.clear();
            self.start = event.from;
        }
        let bytes = if is_too_much { &[] } else { bytes };
        if event.size != self.size {
            self.size = event.size;
            self.say(FromKeeper::Resized { head: event.from, cols: event.size.cols(), rows: event.size.rows() });
        }
        self.output.extend(bytes);
        self.wake();
        let is_over = event.end || event.fault.as_ref().is_some_and(|fault| fault.code != Code::Stopping);
        if is_over {
            self.is_followed = false;
            let session = self.session.to_string();
            self.ending = host.ask::<op::Get>(&SessionParams { session }, &[]).ok();
        }
    }

    /// The host answered; true where this is what it was asked.
    pub fn answered(&mut self, id: u64, result: &Result<Value, Fault>, host: &mut Connection) -> bool {
        if let Some(Typing { fence, stream, seq, .. }) = self.typing.take_if(|typing| typing.id == id) {
            let head = self.head();
            match result {
                Ok(_) => self.say(FromKeeper::Written { stream, seq, head }),
                Err(fault) => {
                    let code = if fault.code == Code::Busy { refused::FULL } else { refused::STALE };
                    // Whoever is refused asks the host without a fence, and hears who has the turn.
                    self.say(FromKeeper::Refused { code, fence, stream, seq });
                }
            }
            return true;
        }
        if self.pausing.take_if(|asked| *asked == id).is_some() {
            // Whatever it says: how the session stands is asked again if its output still does not come.
            if !self.is_followed {
                self.follow_on(host);
            }
            return true;
        }
        if self.ending.take_if(|asked| *asked == id).is_some() {
            self.told_ending(result, host);
            return true;
        }
        false
    }

    /// How the session stands whose output has ended.
    fn told_ending(&mut self, result: &Result<Value, Fault>, host: &mut Connection) {
        let view = result.as_ref().ok().and_then(|value| serde_json::from_value::<SessionView>(value.clone()).ok());
        let exit = match view {
            // A host that has just come has not reached the keeper yet. It does the waiting: nothing here has a clock.
            Some(view) if view.life == Life::Running => {
                let (session, until) = (self.session.to_string(), Until::Exit);
                let pause = WaitParams { session, timeout_ms: Some(AGAIN_MS), until };
                self.pausing = host.ask::<op::Wait>(&pause, &[]).ok();
                return;
            }
            Some(view) => Some(view.exit.unwrap_or(Exit::Lost)),
            None => None,
        };
        let head = self.head();
        self.said.push_back(Said::Gone { exit, head });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far() -> Far {
        Far::new(SessionId::from_random_bits(1), 1, 100, Size::default())
    }

    fn said(far: &mut Far) -> Vec<Said> {
        std::iter::from_fn(|| far.take_said()).collect()
    }

    fn frame(frame: FromKeeper<'_>) -> Said {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        Said::Frame(bytes)
    }

    fn tell(far: &mut Far, frame: ToKeeper<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        far.tell(&bytes, None);
    }

    #[test]
    fn output_is_copied_as_from_a_ring_and_gone_once_it_is_consumed() {
        let mut far = far();
        far.output.extend(b"abcdef");
        let mut into = [0; 4];
        assert!(matches!(far.copy(99, &mut into), Copied::Lapped { oldest: 100 }));
        assert!(matches!(far.copy(107, &mut into), Copied::Ahead { .. }));
        assert!(matches!(far.copy(101, &mut into), Copied::Bytes(4)));
        assert_eq!(&into, b"bcde");
        tell(&mut far, ToKeeper::Ack { position: 104 });
        assert!(matches!(far.copy(103, &mut into), Copied::Lapped { oldest: 104 }));
        assert!(matches!(far.copy(104, &mut into), Copied::Bytes(2)));
        assert!(matches!(far.copy(106, &mut into), Copied::Bytes(0)));
        // The buffer goes around its end.
        far.output = VecDeque::with_capacity(8);
        far.output.extend(b"12345678");
        far.output.drain(..6);
        far.output.extend(b"abcd");
        let mut all = [0; 8];
        assert!(matches!(far.copy(104, &mut all), Copied::Bytes(6)));
        assert_eq!(&all[..6], b"78abcd");
        assert!(matches!(far.copy(107, &mut all), Copied::Bytes(3)));
        assert_eq!(&all[..3], b"bcd");
    }

    #[test]
    fn who_sleeps_is_woken_by_output_and_by_asking_for_the_terminal() {
        let mut far = far();
        tell(&mut far, ToKeeper::Sleep { position: 100, wake_at: 101 });
        assert!(said(&mut far).is_empty());
        far.output.extend(b"x");
        far.wake();
        assert_eq!(said(&mut far), [frame(FromKeeper::Wake { position: 100 })]);
        tell(&mut far, ToKeeper::Sleep { position: 100, wake_at: 101 });
        assert_eq!(said(&mut far), [frame(FromKeeper::Wake { position: 100 })], "there is some already");
        tell(&mut far, ToKeeper::Sleep { position: 101, wake_at: 102 });
        tell(&mut far, ToKeeper::TtyBack);
        let woken = [frame(FromKeeper::Keys { bytes: b"" }), frame(FromKeeper::Wake { position: 101 })];
        assert_eq!(said(&mut far), woken);
    }

    #[test]
    fn the_keys_of_a_terminal_here_stay_here() {
        let mut far = far();
        tell(&mut far, ToKeeper::Tty { flags: 1, path: b"/dev/pts/1", patterns: [b""; 8] });
        let refusal = FromKeeper::Refused { code: refused::TTY, fence: 0, stream: 0, seq: 0 };
        assert_eq!(said(&mut far), [frame(refusal)]);
    }
}
