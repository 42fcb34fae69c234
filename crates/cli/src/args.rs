//! The command line: every command, its options, and its help.

mod attention;
mod authority;
mod env;
mod graph;
mod mcp;
mod network;
mod questions;
mod run;

pub use attention::{Awaited, WaitArgs, WatchArgs, pattern_of};
pub use authority::{ActorCommand, ActorNewArgs, GiveArgs, GrantArgs, RequestArgs, RevokeArgs, SeizeArgs, SignalArgs};
pub use env::EnvArgs;
pub use graph::{GraphArgs, MaybeSessionArg};
pub use mcp::{McpArgs, McpClient, McpCommand, McpInstallArgs};
pub use network::{HTTP_ADDRESS, ListenArgs, LogArgs, StartArgs, TokenCommand, TokenNewArgs, WebArgs};
pub use questions::{AnswerArgs, AskArgs, QuestionsArgs};
pub use run::{RunArgs, RunCommand, RunOutputArgs, RunStartArgs};

use crate::journal_args::{ExportArgs, JournalArgs};
use crate::values::{Bytes, Seconds};
use crate::who::Said;
use clap::{ArgGroup, Parser, Subcommand, ValueHint};
use holdfast_screen::keys::Key;
use holdfast_types::{SessionName, Size};
use std::ffi::OsString;
use std::path::PathBuf;

/// Keeps terminal sessions alive.
///
/// Without a command: attach to the session `main`, starting it with your shell where it is not there yet.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, max_term_width = 100, infer_long_args = false)]
pub struct Args {
    /// Answer, and complain, in JSON
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Keep state, sockets and configuration under DIR (over HOLDFAST_HOME)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Everywhere")]
    pub home: Option<PathBuf>,
    /// Act as ACTOR: a handle, or a path to a key file (over HOLDFAST_ACTOR)
    #[arg(long = "as", global = true, value_name = "ACTOR", help_heading = "Everywhere")]
    pub who: Option<Said>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a session
    New(NewArgs),
    /// Attach this terminal to a session; detach with Ctrl-\ d
    #[command(visible_alias = "a")]
    Attach(AttachArgs),
    /// List sessions
    Ls(LsArgs),
    /// Show everything about a session
    Info(SessionArg),
    /// Show a session's processes, what they hold, and who started each
    Graph(GraphArgs),
    /// List the processes of a session, or of all
    Ps(MaybeSessionArg),
    /// Show who listens where, in which session, and who started it
    Ports(MaybeSessionArg),
    /// Print a session's screen as text
    Screen(ScreenArgs),
    /// Print a session's output, byte for byte
    Logs(LogsArgs),
    /// Show who did what in a session, or check that this record was not changed
    Journal(JournalArgs),
    /// Export a session as a recording
    Export(ExportArgs),
    /// Type into a session
    Send(SendArgs),
    /// Say what a session is doing: running, waiting for input, at its prompt
    State(SessionArg),
    /// Show who changed what in a session's shell since it started: variables, aliases, functions, …
    Env(EnvArgs),
    /// Print what happens in a session, or in all, as it happens
    Watch(WatchArgs),
    /// Run a command in a session, and end as it did
    Run(RunArgs),
    /// Ask the humans of a session something, and print the answer
    Ask(AskArgs),
    /// List what is asked, in one session or in all
    Questions(QuestionsArgs),
    /// Answer a question
    Answer(AnswerArgs),
    /// Wait until a session's command has ended, and end as it did; or until something else has come
    Wait(WaitArgs),
    /// Give a session's terminal another size
    Resize(ResizeArgs),
    /// Give a session another name
    Rename(RenameArgs),
    /// Detach clients from a session; it goes on
    Detach(DetachArgs),
    /// Send a signal into a session
    Signal(SignalArgs),
    /// End a session's whole process tree: HUP, then KILL after the grace
    End(EndArgs),
    /// Show who may type into a session now, and who waits for it
    Turn(SessionArg),
    /// Take the turn where it is free
    Take(SessionArg),
    /// Ask for the turn: it comes when its holder lets go or is idle
    Request(RequestArgs),
    /// No longer wait for the turn
    Withdraw(SessionArg),
    /// Hand the turn over
    Give(GiveArgs),
    /// Let go of the turn
    Release(SessionArg),
    /// Take the turn at once, whatever its holder does
    Seize(SeizeArgs),
    /// Let a frozen session go on
    Thaw(SessionArg),
    /// Pass rights on
    Grant(GrantArgs),
    /// Take rights back, and what was passed on from them
    Revoke(RevokeArgs),
    /// Show who may do what in a session
    Grants(SessionArg),
    /// Say which actor this is, and why
    Whoami,
    /// Serve sessions to agents by the Model Context Protocol, on standard input and output
    Mcp(McpArgs),
    /// Print what an agent should know to use Holdfast well
    Skill,
    /// The actors this home knows
    #[command(subcommand, arg_required_else_help = false)]
    Actor(ActorCommand),
    /// Open this host's page in a browser, logged in as you
    Web(WebArgs),
    /// What programs show over HTTP: an actor, the most it may do, and an end
    #[command(subcommand, arg_required_else_help = false)]
    Token(TokenCommand),
    /// The daemon that connects clients and sessions
    #[command(subcommand, arg_required_else_help = false)]
    Host(HostCommand),
    /// Say what this machine offers, and what to do about the rest
    Doctor,
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page (read it with: holdfast man | man -l -)
    Man,
    /// Print the protocol as a JSON Schema document, for clients in other languages
    Schema,
}

