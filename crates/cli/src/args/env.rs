//! The options of `env` and `handover`.

use super::SessionArg;

#[derive(Debug, clap::Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Include what has not changed since the shell started
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct HandoverArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// List every change, as a diff
    #[arg(long)]
    pub diff: bool,
}
