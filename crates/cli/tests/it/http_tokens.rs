//! Tokens, and where a host listens.

use crate::http::Http;
use crate::websocket::Line;
use holdfast_harness::{Home, until};
use serde_json::json;

#[test]
fn a_token_opens_what_it_carries_and_no_longer_than_it_lasts() {
    let http = Http::new();
    http.home.session("one", "read x");
    let make = |args: &[&str]| http.home.ok(&[&["--as", "agent:bot", "token", "new"], args].concat()).trim().to_owned();
    let status = |token: &str, method: &str, path: &str| http.ask_as(token, method, path, None).status;
    assert_eq!(status("hf_wrong", "GET", "/sessions"), 401);
    let observe = make(&["--can", "observe"]);
    assert_eq!(status(&observe, "GET", "/sessions/one"), 200);
    let refused = http.ask_as(&observe, "POST", "/sessions/one/input", Some(json!({ "text": "x" })));
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("denied")));
    assert_eq!(refused.body["details"], json!({ "right": "type", "can": "observe" }));
    for (method, path) in [
        ("POST", "/host/stop"),
        ("DELETE", "/sessions/one"),
        ("POST", "/sessions/one/turn/take"),
        ("DELETE", "/tokens/x"),
    ] {
        assert_eq!(status(&observe, method, path), 403, "{method} {path}");
    }
    let short = make(&["--for", "0s"]);
    let ended = http.ask_as(&short, "GET", "/sessions", None);
    assert_eq!((ended.status, &ended.body["message"]), (401, &json!("the token has ended")));
    let listed = http.home.json(&["token", "ls", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 2, "one that has ended is not listed: {listed}");
    let id = listed.as_array().unwrap().iter().find(|token| token["can"] == "observe").unwrap()["id"].clone();
    http.home.ok(&["token", "revoke", id.as_str().unwrap()]);
    assert_eq!(status(&observe, "GET", "/sessions"), 401);
    assert_eq!(http.get("/sessions").status, 200);
    http.home.ok(&["actor", "remove", "agent:bot"]);
    assert_eq!(http.get("/sessions").status, 401, "who is forgotten has no tokens");
}

#[test]
fn a_token_starts_sessions_only_where_it_carries_that_right_and_its_actor_has_it() {
    let http = Http::new();
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let pwned = http.home.join("pwned");
    let command = json!(["/bin/sh", "-c", format!("touch {}", pwned.display())]);
    let started = |token: &str| {
        let new = http.ask_as(token, "POST", "/sessions", Some(json!({ "command": command, "cwd": "/" })));
        let run = json!({ "new": { "command": command, "cwd": "/" } });
        let run = http.ask_as(token, "POST", "/runs", Some(run));
        (new.status, run.status)
    };
    for (actor, can) in [
        ("device:phone", None),
        ("device:phone", Some("observe,run,start")),
        ("service:ci", None),
        ("agent:bot", Some("observe,type,run")),
        ("agent:bot", Some("start")),
    ] {
        let made = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": actor, "can": can })));
        let (new, run) = started(made.body["text"].as_str().unwrap());
        let both = actor == "agent:bot" && can == Some("start");
        assert_eq!((new, run), (if both { 201 } else { 403 }, 403), "{actor} {can:?}");
        assert!(both || !pwned.exists(), "{actor} {can:?}");
    }
    let phone = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "device:phone" })));
    let stop = |token: &str| http.ask_as(token, "POST", "/host/stop", None).status;
    assert_eq!(stop(phone.body["text"].as_str().unwrap()), 403, "nor does it stop the host");
    let made = json!({ "actor": "agent:bot", "can": "run,start" });
    let made = http.ask_as(&human, "POST", "/tokens", Some(made));
    assert_eq!(started(made.body["text"].as_str().unwrap()), (201, 201));
}

#[test]
fn tokens_are_made_for_oneself_or_by_a_human() {
    let http = Http::new();
    let make = |actor: &str| http.post("/tokens", json!({ "actor": actor })).status;
    assert_eq!(make("agent:bot"), 201);
    assert_eq!(make("agent:other"), 403);
    assert_eq!(make("human:tester"), 403);
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let made = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "device:phone", "can": "observe" })));
    assert_eq!(made.status, 201, "{made:?}");
    let phone = made.body["text"].as_str().unwrap();
    assert_eq!(http.ask_as(phone, "GET", "/sessions", None).status, 200);
    assert_eq!(http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "human:eve" }))).status, 403);
    let file =
        std::fs::read_to_string(holdfast_types::Home::under(http.home.path()).state.join("tokens.json")).unwrap();
    assert!(!file.contains(phone) && !file.contains(&human), "texts are not kept");
}

