//! Chat bots as people use them: the real program, bot, host and sessions, against fakes of Telegram and Discord on loopback that check what
//! is sent. A ledger outside counts what really happened.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod discord;
mod guarded;
mod http;
mod once;
mod telegram;
mod using;

use holdfast_harness::{Home, until};
use serde_json::Value;
use std::path::PathBuf;
use telegram::{TOKEN, Telegram};

/// The chat user that sets the bot up.
const ANN: i64 = 501;

/// A home with a bot whose first user is paired.
struct Bot {
    home: Home,
    chat: Telegram,
}

impl Bot {
    /// Set up, and nobody paired yet; the code.
    fn unpaired(extra: &[&str], input: &str) -> (Bot, String) {
        let (home, chat) = (Home::new(), Telegram::start());
        let words =
            [&["bot", "init", "telegram", "--stdin", "--no-wait", "--json", "--api", &chat.api], extra].concat();
        let ran = home.run_with_input(&words, format!("{TOKEN}\n{input}").as_bytes());
        assert_eq!(ran.status, 0, "{ran}");
        let code = serde_json::from_str::<Value>(&ran.out).unwrap()["code"].as_str().unwrap().to_owned();
        (Bot { home, chat }, code)
    }

    fn new() -> Bot {
        let (bot, code) = Bot::unpaired(&[], "");
        bot.chat.says(ANN, &code);
        bot.chat.hears("the welcome", |message| message.text.contains("You are human:telegram-501"));
        bot
    }

    /// A shell that runs work in.
    fn session(&self, name: &str) {
        self.home.ok(&["new", "-d", "-n", name, "--", "bash", "--norc", "--noprofile"]);
        until("its prompt", || self.home.json(&["state", name])["state"] == "idle_prompt");
    }

    fn ledger(&self) -> PathBuf {
        self.home.join("ledger")
    }

    /// Lines of the ledger.
    fn counted(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.ledger()).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// The bot's process.
    fn pid(&self) -> u32 {
        until("a bot", || holdfast_bot::is_served(&self.home.places(), holdfast_bot::Service::Telegram))
    }

    /// Nothing that was sent broke a rule of the service.
    fn is_clean(&self) {
        let wrong = self.chat.seen().wrong.clone();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
