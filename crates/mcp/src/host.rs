//! What the tools ask of a host, and how.

use holdfast_authority::Ask;
use holdfast_types::{SessionId, SessionName};
use holdfast_wire::{Code, Fault, Operation};
use rmcp::model::Extensions;
use serde_json::Value;
use std::future::Future;

/// A way to ask a host in the name of one actor.
pub trait Host: Clone + Send + Sync + 'static {
    /// Asks one thing, with bytes, and gives the answer with its bytes. An answer that was lost on the way is asked for again
    /// where that is harmless.
    fn call(
        &self,
        method: &str,
        params: Value,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<(Value, Vec<u8>), Fault>> + Send;

    /// Asks for an act in a session. Who has the actor's key signs it, into the parameters' `proof`.
    fn act(
        &self,
        session: SessionId,
        ask: Ask,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, Fault>> + Send {
        let _ = (session, ask);
        async move { Ok(self.call(method, params, Vec::new()).await?.0) }
    }

    /// What `session.new` is asked with for such a session: shell, directory and environment where nothing is said.
    fn settle(&self, wanted: Wanted) -> impl Future<Output = Result<Value, Fault>> + Send;

    /// What the actor's own session is called, where it names none.
    fn own_name(&self) -> String;

    /// Makes a session this connection's own as long as what is given back lives; none: it is another live one's. Without a
    /// connection, as over HTTP without a handshake, sessions are the actor's.
    fn claim(&self, session: SessionId, connected: bool) -> Option<Claim> {
        let _ = (session, connected);
        Some(Box::new(()))
    }

    /// Whether a shell may be started before it is needed: a host is there, and knows when this connection ends.
    fn can_start_ahead(&self) -> bool {
        false
    }

    /// Receives the client's name before anything is asked in its name. The first one counts.
    fn meet(&self, client: &Client) {
        let _ = client;
    }

    /// Whether tools for flows are listed: where there are none, what clients put before every conversation is shorter. They work all the
    /// same.
    fn has_flows(&self) -> bool {
        true
    }

    /// The machine its sessions are on, where that is not the client's.
    fn machine(&self) -> Option<String> {
        None
    }

    /// The same host for background requests: if no host is running, they start none.
    fn quietly(&self) -> Self {
        self.clone()
    }

    /// The same host in the name of who sent this request: over HTTP each request says so itself.
    fn of(&self, request: &Extensions) -> Result<Self, Fault> {
        let _ = request;
        Ok(self.clone())
    }
}

/// Keeps other connections from a session while it lives.
pub type Claim = Box<dyn std::any::Any + Send + Sync>;

/// A program that speaks the Model Context Protocol, as it calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A session that is to be started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its name; none: the host picks one.
    pub name: Option<SessionName>,
    /// Command and arguments; none: a shell.
    pub command: Vec<String>,
    /// Where it starts; none: where the client is.
    pub cwd: Option<String>,
    /// Variables on top of the usual ones, `K=V` each.
    pub env_add: Vec<String>,
}

/// Asks one thing by its type.
pub async fn ask<O: Operation>(host: &impl Host, params: O::Params) -> Result<O::Answer, Fault>
where
    O::Params: Send,
{
    Ok(ask_with_bytes::<O>(host, params, Vec::new()).await?.0)
}

/// Asks with bytes, and gives the answer with its bytes.
pub async fn ask_with_bytes<O: Operation>(
    host: &impl Host,
    params: O::Params,
    bytes: Vec<u8>,
) -> Result<(O::Answer, Vec<u8>), Fault>
where
    O::Params: Send,
{
    let params = serde_json::to_value(&params).map_err(nonsense::<O>)?;
    let (answer, bytes) = host.call(O::ROW.name, params, bytes).await?;
    Ok((serde_json::from_value(answer).map_err(nonsense::<O>)?, bytes))
}

/// Asks for an act by its type, signed where the host can.
pub(crate) async fn act<O: Operation>(
    host: &impl Host,
    session: SessionId,
    ask: Ask,
    params: O::Params,
) -> Result<O::Answer, Fault>
where
    O::Params: Send,
{
    let params = serde_json::to_value(&params).map_err(nonsense::<O>)?;
    let answer = host.act(session, ask, O::ROW.name, params).await?;
    serde_json::from_value(answer).map_err(nonsense::<O>)
}

fn nonsense<O: Operation>(error: serde_json::Error) -> Fault {
    Fault::new(Code::Internal, format!("{}: {error}", O::ROW.name))
}
