//! What is kept on disk of a session's life, for the next one.

use crate::birth::Birth;
use holdfast_graph::ProcessId;
use holdfast_store::{BIRTH, LIFE, Survives, get_json, put_json};
use holdfast_types::TimeMs;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Variables whose values are kept: where things are, how a terminal and a language are meant. Nothing that is a secret as a rule;
/// of every other variable the name alone is kept.
const KEPT: [&str; 42] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "TERM",
    "COLORTERM",
    "TERMINFO",
    "LANG",
    "LANGUAGE",
    "TZ",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "MANPATH",
    "INFOPATH",
    "HOSTNAME",
    "TMPDIR",
    "HOLDFAST_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "NODE_PATH",
    "NVM_DIR",
    "NODE_ENV",
    "GOPATH",
    "GOROOT",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "NO_COLOR",
];
/// Names kept of others: more than anybody's environment has.
const WITHHELD_MAX: usize = 256;
/// Longest value that is kept: a long PATH has a tenth of it.
const VALUE_BYTES_MAX: usize = 16 * 1024;

/// What a session's command was started with, beside what its spec says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptBirth {
    #[serde(default)]
    pub argv0: Option<String>,
    /// Variables with their values.
    #[serde(default)]
    pub env: Vec<String>,
    /// Variables whose values are not kept.
    #[serde(default)]
    pub withheld: Vec<String>,
    #[serde(default = "umask")]
    pub umask: u32,
    #[serde(default)]
    pub nofile: u64,
    #[serde(default)]
    pub integrate: Option<bool>,
}

/// Where nothing is known: what nearly every login has.
fn umask() -> u32 {
    0o022
}

impl Default for KeptBirth {
    fn default() -> KeptBirth {
        KeptBirth { argv0: None, env: Vec::new(), withheld: Vec::new(), umask: umask(), nofile: 0, integrate: None }
    }
}

/// Whether a variable's value is kept.
fn is_kept(key: &str, value: &str) -> bool {
    (KEPT.contains(&key) || key.starts_with("LC_")) && value.len() <= VALUE_BYTES_MAX
}

impl KeptBirth {
    /// Of what a session starts with.
    pub fn of(birth: &Birth) -> KeptBirth {
        let mut env = Vec::new();
        let mut withheld = Vec::new();
        for pair in &birth.env {
            let Some((key, value)) = pair.split_once('=') else { continue };
            if is_kept(key, value) {
                env.push(pair.clone());
            } else if withheld.len() < WITHHELD_MAX && !key.starts_with("HOLDFAST_") {
                withheld.push(key.to_owned());
            }
        }
        KeptBirth {
            argv0: birth.argv0.clone(),
            env,
            withheld,
            umask: birth.umask,
            nofile: birth.nofile,
            integrate: birth.integrate,
        }
    }

    /// Writes it.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        put_json(&BIRTH, dir, "birth", self, Survives::Crash)
    }

    /// Reads it; what an earlier version did not write is as if nothing were known.
    pub fn load(dir: &Path) -> KeptBirth {
        get_json(&BIRTH, &dir.join("birth")).ok().flatten().unwrap_or_default()
    }
}

/// A life's keeper, and what was last seen of its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLife {
    /// In which run of the machine.
    pub boot: String,
    pub keeper: Option<ProcessId>,
    /// The keeper's cgroup.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Processes that the kernel had killed for memory by then: on this machine, and in the cgroup.
    #[serde(default)]
    pub oom: Option<u64>,
    #[serde(default)]
    pub cgroup_oom: Option<u64>,
    pub seen_ms: TimeMs,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub processes: Vec<KeptProcess>,
    #[serde(default)]
    pub listened: Vec<String>,
    #[serde(default)]
    pub connected: Vec<String>,
    /// When somebody was attached last, and when somebody looked.
    #[serde(default)]
    pub attached_ms: Option<TimeMs>,
    #[serde(default)]
    pub looked_ms: Option<TimeMs>,
}

/// One of its processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptProcess {
    pub id: ProcessId,
    /// Without arguments.
    pub program: String,
}

impl KeptLife {
    /// Writes it.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        put_json(&LIFE, dir, "life", self, Survives::Crash)
    }

    /// Reads it, where there is one that can be read.
    pub fn load(dir: &Path) -> Option<KeptLife> {
        get_json(&LIFE, &dir.join("life")).ok().flatten()
    }

    /// The same, whenever it was seen.
    pub fn is_same(&self, other: &KeptLife) -> bool {
        let timeless = |life: &KeptLife| KeptLife {
            seen_ms: 0,
            oom: None,
            cgroup_oom: None,
            attached_ms: None,
            looked_ms: None,
            ..life.clone()
        };
        timeless(self) == timeless(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_variable_that_may_be_secret_the_name_alone_is_kept() {
        let env = [
            "PATH=/bin",
            "AWS_SECRET_ACCESS_KEY=hunter2",
            "LC_TIME=C",
            "HOLDFAST_TOKEN=t",
            "odd",
            "HTTP_PROXY=http://u:p@x",
        ];
        let birth = Birth { env: env.map(str::to_owned).to_vec(), ..crate::birth::tests::birth() };
        let kept = KeptBirth::of(&birth);
        assert_eq!(kept.env, ["PATH=/bin", "LC_TIME=C"]);
        assert_eq!(kept.withheld, ["AWS_SECRET_ACCESS_KEY", "HTTP_PROXY"]);
        let dir = tempfile::tempdir().unwrap();
        kept.save(dir.path()).unwrap();
        let text = String::from_utf8(std::fs::read(dir.path().join("birth")).unwrap()).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("u:p@x"), "{text}");
        assert_eq!(KeptBirth::load(dir.path()), kept);
    }

    #[test]
    fn a_damaged_or_missing_file_is_as_if_nothing_were_known() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(KeptBirth::load(dir.path()).umask, 0o022);
        std::fs::write(dir.path().join("life"), b"holdfast life 2 0000000000000000\n{}").unwrap();
        assert_eq!(KeptLife::load(dir.path()), None);
    }
}
