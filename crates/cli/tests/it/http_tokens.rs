//! Tokens, and where a host listens.

use crate::home::Home;
use crate::http::Http;
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
