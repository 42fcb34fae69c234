//! The options of hosts elsewhere, and which of them a command is for.

use super::{
    ApprovalsCommand, Args, CheckpointsCommand, Command, ForkArgs, ForkCommand, LsArgs, QuestionsArgs, RunCommand,
    WatchArgs,
};
use clap::{Subcommand, ValueHint};
use holdfast_types::HostKey;

#[derive(Debug, Subcommand)]
pub enum HostsCommand {
    /// Add a host that ssh or a relay reaches; then HOST/SESSION names its sessions
    Add(HostsAddArgs),
    /// List the hosts you added, and whether each answers
    Ls,
    /// Change what you call a host
    Rename(HostsRenameArgs),
    /// Forget a host; its sessions keep running
    Forget(HostsForgetArgs),
}

#[derive(Debug, clap::Args)]
pub struct HostsAddArgs {
    /// What you will call it
    #[arg(value_name = "HOST")]
    pub name: String,
    /// Where ssh finds it: user@machine, or an alias of your ssh configuration
    #[arg(long, value_name = "TARGET", value_hint = ValueHint::Hostname, required_unless_present = "relay")]
    pub ssh: Option<String>,
    /// A relay that it waits at; can be repeated. Needs an invite that this machine has accepted before
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "key", conflicts_with = "ssh")]
    pub relay: Vec<String>,
    /// Its key, as `holdfast host key` prints it there
    #[arg(long, value_name = "KEY", requires = "relay")]
    pub key: Option<HostKey>,
    /// The holdfast program there, if it is not in PATH
    #[arg(long, value_name = "PATH", conflicts_with = "relay", default_value = "holdfast", hide_default_value = true)]
    pub program: String,
}

#[derive(Debug, clap::Args)]
pub struct HostsRenameArgs {
    /// What you call it now
    #[arg(value_name = "HOST")]
    pub name: String,
    /// What you will call it
    #[arg(value_name = "NEW")]
    pub new: String,
}

#[derive(Debug, clap::Args)]
pub struct HostsForgetArgs {
    /// What you call it
    #[arg(value_name = "HOST")]
    pub name: String,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "holdfast connect <HOST> [--socket <PATH>]\n       holdfast connect --stdio")]
pub struct ConnectArgs {
    /// Give this machine's programs a socket that speaks to HOST, until interrupted
    #[arg(value_name = "HOST", required_unless_present_any = ["stdio", "admit"], conflicts_with_all = ["stdio", "admit"])]
    pub to: Option<String>,
    /// Where the socket lies [default: a place that is printed]
    #[arg(long, value_name = "PATH", requires = "to", value_hint = ValueHint::FilePath)]
    pub socket: Option<std::path::PathBuf>,
    /// End when standard input ends: for programs that start this
    #[arg(long, requires = "to")]
    pub while_stdin: bool,
    /// Join standard input and output with this machine's host: what ssh starts here
    #[arg(long, conflicts_with = "admit")]
    pub stdio: bool,
    /// With --stdio, fail if no host runs, instead of starting it: what completions start here
    #[arg(long, hide = true, requires = "stdio")]
    pub if_running: bool,
    /// Read a public key from standard input and make its actor known here: what `hosts add` starts here
    #[arg(long, hide = true)]
    pub admit: bool,
}

/// Why a command names no host.
#[derive(Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Two hosts are named.
    Two(String, String),
    /// The command is about this machine.
    OnlyHere,
    /// The command asks every host.
    Everywhere,
}

impl Args {
    /// Takes the host out of `--host` and of each `HOST/SESSION`; none: this machine's.
    pub fn take_host(&mut self) -> Result<Option<String>, Misplaced> {
        let mut found = self.host.take();
        for session in self.command.as_mut().map(sessions).unwrap_or_default() {
            // A session's name and id have no slash.
            let Some((host, rest)) = session.split_once('/') else { continue };
            let (host, rest) = (host.to_owned(), rest.to_owned());
            match found.take() {
                Some(other) if other != host => return Err(Misplaced::Two(other, host)),
                Some(_) | None => found = Some(host),
            }
            *session = rest;
        }
        match &self.command {
            Some(command) if found.is_some() && is_only_here(command) => Err(Misplaced::OnlyHere),
            Some(command) if found.is_some() && is_everywhere(command) => Err(Misplaced::Everywhere),
            Some(_) | None => Ok(found),
        }
    }
}

