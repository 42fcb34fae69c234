//! A Telegram of our own on loopback: it checks what it is sent by the limits of the real one, and keeps everything.

use crate::http::{self, Answer, Request};
use holdfast_harness::until;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub const TOKEN: &str = "123456:AAtest-token_x";

/// A message the bot sent.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub chat: i64,
    pub text: String,
    /// What is in monospace.
    pub block: String,
    pub buttons: Vec<(String, String)>,
    /// How often it was changed.
    pub edits: usize,
    /// The file it carries.
    pub file: Option<(String, Vec<u8>)>,
    pub method: String,
}

#[derive(Default)]
pub struct Seen {
    updates: Vec<Value>,
    next_update: i64,
    pub messages: BTreeMap<i64, Message>,
    next_message: i64,
    pub acknowledged: Vec<String>,
    pub removed: Vec<i64>,
    pub polls: usize,
    pub offsets: Vec<i64>,
    pub revoked: bool,
    /// So many of the next sends are answered by 429.
    pub slow: usize,
    pub slowed: Vec<Instant>,
    /// Polls give everything again, confirmed or not.
    pub repeats: bool,
    pub wrong: Vec<String>,
    /// When each edit came.
    pub edited: Vec<Instant>,
}

#[derive(Clone)]
pub struct Telegram {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    pub api: String,
}

impl Telegram {
    pub fn start() -> Telegram {
        let first = Seen { next_update: 1_000, next_message: 10, ..Seen::default() };
        let seen = Arc::new((Mutex::new(first), Condvar::new()));
        let shared = Arc::clone(&seen);
        let address = http::serve(move |request, _| answer(&shared, &request));
        Telegram { seen, api: format!("http://{address}") }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap()
    }

    fn push(&self, update: impl FnOnce(i64) -> Value) -> i64 {
        let mut seen = self.seen();
        seen.next_update += 1;
        let id = seen.next_update;
        let mut update = update(id);
        update["update_id"] = id.into();
        seen.updates.push(update);
        self.seen.1.notify_all();
        id
    }

    pub fn message(user: i64, text: &str) -> Value {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        json!({"message_id": 7, "date": now, "text": text, "chat": {"id": user, "type": "private"},
            "from": {"id": user, "is_bot": false, "first_name": "Ann", "username": "ann"}})
    }

    /// A person writes to the bot.
    pub fn says(&self, user: i64, text: &str) -> i64 {
        self.push(|_| json!({"message": Telegram::message(user, text)}))
    }

    /// Something else arrives.
    pub fn arrives(&self, update: Value) -> i64 {
        self.push(|_| update)
    }

    /// A person presses a button.
    pub fn presses(&self, user: i64, message: i64, data: &str) -> i64 {
        self.push(|id| {
            json!({"callback_query": {"id": format!("cb{id}"), "from": {"id": user, "is_bot": false, "first_name": "Ann"}, "data": data,
                "message": {"message_id": message, "date": 1, "chat": {"id": user, "type": "private"}}}})
        })
    }

    /// Waits for a message that fits.
    #[track_caller]
    pub fn hears(&self, what: &str, fits: impl Fn(&Message) -> bool) -> (i64, Message) {
        let found = holdfast_harness::poll(|| {
            let seen = self.seen();
            seen.messages.iter().find(|(_, message)| fits(message)).map(|(id, message)| (*id, message.clone()))
        });
        found.unwrap_or_else(|| panic!("waited in vain for {what}; there are {:#?}", self.texts()))
    }

    /// Waits for a message that fits, behind another.
    #[track_caller]
    pub fn hears_after(&self, after: i64, what: &str, fits: impl Fn(&Message) -> bool) -> (i64, Message) {
        let found = holdfast_harness::poll(|| {
            let seen = self.seen();
            let found = seen.messages.range(after + 1..).find(|(_, message)| fits(message));
            found.map(|(id, message)| (*id, message.clone()))
        });
        found.unwrap_or_else(|| panic!("waited in vain for {what}; there are {:#?}", self.texts()))
    }

    pub fn texts(&self) -> Vec<(i64, String, String)> {
        self.seen().messages.iter().map(|(id, m)| (*id, m.text.clone(), m.block.clone())).collect()
    }

    /// The newest message's number.
    pub fn newest(&self) -> i64 {
        self.seen().messages.keys().next_back().copied().unwrap_or(0)
    }

    /// Waits until an update was confirmed by a later poll.
    #[track_caller]
    pub fn took(&self, update: i64) {
        until("the confirmation of an update", || self.seen().offsets.last().is_some_and(|offset| *offset > update));
    }
}

fn fail(seen: &mut Seen, what: String) -> Answer {
    seen.wrong.push(what.clone());
    Answer::Json(400, json!({"ok": false, "error_code": 400, "description": what}))
}

