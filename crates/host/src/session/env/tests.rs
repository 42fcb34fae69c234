use super::*;
use crate::journal::Wrote;
use holdfast_types::{ActorId, Offset};
use holdfast_wire::runs::{RunId, RunState};

fn actor(name: &str) -> Actor {
    Actor { id: ActorId([name.len() as u8; 32]), handle: name.parse().expect("a handle") }
}

fn run(number: u128, typed_at: Offset, to: Offset) -> Run {
    let params = holdfast_wire::runs::RunStartParams {
        command: "make".into(),
        key: Some(format!("k{number}")),
        ..Default::default()
    };
    Run {
        id: RunId::from_random_bits(number),
        token: "00".into(),
        state: RunState::Ended,
        to: Some(to),
        ..super::super::begun(&params, &actor("agent:bot"), typed_at)
    }
}

#[test]
fn a_change_is_the_runs_that_was_the_command_or_else_the_last_writers() {
    let wrote = |seq, name: &str, at, is_run| Some(Wrote { seq, actor: Some(actor(name)), at, is_run });
    let runs = [run(1, 100, 200), run(2, 300, 400)];
    // Where the command started, where the prompt is, the last that wrote; who it was, which act, which run.
    let cases = [
        (Some(110), 210, wrote(5, "agent:bot", 99, true), "agent:bot 5 k1"),
        (Some(310), 410, wrote(7, "agent:bot", 300, true), "agent:bot 7 k2"),
        // Somebody typed after the run.
        (Some(250), 260, wrote(6, "human:ann", 240, false), "human:ann 6 -"),
        // The run's own act is not in the journal any more.
        (Some(110), 210, None, "agent:bot - k1"),
        // The start was not told.
        (None, 210, wrote(5, "agent:bot", 99, true), "agent:bot 5 k1"),
        (None, 260, wrote(6, "human:ann", 240, false), "human:ann 6 -"),
        (None, 50, wrote(1, "human:ann", 0, false), "human:ann 1 -"),
        (Some(40), 50, None, "- - -"),
        (Some(250), 260, Some(Wrote { seq: 6, actor: None, at: 240, is_run: false }), "- 6 -"),
    ];
    for (started_at, prompt_at, act, expected) in cases {
        let written = Written { file: 0, prompt_at, started_at, cwd: None };
        let by = changed_by(&written, run_before(runs.iter(), &written), act, 9);
        let known = match (&by.run, &by.actor) {
            (Some(_), _) => Known::Run,
            (None, Some(_)) => Known::Time,
            (None, None) => Known::Unknown,
        };
        let or_none = |text: Option<String>| text.unwrap_or("-".into());
        let told = [by.actor.map(|a| a.handle.to_string()), by.act.map(|n| n.to_string()), by.key].map(or_none);
        assert_eq!((told.join(" "), by.known, by.at_ms), (expected.to_owned(), known, 9), "{written:?}");
    }
}
