//! The list of commands by what they are about: thirty in a row are no help.

use crate::args::Args;
use clap::{Command, CommandFactory};

/// Headings and their commands; what is in none comes last.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Sessions",
        &[
            "new",
            "attach",
            "ui",
            "ls",
            "info",
            "wait",
            "rename",
            "resize",
            "signal",
            "end",
            "detach",
            "recover",
            "keep",
            "checkpoint",
            "checkpoints",
            "restore",
            "fork",
            "move",
        ],
    ),
    ("Commands and processes", &["run", "trace", "flow", "state", "env", "handover", "watch", "graph", "ps", "ports"]),
    ("Input and output", &["send", "screen", "logs", "journal", "export"]),
    ("Questions and approvals", &["ask", "questions", "answer", "approvals", "policy"]),
    ("The turn", &["turn", "take", "request", "withdraw", "give", "release", "seize", "thaw"]),
    ("Actors and rights", &["whoami", "actor", "record", "grant", "revoke", "grants"]),
    ("Other machines", &["hosts", "invite", "invites", "accept", "devices", "relay", "connect"]),
    ("Agents and programs", &["mcp", "skill", "token", "web", "bot"]),
];
const REST: &str = "Setup";

/// The command line, with its commands in groups.
pub fn command() -> Command {
    let command = Args::command();
    let groups = groups(&command);
    // Hidden from the parser's own list, which has one heading for all.
    command
        .mut_subcommands(|sub| sub.hide(true))
        .override_usage("holdfast [OPTIONS] [COMMAND]")
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}"))
}

fn groups(command: &Command) -> String {
    let named = |name: &&str| command.get_subcommands().find(|sub| sub.get_name() == *name);
    let listed = |sub: &&Command| !GROUPS.iter().any(|(_, names)| names.contains(&sub.get_name()));
    let rest = command.get_subcommands().filter(listed).collect();
    let groups = GROUPS.iter().map(|(heading, names)| (*heading, names.iter().filter_map(named).collect()));
    let all: Vec<(&str, Vec<&Command>)> = groups.chain([(REST, rest)]).collect();
    let width = command.get_subcommands().map(|sub| sub.get_name().len()).max().unwrap_or(0);
    let line = |sub: &&Command| {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let aliases: Vec<&str> = sub.get_visible_aliases().collect();
        let alias = if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
        format!("  {:<width$}  {about}{alias}\n", sub.get_name())
    };
    all.iter().map(|(heading, subs)| format!("{heading}:\n{}\n", subs.iter().map(line).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_the_list_once() {
        let text = groups(&Args::command());
        for sub in Args::command().get_subcommands() {
            let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(sub.get_name()));
            assert_eq!(lines.count(), 1, "{}:\n{text}", sub.get_name());
        }
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
    }
}
