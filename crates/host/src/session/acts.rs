//! Acting on a session: typing, renaming, detaching, ending, waiting for its end.

use super::{Session, Typed};
use holdfast_abi::protocol::{INPUT_BYTES_MAX, ToKeeper, refused};
use holdfast_types::SessionName;
use holdfast_wire::params::{
    DetachParams, DetachedEvent, EndParams, Life, SendAnswer, SendParams, WaitAnswer, WaitParams,
};
use holdfast_wire::{Body, Code, Fault, Message};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long typed bytes may wait for a program that does not read before we say so.
const WRITTEN_WAIT: Duration = Duration::from_secs(5);
/// How long a full queue is waited for.
const ROOM_WAIT: Duration = Duration::from_secs(5);
/// A client that was told to detach and did not is cut off after this long.
const DETACH_WAIT: Duration = Duration::from_millis(1000);
/// What a keeper needs beyond the grace to see the whole tree dead.
const END_WAIT: Duration = Duration::from_secs(10);

impl Session {
    /// Types bytes into the session, exactly once per stream and seq.
    pub async fn send(&self, params: &SendParams, bytes: &[u8]) -> Result<SendAnswer, Fault> {
        self.running().await?;
        let mut answer = SendAnswer { at: 0, written: true };
        for (n, chunk) in bytes.chunks(INPUT_BYTES_MAX).enumerate() {
            answer = self.send_chunk(params.stream, params.seq + n as u64, chunk).await?;
        }
        Ok(answer)
    }

    async fn send_chunk(&self, stream: u64, seq: u64, bytes: &[u8]) -> Result<SendAnswer, Fault> {
        let room_until = Instant::now() + ROOM_WAIT;
        loop {
            let link = self.running().await?;
            let (done, typed) = oneshot::channel();
            let fence = {
                let mut state = self.state.borrow_mut();
                state.typed.insert((stream, seq), done);
                state.fence.0
            };
            link.send(ToKeeper::Input { fence, stream, seq, bytes }).map_err(|e| self.keeper_failed(&e))?;
            match tokio::time::timeout(WRITTEN_WAIT, typed).await {
                Ok(Ok(Typed::Written(at))) => return Ok(SendAnswer { at, written: true }),
                Ok(Ok(Typed::Refused(refused::FULL))) if Instant::now() < room_until => {
                    // The log or the queue has no room: make some, then try the same seq again.
                    self.drain_log(&link).map_err(|e| self.keeper_failed(&e))?;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Ok(Ok(Typed::Refused(refused::STALE | refused::WRITER))) if Instant::now() < room_until => {}
                Ok(Ok(Typed::Refused(code))) => {
                    return Err(Fault::new(Code::Busy, format!("{} takes no input now (code {code})", self.name()))
                        .hint("its program does not read; try again, or interrupt it with --key C-c"));
                }
                Ok(Err(_)) => {
                    self.running().await?;
                    return Err(
                        Fault::new(Code::Busy, "the keeper went away while typing").hint("send the same seq again")
                    );
                }
                Err(_) => {
                    self.state.borrow_mut().typed.remove(&(stream, seq));
                    let at = self.state.borrow().ring.as_ref().map_or(0, holdfast_abi::ring::Ring::head);
                    return Ok(SendAnswer { at, written: false });
                }
            }
        }
    }

    /// Gives it another name; the caller has checked that the name is free.
    pub fn rename(&self, name: SessionName) -> Result<(), Fault> {
        let mut state = self.state.borrow_mut();
        let mut spec = state.spec.clone();
        spec.name = name;
        spec.save(&self.dir)
            .map_err(|error| Fault::new(Code::Internal, format!("the new name could not be saved: {error}")))?;
        state.spec = spec;
        Ok(())
    }

    /// Tells clients to let go of their terminals; gives their numbers.
    pub fn detach(self: &Rc<Self>, params: &DetachParams) -> Result<Vec<u32>, Fault> {
        let mut detached = Vec::new();
        let mut connections = Vec::new();
        for client in self.state.borrow().clients.iter() {
            if params.client.is_some_and(|only| only != client.id) {
                continue;
            }
            detached.push(client.id);
            connections.extend(client.connection);
            if let Some((_, events)) = &client.peer {
                let params =
                    serde_json::to_value(DetachedEvent { client: client.id }).expect("numbers always serialise");
                let _ = events.send(Message::plain(Body::Event { method: "detached".into(), params }));
            }
        }
        if let (Some(only), true) = (params.client, detached.is_empty()) {
            return Err(Fault::new(Code::NotFound, format!("no client {only} is attached to {}", self.name()))
                .hint(format!("see who is: holdfast info {}", self.name())));
        }
        let session = Rc::clone(self);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(DETACH_WAIT).await;
            if let Some(link) = session.link() {
                for connection in connections {
                    let _ = link.send(ToKeeper::Expel { connection });
                }
            }
        });
        Ok(detached)
    }

    /// Ends the whole tree and waits until it is gone.
    pub async fn end(&self, params: &EndParams) -> Result<(), Fault> {
        let link = self.running().await?;
        link.send(ToKeeper::End { grace_ms: params.grace_ms }).map_err(|e| self.keeper_failed(&e))?;
        let limit = Duration::from_millis(u64::from(params.grace_ms)) + END_WAIT;
        self.until(Some(limit), || (!self.is_live()).then_some(())).await.ok_or_else(|| {
            Fault::new(Code::Busy, format!("{} has processes that do not die", self.name()))
                .hint("they may be another user's, or stuck in the kernel: see `ps`")
        })
    }

    /// Waits until the command has ended.
    pub async fn wait(&self, params: &WaitParams) -> WaitAnswer {
        let limit = params.timeout_ms.map(Duration::from_millis);
        let exit = self
            .until(limit, || {
                let state = self.state.borrow();
                (state.life != Life::Running).then_some(state.spec.exit)
            })
            .await;
        WaitAnswer { exit: exit.flatten() }
    }

    /// A client's connection to the host is gone; it may still follow its keeper and come back.
    pub fn peer_gone(&self, peer: u64) {
        let mut never_joined = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let ids: Vec<u32> = state
                .clients
                .iter()
                .filter(|c| c.peer.as_ref().is_some_and(|(id, _)| *id == peer))
                .map(|c| c.id)
                .collect();
            for id in ids {
                if let Some(client) = state.clients.get(id) {
                    client.peer = None;
                    if client.connection.is_none() {
                        never_joined.push(id);
                    }
                }
            }
            for id in &never_joined {
                state.clients.remove(*id, Some(0));
            }
            if !never_joined.is_empty() {
                state.timers.rearm = Some(Instant::now());
            }
        }
        if !never_joined.is_empty() {
            self.nudge.notify_one();
            self.appoint();
        }
    }
}
