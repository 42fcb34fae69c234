//! Telegram's Bot API: long polling in, plain calls out.

use crate::chat::{Body, Button, Chat, Inbound, Post, Said, Trouble};
use crate::config::{Config, Known};
use crate::engine::{Batch, Input};
use crate::http::{Answer, Attached, Http, Sending, pause};
use crate::state::Cursor;
use crate::text::{harmless, head, html, units};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How long Telegram holds a poll open; below the client's patience.
const POLL_S: u64 = 25;
/// Pauses between polls that fail.
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// Units of a text: Telegram counts 4,096.
const TEXT_MAX: usize = 4_090;
/// Units of a caption.
const CAPTION_MAX: usize = 1_000;

fn url(config: &Config, method: &str) -> String {
    format!("{}/bot{}/{method}", config.api, config.token)
}

fn call(http: &Http, url: &str, body: &Sending<'_>) -> Result<Value, Trouble> {
    understood(http.ask("POST", url, None, body)?)
}

fn understood(answer: Answer) -> Result<Value, Trouble> {
    let said = answer.json["description"].as_str().map(harmless).unwrap_or_default();
    match answer.status {
        200 if answer.json["ok"] == true => Ok(answer.json["result"].clone()),
        401 | 404 => Err(Trouble::Revoked),
        409 => Err(Trouble::Conflict(if said.contains("webhook") {
            "a webhook is set for this bot: remove it at its other program, or make a new bot".into()
        } else {
            "another program polls with this bot's token".into()
        })),
        429 => {
            let after = answer.json["parameters"]["retry_after"].as_f64().map(pause).or(answer.retry_after);
            Err(Trouble::Slow { after: after.unwrap_or(Duration::from_secs(1)), everywhere: false })
        }
        400 | 403 | 413 => Err(Trouble::Refused(said)),
        status => Err(Trouble::Away(format!("Telegram answered {status}"))),
    }
}

/// Whose token this is.
pub fn look_up(token: &str, api: &str) -> Result<Known, Trouble> {
    let me = call(&Http::new(), &format!("{api}/bot{token}/getMe"), &Sending::Json(&json!({})))?;
    let id = me["id"].as_i64().ok_or_else(|| Trouble::Refused("it is no bot's".into()))?;
    let name = me["username"].as_str().map(|name| name.chars().filter(char::is_ascii).take(64).collect());
    Ok(Known { id: id.to_string(), name: name.unwrap_or_default() })
}

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    message: Option<Message>,
    callback_query: Option<Pressed>,
}

#[derive(Deserialize)]
struct Message {
    message_id: i64,
    from: Option<User>,
    chat: Room,
    #[serde(default)]
    date: u64,
    text: Option<String>,
    forward_origin: Option<Value>,
    forward_date: Option<Value>,
    via_bot: Option<Value>,
    sender_chat: Option<Value>,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    username: Option<String>,
}

