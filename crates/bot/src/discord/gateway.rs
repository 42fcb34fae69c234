//! The gateway: identify or resume, heartbeats, events. A connection that breaks is resumed where it was; what cannot be resumed is read again
//! from the private channels, behind the newest message that was noted.

use super::call;
use super::socket::{self, Stream};
use crate::chat::{Inbound, Said, Trouble};
use crate::config::Config;
use crate::engine::{Batch, Input};
use crate::http::{Http, Sending};
use crate::state::Cursor;
use holdfast_types::TimeMs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// Private messages, whose text a bot gets without asking for more.
const INTENTS: u32 = 1 << 12;
/// Discord's epoch, in ours.
const EPOCH_MS: u64 = 1_420_070_400_000;
/// Pauses between connections that fail.
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// Messages of one channel that are read again.
const MISSED_MAX: u32 = 50;

/// Why a connection ended.
enum Ended {
    /// It is resumed.
    Resume,
    /// A new session is needed.
    Anew,
    /// Something is wrong.
    Trouble(Trouble),
    /// Nobody listens any more.
    Over,
}

struct Gateway<'a> {
    config: &'a Config,
    http: Http,
    tell: &'a Sender<Input>,
    session: Option<(String, String, u64)>,
    channels: BTreeMap<String, String>,
    again: Duration,
}

/// Listens for ever.
pub fn receive(config: &Config, cursor: Option<Cursor>, channels: BTreeMap<String, String>, tell: &Sender<Input>) {
    let session = match cursor {
        Some(Cursor::Discord { session, url, seq }) => Some((session, url, seq)),
        Some(Cursor::Telegram { .. }) | None => None,
    };
    let mut gateway = Gateway { config, http: Http::new(), tell, session, channels, again: AGAIN_MIN };
    loop {
        let trouble = match gateway.connection() {
            Ended::Over => return,
            Ended::Resume => None,
            Ended::Anew => {
                gateway.session = None;
                None
            }
            Ended::Trouble(trouble) => Some(trouble),
        };
        let wait = match &trouble {
            Some(Trouble::Slow { after, .. }) => *after,
            Some(Trouble::Revoked | Trouble::Conflict(_)) => AGAIN_MAX.min(gateway.again * 4),
            Some(_) | None => gateway.again,
        };
        gateway.again = (gateway.again * 2).min(AGAIN_MAX);
        if let Some(trouble) = trouble
            && tell.send(Input::Receiving(Err(trouble))).is_err()
        {
            return;
        }
        std::thread::sleep(wait);
    }
}

fn away(why: impl ToString) -> Ended {
    Ended::Trouble(Trouble::Away(why.to_string()))
}

