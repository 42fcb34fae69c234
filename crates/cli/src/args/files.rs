//! The options of `holdfast files`.

use clap::{Subcommand, ValueHint};
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Subcommand)]
pub enum FilesCommand {
    /// List a directory of a session's working tree
    Ls(FilesLsArgs),
    /// Download a file; the same command again goes on where it was cut off
    Get(FilesGetArgs),
    /// Upload a file; the same command again goes on where it was cut off
    Put(FilesPutArgs),
    /// Edit a file in your editor, or replace a text in it
    Edit(FilesEditArgs),
    /// Undo your last write, where the bytes before it are kept
    Undo(FilesPlaceArg),
    /// List the last writes to files through Holdfast, newest first
    Changes(super::SessionArg),
    /// Show what a write changed
    Diff(FilesDiffArgs),
}

impl FilesCommand {
    /// The session it is about.
    pub fn session(&mut self) -> &mut String {
        match self {
            FilesCommand::Ls(args) => &mut args.of.place.session,
            FilesCommand::Get(args) => &mut args.of.place.session,
            FilesCommand::Put(args) => &mut args.of.place.session,
            FilesCommand::Edit(args) => &mut args.of.place.session,
            FilesCommand::Undo(args) => &mut args.place.session,
            FilesCommand::Changes(args) => &mut args.session,
            FilesCommand::Diff(args) => &mut args.of.session,
        }
    }
}

/// A session, and a path there: `NAME:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    pub session: String,
    /// From the session's live working directory on; empty: that directory.
    pub path: String,
}

impl FromStr for FilePlace {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<FilePlace, Infallible> {
        // A session's name has no colon; a path may.
        let (session, path) = text.split_once(':').unwrap_or((text, ""));
        Ok(FilePlace { session: session.to_owned(), path: path.to_owned() })
    }
}

#[derive(Debug, clap::Args)]
pub struct FilesPlaceArg {
    /// The session by name or id, and a path from its live working directory on
    #[arg(value_name = "NAME:PATH")]
    pub place: FilePlace,
}

#[derive(Debug, clap::Args)]
pub struct FilesLsArgs {
    #[command(flatten)]
    pub of: FilesPlaceArg,
    /// Print at most N entries [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub struct FilesGetArgs {
    #[command(flatten)]
    pub of: FilesPlaceArg,
    /// Where to put it: a file, a directory, or - for standard output [default: this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub to: Option<PathBuf>,
    /// Take a file that is being written as far as it goes; such a download does not go on after a break
    #[arg(long)]
    pub changing: bool,
}

#[derive(Debug, clap::Args)]
pub struct FilesPutArgs {
    /// The file to upload; - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: PathBuf,
    #[command(flatten)]
    pub of: FilesPlaceArg,
}

#[derive(Debug, clap::Args)]
pub struct FilesEditArgs {
    #[command(flatten)]
    pub of: FilesPlaceArg,
    /// Replace this text, which must be in the file exactly once, instead of starting $EDITOR
    #[arg(long, value_name = "TEXT", requires = "with")]
    pub replace: Option<String>,
    /// What stands there after
    #[arg(long, value_name = "TEXT", requires = "replace", allow_hyphen_values = true)]
    pub with: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct FilesDiffArgs {
    #[command(flatten)]
    pub of: super::SessionArg,
    /// The write's number, from `files changes` [default: the last]
    #[arg(value_name = "CHANGE")]
    pub change: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_session_and_all_behind_the_first_colon() {
        let place = |text: &str| {
            let FilePlace { session, path } = text.parse().unwrap();
            (session, path)
        };
        assert_eq!(place("work"), ("work".into(), String::new()));
        assert_eq!(place("work:a/b:c"), ("work".into(), "a/b:c".into()));
        assert_eq!(place("gpu/work:/srv/x"), ("gpu/work".into(), "/srv/x".into()));
    }
}