/// A guest that waits for a session's output, by a request and by a connection; what it is told in the end.
fn waiting_guest(http: &Http, end: impl FnOnce(&str)) -> (u16, String) {
    http.home.session("one", "printf ready; read x; echo told-$x; read y");
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let made = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "device:guest", "can": "observe" })));
    let guest = made.body["text"].as_str().unwrap();
    http.home.ok(&["grant", "one", "--to", "device:guest", "--can", "observe"]);
    http.home.until_screen_shows("one", "ready");
    let head = http.get("/sessions/one").body["head"].as_u64().unwrap();
    let mut line = Line::open(http, guest).unwrap();
    line.say("session.read", json!({ "session": "one", "from": head, "wait_ms": 20_000 }), b"");
    let status = std::thread::scope(|scope| {
        let path = format!("/sessions/one/output?from={head}&wait=20");
        let asked = scope.spawn(move || http.ask_as(guest, "GET", &path, None).status);
        until("both to wait", || http.open_requests() >= 3);
        end(made.body["token"]["id"].as_str().unwrap());
        http.home.ok(&["send", "one", "--enter", "secret"]);
        asked.join().unwrap()
    });
    let mut heard = String::new();
    while let Ok(packet) = line.socket.read() {
        match packet {
            tungstenite::Message::Binary(frame) => heard += &String::from_utf8_lossy(&frame),
            tungstenite::Message::Close(_) => heard += "closed",
            _ => continue,
        }
        if heard.contains("closed") || heard.contains("told") || heard.contains("error") {
            break;
        }
    }
    (status, heard)
}

#[test]
fn who_waits_with_a_token_that_is_revoked_is_told_nothing_and_let_go() {
    let http = Http::new();
    let (status, heard) = waiting_guest(&http, |token| drop(http.home.ok(&["token", "revoke", token])));
    assert_eq!((status, heard.as_str()), (401, "closed"));
}

#[test]
fn who_waits_with_a_right_that_is_revoked_is_told_nothing() {
    let http = Http::new();
    let revoke = |_: &str| drop(http.home.ok(&["revoke", "one", "--to", "device:guest"]));
    let (status, heard) = waiting_guest(&http, revoke);
    assert_eq!(status, 403);
    assert!(heard.contains("denied") && !heard.contains("told"), "{heard}");
}

#[test]
fn a_connection_ends_with_its_token() {
    let http = Http::new();
    // On a busy machine a token may have ended before it is shown.
    let open = |seconds: &&str| {
        let token = http.home.ok(&["token", "new", "--for", seconds]);
        Line::open(&http, token.trim()).ok()
    };
    let mut line = ["1s", "3s", "9s"].iter().find_map(open).expect("nine seconds are enough");
    let closed = std::iter::from_fn(|| line.socket.read().ok()).any(|packet| packet.is_close());
    assert!(closed, "it was left to itself");
}

