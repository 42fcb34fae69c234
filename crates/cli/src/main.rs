//! The `holdfast` program: each command asks the host one thing and shows the answer.
//!
//! A command ends with 0, 1 (it failed), 2 (it was called wrongly), 124 (a timeout), or with the status of a session's
//! command where it waited for one.

mod args;
mod asciicast;
#[cfg(target_os = "linux")]
mod browser;
mod commands;
mod config;
mod denied;
mod everywhere;
mod expect;
mod failure;
mod help;
mod here;
mod hosts;
mod journal_args;
#[cfg(target_os = "linux")]
mod lease;
#[cfg(target_os = "linux")]
mod listen;
#[cfg(target_os = "linux")]
mod notify;
mod platform;
mod show;
mod signals;
mod tell;
mod values;
mod versions;
mod when;
mod who;

use args::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use failure::{Failure, STATUS_USAGE};

fn main() {
    std::process::exit(i32::from(run()));
}

fn run() -> u8 {
    let words: Vec<_> = std::env::args_os().skip(1).take(3).collect();
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    if let Some(result) = commands::run_unlisted(&words) {
        return result.unwrap_or_else(|failure| failure.report(false));
    }
    // The list of commands by groups is made for those who read it.
    let parsed = parse(Args::command()).or_else(|error| match error.kind() {
        ErrorKind::DisplayVersion => Err(error),
        _ => parse(help::command()),
    });
    match parsed {
        Ok(args) => {
            let json = args.json;
            commands::run(args).unwrap_or_else(|failure| failure.report(json))
        }
        Err(error) => usage(&error),
    }
}

fn parse(command: clap::Command) -> Result<Args, clap::Error> {
    command.try_get_matches().and_then(|matches| Args::from_arg_matches(&matches))
}

/// Help and versions are answers; everything else the parser says is a usage error, reported like all our errors.
fn usage(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed pipe is no reason to complain about help.
        let _ = error.print();
        return 0;
    }
    let json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(why) = platform::missing(command)
    {
        return Failure::new("usage", why)
            .hint("run it over there: ssh MACHINE holdfast …")
            .status(STATUS_USAGE)
            .report(json);
    }
    let text = error.render().to_string();
    let (message, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message: Vec<&str> = message.strip_prefix("error: ").unwrap_or(message).lines().map(str::trim).collect();
    let generic = |line: &&str| line.is_empty() || line.starts_with("For more information");
    let advice: Vec<&str> = advice.lines().filter(|line| !generic(line)).collect();
    Failure::new("usage", message.join(" "))
        .hint(advice.join("\n").replace("  tip:", "tip:"))
        .status(STATUS_USAGE)
        .report(json)
}
