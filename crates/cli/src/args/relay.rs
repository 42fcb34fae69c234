//! The options of relays.

use clap::{Subcommand, ValueHint};
use holdfast_relay::{Cluster, RelayUrl};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "holdfast relay --listen <ADDR> [--tls-cert <FILE> --tls-key <FILE> | --behind-proxy]\n       holdfast relay add <URL>\n       holdfast relay ls\n       holdfast relay remove <URL>\n       holdfast relay direct [--listen <ADDR> | --off]"
)]
pub struct RelayArgs {
    #[command(subcommand)]
    pub about: Option<RelayCommand>,
    #[command(flatten)]
    pub serve: RelayServeArgs,
}

#[derive(Debug, Subcommand)]
pub enum RelayCommand {
    /// Make this machine's host reachable through a relay
    Add(RelayUrlArg),
    /// List the relays of this machine's host, and whether each is connected
    Ls,
    /// Leave a relay
    Remove(RelayUrlArg),
    /// Let your devices reach this host without a relay where they can, or show whether they may
    Direct(RelayDirectArgs),
}

#[derive(Debug, clap::Args)]
pub struct RelayDirectArgs {
    /// Listen here: IP:PORT, as in 0.0.0.0:7434
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Where devices find this host, if not at its own address: NAME:PORT. Can be repeated
    #[arg(long = "address", value_name = "NAME:PORT", requires = "listen")]
    pub addresses: Vec<String>,
    /// Stop listening
    #[arg(long, conflicts_with = "listen")]
    pub off: bool,
}

#[derive(Debug, clap::Args)]
pub struct RelayUrlArg {
    /// Where the relay is: https://NAME or https://NAME:PORT
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: String,
}

/// Where relays note which of them has which host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// In the relay alone.
    Embedded,
    /// In etcd, for several relays.
    Etcd(Cluster),
}

fn store(text: &str) -> Result<Store, String> {
    match text.split_once('=') {
        None if text == "embedded" => Ok(Store::Embedded),
        Some(("etcd", members)) => Cluster::of(members).map(Store::Etcd),
        _ => Err("expected `embedded` or `etcd=http://NAME:PORT,…`".into()),
    }
}

#[derive(Debug, clap::Args)]
pub struct RelayServeArgs {
    /// Run a relay here, until interrupted
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Certificate chain for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// A proxy in front speaks TLS and sets X-Forwarded-For
    #[arg(long, conflicts_with = "tls_cert", requires = "listen")]
    pub behind_proxy: bool,
    /// Serve only requests for this NAME or NAME:PORT, as it stands in the relay's URL
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub name: Option<String>,
    /// Where relays note which of them has which host: `embedded`, or `etcd=URL,URL…` for several relays that send clients on to each other
    /// [default: embedded]
    #[arg(long, value_name = "STORE", requires = "listen", value_parser = store)]
    pub store: Option<Store>,
    /// Where clients find this relay, for other relays: https://NAME or https://NAME:PORT. Needed with `--store etcd=…`
    #[arg(long, value_name = "URL", requires = "store", value_hint = ValueHint::Url)]
    pub url: Option<RelayUrl>,
    /// Authorities of etcd's certificates, PEM
    #[arg(long, value_name = "FILE", requires = "store", value_hint = ValueHint::FilePath)]
    pub store_ca: Option<PathBuf>,
    /// Certificate chain that this relay shows to etcd, PEM
    #[arg(long, value_name = "FILE", requires = "store_key", requires = "store", value_hint = ValueHint::FilePath)]
    pub store_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "store_cert", value_hint = ValueHint::FilePath)]
    pub store_key: Option<PathBuf>,
    /// Connections from one address at once [default: 512]
    #[arg(long, value_name = "COUNT", requires = "listen")]
    pub per_address: Option<usize>,
    /// Clients of one host at once [default: 256]
    #[arg(long, value_name = "COUNT", requires = "listen")]
    pub per_host: Option<usize>,
    /// Connections at once in all [default: 20000]
    #[arg(long, value_name = "COUNT", requires = "listen")]
    pub connections: Option<usize>,
}
