//! Children, flows that continue as new, and histories that are taken back to a step.
#![allow(clippy::unwrap_used)] // a test's failure is its message

use holdfast_flow::{
    Command, Decided, Effect, Event, Fires, Flow, Lineage, Outcome, Recorded, Refusal, Rewind, Run, RunState, State,
};
use serde_json::{Value, json};

/// A flow and its histories.
struct World {
    flow: Flow,
    history: Vec<Recorded>,
    older: Vec<Vec<Recorded>>,
    effects: Vec<Effect>,
    now_ms: u64,
}

impl World {
    fn start() -> World {
        let flow = Flow::new("F-1");
        let mut world = World { flow, history: Vec::new(), older: Vec::new(), effects: Vec::new(), now_ms: 1_000 };
        let started = Event::Started {
            name: "F".into(),
            input: json!(1),
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
        let at_ms = self.now_ms;
        self.history.extend(decided.events.into_iter().map(|event| Recorded { at_ms, event }));
        if !decided.next.is_empty() {
            self.older.push(std::mem::replace(&mut self.history, decided.next));
        }
        self.effects = decided.effects;
        let replayed = Flow::replay("F-1", &self.history);
        assert_eq!(replayed.resume(), self.flow.resume(), "a restart derives the same");
        assert_eq!((replayed.generation, replayed.seq), (self.flow.generation, self.flow.seq));
        let json = serde_json::to_string(&self.history).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Recorded>>(&json).unwrap(), self.history, "a history reads back");
    }

    fn asks(&mut self, n: u32, commands: Vec<Command>) {
        let seq = self.flow.seq;
        self.change(|flow, now| flow.decide(seq, (n..).zip(commands).collect(), now).unwrap());
    }

    fn ends(&mut self, n: u32, code: i32) {
        let outcome = Outcome { exit_code: Some(code), output: "OUT".into(), ..Outcome::default() };
        self.change(|flow, now| flow.over(n, 0, outcome, now));
    }

    fn rewind(&mut self, to: &str, again: bool) -> Result<(), Refusal> {
        let asked = Rewind { to: to.into(), again, by: "human:bob".into() };
        let history = self.history.clone();
        let mut copy = self.flow.clone();
        copy.rewind(&history, &asked, self.now_ms)?;
        self.change(|flow, now| flow.rewind(&history, &asked, now).unwrap());
        Ok(())
    }

    fn words(&self) -> String {
        self.flow.state().words(&self.flow.waits())
    }
}

fn run(name: &str, undo: Option<&str>) -> Command {
    let undo = undo.map(str::to_owned);
    Command::Run(Run { name: name.into(), command: format!("do {name}"), undo, ..Run::default() })
}

fn child(name: &str) -> Command {
    Command::Child { name: name.into(), flow: "Bake".into(), input: json!("rye") }
}

fn timer() -> Command {
    Command::Sleep { name: "Timer".into(), ms: 5 }
}

#[test]
fn a_child_has_an_id_of_its_step_and_its_end_is_the_steps_outcome() {
    let mut world = World::start();
    world.asks(0, vec![child("First"), child("Second")]);
    let starts = |n: u32, id: &str| Effect::Child { n, id: id.into(), flow: "Bake".into(), input: json!("rye") };
    assert_eq!(world.effects, [starts(0, "F-1.1"), starts(1, "F-1.2")]);
    let ids: Vec<_> = world.flow.children().map(|(n, one)| (n, one.id.as_str())).collect();
    assert_eq!(ids, [(0, "F-1.1"), (1, "F-1.2")]);
    world.change(|flow, now| flow.child_over(0, "F-1.1", true, json!({"loaves": 2}), now));
    assert!(
        matches!(&world.history.last().unwrap().event, Event::Done { n: 0, ok: true, value } if value["loaves"] == 2)
    );
    let seq = world.flow.seq;
    world.change(|flow, now| flow.child_over(0, "F-1.1", true, Value::Null, now));
    world.change(|flow, now| flow.child_over(1, "F-1.7", true, Value::Null, now));
    assert_eq!(world.flow.seq, seq, "an end counts once, and only of the step's own child");
    assert_eq!(world.flow.waits()[0].flow.as_deref(), Some("F-1.2"));
}

