//! What both services have in common: who says what where, and what is posted.

use holdfast_types::TimeMs;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A chat service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Telegram, by long polling.
    Telegram,
    /// Discord, by its gateway.
    Discord,
}

impl Service {
    /// All.
    pub const EACH: [Service; 2] = [Service::Telegram, Service::Discord];

    /// Its word in commands, handles and file names.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Service::Telegram => "telegram",
            Service::Discord => "discord",
        }
    }

    /// Where it is reached unless the configuration says otherwise.
    #[must_use]
    pub fn api(self) -> &'static str {
        match self {
            Service::Telegram => "https://api.telegram.org",
            Service::Discord => "https://discord.com/api/v10",
        }
    }

    /// UTF-16 units of one message: the services count 4,096 and 2,000; some are left for what is put around an output.
    #[must_use]
    pub fn text_max(self) -> usize {
        match self {
            Service::Telegram => 4_000,
            Service::Discord => 1_900,
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Service, String> {
        let found = Service::EACH.into_iter().find(|service| service.word() == text);
        found.ok_or_else(|| format!("unknown service {text:?}; expected telegram or discord"))
    }
}

/// One thing that somebody did in a chat with the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// The service's own id: the same again is the same thing.
    pub id: String,
    /// Who, by the service's number.
    pub user: String,
    /// What they call themselves.
    pub name: String,
    /// Where to answer.
    pub chat: String,
    /// It is a chat of this user and the bot alone.
    pub private: bool,
    /// When, where the service says so.
    pub at_ms: Option<TimeMs>,
    /// What.
    pub said: Said,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A message.
    Text {
        /// Its words.
        text: String,
        /// Its id.
        message: String,
    },
    /// A button.
    Press {
        /// What the button carries.
        data: String,
        /// How the press is acknowledged.
        ack: String,
        /// The message it is on.
        message: String,
    },
    /// Somebody else's words.
    Forwarded,
}

/// A button: what it says, and what it carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button(pub String, pub String);

/// What is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Words, and behind them something in a monospace block. Both are made harmless by the service's side.
    Text {
        /// The words.
        head: String,
        /// The block.
        block: Option<String>,
    },
    /// A file.
    File {
        /// Its name.
        name: &'static str,
        /// What it has.
        bytes: Vec<u8>,
        /// Words beside it.
        head: String,
        /// It is shown as a picture.
        picture: bool,
    },
}

/// A message to be posted, or one to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Where.
    pub chat: String,
    /// What.
    pub body: Body,
    /// Rows of buttons.
    pub buttons: Vec<Vec<Button>>,
    /// The message to change; none: a new one.
    pub edit: Option<String>,
    /// A service that can tells a repeat by it.
    pub nonce: u64,
}

/// Why something could not be said to a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Too much at once: not before this has passed. `everywhere`: not only in this chat.
    #[error("the service asks to wait {after:?}")]
    Slow {
        /// How long.
        after: Duration,
        /// For all chats.
        everywhere: bool,
    },
    /// No way there, or the service is ill.
    #[error("{0}")]
    Away(String),
    /// It will not take this.
    #[error("the service refused it: {0}")]
    Refused(String),
    /// It does not know the bot any more.
    #[error("the service does not accept the bot's token")]
    Revoked,
    /// Somebody else uses the bot's token.
    #[error("{0}")]
    Conflict(String),
}

/// A service's side that posts. One request at a time.
pub trait Chat: Send {
    /// Posts or changes a message, and gives its id.
    fn post(&mut self, post: &Post) -> Result<String, Trouble>;
    /// Says that a press was noticed.
    fn acknowledge(&mut self, ack: &str) -> Result<(), Trouble>;
    /// Removes a message that has a secret in it, where the service lets a bot do so.
    fn remove(&mut self, chat: &str, message: &str) -> Result<(), Trouble>;
}
