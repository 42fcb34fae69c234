//! `journal` and `export`: who did what, whether the record of it was changed, and a recording of it.

use holdfast_harness::{Home, Ran, settle, until};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

/// A session in which a human and an agent acted, and which has ended with status 3.
fn worked(home: &Home) {
    let script = "stty -echo; echo ready; while read line; do echo \"got $line\"; [ \"$line\" = bye ] && exit 3; done";
    settle(home.path(), "human:ann");
    home.ok(&["--as", "human:ann", "new", "-d", "-n", "work", "--size", "90x30", "--", "/bin/sh", "-c", script]);
    home.until_screen_shows("work", "ready");
    home.ok(&["--as", "agent:claude", "send", "work", "--enter", "hello"]);
    home.until_screen_shows("work", "got hello");
    assert_ne!(home.run(&["--as", "agent:claude", "end", "work"]).status, 0, "an agent may not end it");
    home.ok(&["--as", "human:ann", "seize", "work", "--reason", "it loops"]);
    home.ok(&["--as", "human:ann", "resize", "work", "100x40"]);
    home.ok(&["--as", "human:ann", "send", "work", "--enter", "bye"]);
    assert_eq!(home.run(&["wait", "work"]).status, 3);
}

fn journal(home: &Home, args: &[&str]) -> Ran {
    let mut command = home.command(&[&["journal"], args].concat());
    command.env("TZ", "UTC").output().expect("the program can be started").into()
}

