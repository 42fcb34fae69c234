//! The arguments of `journal` and `export`.

use crate::args::SessionArg;
use crate::values::Seconds;
use clap::ValueHint;
use holdfast_authority::By;
use holdfast_authority::journal::Link;
use holdfast_types::{ActorClass, Handle, TimeMs};
use jiff::Timestamp;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast journal <NAME> [--actor <WHO>] [--since <WHEN>] [-n <N>] [--follow]\n       holdfast journal <NAME> --at <OFFSET>\n       holdfast journal <NAME> --verify [--last <SEQ:HASH>]\n       holdfast journal --verify --file <PATH>..."
)]
pub struct JournalArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME", required_unless_present = "files", conflicts_with = "files")]
    pub session: Option<String>,
    /// Show records of one actor (human:ann), a class (human), or the host
    #[arg(long, value_name = "WHO")]
    pub actor: Option<Whose>,
    /// Show records since this time: 10m, 2h, or 2026-01-05T14:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
    /// Show only the last N records
    #[arg(short = 'n', long = "lines", value_name = "N")]
    pub lines: Option<usize>,
    /// Keep printing until the session ends
    #[arg(long)]
    pub follow: bool,
    /// Show the last act before the output at OFFSET
    #[arg(long, value_name = "OFFSET", conflicts_with_all = ["actor", "since", "lines", "follow"])]
    pub at: Option<u64>,
    /// Check every hash and signature; exit with 1 if a record was changed
    #[arg(long, conflicts_with_all = ["actor", "since", "lines", "follow", "at"])]
    pub verify: bool,
    /// With --verify, check that this record, once the last, is still there
    #[arg(long, value_name = "SEQ:HASH", requires = "verify", value_parser = link)]
    pub last: Option<Link>,
    /// Read these journal files, in any order, without a host
    #[arg(long = "file", value_name = "PATH", num_args = 1.., conflicts_with = "follow", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Acts have times, output does not: Holdfast interpolates the times between two acts by bytes. A recording shows the order\nof the output and when each act happened, but not how fast the output between two acts was."
)]
pub struct ExportArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Write asciicast v3, or v2 for older players, with a marker for each act that names its actor
    #[arg(long, required = true, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = ["2", "3"])]
    pub asciicast: String,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Include typed input as input events
    #[arg(long)]
    pub input: bool,
    /// Shorten pauses to at most S seconds
    #[arg(long, value_name = "S")]
    pub idle_limit: Option<Seconds>,
}

/// Whose records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// One actor's.
    One(Handle),
    /// All of a class.
    Class(ActorClass),
    /// What the host did by itself.
    Host,
}

impl Whose {
    /// Whether a record of this actor is meant.
    pub fn is(&self, by: &By) -> bool {
        match (self, by.actor()) {
            (Whose::One(handle), Some(actor)) => actor.handle == *handle,
            (Whose::Class(class), Some(actor)) => actor.handle.class() == *class,
            (Whose::Host, None) => true,
            (Whose::One(_) | Whose::Class(_), None) | (Whose::Host, Some(_)) => false,
        }
    }
}

impl FromStr for Whose {
    type Err = String;

    fn from_str(text: &str) -> Result<Whose, String> {
        match text.strip_suffix(':').unwrap_or(text) {
            "host" => Ok(Whose::Host),
            "human" => Ok(Whose::Class(ActorClass::Human)),
            "agent" => Ok(Whose::Class(ActorClass::Agent)),
            "service" => Ok(Whose::Class(ActorClass::Service)),
            "device" => Ok(Whose::Class(ActorClass::Device)),
            _ => text.parse().map(Whose::One).map_err(|error| format!("{error}; or give a class alone, or host")),
        }
    }
}

/// From when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This long before now.
    Ago(Seconds),
    /// This moment.
    At(TimeMs),
}

impl Since {
    /// The moment.
    pub fn moment(self, now: TimeMs) -> TimeMs {
        match self {
            Since::Ago(span) => now.saturating_sub(span.ms),
            Since::At(at) => at,
        }
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Since, &'static str> {
        let ago = || text.trim_end_matches("ago").parse().map(Since::Ago).ok();
        // A moment before 1970 is as long ago as any.
        let ms = |at: Timestamp| TimeMs::try_from(at.as_millisecond()).unwrap_or(0);
        let at = || text.trim().parse().ok().map(ms).map(Since::At);
        ago().or_else(at).ok_or("expected a time like 10m or 2h, or a moment like 2026-01-05T14:00:00Z")
    }
}

/// `SEQ:HASH`, as `--verify` prints it.
fn link(text: &str) -> Result<Link, &'static str> {
    let parts =
        text.split_once(':').and_then(|(seq, hash)| Some(Link { seq: seq.parse().ok()?, hash: hash.parse().ok()? }));
    parts.ok_or("expected SEQ:HASH, as --verify prints it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_actor_a_class_or_the_host_is_meant() {
        for (text, whose) in [
            ("human:ann", Whose::One("human:ann".parse().unwrap())),
            ("human", Whose::Class(ActorClass::Human)),
            ("agent:", Whose::Class(ActorClass::Agent)),
            ("host", Whose::Host),
        ] {
            assert_eq!(text.parse(), Ok(whose), "{text}");
        }
        assert!("ann".parse::<Whose>().is_err_and(|error| error.contains("CLASS:NAME")));
    }

    #[test]
    fn since_is_a_span_or_a_moment() {
        for (text, moment) in [("10m", 9_400_000), ("2 h ago", 2_800_000), ("1970-01-01T00:00:05Z", 5_000)] {
            assert_eq!(text.parse::<Since>().map(|since| since.moment(10_000_000)), Ok(moment), "{text}");
        }
        assert!("yesterday".parse::<Since>().is_err());
    }

    #[test]
    fn a_link_reads_as_it_is_printed() {
        assert_eq!(link(&format!("12:{}", "0f".repeat(32))).map(|link| link.seq), Ok(12));
        for text in ["", "12", "12:", "x:00", "12:0F"] {
            assert!(link(text).is_err(), "{text}");
        }
    }
}
