//! The options of runs.

use crate::expect::Expect;
use crate::values::Seconds;
use clap::{Subcommand, ValueHint};
use holdfast_types::SessionName;
use holdfast_wire::runs::{Detect, RunRef};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    subcommand_negates_reqs = true,
    override_usage = "holdfast run <NAME> [OPTIONS] -- <COMMAND>...\n       holdfast run --new [OPTIONS] -- <COMMAND>...\n       holdfast run ls|status|wait|output|cancel …"
)]
pub struct RunArgs {
    #[command(subcommand)]
    pub about: Option<RunCommand>,
    #[command(flatten)]
    pub start: RunStartArgs,
}

#[derive(Debug, clap::Args)]
pub struct RunStartArgs {
    /// Session whose shell runs the command: name, id, or prefix of an id
    #[arg(value_name = "NAME", required_unless_present = "new", conflicts_with = "new")]
    pub session: Option<String>,
    /// Run the command in a new session, without a shell
    #[arg(long)]
    pub new: bool,
    /// Name of the new session
    #[arg(long, value_name = "NEW", requires = "new")]
    pub name: Option<SessionName>,
    /// Keep the new session listed after it ends
    #[arg(long, requires = "new")]
    pub keep: bool,
    /// Keep its standard error apart from its terminal, and print it there at the end
    #[arg(long, requires = "new", conflicts_with = "user")]
    pub separate_stderr: bool,
    /// Run as another user, in its home and environment; the host must run as root
    #[arg(long, value_name = "USER", requires = "new", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Run once: the same key and command return the same run. Every actor has keys of its own
    #[arg(long, value_name = "K")]
    pub key: Option<String>,
    /// Share the key: every actor that uses it with --shared gets the same run
    #[arg(long, requires = "key")]
    pub shared: bool,
    /// Wait S seconds, then report `running` with status 124; the command keeps running
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    /// If a human must approve the command, wait S seconds for the answer before failing with `approval_needed`
    #[arg(long, value_name = "S")]
    pub wait_approval: Option<Seconds>,
    /// Say why you run it: for policies, and for the human who is asked
    #[arg(long, value_name = "TEXT")]
    pub intent: Option<String>,
    #[command(flatten)]
    pub contract: ContractArgs,
    /// Infer the end of the command in a shell without integration: quiet or quiet:TIME without output, or prompt:REGEX on
    /// the last line. The exit status is then unknown, and a crash of the host loses the run
    #[arg(long, value_name = "HOW", value_parser = detect, conflicts_with = "new")]
    pub detect: Option<Detect>,
    /// Post the outcome as JSON to URL when the run ends, even if the host was down in between
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub on_exit: Option<String>,
    /// Sign the post with the first line of FILE
    #[arg(long, value_name = "FILE", requires = "on_exit", value_hint = ValueHint::FilePath)]
    pub on_exit_secret: Option<PathBuf>,
    #[command(flatten)]
    pub expect: ExpectArgs,
    /// Command: a single word is shell text; several words are quoted for the shell
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

impl RunStartArgs {
    /// Something of it was given.
    pub fn is_given(&self) -> bool {
        self.session.is_some()
            || self.new
            || self.name.is_some()
            || self.keep
            || self.separate_stderr
            || self.user.is_some()
            || self.key.is_some()
            || self.shared
            || self.timeout.is_some()
            || self.wait_approval.is_some()
            || self.intent.is_some()
            || self.contract.is_given()
            || self.detect.is_some()
            || self.on_exit.is_some()
            || !self.expect.expect.is_empty()
            || !self.command.is_empty()
    }
}

/// Where the options of contracts stand in the help.
const HEADING: &str = "Contract";

/// What the run promises: its effects are measured and held against it.
#[derive(Debug, Default, clap::Args)]
pub struct ContractArgs {
    /// Promise to change only files that match GLOB, relative to the directory or absolute; `nothing`: none; can be repeated
    #[arg(help_heading = HEADING, long, value_name = "GLOB")]
    pub may_change: Vec<String>,
    /// Promise to listen only on PORT; `nothing`: on none; can be repeated
    #[arg(help_heading = HEADING, long, value_name = "PORT")]
    pub may_listen: Vec<String>,
    /// Promise to connect only to ADDRESS:PORT beyond this machine, such as *:443; `nothing`: to none; can be repeated
    #[arg(help_heading = HEADING, long, value_name = "ADDRESS:PORT")]
    pub may_connect: Vec<String>,
    /// Promise to leave at most N processes running
    #[arg(help_heading = HEADING, long, value_name = "N")]
    pub may_leave: Option<u32>,
    /// Say that running it twice does no more than running it once
    #[arg(help_heading = HEADING, long)]
    pub idempotent: bool,
    /// Run it again up to N times if it fails, with growing pauses; needs --idempotent
    #[arg(help_heading = HEADING, long, value_name = "N", conflicts_with = "new")]
    pub retries: Option<u32>,
    /// Wait S seconds before the first retry [default: 1]
    #[arg(help_heading = HEADING, long, value_name = "S", requires = "retries")]
    pub backoff: Option<Seconds>,
    /// Measure its effects without promising anything; see them with `holdfast trace`
    #[arg(help_heading = HEADING, long)]
    pub effects: bool,
    /// Read the contract from a JSON file; options add to it
    #[arg(help_heading = HEADING, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub contract: Option<PathBuf>,
}

impl ContractArgs {
    /// Something of it was given.
    pub fn is_given(&self) -> bool {
        !self.may_change.is_empty()
            || !self.may_listen.is_empty()
            || !self.may_connect.is_empty()
            || self.may_leave.is_some()
            || self.idempotent
            || self.retries.is_some()
            || self.effects
            || self.contract.is_some()
    }
}

#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// List runs of a session, or of all sessions
    Ls(RunLsArgs),
    /// Show a run
    Status(RunArg),
    /// Wait for a run and exit with its status
    Wait(RunWaitArgs),
    /// Print a run's output, byte for byte
    Output(RunOutputArgs),
    /// Interrupt a run
    Cancel(RunArg),
}

