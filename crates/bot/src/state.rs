//! What a bot remembers: who may use it, what it has acted on, and what it has still to say. One file, replaced whole.
//!
//! An update is noted as seen in the same write as the reply to it. Before that write nothing of the update is known, and it comes again; after
//! it, the update is over, and only the reply is left to send. Replies may come twice, acts do not.

use crate::Service;
use crate::chat::Button;
use crate::config::{BotError, Config};
use crate::envelope::Envelope;
use holdfast_store::{BOT_STATE, Survives};
use holdfast_types::{Fence, Handle, Home, SessionId, TimeMs};
use holdfast_wire::runs::RunId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

/// Updates that are remembered: services repeat the last few, not the last thousand.
const SEEN_MAX: usize = 1_000;
/// Replies that wait to be sent; the oldest go first where a service is away for long.
const OUTBOX_MAX: usize = 500;
/// Things that were told, and messages that may be changed later.
const TOLD_MAX: usize = 500;
/// Chat users of one bot.
pub const USERS_MAX: usize = 200;
/// Runs whose output is shown live, and things to be told of, of one user.
pub const LIVE_MAX: usize = 16;
pub const TELLS_MAX: usize = 32;

/// A chat user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The actor it acts as.
    pub handle: Handle,
    /// What it calls itself there.
    pub name: String,
    /// Its private chat with the bot.
    pub chat: String,
    /// What it may do.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Since when.
    pub enrolled_ms: TimeMs,
    /// Who made its code.
    pub by: Handle,
    /// The session that commands without a name mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<SessionId>,
    /// The second factor was shown, and counts until then.
    #[serde(default)]
    pub unlocked_until_ms: TimeMs,
    /// The last step of an authenticator app that was used.
    #[serde(default)]
    pub used_step: u64,
    /// Wrong factors in a row.
    #[serde(default)]
    pub wrong: u32,
    /// No factor is looked at before then.
    #[serde(default)]
    pub barred_until_ms: TimeMs,
}

/// Where a service is to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// Telegram's next update.
    Telegram {
        /// Its number.
        offset: i64,
    },
    /// Discord's session.
    Discord {
        /// Its id.
        session: String,
        /// Where it is resumed.
        url: String,
        /// The last event.
        seq: u64,
    },
}

/// Something to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Its number; grows.
    pub n: u64,
    /// To whom; none: to a stranger.
    pub user: Option<String>,
    /// Where.
    pub chat: String,
    /// What.
    pub what: Reply,
    /// Buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Vec<Button>>,
    /// By this the message is found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The message that is changed; none: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<String>,
}

/// What to say. What is not text is made when it is sent, by what the user may see then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Words, and something in a block.
    Text {
        /// The words.
        head: String,
        /// The block.
        block: Option<String>,
    },
    /// A session's screen as text.
    Screen(SessionId),
    /// And as a picture.
    Picture(SessionId),
    /// Its output as a file.
    Logs(SessionId),
    /// A run: its command, output and status.
    Run(RunId, SessionId),
    /// All of a run's output as a file.
    Output(RunId, SessionId),
}

/// A run whose message changes as it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// The run.
    pub run: RunId,
    /// Where.
    pub session: SessionId,
    /// Whose.
    pub user: String,
    /// The message's chat.
    pub chat: String,
    /// The message.
    pub message: String,
}

/// Something a user wants to be told once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tell {
    /// Whom.
    pub user: String,
    /// Of which session.
    pub session: SessionId,
    /// It ends; otherwise it waits for input.
    pub ends: bool,
}

