//! What a tool works with: the host in its caller's name, the caller's own session, and where to report progress.

use crate::host::{Claim, Host, Wanted, act, ask, ask_with_bytes};
use crate::trouble::Trouble;
use holdfast_authority::Ask;
use holdfast_types::{SessionId, SessionName};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionParams, SessionView};
use holdfast_wire::{Code, Fault, Operation};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long one question waits at the host before it is asked again: a request that the client dropped is soon over.
pub const ASK_MS: u64 = 20_000;
/// The same if progress is reported: as often as it is worth a line.
const TOLD_MS: u64 = 1_000;
/// Names tried for a session of one's own.
const NAMES_MAX: u32 = 100;
/// Names tried for one that is started ahead: more are not waited for by one actor.
const AHEAD_NAMES_MAX: u32 = 8;

/// In shells that are started for agents nothing waits for a key to show its next page.
const PAGERS: [&str; 2] = ["PAGER=cat", "GIT_PAGER=cat"];

/// What a connection has of its own.
#[derive(Default)]
pub struct Own {
    /// The session of commands that name none, once it was needed.
    session: Mutex<Option<Mine>>,
    /// Who runs something in a session by this connection; the others wait in line.
    lines: std::sync::Mutex<HashMap<SessionId, Arc<Mutex<()>>>>,
    /// There was a handshake: it is one connection as long as this lives.
    pub connected: AtomicBool,
}

/// A session, and whose it is: over HTTP another actor may come.
struct Mine {
    whose: String,
    id: SessionId,
    _claim: Claim,
}

/// One call of a tool.
pub struct Desk<H> {
    /// Whom to ask.
    pub host: H,
    /// The caller's own session.
    pub own: Arc<Own>,
    /// Where to report progress, if the caller wants it.
    pub progress: Option<Progress>,
}

/// Where to report progress.
pub struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    since: Instant,
}

impl Progress {
    /// To this client, under its token.
    pub fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Progress {
        Progress { peer, token, since: Instant::now() }
    }
}

impl<H: Host> Desk<H> {
    /// Asks one thing.
    pub async fn ask<O: Operation>(&self, params: O::Params) -> Result<O::Answer, Trouble>
    where
        O::Params: Send,
    {
        Ok(ask::<O>(&self.host, params).await?)
    }

    /// Asks with bytes.
    pub async fn ask_with_bytes<O: Operation>(
        &self,
        params: O::Params,
        bytes: Vec<u8>,
    ) -> Result<(O::Answer, Vec<u8>), Trouble>
    where
        O::Params: Send,
    {
        Ok(ask_with_bytes::<O>(&self.host, params, bytes).await?)
    }

    /// Asks for an act.
    pub async fn act<O: Operation>(&self, session: SessionId, ask: Ask, params: O::Params) -> Result<O::Answer, Trouble>
    where
        O::Params: Send,
    {
        Ok(act::<O>(&self.host, session, ask, params).await?)
    }

    /// One session by name or id. Its id is used from there on: a name may go to another.
    pub async fn find(&self, session: &str) -> Result<SessionView, Trouble> {
        self.ask::<op::Get>(SessionParams { session: session.to_owned() }).await
    }

    /// A session by name or id; none: the caller's own, which is started where it is not there.
    pub async fn find_or_own(&self, session: Option<&str>) -> Result<SessionView, Trouble> {
        match session {
            Some(session) => self.find(session).await,
            None => Ok(self.own(true).await?.0),
        }
    }

    /// The same for a command, and whether the caller's own shell is another than before; refused where it must be the `same`.
    pub async fn find_or_own_for(&self, session: Option<&str>, same: bool) -> Result<(SessionView, bool), Trouble> {
        match session {
            Some(session) => Ok((self.find(session).await?, false)),
            None => match self.own(!same).await {
                Err(gone) if same && gone.code == "not_found" && self.had_one().await => Err(restarted()),
                Ok((_, true)) if same => Err(restarted()),
                Err(gone) if same && gone.code == "not_found" => self.own(true).await,
                other => other,
            },
        }
    }

