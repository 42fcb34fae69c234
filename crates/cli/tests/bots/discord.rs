//! Discord: a gateway and an API of our own on loopback, and what a person does through them.

use crate::http::{self, Answer, Request};
use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

const TOKEN: &str = "MTIz.test.discord-token";
const ANN: u64 = 9_001;
const CHANNEL: u64 = 7_001;

#[derive(Default)]
struct Seen {
    address: String,
    /// Events with their numbers, of one session.
    events: Vec<Value>,
    /// Messages of people, as the channel has them.
    history: Vec<Value>,
    session: u32,
    identified: usize,
    resumed: usize,
    heartbeats: usize,
    /// The next resume is refused.
    forget: bool,
    /// Connections are to close: with this code.
    close: Option<u16>,
    posts: BTreeMap<u64, (String, Value)>,
    nonces: BTreeMap<String, u64>,
    edits: usize,
    files: Vec<(String, Vec<u8>)>,
    acknowledged: Vec<String>,
    slow: usize,
    next: u64,
    wrong: Vec<String>,
}

#[derive(Clone)]
struct Discord(Arc<Mutex<Seen>>);

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

impl Discord {
    fn start() -> (Discord, String) {
        let discord = Discord(Arc::new(Mutex::new(Seen { next: 1, ..Seen::default() })));
        let shared = discord.clone();
        let address = http::serve(move |request, stream| shared.answer(&request, stream));
        discord.seen().address.clone_from(&address);
        (discord, format!("http://{address}/api"))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    /// A number that says when it was made, as theirs do.
    fn id(seen: &mut Seen) -> u64 {
        seen.next += 1;
        ((now_ms() - 1_420_070_400_000) << 22) + seen.next
    }

    fn says(&self, text: &str) {
        let mut seen = self.seen();
        let id = Discord::id(&mut seen).to_string();
        let message = json!({"id": id, "type": 0, "channel_id": CHANNEL.to_string(), "content": text,
            "author": {"id": ANN.to_string(), "username": "ann"}});
        seen.history.push(message.clone());
        seen.events.push(json!({"t": "MESSAGE_CREATE", "d": message}));
    }

    fn presses(&self, message: u64, data: &str) {
        let mut seen = self.seen();
        let id = Discord::id(&mut seen).to_string();
        seen.events.push(json!({"t": "INTERACTION_CREATE", "d": {"id": id, "type": 3, "token": "tok-1", "channel_id": CHANNEL.to_string(),
            "user": {"id": ANN.to_string(), "username": "ann"}, "data": {"custom_id": data}, "message": {"id": message.to_string()}}}));
    }

    #[track_caller]
    fn hears(&self, what: &str, fits: impl Fn(&str) -> bool) -> (u64, Value) {
        let found = holdfast_harness::poll(|| {
            let seen = self.seen();
            seen.posts.iter().find(|(_, (text, _))| fits(text)).map(|(id, (_, post))| (*id, post.clone()))
        });
        found.unwrap_or_else(|| {
            let seen = self.seen();
            panic!("waited in vain for {what}; there are {:#?}; wrong: {:?}", seen.posts, seen.wrong)
        })
    }

    fn is_clean(&self) {
        let wrong = self.seen().wrong.clone();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    fn answer(&self, request: &Request, stream: TcpStream) -> Answer {
        if request.header("upgrade").is_some() {
            let key = request.header("sec-websocket-key").unwrap();
            let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            std::io::Write::write_all(&mut &stream, head.as_bytes()).unwrap();
            // It ends by an error when the other side goes.
            let _ = self.gateway(WebSocket::from_raw_socket(stream, Role::Server, None));
            return Answer::Taken;
        }
        let mut seen = self.seen();
        if request.header("authorization") != Some(&format!("Bot {TOKEN}")) {
            return Answer::Json(401, json!({"message": "401: Unauthorized", "code": 0}));
        }
        let path = request.path.strip_prefix("/api").unwrap_or_default().to_owned();
        let parts = request.parts();
        let mut body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        for (name, file, content) in parts {
            match (name.as_str(), file) {
                ("payload_json", None) => body = serde_json::from_slice(&content).unwrap(),
                ("files[0]", Some(name)) => seen.files.push((name, content)),
                other => seen.wrong.push(format!("{other:?}")),
            }
        }
        match (request.method.as_str(), path.as_str()) {
            ("GET", "/users/@me") => Answer::Json(200, json!({"id": "4242", "username": "holdbot"})),
            ("GET", "/gateway/bot") => Answer::Json(200, json!({"url": format!("ws://{}", seen.address)})),
            ("GET", path) if path.contains("/messages?after=") => {
                let after: u64 = path.split("after=").nth(1).unwrap().split('&').next().unwrap().parse().unwrap();
                let newer = |one: &&Value| one["id"].as_str().unwrap().parse::<u64>().unwrap() > after;
                let mut all: Vec<Value> = seen.history.iter().filter(newer).cloned().collect();
                all.reverse();
                Answer::Json(200, all.into())
            }
            ("POST", path) if path.starts_with("/interactions/") => {
                seen.acknowledged.push(path.to_owned());
                Answer::Json(204, Value::Null)
            }
            ("POST" | "PATCH", path) if path.starts_with(&format!("/channels/{CHANNEL}/messages")) => {
                let edit = path.split("/messages/").nth(1).map(|id| id.parse::<u64>().unwrap());
                posted(&mut seen, edit, &body)
            }
            other => {
                seen.wrong.push(format!("{other:?}"));
                Answer::Json(404, json!({"message": "404: Not Found"}))
            }
        }
    }

    fn gateway(&self, mut socket: WebSocket<TcpStream>) -> Result<(), tungstenite::Error> {
        let say = |socket: &mut WebSocket<TcpStream>, what: Value| socket.send(Message::text(what.to_string()));
        socket.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        say(&mut socket, json!({"op": 10, "d": {"heartbeat_interval": 300}}))?;
        // The number of the next event to send, once the client has said which.
        let mut next: Option<usize> = None;
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    let asked: Value = serde_json::from_str(&text).unwrap();
                    let mut seen = self.seen();
                    match asked["op"].as_u64() {
                        Some(1) => {
                            seen.heartbeats += 1;
                            drop(seen);
                            say(&mut socket, json!({"op": 11}))?;
                        }
                        Some(2) => {
                            assert_eq!(asked["d"]["token"], TOKEN);
                            assert_eq!(asked["d"]["intents"], 1 << 12, "private messages, and no privileged intent");
                            seen.identified += 1;
                            seen.session += 1;
                            seen.events.clear();
                            let (name, url) = (format!("session-{}", seen.session), format!("ws://{}", seen.address));
                            drop(seen);
                            next = Some(0);
                            say(
                                &mut socket,
                                json!({"op": 0, "t": "READY", "s": 1, "d": {"session_id": name, "resume_gateway_url": url}}),
                            )?;
                        }
                        Some(6) => {
                            let known = asked["d"]["session_id"] == format!("session-{}", seen.session) && !seen.forget;
                            seen.forget = false;
                            seen.resumed += usize::from(known);
                            drop(seen);
                            if known {
                                next = Some(asked["d"]["seq"].as_u64().unwrap() as usize - 1);
                                say(&mut socket, json!({"op": 0, "t": "RESUMED", "s": asked["d"]["seq"], "d": {}}))?;
                            } else {
                                say(&mut socket, json!({"op": 9, "d": false}))?;
                            }
                        }
                        other => seen.wrong.push(format!("op {other:?}")),
                    }
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            let mut seen = self.seen();
            if let Some(code) = seen.close.take() {
                drop(seen);
                let frame = tungstenite::protocol::CloseFrame { code: code.into(), reason: "".into() };
                socket.close(Some(frame))?;
                return Ok(());
            }
            if let Some(at) = next
                && let Some(event) = seen.events.get(at).cloned()
            {
                drop(seen);
                next = Some(at + 1);
                let event = json!({"op": 0, "t": event["t"], "s": at + 2, "d": event["d"]});
                say(&mut socket, event.clone())?;
                // Twice: nobody promises otherwise.
                say(&mut socket, event)?;
            }
        }
    }
}

fn posted(seen: &mut Seen, edit: Option<u64>, body: &Value) -> Answer {
    let content = body["content"].as_str().unwrap_or_default().to_owned();
    if seen.slow > 0 {
        seen.slow -= 1;
        return Answer::Json(
            429,
            json!({"message": "You are being rate limited.", "retry_after": 0.7, "global": false}),
        );
    }
    if content.encode_utf16().count() > 2_000 {
        seen.wrong.push(format!("{} characters", content.len()));
    }
    if body["allowed_mentions"] != json!({"parse": []}) {
        seen.wrong.push("mentions are allowed".into());
    }
    if ![0, 2].contains(&content.matches("```").count()) {
        seen.wrong.push(format!("blocks: {content}"));
    }
    for row in body["components"].as_array().into_iter().flatten() {
        let buttons = row["components"].as_array().unwrap();
        let long = buttons.iter().any(|button| button["custom_id"].as_str().unwrap().len() > 100);
        if long || !(1..=5).contains(&buttons.len()) || body["components"].as_array().unwrap().len() > 5 {
            seen.wrong.push(format!("buttons: {row}"));
        }
    }
    let id = match (edit, body["nonce"].as_str()) {
        (Some(edit), _) => {
            seen.edits += 1;
            edit
        }
        (None, Some(nonce)) if body["enforce_nonce"] == true && seen.nonces.contains_key(nonce) => {
            return Answer::Json(200, json!({"id": seen.nonces[nonce].to_string()}));
        }
        (None, nonce) => {
            let id = Discord::id(seen);
            nonce.map(|nonce| seen.nonces.insert(nonce.to_owned(), id));
            id
        }
    };
    seen.posts.insert(id, (content, body.clone()));
    Answer::Json(200, json!({"id": id.to_string()}))
}

/// A home whose Discord bot is paired, with a shell.
fn paired() -> (Home, Discord) {
    let (home, (discord, api)) = (Home::new(), Discord::start());
    let words = ["bot", "init", "discord", "--stdin", "--no-wait", "--json", "--api", &api];
    let ran = home.run_with_input(&words, format!("{TOKEN}\n").as_bytes());
    assert_eq!(ran.status, 0, "{ran}");
    let code = serde_json::from_str::<Value>(&ran.out).unwrap()["code"].as_str().unwrap().to_owned();
    until("the gateway", || discord.seen().identified == 1);
    discord.says(&code);
    discord.hears("the welcome", |text| text.contains(&format!("human:discord-{ANN}")));
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile"]);
    until("its prompt", || home.json(&["state", "work"])["state"] == "idle_prompt");
    (home, discord)
}

#[test]
fn discord_pairs_runs_resumes_and_catches_up_once() {
    let (home, discord) = paired();
    let ledger = home.join("ledger");
    let counted = || std::fs::read_to_string(&ledger).unwrap_or_default().lines().count();
    let idle = || until("its prompt", || home.json(&["state", "work"])["state"] == "idle_prompt");
    let line = |word: &str| format!("/run echo {word} >> {}; echo 'a``` @everyone'", ledger.display());
    discord.says(&line("one"));
    let (_, post) = discord.hears("the run", |text| text.contains("exit 0"));
    assert!(post["content"].as_str().unwrap().contains("@everyone"), "{post}");
    // Its connection breaks: it is resumed, and nothing is done twice.
    discord.seen().close = Some(4_000);
    until("a resumption", || discord.seen().resumed == 1);
    discord.says(&line("two"));
    until("the second", || counted() == 2);
    idle();
    // Killed in the middle of one: the session is resumed where it was noted.
    let pause = home.pause("bot.acted");
    discord.says(&line("three"));
    let held = pause.reached();
    kill(holdfast_bot::is_served(&home.places(), holdfast_bot::Service::Discord).unwrap());
    drop(held);
    drop(pause);
    until("a resumption", || discord.seen().resumed == 2);
    until("the third", || counted() == 3);
    idle();
    // Killed, and its session is forgotten: what was written meanwhile is read from the channel.
    let pause = home.pause("bot.taken");
    discord.says(&line("four"));
    let held = pause.reached();
    discord.seen().forget = true;
    kill(until("a bot", || holdfast_bot::is_served(&home.places(), holdfast_bot::Service::Discord)));
    drop(held);
    drop(pause);
    until("the fourth", || counted() == 4);
    assert_eq!(discord.seen().identified, 2);
    assert_eq!(counted(), 4, "each once");
    discord.is_clean();
}

#[test]
fn at_discord_too_buttons_and_pictures_work_and_a_revoked_token_is_said() {
    let (home, discord) = paired();
    // Buttons, a limit and a picture.
    discord.seen().slow = 1;
    discord.says("screen");
    let (id, post) = discord.hears("the screen", |text| text.starts_with("work: "));
    let buttons: Vec<&Value> =
        post["components"].as_array().unwrap().iter().flat_map(|row| row["components"].as_array().unwrap()).collect();
    let data = |label: &str| {
        buttons.iter().find(|one| one["label"] == label).unwrap()["custom_id"].as_str().unwrap().to_owned()
    };
    discord.presses(id, &data("Picture"));
    until("the picture", || {
        discord.seen().files.iter().any(|(name, png)| name == "screen.png" && &png[1..4] == b"PNG")
    });
    let edits = discord.seen().edits;
    discord.presses(id, &data("Enter"));
    until("the change", || discord.seen().edits > edits);
    until("the acknowledgements", || discord.seen().acknowledged.len() >= 2);
    until("heartbeats", || discord.seen().heartbeats > 1);
    // The token is revoked.
    discord.seen().close = Some(4_004);
    until("the news", || home.run(&["bot", "status"]).out.contains("does not accept its token"));
    discord.is_clean();
}
