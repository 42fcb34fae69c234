//! Hosts elsewhere that this user added, kept in `<state>/hosts.json`.

use crate::failure::Failure;
use holdfast_client::{Identity, Relayed, Route, Ssh, is_host_name, machine_name};
use holdfast_store::{HOSTS, Survives, get_json, put_json};
use holdfast_types::{ActorId, Handle, Home, HostKey, TimeMs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME: &str = "hosts.json";
/// Most hosts: a person's machines, and no file that grows without end.
const HOSTS_MAX: usize = 1000;

/// A host elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// What the user calls it.
    pub name: String,
    /// What ssh calls it; empty where a relay reaches it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh: String,
    /// The program there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Relays it waits at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<String>,
    /// Its key, where a relay reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<HostKey>,
    /// By which handle each actor of this home is known there.
    #[serde(default)]
    pub actors: BTreeMap<Handle, Handle>,
    /// When it was added.
    pub added_ms: TimeMs,
}

/// What an actor says to become known elsewhere, and what it is told.
#[derive(Debug, Serialize, Deserialize)]
pub struct Admission {
    /// The handle it would like, then the one it has.
    pub handle: Handle,
    /// Its key.
    pub id: ActorId,
}

impl Elsewhere {
    /// One that relays reach.
    pub fn through_relays(name: &str, relays: Vec<String>, key: HostKey, added_ms: TimeMs) -> Elsewhere {
        let (ssh, program, actors) = (String::new(), String::new(), BTreeMap::new());
        Elsewhere { name: name.to_owned(), ssh, program, relays, key: Some(key), actors, added_ms }
    }

    /// By which path it is reached, in a word, and where that leads.
    pub fn path(&self) -> (&'static str, String) {
        match self.key {
            Some(_) => ("relay", self.relays.join(" ")),
            None => ("ssh", self.ssh.clone()),
        }
    }

    /// The way there through relays, where that is the way.
    pub fn relayed(&self, home: &Home) -> Result<Option<Relayed>, Failure> {
        let Some(key) = self.key else { return Ok(None) };
        let relayed = Relayed::new(&self.name, &self.relays, key, home.run.clone());
        relayed.map(Some).map_err(|error| Failure::from_error("bad_request", &error))
    }

    /// The way there by ssh.
    pub fn ssh(&self, home: &Home) -> Ssh {
        let (name, target, program) = (self.name.clone(), self.ssh.clone(), self.program.clone());
        Ssh { name, target, program, run: home.run.clone(), batch: false }
    }

    /// The way there.
    pub fn route(&self, home: &Home) -> Result<Route, Failure> {
        Ok(self.relayed(home)?.map_or_else(|| Route::Ssh(self.ssh(home)), Route::Relay))
    }

    /// An actor of this home under the handle it has there. At first it is made known, by the ssh login; behind a relay the host says it.
    pub fn known_as(&mut self, home: &Home, who: &Identity) -> Result<Identity, Failure> {
        self.known_by(home, self.ssh(home), who)
    }

    /// The same for somebody who cannot answer ssh's questions now.
    pub fn known_unattended(&mut self, home: &Home, who: &Identity) -> Result<Identity, Failure> {
        self.known_by(home, Ssh { batch: true, ..self.ssh(home) }, who)
    }

