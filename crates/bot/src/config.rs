//! What a bot is: its service, token and second factor. Written by commands, read by the bot.

use crate::factor::Factor;
use crate::{Service, discord, telegram};
use holdfast_store::{BOT, Survives, Unreadable};
use holdfast_types::Home;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Longest token: both services' are below 100.
const TOKEN_BYTES_MAX: usize = 256;

/// Why a bot cannot be set up or read.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// There is none.
    #[error("there is no {0} bot")]
    None(Service),
    /// Its file cannot be read.
    #[error("cannot read the bot's file")]
    Unreadable(#[from] Unreadable),
    /// A file could not be written.
    #[error("cannot write {0}")]
    Io(PathBuf, #[source] io::Error),
    /// The token is not one.
    #[error("that is no {0} token: {1}")]
    Token(Service, &'static str),
    /// The address cannot be used.
    #[error("invalid API address {0:?}: {1}")]
    Api(String, &'static str),
    /// The service says no.
    #[error("{0} refused the token: {1}")]
    Service(Service, String),
}

/// A bot.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Where.
    pub service: Service,
    /// What the service knows it by: a secret.
    pub token: String,
    /// Where the service is reached.
    pub api: String,
    /// The bot's number there.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// It runs, and comes back with the host.
    pub enabled: bool,
    /// What is asked for besides, before anything but looking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<Factor>,
}

impl std::fmt::Debug for Config {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Config({} {})", self.service, self.name)
    }
}

/// What a service says of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The bot's number.
    pub id: String,
    /// Its name.
    pub name: String,
}

impl Config {
    /// Where everything of a bot lies.
    #[must_use]
    pub fn dir(home: &Home, service: Service) -> PathBuf {
        home.state.join("bots").join(service.word())
    }

    /// The bot of a service, if there is one.
    pub fn load(home: &Home, service: Service) -> Result<Option<Config>, BotError> {
        Ok(holdfast_store::get_json(&BOT, &Config::dir(home, service).join("bot.json"))?)
    }

    /// The bot of a service.
    pub fn get(home: &Home, service: Service) -> Result<Config, BotError> {
        Config::load(home, service)?.ok_or(BotError::None(service))
    }

    /// Writes it, for its user alone.
    pub fn save(&self, home: &Home) -> Result<(), BotError> {
        let dir = Config::dir(home, self.service);
        let failed = |error| BotError::Io(dir.clone(), error);
        holdfast_store::make_dir(&dir).map_err(failed)?;
        holdfast_store::put_json(&BOT, &dir, "bot.json", self, Survives::PowerCut).map_err(failed)
    }

    /// Forgets a bot, its users and what it has not said yet.
    pub fn forget(home: &Home, service: Service) -> Result<(), BotError> {
        let dir = Config::dir(home, service);
        std::fs::remove_dir_all(&dir).map_err(|error| BotError::Io(dir, error))
    }
}

/// An address may be spoken to without TLS only where nobody is in between.
pub fn check_api(api: &str) -> Result<String, BotError> {
    let wrong = |why| BotError::Api(api.to_owned(), why);
    let api = api.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
    if !api.chars().all(plain) {
        return Err(wrong("unexpected characters"));
    }
    if let Some(rest) = api.strip_prefix("https://") {
        return if rest.is_empty() { Err(wrong("it names no host")) } else { Ok(api.to_owned()) };
    }
    let Some(rest) = api.strip_prefix("http://") else { return Err(wrong("expected https://")) };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority
        .strip_prefix("[::1]")
        .map_or_else(|| authority.split(':').next().unwrap_or_default().to_owned(), |_| "[::1]".into());
    if matches!(host.as_str(), "127.0.0.1" | "localhost" | "[::1]") {
        Ok(api.to_owned())
    } else {
        Err(wrong("without TLS only to 127.0.0.1, [::1] or localhost"))
    }
}

/// Asks a service whose token this is.
pub fn look_up(service: Service, token: &str, api: &str) -> Result<Known, BotError> {
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return Err(BotError::Token(service, "expected one line"));
    }
    // It becomes part of an address or a header.
    if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte)) {
        return Err(BotError::Token(service, "unexpected characters"));
    }
    let known = match service {
        Service::Telegram => telegram::look_up(token, api),
        Service::Discord => discord::look_up(token, api),
    };
    known.map_err(|trouble| BotError::Service(service, trouble.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_this_machine_is_spoken_to() {
        for good in ["https://api.telegram.org", "http://127.0.0.1:8081", "http://localhost:1/bot", "http://[::1]:9/"] {
            assert!(check_api(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "http://localhost.example.com",
            "ftp://127.0.0.1",
            "https://",
            "https://a b",
            "127.0.0.1",
        ] {
            assert!(check_api(bad).is_err(), "{bad}");
        }
    }
}
