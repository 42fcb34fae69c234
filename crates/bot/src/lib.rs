//! Sessions from a chat: a bot at Telegram or Discord that is a client of the host like any other.
//!
//! A process for each service, beside the host. It dials out only: Telegram is polled, Discord's gateway is a WebSocket. Each chat user that
//! was enrolled by a code is an actor with a key of its own, so the host's journal says who did what, and `actor remove` ends it at once.
//!
//! What makes it safe:
//!
//! - Everything that is asked of the host for a chat user goes through `desk::Desk`, which compares the operation's terms with the user's
//!   envelope. No command asks the host past it.
//! - Each update is acted on once, whenever the bot is killed: what it does is keyed by the update's id, and the update is noted as done in the
//!   same write as the reply that is to be sent (`state.rs`).
//! - Only a private chat with an enrolled user is obeyed. Groups, forwards, edits and other bots are not.
//! - Nothing is typed while the terminal hides what is typed.
//!
//! What goes through a chat service is read by it.

mod act;
mod card;
mod chat;
mod code;
mod command;
mod config;
mod desk;
mod discord;
mod engine;
mod envelope;
mod factor;
mod http;
mod notice;
mod picture;
mod png;
mod press;
mod serve;
mod state;
mod telegram;
mod text;
mod typing;
mod watch;

pub use chat::Service;
pub use code::{CODE_MS, Code, Offer, Offered, make as make_code, offers};
pub use config::{BotError, Config, Known, check_api, look_up};
pub use envelope::{Can, Envelope};
pub use factor::{Factor, Made as MadeFactor};
pub use serve::{Condition, Served, Status, is_served, lock_file, log_file, serve, spawn, status, stop};
pub use state::{User, users};
