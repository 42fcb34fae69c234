//! The command line: every command, its options, and its help.

mod attention;
mod authority;
#[cfg(target_os = "linux")]
mod bot;
mod checkpoint;
mod contract;
mod distance;
mod env;
mod files;
#[cfg(target_os = "linux")]
mod flow;
mod fork;
mod gate;
mod graph;
mod hosts;
mod mcp;
mod moves;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod prove;
mod questions;
#[cfg(target_os = "linux")]
mod relay;
mod run;
mod token;

pub use attention::{Awaited, WaitArgs, WatchArgs, pattern_of};
pub use authority::{ActorCommand, ActorNewArgs, GiveArgs, GrantArgs, RequestArgs, RevokeArgs, SeizeArgs, SignalArgs};
#[cfg(target_os = "linux")]
pub use bot::{BotCommand, BotEnrolArgs, BotForgetArgs, BotInitArgs, BotRemoveArgs, BotServiceArgs};
pub use checkpoint::{CheckpointArgs, CheckpointsCommand, RestoreArgs};
pub use contract::{RecordArgs, TraceArgs};
pub use distance::{AcceptArgs, DevicesCommand, InviteArgs, InvitesCommand};
pub use env::{EnvArgs, HandoverArgs};
pub use files::{FilePlace, FilesCommand, FilesEditArgs, FilesGetArgs, FilesLsArgs};
#[cfg(target_os = "linux")]
pub use flow::{
    FlowAnswerArgs, FlowCancelArgs, FlowCheckArgs, FlowCommand, FlowDecideArgs, FlowDevArgs, FlowExportArgs,
    FlowHistoryArgs, FlowRetryArgs, FlowRewindArgs, FlowSignalArgs, FlowStartArgs, FlowWatchArgs,
};
pub use fork::{ForkArgs, ForkCommand, ForkDiffArgs, ForkKeepArgs, ForkStartArgs};
pub use gate::{ApprovalArg, ApprovalWaitArgs, ApprovalsCommand, ApprovalsLsArgs};
pub use graph::{GraphArgs, MaybeSessionArg};
pub use hosts::{ConnectArgs, HostsAddArgs, HostsCommand, HostsRenameArgs, Misplaced};
pub use mcp::{McpArgs, McpClient, McpCommand, McpInstallArgs};
pub use moves::MoveArgs;
#[cfg(target_os = "linux")]
pub use network::{HTTP_ADDRESS, ListenArgs, LogArgs, StartArgs, WebArgs};
#[cfg(target_os = "linux")]
pub use policy::{PolicyCheckArgs, PolicyCommand, PolicyMayArgs, PolicyShowArgs, PolicyTestArgs, PolicyWhyArgs};
#[cfg(target_os = "linux")]
pub use prove::ProveArgs;
pub use questions::{AnswerArgs, AskArgs, QuestionsArgs};
#[cfg(target_os = "linux")]
pub use relay::{RelayArgs, RelayCommand, RelayDirectArgs, RelayServeArgs, Store};
pub use run::{ContractArgs, RunArgs, RunCommand, RunOutputArgs, RunStartArgs};
pub use token::{TokenCommand, TokenNewArgs};

use crate::journal_args::{ExportArgs, JournalArgs};
use crate::values::{Bytes, Seconds, recovery, restart, seam, size, variable};
use crate::who::Said;
use clap::{ArgGroup, Parser, Subcommand, ValueHint};
use holdfast_screen::keys::Key;
use holdfast_types::{SessionName, Size};
use holdfast_wire::lives::Recovery;
use holdfast_wire::reaping::ReapAfter;
use holdfast_wire::seam::Seam;
use std::ffi::OsString;
use std::path::PathBuf;

