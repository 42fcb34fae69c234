//! The options of tokens.

use crate::values::{Seconds, rights};
use clap::Subcommand;
use holdfast_types::Rights;

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it; it is shown only once
    New(TokenNewArgs),
    /// List valid tokens
    Ls,
    /// Revoke a token at once
    Revoke(TokenArg),
}

#[derive(Debug, clap::Args)]
pub struct TokenNewArgs {
    /// Limit the token to these rights, separated by commas: observe, type, run, start, signal, seize, grant, approve,
    /// checkpoint, fork, end, configure, files:read, files:write [default: all rights of its actor]
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub can: Option<Rights>,
    /// Lifetime, for example 90s, 2h or 3d [default: 30d]
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<Seconds>,
    /// Note on what the token is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}

#[derive(Debug, clap::Args)]
pub struct TokenArg {
    /// Token id (see `holdfast token ls`)
    #[arg(value_name = "ID")]
    pub token: String,
}
