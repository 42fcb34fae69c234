//! What a person does from a chat.

use crate::{ANN, Bot};
use holdfast_harness::until;

#[test]
fn a_chat_is_paired_by_a_code_and_lists_looks_and_runs() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/ls");
    let (_, list) = bot.chat.hears("the list", |message| message.text == "Sessions");
    assert!(list.block.contains("work: at its prompt"), "{list:?}");
    bot.chat.says(ANN, "/run echo hello; echo '<b>&'; exit_with() { return 3; }; exit_with");
    let (_, run) = bot.chat.hears("the run", |message| message.text.contains("exit 3"));
    assert!(run.block.contains("hello\n<b>&"), "{run:?}");
    bot.chat.says(ANN, "/screen");
    let (id, screen) = bot.chat.hears("the screen", |message| message.text.starts_with("work: "));
    assert!(screen.block.contains("<b>&") && screen.buttons.len() == 12, "{screen:?}");
    // It is the chat user that did it, by the journal.
    let journal = bot.home.ok(&["journal", "work", "--actor", "human:telegram-501"]);
    assert!(journal.contains("echo hello"), "{journal}");
    bot.home.ok(&["journal", "work", "--verify"]);
    // A key typed by a button, and the screen changes in its place.
    bot.chat.says(ANN, "/type cat");
    bot.chat.hears_after(id, "the screen", |message| message.block.contains("cat"));
    let key = screen.buttons.iter().find(|(text, _)| text == "Ctrl-C").unwrap().1.clone();
    let press = bot.chat.presses(ANN, id, &key);
    until("the interruption", || bot.home.json(&["state", "work"])["state"] == "idle_prompt");
    bot.chat.hears("the changed screen", |message| message.edits > 0);
    bot.chat.took(press);
    until("its acknowledgement", || bot.chat.seen().acknowledged.contains(&format!("cb{press}")));
    bot.is_clean();
}

#[test]
fn a_run_is_shown_while_it_goes_on_and_stopped_by_a_button() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/run for n in 1 2 3 4 5 6; do echo tick $n; sleep 1; done; echo over");
    bot.chat.hears("a live change", |message| {
        message.text.contains("running") && message.edits > 0 && message.block.contains("tick 2")
    });
    let (id, run) = bot.chat.hears("its end", |message| message.text.contains("exit 0"));
    assert!(run.block.ends_with("over") && run.buttons.is_empty(), "{run:?}");
    let edited = bot.chat.seen().edited.clone();
    assert!(edited.len() >= 2 && edited.len() <= 8, "{}", edited.len());
    let gaps = edited.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.into_iter().all(|gap| gap > std::time::Duration::from_millis(900)), "edits are throttled");
    bot.chat.says(ANN, "/run sleep 1000");
    let (long, card) = bot.chat.hears_after(id, "its card", |message| message.text.contains("running"));
    bot.chat.presses(ANN, long, &card.buttons[0].1);
    bot.chat.hears_after(id, "its end", |message| message.text.contains("cancelled"));
    bot.is_clean();
}

#[test]
fn long_output_fits_a_message_and_all_of_it_is_a_file() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/run seq 1 5000; printf '</pre>&lt;\\033[31m@everyone\\n'");
    let (id, run) = bot.chat.hears("the run", |message| message.text.contains("exit 0"));
    assert!(run.block.contains("4999\n5000\n</pre>&lt;@everyone"), "{run:?}");
    bot.chat.presses(ANN, id, &run.buttons[0].1);
    let (_, file) = bot.chat.hears("the file", |message| message.method == "sendDocument");
    let (name, bytes) = file.file.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(name, "output.txt");
    assert!(
        text.starts_with("1\n2\n3\n") && text.contains("\n2500\n") && text.contains("5000\n</pre>"),
        "{}",
        text.len()
    );
    bot.chat.says(ANN, "/logs");
    let (_, logs) = bot.chat.hears_after(id + 1, "the logs", |message| message.method == "sendDocument");
    assert!(String::from_utf8(logs.file.unwrap().1).unwrap().contains("\n2500\n"));
    bot.is_clean();
}

