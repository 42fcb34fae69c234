//! The options of `holdfast mcp`.

use clap::{Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast mcp [--host <HOST>]\n       holdfast mcp install <CLIENT> [OPTIONS]")]
pub struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Add Holdfast to an agent's configuration: show the change, ask, and write it
    Install(McpInstallArgs),
}

#[derive(Debug, clap::Args)]
pub struct McpInstallArgs {
    /// Agent to configure
    #[arg(value_enum)]
    pub client: McpClient,
    /// Print the new configuration without writing it
    #[arg(long, conflicts_with_all = ["yes", "remove"])]
    pub print: bool,
    /// Write without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Remove the entry
    #[arg(long)]
    pub remove: bool,
    /// Change FILE instead of the agent's default file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum McpClient {
    Claude,
    ClaudeDesktop,
    Codex,
    Cursor,
    Gemini,
    Opencode,
    Vscode,
    Windsurf,
    Zed,
}
