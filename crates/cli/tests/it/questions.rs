//! Questions: an agent asks, a human answers, and nobody else does.

use holdfast_client::{Identity, connect};
use holdfast_harness::{Home, PATIENCE, TESTER, kill, settle, until};
use holdfast_wire::operations::op;
use holdfast_wire::questions::{OPEN, QuestionAnswerParams, QuestionAskParams, QuestionState, QuestionWithdrawParams};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::time::Instant;

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";

/// A home with two people, two agents and a session.
fn settled() -> Home {
    let home = Home::new();
    settle(home.path(), ANN);
    for agent in [BOT, "agent:other"] {
        home.ok(&["actor", "new", agent]);
    }
    home.session("work", "echo ready; exec cat");
    home.until_screen_shows("work", "ready");
    home
}

/// Asks in the background, as the agent.
fn asks(home: &Home, args: &[&str]) -> Child {
    let mut command = home.command(&[&["--as", BOT, "ask", "-t", "work"], args].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Asks without waiting; the question's id.
fn asked(home: &Home, text: &str) -> String {
    let ran = home.run_as(BOT, &["--json", "ask", "-t", "work", "--timeout", "0", text]);
    assert_eq!(ran.status, 124, "{ran}");
    serde_json::from_str::<Value>(&ran.out).unwrap()["id"].as_str().unwrap().to_owned()
}

/// The one open question, as soon as there is one.
fn open_one(home: &Home) -> Value {
    let mut open = json!([]);
    until("a question", || {
        open = home.json(&["questions"]);
        open.as_array().unwrap().len() == 1
    });
    open[0].clone()
}

fn state(home: &Home, id: &str) -> Value {
    let all = home.json(&["questions", "--all"]);
    all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap()["state"].clone()
}

fn told(asker: Child) -> (i32, String) {
    let output = asker.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_agent_asks_and_gets_what_a_human_answers() {
    let home = settled();
    let asker = asks(&home, &["--option", "yes", "--option", "not yet", "Deploy", "now?"]);
    let question = open_one(&home);
    let id = question["id"].as_str().unwrap();
    assert_eq!((&question["text"], &question["by"]["handle"]), (&json!("Deploy now?"), &json!(BOT)));
    assert_eq!((&question["name"], &question["state"]), (&json!("work"), &json!("open")));
    assert!(home.ok(&["ls"]).contains(", asks"), "{}", home.ok(&["ls"]));
    let listed = home.ok(&["questions", "work"]);
    assert!(listed.contains("  work     agent:bot asks: Deploy now?\n  1: yes\n  2: not yet\n"), "{listed}");
    // Neither another text than the options, nor too high a number.
    let wrong = home.run_as(ANN, &["answer", id, "maybe"]);
    assert!(wrong.status == 1 && wrong.err.contains("options: yes, not yet"), "{wrong}");
    assert_eq!(home.run_as(ANN, &["answer", id, "--option", "3"]).status, 1);
    let answered = home.run_as(ANN, &["answer", &id[..12], "--option", "2"]);
    assert_eq!(answered.out, "answered agent:bot in work: not yet\n", "{answered}");
    assert_eq!(told(asker), (0, "not yet\n".into()));
    assert_eq!(home.json(&["questions"]), json!([]));
    let all = home.json(&["questions", "--all"]);
    assert_eq!((&all[0]["answer"]["by"]["handle"], &all[0]["answer"]["option"]), (&json!(ANN), &json!(1)));
    // Signed, with what was asked.
    let journal = home.ok(&["journal", "work"]);
    assert!(journal.contains(&format!("human:ann     answered {id}: not yet (asked: Deploy now?)")), "{journal}");
    home.ok(&["journal", "work", "--verify"]);
}

#[test]
fn only_a_human_answers_and_only_once() {
    let home = settled();
    let id = asked(&home, "Deploy now?");
    for agent in [BOT, "agent:other"] {
        let refused = home.run_as(agent, &["--json", "answer", &id, "yes"]);
        let error = &serde_json::from_str::<Value>(&refused.err).unwrap()["error"];
        assert_eq!((refused.status, &error["code"]), (1, &json!("denied")), "{refused}");
        assert_eq!(error["details"], json!({"code": "denied", "right": "type", "rule": "humans_answer"}));
        assert_eq!(error.get("hint"), None, "no way around is told");
    }
    assert_eq!(state(&home, &id), "open");
    // A human that may not type decides nothing either.
    home.ok(&["revoke", "work", "--to", ANN]);
    home.ok(&["grant", "work", "--to", ANN, "--can", "observe"]);
    let refused = home.run_as(ANN, &["answer", &id, "yes"]);
    assert!(refused.status == 1 && refused.err.contains("human:ann may not type"), "{refused}");
    home.ok(&["answer", &id, "yes", "please"]);
    let again = home.run(&["--json", "answer", &id, "no"]);
    let error = &serde_json::from_str::<Value>(&again.err).unwrap()["error"];
    assert_eq!((again.status, &error["code"]), (1, &json!("question_closed")), "{again}");
    assert_eq!((&error["details"]["state"], &error["details"]["by"]["handle"]), (&json!("answered"), &json!(TESTER)));
    assert_eq!(home.run_as(BOT, &["ask", "--wait", &id]).out, "yes please\n");
}

#[test]
fn a_killed_host_loses_neither_question_nor_answer() {
    let home = settled();
    let asker = asks(&home, &["Go on?"]);
    let id = open_one(&home)["id"].as_str().unwrap().to_owned();
    kill(home.host_pid());
    assert_eq!(open_one(&home)["id"], *id, "the next host knows it");
    home.ok(&["answer", &id, "yes"]);
    kill(home.host_pid());
    assert_eq!(told(asker), (0, "yes\n".into()), "whoever waits is answered by the next one");
    assert_eq!(home.run_as(BOT, &["ask", "--wait", &id]).out, "yes\n");
}

#[test]
fn who_waited_long_enough_is_told_how_to_go_on() {
    let home = settled();
    let ran = home.run_as(BOT, &["ask", "-t", "work", "--timeout", "0.2", "Anybody?"]);
    let id = open_one(&home)["id"].as_str().unwrap().to_owned();
    let expected = format!(
        "holdfast: asked in work: {id}\nholdfast: no answer to {id} yet\n  keep waiting: holdfast ask --wait {id}\n  \
         or withdraw it: holdfast ask --withdraw {id}\n"
    );
    assert_eq!((ran.status, ran.out.as_str(), ran.err), (124, "", expected));
    assert_eq!(home.run_as(BOT, &["ask", "--wait", &id, "--timeout", "0"]).status, 124);
    let blind = home.run(&["answer"]);
    assert!(blind.status == 2 && blind.err.contains("holdfast answer QUESTION TEXT"), "{blind}");
    let nowhere = home.run_as(BOT, &["ask", "Anybody?"]);
    assert!(nowhere.status == 2 && nowhere.err.contains("holdfast ask -t NAME"), "{nowhere}");
}

#[test]
fn a_question_is_withdrawn_by_its_asker_or_a_human() {
    let home = settled();
    let (first, second) = (asked(&home, "one?"), asked(&home, "two?"));
    let refused = home.run_as("agent:other", &["ask", "--withdraw", &first]);
    assert!(
        refused.status == 1 && refused.err.contains("only a human or the actor that asked may withdraw a question"),
        "{refused}"
    );
    assert_eq!(home.run_as(BOT, &["ask", "--withdraw", &first]).status, 0);
    let waits = asks_again(&home, &second);
    assert_eq!(home.run_as(ANN, &["ask", "--withdraw", &second]).status, 0);
    let output = waits.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err, format!("holdfast: human:ann withdrew {second}\n"));
    let late = home.run_as(ANN, &["--json", "answer", &first, "yes"]);
    assert!(late.err.contains("question_closed") && late.err.contains("agent:bot withdrew it"), "{late}");
}

fn asks_again(home: &Home, id: &str) -> Child {
    let mut command = home.command(&["--as", BOT, "ask", "--wait", id]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_question_ends_with_its_time_and_with_its_session() {
    let home = settled();
    let began = Instant::now();
    let ran = home.run_as(BOT, &["ask", "-t", "work", "--expires", "0.2", "Quick?"]);
    assert!(ran.status == 1 && ran.err.contains("expired without an answer"), "{ran}");
    assert!(began.elapsed() < PATIENCE);
    let asker = asks(&home, &["Still there?"]);
    let id = open_one(&home)["id"].as_str().unwrap().to_owned();
    home.ok(&["end", "work", "--grace", "0"]);
    assert_eq!(told(asker).0, 1);
    assert_eq!(state(&home, &id), "expired");
    let late = home.run_as(BOT, &["ask", "-t", "work", "Hello?"]);
    assert!(late.status == 1 && late.err.contains("has ended"), "{late}");
}

#[test]
fn what_an_agent_writes_reaches_no_terminal_as_a_control() {
    let home = settled();
    let text = "all \x1b[2J\x1b]0;fine\x07\u{9b}31m\u{202e}\r\nsay yes";
    let mut command =
        home.command(&["--as", BOT, "ask", "-t", "work", "--timeout", "0", "--option", "\x1b[31mno", text]);
    assert_eq!(command.output().unwrap().status.code(), Some(124));
    let id = open_one(&home)["id"].as_str().unwrap().to_owned();
    assert_eq!(open_one(&home)["text"], text, "programs have it as it was written");
    let wrong = home.run(&["answer", &id, "\x1b[5m"]);
    let answered = home.run(&["answer", &id, "--option", "1"]);
    for told in [
        home.ok(&["questions"]),
        wrong.err,
        answered.out,
        home.ok(&["questions", "--all"]),
        home.ok(&["journal", "work"]),
    ] {
        let is_obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!told.contains(is_obeyed), "{told:?}");
        assert!(!told.contains("\nsay yes"), "it stays in its line: {told:?}");
    }
}

#[test]
fn a_session_takes_so_many_open_questions_and_no_longer_ones() {
    let home = settled();
    let mut bot = connection(&home);
    let mut ask = |text: &str, options: Vec<String>| {
        let params = QuestionAskParams { session: "work".into(), text: text.into(), options, ..Default::default() };
        bot.call::<op::QuestionAsk>(&params).map_err(|error| error.to_string())
    };
    let mut first = None;
    for n in 0..OPEN.of_one {
        first = first.or(Some(ask(&format!("question {n}?"), vec![]).unwrap()));
    }
    let refused = ask("one more?", vec![]).unwrap_err();
    assert!(refused.contains("too many open questions of one actor, at most 16"), "{refused}");
    home.ok(&["answer", &first.unwrap().id.to_string(), "yes"]);
    for (text, options, why) in [
        (" ", vec![], "a question must have 1 to 4096 bytes"),
        (&"x".repeat(4097), vec![], "a question must have 1 to 4096 bytes"),
        ("x", (0..17).map(|n| n.to_string()).collect(), "at most 16 options"),
        ("x", vec!["y".repeat(201)], "an option must have 1 to 200 bytes"),
        ("x", vec!["y".into(), "y".into()], "two options are the same"),
    ] {
        let refused = ask(text, options).unwrap_err();
        assert!(refused.contains(why), "{why}: {refused}");
    }
    ask("one more now?", vec![]).unwrap();
}

fn connection(home: &Home) -> holdfast_client::Connection {
    let place = holdfast_types::Home::under(home.path());
    let who = Identity::load_or_make(&place, &BOT.parse().unwrap()).unwrap();
    connect(&place, &who).unwrap()
}

#[test]
fn asked_again_under_the_same_key_it_is_asked_once() {
    let home = settled();
    let mut bot = connection(&home);
    let key = Some("seven".to_owned());
    let params = QuestionAskParams { session: "work".into(), text: "sure?".into(), key, ..Default::default() };
    let first = bot.call::<op::QuestionAsk>(&params).unwrap();
    assert_eq!(bot.call::<op::QuestionAsk>(&params).unwrap(), first);
    home.ok(&["answer", &first.id.to_string(), "yes"]);
    let again = bot.call::<op::QuestionAsk>(&params).unwrap();
    assert_eq!((again.state, again.asked_ms), (QuestionState::Answered, first.asked_ms));
    let other = QuestionAskParams { text: "really?".into(), ..params };
    assert!(bot.call::<op::QuestionAsk>(&other).unwrap_err().to_string().contains("another question with this key"));
    assert_eq!(home.json(&["questions", "--all"]).as_array().unwrap().len(), 1);
}

/// The attack: a harmless question is asked and read, and in its place another one, before the answer comes.
#[test]
fn an_answer_is_to_the_text_that_was_read_and_to_no_other() {
    let home = settled();
    let mut bot = connection(&home);
    let ask = |bot: &mut holdfast_client::Connection, text: &str, options: &[&str], key: &str| {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (session, text, key) = ("work".into(), text.into(), Some(key.into()));
        let params = QuestionAskParams { session, text, options, key, ..Default::default() };
        bot.call::<op::QuestionAsk>(&params).unwrap()
    };
    let read = ask(&mut bot, "Delete the cache?", &["yes", "no"], "mine");
    bot.call::<op::QuestionWithdraw>(&QuestionWithdrawParams { question: read.id }).unwrap();
    // As many that are over as are remembered: the first is forgotten, and its key may serve again.
    for n in 0..=64 {
        let other = ask(&mut bot, "Really?", &[], &format!("other {n}"));
        bot.call::<op::QuestionWithdraw>(&QuestionWithdrawParams { question: other.id }).unwrap();
    }
    let asked = ask(&mut bot, "Delete the database?", &["yes", "no"], "mine");
    assert_ne!(asked.id, read.id, "no question has the id of another");
    assert!(home.fails(&["answer", &read.id.to_string(), "yes"]).contains("no question"));
    let place = holdfast_types::Home::under(home.path());
    let who = Identity::load(&place, &holdfast_harness::TESTER.parse().unwrap()).unwrap();
    let mut human = connect(&place, &who).unwrap();
    let answer = |question, seen| {
        let (text, option, proof) = (Some("yes".to_owned()), None, None);
        QuestionAnswerParams { question, seen, text, option, proof }
    };
    let refused = human.call::<op::QuestionAnswer>(&answer(asked.id, read.hash)).unwrap_err().to_string();
    assert!(refused.contains("not the question that was read"), "{refused}");
    let answered = human.call::<op::QuestionAnswer>(&answer(asked.id, asked.hash)).unwrap();
    assert_eq!(answered.state, QuestionState::Answered);
    // Other options are another question too.
    let [one, two] = [&["yes", "no"], &["no", "yes"]].map(|options| ask(&mut bot, "Same?", options, options[0]));
    assert_ne!(one.hash, two.hash);
}

#[test]
fn who_waits_for_ever_is_answered() {
    let home = settled();
    let mut bot = connection(&home);
    let asker = std::thread::spawn(move || {
        let (session, text, for_ever) = ("work".into(), "ever?".into(), u64::MAX);
        let params =
            QuestionAskParams { wait_ms: for_ever, expires_ms: Some(for_ever), session, text, ..Default::default() };
        bot.call::<op::QuestionAsk>(&params).unwrap()
    });
    let id = open_one(&home)["id"].as_str().unwrap().to_owned();
    home.ok(&["answer", &id, "yes"]);
    assert_eq!(asker.join().unwrap().answer.unwrap().text, "yes");
}

#[test]
fn what_runs_in_a_session_asks_there_and_cannot_answer() {
    let home = settled();
    let program = env!("CARGO_BIN_EXE_holdfast");
    home.session("inner", &format!("{program} ask 'In here?'; exec cat"));
    let question = open_one(&home);
    assert_eq!(question["name"], "inner");
    assert!(question["by"]["handle"].as_str().unwrap().starts_with("agent:"), "{question}");
    let id = question["id"].as_str().unwrap();
    home.session("other", &format!("{program} answer {id} yes; exec cat"));
    home.until_screen_shows("other", "only humans may answer questions");
    home.ok(&["answer", id, "so it is"]);
    home.until_screen_shows("inner", "so it is");
}

#[test]
fn who_may_not_look_learns_of_no_question() {
    let home = settled();
    let id = asked(&home, "secret?");
    home.ok(&["revoke", "work", "--to", "agent:other"]);
    assert_eq!(home.run_as("agent:other", &["--json", "questions", "--all"]).out, "[]\n");
    let refused = home.run_as("agent:other", &["ask", "--wait", &id]);
    assert!(refused.status == 1 && !refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn whoever_watches_and_whoever_is_to_be_notified_is_told() {
    let home = Home::new();
    let script = format!("cat >> {0}; echo \"$HOLDFAST_EVENT_TEXT\" >> {0}.text", home.join("told").display());
    let rules = format!("[[notify]]\non = [\"question\"]\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n");
    std::fs::write(home.join("config.toml"), rules).unwrap();
    home.ok(&["actor", "new", BOT]);
    home.session("work", "exec cat");
    let mut watcher = home.command(&["watch", "work", "--json"]);
    let out = std::fs::File::create(home.join("watched")).unwrap();
    let mut watcher = watcher.stdout(out).spawn().unwrap();
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(home.join("watched")).unwrap();
        text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    until("the watcher", || !events().is_empty());
    let id = {
        let ran = home.run_as(BOT, &["--json", "ask", "-t", "work", "--timeout", "0", "--option", "yes", "Go\x1b[2J?"]);
        serde_json::from_str::<Value>(&ran.out).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    until("the notification", || read("told.text").ends_with('\n'));
    let told: Value = serde_json::from_str(&read("told")).unwrap();
    assert_eq!((&told["on"], &told["event"]["question"]), (&json!("question"), &json!(id)));
    assert_eq!(told["answer"], format!("holdfast answer {id}"));
    let text = format!("holdfast: in work agent:bot asks: Go\\u{{1b}}[2J? [yes] · answer: holdfast answer {id}\n");
    assert_eq!(read("told.text"), text);
    home.ok(&["answer", &id, "yes"]);
    let id2 = {
        let ran = home.run_as(BOT, &["--json", "ask", "-t", "work", "--timeout", "0", "Again?"]);
        serde_json::from_str::<Value>(&ran.out).unwrap()["id"].as_str().unwrap().to_owned()
    };
    home.run_as(BOT, &["ask", "--withdraw", &id2]);
    until("the last event", || events().iter().any(|event| event["event"] == "question_closed"));
    let about: Vec<Value> = events().into_iter().filter(|event| !event["question"].is_null()).collect();
    let kinds: Vec<_> = about.iter().map(|event| (event["event"].clone(), event["by"].clone())).collect();
    let expected = [("asked", BOT), ("answered", TESTER), ("asked", BOT), ("question_closed", BOT)];
    assert_eq!(kinds, expected.map(|(kind, by)| (json!(kind), json!(by))));
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}
