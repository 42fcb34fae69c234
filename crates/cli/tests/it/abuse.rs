//! What clients over HTTP can make expensive holds up nobody else.

use crate::http::Http;
use crate::killed::{initialize, tell};
use serde_json::json;

fn waits(http: &Http, protocol: &str, id: u64, pattern: &str) -> serde_json::Value {
    let arguments = json!({ "session": "work", "until": format!("text:{pattern}"), "from": 0 });
    let params = json!({ "name": "wait", "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    tell(http, Some(protocol), &message).unwrap().2
}

#[test]
fn a_search_that_takes_long_delays_neither_a_seizure_nor_another_request() {
    let http = Http::new();
    http.home.session("work", "echo needle; exec cat");
    http.home.until_screen_shows("work", "needle");
    let protocol = initialize(&http).unwrap();
    let search = http.home.pause("search");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waits(&http, &protocol, 2, "needle"));
        let held = search.reached();
        http.home.ok(&["seize", "work", "--reason", "while a search is on"]);
        assert_eq!(http.get("/sessions/work").status, 200);
        drop(held);
        let told = waiting.join().unwrap();
        assert_eq!(told["result"]["structuredContent"]["found"]["text"], "needle", "{told}");
    });
}

#[test]
fn a_pattern_that_would_take_too_long_is_refused() {
    let http = Http::new();
    http.home.session("work", "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; exec cat");
    let protocol = initialize(&http).unwrap();
    // It fits into the bytes of a pattern, and its program would be a hundred times as large.
    let told = waits(&http, &protocol, 2, "(?:a?){9000}a{9000}b");
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert_eq!(told["result"]["structuredContent"]["error"]["code"], "bad_request", "{told}");
}