/// What asks files, processes or the terminal of this machine, or is about another machine already.
fn is_only_here(command: &Command) -> bool {
    matches!(
        command,
        Command::Actor(_)
            | Command::Completions(_)
            | Command::Connect(_)
            | Command::Hosts(_)
            | Command::Man
            | Command::Schema
            | Command::Skill
            | Command::Whoami
            | Command::Accept(_)
    ) || is_of_linux(command)
}

/// What runs where sessions do, and only on this machine.
#[cfg(target_os = "linux")]
fn is_of_linux(command: &Command) -> bool {
    matches!(
        command,
        Command::Bot(_)
            | Command::Doctor(_)
            | Command::Flow(_)
            | Command::Host(_)
            | Command::Prove(_)
            | Command::Relay(_)
            | Command::Upgrade(_)
            | Command::Web(_)
    )
}

#[cfg(not(target_os = "linux"))]
fn is_of_linux(_: &Command) -> bool {
    false
}

/// What asks every host.
fn is_everywhere(command: &Command) -> bool {
    matches!(
        command,
        Command::Ls(LsArgs { all_hosts: true, .. })
            | Command::Questions(QuestionsArgs { all_hosts: true, .. })
            | Command::Watch(WatchArgs { all_hosts: true, .. })
    )
}

/// Every place of a command that names a session or a question.
fn sessions(command: &mut Command) -> Vec<&mut String> {
    fn maybe(session: &mut Option<String>) -> Vec<&mut String> {
        session.as_mut().into_iter().collect()
    }
    match command {
        Command::Attach(args) => maybe(&mut args.session),
        Command::Info(of)
        | Command::State(of)
        | Command::Turn(of)
        | Command::Take(of)
        | Command::Withdraw(of)
        | Command::Release(of)
        | Command::Thaw(of)
        | Command::Grants(of) => vec![&mut of.session],
        Command::Graph(args) => maybe(&mut args.session),
        Command::Ps(args) | Command::Ports(args) => maybe(&mut args.session),
        Command::Screen(args) => vec![&mut args.of.session],
        Command::Logs(args) => vec![&mut args.of.session],
        Command::Journal(args) => maybe(&mut args.session),
        Command::Export(args) => vec![&mut args.of.session],
        Command::Send(args) => vec![&mut args.of.session],
        Command::Env(args) => vec![&mut args.of.session],
        Command::Handover(args) => vec![&mut args.of.session],
        Command::Watch(args) => maybe(&mut args.session),
        Command::Run(args) => match &mut args.about {
            Some(RunCommand::Ls(args)) => maybe(&mut args.session),
            Some(_) => Vec::new(),
            None => maybe(&mut args.start.session),
        },
        Command::Files(command) => vec![command.session()],
        Command::Ask(args) => [&mut args.session, &mut args.wait, &mut args.withdraw].into_iter().flatten().collect(),
        Command::Answer(args) => maybe(&mut args.question),
        Command::Questions(args) => maybe(&mut args.session),
        Command::Approvals(ApprovalsCommand::Ls(args)) => maybe(&mut args.session),
        #[cfg(target_os = "linux")]
        Command::Policy(command) => judged(command),
        Command::Wait(args) => vec![&mut args.of.session],
        Command::Resize(args) => vec![&mut args.of.session],
        Command::Rename(args) => vec![&mut args.of.session],
        Command::Keep(args) => vec![&mut args.of.session],
        Command::Detach(args) => maybe(&mut args.session),
        Command::Signal(args) => vec![&mut args.of.session],
        Command::End(args) => maybe(&mut args.session),
        Command::Recover(args) => vec![&mut args.of.session],
        Command::Checkpoint(args) => maybe(&mut args.session),
        Command::Checkpoints(CheckpointsCommand::Ls(args)) => maybe(&mut args.session),
        Command::Restore(args) => vec![&mut args.what],
        Command::Fork(args) => forked(args),
        Command::Move(args) => vec![&mut args.of.session],
        Command::Request(args) => vec![&mut args.of.session],
        Command::Give(args) => vec![&mut args.of.session],
        Command::Seize(args) => vec![&mut args.of.session],
        Command::Grant(args) => vec![&mut args.of.session],
        Command::Revoke(args) => vec![&mut args.of.session],
        Command::Invite(args) => maybe(&mut args.session),
        Command::New(_)
        | Command::Checkpoints(CheckpointsCommand::Show(_) | CheckpointsCommand::Rm(_))
        | Command::Ui
        | Command::Approvals(_)
        | Command::Ls(_)
        | Command::Whoami
        | Command::Mcp(_)
        | Command::Skill
        | Command::Trace(_)
        | Command::Record(_)
        | Command::Actor(_)
        | Command::Token(_)
        | Command::Hosts(_)
        | Command::Connect(_)
        | Command::Invites(_)
        | Command::Accept(_)
        | Command::Devices(_)
        | Command::Completions(_)
        | Command::Man
        | Command::Schema => Vec::new(),
        // What only hosts have names none, but for the policy.
        #[cfg(target_os = "linux")]
        _ => Vec::new(),
    }
}