#[test]
fn a_cancelled_flow_cancels_its_children_and_undoes_only_once_they_have_ended() {
    let mut world = World::start();
    world.asks(0, vec![run("take", Some("untake"))]);
    world.ends(0, 0);
    world.asks(1, vec![child("Bake")]);
    world.change(|flow, now| flow.cancel("", "human:ann", now).unwrap());
    assert_eq!(world.effects, [Effect::StopChild { n: 1, id: "F-1.2".into() }]);
    assert_eq!(world.words(), "UNDOING(Bake)");
    world.change(|flow, now| flow.child_over(1, "F-1.2", false, json!({"state": "cancelled"}), now));
    assert_eq!(world.words(), "UNDOING(undo take)");
    world.ends(2, 0);
    assert_eq!(world.words(), "CANCELLED");
}

#[test]
fn a_child_whose_id_would_be_too_long_blocks() {
    let mut flow = Flow::new(&"x".repeat(63));
    let started = Event::Started {
        name: "F".into(),
        input: Value::Null,
        code: String::new(),
        by: "human:ann".into(),
        nonce: "a1".into(),
        cwd: None,
        skip_timers: false,
        lineage: Lineage::default(),
    };
    flow.start(started, 1);
    flow.decide(1, vec![(0, child("Bake"))], 2).unwrap();
    assert!(matches!(flow.state(), State::Blocked { why } if why.contains("too long")));
}

#[test]
fn a_flow_that_continues_has_a_new_history_other_keys_and_the_signals_that_no_step_took() {
    let mut world = World::start();
    world.asks(0, vec![run("take", Some("untake")), Command::Signal { name: "go".into(), timeout_ms: None }]);
    for id in ["s1", "s2"] {
        world.change(|flow, now| flow.signal("go", json!(id), id, "human:ann", now).unwrap());
    }
    world.ends(0, 0);
    world.asks(2, vec![timer()]);
    world.asks(3, vec![Command::Continue { input: json!(2) }]);
    assert_eq!((world.flow.generation, world.older.len(), world.words().as_str()), (2, 1, "RUNNING"));
    assert!(matches!(world.older[0].last().unwrap().event, Event::Continued { .. }));
    assert_eq!(Flow::replay("F-1", &world.older[0]).state(), State::Continued);
    let seq = world.flow.seq;
    for id in ["s1", "s2"] {
        world.change(|flow, now| flow.signal("go", json!("again"), id, "human:ann", now).unwrap());
    }
    assert_eq!(world.flow.seq, seq, "the same signal counts once in the next history too");
    world.asks(0, vec![Command::Signal { name: "go".into(), timeout_ms: None }, run("bake", None)]);
    assert!(matches!(&world.history.last().unwrap().event, Event::Done { n: 0, value, .. } if value == "s2"));
    assert!(
        matches!(&world.effects[0], Effect::Start { key, .. } if key == "flow/F-1/a1.2/1/0"),
        "{:?}",
        world.effects
    );
    // What was done in the history before is not undone.
    world.ends(1, 1);
    world.asks(2, vec![Command::End { ok: false, value: json!("x") }]);
    assert_eq!(world.words(), "FAILED");
}

#[test]
fn a_flow_does_not_continue_while_something_of_it_runs() {
    let mut world = World::start();
    world.asks(0, vec![run("take", None)]);
    let seq = world.flow.seq;
    world.change(|flow, now| flow.decide(seq, vec![(1, Command::Continue { input: json!(2) })], now).unwrap());
    assert!(matches!(world.flow.state(), State::Blocked { why } if why.contains("step 1 (take) is still open")));
}

