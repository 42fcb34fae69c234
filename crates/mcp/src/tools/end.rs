//! `end_session`: a session that is no longer needed.

use super::{Hints, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_wire::operations::op;
use holdfast_wire::params::EndParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From SIGHUP to SIGKILL: enough for a server to close its files.
const GRACE_MS: u32 = 5_000;

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndIn {
    /// Name or id of the session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
}

/// A session that is ending.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndOut {
    /// The session.
    session: String,
}

impl Shown for EndOut {
    fn text(&self) -> String {
        format!("{} and everything in it is ending; its output can still be read", self.session)
    }
}

/// The tool.
pub struct End;

impl Operate for End {
    const NAME: &'static str = "end_session";
    const TITLE: &'static str = "End a session";
    const DESCRIPTION: &'static str = "Ends a session and every process in it: your own, or one that you opened and no \
        longer need. Leave what others opened. Its output can still be read for a while.";
    const HINTS: Hints = Hints { reads: false, destroys: true, once: true, open: false };
    type In = EndIn;
    type Out = EndOut;

    async fn call<H: Host>(desk: &Desk<H>, input: EndIn) -> Result<EndOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?;
        let params = EndParams { session: session.id.to_string(), grace_ms: GRACE_MS, proof: None };
        desk.act::<op::End>(session.id, Ask::End { grace_ms: GRACE_MS }, params).await?;
        Ok(EndOut { session: session.name.to_string() })
    }
}
