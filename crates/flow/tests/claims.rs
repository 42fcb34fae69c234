//! What flows promise, each as a test; and random lives whose every prefix is replayed.
#![allow(clippy::unwrap_used)] // a test's failure is its message

use holdfast_flow::{
    Command, Decided, Effect, Event, Fires, Flow, Lineage, OnLost, Outcome, Recorded, Refusal, Run, RunState, State,
    Verdict, WaitFor, Waits, yaml,
};
use serde_json::{Value, json};

/// A flow, its history, and what it asks of the world.
struct World {
    flow: Flow,
    history: Vec<Recorded>,
    effects: Vec<Effect>,
    definition: Option<yaml::Definition>,
    now_ms: u64,
    asked: u32,
}

impl World {
    fn start(definition: Option<&str>) -> World {
        let definition = definition.map(|text| yaml::parse(text).unwrap());
        let flow = Flow::new("F-1");
        let mut world = World { flow, history: Vec::new(), effects: Vec::new(), definition, now_ms: 1_000, asked: 0 };
        let started = Event::Started {
            name: "F".into(),
            input: json!("margherita"),
            code: String::new(),
            by: "human:ann".into(),
            nonce: "a1".into(),
            cwd: None,
            skip_timers: false,
            lineage: Lineage::default(),
        };
        world.change(|flow, now| flow.start(started, now));
        world
    }

    fn change(&mut self, with: impl FnOnce(&mut Flow, u64) -> Decided) {
        self.now_ms += 10;
        let decided = with(&mut self.flow, self.now_ms);
        self.note(decided);
        while let (Some(definition), true) = (&self.definition, self.flow.wants) {
            let all = yaml::decide(definition, "F-1", &self.history);
            let new = (self.asked..).zip(all.into_iter().skip(self.asked as usize)).collect();
            let (seq, now) = (self.flow.seq, self.now_ms);
            let decided = self.flow.decide(seq, new, now).unwrap();
            self.note(decided);
        }
    }

    fn note(&mut self, decided: Decided) {
        let at_ms = self.now_ms;
        self.asked += decided.events.iter().filter(|event| matches!(event, Event::Asked { .. })).count() as u32;
        self.history.extend(decided.events.into_iter().map(|event| Recorded { at_ms, event }));
        self.effects.extend(decided.effects);
    }

    /// A worker's answer.
    fn asks(&mut self, commands: Vec<Command>) {
        let n = self.asked;
        let seq = self.flow.seq;
        self.change(|flow, now| flow.decide(seq, (n..).zip(commands).collect(), now).unwrap());
    }

    fn over(&mut self, n: u32, attempt: u32, outcome: Outcome) {
        self.change(|flow, now| flow.over(n, attempt, outcome, now));
    }

    fn keys(&self) -> Vec<&str> {
        let key = |effect: &'_ Effect| matches!(effect, Effect::Start { .. });
        self.effects
            .iter()
            .filter(|effect| key(effect))
            .map(|effect| match effect {
                Effect::Start { key, .. } => key.as_str(),
                _ => "",
            })
            .collect()
    }

    fn words(&self) -> String {
        self.flow.state().words(&self.flow.waits())
    }
}

fn run(name: &str) -> Run {
    Run { name: name.into(), command: format!("do {name}"), ..Run::default() }
}

fn exit(code: i32, output: &str) -> Outcome {
    Outcome { exit_code: Some(code), output: output.into(), ..Outcome::default() }
}

fn lost(not_started: bool) -> Outcome {
    Outcome { state: RunState::Lost, not_started, ..Outcome::default() }
}

#[test]
fn a_retry_has_a_key_of_its_own_and_a_replay_has_not() {
    let mut world = World::start(None);
    world.asks(vec![Command::Run(Run { retries: 2, backoff_ms: 100, ..run("bake") })]);
    assert_eq!(world.keys(), ["flow/F-1/a1/0/0"]);
    assert_eq!(Flow::replay("F-1", &world.history).resume(), world.flow.resume(), "a restart derives the same");
    world.over(0, 0, exit(7, ""));
    let timer = world.effects.last().cloned();
    assert!(matches!(timer, Some(Effect::Timer { n: 0, fires: Fires::Attempt(1), .. })), "{timer:?}");
    world.change(|flow, now| flow.fire(0, Fires::Attempt(1), now));
    assert_eq!(world.keys(), ["flow/F-1/a1/0/0", "flow/F-1/a1/0/1"]);
    world.over(0, 0, exit(0, "late, of the attempt before"));
    assert_eq!(world.flow.waits().len(), 1, "an old attempt's outcome changes nothing");
    world.over(0, 1, exit(7, ""));
    world.change(|flow, now| flow.fire(0, Fires::Attempt(2), now));
    world.over(0, 2, exit(7, ""));
    assert!(matches!(world.history.last().unwrap().event, Event::Done { ok: false, .. }), "two retries and no more");
}

