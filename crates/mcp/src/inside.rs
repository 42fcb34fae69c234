//! The tools inside a host's own process, over HTTP: each request has its speaker.

use crate::host::{Host, Wanted};
use holdfast_door::{Handle, Speaker};
use holdfast_wire::{Call, Code, Fault};
use http::request::Parts;
use rmcp::model::Extensions;
use serde_json::{Value, json};

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

    fn own_name(&self) -> String {
        self.speaker.as_ref().map_or_else(|| "agent".into(), |speaker| speaker.actor.handle.name().to_owned())
    }

    fn of(&self, request: &Extensions) -> Result<Inside, Fault> {
        let speaker = request.get::<Parts>().and_then(|parts| parts.extensions.get::<Speaker>());
        Ok(Inside { handle: self.handle.clone(), speaker: Some(speaker.ok_or_else(nobody)?.clone()) })
    }
}

fn nobody() -> Fault {
    Fault::new(Code::Unidentified, "nobody said who asks")
}