#[derive(Debug, clap::Args)]
pub struct RunArg {
    /// Run id or key
    #[arg(value_name = "RUN")]
    pub run: RunRef,
}

#[derive(Debug, clap::Args)]
pub struct RunLsArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct RunWaitArgs {
    #[command(flatten)]
    pub of: RunArg,
    /// Give up after S seconds, with status 124
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    #[command(flatten)]
    pub expect: ExpectArgs,
}

#[derive(Debug, clap::Args)]
pub struct ExpectArgs {
    /// Exit with 0 only if this holds: exit:CODE[,CODE…], text:REGEX or no-text:REGEX (in the whole output); otherwise exit
    /// with the command's status, or 1; can be repeated
    #[arg(long, value_name = "WHAT")]
    pub expect: Vec<Expect>,
}

#[derive(Debug, clap::Args)]
pub struct RunOutputArgs {
    #[command(flatten)]
    pub of: RunArg,
    /// Strip escape sequences
    #[arg(long)]
    pub plain: bool,
}

/// Output that pauses for this long counts as ended by default: longer than most programs think.
const QUIET_MS: u64 = 1_000;

fn detect(text: &str) -> Result<Detect, String> {
    match text.split_once(':') {
        None if text == "quiet" => Ok(Detect::Quiet(QUIET_MS)),
        Some(("quiet", time)) => time.parse::<Seconds>().map(|time| Detect::Quiet(time.ms)).map_err(|e| e.to_string()),
        Some(("prompt", regex)) if !regex.is_empty() => Ok(Detect::Prompt(regex.to_owned())),
        Some(_) | None => Err("expected quiet, quiet:TIME (for example quiet:500ms), or prompt:REGEX".into()),
    }
}
