//! Who is kept out of what.

use crate::telegram::Telegram;
use crate::{ANN, Bot};
use holdfast_harness::{kill, until};
use serde_json::{Value, json};

const BOB: i64 = 502;
const EVE: i64 = 666;

impl Bot {
    /// Another person, enrolled by a code.
    fn enrols(&self, user: i64, args: &[&str]) {
        let made = self.home.json(&[&["bot", "enrol"], args].concat());
        self.chat.says(user, made["code"].as_str().unwrap());
        self.chat.hears("their welcome", |message| message.text.contains(&format!("You are human:telegram-{user}")));
    }

    /// Says something, and gives the next reply in that chat.
    #[track_caller]
    fn replied(&self, user: i64, text: &str) -> String {
        let newest = self.chat.newest();
        self.chat.says(user, text);
        let (_, reply) = self.chat.hears_after(newest, text, |message| message.chat == user);
        format!("{}\n{}", reply.text, reply.block)
    }
}

#[test]
fn strangers_groups_forwards_and_edits_are_not_obeyed() {
    let (bot, code) = Bot::unpaired(&[], "");
    bot.session("work");
    // One line for a stranger, once.
    bot.chat.says(EVE, "/ls");
    bot.chat.hears("the one line", |message| message.chat == EVE && message.text.contains("private"));
    bot.chat.says(EVE, "/run id");
    for n in 0..20 {
        bot.chat.says(EVE, &format!("ABCDE-FGH{n:02}"));
    }
    // A code in a group enrols nobody.
    let mut group = Telegram::message(EVE, &code);
    group["chat"] = json!({"id": -9, "type": "group"});
    bot.chat.arrives(json!({"message": group}));
    let mut forwarded = Telegram::message(ANN, "/ls");
    bot.chat.says(ANN, &code);
    bot.chat.hears("the welcome", |message| message.text.contains("You are human:telegram-501"));
    forwarded["forward_origin"] = json!({"type": "user"});
    bot.chat.arrives(json!({"message": forwarded}));
    bot.chat.hears("the refusal", |message| message.text == "forwarded messages are not commands");
    bot.chat.arrives(json!({"edited_message": Telegram::message(ANN, "/ls")}));
    let mut old = Telegram::message(ANN, &format!("/type echo old >> {}", bot.ledger().display()));
    old["date"] = 1_000_000.into();
    let last = bot.chat.arrives(json!({"message": old}));
    bot.chat.took(last);
    bot.chat.hears("the refusal", |message| message.text.contains("long ago"));
    // The same code again, of somebody else.
    let last = bot.chat.says(EVE, &code);
    bot.chat.took(last);
    let to_eve = bot.chat.seen().messages.values().filter(|message| message.chat == EVE).count();
    assert!((2..=6).contains(&to_eve), "one line, and five guesses at most: {:?}", bot.chat.texts());
    assert!(bot.chat.seen().messages.values().all(|message| message.chat > 0), "nothing is said in groups");
    assert!(!bot.chat.texts().iter().any(|(_, text, _)| text == "Sessions"), "{:?}", bot.chat.texts());
    assert_eq!(bot.home.json(&["bot", "users"])["users"].as_array().unwrap().len(), 1);
    assert!(bot.counted().is_empty());
    bot.is_clean();
}