#[test]
fn beyond_this_machine_it_listens_with_tls_or_not_at_all() {
    let home = Home::new();
    let refused = home.run(&["host", "start", "--http", "0.0.0.0:0"]);
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("--tls-cert"), "{refused}");
    let made = rcgen::generate_simple_self_signed(["box.test".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(home.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(home.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let args = ["host", "start", "--http", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--json"];
    let url = home.json(&args)["http"].as_str().unwrap().replace("0.0.0.0", "127.0.0.1");
    let token = home.ok(&["token", "new"]).trim().to_owned();
    let root = ureq::tls::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let roots = ureq::tls::RootCerts::new_with_certs(&[root]);
    let tls = ureq::tls::TlsConfig::builder().root_certs(roots).build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    let ask = agent.get(format!("{url}/v1/host")).header("authorization", format!("Bearer {token}"));
    assert_eq!(ask.call().unwrap().status(), 200);
    let wrong = home.run(&["host", "start", "--http", "0.0.0.0:0", "--tls-cert", "key.pem", "--tls-key", "key.pem"]);
    assert_ne!(wrong.status, 0, "{wrong}");
    assert!(wrong.err.contains("key.pem"), "{wrong}");
    home.ok(&["host", "start", "--no-http"]);
    assert_eq!(home.json(&["host", "status", "--json"])["http"], json!(null));
}

#[test]
fn a_browser_logs_in_once_by_the_link_and_keeps_a_cookie_no_page_but_ours_can_use() {
    let http = Http::new();
    let link = http.home.json(&["web", "--json"])["url"].as_str().unwrap().to_owned();
    let (page, code) = link.split_once("/#code=").unwrap();
    assert_eq!(page, http.url);
    let body = json!({ "code": code }).to_string();
    let ask = |method: &str, path: &str, headers: &str, body: &str| {
        let own =
            format!("Host: {}\r\nContent-Type: application/json\r\nContent-Length: {}", http.address(), body.len());
        http.raw(&format!("{method} {path} HTTP/1.1\r\n{own}\r\n{headers}Connection: close\r\n\r\n{body}"))
    };
    let origin = format!("Origin: {page}\r\nSec-Fetch-Site: same-origin\r\n");
    assert!(ask("POST", "/v1/login", "", &body).starts_with("HTTP/1.1 403"), "a page logs in, nobody else");
    let as_another = |shown: &str| format!(r#"{{{shown}, "as": "human:another"}}"#);
    let links =
        [("human:tester", format!(r#""code": "{code}""#)), ("agent:bot", format!(r#""token": "{}""#, http.token))];
    for (whose, shown) in links {
        let other = ask("POST", "/v1/login", &origin, &as_another(&shown));
        assert!(other.starts_with("HTTP/1.1 403") && !other.contains("set-cookie"), "{other}");
        assert!(other.contains(&format!(r#""details":{{"actor":"{whose}"}}"#)), "{other}");
    }
    let unknown = ask("POST", "/v1/login", &origin, &as_another(r#""code": "0123""#));
    assert!(unknown.starts_with("HTTP/1.1 401"), "{unknown}");
    let body = json!({ "code": code, "as": "human:tester" }).to_string();
    let answer = ask("POST", "/v1/login", &origin, &body);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let half = answer.split_once("\r\n\r\n").unwrap().1;
    let half: serde_json::Value = serde_json::from_str(half).unwrap();
    let half = format!("Authorization: Bearer {}\r\n", half["page"].as_str().unwrap());
    assert!(ask("POST", "/v1/login", &origin, &body).starts_with("HTTP/1.1 401"), "once");
    let me = ask("GET", "/v1/me", &format!("{cookie}{half}"), "");
    assert!(me.starts_with("HTTP/1.1 200") && me.contains("human:tester"), "{me}");
    for alone in [&cookie, &half] {
        assert!(ask("GET", "/v1/me", alone, "").starts_with("HTTP/1.1 401"), "half a token is none: {alone}");
    }
    let tokens = || http.home.json(&["token", "ls", "--json"]).as_array().unwrap().len();
    assert_eq!(tokens(), 2);
    let foreign = format!("{cookie}{half}Origin: http://127.0.0.1:1\r\n");
    assert!(ask("POST", "/v1/host/stop", &foreign, "").starts_with("HTTP/1.1 403"));
    let out = ask("POST", "/v1/logout", &format!("{cookie}{half}{origin}"), "");
    assert!(out.starts_with("HTTP/1.1 200") && out.contains("Max-Age=0"), "{out}");
    until("the browser's token to go", || tokens() == 1);
    let lent = json!({ "token": http.token }).to_string();
    let answer = ask("POST", "/v1/login", &origin, &lent);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().split(';').next().unwrap();
    let half: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let lent = format!("Cookie: {cookie}\r\nAuthorization: Bearer {}\r\n", half["page"].as_str().unwrap());
    assert!(ask("POST", "/v1/logout", &format!("{lent}{origin}"), "").starts_with("HTTP/1.1 200"));
    assert!(ask("GET", "/v1/me", &lent, "").starts_with("HTTP/1.1 200"), "what was lent by a link stays good");
    let page = ask("GET", "/", "", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"), "{page}");
}

#[test]
fn another_device_is_given_an_address_it_reaches_or_told_why_there_is_none() {
    let http = Http::new();
    let refused = http.home.run(&["web", "--phone"]);
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.err.contains("no other device can reach") && refused.err.contains("--tls-cert"), "{refused}");
    let listen = |more: &[&str]| {
        let args = ["host", "start", "--http", "0.0.0.0:0", "--insecure-listen"];
        http.home.ok(&[&args, more].concat());
        http.home.run(&["web", "--phone"])
    };
    let named = listen(&["--name", "box.example"]);
    assert!(named.out.starts_with("http://box.example:") && named.out.contains("/#code="), "{named}");
    // Away from here it needs a relay; the shell comes from here all the same.
    let alone = http.home.run(&["web", "--phone", "--away"]);
    assert!(alone.status == 1 && alone.err.contains("relay add"), "{alone}");
    http.home.run(&["relay", "add", "http://127.0.0.1:1"]);
    let away = http.home.ok(&["web", "--phone", "--away"]);
    assert!(away.starts_with("http://box.example:") && away.contains("/i#A"), "{away}");
    let invites = http.home.ok(&["invites", "ls"]);
    assert!(invites.contains("open"), "{invites}");
    let other = listen(&[]);
    if other.status != 0 {
        // A machine without a way out.
        return assert!(other.err.contains("--name"), "{other}");
    }
    let host = other.out.split_once("//").and_then(|(_, rest)| rest.split_once(':')).unwrap().0;
    let ip: std::net::IpAddr = host.parse().unwrap_or_else(|_| panic!("{other}"));
    assert!(!ip.is_loopback() && !ip.is_unspecified(), "{other}");
}
