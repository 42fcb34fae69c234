//! Output that is pushed as far as it is granted, and input of which much is under way.

use crate::http::Http;
use crate::websocket::Line;
use holdfast_harness::{Home, kill, until};
use serde_json::{Value, json};

/// Waits for a key, then prints these numbers, each on a line that ends as it is.
fn counts(http: &Http, upto: u32, ring_bytes: u64) -> String {
    let script = format!("stty -onlcr -echo; echo ready; read go; seq 1 {upto}; echo the end; read go");
    let new = json!({ "name": "one", "command": ["/bin/sh", "-c", script], "cwd": "/", "ring_bytes": ring_bytes });
    assert!(http.post("/sessions", new).status < 300);
    http.home.until_screen_shows("one", "ready");
    let numbers: String = (1..=upto).map(|n| format!("{n}\n")).collect();
    format!("ready\n{numbers}the end\n")
}

/// What is pushed, compared with what was printed: the gaps, and where it stands in the end.
struct Pushed<'a> {
    printed: &'a str,
    at: u64,
    bytes: u64,
    gaps: Vec<(u64, u64)>,
}

impl<'a> Pushed<'a> {
    fn new(printed: &'a str) -> Pushed<'a> {
        Pushed { printed, at: 0, bytes: 0, gaps: Vec::new() }
    }

    fn take(&mut self, event: &Value, bytes: &[u8]) {
        assert_eq!((&event["method"], &event["params"]["follow"]), (&json!("output"), &json!(7)), "{event}");
        let told = &event["params"];
        if let Some(gap) = told.get("gap") {
            assert_eq!(gap["from"], self.at, "{told}");
            self.at = gap["to"].as_u64().unwrap();
            self.gaps.push((gap["from"].as_u64().unwrap(), self.at));
        }
        assert_eq!(told["from"], self.at, "each byte once and in order: {told}");
        let to = self.at + bytes.len() as u64;
        assert_eq!(told["to"], to, "{told}");
        assert!(self.printed.as_bytes()[self.at as usize..to as usize] == *bytes, "from {} to {to}", self.at);
        self.bytes += bytes.len() as u64;
        self.at = to;
    }

    /// Reads events until this many bytes have come, or all.
    fn read(&mut self, line: &mut Line, bytes: u64) {
        while self.bytes < bytes && self.at < self.printed.len() as u64 {
            let (event, bytes) = line.next();
            if event.get("id").is_none() {
                self.take(&event, &bytes);
            }
        }
    }
}

fn follow(line: &mut Line, from: u64, credit: u64) {
    // What is pushed may come before the answer.
    line.say("session.follow", json!({ "session": "one", "follow": 7, "from": from, "credit": credit }), b"");
}

#[test]
fn output_is_pushed_byte_by_byte_and_no_further_than_it_is_granted() {
    let http = Http::new();
    let printed = counts(&http, 60_000, 1 << 20);
    let mut line = Line::open(&http, &http.token).unwrap();
    let mut pushed = Pushed::new(&printed);
    follow(&mut line, 0, 0);
    http.home.ok(&["send", "one", "--enter", "x"]);
    http.home.until_screen_shows("one", "the end");
    let (mut granted, mut step) = (0, 1);
    while pushed.at < printed.len() as u64 {
        line.say("session.credit", json!({ "follow": 7, "bytes": step }), b"");
        granted += step;
        pushed.read(&mut line, granted);
        assert!(pushed.bytes <= granted, "{} of {granted}", pushed.bytes);
        step *= 3;
    }
    assert_eq!((pushed.gaps.len(), pushed.bytes), (0, printed.len() as u64));
    assert_eq!(line.ask("session.unfollow", json!({ "follow": 7 }), b"").0, json!({}));
    let (refused, _) = line.ask("session.credit", json!({ "follow": 7, "bytes": 1 }), b"");
    assert_eq!(refused["data"]["code"], "not_found", "{refused}");
}

#[test]
fn who_reads_slowly_is_told_what_it_missed_and_costs_the_host_no_memory() {
    let http = Http::new();
    let printed = counts(&http, 1_500_000, 128 * 1024);
    // One that grants little, and one that grants all there is and reads nothing.
    let mut thrifty = Line::open(&http, &http.token).unwrap();
    follow(&mut thrifty, 0, 1000);
    let mut stuck = Line::open(&http, &http.token).unwrap();
    follow(&mut stuck, 0, u64::from(u32::MAX));
    let before = http.peak_kib();
    http.home.ok(&["send", "one", "--enter", "x"]);
    // Without carriage returns the lines run across the screen, and where nothing was skipped the first letter ends a row.
    http.home.until_screen_shows("one", "he end");
    assert!(http.peak_kib() < before + 16 * 1024, "{} KiB, before {before}", http.peak_kib());
    for line in [&mut thrifty, &mut stuck] {
        line.say("session.credit", json!({ "follow": 7, "bytes": u32::MAX }), b"");
        let mut pushed = Pushed::new(&printed);
        pushed.read(line, u64::MAX);
        assert!(!pushed.gaps.is_empty(), "{} of {}", pushed.bytes, printed.len());
    }
}

#[test]
fn who_may_no_longer_observe_is_told_so_and_nothing_else() {
    let http = Http::new();
    http.home.session("one", "stty -echo; printf ready; read x; echo told; read y");
    let human = http.home.ok(&["token", "new"]).trim().to_owned();
    let made = http.ask_as(&human, "POST", "/tokens", Some(json!({ "actor": "device:guest", "can": "observe" })));
    http.home.ok(&["grant", "one", "--to", "device:guest", "--can", "observe"]);
    http.home.until_screen_shows("one", "ready");
    let mut line = Line::open(&http, made.body["text"].as_str().unwrap()).unwrap();
    follow(&mut line, 0, 1 << 20);
    Pushed::new("ready").read(&mut line, u64::MAX);
    http.home.ok(&["revoke", "one", "--to", "device:guest"]);
    http.home.ok(&["send", "one", "--enter", "x"]);
    let (event, bytes) =
        std::iter::repeat_with(|| line.next()).find(|(message, _)| message.get("id").is_none()).unwrap();
    assert_eq!((&event["params"]["fault"]["code"], bytes.as_slice()), (&json!("denied"), &b""[..]), "{event}");
}

#[test]
fn another_size_and_the_end_are_pushed_too() {
    let http = Http::new();
    http.home.session("one", "read go");
    let mut line = Line::open(&http, &http.token).unwrap();
    follow(&mut line, 0, 1 << 20);
    line.ask("session.get", json!({ "session": "one" }), b"");
    http.home.ok(&["resize", "one", "90x30"]);
    assert_eq!(line.next().0["params"]["size"], "90x30");
    http.home.ok(&["send", "one", "--enter", ""]);
    let mut pushed = Pushed::new("\r\n");
    let end = loop {
        let (event, bytes) = line.next();
        pushed.take(&event, &bytes);
        if event["params"]["end"] == true {
            break event;
        }
    };
    assert_eq!((pushed.at, &end["params"]["to"]), (2, &json!(2)), "{end}");
}

/// A session that writes what it reads into a file.
fn recorder(home: &Home, bytes: usize) {
    home.session("one", &format!("stty raw -echo; echo ready; head -c {bytes} >got; exec cat >more"));
    home.until_screen_shows("one", "ready");
}

fn send(line: &mut Line, seq: u64, bytes: &str, more: &Value) -> u64 {
    let mut params = json!({ "session": "one", "stream": 77, "seq": seq, "in_order": true });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line.say("session.send", params, bytes.as_bytes())
}

/// What each of these questions was answered with: nothing, or the code of a refusal. The answers come in any order.
fn codes(line: &mut Line, ids: &[u64]) -> Vec<Option<String>> {
    let mut codes = vec![None; ids.len()];
    let mut left = ids.len();
    while left > 0 {
        let (message, _) = line.next();
        let Some(at) = ids.iter().position(|id| message["id"] == *id) else { continue };
        codes[at] = message["error"]["data"]["code"].as_str().map(str::to_owned);
        left -= 1;
    }
    codes
}

#[test]
fn what_is_sent_behind_a_refusal_is_refused_and_typed_in_order_when_it_is_sent_again() {
    let http = Http::new();
    recorder(&http.home, 6);
    let mut line = Line::open(&http, &http.token).unwrap();
    let plain = json!({});
    let stale = json!({ "fence": 1_000_000 });
    let how = [&plain, &plain, &stale, &plain, &plain, &plain];
    let ids: Vec<u64> = (1..=6).zip(how).map(|(seq, how)| send(&mut line, seq, &seq.to_string(), how)).collect();
    let stale = || Some("fence_stale".to_owned());
    assert_eq!(codes(&mut line, &ids), [None, None, stale(), stale(), stale(), stale()]);
    let ids: Vec<u64> = (3..=6).map(|seq| send(&mut line, seq, &seq.to_string(), &plain)).collect();
    assert_eq!(codes(&mut line, &ids), [None, None, None, None]);
    until("all of it", || std::fs::read(http.home.join("got")).is_ok_and(|got| got == b"123456"));
}

#[test]
fn two_hundred_messages_under_way_are_typed_once_and_in_order_though_the_host_is_killed() {
    let http = Http::new();
    let port = http.address().rsplit_once(':').unwrap().1.to_owned();
    http.home.ok(&["host", "start", "--http", &port]);
    let wanted: Vec<String> = (1..=200).map(|n| format!("<{n}>")).collect();
    recorder(&http.home, wanted.concat().len());
    let (mut answered, mut hosts) = (0, 0);
    while answered < wanted.len() {
        let mut line = None;
        until("a host", || {
            line = Line::open(&http, &http.token).ok();
            line.is_some()
        });
        let mut line = line.unwrap();
        let host = http.home.host_pid();
        hosts += 1;
        // Everything that was not answered, one behind the other and without waiting.
        let first = answered;
        for (n, text) in wanted.iter().enumerate().skip(first) {
            send(&mut line, n as u64 + 1, text, &json!({}));
        }
        // Killed with most of it on its way, three times.
        let stop = if hosts <= 3 { first + 40 } else { wanted.len() };
        while answered < stop {
            let (message, _) = line.next();
            assert!(message.get("error").is_none(), "{message}");
            answered += 1;
            assert_eq!(message["id"], answered - first, "in the order they were sent");
        }
        if hosts <= 3 {
            kill(host);
        }
    }
    assert_eq!(hosts, 4);
    until("all of it", || std::fs::read_to_string(http.home.join("got")).is_ok_and(|got| got == wanted.concat()));
}
