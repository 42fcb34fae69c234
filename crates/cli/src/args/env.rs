//! The options of `env`.

use super::SessionArg;

#[derive(Debug, clap::Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Include what has not changed since the shell started
    #[arg(long)]
    pub all: bool,
}
