//! `holdfast checkpoint`, `checkpoints` and `restore`.

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub session: Option<String>,
    /// Every portable session that is running
    #[arg(long, conflicts_with = "check")]
    pub all: bool,
    /// Show what a checkpoint would refuse or cut, and make none; exit with 1 if it would be refused
    #[arg(long)]
    pub check: bool,
    /// Let the session keep running
    #[arg(long, conflicts_with = "check")]
    pub keep_running: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub enum CheckpointsCommand {
    /// List checkpoints
    Ls(CheckpointsArgs),
    /// Show a checkpoint
    Show(CheckpointArg),
    /// Remove a checkpoint
    Rm(CheckpointArg),
}

#[derive(Debug, Clone, clap::Args)]
pub struct CheckpointsArgs {
    /// Of this session [default: all]
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct CheckpointArg {
    /// The checkpoint's id
    #[arg(value_name = "ID")]
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A session, for its newest checkpoint; or a checkpoint's id
    #[arg(value_name = "NAME|CHECKPOINT")]
    pub what: String,
}
