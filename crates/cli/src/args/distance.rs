//! The options of invites and devices.

use crate::values::{Seconds, rights};
use clap::Subcommand;
use holdfast_types::Rights;

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast invite <NAME> [OPTIONS]\n       holdfast invite --host-wide [OPTIONS]")]
pub struct InviteArgs {
    /// Name, id, or the beginning of one: the session to share
    #[arg(value_name = "NAME", required_unless_present = "host_wide", conflicts_with = "host_wide")]
    pub session: Option<String>,
    /// Share all sessions of this host: for another machine of your own
    #[arg(long)]
    pub host_wide: bool,
    /// Limit guests to these rights, separated by commas: observe, type, run, start, signal, seize, grant, approve,
    /// checkpoint, fork, end, configure, files:read, files:write [default: observe; with --host-wide: all of yours]
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub can: Option<Rights>,
    /// How long the link can be accepted, for example 10m or 2d [default: 1h]
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<Seconds>,
    /// How long access lasts once the link was accepted [default: until you revoke it]
    #[arg(long, value_name = "TIME")]
    pub access: Option<Seconds>,
    /// How many machines can accept the link [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub uses: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum InvitesCommand {
    /// List invites, and whether each can still be accepted
    Ls,
    /// Revoke an invite; machines that accepted it keep their access (see `holdfast devices`)
    Revoke(InviteArg),
}

#[derive(Debug, clap::Args)]
pub struct InviteArg {
    /// Invite id (see `holdfast invites ls`)
    #[arg(value_name = "ID")]
    pub invite: String,
}

#[derive(Debug, clap::Args)]
pub struct AcceptArgs {
    /// The link; with - it is read from standard input
    #[arg(value_name = "LINK")]
    pub link: String,
    /// What you will call the host [default: what it calls itself]
    #[arg(long, value_name = "HOST")]
    pub name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DevicesCommand {
    /// List the machines that accepted an invite
    Ls,
    /// Revoke a machine's access at once, also while it is attached
    Revoke(DeviceArg),
}

#[derive(Debug, clap::Args)]
pub struct DeviceArg {
    /// Device id, or its actor (see `holdfast devices ls`)
    #[arg(value_name = "ID")]
    pub device: String,
}
