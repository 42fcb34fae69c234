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
    /// Create an actor with its own key
    New(ActorNewArgs),
    /// List actors
    Ls,
    /// Remove an actor and revoke its key
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
    /// Write the secret key to FILE instead of the state directory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct RequestArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Wait until you have the turn; give up after S seconds with status 124
    #[arg(long, value_name = "S", num_args = 0..=1)]
    pub wait: Option<Option<Seconds>>,
}

#[derive(Debug, clap::Args)]
pub struct GiveArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Actor that gets the turn
    #[arg(long, value_name = "ACTOR")]
    pub to: Handle,
}

#[derive(Debug, clap::Args)]
pub struct SeizeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Freeze the whole process tree until `holdfast thaw`
    #[arg(long)]
    pub freeze: bool,
    /// Reason, shown in the journal and to the holder that loses the turn
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

#[derive(Debug, clap::Args)]
pub struct GrantArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Actor that gets the rights
    #[arg(long, value_name = "ACTOR")]
    pub to: Handle,
    /// Rights, separated by commas: observe, type, run, signal, seize, grant, approve, checkpoint, fork, end, configure,
    /// files:read, files:write, or all
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub can: Rights,
    /// Grant for this long, for example 90s, 2h or 3d
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    pub span: Option<Seconds>,
    /// Grant until this time: 17:30, or 2026-07-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast revoke <NAME> <GRANT>\n       holdfast revoke <NAME> --to <ACTOR>")]
#[command(group = ArgGroup::new("what").required(true).args(["grant", "to"]))]
pub struct RevokeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Number of the grant (see `holdfast grants`)
    #[arg(value_name = "GRANT")]
    pub grant: Option<u32>,
    /// Revoke everything this actor holds, including its class's default rights
    #[arg(long, value_name = "ACTOR")]
    pub to: Option<Handle>,
}

#[derive(Debug, clap::Args)]
pub struct SignalArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Signal name or number: INT, SIGTERM, 9
    #[arg(value_name = "SIG")]
    pub signal: SignalNumber,
    #[command(flatten)]
    pub target: SignalTarget,
}

/// To whom a signal goes; to the foreground group where nothing is said.
#[derive(Debug, clap::Args)]
pub struct SignalTarget {
    /// Signal the whole process tree [default: the foreground process group]
    #[arg(long)]
    pub tree: bool,
    /// Signal the session's own command and its process group
    #[arg(long, conflicts_with = "tree")]
    pub command: bool,
}
