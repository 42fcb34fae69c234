//! The host over HTTP: `/v1/…` and `/v1/openapi.json` from the one table of operations, `/v1/connect` with the whole protocol
//! over WebSocket, and events as they happen.
//!
//! Nothing here decides: every request becomes a [`Asked`] that the host answers on its own thread. What is checked here is
//! what comes before a question: that the page which asks is ours, that the token is there, that it is not too much.

mod bytes;
mod guard;
mod listen;
mod login;
mod metrics;
mod openapi;
mod pages;
mod patient;
mod refusal;
mod rest;
mod socket;
mod stream;
mod tools;

pub use listen::{Listen, Tls, bind, serve};
pub use metrics::serve_metrics;

use holdfast_wire::{Call, Code, Fault, Message};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// An answer and the bytes that belong to it; or why there is none.
pub type Answer = Result<(Value, Vec<u8>), Fault>;

/// What is asked of the host. A token is named by its id, which is no secret, and is judged anew with each question.
#[derive(Debug)]
pub enum Asked {
    /// Which token has this text.
    Check {
        /// The text.
        text: String,
        /// Its id.
        reply: oneshot::Sender<Result<String, Fault>>,
    },
    /// Whose a login code is.
    Whose {
        /// The code.
        code: String,
        /// The actor's handle.
        reply: oneshot::Sender<Result<String, Fault>>,
    },
    /// A login code, for a token's text. It serves once.
    Login {
        /// The code.
        code: String,
        /// The token's text.
        reply: oneshot::Sender<Result<String, Fault>>,
    },
    /// A browser signs out.
    Logout {
        /// Who.
        token: String,
    },
    /// One operation.
    Call {
        /// Who asks.
        token: String,
        /// What.
        call: Box<Call>,
        /// Bytes that belong to it.
        bytes: Vec<u8>,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// A connection that speaks the whole protocol. Its messages are boxed: a channel has room for dozens, and most connections are
    /// idle.
    Connect {
        /// Who speaks.
        token: String,
        /// What it says.
        incoming: mpsc::Receiver<Box<Message>>,
        /// What it gets.
        outgoing: mpsc::Sender<Box<Message>>,
    },
}

/// Where to ask. Any thread may.
#[derive(Debug, Clone)]
pub struct Handle(mpsc::Sender<Asked>);

impl Handle {
    /// A handle, and what the host reads from it.
    #[must_use]
    pub fn new() -> (Handle, mpsc::Receiver<Asked>) {
        // Small: a client that asks faster than the host answers waits here.
        let (sender, receiver) = mpsc::channel(64);
        (Handle(sender), receiver)
    }

    /// The id of the token with this text.
    pub async fn check(&self, text: String) -> Result<String, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Check { text, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    async fn whose(&self, code: String) -> Result<String, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Whose { code, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    async fn login(&self, code: String) -> Result<String, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Login { code, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    async fn logout(&self, token: String) -> Result<(), Fault> {
        self.0.send(Asked::Logout { token }).await.map_err(|_| gone())
    }

    /// Asks one operation.
    pub async fn call(&self, token: &str, call: Call, bytes: Vec<u8>) -> Answer {
        let (reply, answer) = oneshot::channel();
        let asked = Asked::Call { token: token.to_owned(), call: Box::new(call), bytes, reply };
        self.0.send(asked).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    async fn connect(
        &self,
        token: String,
        incoming: mpsc::Receiver<Box<Message>>,
        outgoing: mpsc::Sender<Box<Message>>,
    ) -> Result<(), Fault> {
        self.0.send(Asked::Connect { token, incoming, outgoing }).await.map_err(|_| gone())
    }
}

fn gone() -> Fault {
    Fault::new(Code::Stopping, "the host is going away")
        .hint("its sessions keep running; try again, and the next host answers")
}
