//! The options of what concerns actors: identity, the turn, grants, signals.

use super::SessionArg;
use crate::signals::SignalNumber;
use crate::values::{Seconds, rights};
use crate::when::When;
use clap::{ArgGroup, Subcommand, ValueHint};
use holdfast_types::{Handle, Rights};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ActorCommand {
    /// Make an actor with a key of its own
    New(ActorNewArgs),
    /// List the actors
    Ls,
    /// Forget an actor: its key opens nothing any more
    Remove(ActorArg),
}

#[derive(Debug, clap::Args)]
pub struct ActorArg {
    /// Class and name: human:ann, agent:claude, service:deploy, device:phone
    #[arg(value_name = "HANDLE")]
    pub handle: Handle,
}

#[derive(Debug, clap::Args)]
pub struct ActorNewArgs {
    #[command(flatten)]
    pub of: ActorArg,
    /// Write the secret key to FILE instead of the home's own place
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct RequestArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Wait until the turn is yours; give up after S seconds, with status 124
    #[arg(long, value_name = "S", num_args = 0..=1)]
    pub wait: Option<Option<Seconds>>,
}

#[derive(Debug, clap::Args)]
pub struct GiveArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Who gets it
    #[arg(long, value_name = "ACTOR")]
    pub to: Handle,
}

#[derive(Debug, clap::Args)]
pub struct SeizeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Stop the whole process tree until `thaw`
    #[arg(long)]
    pub freeze: bool,
    /// Why: for the journal, and for who loses the turn
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

#[derive(Debug, clap::Args)]
pub struct GrantArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Who gets them
    #[arg(long, value_name = "ACTOR")]
    pub to: Handle,
    /// Which: observe type run signal seize grant approve checkpoint fork end configure, or all
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub can: Rights,
    /// For so long, for example 90s, 2h or 3d
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    pub span: Option<Seconds>,
    /// Until then: 17:30, or a moment like 2026-07-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast revoke <NAME> <GRANT>\n       holdfast revoke <NAME> --to <ACTOR>")]
#[command(group = ArgGroup::new("what").required(true).args(["grant", "to"]))]
pub struct RevokeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// One grant by its number, as `holdfast grants` shows it
    #[arg(value_name = "GRANT")]
    pub grant: Option<u32>,
    /// Everything this actor holds, what its class holds too
    #[arg(long, value_name = "ACTOR")]
    pub to: Option<Handle>,
}

#[derive(Debug, clap::Args)]
pub struct SignalArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Name or number: INT, SIGTERM, 9
    #[arg(value_name = "SIG")]
    pub signal: SignalNumber,
    #[command(flatten)]
    pub target: SignalTarget,
}

/// To whom a signal goes; to the foreground group where nothing is said.
#[derive(Debug, clap::Args)]
pub struct SignalTarget {
    /// To the whole process tree; without it, to the foreground group
    #[arg(long)]
    pub tree: bool,
    /// To the command the session was started with, and its group
    #[arg(long, conflicts_with = "tree")]
    pub command: bool,
}
