//! The options of `holdfast prove`.

use clap::ValueHint;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct ProveArgs {
    /// Run only these experiments, separated by commas
    #[arg(long, value_name = "EXPERIMENT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List the experiments and run none
    #[arg(long)]
    pub list: bool,
    /// Also write the findings as one HTML page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Prove another program than this one
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub program: Option<PathBuf>,
}