/// A message that may be changed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// By this it is found.
    pub tag: String,
    /// Whose.
    pub user: String,
    /// Where.
    pub chat: String,
    /// Which.
    pub message: String,
    /// What it says.
    pub text: String,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// By the service's number.
    pub users: BTreeMap<String, User>,
    /// Updates that were acted on.
    pub seen: VecDeque<String>,
    /// Where to go on.
    pub cursor: Option<Cursor>,
    /// What is to be said.
    pub outbox: VecDeque<Queued>,
    /// The last number of a thing to say.
    pub last: u64,
    /// Runs that are shown live.
    pub live: Vec<Live>,
    /// What users want to be told.
    pub tells: Vec<Tell>,
    /// Messages that may be changed.
    pub cards: VecDeque<Card>,
    /// Codes that were used, by their names on disk.
    pub spent: VecDeque<String>,
    /// When the service last gave its updates, roughly.
    pub heard_ms: TimeMs,
    /// Discord: the newest message of each private channel.
    #[serde(default)]
    pub channels: BTreeMap<String, String>,
    /// What was begun and cannot be asked again: an update, and how things stood.
    #[serde(default)]
    pub begun: Option<(String, Fence)>,
}

fn path(home: &Home, service: Service) -> PathBuf {
    Config::dir(home, service).join("state.json")
}

impl State {
    /// What was remembered.
    pub fn load(home: &Home, service: Service) -> Result<State, BotError> {
        Ok(holdfast_store::get_json(&BOT_STATE, &path(home, service))?.unwrap_or_default())
    }

    /// Writes it.
    pub fn save(&self, home: &Home, service: Service) -> io::Result<()> {
        let dir = Config::dir(home, service);
        holdfast_store::put_json(&BOT_STATE, &dir, "state.json", self, Survives::PowerCut)
    }

    /// Notes an update as acted on.
    pub fn note(&mut self, id: &str) {
        self.seen.push_back(id.to_owned());
        keep(&mut self.seen, SEEN_MAX);
    }

    /// Has something said.
    pub fn say(&mut self, user: Option<&str>, chat: &str, what: Reply, buttons: Vec<Vec<Button>>, tag: Option<String>) {
        self.last += 1;
        let (user, chat) = (user.map(ToOwned::to_owned), chat.to_owned());
        self.outbox.push_back(Queued { n: self.last, user, chat, what, buttons, tag, edit: None });
        keep(&mut self.outbox, OUTBOX_MAX);
    }

    /// Has a message changed.
    pub fn change(&mut self, card: &Card, head: String) {
        self.last += 1;
        self.outbox.push_back(Queued {
            n: self.last,
            user: Some(card.user.clone()),
            chat: card.chat.clone(),
            what: Reply::Text { head, block: None },
            buttons: Vec::new(),
            tag: None,
            edit: Some(card.message.clone()),
        });
        keep(&mut self.outbox, OUTBOX_MAX);
    }

    /// Whether something was told to a user: it was, or is about to be.
    pub fn is_told(&self, user: &str, tag: &str) -> bool {
        self.cards.iter().any(|card| card.tag == tag && card.user == user)
            || self.outbox.iter().any(|one| one.tag.as_deref() == Some(tag) && one.user.as_deref() == Some(user))
    }

    /// Remembers a message.
    pub fn remember(&mut self, card: Card) {
        self.cards.push_back(card);
        keep(&mut self.cards, TOLD_MAX);
    }

    /// Forgets a user and everything that was to be said to them.
    pub fn forget(&mut self, user: &str) {
        self.users.remove(user);
        self.outbox.retain(|one| one.user.as_deref() != Some(user));
        self.live.retain(|one| one.user != user);
        self.tells.retain(|one| one.user != user);
        self.cards.retain(|one| one.user != user);
    }

    /// A code was used.
    pub fn spent(&mut self, name: String) {
        self.spent.push_back(name);
        keep(&mut self.spent, TOLD_MAX);
    }
}

fn keep<T>(all: &mut VecDeque<T>, max: usize) {
    while all.len() > max {
        all.pop_front();
    }
}

/// The chat users of a bot, by the service's numbers.
pub fn users(home: &Home, service: Service) -> Result<BTreeMap<String, User>, BotError> {
    let mut users = State::load(home, service)?.users;
    // A removed actor is nobody, also before its bot has noticed.
    users.retain(|_, user| home.actor_public(&user.handle).exists());
    Ok(users)
}
