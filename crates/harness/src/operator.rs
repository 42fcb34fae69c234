//! An actor on a connection to one session: every act signed, every answer either given or a refusal's code.
#![allow(missing_docs)] // most methods are the operation whose name they have

use holdfast_authority::{Ask, GrantId, Revoke};
use holdfast_client::{CallError, Connection, Identity, Incoming};
use holdfast_types::{Actor, ActorId, Fence, Nonce, Proof, SessionId, Size, TimeMs};
use holdfast_wire::operations::op;
use holdfast_wire::params::{
    AttachAnswer, AttachParams, EndParams, ScreenParams, SendAnswer, SendParams, SessionParams, SessionView,
};
use holdfast_wire::turns::{
    GiveParams, GrantParams, GrantView, GrantsAnswer, RevokeAnswer, RevokeParams, SeizeAnswer, SeizeParams, TurnAnswer,
    TurnParams, TurnView,
};
use holdfast_wire::{Code, Fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

/// What came of a call.
pub type Heard<T> = Result<T, CallError>;

/// An actor, its connection, and the session it acts in.
pub struct Operator {
    pub who: Identity,
    pub link: Connection,
    pub session: SessionId,
    /// The attached client it acts through.
    pub client: Option<u32>,
    /// The nonce of the last signed act.
    pub nonce: Option<Nonce>,
    /// Its stream of typed messages, and the number of the last.
    pub stream: u64,
    pub seq: u64,
}

impl Operator {
    pub fn on(link: Connection, who: Identity, session: SessionId) -> Operator {
        // The challenge is random: as good a stream number as any.
        let stream = u64::from_le_bytes(link.hello().challenge.0[..8].try_into().unwrap());
        Operator { who, link, session, client: None, nonce: None, stream, seq: 0 }
    }

    pub fn actor(&self) -> Actor {
        self.who.actor().clone()
    }

    fn name(&self) -> String {
        self.session.to_string()
    }

    fn prove(&mut self, ask: &Ask) -> Option<Proof> {
        let proof = self.who.prove(self.session, ask);
        self.nonce = Some(proof.nonce);
        Some(proof)
    }

    fn turn_params(&mut self, ask: &Ask) -> TurnParams {
        TurnParams { session: self.name(), client: self.client, proof: self.prove(ask) }
    }

    pub fn take(&mut self) -> Heard<TurnAnswer> {
        let params = self.turn_params(&Ask::Take);
        self.link.call::<op::Take>(&params)
    }

    pub fn request(&mut self) -> Heard<TurnAnswer> {
        let params = self.turn_params(&Ask::Request);
        self.link.call::<op::Request>(&params)
    }

    pub fn withdraw(&mut self) -> Heard<TurnAnswer> {
        let params = self.turn_params(&Ask::Withdraw);
        self.link.call::<op::Withdraw>(&params)
    }

    pub fn release(&mut self) -> Heard<TurnAnswer> {
        let params = self.turn_params(&Ask::Release);
        self.link.call::<op::Release>(&params)
    }

    pub fn thaw(&mut self) -> Heard<TurnAnswer> {
        let params = self.turn_params(&Ask::Thaw);
        self.link.call::<op::Thaw>(&params)
    }

    pub fn give(&mut self, to: &Actor) -> Heard<TurnAnswer> {
        let proof = self.prove(&Ask::Give { to: to.clone() });
        let params = GiveParams { session: self.name(), client: self.client, to: to.clone(), proof };
        self.link.call::<op::Give>(&params)
    }

    pub fn seize(&mut self, freeze: bool) -> Heard<SeizeAnswer> {
        let reason = "a test".to_owned();
        let proof = self.prove(&Ask::Seize { freeze, reason: reason.clone() });
        let params = SeizeParams { session: self.name(), client: self.client, freeze, reason, proof };
        self.link.call::<op::Seize>(&params)
    }

    /// A seizure without a proof, for asking without waiting.
    pub fn seize_params(&self) -> SeizeParams {
        let (session, reason) = (self.name(), "a test".to_owned());
        SeizeParams { session, client: None, freeze: false, reason, proof: None }
    }

    pub fn turn(&mut self) -> Heard<TurnView> {
        let params = SessionParams { session: self.name() };
        self.link.call::<op::Turn>(&params)
    }

    pub fn view(&mut self) -> Heard<SessionView> {
        let params = SessionParams { session: self.name() };
        self.link.call::<op::Get>(&params)
    }

    pub fn grants(&mut self) -> Heard<GrantsAnswer> {
        let params = SessionParams { session: self.name() };
        self.link.call::<op::Grants>(&params)
    }

    pub fn grant(&mut self, to: &Actor, rights: &str, until: Option<TimeMs>) -> Heard<GrantView> {
        let rights = rights.parse().unwrap();
        let proof = self.prove(&Ask::Grant { to: to.clone(), rights, until });
        let params = GrantParams { session: self.name(), to: to.clone(), rights, until_ms: until, proof };
        self.link.call::<op::Grant>(&params)
    }

    pub fn revoke(&mut self, grant: u32) -> Heard<RevokeAnswer> {
        let proof = self.prove(&Ask::Revoke(Revoke::Grant(GrantId(grant))));
        let params = RevokeParams { session: self.name(), grant: Some(grant), actor: None, proof };
        self.link.call::<op::Revoke>(&params)
    }

    pub fn revoke_all_of(&mut self, actor: ActorId) -> Heard<RevokeAnswer> {
        let proof = self.prove(&Ask::Revoke(Revoke::Actor(actor)));
        let params = RevokeParams { session: self.name(), grant: None, actor: Some(actor), proof };
        self.link.call::<op::Revoke>(&params)
    }

    pub fn end(&mut self) -> Heard<SessionView> {
        let proof = self.prove(&Ask::End { grace_ms: 0 });
        let params = EndParams { session: self.name(), grace_ms: 0, proof };
        self.link.call::<op::End>(&params)
    }

    /// The parameters of the next message of this operator's stream.
    pub fn next_send(&mut self, bytes: &[u8], fence: Option<Fence>) -> SendParams {
        let seq = self.seq + 1;
        self.seq += bytes.len().div_ceil(4096).max(1) as u64;
        SendParams {
            session: self.name(),
            stream: self.stream,
            seq,
            client: self.client,
            fence,
            secret: false,
            force: false,
            in_order: false,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> Heard<SendAnswer> {
        self.send_under(bytes, None)
    }

    pub fn send_under(&mut self, bytes: &[u8], fence: Option<Fence>) -> Heard<SendAnswer> {
        let params = self.next_send(bytes, fence);
        self.link.call_with_bytes::<op::Send>(&params, bytes).map(|(answer, _)| answer)
    }

    pub fn screen(&mut self) -> String {
        let params = ScreenParams { session: self.name(), ansi: false, history: 0 };
        self.link.call::<op::Screen>(&params).map(|screen| screen.rows.join("\n")).unwrap_or_default()
    }

    /// Attaches as a terminal of the usual size, and acts through it from now on.
    pub fn attach(&mut self) -> Heard<AttachAnswer> {
        let params = AttachParams {
            session: self.name(),
            size: Size::default(),
            read_only: false,
            tty: String::new(),
            pid: 0,
            env: Vec::new(),
            resume: None,
            remote: false,
            sizes: false,
            draws: false,
        };
        let answer = self.link.call::<op::Attach>(&params)?;
        self.client = Some(answer.client);
        Ok(answer)
    }

    /// Waits for an event by its name; fails the test when it does not come in time.
    #[track_caller]
    pub fn hears(&mut self, wanted: &str) -> Value {
        self.waits_for(wanted, |incoming| match incoming {
            Incoming::Event { method, params, .. } => (method == wanted).then_some(params),
            Incoming::Answer { .. } => None,
        })
    }

    /// Waits for the answer to a request that was asked; fails the test when it does not come in time.
    #[track_caller]
    pub fn answered(&mut self, asked: u64) -> Result<Value, Fault> {
        self.waits_for("an answer", |incoming| match incoming {
            Incoming::Answer { id, result, .. } => (id == asked).then_some(result),
            Incoming::Event { .. } => None,
        })
    }

    #[track_caller]
    fn waits_for<T>(&mut self, what: &str, mut fits: impl FnMut(Incoming) -> Option<T>) -> T {
        let patience = Timespec { tv_sec: crate::wait::PATIENCE.as_secs() as i64, tv_nsec: 0 };
        loop {
            let mut ready = [PollFd::from_borrowed_fd(self.link.descriptor(), PollFlags::IN)];
            assert!(poll(&mut ready, Some(&patience)).unwrap() > 0, "waited in vain for {what}");
            if let Some(found) = self.link.receive_ready().unwrap().into_iter().find_map(&mut fits) {
                return found;
            }
        }
    }
}

/// The refusal, where it is one; none: the connection broke, and what came of it is not known.
pub fn refusal(error: &CallError) -> Option<&Fault> {
    match error {
        CallError::Fault(fault) => Some(fault),
        CallError::Broken(_) => None,
        CallError::Nonsense(what) => panic!("the host answers nonsense: {what}"),
    }
}

/// The code of a refusal that must have come.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(heard: Heard<T>) -> Code {
    match heard {
        Ok(answer) => panic!("it was allowed: {answer:?}"),
        Err(CallError::Fault(fault)) => fault.code,
        Err(error) => panic!("no answer: {error:?}"),
    }
}

/// A detail of a refusal: who has the turn, which rule denied it.
pub fn detail(fault: &Fault, pointer: &str) -> Option<String> {
    fault.details.as_ref()?.pointer(pointer)?.as_str().map(str::to_owned)
}
