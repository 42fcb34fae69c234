//! `sessions` and `open_session`: what there is, and what shall be.

use super::views::Session;
use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::{Host, Wanted};
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_types::SessionName;
use holdfast_wire::lives::RecoverParams;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sessions in one answer: more than anybody reads.
const SESSIONS_MAX: usize = 200;

/// Which sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsIn {
    /// Ended ones too.
    #[serde(default)]
    all: bool,
}

/// Sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionsOut {
    /// Those you may observe.
    sessions: Vec<Session>,
    /// So many more are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

impl Shown for SessionsOut {
    fn text(&self) -> String {
        match self.sessions.as_slice() {
            [] => "no sessions: start one with `open_session` or `run_command`".into(),
            sessions => sessions.iter().map(Session::line).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// The tool.
pub struct Sessions;

impl Operate for Sessions {
    const NAME: &'static str = "sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Lists the live terminal sessions you may observe: name, command, directory, \
        who has the turn to type, who is attached. `overview` also shows what each is doing. Sessions have no owner \
        and outlive every client.";
    const HINTS: Hints = LOOKS;
    type In = SessionsIn;
    type Out = SessionsOut;

    async fn call<H: Host>(desk: &Desk<H>, input: SessionsIn) -> Result<SessionsOut, Trouble> {
        let views = desk.ask::<op::List>(ListParams { all: input.all }).await?;
        let more = views.len().checked_sub(SESSIONS_MAX).filter(|more| *more > 0);
        Ok(SessionsOut { sessions: views.iter().take(SESSIONS_MAX).map(Session::from).collect(), more })
    }
}

/// What to open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenIn {
    /// Its name: 1 to 64 of A-Z a-z 0-9 . _ -. Omitted: a generated name.
    #[serde(default)]
    name: Option<String>,
    /// Command and arguments, one item each. Omitted: your shell, which `run_command` needs.
    #[serde(default)]
    command: Vec<String>,
    /// The directory it starts in, as an absolute path.
    #[serde(default)]
    cwd: Option<String>,
    /// Variables to add to the usual environment.
    #[serde(default)]
    env_add: BTreeMap<String, String>,
}

/// A session that is there.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenOut {
    /// The session, as `sessions` lists it.
    #[schemars(with = "JsonObject")]
    session: Session,
    /// It was started by this call; otherwise it was there under that name already.
    created: bool,
}

impl Shown for OpenOut {
    fn text(&self) -> String {
        format!("{} {}", if self.created { "started" } else { "there already:" }, self.session.line())
    }
}

/// The tool.
pub struct Open;

impl Operate for Open {
    const NAME: &'static str = "open_session";
    const TITLE: &'static str = "Open a session";
    const DESCRIPTION: &'static str = "Starts a session with your shell or a command (server, REPL, editor), or finds \
        the live session of that name, or recovers a lost one. It keeps running when you disconnect, and ends with its command or by \
        `end_session`. Open a separate session for a server, so that your own shell stays free.";
    const HINTS: Hints = Hints { reads: false, destroys: false, once: false, open: true };
    type In = OpenIn;
    type Out = OpenOut;

    async fn call<H: Host>(desk: &Desk<H>, input: OpenIn) -> Result<OpenOut, Trouble> {
        let name = input.name.as_deref().map(str::parse::<SessionName>).transpose();
        let name = name.map_err(|error| Trouble::bad(error.to_string()))?;
        if let Some(name) = &name
            && let Ok(view) = desk.find(name.as_str()).await
            && view.name == *name
        {
            match view.life {
                Life::Running => return Ok(OpenOut { session: Session::from(&view), created: false }),
                Life::Lost => {
                    // Its command is run again only for a caller that names it.
                    let run = input.command == view.command;
                    let params = RecoverParams { session: view.id.to_string(), run, ..RecoverParams::default() };
                    let answer = desk.act::<op::Recover>(view.id, Ask::Recover { run }, params).await?;
                    return Ok(OpenOut { session: Session::from(&answer.session), created: answer.began });
                }
                Life::Ended | Life::Unknown | Life::Damaged => {}
            }
        }
        if let Some(odd) = input.env_add.keys().find(|key| key.is_empty() || key.contains('=')) {
            return Err(Trouble::bad(format!("invalid variable name {odd:?}")));
        }
        let env_add = input.env_add.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let view = desk.start(Wanted { name, command: input.command, cwd: input.cwd, env_add }).await?;
        Ok(OpenOut { session: Session::from(&view), created: true })
    }
}
