//! The options of listening over HTTP, and of tokens.

use crate::values::{Seconds, rights};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueHint};
use holdfast_host::LogFormat;
use holdfast_types::Rights;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where `--http` listens unless said.
pub const HTTP_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), HTTP_PORT);
const HTTP_PORT: u16 = 7433;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct ListenArgs {
    /// Listen for HTTP too, at ADDR (127.0.0.1:7433 unless said; a port, an address, or both), now and with every later start
    #[arg(long, value_name = "ADDR", num_args = 0..=1, value_parser = address)]
    pub http: Option<Option<SocketAddr>>,
    /// No longer listen for HTTP
    #[arg(long, conflicts_with = "http")]
    pub no_http: bool,
    /// With TLS: the certificate chain, a PEM file
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// With TLS: the certificate's key, a PEM file
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// A name under which this machine is asked; may be repeated. Requests for other names are refused
    #[arg(long = "name", value_name = "NAME", requires = "http")]
    pub names: Vec<String>,
    /// Listen beyond this machine without TLS: only where something else keeps it private
    #[arg(long, requires = "http")]
    pub insecure_listen: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct LogArgs {
    /// Format of this host's log; `log_format` in config.toml sets it for every host, and `log` what is logged
    #[arg(long = "log", value_name = "FORMAT", value_parser = log_format())]
    pub format: Option<LogFormat>,
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new([LogFormat::Text, LogFormat::Json].map(LogFormat::word))
        .try_map(|word| word.parse::<LogFormat>())
}

/// `8080`, `0.0.0.0`, `[::1]:8080`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, HTTP_PORT));
    let port = || text.parse::<u16>().ok().map(|port| SocketAddr::new(HTTP_ADDRESS.ip(), port));
    let whole = text.parse::<SocketAddr>().ok().or_else(port).or_else(alone);
    whole.ok_or_else(|| "expected a port, an address, or both: 7433, 0.0.0.0, [::1]:7433".into())
}

#[derive(Debug, clap::Args)]
pub struct WebArgs {
    /// Print the address alone; open no browser
    #[arg(long)]
    pub no_open: bool,
    /// For another device: the address it reaches this host at, and a code for its camera
    #[arg(long, conflicts_with = "no_open")]
    pub phone: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token, and print it: it is not shown again
    New(TokenNewArgs),
    /// List the tokens that are good now
    Ls,
    /// Make a token worthless, at once
    Revoke(TokenArg),
}

#[derive(Debug, clap::Args)]
pub struct TokenNewArgs {
    /// The most it may do: observe type run signal seize grant approve checkpoint fork end configure; whatever the actor may
    /// unless said
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub can: Option<Rights>,
    /// For so long, for example 90s, 2h or 3d; 30 days unless said
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<Seconds>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}

#[derive(Debug, clap::Args)]
pub struct TokenArg {
    /// Its id, as `token ls` shows it
    #[arg(value_name = "ID")]
    pub token: String,
}
