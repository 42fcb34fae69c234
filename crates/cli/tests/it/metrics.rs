//! The counters over HTTP, as Prometheus fetches them.

use holdfast_harness::{Home, until};

#[test]
fn prometheus_fetches_the_counters_from_a_port_of_its_own() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "metrics_listen = \"127.0.0.1:0\"\n").unwrap();
    home.session("work", "cat");
    let mut url = String::new();
    until("the port", || {
        let log = std::fs::read_to_string(home.join("host.log")).unwrap();
        let found = log.lines().find_map(|line| Some(line.split_once("serves counters at ")?.1.to_owned()));
        url = found.unwrap_or_default();
        !url.is_empty()
    });
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(&url).call().unwrap();
    assert_eq!(answer.headers()["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.body_mut().read_to_string().unwrap();
    let has = |line: &str| text.lines().any(|one| one == line);
    assert!(has(r#"holdfast_sessions{life="running"} 1"#) && has("holdfast_attaches_total 0"), "{text}");
    assert!(has(&format!(r#"holdfast_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert_eq!(agent.post(&url).send_empty().unwrap().status(), 405);
    assert_eq!(agent.get(url.replace("/metrics", "/v1/sessions")).call().unwrap().status(), 404);
    // A page of a stranger whose name points here reads nothing.
    let asked = |host: &str| agent.get(&url).header("host", host).call().unwrap().status();
    assert_eq!(asked("rebound.example"), 403);
    assert_eq!(asked("localhost"), 200);
    let foreign = agent.get(&url).header("origin", "http://rebound.example").call().unwrap();
    assert_eq!(foreign.status(), 403);
}