fn answer(shared: &(Mutex<Seen>, Condvar), request: &Request) -> Answer {
    let mut seen = shared.0.lock().unwrap();
    let path = request.path.strip_prefix(&format!("/bot{TOKEN}/")).map(ToOwned::to_owned);
    let Some(method) = path.filter(|_| !seen.revoked) else {
        return Answer::Json(401, json!({"ok": false, "error_code": 401, "description": "Unauthorized"}));
    };
    let mut ask: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let mut file = None;
    for (name, filename, content) in request.parts() {
        if ask.is_null() {
            ask = json!({});
        }
        match filename {
            Some(filename) => file = Some((name, filename, content)),
            None => {
                let text = String::from_utf8(content).unwrap();
                ask[name.as_str()] =
                    if name == "reply_markup" { serde_json::from_str(&text).unwrap() } else { text.into() };
            }
        }
    }
    let result = match method.as_str() {
        "getMe" => json!({"id": 123_456, "is_bot": true, "username": "hold_test_bot"}),
        "getUpdates" => {
            drop(seen);
            return poll(shared, &ask);
        }
        "answerCallbackQuery" => {
            seen.acknowledged.push(ask["callback_query_id"].as_str().unwrap().to_owned());
            true.into()
        }
        "deleteMessage" => {
            seen.removed.push(ask["message_id"].as_i64().unwrap());
            true.into()
        }
        "sendMessage" | "editMessageText" | "sendPhoto" | "sendDocument" => {
            if seen.slow > 0 {
                seen.slow -= 1;
                seen.slowed.push(Instant::now());
                return Answer::Json(
                    429,
                    json!({"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}}),
                );
            }
            return sent(&mut seen, &method, &ask, file);
        }
        other => return fail(&mut seen, format!("unknown method {other}")),
    };
    Answer::Json(200, json!({"ok": true, "result": result}))
}

fn poll(shared: &(Mutex<Seen>, Condvar), ask: &Value) -> Answer {
    let offset = ask["offset"].as_i64().unwrap();
    assert_eq!(ask["allowed_updates"], json!(["message", "callback_query"]));
    let until = Instant::now() + Duration::from_millis(500);
    let mut seen = shared.0.lock().unwrap();
    seen.polls += 1;
    seen.offsets.push(offset);
    loop {
        let repeats = seen.repeats;
        if !repeats {
            seen.updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
        }
        if !seen.updates.is_empty() || Instant::now() > until || seen.revoked {
            let mut all = seen.updates.clone();
            if repeats {
                // Out of order and twice: nobody promises otherwise.
                all.reverse();
                all.extend(all.clone());
                // Not faster than a network would be.
                drop(shared.1.wait_timeout(seen, Duration::from_millis(20)).unwrap());
            }
            return Answer::Json(200, json!({"ok": true, "result": all}));
        }
        seen = shared.1.wait_timeout(seen, Duration::from_millis(50)).unwrap().0;
    }
}

/// The words and the block of an HTML text; an error where it is not what Telegram takes.
fn parsed(text: &str) -> Result<(String, String), String> {
    let unescape = |text: &str| {
        if text.contains(['<', '>']) {
            return Err(format!("unescaped: {text}"));
        }
        Ok(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    match text.split_once("\n<pre>") {
        None => Ok((unescape(text)?, String::new())),
        Some((words, rest)) => {
            let block = rest.strip_suffix("</pre>").ok_or("the block does not end the message")?;
            Ok((unescape(words)?, unescape(block)?))
        }
    }
}

fn sent(seen: &mut Seen, method: &str, ask: &Value, file: Option<(String, String, Vec<u8>)>) -> Answer {
    let chat = ask["chat_id"].as_str().and_then(|chat| chat.parse().ok()).unwrap_or_default();
    let mut buttons = Vec::new();
    for row in ask["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten() {
        for button in row.as_array().unwrap() {
            let (text, data) = (button["text"].as_str().unwrap(), button["callback_data"].as_str().unwrap());
            if !(1..=64).contains(&data.len()) {
                return fail(seen, format!("BUTTON_DATA_INVALID {data}"));
            }
            buttons.push((text.to_owned(), data.to_owned()));
        }
    }
    let said = ask["text"].as_str().or(ask["caption"].as_str()).unwrap_or_default();
    let (text, block) = match (ask["parse_mode"].as_str(), file.is_some()) {
        (Some("HTML"), false) => match parsed(said) {
            Ok(parsed) => parsed,
            Err(why) => return fail(seen, format!("can't parse entities: {why}")),
        },
        _ => (said.to_owned(), String::new()),
    };
    let max = if file.is_some() { 1_024 } else { 4_096 };
    let length = text.encode_utf16().count() + block.encode_utf16().count();
    if length > max || (length == 0 && file.is_none()) {
        return fail(seen, format!("message has {length} characters"));
    }
    if method == "editMessageText" {
        seen.edited.push(Instant::now());
        let Some(message) = seen.messages.get_mut(&ask["message_id"].as_i64().unwrap()) else {
            return fail(seen, "message to edit not found".into());
        };
        if message.file.is_some() {
            return Answer::Json(400, json!({"ok": false, "description": "there is no text in the message to edit"}));
        }
        if (&message.text, &message.block, &message.buttons) == (&text, &block, &buttons) {
            return Answer::Json(400, json!({"ok": false, "description": "Bad Request: message is not modified"}));
        }
        (message.text, message.block, message.buttons) = (text, block, buttons);
        message.edits += 1;
        return Answer::Json(200, json!({"ok": true, "result": {"message_id": ask["message_id"]}}));
    }
    seen.next_message += 1;
    let id = seen.next_message;
    let file = file.map(|(_, name, bytes)| (name, bytes));
    seen.messages.insert(id, Message { chat, text, block, buttons, edits: 0, file, method: method.to_owned() });
    Answer::Json(200, json!({"ok": true, "result": {"message_id": id}}))
}
