//! The tools inside a host's own process, over HTTP: each request has its speaker.

use crate::host::{Claim, Host, Wanted};
use holdfast_door::{Handle, Speaker};
use holdfast_types::SessionId;
use holdfast_wire::{Call, Code, Fault};
use http::request::Parts;
use rmcp::model::Extensions;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The host, in the name of whoever sent a request. Who that is, its [`Speaker`], is in the request's extensions.
#[derive(Debug, Clone)]
pub struct Inside {
    handle: Handle,
    speaker: Option<Speaker>,
}

impl Inside {
    /// In nobody's name, until there is a request.
    #[must_use]
    pub fn new(handle: Handle) -> Inside {
        Inside { handle, speaker: None }
    }
}

impl Host for Inside {
    async fn call(&self, method: &str, params: Value, bytes: Vec<u8>) -> Result<(Value, Vec<u8>), Fault> {
        let speaker = self.speaker.as_ref().ok_or_else(nobody)?;
        self.handle.call(speaker, Call::decode(method, params)?, bytes).await
    }

    async fn settle(&self, wanted: Wanted) -> Result<Value, Fault> {
        let Wanted { name, command, cwd, env_add } = wanted;
        // What is not said is the host's user's.
        Ok(json!({ "name": name, "command": command, "cwd": cwd, "env_add": env_add }))
    }

    fn claim(&self, session: SessionId, connected: bool) -> Option<Claim> {
        if !connected {
            return Some(Box::new(()));
        }
        let is_free = claimed().insert(session);
        is_free.then(|| Box::new(Claimed(session)) as Claim)
    }

    fn own_name(&self) -> String {
        self.speaker.as_ref().map_or_else(|| "agent".into(), |speaker| speaker.actor.handle.name().to_owned())
    }

    fn of(&self, request: &Extensions) -> Result<Inside, Fault> {
        let speaker = request.get::<Parts>().and_then(|parts| parts.extensions.get::<Speaker>());
        Ok(Inside { handle: self.handle.clone(), speaker: Some(speaker.ok_or_else(nobody)?.clone()) })
    }
}

/// Sessions that are the own of somebody who is connected to this host.
static CLAIMED: Mutex<BTreeSet<SessionId>> = Mutex::new(BTreeSet::new());

fn claimed() -> MutexGuard<'static, BTreeSet<SessionId>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Claimed(SessionId);

impl Drop for Claimed {
    fn drop(&mut self) {
        claimed().remove(&self.0);
    }
}

fn nobody() -> Fault {
    Fault::new(Code::Unidentified, "nobody said who asks")
}
