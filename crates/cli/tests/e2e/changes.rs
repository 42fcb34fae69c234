//! Who changed a shell whose person types at a terminal of their own, which the host looks at now and then.

use crate::home::{Home, until};
use crate::terminal::{DETACH, Seen, Terminal};
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
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    // At once: the shell may not have shown its first prompt.
    terminal.types("PS1='> '; export ONE=1; echo first\r");
    terminal.wait_for("the first", |seen| printed(seen, "first"));
    // Nobody has asked for anything: it is kept when what was typed is.
    let ledger = home.session_dir("s").join("shell.jsonl");
    let kept = |name: &str| std::fs::read_to_string(&ledger).is_ok_and(|text| text.contains(&format!("{name:?}")));
    until("the first to be kept", || kept("ONE").then_some(()));
    terminal.types("alias ls='echo pwned'\rexport TWO=2\rexport ONE=11\recho second\r");
    terminal.wait_for("the second", |seen| printed(seen, "second"));
    let who = home.json(&["turn", "s"])["holder"]["actor"]["handle"].as_str().unwrap().to_owned();
    let theirs = |names: &[&str]| names.iter().map(|name| format!("{name} {who} time")).collect::<Vec<_>>();
    until("the person's", || (changed(&home) == theirs(&["ONE", "TWO", "ls"])).then_some(()));
    home.ok(&["give", "s", "--to", BOT]);
    home.ok(&["--as", BOT, "send", "s", "--enter", "export TWO=3; export THREE=3"]);
    let mut expected = theirs(&["ONE", "THREE", "TWO", "ls"]);
    expected[1] = format!("THREE {BOT} time");
    expected[2] = format!("TWO {BOT} time");
    until("the bot's", || (changed(&home) == expected).then_some(()));
    home.kill_host();
    assert_eq!(changed(&home), expected);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}
