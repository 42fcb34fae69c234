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
