//! The options of forks.

use super::SessionArg;
use clap::{Subcommand, ValueHint};
use holdfast_types::SessionName;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    override_usage = "holdfast fork <NAME> [-n <COUNT>] [--as-names <A,B>] [--share-network]\n       holdfast fork diff <BRANCH> [<OTHER>] [--patch]\n       holdfast fork keep <BRANCH> [--into <DIR> | --patch <FILE>] [--take <PATH>]... [--leave <PATH>]...\n       holdfast fork discard <BRANCH>"
)]
pub struct ForkArgs {
    #[command(subcommand)]
    pub about: Option<ForkCommand>,
    #[command(flatten)]
    pub start: ForkStartArgs,
}

#[derive(Debug, clap::Args)]
pub struct ForkStartArgs {
    /// Session to fork: name, id, or prefix of an id
    #[arg(value_name = "NAME", required = true)]
    pub session: Option<String>,
    /// How many branches [default: 2, or as many as names]
    #[arg(short = 'n', long = "count", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub count: Option<u32>,
    /// Names of the branches, separated by commas [default: NAME-1,NAME-2]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub as_names: Vec<SessionName>,
    /// Give the branches the machine's network instead of one of their own; ports that the session listens on cannot be had twice
    #[arg(long)]
    pub share_network: bool,
}

#[derive(Debug, Subcommand)]
pub enum ForkCommand {
    /// List the files that a branch changed, or in which two branches differ
    Diff(ForkDiffArgs),
    /// Apply a branch's changed files to the real ones, or copy them elsewhere
    Keep(ForkKeepArgs),
    /// End a branch and remove its files
    Discard(SessionArg),
}

#[derive(Debug, clap::Args)]
pub struct ForkDiffArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Another branch to compare with [default: the real files]
    #[arg(value_name = "OTHER")]
    pub with: Option<String>,
    /// Print a unified diff of text files
    #[arg(long)]
    pub patch: bool,
}

#[derive(Debug, clap::Args)]
pub struct ForkKeepArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Copy created and changed files below DIR, which must be empty, and leave the real ones alone
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["patch", "take", "leave"])]
    pub into: Option<PathBuf>,
    /// Write a unified diff of text files to FILE, and leave the real ones alone
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["take", "leave"])]
    pub patch: Option<PathBuf>,
    /// Of a file that conflicts, take the branch's version; can be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub take: Vec<PathBuf>,
    /// Leave this file, or all below this directory, as it is; can be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub leave: Vec<PathBuf>,
}
