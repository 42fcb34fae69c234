//! Where Holdfast keeps its things, as path arithmetic: nothing here touches a file.
//!
//! `HOLDFAST_HOME=DIR` puts everything under one directory; otherwise the XDG directories are used.

use crate::{Handle, SessionId};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The directories of one Holdfast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Sessions, the keeper program, the host's log.
    pub state: PathBuf,
    /// Sockets and the host's lock.
    pub run: PathBuf,
    /// `config.toml`.
    pub config: PathBuf,
}

/// Neither `HOLDFAST_HOME` nor `HOME` is set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot find a directory for sessions: neither HOLDFAST_HOME nor HOME is set")]
pub struct NoHome;

impl Home {
    /// Everything under one directory.
    #[must_use]
    pub fn under(dir: &Path) -> Home {
        Home { state: dir.to_owned(), run: dir.join("run"), config: dir.to_owned() }
    }

    /// The directories that an environment names.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Result<Home, NoHome> {
        let path = |key: &str| get(key).filter(|v| !v.is_empty()).map(PathBuf::from);
        // The XDG rules: a relative path is to be ignored.
        let xdg = |key: &str| path(key).filter(|p| p.is_absolute());
        if let Some(dir) = path("HOLDFAST_HOME") {
            return Ok(Home::under(&dir));
        }
        let home = path("HOME");
        let below = |key: &str, rest: &str| {
            xdg(key).or_else(|| home.as_ref().map(|h| h.join(rest))).map(|p| p.join("holdfast")).ok_or(NoHome)
        };
        let state = below("XDG_STATE_HOME", ".local/state")?;
        let run = xdg("XDG_RUNTIME_DIR").map_or_else(|| state.join("run"), |p| p.join("holdfast"));
        Ok(Home { run, config: below("XDG_CONFIG_HOME", ".config")?, state })
    }

    /// All of them: what lies there decides what is run, and who may do what.
    #[must_use]
    pub fn directories(&self) -> [&Path; 3] {
        [&self.state, &self.run, &self.config]
    }

    /// What terminals have seen of sessions.
    #[must_use]
    pub fn terminals(&self) -> PathBuf {
        self.run.join("terminals")
    }

    /// The host's socket.
    #[must_use]
    pub fn host_socket(&self) -> PathBuf {
        self.run.join("host.sock")
    }

    /// Held by the one host of this home.
    #[must_use]
    pub fn host_lock(&self) -> PathBuf {
        self.run.join("host.lock")
    }

    /// Where the process that holds the HTTP port hands it to the next host.
    #[must_use]
    pub fn http_socket(&self) -> PathBuf {
        self.run.join("http.sock")
    }

    /// The host's log.
    #[must_use]
    pub fn host_log(&self) -> PathBuf {
        self.state.join("host.log")
    }

    /// The configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// All sessions.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Directories of sessions that nobody has asked for yet.
    #[must_use]
    pub fn prepared(&self) -> PathBuf {
        self.state.join("prepared")
    }

    /// One session's directory.
    #[must_use]
    pub fn session(&self, id: SessionId) -> PathBuf {
        self.sessions().join(id.to_string())
    }

    /// The actors this home knows: their public keys, and the secret ones of those that live here.
    #[must_use]
    pub fn actors(&self) -> PathBuf {
        self.state.join("actors")
    }

    /// An actor's public key: while it lies there the host knows the actor.
    #[must_use]
    pub fn actor_public(&self, handle: &Handle) -> PathBuf {
        self.actors().join(format!("{}.{}.pub", handle.class().word(), handle.name()))
    }

    /// An actor's secret key.
    #[must_use]
    pub fn actor_key(&self, handle: &Handle) -> PathBuf {
        self.actors().join(format!("{}.{}.key", handle.class().word(), handle.name()))
    }

    /// The socket of a session's keeper.
    #[must_use]
    pub fn keeper_socket(&self, id: SessionId) -> PathBuf {
        self.run.join(format!("{id}.k"))
    }

    /// Where the warden of a session's seam is reached.
    #[must_use]
    pub fn warden_socket(&self, id: SessionId) -> PathBuf {
        self.run.join(format!("{id}.w"))
    }

    /// The link that follows the latest attached client's ssh agent.
    #[must_use]
    pub fn agent_link(&self, id: SessionId) -> PathBuf {
        self.run.join(format!("{id}.agent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(vars: &[(&str, &str)]) -> Result<Home, NoHome> {
        Home::from_env(|key| vars.iter().find(|(k, _)| *k == key).map(|(_, v)| v.into()))
    }

    #[test]
    fn holdfast_home_wins_over_everything() {
        let all = home(&[("HOLDFAST_HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("HOME", "/u")]).unwrap();
        assert_eq!(all, Home::under(Path::new("/h")));
    }

    #[test]
    fn xdg_directories_are_used_and_default_below_home() {
        let set = home(&[("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/r"), ("XDG_CONFIG_HOME", "/c")]).unwrap();
        assert_eq!((set.state, set.run), ("/s/holdfast".into(), "/r/holdfast".into()));
        let bare = home(&[("HOME", "/u"), ("XDG_STATE_HOME", "relative")]).unwrap();
        assert_eq!(bare.state, Path::new("/u/.local/state/holdfast"));
        assert_eq!(bare.run, Path::new("/u/.local/state/holdfast/run"));
        assert_eq!(home(&[]), Err(NoHome));
    }
}
