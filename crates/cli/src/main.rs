//! The `holdfast` program: each command asks the host one thing and shows the answer.
//!
//! A command ends with 0, 1 (it failed), 2 (it was called wrongly), 124 (a timeout), or with the status of a session's
//! command where it waited for one.

mod args;
mod commands;
mod config;
mod failure;
mod here;
mod keys;
mod show;
mod values;

use args::{Args, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::{Failure, STATUS_USAGE};
use here::Here;

fn main() {
    std::process::exit(i32::from(run()));
}

fn run() -> u8 {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let json = args.json;
    match answer(args) {
        Ok(status) => status,
        Err(failure) => failure.report(json),
    }
}

fn answer(args: Args) -> Result<u8, Failure> {
    // These need no home, and build what no other command should pay for.
    match &args.command {
        Some(Command::Completions(of)) => return commands::completions::completions(of.shell),
        Some(Command::Man) => return commands::man::man(),
        _ => {}
    }
    let here = Here::find(args.home.as_deref(), args.json)?;
    commands::run(&here, args.command)
}

/// Help and versions are answers; everything else the parser says is a usage error, told the way all our errors are.
fn usage(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed pipe is no reason to complain about help.
        let _ = error.print();
        return 0;
    }
    let text = error.render().to_string();
    let (message, advice) = text.split_once('\n').unwrap_or((&text, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let advice: Vec<&str> = advice.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let json = std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    Failure::new("usage", message).hint(advice.join("\n")).status(STATUS_USAGE).report(json)
}
