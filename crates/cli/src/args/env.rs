//! The options of `env`.

use super::SessionArg;

#[derive(Debug, clap::Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Also what is as it was when the shell started
    #[arg(long)]
    pub all: bool,
}
