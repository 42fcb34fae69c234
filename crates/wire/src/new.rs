//! What a session is started with.

use crate::leases::Leasing;
use crate::lives::Recovery;
use crate::reaping::ReapAfter;
use crate::seam::Seam;
use crate::wall::Wall;
use holdfast_types::{SessionName, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to start.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewParams {
    /// A name; the host picks one where none is given.
    #[serde(default)]
    pub name: Option<SessionName>,
    /// Command and arguments; left out: the shell of the host's user, or with a run that shell with the run's text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// `argv[0]` where it differs from the command (a login shell).
    #[serde(default)]
    pub argv0: Option<String>,
    /// Where it starts, from the root on; left out: the home directory of the host's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its whole environment, `K=V` each; left out: the host's, without what belongs to who started the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// Variables laid over that environment, `K=V` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_add: Vec<String>,
    /// Columns and rows.
    #[serde(default)]
    pub size: Size,
    /// Data bytes of the ring; rounded up to a power of two.
    #[serde(default)]
    pub ring_bytes: Option<u64>,
    /// File mode mask.
    #[serde(default)]
    pub umask: Option<u32>,
    /// Soft limit of open files.
    #[serde(default)]
    pub nofile: Option<u64>,
    /// Start a shell with integration, so that it reports its commands; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrate: Option<bool>,
    /// Run as this user of the machine, with a home and variables of its own; only where the host is root. `env`: terminal and language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A wall around its processes: what they can write and connect to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
    /// Judge more than acts: with `exec`, every program that a process of the session starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Seam>,
    /// Make it so that checkpoints of its processes can be kept; only where the host is root. It has pids, terminals and shared memory of
    /// its own, and its processes end with its command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub portable: bool,
    /// For a portable session: a command for `/bin/sh` that is run in it whenever its processes come back from a checkpoint, or begin
    /// as a branch. It tells programs that connections are cut, and that `$HOLDFAST_LIFE` has a new fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_resume: Option<String>,
    /// For a portable session: make a checkpoint this often, in milliseconds, where something happened in it since the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_every_ms: Option<u64>,
    /// Make its home a lease: it has at most one life among all hosts that share a store of leases, and stands still where this host
    /// cannot renew its lease. Only where the host is configured with such a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Leasing>,
    /// Whether it gets another life by itself where it is lost; left out: as the host is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover: Option<Recovery>,
    /// Run the command again where it fails or the session is lost, at most this many times within ten minutes, later each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_on_failure: Option<u32>,
    /// How long it may be idle before it is reaped; left out: as the host is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reap_after: Option<ReapAfter>,
    /// Start it ahead of need: nobody is shown it, and it is given to the next of your sessions that is asked for with this name and
    /// all the same. It ends with your connection, and after ten minutes. A shell without a wall.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
}
