//! The options of what shows processes: `graph`, `ps` and `ports`.

use clap::ValueHint;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "holdfast graph <NAME> [--tree|--json|--svg <FILE>]\n       holdfast graph <NAME> --watch\n       holdfast graph --diff <A> <B>"
)]
pub struct GraphArgs {
    /// Name, id, or the beginning of an id
    #[arg(value_name = "NAME", required_unless_present = "diff", conflicts_with = "diff")]
    pub session: Option<String>,
    /// As a tree of lines, which is what is shown where nothing is said
    #[arg(long, conflicts_with_all = ["svg", "diff"])]
    pub tree: bool,
    /// As a drawing, written to FILE; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["watch", "diff"])]
    pub svg: Option<PathBuf>,
    /// Draw again whenever something happens, until q is pressed; where there is no terminal, print what happens
    #[arg(long, conflicts_with = "diff")]
    pub watch: bool,
    /// What changed between two graphs that were saved with --json
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_hint = ValueHint::FilePath)]
    pub diff: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct MaybeSessionArg {
    /// Name, id, or the beginning of an id; every session where none is given
    #[arg(value_name = "NAME")]
    pub session: Option<String>,
}