/// What was done by whom, without the times.
fn acts(out: &str) -> Vec<String> {
    let lines = out.lines().filter(|line| line.get(2..3) == Some(":"));
    lines.map(|line| line[8..].split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Copies of the journal's files.
fn copies(home: &Home) -> Vec<PathBuf> {
    let id = home.json(&["info", "work"])["id"].as_str().expect("an id").to_owned();
    let dir = holdfast_types::Home::under(home.path()).sessions().join(id);
    let all = std::fs::read_dir(dir).expect("the session's directory").flatten();
    let is_journal =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal."));
    let copy = |path: PathBuf| {
        let copy = home.join(&format!("copy-{}", path.file_name().unwrap().to_string_lossy()));
        std::fs::copy(&path, &copy).expect("the copy");
        copy
    };
    let copies: Vec<PathBuf> = all.map(|entry| entry.path()).filter(is_journal).map(copy).collect();
    assert!(!copies.is_empty(), "there are journal files");
    copies
}

#[test]
fn the_journal_says_who_did_what_also_when_the_session_has_ended() {
    let home = Home::new();
    worked(&home);
    let ran = journal(&home, &["work"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran}");
    let told = acts(&ran.out);
    for act in [
        "human:ann started the session",
        "agent:claude was refused: end (this needs the right `end`)",
        "human:ann seized the turn from agent:claude: it loops",
        "human:ann resized the terminal to 100x40",
        "host the session ended (exited 3)",
    ] {
        assert!(told.iter().any(|line| line == act), "{act}: {told:#?}");
    }
    let typed = |who: &str| told.iter().any(|line| line.starts_with(&format!("{who} typed ")));
    assert!(typed("agent:claude") && typed("human:ann"), "{told:#?}");
    let of_ann = acts(&journal(&home, &["work", "--actor", "human:ann"]).out);
    assert!(!of_ann.is_empty() && of_ann.iter().all(|line| line.starts_with("human:ann ")), "{of_ann:?}");
    assert_eq!(acts(&journal(&home, &["work", "--actor", "human"]).out), of_ann);
    assert_eq!(acts(&journal(&home, &["work", "-n", "2"]).out), told[told.len() - 2..]);
    assert_eq!(acts(&journal(&home, &["work", "--since", "1h"]).out), told);
    assert_eq!(journal(&home, &["work", "--since", "2100-01-01T00:00:00Z"]).out, "");
    let followed = journal(&home, &["work", "--follow"]);
    assert_eq!((followed.status, followed.out), (0, ran.out), "it ends with the session");
}

#[test]
fn json_is_the_lines_as_they_were_written() {
    let home = Home::new();
    worked(&home);
    let out = home.ok(&["--json", "journal", "work"]);
    let on_disk: String = copies(&home).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert_eq!(out, on_disk);
    let seqs: Vec<u64> =
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).collect();
    assert!(seqs.len() > 5 && seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
}

#[test]
fn a_journal_is_read_from_its_end() {
    use holdfast_wire::operations::op;
    use holdfast_wire::turns::JournalParams;
    let home = Home::new();
    worked(&home);
    home.session("live", "cat");
    let place = holdfast_types::Home::under(home.path());
    let who = holdfast_client::Identity::load_or_make(&place, &holdfast_harness::TESTER.parse().unwrap()).unwrap();
    let mut link = holdfast_client::connect(&place, &who).unwrap();
    let newest = home.ok(&["--json", "journal", "work"]).lines().count() as u64;
    assert!(newest > 5);
    // Behind what, how many, and where that begins.
    let cases = [
        (0, None, 1),
        (0, Some(1), newest),
        (0, Some(3), newest - 2),
        (newest - 2, Some(3), newest - 1),
        (newest - 3, Some(2), newest - 1),
        (0, Some(newest), 1),
        (0, Some(u64::MAX), 1),
        (0, Some(0), newest + 1),
        (u64::MAX, Some(3), newest + 1),
    ];
    for (after, last, from) in cases {
        let params = JournalParams { session: "work".into(), after, last, wait_ms: 0 };
        let (answer, bytes) = link.call_with_bytes::<op::Journal>(&params, &[]).unwrap();
        assert_eq!((answer.from, answer.to, answer.more, answer.end), (from, newest, false, true), "{params:?}");
        let lines = String::from_utf8(bytes).unwrap();
        let seqs = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap());
        assert!(seqs.eq(from..=newest), "{params:?}: {lines}");
    }
    // None of those that are there: the next one is waited for.
    let params = JournalParams { session: "live".into(), after: 0, last: Some(0), wait_ms: 20_000 };
    let there = home.ok(&["--json", "journal", "live"]).lines().count() as u64;
    let asker = std::thread::spawn(move || link.call_with_bytes::<op::Journal>(&params, &[]).unwrap());
    until("the answer", || {
        home.ok(&["send", "live", "--enter", "x"]);
        asker.is_finished()
    });
    let (answer, bytes) = asker.join().unwrap();
    assert!(answer.from > there && !bytes.is_empty(), "{answer:?} behind {there}");
}

#[test]
fn a_follower_sees_acts_as_they_happen() {
    let home = Home::new();
    settle(home.path(), "human:ann");
    home.session("work", "cat");
    let mut command = home.command(&["--json", "journal", "work", "--follow", "--actor", "agent:kit"]);
    let follower = command.stdout(Stdio::piped()).spawn().unwrap();
    home.ok(&["--as", "agent:kit", "send", "work", "--enter", "hi"]);
    home.ok(&["--as", "human:ann", "end", "work", "--grace", "0"]);
    let ran: Ran = follower.wait_with_output().unwrap().into();
    assert_eq!(ran.status, 0, "{ran}");
    assert!(ran.out.contains(r#""keys":"hi\r""#), "{ran}");
    assert!(!ran.out.contains(r#""handle":"human:ann"},"#), "{ran}");
}

#[test]
fn a_sound_journal_verifies_with_and_without_its_host_and_a_changed_copy_does_not() {
    let home = Home::new();
    worked(&home);
    let sound = home.json(&["journal", "work", "--verify"]);
    assert!(sound["records"].as_u64().unwrap() > 5 && sound["signed"].as_u64().unwrap() >= 2, "{sound}");
    let last = format!("{}:{}", sound["last"]["seq"], sound["last"]["hash"].as_str().unwrap());
    home.ok(&["journal", "work", "--verify", "--last", &last]);
    let copies = copies(&home);
    home.ok(&["host", "stop"]);
    let files: Vec<&str> = copies.iter().map(|path| path.to_str().unwrap()).collect();
    let verify = |more: &[&str]| home.run(&[&["journal", "--verify"], more, &["--file"], &files].concat());
    let ran = verify(&["--last", &last]);
    assert_eq!(ran.status, 0, "{ran}");
    assert!(ran.out.contains(&last) && !ran.out.contains("not known here"), "{ran}");
    assert_eq!(home.run(&["host", "status"]).status, 1, "no host was started");
    let told = acts(&home.ok(&[&["journal", "--file"], files.as_slice()].concat()));
    assert!(told.iter().any(|line| line == "human:ann started the session"), "{told:?}");

    let newest = copies.last().unwrap();
    let text = std::fs::read_to_string(newest).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let n = lines.iter().position(|line| line.contains("it loops")).expect("the seize");
    let joined = |lines: &[&str]| lines.concat();
    let damaged = [
        ("altered", text.replace("it loops", "it looks")),
        ("altered", text.replacen("agent:claude", "agent:clauda", 1)),
        ("missing", joined(&[&lines[..n], &lines[n + 1..]].concat())),
        ("out of order", joined(&[&lines[..n], &[lines[1]], &lines[n..]].concat())),
        ("missing", joined(&[&lines[..n], &[lines[n + 1], lines[n]], &lines[n + 2..]].concat())),
        ("cut off", joined(&lines[..lines.len() - 1])),
    ];
    for (what, bytes) in damaged {
        std::fs::write(newest, bytes).unwrap();
        let ran = verify(&["--last", &last]);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{what}: {ran}");
        assert!(ran.err.contains(what), "{what}: {ran}");
    }
}

#[test]
fn a_journal_of_many_segments_verifies_as_one_and_a_missing_segment_is_found() {
    let home = Home::new();
    home.session("work", "stty raw; echo ready; exec cat > /dev/null");
    home.until_screen_shows("work", "ready");
    // What was typed is in the journal, so this is more than two segments of 256 KiB.
    let ran = home.run_with_input(&["send", "work", "--stdin"], "x".repeat(700_000).as_bytes());
    assert_eq!(ran.status, 0, "{ran}");
    home.ok(&["end", "work", "--grace", "0"]);
    let whole = home.json(&["journal", "work", "--verify"]);
    let mut copies = copies(&home);
    assert!(copies.len() > 2, "{copies:?}");
    copies.sort();
    // In any order; without the oldest it is not whole.
    copies.reverse();
    let verify = |files: &[PathBuf]| {
        let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
        home.run(&[&["--json", "journal", "--verify", "--file"], files.as_slice()].concat())
    };
    let all: Value = serde_json::from_str(&verify(&copies).out).unwrap();
    assert_eq!((&all["records"], &all["last"]), (&whole["records"], &whole["last"]));
    let later = verify(&copies[..2]);
    assert!(later.status == 1 && later.err.contains("records 1 to ") && later.err.contains("are missing"), "{later}");
    let ran = verify(&[copies[0].clone(), copies[2].clone()]);
    assert_eq!(ran.status, 1, "{ran}");
    assert!(ran.err.contains("does not carry on the one before"), "{ran}");
}

#[test]
fn an_offset_leads_to_the_act_before_it_and_to_the_holder_of_the_turn() {
    let home = Home::new();
    worked(&home);
    let output = home.ok(&["logs", "work"]);
    let offset = |text: &str| output.find(text).expect("in the output").to_string();
    let who = |at: &str| {
        let document = home.json(&["journal", "work", "--at", at]);
        assert_eq!(document["record"]["by"]["actor"]["handle"], document["holder"], "{document}");
        document["holder"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(who(&offset("got hello")), "agent:claude");
    assert_eq!(who(&offset("got bye")), "human:ann");
    let ran = home.run(&["journal", "work", "--at", &offset("got bye")]);
    assert!(ran.out.contains("human:ann  typed ") && ran.out.contains("turn    human:ann"), "{ran}");
    let before = home.run(&["journal", "work", "--at", "0"]);
    assert_eq!((before.status, before.err.as_str()), (1, "holdfast: no act before offset 0\n"));
    let ahead = home.run(&["journal", "work", "--at", "999999"]);
    assert_eq!(ahead.status, 1);
    assert!(ahead.err.contains("the output ends at offset"), "{ahead}");
}

/// One event of a recording, in the strictest reading of its format.
fn event(line: &str) -> (f64, String, String) {
    let event: (f64, String, String) = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    assert!(event.0 >= 0.0 && event.0.is_finite(), "{line}");
    match event.1.as_str() {
        "o" | "i" | "m" => {}
        "r" => {
            assert!(event.2.split_once('x').is_some_and(|(c, r)| c.parse::<u16>().is_ok() && r.parse::<u16>().is_ok()))
        }
        "x" => assert!(event.2.parse::<u8>().is_ok(), "{line}"),
        other => panic!("code {other}"),
    }
    event
}

#[test]
fn an_exported_recording_has_all_output_and_a_marker_with_the_actor_for_each_act() {
    let home = Home::new();
    worked(&home);
    let path = home.join("work.cast");
    let file = path.to_str().unwrap();
    let said = home.ok(&["export", "work", "--asciicast", "--input", "--idle-limit", "0.5", "-o", file]);
    assert!(said.starts_with("wrote "), "{said}");
    let text = std::fs::read_to_string(&path).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let header: Value = serde_json::from_str(header).unwrap();
    assert_eq!(header["version"], 3);
    assert!(header["term"]["cols"].is_u64() && header["timestamp"].is_u64(), "{header}");
    let events: Vec<_> = rest.lines().filter(|line| !line.starts_with('#')).map(event).collect();
    let of =
        |code: &str| events.iter().filter(|event| event.1 == code).map(|event| event.2.as_str()).collect::<Vec<_>>();
    assert_eq!(of("o").concat(), home.ok(&["logs", "work"]));
    assert!(of("m").contains(&"human:ann: seized the turn from agent:claude: it loops"), "{:?}", of("m"));
    assert!(of("m").iter().any(|marker| marker.starts_with("agent:claude: typed ")), "{:?}", of("m"));
    assert_eq!((of("r"), of("x")), (vec!["100x40"], vec!["3"]));
    assert!(events.iter().all(|event| event.0 <= 0.5), "no pause is longer");
    let place = |wanted: &str| events.iter().position(|event| event.2.contains(wanted)).expect(wanted);
    assert!(place("agent:claude: typed ") < place("got hello") && place("got hello") < place("it loops"), "{events:?}");
    assert_eq!(home.ok(&["export", "work", "--asciicast", "--input", "--idle-limit", "0.5"]), text);
    assert_eq!(home.run(&["export", "work"]).status, 2, "the format is asked for");
}

#[test]
fn a_recording_of_a_lapped_ring_says_what_is_missing() {
    let home = Home::new();
    let flood = "i=0; while [ $i -lt 6000 ]; do printf '%098d\\n' $i; i=$((i+1)); done";
    home.ok(&["new", "-d", "-n", "work", "--ring", "256k", "--", "sh", "-c", flood]);
    home.run(&["wait", "work"]);
    until("the end of the output", || home.json(&["info", "work"])["head"] == 600_000);
    let oldest = home.json(&["info", "work"])["oldest"].as_u64().unwrap();
    let text = home.ok(&["export", "work", "--asciicast"]);
    let events: Vec<_> = text.lines().skip(1).filter(|line| !line.starts_with('#')).map(event).collect();
    assert_eq!(events[0].2, format!("output before offset {oldest} is no longer kept"));
    let bytes: usize = events.iter().filter(|event| event.1 == "o").map(|event| event.2.len()).sum();
    assert_eq!(bytes as u64, (600_000 - oldest) / 100 * 100, "all but the line of which only the end is kept");
}
