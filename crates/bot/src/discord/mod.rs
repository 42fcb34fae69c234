//! Discord: its gateway in, its REST API out.

mod gateway;
mod socket;

pub use gateway::receive;

use crate::chat::{Body, Button, Chat, Post, Trouble};
use crate::config::{Config, Known};
use crate::http::{Answer, Attached, Http, Sending, pause};
use crate::text::{fenced, harmless, head, markdown, units};
use serde_json::{Value, json};
use std::time::Duration;

/// What Discord takes in one message.
const CONTENT_MAX: usize = 2_000;
/// Rows of buttons, and buttons of a row.
const ROWS_MAX: usize = 5;
const ROW_MAX: usize = 5;
/// No embeds of links that somebody's output has in it.
const SUPPRESS_EMBEDS: u32 = 1 << 2;

fn call(http: &Http, config: &Config, method: &str, path: &str, body: &Sending<'_>) -> Result<Value, Trouble> {
    let auth = format!("Bot {}", config.token);
    understood(http.ask(method, &format!("{}{path}", config.api), Some(&auth), body)?)
}

fn understood(answer: Answer) -> Result<Value, Trouble> {
    let said = || answer.json["message"].as_str().map(harmless).unwrap_or_default();
    match answer.status {
        200..=299 => Ok(answer.json),
        401 => Err(Trouble::Revoked),
        429 => {
            let after = answer.json["retry_after"].as_f64().map(pause).or(answer.retry_after);
            let everywhere = answer.json["global"] == true;
            Err(Trouble::Slow { after: after.unwrap_or(Duration::from_secs(1)), everywhere })
        }
        400 | 403 | 404 | 413 => Err(Trouble::Refused(said())),
        status => Err(Trouble::Away(format!("Discord answered {status}"))),
    }
}

/// Whose token this is.
pub fn look_up(token: &str, api: &str) -> Result<Known, Trouble> {
    let auth = format!("Bot {token}");
    let me = understood(Http::new().ask("GET", &format!("{api}/users/@me"), Some(&auth), &Sending::Nothing)?)?;
    let id = me["id"].as_str().filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    let name = me["username"].as_str().map(|name| name.chars().filter(char::is_ascii).take(64).collect());
    let id = id.ok_or_else(|| Trouble::Refused("it is no bot's".into()))?;
    Ok(Known { id: id.to_owned(), name: name.unwrap_or_default() })
}

/// What posts.
pub struct Discord {
    config: Config,
    http: Http,
}

impl Discord {
    /// For this bot.
    pub fn new(config: Config) -> Discord {
        Discord { config, http: Http::new() }
    }
}

/// Buttons as Discord takes them: as they stand, or closer together where there are too many rows.
fn components(buttons: &[Vec<Button>]) -> Value {
    let flat: Vec<&Button> = buttons.iter().flatten().collect();
    let rows: Vec<Vec<&Button>> = if buttons.len() <= ROWS_MAX {
        buttons.iter().map(|row| row.iter().collect()).collect()
    } else {
        flat.chunks(ROW_MAX).take(ROWS_MAX).map(<[_]>::to_vec).collect()
    };
    let button = |Button(text, data): &Button| json!({"type": 2, "style": 2, "label": text, "custom_id": data});
    let row = |row: Vec<&Button>| json!({"type": 1, "components": row.into_iter().map(button).collect::<Vec<_>>()});
    rows.into_iter().filter(|row| !row.is_empty()).map(row).collect()
}

/// Words, and a block that its content does not leave. What is put before special characters counts, so the words are cut to what fits.
fn content(words: &str, block: Option<&str>) -> String {
    let Some(block) = block else {
        return head(&markdown(&harmless(words)), CONTENT_MAX).to_owned();
    };
    let mut words = markdown(&harmless(words));
    let mut block = fenced(&harmless(block));
    let around = "\n```\n\n```".len();
    let room = CONTENT_MAX.saturating_sub(units(&words) + around);
    if units(&block) > room {
        block = crate::text::tail(&block, room).0.to_owned();
    }
    if block.is_empty() {
        words = head(&words, CONTENT_MAX).to_owned();
        return words;
    }
    format!("{words}\n```\n{block}\n```")
}

impl Chat for Discord {
    fn post(&mut self, post: &Post) -> Result<String, Trouble> {
        let mut ask = json!({
            "allowed_mentions": {"parse": []},
            "components": components(&post.buttons),
            "flags": SUPPRESS_EMBEDS,
        });
        let channel = format!("/channels/{}/messages", post.chat);
        if post.edit.is_none() || matches!(post.body, Body::File { .. }) {
            // The same message twice within minutes is one.
            ask["nonce"] = post.nonce.to_string().into();
            ask["enforce_nonce"] = true.into();
        }
        let sent = match (&post.body, &post.edit) {
            (Body::Text { head, block }, edit) => {
                ask["content"] = content(head, block.as_deref()).into();
                match edit {
                    Some(message) => {
                        let path = format!("{channel}/{message}");
                        call(&self.http, &self.config, "PATCH", &path, &Sending::Json(&ask))
                    }
                    None => call(&self.http, &self.config, "POST", &channel, &Sending::Json(&ask)),
                }
            }
            (Body::File { name, bytes, head, picture }, _) => {
                ask["content"] = content(head, None).into();
                ask["attachments"] = json!([{"id": 0, "filename": name}]);
                let kind = if *picture { "image/png" } else { "text/plain; charset=utf-8" };
                let file = Attached { field: "files[0]", name, kind, bytes };
                let fields = [("payload_json", ask.to_string())];
                call(&self.http, &self.config, "POST", &channel, &Sending::Multipart(&fields, file))
            }
        };
        Ok(sent?["id"].as_str().unwrap_or_default().to_owned())
    }

    fn acknowledge(&mut self, ack: &str) -> Result<(), Trouble> {
        // The token of the interaction is all the proof there is: the message stays as it is.
        let path = format!("/interactions/{ack}/callback");
        call(&self.http, &self.config, "POST", &path, &Sending::Json(&json!({"type": 6}))).map(|_| ())
    }

    fn remove(&mut self, _: &str, _: &str) -> Result<(), Trouble> {
        // A bot cannot remove what others wrote in a private chat.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_block_or_is_too_long() {
        let text = content("`x` @everyone", Some("```\n@everyone ``` <@1>"));
        assert_eq!(text.matches("```").count(), 2, "{text}");
        assert!(text.contains("\\@everyone"), "{text}");
        for long in ["x".repeat(9_000), "`".repeat(9_000), "🦀".repeat(5_000)] {
            assert!(units(&content("head", Some(&long))) <= CONTENT_MAX);
            assert!(units(&content(&long, None)) <= CONTENT_MAX);
        }
    }

    #[test]
    fn many_buttons_are_put_closer_together() {
        let many: Vec<Vec<Button>> = (0..16).map(|n| vec![Button(n.to_string(), n.to_string())]).collect();
        let rows = components(&many);
        assert_eq!(rows.as_array().unwrap().len(), 4);
        assert!(rows.as_array().unwrap().iter().all(|row| row["components"].as_array().unwrap().len() <= 5));
    }
}