/// The session that a policy is asked about.
#[cfg(target_os = "linux")]
fn judged(command: &mut super::PolicyCommand) -> Vec<&mut String> {
    use super::PolicyCommand;
    match command {
        PolicyCommand::May(args) | PolicyCommand::Explain(args) => args.session.iter_mut().collect(),
        PolicyCommand::Why(args) => vec![&mut args.session],
        PolicyCommand::Show(_) | PolicyCommand::Check(_) | PolicyCommand::Test(_) | PolicyCommand::Suggest => {
            Vec::new()
        }
    }
}

/// Sessions that a fork names, or what is asked about one.
fn forked(args: &mut ForkArgs) -> Vec<&mut String> {
    match &mut args.about {
        None => args.start.session.iter_mut().collect(),
        Some(ForkCommand::Diff(args)) => std::iter::once(&mut args.of.session).chain(&mut args.with).collect(),
        Some(ForkCommand::Keep(args)) => vec![&mut args.of.session],
        Some(ForkCommand::Discard(of)) => vec![&mut of.session],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn host_of(words: &[&str]) -> Result<Option<String>, Misplaced> {
        Args::parse_from(std::iter::once(&"holdfast").chain(words)).take_host()
    }

    #[test]
    fn every_command_that_names_a_session_takes_one_of_another_host() {
        // What else a command needs beside a session.
        let more = |name: &str| -> &[&str] {
            match name {
                "send" => &["text"],
                "run" => &["--", "true"],
                "export" => &["--asciicast"],
                "seize" => &["--reason", "a look"],
                "resize" => &["80x24"],
                "rename" => &["new"],
                "give" | "revoke" => &["--to", "human:ann"],
                "grant" => &["--to", "human:ann", "--can", "observe"],
                "signal" => &["INT"],
                "ask" => &["what?"],
                "move" => &["other"],
                _ => &[],
            }
        };
        let mut tried = 0;
        let mut all = Args::command();
        all.build();
        for command in all.get_subcommands() {
            let positional = command.get_positionals().any(|arg| arg.get_id() == "session");
            if !positional {
                continue;
            }
            let name = command.get_name();
            let words: Vec<&str> = [name, "gpu/work"].into_iter().chain(more(name).iter().copied()).collect();
            let parsed = Args::try_parse_from(std::iter::once(&"holdfast").chain(&words));
            let mut args = parsed.unwrap_or_else(|error| panic!("{words:?}: {error}"));
            assert_eq!(args.take_host(), Ok(Some("gpu".into())), "{words:?}");
            assert!(format!("{args:?}").contains("\"work\""), "{args:?}");
            tried += 1;
        }
        assert!(tried > 20, "{tried}");
    }

    #[test]
    fn a_command_is_for_one_host_or_for_this_machine() {
        assert_eq!(host_of(&["--host", "gpu", "ls"]), Ok(Some("gpu".into())));
        assert_eq!(host_of(&["--host", "gpu", "info", "gpu/work"]), Ok(Some("gpu".into())));
        assert_eq!(host_of(&["info", "work"]), Ok(None));
        assert_eq!(host_of(&["--host", "a", "info", "b/work"]), Err(Misplaced::Two("a".into(), "b".into())));
        assert_eq!(host_of(&["--host", "gpu", "doctor"]), Err(Misplaced::OnlyHere));
        assert_eq!(host_of(&["answer", "gpu/que_1", "yes/no"]), Ok(Some("gpu".into())));
        assert_eq!(host_of(&["ask", "--wait", "gpu/que_1"]), Ok(Some("gpu".into())));
        for command in [&["ls"][..], &["questions"], &["watch"]] {
            let words = [command, &["--all-hosts"]].concat();
            assert_eq!(host_of(&words), Ok(None));
            assert_eq!(host_of(&[&["--host", "gpu"], &words[..]].concat()), Err(Misplaced::Everywhere));
        }
    }
}