#[derive(Debug, Default, clap::Args)]
pub struct NewArgs {
    /// Name of the session; one is picked where none is given
    #[arg(short, long)]
    pub name: Option<SessionName>,
    /// Do not attach; print the session's name
    #[arg(short, long)]
    pub detach: bool,
    /// Start in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// Set a variable on top of your environment; may be repeated
    #[arg(long = "env", value_name = "K=V", value_parser = variable)]
    pub env: Vec<String>,
    /// Columns and rows, for example 120x40
    #[arg(long, value_name = "CxR")]
    pub size: Option<Size>,
    /// How much output to keep, for example 512k or 4MiB
    #[arg(long, value_name = "BYTES")]
    pub ring: Option<Bytes>,
    /// Start a shell as it is: it will not say when its commands begin and end
    #[arg(long)]
    pub no_integration: bool,
    /// The command to run; your shell where none is given
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Watch only: nothing typed here reaches the session
    #[arg(short, long)]
    pub read_only: bool,
    /// Start the session with your shell where it is not there
    #[arg(short, long)]
    pub create: bool,
    /// Attach although this terminal is inside a session
    #[arg(long)]
    pub nested: bool,
}

#[derive(Debug, clap::Args)]
pub struct SessionArg {
    /// Name, id, or the beginning of an id
    #[arg(value_name = "NAME")]
    pub session: String,
}

#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// Ended sessions too
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct ScreenArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// With colours and attributes
    #[arg(long)]
    pub ansi: bool,
    /// This many lines of history before it
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub history: u32,
}

#[derive(Debug, clap::Args)]
pub struct LogsArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Start at this offset; without it, at the first byte
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
    /// Go on until the session ends
    #[arg(long)]
    pub follow: bool,
    /// Text alone, without escape sequences
    #[arg(long)]
    pub plain: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast send <NAME> [--enter] <TEXT>...\n       holdfast send <NAME> --key <KEY>\n       holdfast send <NAME> --stdin\n       holdfast send <NAME> --secret [--stdin] [--force]"
)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["enter", "keys", "stdin", "text", "secret"]))]
pub struct SendArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Press Enter at the end
    #[arg(long)]
    pub enter: bool,
    /// Press a key: C-c, M-x, Enter, Tab, Esc, Up, F1, …; may be repeated
    #[arg(long = "key", value_name = "KEY", conflicts_with_all = ["stdin", "text"])]
    pub keys: Vec<Key>,
    /// Send all of standard input
    #[arg(long, conflicts_with = "text")]
    pub stdin: bool,
    /// Ask for a secret without showing it (with --stdin: take one line) and send it with Enter, but only while the
    /// session's terminal does not show what is typed; the journal keeps its length alone
    #[arg(long, conflicts_with_all = ["text", "keys", "enter"])]
    pub secret: bool,
    /// Send the secret although the terminal may show it: then it is on the screen, in the output and in the session's
    /// files, for everybody who may look
    #[arg(long, requires = "secret", conflicts_with_all = ["text", "keys", "enter"])]
    pub force: bool,
    /// What to type, joined by spaces
    #[arg(value_name = "TEXT")]
    pub text: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct ResizeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Columns and rows, for example 120x40
    #[arg(value_name = "CxR")]
    pub size: Size,
}

#[derive(Debug, clap::Args)]
pub struct RenameArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// The new name
    #[arg(value_name = "NEW")]
    pub name: SessionName,
}

#[derive(Debug, clap::Args)]
pub struct DetachArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Every client
    #[arg(long)]
    pub all: bool,
    /// One client by its number, as `holdfast info` shows it
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub client: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct EndArgs {
    /// Name, id, or the beginning of an id
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub session: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// Seconds from HUP to KILL
    #[arg(long, value_name = "S")]
    pub grace: Option<Seconds>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum HostCommand {
    /// Serve in the foreground
    Run(LogArgs),
    /// Start the host in the background where it does not run
    Start(StartArgs),
    /// Stop the host; sessions go on
    Stop,
    /// Stop the host and start it again; sessions go on
    Restart,
    /// Say whether the host runs; status 1 where it does not
    Status,
    /// Print the host's counters, in the Prometheus text format
    Metrics,
}

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `K=V` as it is, where K can name a variable.
fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err("expected K=V".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Args::command().debug_assert();
    }
}