#[test]
fn a_screen_is_a_picture_with_its_colours() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/run printf '\\033[41mred\\033[0m\\n'");
    bot.chat.hears("the run", |message| message.text.contains("exit 0"));
    bot.chat.says(ANN, "/pic work");
    let (id, picture) = bot.chat.hears("the picture", |message| message.method == "sendPhoto");
    let (name, png) = picture.file.unwrap();
    assert_eq!((name.as_str(), &png[1..4]), ("screen.png", &b"PNG"[..]));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (80 * 12 + 16, 24 * 24 + 16));
    assert!(crate::http::find(&png[..400], &[0xe0, 0x5f, 0x65]).is_some(), "the palette has red");
    assert!(png.len() < 40_000, "{} bytes", png.len());
    // A key below a picture: what cannot be changed is sent anew.
    let key = picture.buttons.iter().find(|(text, _)| text == "Enter").unwrap().1.clone();
    bot.chat.presses(ANN, id, &key);
    bot.chat.hears_after(id, "the screen", |message| message.text.starts_with("work: ") && !message.block.is_empty());
}

#[test]
fn a_service_that_says_slower_is_obeyed_and_nothing_is_lost() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.seen().slow = 2;
    bot.chat.says(ANN, "/me");
    bot.chat.says(ANN, "/ls");
    bot.chat.hears("the first", |message| message.text.contains("may full"));
    bot.chat.hears("the second", |message| message.text == "Sessions");
    let slowed = bot.chat.seen().slowed.clone();
    assert_eq!(slowed.len(), 2);
    assert!(slowed[1] - slowed[0] >= std::time::Duration::from_millis(1_000), "{:?}", slowed[1] - slowed[0]);
    let texts: Vec<String> = bot.chat.texts().into_iter().map(|(_, text, _)| text).collect();
    let place = |wanted: &str| texts.iter().position(|text| text.contains(wanted)).unwrap();
    assert!(place("may full") < place("Sessions"), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| *text == "Sessions").count(), 1);
    bot.is_clean();
}

#[test]
fn users_are_told_when_it_ends_or_waits_and_decide_about_acts() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.says(ANN, "/type sleep 3");
    until("the command", || bot.home.json(&["state", "work"])["state"] != "idle_prompt");
    bot.chat.says(ANN, "/tell ends");
    bot.chat.hears("the promise", |message| message.text == "You are told when work ends.");
    bot.chat.hears("the news", |message| message.text == "work: at its prompt");
    // An act of an agent that the policy asks about.
    bot.home.ok(&["actor", "new", "agent:bot"]);
    let held = |line: &str| {
        // The person who typed has the turn for a moment.
        until("the approval", || {
            let ran = bot.home.run_as("agent:bot", &["--json", "run", "work", "--", line]);
            ran.err.contains("approval_needed") || ran.out.contains("approval_needed")
        });
    };
    let ledger = bot.ledger().display().to_string();
    held(&format!("eval \"echo yes >> {ledger}$NOTHING\""));
    let (id, asked) = bot.chat.hears("the approval", |message| message.text.contains("agent:bot wants to run in work"));
    assert!(asked.block.contains("echo yes"), "{asked:?}");
    bot.chat.presses(ANN, id, &asked.buttons.iter().find(|(text, _)| text == "Approve").unwrap().1);
    until("its effect", || bot.counted() == ["yes"]);
    bot.chat.hears("how it ended", |message| message.text.contains("→ ") && message.buttons.is_empty());
    held(&format!("eval \"echo no >> {ledger}$NOTHING\""));
    let (other, asked) = bot.chat.hears_after(id, "the other", |message| message.block.contains("echo no"));
    bot.chat.presses(ANN, other, &asked.buttons.iter().find(|(text, _)| text == "Deny").unwrap().1);
    bot.chat.hears("the denial", |message| message.text.starts_with("Denied for agent:bot"));
    assert_eq!(bot.counted(), ["yes"]);
    let journal = bot.home.ok(&["journal", "work", "--json"]);
    assert!(journal.contains("human:telegram-501"), "{journal}");
    // A question in words.
    let ran = bot.home.run_as("agent:bot", &["ask", "-t", "work", "--timeout", "0", "Which branch?"]);
    assert_eq!(ran.status, 124);
    bot.chat.hears("the question", |message| message.text.contains("Which branch?"));
    bot.chat.says(ANN, "/answer main");
    bot.chat.hears("the answer", |message| message.text == "Answered agent:bot in work: main");
    bot.is_clean();
}