#[derive(Deserialize)]
struct Room {
    id: i64,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Pressed {
    id: String,
    from: User,
    message: Option<Message>,
    data: Option<String>,
}

/// What an update says; none: nothing that a bot obeys.
fn read(update: Update) -> Option<Inbound> {
    let id = format!("u{}", update.update_id);
    let known = |user: &User| user.username.clone().unwrap_or_else(|| user.first_name.clone());
    if let Some(pressed) = update.callback_query {
        let message = pressed.message?;
        return Some(Inbound {
            id,
            user: pressed.from.id.to_string(),
            name: known(&pressed.from),
            // In a private chat both have one number; a press elsewhere is not this user's to make.
            private: message.chat.kind == "private" && message.chat.id == pressed.from.id,
            chat: message.chat.id.to_string(),
            at_ms: None,
            said: Said::Press { data: pressed.data?, ack: pressed.id, message: message.message_id.to_string() },
        });
    }
    let message = update.message?;
    let from = message.from.filter(|from| !from.is_bot)?;
    if message.via_bot.is_some() || message.sender_chat.is_some() {
        return None;
    }
    let forwarded = message.forward_origin.is_some() || message.forward_date.is_some();
    let said = match message.text {
        _ if forwarded => Said::Forwarded,
        Some(text) => Said::Text { text, message: message.message_id.to_string() },
        None => return None,
    };
    Some(Inbound {
        id,
        user: from.id.to_string(),
        name: known(&from),
        private: message.chat.kind == "private" && message.chat.id == from.id,
        chat: message.chat.id.to_string(),
        at_ms: Some(message.date * 1000),
        said,
    })
}

/// Polls for ever. What was taken is confirmed by the next poll, after the engine has noted it.
pub fn receive(config: &Config, cursor: Option<Cursor>, tell: &Sender<Input>) {
    let http = Http::new();
    let mut offset = match cursor {
        Some(Cursor::Telegram { offset }) => offset,
        Some(Cursor::Discord { .. }) | None => 0,
    };
    let mut again = AGAIN_MIN;
    loop {
        // Edited messages are not asked for.
        let ask = json!({"offset": offset, "timeout": POLL_S, "allowed_updates": ["message", "callback_query"]});
        let answer = call(&http, &url(config, "getUpdates"), &Sending::Json(&ask));
        let trouble = match answer {
            Ok(updates) => {
                let (batch, next) = batch(&updates, offset);
                offset = next;
                let (done, noted) = channel();
                let cursor = Cursor::Telegram { offset };
                if tell.send(Input::Batch(Batch { all: batch, cursor, done })).is_err() || noted.recv().is_err() {
                    return;
                }
                again = AGAIN_MIN;
                continue;
            }
            Err(trouble) => trouble,
        };
        let wait = match &trouble {
            Trouble::Slow { after, .. } => *after,
            Trouble::Revoked | Trouble::Conflict(_) => AGAIN_MAX.min(again * 4),
            Trouble::Away(_) | Trouble::Refused(_) => again,
        };
        again = (again * 2).min(AGAIN_MAX);
        if tell.send(Input::Receiving(Err(trouble))).is_err() {
            return;
        }
        std::thread::sleep(wait);
    }
}

/// What was polled, in order, and what to ask for next. What cannot be read is passed over, once its number is known.
fn batch(updates: &Value, offset: i64) -> (Vec<Inbound>, i64) {
    let mut next = offset;
    let mut all: Vec<(i64, Inbound)> = Vec::new();
    for update in updates.as_array().into_iter().flatten() {
        let Some(id) = update["update_id"].as_i64() else { continue };
        next = next.max(id + 1);
        if let Some(inbound) = Update::deserialize(update).ok().and_then(read) {
            all.push((id, inbound));
        }
    }
    all.sort_by_key(|(id, _)| *id);
    (all.into_iter().map(|(_, inbound)| inbound).collect(), next)
}

/// What posts.
pub struct Telegram {
    config: Config,
    http: Http,
}

impl Telegram {
    /// For this bot.
    pub fn new(config: Config) -> Telegram {
        Telegram { config, http: Http::new() }
    }
}

fn keyboard(buttons: &[Vec<Button>]) -> Value {
    let row = |row: &Vec<Button>| {
        row.iter().map(|Button(text, data)| json!({"text": text, "callback_data": data})).collect::<Vec<_>>()
    };
    json!({"inline_keyboard": buttons.iter().map(row).collect::<Vec<_>>()})
}

/// Words and a block, which together fit a message.
fn rendered(words: &str, block: Option<&str>) -> String {
    let words = harmless(words);
    let words = head(&words, TEXT_MAX);
    let Some(block) = block else { return html(words) };
    let block = harmless(block);
    let block = head(&block, TEXT_MAX - units(words));
    format!("{}\n<pre>{}</pre>", html(words), html(block))
}

impl Chat for Telegram {
    fn post(&mut self, post: &Post) -> Result<String, Trouble> {
        let markup = keyboard(&post.buttons);
        let sent = match (&post.body, &post.edit) {
            (Body::Text { head, block }, edit) => {
                let mut ask = json!({
                    "chat_id": post.chat,
                    "text": rendered(head, block.as_deref()),
                    "parse_mode": "HTML",
                    "link_preview_options": {"is_disabled": true},
                    "reply_markup": markup,
                });
                let method = match edit {
                    Some(message) => {
                        ask["message_id"] = message.parse::<i64>().unwrap_or_default().into();
                        "editMessageText"
                    }
                    None => "sendMessage",
                };
                call(&self.http, &url(&self.config, method), &Sending::Json(&ask))
            }
            (Body::File { name, bytes, head: words, picture }, _) => {
                let (method, field, kind) = match picture {
                    true => ("sendPhoto", "photo", "image/png"),
                    false => ("sendDocument", "document", "text/plain; charset=utf-8"),
                };
                let fields = [
                    ("chat_id", post.chat.clone()),
                    ("caption", head(&harmless(words), CAPTION_MAX).to_owned()),
                    ("reply_markup", markup.to_string()),
                ];
                let file = Attached { field, name, kind, bytes };
                call(&self.http, &url(&self.config, method), &Sending::Multipart(&fields, file))
            }
        };
        match sent {
            Ok(sent) => Ok(sent["message_id"].as_i64().unwrap_or_default().to_string()),
            // The edit came through the first time.
            Err(Trouble::Refused(why)) if why.contains("message is not modified") => {
                Ok(post.edit.clone().unwrap_or_default())
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn acknowledge(&mut self, ack: &str) -> Result<(), Trouble> {
        let ask = json!({"callback_query_id": ack});
        call(&self.http, &url(&self.config, "answerCallbackQuery"), &Sending::Json(&ask)).map(|_| ())
    }

    fn remove(&mut self, chat: &str, message: &str) -> Result<(), Trouble> {
        let ask = json!({"chat_id": chat, "message_id": message.parse::<i64>().unwrap_or_default()});
        call(&self.http, &url(&self.config, "deleteMessage"), &Sending::Json(&ask)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(update: Value) -> Option<Inbound> {
        batch(&json!([update]), 0).0.into_iter().next()
    }

    #[test]
    fn only_a_persons_own_words_in_a_private_chat_are_a_command() {
        let message = |extra: Value| {
            let mut message = json!({"message_id": 5, "date": 7, "text": "/ls", "from": {"id": 9, "first_name": "Ann"},
                "chat": {"id": 9, "type": "private"}});
            message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({"update_id": 1, "message": message})
        };
        let plain = one(message(json!({}))).unwrap();
        assert!(plain.private && plain.at_ms == Some(7_000));
        assert_eq!(plain.said, Said::Text { text: "/ls".into(), message: "5".into() });
        assert_eq!(one(message(json!({"forward_origin": {"type": "user"}}))).unwrap().said, Said::Forwarded);
        assert!(!one(message(json!({"chat": {"id": -4, "type": "group"}}))).unwrap().private);
        assert_eq!(one(message(json!({"from": {"id": 9, "is_bot": true}}))), None);
        assert_eq!(one(message(json!({"via_bot": {"id": 3}}))), None);
        assert_eq!(one(json!({"update_id": 1, "edited_message": message(json!({}))["message"]})), None);
    }

    #[test]
    fn updates_are_taken_in_order_and_unreadable_ones_are_passed_over() {
        let message = |id: i64| json!({"update_id": id, "message": {"message_id": id, "text": "x", "from": {"id": 1}, "chat": {"id": 1, "type": "private"}}});
        let (all, next) = batch(&json!([message(8), message(6), {"update_id": 9, "message": 4}, 5]), 3);
        assert_eq!(all.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["u6", "u8"]);
        assert_eq!(next, 10);
    }
}
