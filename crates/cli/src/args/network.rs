//! The options of listening over HTTP.

use clap::ValueHint;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use holdfast_host::LogFormat;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where `--http` listens unless said.
pub const HTTP_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), HTTP_PORT);
const HTTP_PORT: u16 = 7433;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct ListenArgs {
    /// Listen for HTTP on ADDR (a port, an address, or both), now and after every later start [default: 127.0.0.1:7433]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, value_parser = address)]
    pub http: Option<Option<SocketAddr>>,
    /// Stop listening for HTTP
    #[arg(long, conflicts_with = "http")]
    pub no_http: bool,
    /// TLS certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Host name that requests may use; can be repeated. The host refuses requests for other names
    #[arg(long = "name", value_name = "NAME", requires = "http")]
    pub names: Vec<String>,
    /// Listen beyond this machine without TLS; use only on a private network such as a VPN
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
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub no_open: bool,
    /// Print an address that other devices can reach, and a QR code for it
    #[arg(long, conflicts_with = "no_open")]
    pub phone: bool,
    /// Make the phone a device of this host, which also reaches it through its relays when away from here
    #[arg(long, requires = "phone")]
    pub away: bool,
}
