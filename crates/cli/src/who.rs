//! Whom this process is taken for, and the key it proves that with.
//!
//! What was said (`--as`, `HOLDFAST_ACTOR`) counts first; otherwise the rule of [`identity`] looks at terminal, session and
//! environment, and the key is made at first use.

use crate::failure::Failure;
use crate::platform;
use crate::show::say;
use holdfast_authority::identity::{self, Because, Evidence};
use holdfast_client::{Identity, KeyError};
use holdfast_types::{ActorClass, Handle, HandleError, Home};
use holdfast_wire::hello::Inside;
use rustix::process::getuid;
use rustix::termios::isatty;
use std::path::PathBuf;
use std::str::FromStr;

/// The variable that says who acts, where no flag does.
pub const VARIABLE: &str = "HOLDFAST_ACTOR";
/// The variable by which client libraries are given a token: it is for the program that has it, and for none that is started.
pub const TOKEN: &str = "HOLDFAST_TOKEN";

/// Who was said to act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// An actor of this home.
    Handle(Handle),
    /// The actor whose key this file has.
    File(PathBuf),
}

/// An identity, and how it was come by.
#[derive(Debug)]
pub struct Me {
    /// Actor and key.
    pub identity: Identity,
    /// Why this one.
    pub because: Because,
    /// Where its secret lies.
    pub file: PathBuf,
}

impl FromStr for Said {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Said, HandleError> {
        if text.contains('/') { Ok(Said::File(text.into())) } else { text.parse().map(Said::Handle) }
    }
}

/// What the flag says, else what the variable does.
pub fn said(flag: Option<&Said>) -> Result<Option<Said>, Failure> {
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    match (flag, variable) {
        (Some(said), _) => Ok(Some(said.clone())),
        (None, None) => Ok(None),
        (None, Some(value)) => match value.to_string_lossy().parse() {
            Ok(said) => Ok(Some(said)),
            Err(error) => Err(Failure::new("bad_request", format!("{VARIABLE}: {error}"))),
        },
    }
}

/// Whom this process is taken for where nothing is said, and the host found it there.
pub fn unsaid(inside: Option<&Inside>) -> identity::Who {
    decide(None, inside)
}

/// The human of this login, if they have a key and sit at this terminal.
pub fn person(home: &Home) -> Option<Handle> {
    let at_terminal = isatty(rustix::stdio::stdin()) && isatty(rustix::stdio::stdout());
    let handle: Handle = format!("human:{}", login()).parse().ok()?;
    (at_terminal && Identity::load(home, &handle).is_ok()).then_some(handle)
}

/// Whether the environment says that this process is inside a session.
pub fn is_inside() -> bool {
    std::env::var_os("HOLDFAST_SESSION").is_some_and(|id| !id.is_empty())
}

/// The session that this process is in, as its environment says. A process of a branch still has the variables of the session it is a copy
/// of; the file that one of them names is the branch's own.
pub fn inside() -> Option<String> {
    let text = std::env::var_os("HOLDFAST_LIFE").and_then(|path| std::fs::read_to_string(path).ok());
    let told = text.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let said = told.and_then(|told| Some(told.get("session")?.as_str()?.to_owned()));
    said.or_else(|| std::env::var("HOLDFAST_SESSION").ok()).filter(|id| !id.is_empty() && is_inside())
}

fn decide(explicit: Option<Handle>, inside: Option<&Inside>) -> identity::Who {
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.to_string_lossy().into_owned())))
        .collect();
    identity::decide(&Evidence {
        explicit,
        stdin_tty: isatty(rustix::stdio::stdin()),
        stdout_tty: isatty(rustix::stdio::stdout()),
        // Where the host does not know where a process comes from, that is no place of a person either.
        inside_session: is_inside() || inside.is_some(),
        agent_marker: identity::marker(variables.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            .or_else(|| inside.and_then(|inside| inside.agent.clone())),
        login: login(),
    })
}

/// The user's name as the system knows it, which an environment cannot change.
fn login() -> String {
    let variable = |key: &str| std::env::var(key).ok().filter(|name| !name.is_empty());
    let known = platform::login().or_else(|| variable("LOGNAME")).or_else(|| variable("USER"));
    known.unwrap_or_else(|| format!("uid{}", getuid().as_raw()))
}

/// The actor that acts; creates its key at first use if the rule chose the actor. The host is asked where this process is only if
/// it would be a human's.
pub fn find(home: &Home, flag: Option<&Said>, inside: impl FnOnce() -> Option<Inside>) -> Result<Me, Failure> {
    let said = match said(flag)? {
        Some(Said::File(file)) => {
            let identity = Identity::from_file(&file)?;
            return Ok(Me { identity, because: Because::Said, file });
        }
        Some(Said::Handle(handle)) => Some(handle),
        None => None,
    };
    let is_said = said.is_some();
    let mut who = decide(said, None);
    if !is_said && who.handle.class() == ActorClass::Human {
        who = decide(None, inside().as_ref());
    }
    let identity = match who.because {
        Because::Said => load_said(home, &who.handle)?,
        Because::Marked | Because::Inside | Because::NoTerminal | Because::AtTerminal => {
            Identity::load_or_make(home, &who.handle)?
        }
    };
    Ok(Me { identity, because: who.because, file: home.actor_key(&who.handle) })
}

fn load_said(home: &Home, handle: &Handle) -> Result<Identity, Failure> {
    match (Identity::load(home, handle), handle.class()) {
        (Err(KeyError::Missing(_)), ActorClass::Human) => {
            let failure = Failure::new("no_such_actor", format!("no actor {handle}"));
            Err(failure.hint(format!("create it: holdfast actor new {handle}")))
        }
        (Err(KeyError::Missing(_)), ActorClass::Agent | ActorClass::Service | ActorClass::Device) => {
            let identity = Identity::load_or_make(home, handle)?;
            say(&format!("created the actor {handle}"));
            Ok(identity)
        }
        (other, _) => Ok(other?),
    }
}

/// Who acts, if its key is there: for what must not make one.
pub fn existing(home: &Home, flag: Option<&Said>) -> Option<Identity> {
    match said(flag).ok()? {
        Some(Said::File(file)) => Identity::from_file(&file).ok(),
        Some(Said::Handle(handle)) => Identity::load(home, &handle).ok(),
        None => Identity::load(home, &unsaid(None).handle).ok(),
    }
}

/// Somebody no host knows, with a key that is kept nowhere: enough to learn whether one answers.
#[cfg(target_os = "linux")]
pub fn stranger() -> Result<Identity, Failure> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|e| Failure::new("io", format!("cannot get random bytes: {e}")))?;
    Ok(Identity::new(Handle::near(ActorClass::Agent, "nobody"), secret))
}
