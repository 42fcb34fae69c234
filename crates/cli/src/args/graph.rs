//! The options of what shows processes: `graph`, `ps` and `ports`.

use clap::ValueHint;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast graph <NAME> [--tree|--json|--svg <FILE>]\n       holdfast graph <NAME> --watch\n       holdfast graph --diff <A> <B>"
)]
pub struct GraphArgs {
    /// Name, id, or prefix of an id
    #[arg(value_name = "NAME", required_unless_present = "diff", conflicts_with = "diff")]
    pub session: Option<String>,
    /// Print a tree of lines (the default)
    #[arg(long, conflicts_with_all = ["svg", "diff"])]
    pub tree: bool,
    /// Write a drawing to FILE; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["watch", "diff"])]
    pub svg: Option<PathBuf>,
    /// Redraw on every change until you press q; without a terminal, print each change
    #[arg(long, conflicts_with = "diff")]
    pub watch: bool,
    /// Compare two graphs saved with --json
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_hint = ValueHint::FilePath)]
    pub diff: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct MaybeSessionArg {
    /// Name, id, or prefix of an id [default: all sessions]
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
}