    fn known_by(&mut self, home: &Home, ssh: Ssh, who: &Identity) -> Result<Identity, Failure> {
        let here = &who.actor().handle;
        if let Some(there) = self.actors.get(here) {
            return Ok(who.called(there.clone()));
        }
        if let Some(relayed) = self.relayed(home)? {
            let there = relayed.handle_of(who)?;
            self.actors.insert(here.clone(), there.clone());
            return Ok(who.called(there));
        }
        let wanted = Handle::near(here.class(), &format!("{}.{}", here.name(), machine_name()));
        let said = Admission { handle: wanted, id: who.actor().id };
        let said = serde_json::to_vec(&said).map_err(|e| Failure::from_error("io", &e))?;
        let answer = ssh.ask(&["connect", "--admit"], &said)?;
        let admitted: Admission = serde_json::from_slice(&answer)
            .map_err(|e| Failure::new("hello", format!("cannot read what {} answered: {e}", self.name)))?;
        if admitted.id != who.actor().id || admitted.handle.class() != here.class() {
            return Err(Failure::new("hello", format!("{} answered for another actor", self.name)));
        }
        self.actors.insert(here.clone(), admitted.handle.clone());
        Ok(who.called(admitted.handle))
    }
}

/// All hosts, by name.
pub fn load(home: &Home) -> Result<Vec<Elsewhere>, Failure> {
    let file = home.state.join(NAME);
    let hosts = get_json(&HOSTS, &file).map_err(|why| Failure::io(format!("cannot read {}", file.display()), why))?;
    Ok(hosts.unwrap_or_default())
}

/// One of them.
pub fn find(home: &Home, name: &str) -> Result<Elsewhere, Failure> {
    let hosts = load(home)?;
    hosts.iter().find(|host| host.name == name).cloned().ok_or_else(|| {
        let known: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let hint = match &known[..] {
            [] => format!("add it: holdfast hosts add {name} --ssh user@machine"),
            known => {
                format!("known hosts: {}; add one: holdfast hosts add {name} --ssh user@machine", known.join(", "))
            }
        };
        Failure::new("no_such_host", format!("no host is called {name}")).hint(hint)
    })
}

/// Changes the list.
pub fn change(home: &Home, how: impl FnOnce(&mut Vec<Elsewhere>) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut hosts = load(home)?;
    how(&mut hosts)?;
    if hosts.len() > HOSTS_MAX {
        return Err(Failure::new("too_many", format!("at most {HOSTS_MAX} hosts can be added")));
    }
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    put_json(&HOSTS, &home.state, NAME, &hosts, Survives::PowerCut)
        .map_err(|error| Failure::io(format!("cannot write {}", home.state.join(NAME).display()), error))
}

/// Keeps what was learnt about one of them, unless it was forgotten meanwhile.
pub fn keep(home: &Home, host: &Elsewhere) -> Result<(), Failure> {
    change(home, |hosts| {
        if let Some(known) = hosts.iter_mut().find(|known| known.name == host.name) {
            known.actors.clone_from(&host.actors);
        }
        Ok(())
    })
}

/// A name that can stand before a slash.
pub fn must_be_a_name(name: &str) -> Result<(), Failure> {
    if is_host_name(name) {
        return Ok(());
    }
    let message = format!("invalid host name {name:?}: use letters, digits, `.`, `_` and `-`, at most 64");
    Err(Failure::new("bad_request", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_kept_by_name_and_one_that_is_unknown_is_told_with_the_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        let host = |name: &str| Elsewhere {
            name: name.into(),
            ssh: format!("ann@{name}"),
            program: "holdfast".into(),
            relays: Vec::new(),
            key: None,
            actors: BTreeMap::new(),
            added_ms: 1,
        };
        assert!(find(&home, "gpu").unwrap_err().message().contains("no host is called gpu"));
        change(&home, |hosts| {
            hosts.extend([host("gpu"), host("build")]);
            Ok(())
        })
        .unwrap();
        assert_eq!(load(&home).unwrap().iter().map(|h| &h.name[..]).collect::<Vec<_>>(), ["build", "gpu"]);
        let mut gpu = find(&home, "gpu").unwrap();
        gpu.actors.insert("human:ann".parse().unwrap(), "human:ann.laptop".parse().unwrap());
        keep(&home, &gpu).unwrap();
        assert_eq!(find(&home, "gpu").unwrap(), gpu);
        keep(&home, &host("gone")).unwrap();
        assert!(find(&home, "gone").is_err());
    }
}
