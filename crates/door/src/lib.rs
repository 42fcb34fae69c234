//! How a host is asked from inside its own process: by whatever serves it over HTTP or as tools, on any thread.
//!
//! A question is put into a channel that the host reads on its own thread, and the answer comes back. Nothing here decides
//! anything, and nothing here knows a socket, a session or a key. Who asks is a [`Speaker`], which the host judges anew with
//! each question: a token may have ended since.

mod speaker;

pub use speaker::{Cap, Path, Speaker};

use holdfast_types::Actor;
use holdfast_wire::{Call, Code, Fault, Message};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::sync::{mpsc, oneshot};

/// An answer and the bytes that belong to it; or why there is none.
pub type Answer = Result<(Value, Vec<u8>), Fault>;

/// How a token is shown.
#[derive(Debug)]
pub enum Shown {
    /// By its text.
    Text(String),
    /// By a browser.
    Browser {
        /// The cookie's content.
        cookie: String,
        /// What the page answered to the host's challenge.
        page: String,
    },
}

/// What a browser has in place of a token's text.
#[derive(Debug, PartialEq, Eq)]
pub struct Browser {
    /// Goes into a cookie: a browser sends it to whatever listens at this port.
    pub cookie: String,
    /// Stays with the page, which sends it to nobody.
    pub key: String,
}

/// What a page is asked before it is let in.
#[derive(Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The question.
    pub challenge: String,
    /// That who asks knows the page's key.
    pub proof: String,
}

/// A port of a session, for who may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The session's id.
    pub session: String,
    /// Where a process of it listens now; none: nobody does.
    pub address: Option<SocketAddr>,
}

/// What is asked of the host.
#[derive(Debug)]
pub enum Asked {
    /// Who shows a token.
    Check {
        /// How.
        shown: Shown,
        /// The actor, and what caps it.
        reply: oneshot::Sender<Result<(Actor, Cap), Fault>>,
    },
    /// Whose a login code is.
    Whose {
        /// The code.
        code: String,
        /// The actor's handle.
        reply: oneshot::Sender<Result<String, Fault>>,
    },
    /// A login code, for what a browser shows from then on. It serves once.
    Login {
        /// The code.
        code: String,
        /// What the browser gets.
        reply: oneshot::Sender<Result<Browser, Fault>>,
    },
    /// A browser logs in with a token that it was lent.
    Lend {
        /// Whose token, as it was shown.
        by: Speaker,
        /// What the browser gets.
        reply: oneshot::Sender<Result<Browser, Fault>>,
    },
    /// A browser's page asks whether this is its host.
    Challenge {
        /// The cookie's content.
        cookie: String,
        /// What the page drew at random.
        nonce: String,
        /// The host's proof, and what the page is asked.
        reply: oneshot::Sender<Result<Challenge, Fault>>,
    },
    /// A browser signs out.
    Logout {
        /// Who.
        by: Speaker,
    },
    /// Where a port of a session's processes can be reached.
    Reach {
        /// Who wants to.
        by: Speaker,
        /// Name or id.
        session: String,
        /// The port.
        port: u16,
        /// Somebody opens it now, which the host notes.
        opens: bool,
        /// Which session that is, and where; none: nothing listens there now.
        reply: oneshot::Sender<Result<Reached, Fault>>,
    },
    /// One operation.
    Call {
        /// Who asks.
        by: Speaker,
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
        by: Speaker,
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

    /// Who shows this token, by this path.
    pub async fn check(&self, shown: Shown, path: fn(Cap) -> Path) -> Result<Speaker, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Check { shown, reply }).await.map_err(|_| gone())?;
        let (actor, cap) = answer.await.map_err(|_| gone())??;
        Ok(Speaker { actor, path: path(cap) })
    }

    /// Whose a login code is.
    pub async fn whose(&self, code: String) -> Result<String, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Whose { code, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// What a browser gets for a login code. It serves once.
    pub async fn login(&self, code: String) -> Result<Browser, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Login { code, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// What a browser gets for a token that it was lent.
    pub async fn lend(&self, by: Speaker) -> Result<Browser, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Lend { by, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// The host's proof for a browser's page, and what the page is asked.
    pub async fn challenge(&self, cookie: String, nonce: String) -> Result<Challenge, Fault> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Challenge { cookie, nonce, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// A browser signs out.
    pub async fn logout(&self, by: Speaker) -> Result<(), Fault> {
        self.0.send(Asked::Logout { by }).await.map_err(|_| gone())
    }

    /// Where a session's port can be reached, by who may type there.
    pub async fn reach(&self, by: &Speaker, session: &str, port: u16, opens: bool) -> Result<Reached, Fault> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked::Reach { by: by.clone(), session: session.to_owned(), port, opens, reply };
        self.0.send(asked).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Asks one operation.
    pub async fn call(&self, by: &Speaker, call: Call, bytes: Vec<u8>) -> Answer {
        let (reply, answer) = oneshot::channel();
        let asked = Asked::Call { by: by.clone(), call: Box::new(call), bytes, reply };
        self.0.send(asked).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Opens a connection that speaks the whole protocol.
    pub async fn connect(
        &self,
        by: Speaker,
        incoming: mpsc::Receiver<Box<Message>>,
        outgoing: mpsc::Sender<Box<Message>>,
    ) -> Result<(), Fault> {
        self.0.send(Asked::Connect { by, incoming, outgoing }).await.map_err(|_| gone())
    }
}

fn gone() -> Fault {
    Fault::new(Code::Stopping, "the host is going away")
        .hint("its sessions keep running; try again, and the next host answers")
}