#[test]
fn a_lost_step_is_never_run_again_unasked() {
    let mut world = World::start(None);
    world.asks(vec![Command::Run(Run { retries: 5, ..run("pay") })]);
    world.over(0, 0, lost(true));
    assert_eq!(world.keys().len(), 2, "nothing of it had started");
    world.over(0, 1, lost(false));
    assert_eq!((world.keys().len(), world.words().as_str()), (2, "STUCK(pay)"));
    assert!(Flow::replay("F-1", &world.history).resume().is_empty(), "not after a restart either");
    world.change(|flow, now| flow.retry(&Verdict::Done(json!({"output": "PAID"})), "human:ann", now).unwrap());
    assert!(matches!(&world.history.last().unwrap().event, Event::Done { ok: true, .. }));

    let mut again = World::start(None);
    again.asks(vec![Command::Run(Run { on_lost: OnLost::Again, ..run("look") })]);
    again.over(0, 0, lost(false));
    assert_eq!(again.keys().len(), 2, "the step says that it may run twice");
    let mut fail = World::start(None);
    fail.asks(vec![Command::Run(Run { on_lost: OnLost::Fail, ..run("look") })]);
    fail.over(0, 0, lost(false));
    assert!(matches!(fail.history.last().unwrap().event, Event::Done { ok: false, .. }));
}

#[test]
fn code_that_differs_is_blocked_and_goes_on_once_it_is_mended() {
    let mut world = World::start(None);
    let seq = world.flow.seq;
    world.change(|flow, now| flow.decide(seq, vec![(3, Command::Run(run("bake")))], now).unwrap());
    assert!(matches!(world.flow.state(), State::Blocked { why } if why.contains("step 3 (bake) where step 0 is next")));
    let seq = world.flow.seq;
    assert_eq!(world.flow.decide(seq, vec![], 0), Err(Refusal::Moved), "a blocked flow decides nothing");
    world.change(|flow, now| flow.signal("go", json!(1), "", "human:ann", now).unwrap());
    assert!(
        !world.flow.wants && world.flow.resume().is_empty(),
        "whatever comes, nobody looks at it before it is mended"
    );
    world.change(|flow, now| flow.retry(&Verdict::Again, "human:ann", now).unwrap());
    world.asks(vec![Command::Run(run("bake"))]);
    assert_eq!(world.words(), "WAITING_FOR(bake)");
    let (was, is) = (Command::Run(run("bake")), Command::Run(run("burn")));
    assert!(was.differs(&is).unwrap().contains("burn") && was.differs(&was).is_none());
}

#[test]
fn a_decision_on_an_old_history_is_refused() {
    let mut world = World::start(None);
    world.asks(vec![Command::Signal { name: "go".into(), timeout_ms: None }]);
    let seq = world.flow.seq;
    world.change(|flow, now| flow.signal("go", json!(1), "", "human:ann", now).unwrap());
    assert_eq!(world.flow.decide(seq, vec![], 0), Err(Refusal::Moved));
}

#[test]
fn a_signal_that_comes_early_is_kept_and_one_that_comes_twice_counts_once() {
    let mut world = World::start(None);
    for _ in 0..2 {
        world.change(|flow, now| flow.signal("go", json!("yes"), "id1", "human:ann", now).unwrap());
    }
    world.asks(vec![Command::Signal { name: "go".into(), timeout_ms: None }]);
    assert!(world.flow.wants, "it was there already");
    world.asks(vec![Command::Signal { name: "go".into(), timeout_ms: Some(50) }]);
    assert_eq!(world.words(), "WAITING_FOR(go)", "the same one does not count again");
    world.change(|flow, now| flow.fire(1, Fires::Over, now));
    assert!(matches!(&world.history.last().unwrap().event, Event::Done { ok: false, .. }));
}

#[test]
fn ten_thousand_signals_wait_and_no_more() {
    let mut world = World::start(None);
    for n in 0..holdfast_flow::MAIL_MAX {
        world.change(|flow, now| flow.signal("go", json!(n), "", "human:ann", now).unwrap());
    }
    assert!(matches!(world.flow.signal("go", json!(1), "", "human:ann", 0), Err(Refusal::TooMany(_))));
}

