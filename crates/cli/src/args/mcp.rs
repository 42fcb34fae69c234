//! The options of `holdfast mcp`.

use clap::{Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast mcp\n       holdfast mcp install <CLIENT> [OPTIONS]")]
pub struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Make an agent's program know this server: show what changes in its configuration, ask, and write it
    Install(McpInstallArgs),
}

#[derive(Debug, clap::Args)]
pub struct McpInstallArgs {
    /// Whose configuration
    #[arg(value_enum)]
    pub client: McpClient,
    /// Print the configuration that is to be written, and write nothing
    #[arg(long, conflicts_with_all = ["yes", "remove"])]
    pub print: bool,
    /// Write without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Take the entry out again
    #[arg(long)]
    pub remove: bool,
    /// That file instead of the client's own
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
