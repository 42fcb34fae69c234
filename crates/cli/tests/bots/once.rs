//! Each update is acted on once, whenever the bot is killed and whatever the service repeats.

use crate::{ANN, Bot};
use holdfast_harness::{Random, kill, until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn killed_at_each_named_point_the_bot_runs_and_types_once() {
    let bot = Bot::new();
    bot.session("work");
    let ledger = bot.ledger().display().to_string();
    for point in ["bot.taken", "bot.acted", "bot.noted", "bot.post", "bot.sent"] {
        for (what, sign) in [("/run", "exit 0"), ("/type", "work: ")] {
            let newest = bot.chat.newest();
            let pause = bot.home.pause(point);
            let line = format!("echo {what} {point} >> {ledger}");
            bot.chat.says(ANN, &format!("{what} {line}"));
            // What is noted is not taken again; what was only done is.
            for _ in 0..if point == "bot.acted" { 2 } else { 1 } {
                let held = pause.reached();
                kill(bot.pid());
                drop(held);
            }
            drop(pause);
            bot.chat.hears_after(newest, &format!("{what} {point}"), |message| {
                message.text.contains(sign) && format!("{}{}", message.text, message.block).contains(point)
            });
            until("its line", || bot.counted().contains(&format!("{what} {point}")));
            until("the prompt", || bot.home.json(&["state", "work"])["state"] == "idle_prompt");
        }
    }
    let lines = bot.counted();
    let mut once = lines.clone();
    once.sort();
    once.dedup();
    assert_eq!((lines.len(), once.len()), (10, 10), "{lines:?}");
    bot.home.ok(&["journal", "work", "--verify"]);
    bot.is_clean();
}

#[test]
fn a_seizure_a_question_and_an_approval_happen_once_though_the_bot_is_killed() {
    let bot = Bot::new();
    bot.session("work");
    bot.home.ok(&["actor", "new", "agent:bot"]);
    for (n, point) in ["bot.taken", "bot.acted", "bot.noted"].into_iter().enumerate() {
        let seized = |count: usize| {
            until("the seizure", || {
                let journal = bot.home.ok(&["journal", "work", "--actor", "human:telegram-501"]);
                (journal.matches("seized").count() >= count).then_some(journal.matches("seized").count())
            })
        };
        let pause = bot.home.pause(point);
        let update = bot.chat.says(ANN, &format!("/seize because {point}"));
        let held = pause.reached();
        kill(bot.pid());
        drop(held);
        drop(pause);
        bot.chat.took(update);
        assert_eq!(seized(n + 1), n + 1, "{point}");
        let ran = bot.home.run_as(
            "agent:bot",
            &["--json", "ask", "-t", "work", "--timeout", "0", "--option", "yes", "--option", point, "Go?"],
        );
        assert_eq!(ran.status, 124, "{ran}");
        let (message, asked) = bot.chat.hears("the question", |message| {
            message.text.contains("agent:bot asks in work: Go?")
                && message.buttons.iter().any(|(text, _)| text == point)
        });
        let data = asked.buttons.iter().find(|(text, _)| text == point).unwrap().1.clone();
        let pause = bot.home.pause(point);
        let press = bot.chat.presses(ANN, message, &data);
        let held = pause.reached();
        kill(bot.pid());
        drop(held);
        drop(pause);
        bot.chat.took(press);
        bot.chat.hears("the confirmation", |message| message.text == format!("Answered agent:bot in work: {point}"));
    }
    let journal = bot.home.ok(&["journal", "work", "--json"]);
    assert_eq!(journal.matches("(asked: Go?)").count(), 3, "{journal}");
    bot.is_clean();
}

#[test]
fn a_storm_of_kills_and_repeats_and_every_command_runs_once() {
    let seed = Random::seed();
    let mut random = Random::of(seed, 40);
    let bot = Bot::new();
    bot.session("work");
    bot.chat.seen().repeats = true;
    let over = AtomicBool::new(false);
    let mut kills = 0;
    let wanted = 10;
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(40 + random.below(400)));
                if let Some(pid) = holdfast_bot::is_served(&bot.home.places(), holdfast_bot::Service::Telegram) {
                    kill(pid);
                    killed += 1;
                }
            }
            killed
        });
        for n in 0..wanted {
            bot.chat.says(ANN, &format!("/run echo line-{n} >> {}", bot.ledger().display()));
            bot.chat.hears(&format!("run {n}, seed {seed}"), |message| {
                message.text.contains(&format!("line-{n} ")) && message.text.contains("exit 0")
            });
        }
        over.store(true, Ordering::Relaxed);
        kills = killer.join().unwrap();
    });
    let expected: Vec<String> = (0..wanted).map(|n| format!("line-{n}")).collect();
    assert_eq!(bot.counted(), expected, "seed {seed}");
    assert!(kills > 0, "seed {seed}");
    println!("seed {seed}: {kills} kills");
    bot.is_clean();
}

#[test]
fn what_the_service_repeats_and_reorders_is_done_once() {
    let bot = Bot::new();
    bot.session("work");
    bot.chat.seen().repeats = true;
    let ledger = bot.ledger();
    bot.chat.says(ANN, &format!("/type echo first >> {}", ledger.display()));
    bot.chat.says(ANN, &format!("/type echo second >> {}", ledger.display()));
    until("both", || bot.counted().len() == 2);
    let polls = bot.chat.seen().polls;
    until("more polls", || bot.chat.seen().polls > polls + 5);
    assert_eq!(bot.counted(), ["first", "second"]);
    bot.is_clean();
}