#[test]
fn a_flow_that_fails_undoes_what_was_done_the_last_first() {
    let mut world = World::start(None);
    let step = |name: &str| Command::Run(Run { undo: Some(format!("undo {name} {{{{ output }}}}")), ..run(name) });
    world.asks(vec![step("take")]);
    world.over(0, 0, exit(0, "ORDER 1\n"));
    world.asks(vec![step("bake")]);
    world.over(1, 0, exit(0, "PIZZA"));
    world.asks(vec![step("box")]);
    world.over(2, 0, exit(1, ""));
    world.asks(vec![Command::End { ok: false, value: json!("no box") }]);
    assert_eq!(world.words(), "UNDOING(undo bake)");
    world.over(3, 0, exit(0, ""));
    assert_eq!(world.words(), "UNDOING(undo take)");
    let last = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::Start { run, .. } => Some(run.command.clone()),
        _ => None,
    });
    assert_eq!(last.as_deref(), Some("undo take 'ORDER 1'"));
    world.over(4, 0, exit(0, ""));
    assert_eq!(world.flow.state(), State::Failed { value: json!("no box") });
}

#[test]
fn an_undo_that_fails_stays_until_somebody_decides() {
    let mut world = World::start(None);
    world.asks(vec![Command::Run(Run { undo: Some("undo".into()), ..run("take") })]);
    world.over(0, 0, exit(0, ""));
    world.asks(vec![Command::End { ok: false, value: json!("failed") }]);
    for attempt in 0..4 {
        world.over(1, attempt, exit(1, ""));
    }
    assert_eq!(world.words(), "STUCK(undo take)");
    world.change(|flow, now| flow.retry(&Verdict::Again, "human:ann", now).unwrap());
    world.over(1, 4, exit(0, ""));
    assert!(matches!(world.flow.state(), State::Failed { .. }));
}

#[test]
fn a_cancelled_flow_stops_what_runs_and_undoes_what_was_done() {
    let mut world = World::start(None);
    world.asks(vec![Command::Run(Run { undo: Some("give back".into()), ..run("take") })]);
    world.over(0, 0, exit(0, ""));
    world.asks(vec![
        Command::Run(run("bake")),
        Command::Sleep { name: "Timer".into(), ms: 5 },
        Command::Ask { name: "Ask".into(), text: "sure?".into(), options: vec![], expires_ms: None },
    ]);
    world.change(|flow, now| flow.cancel("no money", "human:ann", now).unwrap());
    assert!(world.effects.contains(&Effect::Stop { n: 1, key: "flow/F-1/a1/1/0".into() }));
    assert_eq!(Flow::replay("F-1", &world.history).resume(), [Effect::Stop { n: 1, key: "flow/F-1/a1/1/0".into() }]);
    assert_eq!(world.flow.cancel("", "human:ann", 0), Err(Refusal::Ended), "once");
    world.over(1, 0, Outcome { state: RunState::Cancelled, ..Outcome::default() });
    assert_eq!(world.words(), "UNDOING(undo take)");
    world.over(4, 0, exit(0, ""));
    assert_eq!(world.flow.state(), State::Cancelled { value: json!("cancelled by human:ann: no money") });
}

#[test]
fn a_question_is_answered_with_one_of_its_options() {
    let mut world = World::start(None);
    let (name, text, options) = ("Ask".into(), "Deliver?".into(), vec!["yes".into(), "no".into()]);
    world.asks(vec![Command::Ask { name, text, options, expires_ms: None }]);
    assert!(matches!(world.flow.answer(None, "maybe", "human:ann", 0), Err(Refusal::NoOption(_))));
    world.change(|flow, now| flow.answer(None, "yes", "human:ann", now).unwrap());
    assert_eq!(world.flow.answer(None, "yes", "human:ann", 0), Err(Refusal::NoQuestion));
}

#[test]
fn a_flow_that_is_tried_out_waits_for_no_timer() {
    let text = r#"{"event": "started", "name": "F", "input": null, "code": "", "by": "human:ann", "nonce": "a1"}"#;
    let mut started: Value = serde_json::from_str(text).unwrap();
    for (skip, ms) in [(false, 432_000_000), (true, 0)] {
        started["skip_timers"] = skip.into();
        let mut flow = Flow::new("F-1");
        flow.start(serde_json::from_value(started.clone()).unwrap(), 10);
        flow.decide(1, vec![(0, Command::Sleep { name: "Timer".into(), ms: 432_000_000 })], 20).unwrap();
        let due = holdfast_flow::Due::After { since_ms: 20, ms };
        assert_eq!(flow.resume(), [Effect::Timer { n: 0, fires: Fires::Over, due }]);
    }
}

