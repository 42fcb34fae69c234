//! Every host that this user knows, asked at once: this machine's, and those that were added with `hosts add` or by an invite.
//!
//! Those elsewhere are asked on threads of their own, which cannot ask for a password. One that does not answer in time is reported, and holds up
//! nobody else: its thread is left behind, and ends with the program.

use crate::failure::Failure;
use crate::here::Here;
use crate::hosts::{self, Elsewhere};
use crate::show::say;
use holdfast_client::{CallError, Connection, Identity, Route};
use holdfast_types::Home;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long hosts elsewhere may take to answer: a login by ssh over a slow line takes two seconds, and a person waits for a list.
const ANSWER: Duration = Duration::from_secs(5);
/// What a host that did not answer in time is reported with.
const SILENT: &str = "silent";
/// What this machine's host is called in lines about hosts.
pub const THIS: &str = "this machine";

/// What one host answered.
#[derive(Debug)]
pub struct Answered<T> {
    /// What the user calls it; none: this machine's.
    pub host: Option<String>,
    /// What it answered, or why it did not.
    pub answer: Result<T, Failure>,
}

/// Hosts elsewhere that are being asked.
#[derive(Debug)]
pub struct Round<T> {
    hosts: Vec<Elsewhere>,
    answers: Receiver<(usize, Elsewhere, Result<T, Failure>)>,
    until: Instant,
}

impl<T: Send + 'static> Round<T> {
    /// Asks each of these hosts the same.
    pub fn begin<Q>(here: &Here, hosts: Vec<Elsewhere>, question: Q) -> Result<Round<T>, Failure>
    where
        Q: Fn(&mut Connection) -> Result<T, CallError> + Send + Sync + 'static,
    {
        let who = here.who()?;
        let question = Arc::new(question);
        let (sender, answers) = channel();
        for (at, host) in hosts.iter().enumerate() {
            let (sender, question) = (sender.clone(), Arc::clone(&question));
            let (mut host, home, who) = (host.clone(), here.home.clone(), who.clone());
            std::thread::spawn(move || {
                let asked = connect(&mut host, &home, &who);
                let answer = asked.and_then(|mut connection| Ok(question(&mut connection)?));
                // Nobody waits for one that comes too late.
                let _ = sender.send((at, host, answer));
            });
        }
        Ok(Round { hosts, answers, until: Instant::now() + ANSWER })
    }

    /// The answers that come in time, in the order of the hosts.
    pub fn wait(self, here: &Here) -> Vec<(Elsewhere, Result<T, Failure>)> {
        let Round { hosts, answers, until } = self;
        let silent = || Failure::new(SILENT, format!("no answer within {} s", ANSWER.as_secs()));
        let mut all: Vec<_> = hosts.into_iter().map(|host| (host, Err(silent()))).collect();
        while let Ok((at, host, answer)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if host != all[at].0 {
                // By which handle it knows us is asked again next time if it cannot be kept.
                let _ = hosts::keep(&here.home, &host);
            }
            all[at] = (host, answer);
        }
        all
    }
}

/// Whether a host was reached and did not answer in time.
pub fn is_silent(why: &Failure) -> bool {
    why.is(SILENT)
}

/// Connects to a host elsewhere without a person who could type a password.
pub fn connect(host: &mut Elsewhere, home: &Home, who: &Identity) -> Result<Connection, Failure> {
    let who = host.known_unattended(home, who)?;
    Ok(host.route(home)?.unattended().connect(&who)?)
}

/// Asks this machine's host and every other one.
pub fn ask<T, Q>(here: &Here, question: Q) -> Result<Vec<Answered<T>>, Failure>
where
    T: Send + 'static,
    Q: Fn(&mut Connection) -> Result<T, CallError> + Send + Sync + Clone + 'static,
{
    let round = Round::begin(here, hosts::load(&here.home)?, question.clone())?;
    let answer = here.link().and_then(|mut link| link.ask_all(&question));
    let elsewhere = round.wait(here);
    let elsewhere = elsewhere.into_iter().map(|(host, answer)| Answered { host: Some(host.name), answer });
    Ok(std::iter::once(Answered { host: None, answer }).chain(elsewhere).collect())
}