#[test]
fn nobody_gets_more_than_their_envelope_and_removal_counts_at_once() {
    let bot = Bot::new();
    bot.session("work");
    bot.session("secret");
    bot.enrols(BOB, &["--can", "read", "--session", "work"]);
    let list = bot.replied(BOB, "/ls");
    assert!(list.contains("work") && !list.contains("secret"), "{list}");
    assert!(bot.replied(BOB, "/screen secret").contains("no such session"));
    let ledger = bot.ledger().display().to_string();
    for (text, refusal) in [
        (format!("/run echo run >> {ledger}"), "you may only read here"),
        (format!("/type echo typed >> {ledger}"), "you may only read here"),
        ("/key C-c".into(), "you may only read here"),
        ("/seize mine".into(), "you may only read here"),
        ("/logs secret".into(), "no such session"),
        ("/tell ends secret".into(), "no such session"),
    ] {
        let said = bot.replied(BOB, &text);
        assert!(said.contains(refusal), "{text}: {said}");
    }
    // Buttons carry ids: one that was made up is refused by the same rule.
    let id = bot.home.json(&["info", "secret"])["id"].as_str().unwrap()[4..].to_owned();
    for data in [format!("s:{id}"), format!("p:{id}"), format!("k:{id}:Enter")] {
        let newest = bot.chat.newest();
        bot.chat.presses(BOB, 1, &data);
        let (_, said) = bot.chat.hears_after(newest, &data, |message| message.chat == BOB);
        assert!(said.text.contains("no such session") || said.text.contains("only read"), "{data}: {said:?}");
    }
    // Questions are not for who cannot answer them, nor those of other sessions.
    bot.home.ok(&["actor", "new", "agent:bot"]);
    bot.home.run_as("agent:bot", &["ask", "-t", "secret", "--timeout", "0", "Psst?"]);
    bot.chat.hears("the question", |message| message.chat == ANN && message.text.contains("Psst?"));
    assert!(!bot.chat.seen().messages.values().any(|message| message.chat == BOB && message.text.contains("Psst")));
    // Removed is removed.
    bot.home.ok(&["actor", "remove", "human:telegram-502"]);
    until("their removal", || bot.home.json(&["bot", "users"])["users"].as_array().unwrap().len() == 1);
    assert!(bot.replied(BOB, "/ls").contains("This bot is private"));
    let ran = bot.home.run(&["bot", "remove", "human:tester"]);
    assert!(ran.status == 1 && ran.err.contains("no chat user"), "{ran}");
    // Nor does an agent let itself in.
    let ran = bot.home.run_as("agent:bot", &["bot", "enrol", "--can", "full"]);
    assert!(ran.status == 1 && ran.err.contains("only a human"), "{ran}");
    assert!(bot.counted().is_empty());
    bot.is_clean();
}

#[test]
fn no_process_in_a_session_gets_more_in_the_name_of_a_chat_user_than_its_envelope() {
    let bot = Bot::new();
    bot.session("work");
    bot.enrols(BOB, &["--can", "run"]);
    let program = holdfast_harness::program();
    bot.chat.says(BOB, &format!("/run {} --as human:telegram-502 seize work --reason mine", program.display()));
    let mut asked = Value::Null;
    until("the question who that is", || {
        asked = bot.home.json(&["questions"])[0].clone();
        asked["by"]["handle"] == "human:telegram-502"
    });
    let newest = bot.chat.newest();
    let (id, hash) = (&asked["id"].as_str().unwrap()[4..], &asked["hash"].as_str().unwrap()[..16]);
    bot.chat.presses(BOB, 1, &format!("q:{id}:1:{hash}"));
    bot.chat.hears_after(newest, "the refusal", |message| message.text.contains("use a terminal"));
    let shown =
        bot.chat.seen().messages.values().any(|message| message.chat == BOB && message.text.contains("are you pid"));
    assert!(!shown, "nor is it shown to them");
    assert_ne!(bot.home.json(&["turn", "work"])["holder"]["how"], "seized");
    bot.chat.says(BOB, "/key C-c");
    bot.is_clean();
}

#[test]
fn an_envelope_ends_by_itself() {
    let bot = Bot::new();
    bot.session("work");
    bot.enrols(BOB, &["--can", "run", "--for", "1s"]);
    until("its end", || bot.replied(BOB, "/ls").contains("your access has ended"));
    bot.is_clean();
}

#[test]
fn nothing_is_typed_where_the_terminal_hides_it() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/type read -rs -p 'Password: ' x");
    bot.chat.hears("the screen", |message| message.block.contains("Password:"));
    until("the prompt", || bot.home.json(&["state", "work"])["kind"] == "password");
    for text in ["/type hunter2", "/key h u n t e r 2 Enter"] {
        let said = bot.replied(ANN, text);
        assert!(said.contains("answer it at a terminal or on the page"), "{text}: {said}");
    }
    let journal = bot.home.ok(&["journal", "work", "--json"]);
    assert!(!journal.contains("hunter2"), "{journal}");
    // An interruption gives nothing away.
    bot.chat.says(ANN, "/key C-c");
    until("the shell", || bot.home.json(&["state", "work"])["state"] == "idle_prompt");
    bot.is_clean();
}