#[test]
fn a_wait_is_asked_again_until_it_came_and_ends_with_its_timeout() {
    let wait = |timeout_ms| {
        let (name, session) = ("Up".into(), "web".into());
        Command::Wait { name, session, until: WaitFor::Port(3000), timeout_ms }
    };
    let watch = Effect::Watch { n: 0, session: "web".into(), until: WaitFor::Port(3000) };
    let mut world = World::start(None);
    world.asks(vec![wait(None)]);
    world.change(|flow, now| flow.watched(0, None, now));
    assert_eq!(world.effects.iter().filter(|effect| **effect == watch).count(), 2, "nothing came so far");
    assert_eq!(Flow::replay("F-1", &world.history).resume(), [watch], "a restart watches too");
    world.change(|flow, now| flow.watched(0, Some((true, json!({"exit_code": 0}))), now));
    assert!(matches!(world.history.last().unwrap().event, Event::Done { n: 0, ok: true, .. }));
    world.asks(vec![wait(Some(50))]);
    world.change(|flow, now| flow.fire(1, Fires::Over, now));
    assert!(matches!(world.history.last().unwrap().event, Event::Done { n: 1, ok: false, .. }));
    let seq = world.flow.seq;
    world.change(|flow, now| flow.watched(1, Some((true, Value::Null)), now));
    assert_eq!(world.flow.seq, seq, "what comes too late changes nothing");
}

#[test]
fn commands_have_bounds_and_do_not_play_the_engine() {
    let long = "x".repeat(holdfast_flow::VALUE_BYTES_MAX + 1);
    for bad in [
        Command::Run(Run { undoes: Some(1), ..run("a") }),
        Command::Run(Run { command: long.clone(), ..run("a") }),
        Command::Run(run(&"n".repeat(65))),
        Command::Run(run("a\x1b[2J")),
        Command::Step { name: "s".into(), ok: true, value: Value::String(long) },
        Command::Sleep { name: String::new(), ms: 1 },
    ] {
        let mut world = World::start(None);
        world.asks(vec![bad.clone()]);
        assert!(matches!(world.flow.state(), State::Blocked { .. }), "{bad:?}");
    }
}

const PIZZA: &str = "flow: F
steps:
  - run: Take
    command: take {{ input }}
    undo: untake {{ output }}
  - all:
      - run: Bake
        command: bake {{ Take }}
        retries: 2
        undo: unbake
      - run: Box
        command: box
      - sleep: 5s
  - race:
      - signal: manager
      - ask: Deliver?
        options: [yes, no]
        name: Deliver
  - wait: oven
    for: idle
    name: Cold
    timeout: 1h
  - run: Go
    command: go {{ Bake }} {{ flow }}
";

/// A source of chance that says how it can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Something happens to what a flow waits for.
fn happens(world: &mut World, chance: &mut Chance, one: &Waits) {
    let attempt = one.attempt - 1;
    match (one.kind.as_str(), chance.below(12)) {
        (_, 0) => {
            let cancelled = world.flow.clone().cancel("", "human:ann", 0).is_ok();
            if cancelled && chance.below(4) == 0 {
                world.change(|flow, now| flow.cancel("", "human:ann", now).unwrap());
            }
        }
        ("run", _) if one.stuck.is_some() => {
            let verdict = [Verdict::Again, Verdict::Failed, Verdict::Done(json!({"output": "x"}))];
            let verdict = verdict[chance.below(3) as usize].clone();
            world.change(|flow, now| flow.retry(&verdict, "human:ann", now).unwrap());
        }
        ("run", 1) => world.over(one.n, attempt, lost(chance.below(2) == 0)),
        ("run", 2 | 3) => world.over(one.n, attempt, exit(1, "")),
        ("run", 4) => world.change(|flow, now| flow.fire(one.n, Fires::Attempt(attempt), now)),
        ("run", _) => world.over(one.n, attempt, exit(0, "OUT")),
        ("ask", 1) => world.change(|flow, now| flow.fire(one.n, Fires::Over, now)),
        ("ask", _) => world.change(|flow, now| flow.answer(Some(one.n), "yes", "human:ann", now).unwrap()),
        ("wait", 1) => world.change(|flow, now| flow.watched(one.n, None, now)),
        ("wait", 2) => world.change(|flow, now| flow.watched(one.n, Some((false, json!({"why": "x"}))), now)),
        ("wait", 3) => world.change(|flow, now| flow.fire(one.n, Fires::Over, now)),
        ("wait", _) => world.change(|flow, now| flow.watched(one.n, Some((true, Value::Null)), now)),
        ("signal", _) => world.change(|flow, now| flow.signal("manager", json!("yes"), "", "human:ann", now).unwrap()),
        _ => world.change(|flow, now| flow.fire(one.n, Fires::Over, now)),
    }
}

