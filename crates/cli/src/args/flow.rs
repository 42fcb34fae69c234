//! The options of flows.

use crate::values::Seconds;
use clap::{Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Start a flow from a YAML file, or one whose code a worker has
    Start(FlowStartArgs),
    /// List flows
    #[command(visible_alias = "list")]
    Ls(FlowLsArgs),
    /// Show a flow: its timeline, what it waits for, and where its steps run
    Show(FlowArg),
    /// Print a flow's steps and what each gave
    History(FlowHistoryArgs),
    /// Print a flow's steps as they happen, and exit with 0 if it completes
    Watch(FlowWatchArgs),
    /// Send a signal to a flow; one that comes early is kept
    Signal(FlowSignalArgs),
    /// Answer a flow's question; only humans may
    Answer(FlowAnswerArgs),
    /// Cancel a flow: stop what runs, then undo what was done
    Cancel(FlowCancelArgs),
    /// Let a blocked flow go on, or decide about a step whose outcome is lost or whose undo failed
    Retry(FlowRetryArgs),
    /// Take a flow back to a step, which is then done anew; the history before is kept
    Rewind(FlowRewindArgs),
    /// Decide about flows whose code is in a file, until interrupted
    Worker(FlowDecideArgs),
    /// Replay recorded histories against changed code, and say which flows it would block
    Test(FlowWorkerArgs),
    /// Run a flow while its file is being written, anew whenever the file changes; until interrupted
    Dev(FlowDevArgs),
    /// Print histories as JSON, one event a line
    Export(FlowExportArgs),
    /// Check a YAML file without starting anything
    Check(FlowCheckArgs),
    /// Show whether the flow service is running; exit with 1 if it is not
    Status,
    /// Stop the flow service; flows go on when it is started again
    Stop,
}

#[derive(Debug, clap::Args)]
pub struct FlowArg {
    /// Id of the flow
    #[arg(value_name = "FLOW")]
    pub flow: String,
}

#[derive(Debug, clap::Args)]
pub struct FlowStartArgs {
    /// A YAML file, a file with flows in code, or the name of a flow whose code a worker has
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub what: String,
    /// What the flow is given: text
    #[arg(value_name = "INPUT", conflicts_with = "data")]
    pub input: Option<String>,
    /// What the flow is given, as JSON
    #[arg(long, value_name = "JSON")]
    pub data: Option<String>,
    /// Id of the flow; the same id, file and input find the flow that was started before [default: NAME-NUMBER]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Directory in which its new sessions start [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// Which flow of a file with code, if it has several
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// Wait for the end, print the result, and exit with 0 if it completes
    #[arg(long)]
    pub wait: bool,
    /// Try it out: pass over its timers at once
    #[arg(long)]
    pub skip_timers: bool,
}

#[derive(Debug, clap::Args)]
pub struct FlowLsArgs {
    /// Include flows that have ended
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct FlowWatchArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// Give up after S seconds, with status 124
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
}

#[derive(Debug, clap::Args)]
pub struct FlowSignalArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// Name of the signal
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What it says: text
    #[arg(value_name = "VALUE", conflicts_with = "data")]
    pub value: Option<String>,
    /// What it says, as JSON
    #[arg(long, value_name = "JSON")]
    pub data: Option<String>,
    /// The same id counts once
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct FlowAnswerArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// The answer
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
    /// Number of the step that asks, if several do (see `flow show`)
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct FlowCancelArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub reason: String,
}

#[derive(Debug, clap::Args)]
pub struct FlowExportArgs {
    /// Ids of flows, with all their histories [default: all flows]
    #[arg(value_name = "FLOW")]
    pub flows: Vec<String>,
    /// Only flows that have ended
    #[arg(long)]
    pub ended: bool,
}

#[derive(Debug, clap::Args)]
pub struct FlowRetryArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// The stuck step has failed: the flow goes on from there
    #[arg(long)]
    pub failed: bool,
    /// The stuck step was done, and printed TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "failed")]
    pub done: Option<String>,
    /// Decide by the newest code from here on, also where nothing is blocked; `flow test` says before what that would block. A flow
    /// that was started from a file of code needs the FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["failed", "done"])]
    pub new_code: Option<Option<PathBuf>>,
}

#[derive(Debug, clap::Args)]
pub struct FlowHistoryArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// An older history, from 1: of a flow that continued as new or was rewound [default: the current one]
    #[arg(long, value_name = "N")]
    pub generation: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct FlowRewindArgs {
    #[command(flatten)]
    pub of: FlowArg,
    /// The step that is done anew: its number or name (see `flow history`)
    #[arg(long, value_name = "STEP")]
    pub to: String,
    /// Do again what these steps did; only humans may
    #[arg(long)]
    pub again: bool,
}

#[derive(Debug, clap::Args)]
pub struct FlowWorkerArgs {
    /// A Python file with functions marked `@flow`, or a JavaScript or TypeScript file that gives functions to `flow(…)`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct FlowDecideArgs {
    #[command(flatten)]
    pub of: FlowWorkerArgs,
    /// The file as it was kept under this digest: the service starts such workers
    #[arg(long, value_name = "DIGEST", hide = true)]
    pub kept: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct FlowDevArgs {
    /// A YAML file, or a file with flows in code
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What the flow is given: text
    #[arg(value_name = "INPUT", conflicts_with = "data")]
    pub input: Option<String>,
    /// What the flow is given, as JSON
    #[arg(long, value_name = "JSON")]
    pub data: Option<String>,
    /// Which flow of the file, if it has several
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// Pass over its timers at once
    #[arg(long)]
    pub skip_timers: bool,
}

#[derive(Debug, clap::Args)]
pub struct FlowCheckArgs {
    /// A YAML file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}
