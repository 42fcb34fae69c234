//! `session.follow`: output that is pushed to clients behind the host.
//!
//! Each has a task of its own that sends what the ring has, as far as the client has granted and its connection has taken. Nobody
//! waits for a slow client: the ring goes on, and what it has overwritten is told as a gap. One that grants nothing is not woken.

use crate::connection::{Connection, Unread, internal};
use crate::serve::Server;
use crate::session::{Session, event, fault};
use holdfast_authority::{Refusal, Rule};
use holdfast_types::{Actor, Offset, Right, Size};
use holdfast_wire::follow::{CreditParams, FollowParams, OutputEvent, UnfollowParams};
use holdfast_wire::params::ReadAnswer;
use holdfast_wire::{Call, Code, Fault, Message};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

/// Sessions that one connection follows: a page that shows a hundred of them small asks for their screens instead.
const FOLLOWS_MAX: usize = 64;
/// Bytes of one event: a few screens, little enough that an answer does not wait long behind it.
const PUSH_BYTES_MAX: usize = 64 * 1024;
/// What may wait for a connection before no more output is pushed to it, whatever was granted.
const UNREAD_BYTES_MAX: usize = 256 * 1024;

/// What a connection follows.
#[derive(Debug, Default)]
pub(crate) struct Follows(RefCell<BTreeMap<u32, Follow>>);

/// Ends with what holds it.
#[derive(Debug)]
struct Follow {
    credit: Rc<Credit>,
    task: AbortHandle,
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follows {
    /// Nobody hears of it any more.
    pub fn end(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Bytes that may be sent.
#[derive(Debug, Default)]
struct Credit {
    bytes: Cell<u64>,
    more: Notify,
}

impl Credit {
    fn grant(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        self.more.notify_one();
    }

    fn spend(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes as u64));
    }

    /// How much may be sent, once that is something.
    async fn some(&self) -> usize {
        loop {
            match usize::try_from(self.bytes.get()) {
                Ok(0) => self.more.notified().await,
                bytes => return bytes.unwrap_or(usize::MAX),
            }
        }
    }
}

impl Server {
    /// Begins, renews or ends it.
    pub(crate) fn answer_follow(&self, call: &Call, actor: Actor, connection: &Connection) -> Result<(), Fault> {
        let follows = &connection.follows.0;
        let unknown = |number: u32| {
            Fault::new(Code::NotFound, format!("this connection follows nothing under the number {number}"))
        };
        match call {
            Call::Follow(params) => self.follow(params, actor, connection),
            Call::Credit(CreditParams { follow, bytes }) => {
                follows.borrow().get(follow).ok_or_else(|| unknown(*follow))?.credit.grant(*bytes);
                Ok(())
            }
            Call::Unfollow(UnfollowParams { follow }) => {
                follows.borrow_mut().remove(follow).map(drop).ok_or_else(|| unknown(*follow))
            }
            other => Err(Fault::new(Code::Internal, format!("{} follows nothing", other.row().name))),
        }
    }

    fn follow(&self, params: &FollowParams, actor: Actor, connection: &Connection) -> Result<(), Fault> {
        let session = self.registry.find_for(&params.session, &actor, Right::Observe)?;
        let mut follows = connection.follows.0.borrow_mut();
        follows.retain(|_, follow| !follow.task.is_finished());
        if follows.contains_key(&params.follow) {
            return Err(Fault::new(Code::BadRequest, format!("`follow`: {} is used already", params.follow))
                .hint("take another number"));
        }
        if follows.len() >= FOLLOWS_MAX {
            return Err(Fault::new(Code::TooMany, format!("this connection follows {FOLLOWS_MAX} sessions already"))
                .hint("end one with `session.unfollow`, or use another connection"));
        }
        // What cannot be read is refused now.
        let (first, _) = session.read_now(params.from, 0)?;
        let credit = Rc::<Credit>::default();
        credit.grant(params.credit);
        let (out, unread) = connection.way();
        let push = Push {
            follow: params.follow,
            from: params.from.unwrap_or(first.from),
            size: first.size,
            session,
            actor,
            credit: Rc::clone(&credit),
            out,
            unread,
        };
        let task = tokio::task::spawn_local(push.all()).abort_handle();
        follows.insert(params.follow, Follow { credit, task });
        Ok(())
    }
}

/// One client's way through a session's output.
struct Push {
    follow: u32,
    session: Rc<Session>,
    actor: Actor,
    /// What comes next.
    from: Offset,
    /// The size the client was told.
    size: Size,
    credit: Rc<Credit>,
    out: UnboundedSender<Box<Message>>,
    unread: Rc<Unread>,
}

impl Push {
    async fn all(mut self) {
        while self.next().await {}
    }

    /// Sends the next piece, once there is one and it may be sent. False: it was the last.
    async fn next(&mut self) -> bool {
        let credit = self.credit.some().await;
        self.unread.until_at_most(UNREAD_BYTES_MAX).await;
        self.session.until_output(self.from, self.size, None).await;
        let (read, bytes) = match self.read(credit.min(PUSH_BYTES_MAX)) {
            Ok(read) => read,
            Err(fault) => {
                self.send(self.from, None, Some(fault), Vec::new());
                return false;
            }
        };
        self.credit.spend(bytes.len());
        self.size = read.size;
        let end = read.end;
        self.from = read.to;
        self.send(read.from, Some(read), None, bytes);
        !end
    }

    /// What is there now, for who may still see it.
    fn read(&self, max: usize) -> Result<(ReadAnswer, Vec<u8>), Fault> {
        if !self.session.rights(&self.actor).has(Right::Observe) {
            return Err(fault(&Refusal::Denied { right: Right::Observe, rule: Rule::Envelope }));
        }
        self.session.read_now(Some(self.from), max)
    }

    fn send(&self, from: Offset, read: Option<ReadAnswer>, fault: Option<Fault>, bytes: Vec<u8>) {
        let (gap, end) = read.map_or((None, false), |read| (read.gap, read.end));
        let told = OutputEvent { follow: self.follow, gap, from, to: self.from, size: self.size, end, fault };
        let mut message = event(&told);
        message.bytes = bytes;
        self.unread.sent(&message);
        let _ = self.out.send(message);
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Whoever runs into a fault of ours is told, instead of waiting for ever.
            self.send(self.from, None, Some(internal()), Vec::new());
        }
    }
}
