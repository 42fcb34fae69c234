//! What is made with a token, or given through it, ends with it.

use crate::http::Http;
use crate::websocket::Line;
use holdfast_harness::{settle, until};
use serde_json::{Value, json};

const AGES_MS: u64 = 1 << 50;

/// A human's token, its id, and when it ends.
fn human(http: &Http) -> (String, String, u64) {
    let made = http.home.json(&["token", "new", "--for", "1h", "--json"]);
    let token = &made["token"];
    (text(&made["text"]), text(&token["id"]), token["until_ms"].as_u64().unwrap())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// The actor of a handle, as a grant names it.
fn actor(http: &Http, handle: &str) -> Value {
    let all = http.home.json(&["actor", "ls", "--json"]);
    let found = all.as_array().unwrap().iter().find(|known| known["actor"]["handle"] == handle);
    found.unwrap_or_else(|| panic!("{all}"))["actor"].clone()
}

fn grants(http: &Http, session: &str) -> Vec<Value> {
    let all = http.home.json(&["grants", session, "--json"])["grants"].as_array().unwrap().clone();
    all.into_iter().filter(|grant| !grant["by"].is_null()).collect()
}

fn grant(http: &Http, token: &str, session: &str, to: &str, more: Value) -> Value {
    let mut body = json!({ "to": actor(http, to), "rights": "observe" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = http.ask_as(token, "POST", &format!("/sessions/{session}/grants"), Some(body));
    assert_eq!(made.status, 200, "{made:?}");
    made.body
}

fn login(http: &Http, code: &str) -> String {
    let body = json!({ "code": code }).to_string();
    let head = format!("Host: {}\r\nContent-Type: application/json\r\nOrigin: {}", http.address(), http.url);
    let length = body.len();
    http.raw(&format!(
        "POST /v1/login HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

/// What a browser shows that was let in so.
fn browser(answer: &str) -> String {
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().split(';').next().unwrap();
    let page: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    format!("Cookie: {cookie}\r\nAuthorization: Bearer {}", text(&page["page"]))
}

#[test]
fn what_a_token_makes_and_gives_ends_with_it_and_not_later() {
    let http = Http::new();
    http.home.session("one", "read x");
    http.home.session("over", "true");
    until("its end", || http.home.json(&["info", "over", "--json"])["life"] == "ended");
    let (token, id, until_ms) = human(&http);
    let make = |token: &str, actor: &str| {
        let made = http.ask_as(token, "POST", "/tokens", Some(json!({ "actor": actor, "for_ms": AGES_MS })));
        assert_eq!(made.status, 201, "{made:?}");
        made.body
    };
    let child = make(&token, "device:phone");
    let phone = text(&child["text"]);
    let twin = make(&token, "human:tester");
    let grandchild = make(&text(&twin["text"]), "service:ci");
    for made in [&child, &twin, &grandchild] {
        assert!(made["token"]["until_ms"].as_u64().unwrap() <= until_ms, "{made}");
    }
    // As far as is asked for, and where nothing is said.
    for more in [json!({ "until_ms": AGES_MS }), json!({})] {
        let made = grant(&http, &token, "one", "device:phone", more);
        assert!(made["until_ms"].as_u64().is_some_and(|until| until <= until_ms), "{made}");
    }
    grant(&http, &text(&twin["text"]), "one", "device:phone", json!({}));
    grant(&http, &token, "over", "device:phone", json!({}));
    http.home.ok(&["grant", "one", "--to", "device:phone", "--can", "observe"]);
    let code = || text(&http.ask_as(&token, "POST", "/logins", None).body["code"]);
    let (used, unused) = (code(), code());
    let browser = browser(&login(&http, &used));
    let me = |shown: &str| http.status_of(&format!("GET /v1/me HTTP/1.1\r\nHost: {}\r\n{shown}", http.address()));
    assert_eq!(me(&browser), "200");
    let status = |token: &str| http.ask_as(token, "GET", "/me", None).status;
    assert_eq!((status(&phone), grants(&http, "one").len(), grants(&http, "over").len()), (200, 4, 1));
    let mut line = Line::open(&http, &phone).unwrap();

    http.home.ok(&["token", "revoke", &id]);
    for made in [&child, &twin, &grandchild] {
        assert_eq!(status(&text(&made["text"])), 401, "{made}");
    }
    assert_eq!(me(&browser), "401");
    assert!(login(&http, &unused).starts_with("HTTP/1.1 401"));
    assert!(std::iter::from_fn(|| line.socket.read().ok()).any(|packet| packet.is_close()), "it was left to itself");
    let left = grants(&http, "one");
    assert_eq!((left.len(), &left[0]["until_ms"]), (1, &Value::Null), "what was given with a key stays: {left:?}");
    assert_eq!(grants(&http, "over").len(), 0);
    let journal = http.home.ok(&["journal", "one"]);
    assert!(journal.contains("ended with the token"), "{journal}");
    http.home.ok(&["journal", "one", "--verify"]);
    // And so it is for the next host.
    http.home.kill_host();
    assert_eq!(
        (grants(&http, "one").len(), http.home.json(&["token", "ls", "--json"]).as_array().unwrap().len()),
        (1, 1)
    );
}

#[test]
fn grants_of_tokens_that_ended_while_there_was_no_host_fall_when_one_starts() {
    let http = Http::new();
    http.home.session("one", "read x");
    let (token, ..) = human(&http);
    http.ask_as(&token, "POST", "/tokens", Some(json!({ "actor": "device:phone" })));
    grant(&http, &token, "one", "device:phone", json!({}));
    http.home.kill_host();
    std::fs::remove_file(http.home.places().state.join("tokens.json")).unwrap();
    assert_eq!(grants(&http, "one").len(), 0);
}

#[test]
fn tokens_made_with_the_token_of_a_forgotten_actor_are_good_no_more() {
    let http = Http::new();
    http.home.session("one", "read x");
    settle(http.home.path(), "human:eve");
    let eve = http.home.ok(&["--as", "human:eve", "token", "new"]).trim().to_owned();
    let made = http.ask_as(&eve, "POST", "/tokens", Some(json!({ "actor": "human:eve" })));
    let made = http.ask_as(&text(&made.body["text"]), "POST", "/tokens", Some(json!({ "actor": "device:phone" })));
    let phone = text(&made.body["text"]);
    let status = || http.ask_as(&phone, "GET", "/me", None).status;
    assert_eq!(status(), 200);
    http.home.ok(&["actor", "remove", "human:eve"]);
    assert_eq!(status(), 401);
}

#[test]
fn who_waits_for_a_run_with_a_token_that_is_revoked_is_not_told_its_output() {
    let http = Http::new();
    let made = http.home.json(&["--as", "agent:runner", "token", "new", "--json"]);
    let (token, id) = (text(&made["text"]), text(&made["token"]["id"]));
    let gate = http.home.join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; echo secret", gate.display());
    let body = json!({ "new": { "command": ["sh", "-c", script], "cwd": "/", "name": "gated" }, "wait_ms": 20_000 });
    let said = std::thread::scope(|scope| {
        let asked = scope.spawn(|| http.ask_as(&token, "POST", "/runs", Some(body)));
        until("it to run", || http.home.run(&["info", "gated"]).status == 0);
        http.home.ok(&["token", "revoke", &id]);
        std::fs::write(&gate, "").unwrap();
        asked.join().unwrap()
    });
    assert_eq!((said.status, said.body.to_string().contains("secret")), (401, false), "{said:?}");
}
