//! Where the process at the other end of the host's socket comes from: whether a person may be at its keys.
//!
//! A process inside a session's tree, or below an agent, is no human unasked, whatever its environment and its terminal are: an
//! agent can clear the one and make the other. What counts is what the kernel says of it and of those above it. The limit: a
//! process that has another program of the same user start it for it (a service manager, `ssh localhost`) is below neither.

use crate::connection::Connection;
use crate::off_thread;
use crate::questions::Question;
use crate::serve::Server;
use crate::session::Session;
use holdfast_authority::identity::marker;
use holdfast_graph::ProcessId;
use holdfast_observe::ancestry::{self, Peer};
use holdfast_types::{Actor, ActorClass, SessionId};
use holdfast_wire::hello::Inside;
use holdfast_wire::questions::{QuestionAnswer, QuestionId, QuestionState, QuestionWithdrawParams};
use holdfast_wire::{Code, Fault};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

mod remembered;

/// Deeper than anybody starts programs; what is deeper is not trusted.
const ANCESTORS_MAX: usize = 128;
/// As much of a process's environment as is read: several times what shells have.
const VARIABLES_BYTES_MAX: u64 = 256 * 1024;
/// The name of keepers: also of those of other homes, and of sessions that this host could not take up. No other program can
/// give a keeper another name, and whatever calls itself so is a human's no longer.
const KEEPER: &str = "holdfast-keeper";
/// How long a person has to confirm: enough to read it and press two keys.
const CONFIRM_MS: u64 = 60_000;
/// Characters of what a process runs that are shown to who confirms it: the question must fit a terminal's last line.
const WORD_CHARS_MAX: usize = 10;

/// Where a process comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whence {
    /// From neither a session nor an agent.
    Outside,
    /// From a session, perhaps one of this host's; or from an agent; or from both.
    Inside { session: Option<SessionId>, agent: Option<String> },
    /// It is gone, or what is above it cannot be read.
    Unknown,
}

/// What the host knows of processes.
#[derive(Debug, Default)]
struct Known {
    keepers: HashMap<ProcessId, SessionId>,
    /// Processes that speak as agents, and the agents' names.
    agents: HashMap<ProcessId, String>,
}

impl Known {
    /// Looks at a process and at those above it.
    fn look(&self, peer: &Peer, top: Option<u32>) -> Whence {
        let Some(above) = ancestry::ancestors(peer.id(), ANCESTORS_MAX) else { return Whence::Unknown };
        let (mut is_inside, mut session, mut agent) = (false, None, None);
        // What this host started itself, by its user's configuration, is no session's.
        let own = |pid: u32| pid == std::process::id() || Some(pid) == top;
        for process in above.iter().take_while(|process| !own(process.pid)) {
            let id = process.id();
            let keeps = self.keepers.get(&id).copied();
            let marked = || {
                let variables = ancestry::variables(id.pid, VARIABLES_BYTES_MAX)?;
                marker(variables.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            };
            is_inside = is_inside || keeps.is_some() || ancestry::name(id.pid).is_some_and(|name| name == KEEPER);
            session = session.or(keeps);
            agent = agent.or_else(|| self.agents.get(&id).cloned()).or_else(marked);
        }
        match (is_inside, &agent) {
            // While it runs its pid is its own: what was read is of it.
            _ if !peer.is_there() => Whence::Unknown,
            (false, None) => Whence::Outside,
            (true, _) | (false, Some(_)) => Whence::Inside { session, agent },
        }
    }
}

/// The process from which on upwards nothing is looked at: a test may itself be run by an agent. Release builds have none.
fn top() -> Option<u32> {
    let said = || std::env::var(holdfast_pause::TOP).ok()?.parse().ok();
    if cfg!(debug_assertions) { said() } else { None }
}

/// Sessions in which somebody is being asked to confirm who they are, and what of it is remembered.
#[derive(Debug, Default)]
pub(crate) struct Confirming(RefCell<BTreeSet<SessionId>>, remembered::Memory);

struct Asked<'a>(&'a Confirming, SessionId);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().remove(&self.1);
    }
}

impl Server {
    /// Where the process of a connection comes from; looked at once.
    pub(crate) async fn whence(&self, connection: &Connection) -> Whence {
        connection.whence.get_or_init(|| self.look_whence(connection.process.clone())).await.clone()
    }

    /// The same as soon as it says hello, with what may be remembered of its place: who it is then follows without a wait, and with
    /// it what it asks.
    pub(crate) async fn come_from(&self, connection: &Connection) -> Whence {
        let whence = self.whence(connection).await;
        self.shell(connection, &whence).await;
        whence
    }