    /// Where calls of this connection wait for each other that run something in a session.
    pub fn line(&self, session: SessionId) -> Arc<Mutex<()>> {
        let mut lines = self.own.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|id, line| *id == session || Arc::strong_count(line) > 1);
        Arc::clone(lines.entry(session).or_default())
    }

    /// A session by name or id; none: the caller's own, if it is there. For what only looks.
    pub async fn find_or_there(&self, session: Option<&str>) -> Result<SessionView, Trouble> {
        match session {
            Some(session) => self.find(session).await,
            None => Ok(self.own(false).await?.0),
        }
    }

    /// The caller's own session, if it has one; whether it lives, nobody looks.
    pub async fn mine(&self) -> Option<SessionId> {
        let own = self.own.session.lock().await;
        own.as_ref().filter(|mine| mine.whose == self.host.own_name()).map(|mine| mine.id)
    }

    /// Starts the caller's own shell before it is needed, unless it left one behind that it will find again.
    pub async fn start_ahead(&self) -> Result<(), Trouble> {
        // The first command waits for this, and has that shell.
        let own = self.own.session.lock().await;
        if own.is_some() {
            return Ok(());
        }
        let (name, sessions, there) = self.own_sessions().await?;
        if there.iter().any(|view| self.claim(view.id).is_some()) {
            return Ok(());
        }
        for name in free_names(&name, &sessions, AHEAD_NAMES_MAX) {
            match self.start_as(Wanted { name: name.parse().ok(), ..Wanted::default() }, true).await {
                Err(taken) if taken.code == "name_taken" => {}
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    /// The caller has had a session of its own.
    async fn had_one(&self) -> bool {
        self.own.session.lock().await.is_some()
    }

    /// The caller's own session, and whether it is in place of one that ended.
    async fn own(&self, start: bool) -> Result<(SessionView, bool), Trouble> {
        let mut own = self.own.session.lock().await;
        let whose = self.host.own_name();
        let mut restarted = false;
        if let Some(mine) = own.as_ref().filter(|mine| mine.whose == whose) {
            restarted = true;
            match self.find(&mine.id.to_string()).await {
                Ok(view) if view.life == Life::Running => return Ok((view, false)),
                Ok(_) => {}
                Err(gone) if gone.code == "not_found" => {}
                Err(error) => return Err(error),
            }
        }
        let (view, claim) = self.find_or_start_own(start).await?;
        *own = Some(Mine { whose, id: view.id, _claim: claim });
        Ok((view, restarted))
    }

    fn claim(&self, session: SessionId) -> Option<Claim> {
        self.host.claim(session, self.own.connected.load(Ordering::Relaxed))
    }

    /// The caller's session of an earlier connection, if it was started in the same directory and no live connection has it; else
    /// a new one.
    async fn find_or_start_own(&self, start: bool) -> Result<(SessionView, Claim), Trouble> {
        let (name, sessions, there) = self.own_sessions().await?;
        if let Some(found) = there.iter().find_map(|view| self.claim(view.id).map(|claim| (view.clone(), claim))) {
            return Ok(found);
        }
        if !start {
            return Err(Trouble::new("not_found", "you have no session yet")
                .hint("Start one with `run_command`; `overview` shows the others."));
        }
        for name in free_names(&name, &sessions, NAMES_MAX) {
            match self.start(Wanted { name: name.parse().ok(), ..Wanted::default() }).await {
                Err(taken) if taken.code == "name_taken" => {}
                Err(error) => return Err(error),
                Ok(view) => {
                    // Another connection cannot have it before us, but for one that came this moment.
                    let claim = self.claim(view.id).unwrap_or_else(|| Box::new(()));
                    return Ok((view, claim));
                }
            }
        }
        Err(Trouble::new("name_taken", format!("{name} and {NAMES_MAX} more names are taken"))
            .hint("Give a session name."))
    }

    /// What the caller's own sessions are called, all sessions there are, and those of them that are its own and in its directory.
    async fn own_sessions(&self) -> Result<(String, Vec<SessionView>, Vec<SessionView>), Trouble> {
        let name = near(&self.host.own_name());
        let params = self.host.settle(Wanted::default()).await?;
        let sessions = self.ask::<op::List>(ListParams::default()).await?;
        let is_own = |view: &&SessionView| view.life == Life::Running && is_numbered(view.name.as_str(), &name);
        // What the host chooses by itself cannot be compared: there the name decides.
        let fits = |view: &&SessionView| params["cwd"].as_str().is_none_or(|cwd| view.cwd == cwd);
        let there = sessions.iter().filter(is_own).filter(fits).cloned().collect();
        Ok((name, sessions, there))
    }

    /// Starts a session.
    pub async fn start(&self, wanted: Wanted) -> Result<SessionView, Trouble> {
        self.start_as(wanted, false).await
    }

    async fn start_as(&self, mut wanted: Wanted, ahead: bool) -> Result<SessionView, Trouble> {
        if wanted.command.is_empty() {
            let said = std::mem::take(&mut wanted.env_add);
            wanted.env_add = PAGERS.map(str::to_owned).into_iter().chain(said).collect();
        }
        let mut params = self.host.settle(wanted).await?;
        if ahead {
            params["ahead"] = true.into();
        }
        let (view, _) = self.host.call(<op::New as Operation>::ROW.name, params, Vec::new()).await?;
        Ok(serde_json::from_value(view).map_err(|error| Fault::new(Code::Internal, error.to_string()))?)
    }

    /// How long the next question may wait, of what is left until a moment.
    pub fn ask_ms(&self, until: Instant) -> u64 {
        let most = if self.progress.is_some() { TOLD_MS } else { ASK_MS };
        left_ms(until).min(most)
    }

    /// Tells how far it is, to who wants to know.
    pub async fn tell(&self, message: impl FnOnce() -> String) {
        let Some(progress) = &self.progress else { return };
        let seconds = progress.since.elapsed().as_secs_f64();
        let note = ProgressNotificationParam::new(progress.token.clone(), seconds).with_message(message());
        // Who is gone needs no progress.
        let _ = progress.peer.notify_progress(note).await;
    }
}

fn restarted() -> Trouble {
    Trouble::new("shell_restarted", "your shell has ended; nothing was run")
        .hint("Its directory, variables and jobs are gone. Run again without `same_shell` for a new shell.")
}

/// Milliseconds until a moment.
pub fn left_ms(until: Instant) -> u64 {
    until.saturating_duration_since(Instant::now()).as_millis() as u64
}

/// The moment so many milliseconds from now.
pub fn in_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

/// The nearest valid name of a session.
fn near(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' })
        .take(48)
        .collect();
    let name = name.trim_start_matches('-');
    match name.parse::<SessionName>() {
        Ok(name) => name.as_str().to_owned(),
        Err(_) => "agent".into(),
    }
}

/// This name, or this one with a number behind it, as far as nobody has them.
fn free_names<'a>(base: &'a str, taken: &'a [SessionView], max: u32) -> impl Iterator<Item = String> + 'a {
    let numbered = move |number| if number == 1 { base.to_owned() } else { format!("{base}-{number}") };
    (1..=max).map(numbered).filter(|name| !taken.iter().any(|view| view.name.as_str() == name))
}

/// Whether a name is this one, or this one with a number behind it.
fn is_numbered(name: &str, base: &str) -> bool {
    let rest = name.strip_prefix(base);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_name_for_its_session() {
        for (client, name) in
            [("claude-code", "claude-code"), ("Visual Studio Code", "Visual-Studio-Code"), ("--", "agent")]
        {
            assert_eq!(near(client), name);
        }
        assert_eq!(near("ses_x"), "agent");
        assert!(near(&"x".repeat(200)).len() <= 64);
    }

    #[test]
    fn a_sessions_name_may_have_a_number_behind_it() {
        assert!(is_numbered("bot", "bot") && is_numbered("bot-2", "bot"));
        assert!(!is_numbered("bot-x", "bot") && !is_numbered("bottle", "bot") && !is_numbered("b", "bot"));
    }
}
