//! The live graph at a person's terminal: drawn again as things happen, and who typed what there.

use holdfast_harness::{DETACH, Home, Terminal, until};
use serde_json::Value;

fn shell(home: &Home) {
    home.ok(&["new", "-d", "-n", "work", "--", "bash", "--norc", "--noprofile", "-i"]);
    home.ok(&["send", "work", "--enter", "PS1='ready> '"]);
    home.until_screen_shows("work", "ready>");
}

#[test]
fn the_watched_tree_is_drawn_again_and_the_terminal_is_as_before() {
    let home = Home::new();
    shell(&home);
    let terminal = Terminal::new("100x24");
    let before = format!("{:?}", terminal.termios());
    for (words, quit) in [("sleep 611", "q"), ("sleep 612", "\x03")] {
        let mut client = terminal.run(&home, &["graph", "work", "--watch"]);
        terminal.wait_for("the tree", |seen| seen.screen.alternate() && seen.shows("COMMAND"));
        home.ok(&["send", "work", "--enter", &format!("{words} &")]);
        terminal.wait_text(words);
        terminal.types(quit);
        assert_eq!(client.wait(), 0);
        terminal.wait_for("the main screen", |seen| !seen.screen.alternate());
        assert_eq!(format!("{:?}", terminal.termios()), before);
    }
    let mut client = terminal.run(&home, &["graph", "work", "--watch"]);
    terminal.wait_for("the tree", |seen| seen.screen.alternate() && seen.shows("COMMAND"));
    terminal.resize("60x4", &client);
    terminal.wait_text("more");
    home.ok(&["end", "work", "--grace", "0"]);
    assert_eq!(client.wait(), 0, "it ends with its session");
    assert_eq!(format!("{:?}", terminal.termios()), before);
}

#[test]
fn what_a_person_starts_at_an_attached_terminal_is_theirs() {
    let home = Home::new();
    shell(&home);
    home.ok(&["release", "work"]);
    let (terminal, mut client) = Terminal::attached(&home, "work", "80x24");
    terminal.types("sleep 613 &\r");
    let shows = |process: &&Value| process["argv"] == serde_json::json!(["sleep", "613"]);
    let (graph, id) = until("the process", || {
        let graph = home.json(&["graph", "work"]);
        let id = graph["processes"].as_array()?.iter().find(shows)?["id"].clone();
        Some((graph, id))
    });
    let binding = graph["bindings"].as_array().unwrap().iter().find(|binding| binding["of"] == id).unwrap();
    let act = binding["act"].as_u64().unwrap();
    assert_eq!(binding["by"], "time", "{binding}");
    let journal = home.ok(&["--json", "journal", "work"]);
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let record = records.into_iter().find(|record| record["seq"] == act).unwrap();
    assert!(record["act"]["typed"]["keys"].as_str().is_some_and(|keys| keys.contains("sleep 613")), "{record}");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn what_a_person_types_behind_an_agent_is_the_persons_and_what_the_agent_left_the_agents() {
    let home = Home::new();
    shell(&home);
    home.ok(&["actor", "new", "agent:bot"]);
    home.ok(&["release", "work"]);
    home.ok(&["--as", "agent:bot", "send", "work", "--enter", "(setsid sleep 614 &)"]);
    home.ok(&["--as", "agent:bot", "release", "work"]);
    let (terminal, mut client) = Terminal::attached(&home, "work", "80x24");
    // Keys of which the first one takes the turn, and the others follow directly.
    terminal.types("echo dir");
    terminal.wait_text("echo dir");
    terminal.types("ect; (setsid sleep 615 &)\r");
    let started = |words: &str| {
        let (graph, id) = until(words, || {
            let graph = home.json(&["graph", "work"]);
            let shows = |process: &&Value| process["argv"] == serde_json::json!(["sleep", words]);
            let id = graph["processes"].as_array()?.iter().find(shows)?["id"].clone();
            Some((graph, id))
        });
        let binding = graph["bindings"].as_array().unwrap().iter().find(|binding| binding["of"] == id).unwrap();
        (binding["actor"]["handle"].as_str().unwrap().to_owned(), binding["by"].as_str().unwrap().to_owned())
    };
    // Where the shell could be moved, the answer says so.
    let own = std::fs::read_to_string(format!("/proc/{}/cgroup", home.number("work", "pid"))).unwrap();
    let known = if own.lines().any(|line| line.starts_with("0::") && line.contains("/t")) { "cgroup" } else { "time" };
    println!("known by {known}");
    let me = home.json(&["whoami"])["actor"]["handle"].as_str().unwrap().to_owned();
    assert_eq!(started("615"), (me, known.to_owned()));
    assert_eq!(started("614"), ("agent:bot".to_owned(), known.to_owned()));
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}
