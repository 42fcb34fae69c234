//! Somebody who is attached is rung for, and goes on as before.

use holdfast_harness::{DETACH, Home, TESTER, Terminal, until};
use holdfast_screen::MarkKind;
use holdfast_wire::attention::{Event, WatchParams, What};
use holdfast_wire::operations::op;

#[test]
fn an_attached_terminal_rings_and_whoever_watches_sees_it_come_and_go() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "[[notify]]\non = [\"waiting\"]\nring = true\n").unwrap();
    home.ok(&["new", "-d", "-n", "s", "--", "bash", "-c", "read go; read -p 'Name? ' x; echo \"<$x>\"; exec cat"]);
    let mut watcher = home.connect().unwrap();
    let mut after = Some(watcher.call::<op::Watch>(&WatchParams::default()).unwrap().to);
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.types("\r");
    let notified = |title: &str, kind: &MarkKind| match kind {
        MarkKind::Notification { title: told, body } => told == title && body.contains("s waits for input: \"Name?\""),
        _ => false,
    };
    terminal.wait_for("both kinds of notification and a bell", |seen| {
        ["", "holdfast"].iter().all(|title| seen.marks.iter().any(|kind| notified(title, kind)))
            && seen.marks.contains(&MarkKind::Bell)
    });
    terminal.types("ann\r");
    terminal.wait_text("<ann>");
    terminal.types("still here\r");
    terminal.wait_text("still here");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    let mut events: Vec<Event> = Vec::new();
    until("its coming and going to be told", || {
        let params = WatchParams { session: Some("s".into()), after, wait_ms: 1_000 };
        let answer = watcher.call::<op::Watch>(&params).unwrap();
        after = Some(answer.to);
        events.extend(answer.events);
        let by = |handle: &holdfast_types::Handle| handle.to_string() == TESTER;
        let came = events.iter().position(|e| matches!(&e.what, What::Attached { by: who, .. } if by(who)))?;
        let went = events.iter().position(|e| matches!(&e.what, What::Detached { by: Some(who), .. } if by(who)))?;
        (came < went).then_some(())
    });
}

#[test]
fn an_attached_terminal_shows_what_an_agent_asks_and_how_to_answer() {
    let home = Home::new();
    home.session("s", "exec cat");
    let (terminal, mut client) = Terminal::attached(&home, "s", "120x24");
    home.run(&["--as", "agent:bot", "ask", "-t", "s", "--timeout", "0", "--option", "yes", "Go\x1b[2J on?"]);
    terminal.wait_text("agent:bot asks: Go^[[2J on? [yes] · Ctrl-\\ a answers (que_");
    terminal.types("still here\r");
    terminal.wait_text("still here");
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
    let (terminal, mut client) = Terminal::attached(&home, "s", "120x24");
    terminal.wait_text("a question is open · Ctrl-\\ a answers");
    terminal.types("\x1ca");
    terminal.wait_text("agent:bot asks: Go^[[2J on? [1: yes] _");
    terminal.types("1\r");
    terminal.wait_text("answered agent:bot: yes");
    let settled = home.json(&["questions", "--all"]);
    assert_eq!((&settled[0]["answer"]["text"], &settled[0]["answer"]["by"]["handle"]), (&"yes".into(), &TESTER.into()));
    terminal.types("\x1ca");
    terminal.wait_text("no open questions");
    home.ok(&["journal", "s", "--verify"]);
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}

#[test]
fn a_question_is_shown_whole_at_a_terminal_before_it_is_answered() {
    let home = Home::new();
    home.session("s", "exec cat");
    let asks = |text: &str| {
        home.run(&["--as", "agent:bot", "ask", "-t", "s", "--timeout", "0", "--option", "a", "--option", "b", text])
    };
    asks("Which\x1b[2J\none?");
    let terminal = Terminal::new("120x24");
    let mut client = terminal.run(&home, &["answer"]);
    terminal.wait_text("agent:bot asks in s:");
    terminal.wait_text("Which\\u{1b}[2J");
    terminal.wait_text("2: b");
    terminal.types("2\r");
    assert_eq!(client.wait(), 0);
    terminal.wait_text("answered agent:bot in s: b");
    let settled = home.json(&["questions", "--all"]);
    assert_eq!((&settled[0]["answer"]["text"], &settled[0]["answer"]["option"]), (&"b".into(), &1.into()));
    let mut client = terminal.run(&home, &["answer"]);
    assert_eq!(client.wait(), 1, "there is none");
    asks("one?");
    asks("two?");
    let mut client = terminal.run(&home, &["answer"]);
    assert_eq!(client.wait(), 1, "which of the two?");
    terminal.wait_text("2 questions are open");
}

#[test]
fn who_has_the_turn_is_rung_for_when_somebody_asks_for_it() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "[[notify]]\non = [\"turn_requested\", \"approval\"]\nring = true\n")
        .unwrap();
    home.session("s", "exec cat");
    let (terminal, mut client) = Terminal::attached(&home, "s", "80x24");
    terminal.types("mine\r");
    terminal.wait_text("mine");
    home.run(&["--as", "agent:bot", "request", "s"]);
    terminal.wait_for("the notification", |seen| {
        let asks = |kind: &MarkKind| match kind {
            MarkKind::Notification { body, .. } => {
                body.contains("in s agent:bot asks for the turn · give it: holdfast give s --to agent:bot")
            }
            _ => false,
        };
        seen.marks.iter().any(asks) && seen.marks.contains(&MarkKind::Bell)
    });
    terminal.types(DETACH);
    assert_eq!(client.wait(), 0);
}
