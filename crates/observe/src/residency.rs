//! What a session takes up, and whether anything but its shell is there.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use holdfast_graph::{PROCESSES_MAX, ProcessId};

use crate::proc::Proc;
use crate::tree::{Spared, descendants, process_id};

/// A shell that is alone in its session, as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone {
    /// The keeper.
    pub keeper: ProcessId,
    /// The shell.
    pub shell: ProcessId,
    /// How often the shell has run and stopped again. While the number stays the same it has not run.
    pub switches: u64,
}

/// The shell, where it is the only process below the keeper; none where there are others.
///
/// # Errors
///
/// The keeper or the shell is gone, or `/proc` cannot be read.
pub fn alone(keeper: u32, shell: u32, around: &[u32], spared: &Spared) -> io::Result<Option<Alone>> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    // Read before the list: whatever the shell starts meanwhile is in the list, or changes the number the next time.
    let switches = switches(shell).ok_or_else(gone)?;
    let found = descendants(keeper, spared)?;
    let mut inside = found.iter().filter(|process| !around.contains(&process.pid));
    let (Some(only), None) = (inside.next(), inside.next()) else { return Ok(None) };
    if only.pid != shell {
        return Ok(None);
    }
    let keeper = process_id(keeper).ok_or_else(gone)?;
    Ok(Some(Alone { keeper, shell: only.id(), switches }))
}

/// Context switches of a process's first thread, of both kinds.
pub(crate) fn switches(pid: u32) -> Option<u64> {
    let mut proc = Proc::open().ok()?;
    let dir = proc.process(pid).ok()?;
    let text = String::from_utf8_lossy(proc.read(dir.as_fd(), "status").ok()?).into_owned();
    let of = |key: &str| field(&text, key);
    Some(of("voluntary_ctxt_switches:")? + of("nonvoluntary_ctxt_switches:")?)
}

/// The number behind a key at the beginning of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The memory of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Of the keeper and its descendants; what is shared counts in parts.
    pub memory_bytes: u64,
    /// Of some of them it is not known, or only what they have resident.
    pub is_estimated: bool,
    /// Descendants of the keeper.
    pub processes: u32,
}

/// Measures a keeper and its descendants. To ask for parts of memory takes as long as a process has mappings: after `parts_until` what
/// is resident is enough.
///
/// # Errors
///
/// The keeper is gone, or `/proc` cannot be read.
pub fn residency(keeper: u32, spared: &Spared, parts_until: Instant) -> io::Result<Residency> {
    let found = descendants(keeper, spared)?;
    let mut proc = Proc::open()?;
    let mut sum = Residency { processes: u32::try_from(found.len()).unwrap_or(u32::MAX), ..Residency::default() };
    sum.is_estimated = found.len() > PROCESSES_MAX;
    for pid in std::iter::once(keeper).chain(found.iter().take(PROCESSES_MAX).map(|process| process.pid)) {
        // One that is gone by now has none.
        let Ok(dir) = proc.process(pid) else { continue };
        let share = (Instant::now() < parts_until).then(|| kib(&mut proc, &dir, "smaps_rollup", "Pss:")).flatten();
        let known = share.or_else(|| {
            sum.is_estimated = true;
            kib(&mut proc, &dir, "status", "VmRSS:")
        });
        sum.memory_bytes += known.unwrap_or(0) * 1024;
    }
    Ok(sum)
}

fn kib(proc: &mut Proc, dir: &impl AsFd, file: &str, key: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(proc.read(dir, file).ok()?).into_owned();
    field(&text, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_by_its_key_at_the_beginning_of_a_line() {
        let text = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!((field(text, "voluntary_ctxt_switches:"), field(text, "Pss:")), (Some(12), None));
        assert_eq!(field(text, "nonvoluntary_ctxt_switches:"), Some(3));
    }
}