/// Keep terminal sessions alive.
///
/// Without a command, attaches to the session `main` and starts it with your shell if it does not exist.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, max_term_width = 100, infer_long_args = false)]
pub struct Args {
    /// Print results and errors as JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Keep state, sockets and configuration under DIR (overrides HOLDFAST_HOME)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub home: Option<PathBuf>,
    /// Act as ACTOR: a handle, or the path of a key file (overrides HOLDFAST_ACTOR)
    #[arg(long = "as", global = true, value_name = "ACTOR", help_heading = "Global options")]
    pub who: Option<Said>,
    /// Ask the host HOST, which you added with `hosts add`; HOST/SESSION does the same
    #[arg(long, global = true, value_name = "HOST", help_heading = "Global options")]
    pub host: Option<String>,
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
    /// Choose a session from all of them, with what they do and show (inside: Ctrl-\ w)
    Ui,
    /// List sessions
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Show the details of a session
    Info(SessionArg),
    /// Show a session's processes, their files and sockets, and who started each
    Graph(GraphArgs),
    /// List the processes of a session, or of all sessions
    Ps(MaybeSessionArg),
    /// List listening ports, their sessions, and who started each
    Ports(MaybeSessionArg),
    /// Print a session's screen as text
    Screen(ScreenArgs),
    /// Print a session's output, byte for byte
    Logs(LogsArgs),
    /// Show who did what in a session, or verify the record
    Journal(JournalArgs),
    /// Export a session as a recording
    Export(ExportArgs),
    /// Type into a session
    Send(SendArgs),
    /// Show whether a session is running, waiting for input, or at its prompt
    State(SessionArg),
    /// Show who changed variables, aliases, functions and options in a session's shell
    Env(EnvArgs),
    /// Show what others changed in a session since you wrote there last
    Handover(HandoverArgs),
    /// Print events of a session, or of all sessions, as they happen
    Watch(WatchArgs),
    /// List, download, upload and edit files of a session's working tree
    #[command(subcommand)]
    Files(FilesCommand),
    /// Run a command in a session and exit with its status
    Run(RunArgs),
    /// Show everything about a run: its contract, decision, attempts, effects and outcome
    Trace(TraceArgs),
    /// Show how an actor's runs under contracts came out
    Record(RecordArgs),
    /// Run durable flows: steps in sessions, timers, questions and undo that survive every crash
    #[command(subcommand, arg_required_else_help = false)]
    #[cfg(target_os = "linux")]
    Flow(FlowCommand),
    /// Ask the humans of a session a question and print the answer
    Ask(AskArgs),
    /// List open questions
    Questions(QuestionsArgs),
    /// Answer a question
    Answer(AnswerArgs),
    /// List acts that wait for approval, and approve or deny them
    #[command(subcommand, arg_required_else_help = false)]
    Approvals(ApprovalsCommand),
    /// Show, check and ask the policy that judges what actors do
    #[command(subcommand, arg_required_else_help = false)]
    #[cfg(target_os = "linux")]
    Policy(PolicyCommand),
    /// Wait for a session's command and exit with its status, or wait for another event
    Wait(WaitArgs),
    /// Change the size of a session's terminal
    Resize(ResizeArgs),
    /// Rename a session
    Rename(RenameArgs),
    /// Keep a session from being reaped when it is idle
    Keep(KeepArgs),
    /// Detach clients from a session; the session keeps running
    Detach(DetachArgs),
    /// Send a signal to a session's processes
    Signal(SignalArgs),
    /// End a session and its whole process tree: SIGHUP, then SIGKILL after a grace period
    #[command(visible_alias = "kill")]
    End(EndArgs),
    /// Give a lost session another life: same name, history, directory and environment, new processes
    Recover(RecoverArgs),
    /// Keep a copy of a portable session's live processes, and stop it; `restore` brings them back
    Checkpoint(CheckpointArgs),
    /// Manage checkpoints of portable sessions
    #[command(subcommand)]
    Checkpoints(CheckpointsCommand),
    /// Bring a portable session's processes back from a checkpoint
    Restore(RestoreArgs),
    /// Move a live portable session to another host
    Move(MoveArgs),
    /// Start copies of a portable session, each with files and a network of its own
    Fork(ForkArgs),
    /// Show who has the turn to type in a session, and who is waiting for it
    Turn(SessionArg),
    /// Take the turn if it is free
    Take(SessionArg),
    /// Request the turn: you get it when its holder releases it or is idle
    Request(RequestArgs),
    /// Withdraw a request for the turn
    Withdraw(SessionArg),
    /// Give the turn to another actor
    Give(GiveArgs),
    /// Release the turn
    Release(SessionArg),
    /// Take the turn at once, whatever its holder does
    Seize(SeizeArgs),
    /// Resume a frozen session
    Thaw(SessionArg),
    /// Grant rights in a session to an actor
    Grant(GrantArgs),
    /// Revoke rights in a session, and all grants made from them
    Revoke(RevokeArgs),
    /// Show who may do what in a session
    Grants(SessionArg),
    /// Show which actor you are, and why
    Whoami,
    /// Serve sessions to agents over the Model Context Protocol (MCP), on stdin and stdout
    Mcp(McpArgs),
    /// Print a guide to Holdfast for agents
    Skill,
    /// Manage actors
    #[command(subcommand, arg_required_else_help = false)]
    Actor(ActorCommand),
    /// Open the web client in a browser, logged in as you
    #[cfg(target_os = "linux")]
    Web(WebArgs),
    /// Use sessions from a chat: bots at Telegram and Discord
    #[command(subcommand, arg_required_else_help = false)]
    #[cfg(target_os = "linux")]
    Bot(BotCommand),
    /// Manage API tokens
    #[command(subcommand, arg_required_else_help = false)]
    Token(TokenCommand),
    /// Manage the host, the daemon that connects clients and sessions
    #[command(subcommand, arg_required_else_help = false)]
    #[cfg(target_os = "linux")]
    Host(HostCommand),
    /// Manage hosts on other machines
    #[command(subcommand, arg_required_else_help = false)]
    Hosts(HostsCommand),
    /// Open a way to a host on another machine, for programs
    Connect(ConnectArgs),
    /// Make this machine reachable through a relay, or run a relay
    #[cfg(target_os = "linux")]
    Relay(RelayArgs),
    /// Share a session, or all of them, with a link
    Invite(InviteArgs),
    /// Manage invites
    #[command(subcommand, arg_required_else_help = false)]
    Invites(InvitesCommand),
    /// Accept an invite: get access to a session on another machine
    Accept(AcceptArgs),
    /// Manage machines that accepted an invite
    #[command(subcommand, arg_required_else_help = false)]
    Devices(DevicesCommand),
    /// Restart the host with this program, and show which sessions' keepers stay of an earlier build
    #[cfg(target_os = "linux")]
    Upgrade(UpgradeArgs),
    /// Check what this machine supports, and how to fix what is missing
    #[cfg(target_os = "linux")]
    Doctor(DoctorArgs),
    /// Prove on this machine that sessions outlive clients, hosts and crashes, by experiments
    #[cfg(target_os = "linux")]
    Prove(ProveArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the manual page (read it with: holdfast man | man -l -)
    Man,
    /// Print the protocol as a JSON Schema document, for clients in other languages
    Schema,
}

#[derive(Debug, Default, clap::Args)]
pub struct NewArgs {
    /// Name of the session [default: a generated name]
    #[arg(value_name = "NAME")]
    pub called: Option<SessionName>,
    /// Name of the session, in place of NAME
    #[arg(short, long, conflicts_with = "called")]
    pub name: Option<SessionName>,
    /// Print the session's name instead of attaching
    #[arg(short, long)]
    pub detach: bool,
    /// Start in DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// Set a variable in addition to your environment; can be repeated
    #[arg(long = "env", value_name = "K=V", value_parser = variable)]
    pub env: Vec<String>,
    /// Columns and rows, for example 120x40
    #[arg(long, value_name = "CxR", value_parser = size)]
    pub size: Option<Size>,
    /// Amount of output to keep, for example 512k or 4MiB
    #[arg(long, value_name = "BYTES")]
    pub ring: Option<Bytes>,
    /// Start the shell without integration: Holdfast cannot tell when its commands start and end
    #[arg(long)]
    pub no_integration: bool,
    /// Run as another user, in its home and environment; the host must run as root
    #[arg(long, value_name = "USER", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Let the session's processes write below DIR only, and signal nothing outside; can be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "user")]
    pub wall: Vec<PathBuf>,
    /// With --wall: let them connect to these TCP ports only, for example 80,443
    #[arg(long, value_name = "PORTS", value_delimiter = ',', requires = "wall")]
    pub wall_ports: Option<Vec<u16>>,
    /// Judge every program that the session's processes start, not only its acts; unless the host runs as root, `sudo` does not work in it
    #[arg(long, value_name = "SEAM", value_parser = seam())]
    pub gate: Option<Seam>,
    /// Let checkpoints of the session's processes be kept (holdfast checkpoint); the host must run as root
    #[arg(long, conflicts_with_all = ["wall", "gate"])]
    pub portable: bool,
    /// With --portable: run CMD with /bin/sh inside the session whenever its processes come back from a checkpoint, or begin as a branch
    #[arg(long, value_name = "CMD", requires = "portable", conflicts_with = "user")]
    pub on_resume: Option<String>,
    /// With --portable: make a checkpoint this often, for example 10m, if something happened in the session since the last
    #[arg(long, value_name = "TIME", requires = "portable")]
    pub checkpoint_every: Option<Seconds>,
    /// Give the session at most one life among all hosts that share the store under `lease` in config.toml; where this host cannot renew its lease, the session stands still
    #[arg(long)]
    pub leased: bool,
    /// With --leased and --portable: let the kernel kill the session if its keeper cannot stop it when the lease is over
    #[arg(long, requires = "leased", requires = "portable")]
    pub hard_fence: bool,
    /// Recover the session by itself if it is lost (a reboot, a killed keeper) [default: `recover` in config.toml, or manual]
    #[arg(long, value_name = "WHEN", value_parser = recovery())]
    pub recover: Option<Recovery>,
    /// Run the command again if it fails or the session is lost: on-failure, or on-failure:N for at most N times in 10 minutes
    #[arg(long, value_name = "POLICY", value_parser = restart)]
    pub restart: Option<u32>,
    /// End the session after it was idle this long, for example 12h; or never [default: `reap_after` in config.toml, or never]
    #[arg(long, value_name = "TIME", value_parser = crate::values::reap_after)]
    pub reap_after: Option<ReapAfter>,
    /// Command to run [default: your shell]
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    /// Name, id, or the beginning of one [default: the only session, or your choice]
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
    /// Watch only: send nothing you type to the session
    #[arg(short, long)]
    pub read_only: bool,
    /// Start the session with your shell if it does not exist
    #[arg(short, long, requires = "session")]
    pub create: bool,
    /// Allow attaching from inside a session
    #[arg(long)]
    pub nested: bool,
}

#[derive(Debug, clap::Args)]
pub struct SessionArg {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME")]
    pub session: String,
}

#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// Include ended sessions
    #[arg(long)]
    pub all: bool,
    /// Show the list until q is pressed, and what changes in it
    #[arg(long)]
    pub watch: bool,
    /// List the sessions of every host you added, too; exit with 1 if one does not answer
    #[arg(long, conflicts_with = "watch")]
    pub all_hosts: bool,
    /// Show what each session takes up (memory, processes, disk), and when somebody last used it
    #[arg(long, conflicts_with_all = ["all", "watch", "all_hosts"])]
    pub cost: bool,
}

