//! The options of `trace` and `record`.

use clap::ValueHint;
use holdfast_types::Handle;
use holdfast_wire::runs::RunRef;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// Run id or key
    #[arg(value_name = "RUN")]
    pub run: RunRef,
    /// Print it as OpenTelemetry spans (OTLP in JSON)
    #[arg(long)]
    pub otlp: bool,
    /// Write the spans to FILE instead
    #[arg(long, value_name = "FILE", requires = "otlp", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Actor, such as agent:bot
    #[arg(value_name = "ACTOR")]
    pub actor: Handle,
    /// Only runs of this command, such as make
    #[arg(long, value_name = "NAME")]
    pub action: Option<String>,
}
