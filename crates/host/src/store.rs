//! What a session is, as its `spec` file has it; and how the host's own thread writes files: without a sync.

use crate::birth::Birth;
use holdfast_store::{SPEC, Survives, get_json, put_json};
use holdfast_types::{Exit, SessionId, SessionName, Size, TimeMs};
use holdfast_wire::forks::ForkedView;
use holdfast_wire::lives::{LostView, Recovery};
use holdfast_wire::params::Life;
use holdfast_wire::reaping::{KeptView, ReapAfter, ReapWhy};
use holdfast_wire::seam::Seam;
use holdfast_wire::wall::Wall;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

pub use holdfast_store::{checksum, make_dir};

/// What a session is, from its birth on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Identity.
    pub id: SessionId,
    /// Human name; changes with a rename.
    pub name: SessionName,
    /// Command and arguments.
    pub command: Vec<String>,
    /// Where it started.
    pub cwd: String,
    /// The size it started with.
    pub size: Size,
    /// Data bytes of its ring.
    pub ring_bytes: u64,
    /// Proves the host to the keeper, hexadecimal.
    pub secret: String,
    /// When it started.
    pub created_ms: TimeMs,
    /// The shell it is, started so that it tells what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<crate::shells::Kind>,
    /// The user it runs as, where that is not the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The wall around its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
    /// What of its processes is judged before it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Seam>,
    /// How checkpoints of its processes can be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portable: Option<crate::portable::Portable>,
    /// Its home is a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<crate::session::SpecLease>,
    /// It was made for one run alone: nobody looks for it once it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
    /// It was started ahead of need, and nobody has it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// When this life began, where it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_ms: Option<TimeMs>,
    /// The shell that runs in place of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// Whether it gets another life by itself; none: as the host is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover: Option<Recovery>,
    /// How often its command is run again where it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_on_failure: Option<u32>,
    /// How long it may be idle before it is reaped; none: as the host is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reap_after: Option<ReapAfter>,
    /// Who keeps it from being reaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptView>,
    /// It was reaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaped: Option<ReapWhy>,
    /// When lives of the last minutes began by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<TimeMs>,
    /// Somebody ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_asked: bool,
    /// What was lost; absent while it lives, and where it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<LostView>>,
    /// How it ended; absent while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<TimeMs>,
}

/// Replaces a file whole that others read as plain bytes, and that needs not survive a power cut: this thread serves every session.
pub fn replace(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    holdfast_store::replace(dir, name, content, Survives::Crash)
}

impl Spec {
    /// Of a session that is about to start.
    pub fn of(id: SessionId, name: SessionName, birth: &Birth, ring_bytes: u64, secret: &[u8]) -> Spec {
        Spec {
            id,
            name,
            command: birth.command.clone(),
            cwd: birth.cwd.clone(),
            size: birth.size,
            ring_bytes,
            secret: holdfast_types::hex_text(secret),
            created_ms: crate::now_ms(),
            shell: None,
            user: birth.other.as_ref().map(|other| other.user.name.clone()),
            wall: birth.wall.clone(),
            gate: birth.gate,
            portable: birth.portable.clone(),
            lease: birth.lease.map(crate::session::SpecLease::of),
            passing: false,
            ahead: false,
            begun_ms: None,
            stand_in: None,
            recover: birth.recover,
            restart_on_failure: birth.restart_on_failure,
            reap_after: birth.reap_after,
            kept: None,
            reaped: None,
            tries: Vec::new(),
            end_asked: false,
            lost: None,
            exit: None,
            ended_ms: None,
        }
    }

    /// Whether it lives, as far as this says.
    pub fn life(&self) -> Life {
        match (&self.exit, &self.lost) {
            (None, _) => Life::Running,
            (Some(_), Some(_)) => Life::Lost,
            (Some(_), None) => Life::Ended,
        }
    }

    /// What it is a copy of, as clients see it.
    pub fn forked_from(&self) -> Option<Box<ForkedView>> {
        let branch = self.portable.as_ref()?.branch.as_ref()?;
        Some(Box::new(branch.of.clone()))
    }

    /// Writes the spec into the session's directory.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        put_json(&SPEC, dir, "spec", self, Survives::Crash)
    }

    /// Reads the spec of a session's directory.
    pub fn load(dir: &Path) -> io::Result<Spec> {
        let mut spec: Spec = get_json(&SPEC, &dir.join("spec"))?.ok_or(io::ErrorKind::NotFound)?;
        if let Some(portable) = &mut spec.portable {
            portable.moved = crate::moving::home::load(dir).map(|moved| Box::new(moved.view));
        }
        Ok(spec)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Some session's.
    pub fn spec() -> Spec {
        Spec::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(SESSION)).unwrap()
    }

    const SESSION: &str = "../store/tests/v1/sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr";

    #[test]
    fn a_spec_of_the_version_before_is_read_and_kept_in_todays() {
        let spec = Spec::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(SESSION)).unwrap();
        assert_eq!((spec.name.to_string(), spec.shell), ("s".into(), Some(crate::shells::Kind::Bash)));
        let dir = tempfile::tempdir().unwrap();
        spec.save(dir.path()).unwrap();
        assert!(std::fs::read(dir.path().join("spec")).unwrap().starts_with(b"holdfast spec 2 "));
        assert_eq!(Spec::load(dir.path()).unwrap(), spec);
    }

    #[test]
    fn a_spec_with_any_flipped_bit_or_missing_byte_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join(SESSION);
        Spec::load(&old).unwrap().save(dir.path()).unwrap();
        let path = dir.path().join("spec");
        let file = std::fs::read(&path).unwrap();
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(Spec::load(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData, "byte {at}");
            std::fs::write(&path, &file[..at]).unwrap();
            assert_eq!(Spec::load(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData, "cut at {at}");
        }
    }
}