#[derive(Debug, clap::Args)]
pub struct ScreenArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Include colours and attributes
    #[arg(long)]
    pub ansi: bool,
    /// Include N lines of history
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub history: u32,
}

#[derive(Debug, clap::Args)]
pub struct LogsArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Start at this offset [default: the first byte]
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
    /// Keep printing until the session ends
    #[arg(long)]
    pub follow: bool,
    /// Strip escape sequences
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
    /// Press Enter after the text
    #[arg(long)]
    pub enter: bool,
    /// Press a key: C-c, M-x, Enter, Tab, Esc, Up, F1, …; can be repeated
    #[arg(long = "key", value_name = "KEY", conflicts_with_all = ["stdin", "text"])]
    pub keys: Vec<Key>,
    /// Send all of standard input
    #[arg(long, conflicts_with = "text")]
    pub stdin: bool,
    /// Prompt for a secret without echo (or read one line with --stdin) and send it with Enter, but only while the
    /// session's terminal does not echo; the journal records only its length
    #[arg(long, conflicts_with_all = ["text", "keys", "enter"])]
    pub secret: bool,
    /// Send the secret even if the terminal echoes it: it then appears on the screen, in the output and in the
    /// session's files, for every actor that may observe
    #[arg(long, requires = "secret", conflicts_with_all = ["text", "keys", "enter"])]
    pub force: bool,
    /// Text to type, joined by spaces
    #[arg(value_name = "TEXT")]
    pub text: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct ResizeArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Columns and rows, for example 120x40
    #[arg(value_name = "CxR", value_parser = size)]
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
pub struct KeepArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Keep it this long, for example 2h or 7d [default: until `--off`]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Seconds>,
    /// Keep it no longer: it can be reaped after its full time
    #[arg(long, conflicts_with = "time")]
    pub off: bool,
}

