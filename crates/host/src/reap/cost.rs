//! What sessions take up. Read off the host's thread, one session after the other.

use crate::serve::Server;
use crate::session::Session;
use holdfast_observe::{Residency, Spared, residency};
use holdfast_types::{Actor, Right, SessionId};
use holdfast_wire::Fault;
use holdfast_wire::params::Life;
use holdfast_wire::reaping::{CostParams, CostView};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files of a session that are counted: it has some dozens.
const FILES_MAX: usize = 4096;
/// For how long all sessions of one measurement are asked for parts of memory: a hundred of them take a tenth of it.
const PARTS_TIME: Duration = Duration::from_secs(2);
/// What `st_blocks` counts.
const BLOCK_BYTES: u64 = 512;

/// What one session is measured by; all that leaves the host's thread.
struct Place {
    keeper: u32,
    dir: PathBuf,
    spared: Arc<Spared>,
}

impl Place {
    fn of(session: &Session) -> Place {
        let state = session.state.borrow();
        // Of a session that is over the number may be another process's by now.
        let keeper = if state.link.is_some() { state.keeper_pid } else { 0 };
        Place { keeper, dir: session.dir.clone(), spared: session.own.spared() }
    }

    /// Blocks. A session that ends meanwhile takes up nothing.
    fn residency(&self, parts_until: Instant) -> Residency {
        residency(self.keeper, &self.spared, parts_until).unwrap_or_default()
    }
}

/// The memory of each of these sessions.
pub(super) async fn memory_of(sessions: &[Rc<Session>]) -> BTreeMap<SessionId, u64> {
    let places: Vec<(SessionId, Place)> = sessions.iter().map(|session| (session.id, Place::of(session))).collect();
    let measured = crate::off_thread(move || {
        let until = Instant::now() + PARTS_TIME;
        Ok(places.iter().map(|(id, place)| (*id, place.residency(until).memory_bytes)).collect::<BTreeMap<_, _>>())
    });
    measured.await.unwrap_or_default()
}

/// Bytes that a directory's files take on disk, those of directories in it included.
fn disk_bytes(dir: &Path) -> u64 {
    let (mut sum, mut seen, mut open) = (0, 0, vec![dir.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > FILES_MAX {
                return sum;
            }
            // Of a link its own.
            let Ok(metadata) = entry.metadata() else { continue };
            sum += metadata.blocks() * BLOCK_BYTES;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    sum
}

impl Server {
    /// What one session takes up, or each that runs and that an actor may observe.
    pub(crate) async fn cost(&self, params: &CostParams, actor: &Actor) -> Result<Vec<CostView>, Fault> {
        let sessions = match &params.session {
            Some(session) => vec![self.registry.find_for(session, actor, Right::Observe)?],
            None => {
                let is_shown = |s: &Rc<Session>| s.view_life() == Life::Running && s.rights(actor).has(Right::Observe);
                self.registry.all().into_iter().filter(is_shown).collect()
            }
        };
        let places: Vec<Place> = sessions.iter().map(|session| Place::of(session)).collect();
        let measured = crate::shares::aside(move || {
            let until = Instant::now() + PARTS_TIME;
            Ok(places.iter().map(|place| (place.residency(until), disk_bytes(&place.dir))).collect::<Vec<_>>())
        });
        let measured = measured.await.map_err(|error| {
            Fault::new(holdfast_wire::Code::Internal, format!("cannot measure the sessions: {error}"))
        })?;
        let view = |(session, (residency, disk_bytes)): (Rc<Session>, (Residency, u64))| {
            let (attached_ms, looked_ms) = session.last_used();
            let spec = &session.state.borrow().spec;
            CostView {
                session: session.id,
                name: spec.name.clone(),
                memory_bytes: residency.memory_bytes,
                memory_estimated: residency.is_estimated,
                processes: residency.processes,
                disk_bytes,
                created_ms: spec.created_ms,
                attached_ms,
                looked_ms,
            }
        };
        Ok(sessions.into_iter().zip(measured).map(view).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_directories_within_count_too() {
        let dir = tempfile::tempdir().unwrap();
        let before = disk_bytes(dir.path());
        std::fs::create_dir(dir.path().join("shell")).unwrap();
        std::fs::write(dir.path().join("shell/state"), vec![1; 64 * 1024]).unwrap();
        assert!(disk_bytes(dir.path()) >= before + 64 * 1024);
        assert_eq!(disk_bytes(Path::new("/nonexistent")), 0);
    }
}