impl Gateway<'_> {
    fn connection(&mut self) -> Ended {
        let url = match &self.session {
            Some((_, url, _)) => url.clone(),
            None => match call(&self.http, self.config, "GET", "/gateway/bot", &Sending::Nothing) {
                Ok(answer) => answer["url"].as_str().unwrap_or_default().to_owned(),
                Err(trouble) => return Ended::Trouble(trouble),
            },
        };
        let mut socket = match socket::connect(&url) {
            Ok(socket) => socket,
            // Where a session is resumed may be gone: the next attempt asks where to connect.
            Err(_) if self.session.is_some() => return Ended::Anew,
            Err(why) => return away(why),
        };
        self.converse(&mut socket)
    }

    fn converse(&mut self, socket: &mut WebSocket<Stream>) -> Ended {
        let mut beat: Option<(Duration, Instant)> = None;
        let mut is_answered = true;
        loop {
            if let Some((every, at)) = beat
                && at <= Instant::now()
            {
                if !is_answered {
                    return Ended::Resume;
                }
                is_answered = false;
                beat = Some((every, Instant::now() + every));
                if !self.heartbeat(socket) {
                    return Ended::Resume;
                }
            }
            let event = match socket.read() {
                Ok(Message::Text(text)) => serde_json::from_str::<Value>(&text).unwrap_or(Value::Null),
                Ok(Message::Close(frame)) => return self.closed(frame.map(|frame| frame.code.into())),
                Ok(_) => continue,
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(_) => return Ended::Resume,
            };
            match event["op"].as_u64() {
                Some(10) => {
                    let every =
                        Duration::from_millis(event["d"]["heartbeat_interval"].as_u64().unwrap_or(40_000).max(50));
                    // The first comes early: not all clients at once.
                    let jitter = f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX);
                    beat = Some((every, Instant::now() + every.mul_f64(jitter)));
                    if !self.introduce(socket) {
                        return Ended::Resume;
                    }
                }
                Some(11) => is_answered = true,
                Some(1) if !self.heartbeat(socket) => return Ended::Resume,
                Some(7) => return Ended::Resume,
                Some(9) if event["d"] == true => return Ended::Resume,
                Some(9) => return Ended::Anew,
                Some(0) => {
                    if let Err(ended) = self.dispatched(&event) {
                        return ended;
                    }
                }
                Some(_) | None => {}
            }
        }
    }

    fn say(socket: &mut WebSocket<Stream>, what: &Value) -> bool {
        socket.send(Message::text(what.to_string())).is_ok()
    }

    fn heartbeat(&self, socket: &mut WebSocket<Stream>) -> bool {
        Self::say(socket, &json!({"op": 1, "d": self.session.as_ref().map(|(_, _, seq)| seq)}))
    }

    fn introduce(&self, socket: &mut WebSocket<Stream>) -> bool {
        let token = &self.config.token;
        let properties = json!({"os": "linux", "browser": "holdfast", "device": "holdfast"});
        let said = match &self.session {
            Some((session, _, seq)) => json!({"op": 6, "d": {"token": token, "session_id": session, "seq": seq}}),
            None => json!({"op": 2, "d": {"token": token, "intents": INTENTS, "properties": properties}}),
        };
        Self::say(socket, &said)
    }

    fn closed(&self, code: Option<u16>) -> Ended {
        match code {
            Some(4004) => Ended::Trouble(Trouble::Revoked),
            Some(4007 | 4009 | 4003) => Ended::Anew,
            Some(code @ 4010..=4014) => {
                let why =
                    format!("Discord's gateway refused the bot ({code}); look at its settings in the developer portal");
                Ended::Trouble(Trouble::Conflict(why))
            }
            Some(_) | None => Ended::Resume,
        }
    }

    /// An event with a number.
    fn dispatched(&mut self, event: &Value) -> Result<(), Ended> {
        let (kind, content) = (event["t"].as_str().unwrap_or_default(), &event["d"]);
        let seq = event["s"].as_u64().unwrap_or_default();
        if kind == "READY" {
            let text = |name: &str| content[name].as_str().unwrap_or_default().to_owned();
            self.session = Some((text("session_id"), text("resume_gateway_url"), seq));
            self.again = AGAIN_MIN;
            let missed = self.missed().map_err(Ended::Trouble)?;
            return self.pass_on(missed);
        }
        if let Some((_, _, last)) = &mut self.session {
            *last = seq.max(*last);
        }
        match kind {
            "MESSAGE_CREATE" => {
                let all = message(content).into_iter().collect();
                self.pass_on(all)
            }
            "INTERACTION_CREATE" => {
                let all = press(content).into_iter().collect();
                self.pass_on(all)
            }
            "RESUMED" => {
                self.again = AGAIN_MIN;
                self.tell.send(Input::Receiving(Ok(()))).map_err(|_| Ended::Over)
            }
            _ => Ok(()),
        }
    }

    /// Hands events to the engine, and waits until they are noted.
    fn pass_on(&mut self, all: Vec<Inbound>) -> Result<(), Ended> {
        let Some((session, url, seq)) = self.session.clone() else { return Ok(()) };
        for inbound in &all {
            let room = self.channels.contains_key(&inbound.chat) || self.channels.len() < crate::state::USERS_MAX;
            if let (Said::Text { message, .. }, true) = (&inbound.said, inbound.private && room) {
                self.channels.insert(inbound.chat.clone(), message.clone());
            }
        }
        let (done, noted) = channel();
        let batch = Batch { all, cursor: Cursor::Discord { session, url, seq }, done };
        self.tell.send(Input::Batch(batch)).map_err(|_| Ended::Over)?;
        noted.recv().map_err(|_| Ended::Over)
    }

    /// What was written while there was no session.
    fn missed(&self) -> Result<Vec<Inbound>, Trouble> {
        let mut all = Vec::new();
        for (chat, last) in &self.channels {
            let path = format!("/channels/{chat}/messages?after={last}&limit={MISSED_MAX}");
            match call(&self.http, self.config, "GET", &path, &Sending::Nothing) {
                Ok(messages) => all.extend(messages.as_array().into_iter().flatten().filter_map(message)),
                // A chat that is gone.
                Err(Trouble::Refused(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        all.sort_by_key(|one| one.at_ms);
        Ok(all)
    }
}

fn made_ms(id: &str) -> Option<TimeMs> {
    Some((id.parse::<u64>().ok()? >> 22) + EPOCH_MS)
}

fn is_number(id: &str) -> bool {
    !id.is_empty() && id.len() <= 20 && id.bytes().all(|byte| byte.is_ascii_digit())
}

fn field<'a>(content: &'a Value, name: &str) -> Option<&'a str> {
    content[name].as_str().filter(|id| is_number(id))
}

fn message(content: &Value) -> Option<Inbound> {
    let author = &content["author"];
    // A person's own words: no bot's, no webhook's, neither joins nor pins.
    if author["bot"] == true || !content["webhook_id"].is_null() || !matches!(content["type"].as_u64(), Some(0 | 19)) {
        return None;
    }
    let id = field(content, "id")?;
    let forwarded = content["message_reference"]["type"] == 1 || content["message_snapshots"].is_array();
    let text = content["content"].as_str().unwrap_or_default().to_owned();
    Some(Inbound {
        id: format!("m{id}"),
        user: field(author, "id")?.to_owned(),
        name: author["username"].as_str().unwrap_or_default().to_owned(),
        chat: field(content, "channel_id")?.to_owned(),
        private: content["guild_id"].is_null(),
        at_ms: made_ms(id),
        said: if forwarded { Said::Forwarded } else { Said::Text { text, message: id.to_owned() } },
    })
}

fn press(content: &Value) -> Option<Inbound> {
    // Buttons only.
    if content["type"].as_u64() != Some(3) {
        return None;
    }
    let id = field(content, "id")?;
    let token = content["token"]
        .as_str()
        .filter(|token| token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)))?;
    let user = &content["user"];
    Some(Inbound {
        id: format!("i{id}"),
        // In a server it is a member that presses, and nothing there is obeyed.
        user: field(user, "id")?.to_owned(),
        name: user["username"].as_str().unwrap_or_default().to_owned(),
        chat: field(content, "channel_id")?.to_owned(),
        private: content["guild_id"].is_null(),
        at_ms: made_ms(id),
        said: Said::Press {
            data: content["data"]["custom_id"].as_str()?.to_owned(),
            ack: format!("{id}/{token}"),
            message: field(&content["message"], "id")?.to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_persons_own_words_are_read() {
        let plain = json!({"id": "175928847299117063", "type": 0, "channel_id": "7", "content": "ls", "author": {"id": "9", "username": "ann"}});
        let with = |name: &str, value: Value| {
            let mut changed = plain.clone();
            changed[name] = value;
            changed
        };
        let read = message(&plain).unwrap();
        assert!(read.private && read.at_ms == Some(1_462_015_105_796));
        assert!(!message(&with("guild_id", "4".into())).unwrap().private);
        assert_eq!(message(&with("message_reference", json!({"type": 1}))).unwrap().said, Said::Forwarded);
        for (name, value) in [
            ("author", json!({"id": "9", "bot": true})),
            ("webhook_id", "3".into()),
            ("type", 7.into()),
            ("channel_id", "../x".into()),
        ] {
            assert_eq!(message(&with(name, value)), None, "{name}");
        }
    }
}