#[test]
fn replaying_any_prefix_of_any_life_gives_the_same_state_effects_and_commands() {
    let (mut ended, mut undone, mut failed, mut rested) = (0, 0, 0, 0);
    for seed in 1..400u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut world = World::start(Some(PIZZA));
        // The state after each event, as it was when it was decided.
        let mut steps = 0;
        while !world.flow.is_over() && steps < 200 {
            steps += 1;
            let mut replayed = Flow::replay("F-1", &world.history);
            // A look that asked for nothing leaves no trace: it is looked at once more, and asks for nothing again.
            if replayed.wants && !world.flow.wants {
                let all = yaml::decide(world.definition.as_ref().unwrap(), "F-1", &world.history);
                assert_eq!(all.len(), world.asked as usize, "seed {seed}, step {steps}");
                replayed.wants = false;
            }
            assert_eq!(replayed, world.flow, "seed {seed}, step {steps}");
            assert_eq!(replayed.resume(), world.flow.resume(), "seed {seed}, step {steps}");
            if let Some(wakes) = world.flow.at_rest() {
                let timers = wakes.iter().map(|one| Effect::Timer { n: one.n, fires: one.fires, due: one.due });
                assert!(timers.eq(world.flow.resume()), "seed {seed}, step {steps}: a flow at rest needs timers alone");
                rested += 1;
            }
            let waits = world.flow.waits();
            let Some(one) = waits.get(chance.below(waits.len().max(1) as u64) as usize).cloned() else { break };
            happens(&mut world, &mut chance, &one);
        }
        assert!(world.flow.is_over(), "seed {seed}: {}", world.words());
        let definition = yaml::parse(PIZZA).unwrap();
        let all = yaml::decide(&definition, "F-1", &world.history);
        let mut keys = std::collections::BTreeSet::new();
        for end in 1..=world.history.len() {
            let prefix = &world.history[..end];
            let commands = yaml::decide(&definition, "F-1", prefix);
            let known = commands.len().min(all.len());
            // The end that a prefix decides on is there as long as nobody cancelled the flow.
            for (n, (was, is)) in commands[..known].iter().zip(&all).enumerate() {
                let is_end = matches!(was, Command::End { .. });
                assert!(is_end || was.differs(is).is_none(), "seed {seed}, event {end}, command {n}");
            }
            let json = serde_json::to_string(prefix).unwrap();
            let read: Vec<Recorded> = serde_json::from_str(&json).unwrap();
            assert_eq!(read, prefix, "seed {seed}: a history reads back");
            for effect in Flow::replay("F-1", prefix).resume() {
                if let Effect::Start { key, .. } = effect {
                    keys.insert(key);
                }
            }
        }
        for key in world.keys() {
            assert!(keys.contains(key) || world.flow.is_over(), "seed {seed}: {key}");
        }
        ended += 1;
        undone +=
            usize::from(world.history.iter().any(
                |one| matches!(&one.event, Event::Asked { command: Command::Run(run), .. } if run.undoes.is_some()),
            ));
        failed += usize::from(!matches!(world.flow.state(), State::Completed { .. }));
    }
    assert!(
        ended > 300 && undone > 20 && failed > 20 && failed < ended && rested > 300,
        "{ended} {undone} {failed} {rested}"
    );
}

#[test]
fn fifty_thousand_events_are_replayed() {
    let mut world = World::start(None);
    for _ in 0..16_000 {
        world.asks(vec![Command::Step { name: "count".into(), ok: true, value: json!(1) }, Command::Run(run("x"))]);
        world.flow.wants = false;
        let n = world.flow.waits()[0].n;
        world.over(n, 0, exit(0, ""));
        if world.history.len() > 50_000 {
            break;
        }
    }
    assert!(world.history.len() > 50_000);
    assert_eq!(Flow::replay("F-1", &world.history).resume(), world.flow.resume());
}
