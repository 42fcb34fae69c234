//! `holdfast move`.

use super::SessionArg;

#[derive(Debug, clap::Args)]
pub struct MoveArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// The host to move it to, which you added with `hosts add` or `accept`; `here` is this machine
    #[arg(value_name = "HOST")]
    pub to: String,
    /// Show what would be in the way, and move nothing; exit with 1 if it would be refused
    #[arg(long)]
    pub check: bool,
}
