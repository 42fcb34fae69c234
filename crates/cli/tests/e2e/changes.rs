//! Who changed a shell whose person types at a terminal of their own, which the host looks at now and then.

use holdfast_harness::{Client, DETACH, Home, Seen, Terminal, until};
use serde_json::Value;

const BOT: &str = "agent:bot";

/// What is not as it was: `name class:handle known`.
fn changed(home: &Home) -> Vec<String> {
    let answer = home.json(&["env", "s"]);
    let line = |entry: &Value| {
        let by = &entry["changed"];
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", word(&entry["name"]), word(&by["actor"]["handle"]), word(&by["known"]))
    };
    answer["entries"].as_array().unwrap().iter().map(line).collect()
}

fn printed(seen: &Seen, line: &str) -> bool {
    seen.screen.rows_text().iter().any(|row| row.trim_end() == line)
}

#[test]
fn what_a_person_types_at_the_terminal_is_theirs_and_stays_so_when_an_agent_goes_on() {
    let home = Home::new();
    home.ok(&["actor", "new", BOT]);
    home.ok(&["new", "-d", "-n", "s", "--", "bash", "--norc"]);
    home.ok(&["--as", BOT, "run", "s", "--", "export ZERO=0"]);
    home.ok(&["--as", BOT, "release", "s"]);
    let ledger = home.session_dir("s").join("shell.jsonl");
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.types("PS1='> '; export ONE=1; echo first\r");
    terminal.wait_for("the first", |seen| printed(seen, "first"));
    // At once: what was typed may not be in the journal yet.
    let told = until("the first to be told", || Some(changed(&home)).filter(|told| told.len() == 2));
    let who = told[0].split(' ').nth(1).unwrap().to_owned();
    assert!(who.starts_with("human:") && told[1] == format!("ZERO {BOT} run"), "{told:?}");
    let theirs = |name: &str| format!("{name} {who} time");
    // Nobody asks for anything: it is kept when what was typed is.
    let kept = |name: &str| std::fs::read_to_string(&ledger).is_ok_and(|text| text.contains(&format!("{name:?}")));
    for name in ["TWO", "THREE"] {
        terminal.types(format!("export {name}=2\r"));
        until("it to be kept", || kept(name).then_some(()));
    }
    // Nor when it takes longer than that.
    let journal = ledger.with_file_name("journal.1");
    terminal.types("echo be''gun; sh -c 'until test -e go; do sleep 0.01; done'; export SLOW=1\r");
    terminal.wait_text("begun");
    let is_in_journal = || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("export SLOW"));
    until("what was typed to be in the journal", || is_in_journal().then_some(()));
    std::fs::write(home.join("go"), "").unwrap();
    until("it to be kept", || kept("SLOW").then_some(()));
    terminal.types("unset SLOW; alias ls='echo pwned'\rexport TWO=22\rexport ONE=11\recho second\r");
    terminal.wait_for("the second", |seen| printed(seen, "second"));
    let mut expected = vec![theirs("ONE"), theirs("THREE"), theirs("TWO"), format!("ZERO {BOT} run"), theirs("ls")];
    until("the person's", || (changed(&home) == expected).then_some(()));
    home.ok(&["give", "s", "--to", BOT]);
    home.ok(&["--as", BOT, "send", "s", "--enter", "export TWO=3; unset THREE"]);
    expected[2] = format!("TWO {BOT} time");
    expected.remove(1);
    until("the bot's", || (changed(&home) == expected).then_some(()));
    // The person's keys go to the keeper at once now, and into the journal a little later.
    home.ok(&["--as", BOT, "give", "s", "--to", &who]);
    terminal.types("export LAST=1; echo third\r");
    terminal.wait_for("the third", |seen| printed(seen, "third"));
    let told = until("it to be told", || Some(changed(&home)).filter(|told| told.len() > expected.len()));
    expected.insert(0, theirs("LAST"));
    assert_eq!(told, expected);
    home.kill_host();
    assert_eq!(changed(&home), expected);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

/// A session whose shell shows its first prompt when something is written to the pipe `go`, and a terminal that is there.
fn waiting(home: &Home) -> (Terminal, Client) {
    std::fs::write(home.join("rc"), "read -r line < go; PS1='> '\n").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.join("go"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    home.ok(&["new", "-d", "-n", "s", "--", "bash", "--rcfile", "./rc"]);
    Terminal::attached(home, "s", "80x24")
}

#[test]
fn what_is_typed_before_the_first_prompt_is_a_change_too() {
    let home = Home::new();
    let (terminal, mut client) = waiting(&home);
    terminal.types("export A=1\rexport B=1\rexport C=1\rexport D=1\recho typed\r");
    std::fs::write(home.join("go"), "go\n").unwrap();
    terminal.wait_for("all of it", |seen| printed(seen, "typed"));
    let names =
        |told: Vec<String>| told.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    until("all of it", || (names(changed(&home)) == ["A", "B", "C", "D"]).then_some(()));
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}
