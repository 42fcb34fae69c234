//! The options of approvals.

use crate::values::Seconds;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List acts that wait for approval
    Ls(ApprovalsLsArgs),
    /// Show an act that waits, and what it would do
    Show(ApprovalArg),
    /// Approve an act: the host does it now
    Approve(ApproveArgs),
    /// Deny an act
    Deny(DenyArgs),
    /// Wait until an act is answered and done; exit with 0 if it was done
    Wait(ApprovalWaitArgs),
}

#[derive(Debug, clap::Args)]
pub struct ApprovalsLsArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
    /// Include those that are over
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct ApprovalArg {
    /// Id of the approval, or a prefix of it
    #[arg(value_name = "APPROVAL")]
    pub approval: String,
}

#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    pub of: ApprovalArg,
    /// Let the actor do the same again for M minutes without asking, at most 480
    #[arg(long = "for", value_name = "M", value_parser = clap::value_parser!(u32).range(1..=480))]
    pub minutes: Option<u32>,
    /// A sentence for the actor that asked
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct DenyArgs {
    #[command(flatten)]
    pub of: ApprovalArg,
    /// A sentence for the actor that asked
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct ApprovalWaitArgs {
    #[command(flatten)]
    pub of: ApprovalArg,
    /// Wait at most S seconds, then exit with status 124
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
}