#[test]
fn a_rewound_flow_asks_for_the_step_anew_and_keeps_what_was_before() {
    let mut world = World::start();
    world.asks(0, vec![run("take", None), Command::Signal { name: "go".into(), timeout_ms: None }]);
    world.change(|flow, now| flow.signal("go", json!("yes"), "s1", "human:ann", now).unwrap());
    world.ends(0, 0);
    world.asks(2, vec![timer()]);
    world.change(|flow, now| flow.fire(2, Fires::Over, now));
    world.asks(3, vec![run("bake", None)]);
    assert_eq!(world.rewind("Timer", false), Err(Refusal::StillOn("bake".into())));
    world.ends(3, 1);
    assert_eq!(world.rewind("9", false), Err(Refusal::NoStep("9".into())));
    assert_eq!(world.rewind("Timer", false), Err(Refusal::Twice("bake".into())));
    world.rewind("Timer", true).unwrap();
    assert_eq!((world.flow.generation, world.older.len()), (2, 1));
    assert!(matches!(world.history.last().unwrap().event, Event::Rewound { to: 2, .. }));
    let old = Fires::Over;
    let seq = world.flow.seq;
    world.change(|flow, now| flow.fire(2, old, now));
    assert_eq!(world.flow.seq, seq, "nothing is open");
    world.asks(2, vec![timer()]);
    world.change(|flow, now| flow.fire(2, Fires::Over, now));
    world.asks(3, vec![run("bake", None)]);
    assert!(
        matches!(&world.effects[0], Effect::Start { key, .. } if key == "flow/F-1/a1.2/3/0"),
        "{:?}",
        world.effects
    );
    world.ends(3, 0);
    // A signal that a step took back is there again.
    world.rewind("go", true).unwrap();
    assert_eq!(world.flow.generation, 3);
    world.asks(1, vec![Command::Signal { name: "go".into(), timeout_ms: None }]);
    assert!(matches!(&world.history.last().unwrap().event, Event::Done { n: 1, value, .. } if value == "yes"));
}

#[test]
fn a_step_that_still_runs_before_the_one_that_is_taken_back_keeps_its_key() {
    let mut world = World::start();
    world.asks(0, vec![run("oven", None), timer()]);
    world.change(|flow, now| flow.fire(1, Fires::Over, now));
    world.rewind("Timer", false).unwrap();
    assert!(matches!(&world.effects[0], Effect::Start { n: 0, key, .. } if key == "flow/F-1/a1/0/0"));
    assert_eq!(world.flow.generation_of(0), Some(1));
}

#[test]
fn what_was_undone_is_done_again_without_asking_and_nothing_behind_it_is_kept() {
    let mut world = World::start();
    world.asks(0, vec![run("take", Some("untake"))]);
    world.ends(0, 0);
    world.asks(1, vec![run("bake", None)]);
    let refused = Outcome { state: RunState::Refused, ..Outcome::default() };
    world.change(|flow, now| flow.over(1, 0, refused, now));
    world.asks(2, vec![Command::End { ok: false, value: json!("no oven") }]);
    world.ends(2, 0);
    assert_eq!(world.words(), "FAILED");
    assert_eq!(world.rewind("bake", true), Err(Refusal::Undone("take".into(), 1)));
    assert_eq!(world.rewind("undo take", true), Err(Refusal::NoStep("undo take".into())));
    // It was undone, and the other one never ran: nothing happens twice.
    world.rewind("1", false).unwrap();
    assert_eq!(world.words(), "RUNNING");
    world.asks(0, vec![run("take", Some("untake"))]);
    assert!(matches!(&world.effects[0], Effect::Start { key, .. } if key == "flow/F-1/a1.2/0/0"));
}

#[test]
fn values_of_time_and_chance_are_no_effects_and_other_steps_are() {
    let step = |name: &str| Command::Step { name: name.into(), ok: true, value: json!(7) };
    let mut world = World::start();
    world.asks(0, vec![step("now"), step("version oven"), step("uuid"), timer()]);
    world.change(|flow, now| flow.fire(3, Fires::Over, now));
    world.rewind("1", false).unwrap();
    world.asks(0, vec![step("pay"), timer()]);
    assert_eq!(world.rewind("1", false), Err(Refusal::Twice("pay".into())));
}
