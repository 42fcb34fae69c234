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
    /// Name, id, or the beginning of an id: the session whose shell runs it
    #[arg(value_name = "NAME", required_unless_present = "new", conflicts_with = "new")]
    pub session: Option<String>,
    /// Run it in a session of its own, without a shell
    #[arg(long)]
    pub new: bool,
    /// The name of that session
    #[arg(long, value_name = "NEW", requires = "new")]
    pub name: Option<SessionName>,
    /// Keep that session listed when it has ended
    #[arg(long, requires = "new")]
    pub keep: bool,
    /// Run it once: the same key and command give the same run again
    #[arg(long, value_name = "K")]
    pub key: Option<String>,
    /// Wait this many seconds, then say `running` with status 124; it goes on
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    /// Where the shell does not tell its end: quiet or quiet:TIME without output, or prompt:REGEX for the last line; its status is
    /// not known then, and after a crash of the host it is lost
    #[arg(long, value_name = "HOW", value_parser = detect, conflicts_with = "new")]
    pub detect: Option<Detect>,
    /// When it is over, post its outcome as JSON to this address, also when the host was down in between
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub on_exit: Option<String>,
    /// Sign that with the first line of this file
    #[arg(long, value_name = "FILE", requires = "on_exit", value_hint = ValueHint::FilePath)]
    pub on_exit_secret: Option<PathBuf>,
    #[command(flatten)]
    pub expect: ExpectArgs,
    /// What to run: one word is taken as the shell's text, several are quoted for it
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
            || self.key.is_some()
            || self.timeout.is_some()
            || self.detect.is_some()
            || self.on_exit.is_some()
            || !self.expect.expect.is_empty()
            || !self.command.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// List runs, of one session or of all
    Ls(RunLsArgs),
    /// Show a run
    Status(RunArg),
    /// Wait until a run has ended, and end as it did
    Wait(RunWaitArgs),
    /// Print a run's output, byte for byte
    Output(RunOutputArgs),
    /// Interrupt a run
    Cancel(RunArg),
}

#[derive(Debug, clap::Args)]
pub struct RunArg {
    /// The run's id, or its key
    #[arg(value_name = "RUN")]
    pub run: RunRef,
}

#[derive(Debug, clap::Args)]
pub struct RunLsArgs {
    /// Name, id, or the beginning of an id
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct RunWaitArgs {
    #[command(flatten)]
    pub of: RunArg,
    /// Give up after this many seconds, with status 124
    #[arg(long, value_name = "S")]
    pub timeout: Option<Seconds>,
    #[command(flatten)]
    pub expect: ExpectArgs,
}

#[derive(Debug, clap::Args)]
pub struct ExpectArgs {
    /// End with 0 if it comes out so: exit:CODE[,CODE…], text:REGEX or no-text:REGEX, in the whole output; else with its
    /// status, or 1; may be repeated
    #[arg(long, value_name = "WHAT")]
    pub expect: Vec<Expect>,
}

#[derive(Debug, clap::Args)]
pub struct RunOutputArgs {
    #[command(flatten)]
    pub of: RunArg,
    /// Text alone, without escape sequences
    #[arg(long)]
    pub plain: bool,
}

/// Output that pauses for this long is taken as ended, unless told otherwise: longer than most programs think.
const QUIET_MS: u64 = 1_000;

fn detect(text: &str) -> Result<Detect, String> {
    match text.split_once(':') {
        None if text == "quiet" => Ok(Detect::Quiet(QUIET_MS)),
        Some(("quiet", time)) => time.parse::<Seconds>().map(|time| Detect::Quiet(time.ms)).map_err(|e| e.to_string()),
        Some(("prompt", regex)) if !regex.is_empty() => Ok(Detect::Prompt(regex.to_owned())),
        Some(_) | None => Err("expected quiet, quiet:TIME (for example quiet:500ms), or prompt:REGEX".into()),
    }
}