#[derive(Debug, clap::Args)]
pub struct DetachArgs {
    /// Name, id, or prefix of an id; inside a session, that session
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
    /// Detach every client
    #[arg(long)]
    pub all: bool,
    /// Detach one client by its number (see `holdfast info`)
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub client: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct EndArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub session: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// Seconds between SIGHUP and SIGKILL
    #[arg(long, value_name = "S")]
    pub grace: Option<Seconds>,
}

#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    #[command(flatten)]
    pub of: SessionArg,
    /// Run the session's command again; without it, a command that is not a shell gets a shell in its place
    #[arg(long)]
    pub run: bool,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct DoctorArgs {
    /// Fetch CRIU for portable sessions, if it is missing
    #[arg(long)]
    pub fix: bool,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Subcommand)]
pub enum HostCommand {
    /// Run the host in the foreground
    Run(LogArgs),
    /// Start the host in the background if it is not running
    Start(StartArgs),
    /// Stop the host; sessions keep running
    Stop,
    /// Restart the host; sessions keep running
    Restart,
    /// Show whether the host is running; exit with 1 if it is not
    Status,
    /// Print the host's metrics in the Prometheus text format
    Metrics,
    /// Start the host at boot, with a systemd user unit
    InstallUnit(UnitArgs),
    /// Print the host's key: what other machines know it by
    Key,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct UnitArgs {
    /// Print the unit instead of installing it
    #[arg(long, conflicts_with = "remove")]
    pub print: bool,
    /// Remove the unit
    #[arg(long)]
    pub remove: bool,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct UpgradeArgs {
    /// Show what would stay, and restart nothing
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_GO)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Where each shell looks for them.
const COMPLETIONS_GO: &str = "Where the output goes:
  bash  ~/.local/share/bash-completion/completions/holdfast
  zsh   a file `_holdfast` in a directory of $fpath
  fish  ~/.config/fish/completions/holdfast.fish";

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
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