impl<T> Answered<T> {
    /// The line that says that a host does not answer.
    fn missing(&self) -> Option<String> {
        let why = self.answer.as_ref().err()?;
        Some(unreachable(self.host.as_deref(), why.message()))
    }
}

/// The line that says that a host does not answer.
pub fn unreachable(host: Option<&str>, why: &str) -> String {
    let host = host.unwrap_or(THIS);
    // The reason names the host again where it comes from its connection.
    let why = why.strip_prefix(&format!("cannot reach the host {host}: ")).unwrap_or(why);
    format!("{host}: unreachable ({why})")
}

/// Says which hosts did not answer; gives the status to end with.
pub fn report<T>(answers: &[Answered<T>]) -> u8 {
    let missing: Vec<String> = answers.iter().filter_map(Answered::missing).collect();
    missing.iter().for_each(|line| say(line));
    status(answers)
}

/// The status to end with: failure where a host is missing in the answer.
pub fn status<T>(answers: &[Answered<T>]) -> u8 {
    u8::from(answers.iter().any(|one| one.answer.is_err()))
}

/// The answers for programs: one object for each host, with what it answered under `key`. This machine's has no name.
pub fn json<T: Serialize>(answers: &[Answered<T>], key: &str) -> Vec<Value> {
    let view = |one: &Answered<T>| match &one.answer {
        Ok(answer) => json!({"host": one.host, "state": "up", key: answer}),
        Err(why) if is_silent(why) => json!({"host": one.host, "state": "silent", "why": why.message()}),
        Err(why) => json!({"host": one.host, "state": "down", "why": why.message()}),
    };
    answers.iter().map(view).collect()
}

/// What a person calls something of a host from here.
pub fn called(host: Option<&str>, name: &str) -> String {
    host.map_or_else(|| name.to_owned(), |host| format!("{host}/{name}"))
}

/// A host that is followed for as long as the program runs, however often the way to it breaks.
#[derive(Debug)]
pub enum Place {
    /// This machine's.
    Here(Route),
    /// Another machine's.
    Elsewhere(Box<Elsewhere>),
}

impl Place {
    /// Every host: this machine's, and those elsewhere.
    pub fn all(here: &Here) -> Result<Vec<Place>, Failure> {
        let elsewhere = hosts::load(&here.home)?.into_iter().map(|host| Place::Elsewhere(Box::new(host)));
        Ok(std::iter::once(Place::Here(here.route()?)).chain(elsewhere).collect())
    }

    /// What the user calls it; none: this machine's.
    pub fn name(&self) -> Option<&str> {
        match self {
            Place::Here(_) => None,
            Place::Elsewhere(host) => Some(&host.name),
        }
    }

    /// Connects to it.
    pub fn connect(&mut self, home: &Home, who: &Identity) -> Result<Connection, Failure> {
        match self {
            Place::Here(route) => Ok(route.connect(who)?),
            Place::Elsewhere(host) => connect(host, home, who),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_missing_is_one_line_with_its_reason_and_makes_the_command_fail() {
        let far = |answer| Answered { host: Some("gpu".into()), answer };
        let why = Failure::new("unreachable", "cannot reach the host gpu: ssh: Connection refused");
        let answers = [Answered { host: None, answer: Ok(1) }, far(Err(why))];
        assert_eq!(answers[1].missing().as_deref(), Some("gpu: unreachable (ssh: Connection refused)"));
        assert_eq!((status(&answers), status(&[far(Ok(2))])), (1, 0));
        let expected = json!([
            {"host": null, "state": "up", "count": 1},
            {"host": "gpu", "state": "down", "why": "cannot reach the host gpu: ssh: Connection refused"},
        ]);
        assert_eq!(json!(json(&answers, "count")), expected);
        assert_eq!((called(None, "work"), called(Some("gpu"), "work")), ("work".into(), "gpu/work".into()));
    }
}
