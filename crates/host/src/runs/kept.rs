//! A session's runs on disk: the file `runs`, a [line](holdfast_store::lines) for each change of one; the last line of a run is what
//! holds.
//!
//! A line that cannot be read costs that change. The file is written anew when most of it is the past.

use holdfast_session::{COMMAND_SHOWN_BYTES_MAX, RUNS_MAX, Run, forgotten_first};
use holdfast_store::{RUNS, lines};
use std::io;
use std::path::Path;

const NAME: &str = "runs";
/// Length from which it is looked at whether most is the past: what the runs that are remembered need at most.
const FILE_BYTES_MAX: u64 = (RUNS_MAX * 3 * (COMMAND_SHOWN_BYTES_MAX + 1024)) as u64;

/// The runs of a session, oldest first.
pub fn load(dir: &Path) -> Vec<Run> {
    let path = dir.join(NAME);
    // Twice its bound, and more than a change adds to that.
    let lines = lines::load::<Run>(&RUNS, &path, 2 * FILE_BYTES_MAX).unwrap_or_else(|why| {
        tracing::warn!("{}: {why}", path.display());
        Vec::new()
    });
    let mut runs: Vec<Run> = Vec::new();
    for run in lines {
        match runs.iter_mut().find(|known| known.id == run.id) {
            Some(known) => *known = run,
            None => runs.push(run),
        }
    }
    while runs.len() > RUNS_MAX {
        // As it is forgotten in memory.
        runs.remove(forgotten_first(runs.iter()));
    }
    runs
}

/// Writes what changed.
pub fn append(dir: &Path, changed: &[Run]) -> io::Result<()> {
    let length = lines::append(&RUNS, &dir.join(NAME), changed)?;
    if length > FILE_BYTES_MAX {
        lines::rewrite(&RUNS, dir, NAME, &load(dir))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId};
    use holdfast_wire::runs::{RunId, RunState};

    #[test]
    fn the_runs_of_the_version_before_are_read_and_gone_on_with() {
        let old = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../store/tests/v1/sessions/ses_6jt1jh3shw3k6p9hrh3z5cdncr/runs");
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(old, dir.path().join(NAME)).unwrap();
        let runs = load(dir.path());
        let states: Vec<_> = runs.iter().map(|run| (run.command.as_str(), run.state, run.exit_code)).collect();
        assert_eq!(
            states,
            [
                ("seq 1 4000", RunState::Ended, Some(0)),
                ("export A=1; cd /", RunState::Ended, Some(0)),
                ("false", RunState::Ended, Some(1)),
                ("sleep 1000", RunState::Cancelled, Some(130)),
                ("seq 1 9000", RunState::Ended, Some(0)),
            ]
        );
        append(dir.path(), &[Run { exit_code: Some(7), ..runs[2].clone() }]).unwrap();
        assert_eq!(load(dir.path())[2].exit_code, Some(7));
    }

    #[test]
    fn runs_are_kept_with_their_acts_and_those_that_have_none_are_read_too() {
        let run = crate::session::begun(
            &serde_json::from_str(r#"{"command": "make"}"#).expect("a run"),
            &Actor { id: ActorId([7; 32]), handle: "agent:bot".parse().expect("a handle") },
            100,
        );
        let dir = tempfile::tempdir().unwrap();
        let other = RunId::from_random_bits(2);
        append(dir.path(), &[Run { act: Some(3), ..run.clone() }, Run { id: other, ..run }]).unwrap();
        let text = std::fs::read_to_string(dir.path().join(NAME)).unwrap();
        assert_eq!(text.matches("\"act\":3").count(), 1, "an older host wrote none: {text}");
        let acts: Vec<_> = load(dir.path()).iter().map(|run| run.act).collect();
        assert_eq!(acts, [Some(3), None]);
    }
}
