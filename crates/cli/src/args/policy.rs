//! The options of policies.

use clap::{Subcommand, ValueHint};
use holdfast_types::Handle;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show the policy in force and its rules
    Show(PolicyShowArgs),
    /// Check policy files, without loading them
    Check(PolicyCheckArgs),
    /// Check that a policy decides a list of commands as written there
    Test(PolicyTestArgs),
    /// Show how a command is understood: its parts, paths and risks
    Explain(PolicyMayArgs),
    /// Ask whether an actor may run a command, without running it
    May(PolicyMayArgs),
    /// Show by which rule an act in a session's journal was allowed, held or denied
    Why(PolicyWhyArgs),
    /// Suggest changes to the policy, from the approvals of the past
    Suggest,
}

#[derive(Debug, clap::Args)]
pub struct PolicyShowArgs {
    /// Show this rule, with its text
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct PolicyCheckArgs {
    /// Files to check [default: all in the policy directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Check them together with this policy: solo, careful or locked [default: the configured one]
    #[arg(long, value_name = "POLICY")]
    pub with: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct PolicyTestArgs {
    /// File with one case a line: allow, ask or deny, an actor, and a command
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Test this policy: solo, careful or locked [default: the configured one]
    #[arg(long, value_name = "POLICY")]
    pub with: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct PolicyMayArgs {
    /// In this session's shell, by name or id [default: in a session of its own, in this directory]
    #[arg(short = 't', long, value_name = "NAME")]
    pub session: Option<String>,
    /// For ACTOR [default: the actor you act as]
    #[arg(long, value_name = "ACTOR")]
    pub actor: Option<Handle>,
    /// Command: a single word is shell text; several words are joined by spaces
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct PolicyWhyArgs {
    /// Session, by name or id
    #[arg(value_name = "NAME")]
    pub session: String,
    /// Number of the act in its journal (see `holdfast journal`)
    #[arg(value_name = "ACT")]
    pub act: u64,
}
