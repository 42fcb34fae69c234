//! The long job that experiments must not disturb: it counts, writes each number into a ledger, and notes lines typed to it.

use crate::place::{Place, alive, started};
use crate::trial::{Stop, broken, wait};
use std::fs;
use std::path::PathBuf;

/// Counts about forty times a second. The wait is a read from the terminal, so that a typed line is noticed and noted. A read that
/// times out in the middle of a line gives what it has of it, and the next one goes on: on a busy machine that happens.
const SCRIPT: &str = r#"
dir=$1
echo $$ > "$dir/job.pid.new" && mv "$dir/job.pid.new" "$dir/job.pid"
n=0
held=
while :; do
  n=$((n + 1))
  echo "$n" >> "$dir/ledger"
  echo "compiled unit $n"
  if IFS= read -r -t 0.025 line; then echo "$held$line" >> "$dir/typed"; held=; else held=$held$line; fi
done
"#;

/// The job's files.
pub struct Job {
    dir: PathBuf,
}

/// Which process the job is: no other process ever has both numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub started: String,
}

impl Job {
    /// Writes the script; nothing runs yet.
    pub fn new(place: &Place) -> Result<Job, Stop> {
        let dir = place.path("job");
        fs::create_dir_all(&dir).map_err(|error| broken("a directory for the job", error))?;
        fs::write(dir.join("job.sh"), SCRIPT).map_err(|error| broken("the job's script", error))?;
        Ok(Job { dir })
    }

    /// The command that runs it.
    pub fn command(&self) -> [String; 3] {
        ["bash".into(), self.dir.join("job.sh").display().to_string(), self.dir.display().to_string()]
    }

    /// The same as a line for a shell.
    pub fn line(&self) -> String {
        self.command().join(" ")
    }

    /// Numbers that it has written.
    pub fn ledger(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.dir.join("ledger")).unwrap_or_default();
        // The last line may be half-written.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| line.trim().parse().unwrap_or(0))
            .collect()
    }

    /// Lines that were typed to it.
    pub fn typed(&self) -> Vec<String> {
        fs::read_to_string(self.dir.join("typed")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until it has counted further than it has now.
    pub fn goes_on(&self) -> Result<u64, Stop> {
        let before = self.ledger().len();
        wait("the job counts on", || self.ledger().len() > before + 2)?;
        Ok(self.ledger().len() as u64)
    }

    /// Waits until it runs, and says which process it is.
    pub fn identity(&self) -> Result<Identity, Stop> {
        let mut found = None;
        wait("the job runs", || {
            found = self.look();
            found.is_some() && self.ledger().len() > 2
        })?;
        found.ok_or_else(|| broken("the job", "no process"))
    }

    fn look(&self) -> Option<Identity> {
        let pid = fs::read_to_string(self.dir.join("job.pid")).ok()?.trim().parse().ok()?;
        Some(Identity { pid, started: started(pid)? })
    }

    /// The same process still runs, and its count has neither a gap nor a number twice.
    pub fn undisturbed(&self, before: &Identity) -> Result<u64, Stop> {
        let counted = self.goes_on()?;
        let now = self.look();
        if now.as_ref() != Some(before) || !alive(before.pid) {
            return Err(Stop::Broken(format!("the job is another process: {before:?} before, {now:?} now")));
        }
        let ledger = self.ledger();
        match ledger.iter().zip(1..).find(|(seen, expected)| *seen != expected) {
            Some((seen, expected)) => Err(Stop::Broken(format!("the ledger has {seen} where {expected} belongs"))),
            None => Ok(counted),
        }
    }
}
