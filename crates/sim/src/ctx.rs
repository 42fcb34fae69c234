//! What every part of the world can reach: the clock, chance, the wires, the terminals, the truth, and the log.

use crate::host::{Disk, Line};
use crate::net::Net;
use crate::oracle::Oracle;
use crate::program::Pty;
use crate::terminal::Terminal;
use std::fmt::Write as _;

/// How often things happened that a run is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct Counts {
    pub host_crashes: u64,
    pub host_crashes_within_a_turn: u64,
    pub long_absences: u64,
    pub client_departures: u64,
    pub keeper_deaths: u64,
    pub attaches: u64,
    pub resumes: u64,
    pub paints: u64,
    pub keeper_paints: u64,
    pub stalls: u64,
    pub client_laps: u64,
    pub screen_gaps: u64,
    pub reader_gaps: u64,
    pub duplicates: u64,
    pub refused_full: u64,
    pub refused_stale: u64,
    pub refused_writer: u64,
    pub turn_changes: u64,
    pub acts: u64,
    pub acts_refused: u64,
    pub turns_contended: u64,
    pub seizures: u64,
    pub freezes: u64,
    pub thaws: u64,
    pub crashes_with_a_held_turn: u64,
    pub crashes_with_grants: u64,
    pub replays: u64,
    pub segments: u64,
    pub resumes_too_late: u64,
    pub sent_through_host: u64,
    pub keys_refused: u64,
    pub tokens_refused: u64,
    pub records_of_typing: u64,
    pub bytes_recorded: u64,
    pub notices: u64,
    pub answers_held_back_too_long: u64,
    pub long_jumps: u64,
    pub answers_lost_with_the_turn: u64,
    pub flushes: u64,
    pub resizes: u64,
    pub queries: u64,
    pub queries_calm: u64,
    pub answered_by_host: u64,
    pub answered_by_terminal: u64,
    pub answered_twice: u64,
    pub unanswered: u64,
    pub screens_compared: u64,
    pub sizes_compared: u64,
    pub inputs: u64,
    pub output_bytes: u64,
    pub marks_forged: u64,
    pub runs_asked: u64,
    pub runs_busy: u64,
    pub runs_executed: u64,
    pub runs_exact: u64,
    pub runs_lost: u64,
    pub runs_not_entered: u64,
    pub runs_taken_up: u64,
    pub keys_freed: u64,
}

impl Counts {
    /// Adds another run's.
    pub fn add(&mut self, other: &Counts) {
        let mut other = *other;
        for ((_, mine), (_, theirs)) in self.fields_mut().into_iter().zip(other.fields_mut()) {
            *mine += *theirs;
        }
    }

    /// Every count with its name.
    pub fn fields_mut(&mut self) -> [(&'static str, &mut u64); 59] {
        macro_rules! all {
            ($($name:ident)*) => { [$((stringify!($name), &mut self.$name)),*] };
        }
        all![host_crashes host_crashes_within_a_turn long_absences client_departures keeper_deaths attaches resumes paints
            keeper_paints stalls client_laps screen_gaps reader_gaps duplicates refused_full refused_stale refused_writer
            turn_changes acts acts_refused turns_contended seizures freezes thaws crashes_with_a_held_turn
            crashes_with_grants replays segments resumes_too_late sent_through_host keys_refused tokens_refused
            records_of_typing bytes_recorded notices answers_held_back_too_long long_jumps answers_lost_with_the_turn
            flushes resizes queries queries_calm answered_by_host answered_by_terminal answered_twice unanswered
            screens_compared sizes_compared inputs output_bytes
            marks_forged runs_asked runs_busy runs_executed runs_exact runs_lost runs_not_entered runs_taken_up keys_freed]
    }
}

/// The world's common ground.
pub(crate) struct Ctx {
    pub now: u64,
    pub rng: fastrand::Rng,
    pub net: Net,
    pub pty: Pty,
    pub terminals: Vec<Terminal>,
    /// Clients' connections to hosts; those that are not closed lead to the present one.
    pub lines: Vec<Line>,
    pub oracle: Oracle,
    /// Files about runs.
    pub disk: Disk,
    /// The program stands still.
    pub frozen: bool,
    pub counts: Counts,
    pub log: String,
    pub failure: Option<String>,
}

impl Ctx {
    pub fn new(seed: u64) -> Ctx {
        Ctx {
            now: 1000,
            rng: fastrand::Rng::with_seed(seed),
            net: Net::default(),
            pty: Pty::default(),
            terminals: Vec::new(),
            lines: Vec::new(),
            oracle: Oracle::default(),
            disk: Disk::default(),
            frozen: false,
            counts: Counts::default(),
            log: String::new(),
            failure: None,
        }
    }

    /// One line of the log.
    pub fn note(&mut self, what: std::fmt::Arguments<'_>) {
        writeln!(self.log, "{:>6} {what}", self.now).expect("a string takes everything");
    }

    /// An invariant does not hold; the first one counts.
    pub fn fail(&mut self, what: String) {
        self.note(format_args!("FAILED {what}"));
        self.failure.get_or_insert(what);
    }

    /// Connects to the host that is there.
    pub fn connect_host(&mut self) -> usize {
        self.lines.push(Line::new());
        self.lines.len() - 1
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }
}
