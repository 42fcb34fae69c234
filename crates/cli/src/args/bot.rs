//! The options of chat bots.

use crate::values::Seconds;
use clap::Subcommand;
use holdfast_bot::{Can, Service};

#[derive(Debug, Subcommand)]
pub enum BotCommand {
    /// Set up a bot: asks for its token, starts it, and shows the code that pairs your chat
    Init(BotInitArgs),
    /// Start a bot in the background; it comes back with the host
    Start(BotServiceArgs),
    /// Stop a bot; its users stay enrolled
    Stop(BotServiceArgs),
    /// Show whether bots run, and what is wrong with one that does not; exit with 1 if none runs
    Status,
    /// List chat users, what each may do, and codes that were not used yet
    Users,
    /// Make a code by which another person enrols: they send it to the bot
    Enrol(BotEnrolArgs),
    /// Remove a chat user at once; the same as `actor remove`
    Remove(BotRemoveArgs),
    /// Forget a bot: its token, and all its users
    Forget(BotForgetArgs),
}

#[derive(Debug, clap::Args)]
pub struct BotServiceArgs {
    /// telegram or discord [default: every bot that is set up]
    #[arg(value_name = "SERVICE")]
    pub service: Option<Service>,
}

#[derive(Debug, clap::Args)]
pub struct BotForgetArgs {
    /// telegram or discord
    #[arg(value_name = "SERVICE")]
    pub service: Service,
}

#[derive(Debug, clap::Args)]
pub struct BotInitArgs {
    /// telegram or discord
    #[arg(value_name = "SERVICE")]
    pub service: Service,
    /// Read the token from standard input, one line; with --passphrase a second line has that
    #[arg(long)]
    pub stdin: bool,
    /// Ask chat users for a passphrase before anything but looking
    #[arg(long, conflicts_with = "totp")]
    pub passphrase: bool,
    /// Ask chat users for a code of an authenticator app before anything but looking
    #[arg(long)]
    pub totp: bool,
    /// How long a passphrase or code counts [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub again_after: Option<Seconds>,
    /// Address of a Bot API server of your own; http:// only on this machine
    #[arg(long, value_name = "URL")]
    pub api: Option<String>,
    /// Do not wait until the code was used
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, clap::Args)]
pub struct BotEnrolArgs {
    /// telegram or discord [default: the bot that is set up]
    #[arg(value_name = "SERVICE")]
    pub service: Option<Service>,
    /// What they may do: read, run or full
    #[arg(long, value_name = "ENVELOPE", default_value_t = Can::Read)]
    pub can: Can,
    /// Only in this session; can be repeated
    #[arg(long = "session", value_name = "NAME")]
    pub sessions: Vec<String>,
    /// For this long from the moment they enrol, for example 2h
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<Seconds>,
}

#[derive(Debug, clap::Args)]
pub struct BotRemoveArgs {
    /// The chat user's actor (see `holdfast bot users`)
    #[arg(value_name = "ACTOR")]
    pub handle: holdfast_types::Handle,
}