    async fn look_whence(&self, peer: Option<Arc<Peer>>) -> Whence {
        let Some(peer) = peer else { return Whence::Unknown };
        let keepers = self.registry.shared.own.keepers();
        let speakers = self.presence.agents();
        let looked = off_thread(move || {
            let mut agents = HashMap::new();
            for (process, name, was_started) in speakers {
                // The program behind a server of tools started it, and starts others.
                let behind = was_started.then(|| ancestry::parent_of(process)).flatten();
                agents.extend(behind.map(|behind| (behind, name.clone())));
                agents.insert(process, name);
            }
            Ok(Known { keepers, agents }.look(&peer, top()))
        });
        looked.await.unwrap_or(Whence::Unknown)
    }

    /// The session's own shell, if this connection is of a command that it runs, and of nothing else there; looked for once.
    pub(crate) async fn shell(&self, connection: &Connection, whence: &Whence) -> Option<ProcessId> {
        match whence {
            Whence::Inside { session: Some(id), agent: None } => {
                *connection.shell.get_or_init(|| self.look_for_shell(connection, *id)).await
            }
            Whence::Outside | Whence::Unknown | Whence::Inside { .. } => None,
        }
    }

    async fn look_for_shell(&self, connection: &Connection, session: SessionId) -> Option<ProcessId> {
        let own = &self.registry.shared.own;
        let keeper = own.keepers().into_iter().find(|(_, kept)| *kept == session).map(|(keeper, _)| keeper)?;
        let (peer, spared) = (connection.process.clone()?, own.spared());
        off_thread(move || Ok(remembered::shell_of(&peer, keeper, &spared))).await.ok().flatten()
    }

    /// As it is told to the process itself.
    pub(crate) fn inside(&self, whence: &Whence) -> Option<Inside> {
        match whence {
            Whence::Outside => None,
            Whence::Unknown => Some(Inside::default()),
            Whence::Inside { session, agent: Some(agent) } if session.is_none() => {
                Some(Inside { session: None, agent: Some(agent.clone()) })
            }
            Whence::Inside { session, agent } => {
                let name =
                    session.and_then(|id| self.registry.find(&id.to_string()).ok()).map(|session| session.name());
                Some(Inside { session: Some(name.unwrap_or_default()), agent: agent.clone() })
            }
        }
    }

    /// Whether a connection may speak as this actor: no human is taken at its word where no person is known to be.
    pub(crate) async fn must_be_a_place_of(
        &self,
        actor: &Actor,
        connection: &Connection,
        confirm: bool,
    ) -> Result<(), Fault> {
        if actor.handle.class() != ActorClass::Human {
            return Ok(());
        }
        let whence = self.whence(connection).await;
        let refused = |why: &str| {
            Fault::new(Code::Unconfirmed, format!("{why}: that {} is at its keys is not confirmed", actor.handle))
        };
        let (why, session) = match &whence {
            Whence::Outside => return Ok(()),
            Whence::Unknown => ("where this process comes from is not known".to_owned(), None),
            Whence::Inside { session: Some(id), .. } => {
                let session = self.registry.find(&id.to_string()).ok();
                let name = session.as_ref().map(|session| session.name()).unwrap_or_default();
                (format!("this process runs inside session {name}"), session)
            }
            Whence::Inside { agent: Some(agent), .. } => (format!("the agent {agent} started this process"), None),
            Whence::Inside { session: None, agent: None } => ("this process runs inside a session".to_owned(), None),
        };
        let Some(session) = session.filter(|session| session.is_live()) else {
            return Err(refused(&why).hint("a person acts from a terminal of their own"));
        };
        let shell = self.shell(connection, &whence).await.filter(|_| remembered::has_turn(actor, &session.turn()));
        let knows = |shell| self.confirming.1.knows(session.id, actor, shell, &session.turn(), crate::now().clock_ms);
        if shell.is_some_and(knows) {
            return Ok(());
        }
        if !confirm {
            let hint = format!("if you are {0}: use --as {0}, and confirm it from a terminal outside", actor.handle);
            return Err(refused(&why).hint(hint));
        }
        if !self.confirming.0.borrow_mut().insert(session.id) {
            return Err(refused(&why).hint("another process there is waiting to be confirmed; answer that one first"));
        }
        let _asked = Asked(&self.confirming, session.id);
        let pid = connection.process.as_ref().map_or(0, |process| process.id().pid);
        let answer = self.ask_who(&session, actor, pid, shell.is_some()).await?;
        match answer {
            Some(answer) if answer.by == *actor && matches!(answer.option, Some(1 | 2)) => {
                tracing::info!(session = %session.id, pid, "{actor} confirmed to be at a process inside");
                if answer.option == Some(2)
                    && let Some(shell) = self.look_for_shell(connection, session.id).await
                {
                    let (memory, now_ms) = (&self.confirming.1, crate::now().clock_ms);
                    memory.remember(session.id, actor, shell, &session.turn(), now_ms);
                }
                Ok(())
            }
            Some(answer) if answer.by != *actor => {
                Err(refused(&why).hint(format!("{} answered; only {} can confirm it", answer.by.handle, actor.handle)))
            }
            Some(_) | None => Err(refused(&why)),
        }
    }

