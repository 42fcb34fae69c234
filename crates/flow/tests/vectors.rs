//! The histories that workers of all languages replay are what this core records for the commands they answer with.
#![allow(clippy::unwrap_used)] // a test's failure is its message

use holdfast_flow::{Command, Event, Flow, Recorded};
use serde_json::Value;

const VECTORS: &str = include_str!("../../../spec/vectors/flows.json");

#[test]
fn what_a_worker_answers_is_recorded_as_the_next_turn_reads_it() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let mut compared = 0;
    for story in vectors["stories"].as_array().unwrap() {
        let claim = &story["claim"];
        let mut history: Vec<Recorded> = Vec::new();
        let mut expected: Vec<Event> = Vec::new();
        for turn in story["turns"].as_array().unwrap() {
            let events: Vec<Recorded> = serde_json::from_value(turn["events"].clone()).unwrap();
            let begins: Vec<Event> = events.iter().take(expected.len()).map(|one| one.event.clone()).collect();
            assert_eq!(begins, expected, "{claim}");
            compared += expected.len();
            history.extend(events);
            expected.clear();
            let Some(commands) = turn["answer"].get("commands") else { continue };
            let read: Vec<(u32, Command)> = serde_json::from_value(commands.clone()).unwrap();
            assert_eq!(&serde_json::to_value(&read).unwrap(), commands, "{claim}: in the one spelling");
            let mut flow = Flow::replay("F-1", &history);
            let decided = flow.decide(flow.seq, read, 2_000).unwrap();
            let is_over = |event: &Event| matches!(event, Event::Ending { .. } | Event::Ended { .. });
            expected = decided.events.into_iter().take_while(|event| !is_over(event)).collect();
            assert!(!expected.iter().any(|event| matches!(event, Event::Blocked { .. })), "{claim}: {expected:?}");
        }
    }
    assert!(compared > 15, "{compared}");
}