#[test]
fn a_passphrase_is_asked_for_and_its_message_removed() {
    let (bot, code) = Bot::unpaired(&["--passphrase", "--again-after", "1h"], "open sesame\n");
    bot.session("work");
    bot.chat.says(ANN, &code);
    bot.chat.hears("the welcome", |message| message.text.contains("You are"));
    assert!(bot.replied(ANN, "/ls").contains("work"), "looking needs none");
    let run = format!("/run echo x >> {}", bot.ledger().display());
    assert!(bot.replied(ANN, &run).contains("locked: send /unlock"));
    assert!(bot.replied(ANN, "/unlock open barley").contains("that is not it"));
    assert!(bot.replied(ANN, "/unlock open sesame").contains("Unlocked"));
    until("the messages to be removed", || bot.chat.seen().removed.len() == 2);
    assert!(bot.replied(ANN, &run).contains("work $"));
    until("the run", || bot.counted().len() == 1);
    // Also after the bot was killed.
    kill(bot.pid());
    bot.chat.says(ANN, "/lock");
    bot.chat.hears("the lock", |message| message.text == "Locked.");
    assert!(bot.replied(ANN, &run).contains("locked"));
    for _ in 0..5 {
        bot.replied(ANN, "/unlock wrong wrong");
    }
    assert!(bot.replied(ANN, "/unlock open sesame").contains("too many wrong"));
    assert_eq!(bot.counted().len(), 1);
    let files = std::fs::read_to_string(bot.home.places().state.join("bots/telegram/bot.json")).unwrap();
    assert!(!files.contains("sesame"));
    bot.is_clean();
}

#[test]
fn a_token_that_is_revoked_is_said_and_files_are_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bot = Bot::new();
    let status = bot.home.run(&["bot", "status"]);
    assert!(status.status == 0 && status.out.contains("running"), "{status}");
    let dir = bot.home.places().state.join("bots/telegram");
    for entry in std::fs::read_dir(&dir).unwrap().flatten() {
        let wanted = if entry.path().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, wanted, "{entry:?}");
    }
    bot.chat.seen().revoked = true;
    until("the news", || bot.home.run(&["bot", "status"]).out.contains("does not accept its token"));
    let status: Value = serde_json::from_str(&bot.home.run(&["bot", "status", "--json"]).out).unwrap();
    assert_eq!(status["bots"][0]["running"]["condition"], "revoked");
    let ran = bot.home.run_with_input(&["bot", "init", "telegram", "--stdin", "--api", &bot.chat.api], b"1:wrong\n");
    assert!(ran.status == 1 && ran.err.contains("@BotFather"), "{ran}");
    let ran = bot.home.run_with_input(&["bot", "init", "telegram", "--stdin", "--api", "http://example.com"], b"1:x\n");
    assert!(ran.status == 2 && ran.err.contains("without TLS"), "{ran}");
}

#[test]
fn a_bot_is_started_again_and_comes_back_with_the_host_until_it_is_stopped() {
    let bot = Bot::new();
    let first = bot.pid();
    kill(first);
    until("the next", || bot.pid() != first);
    // Everything dies, as at a reboot: the next host brings the bot with it.
    bot.home.ok(&["host", "stop"]);
    until("nobody", || {
        let left = bot.home.processes();
        left.iter().for_each(|pid| kill(*pid));
        left.is_empty()
    });
    bot.home.ok(&["host", "start"]);
    bot.pid();
    bot.chat.says(ANN, "/me");
    bot.chat.hears("an answer", |message| message.text.contains("may full in all sessions"));
    bot.home.ok(&["bot", "stop"]);
    let status = bot.home.run(&["bot", "status"]);
    assert!(status.status == 1 && status.out.contains("stopped"), "{status}");
    bot.home.ok(&["host", "restart"]);
    assert!(bot.home.run(&["bot", "status"]).out.contains("stopped"), "it stays stopped");
    bot.home.ok(&["bot", "forget", "telegram"]);
    assert!(!bot.home.ok(&["actor", "ls"]).contains("telegram-501"));
}