    /// Asks a person in the session whether they are at a process of it.
    async fn ask_who(
        &self,
        session: &Session,
        actor: &Actor,
        pid: u32,
        may_count_on: bool,
    ) -> Result<Option<QuestionAnswer>, Fault> {
        let id = QuestionId::from_random_bits(u128::from_le_bytes(crate::random_token()));
        let asked_ms = crate::now_ms();
        let text = format!("are you pid {pid} ({})?", word(pid));
        let counts_on = may_count_on && remembered::fits(session.view().size.cols(), actor, &text);
        let options = ["no", "yes"].into_iter().chain(counts_on.then_some(remembered::FOR_A_WHILE));
        let question = Question {
            id,
            by: actor.clone(),
            text,
            options: options.map(str::to_owned).collect(),
            key: None,
            asked_ms,
            expires_at_ms: Some(asked_ms.saturating_add(CONFIRM_MS)),
            state: QuestionState::Open,
            answer: None,
            withdrawn_by: None,
        };
        session.ask_humans(question, &self.registry.shared.policy())?;
        crate::connection::while_asked(session.question_over(id, CONFIRM_MS)).await;
        // Where the asker has gone nobody needs to answer any more; where it is over this changes nothing.
        let _ = session.withdraw_question(&QuestionWithdrawParams { question: id }, actor);
        Ok(session.question(id).and_then(|question| question.answer))
    }
}

/// What a process runs, in a word, for who confirms it. The process chose it: the pid is what counts.
fn word(pid: u32) -> String {
    let words = ancestry::words(pid, 1024);
    let mut rest = words.iter().skip(1).peekable();
    while let Some(option) = rest.next_if(|word| word.starts_with('-')) {
        if matches!(option.as_str(), "--as" | "--home") {
            rest.next();
        }
    }
    let word = rest.next().or(words.first()).map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let plain: String = word.chars().filter(|c| c.is_ascii_graphic()).take(WORD_CHARS_MAX).collect();
    if plain.is_empty() { "?".into() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_the_host_itself_started_is_outside_and_what_is_gone_is_unknown() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(theirs).unwrap();
        assert_eq!(Known::default().look(&peer, None), Whence::Outside, "this process stands for the host here");
    }

    #[test]
    fn a_process_below_a_keeper_or_an_agent_is_inside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let script = "import os,socket,sys\nif os.fork(): os.wait(); sys.exit()\n\
            s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)";
        let mut above = std::process::Command::new("python3");
        above.args(["-c", script]).arg(&path).env_clear().env("PATH", "/usr/bin:/bin");
        let mut above = above.spawn().unwrap();
        let stream = listener.accept().unwrap().0;
        let peer = Peer::of(&stream).unwrap();
        let process = holdfast_observe::process_id(above.id()).unwrap();
        let session = SessionId::from_random_bits(1);
        let look = |known: Known| known.look(&peer, None);
        assert_eq!(look(Known::default()), Whence::Outside);
        let keeper = Known { keepers: HashMap::from([(process, session)]), ..Known::default() };
        assert_eq!(look(keeper), Whence::Inside { session: Some(session), agent: None });
        let agent = Known { agents: HashMap::from([(process, "bot".into())]), ..Known::default() };
        assert_eq!(look(agent), Whence::Inside { session: None, agent: Some("bot".into()) });
        let another = ProcessId { start: process.start + 1, ..process };
        let agent = Known { agents: HashMap::from([(another, "bot".into())]), ..Known::default() };
        assert_eq!(look(agent), Whence::Outside, "another process that had this pid");
        drop(stream);
        above.wait().unwrap();
        assert_eq!(look(Known::default()), Whence::Unknown);
    }
}
