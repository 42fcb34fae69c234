use super::*;
use holdfast_wire::runs::RunState::{Cancelled, Ended, Lost, Running, Starting};

const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn run(number: u128, typed_at: Offset) -> Run {
    let actor =
        holdfast_types::Actor { id: holdfast_types::ActorId([7; 32]), handle: "agent:bot".parse().expect("a handle") };
    Run {
        id: RunId::from_random_bits(number),
        key: None,
        command: "make".into(),
        actor,
        act: Some(3),
        token: TOKEN.into(),
        state: Starting,
        exit_code: None,
        end: None,
        started_ms: 5,
        ended_ms: None,
        typed_at,
        from: typed_at,
        to: None,
        cwd_before: None,
        cwd_after: None,
        by_file: false,
        own: false,
        cancelled: false,
        shared: false,
    }
}

/// Tells `A2` (a prompt after status 2), `B`, `M` (more wanted), `C`, `C=` (with the token), `D1`, `D1=`, `/dir`, each ten bytes
/// further on, to a tracker at whose prompt a run was typed at 100.
fn play(tracker: &mut Tracker, script: &str) {
    for (at, word) in (11..).zip(script.split_whitespace()) {
        let (kind, rest) = word.split_at(1);
        let token = rest.ends_with('=').then_some(TOKEN);
        let number = rest.trim_end_matches('=').parse().ok();
        let mark = match kind {
            "A" => ShellMark::PromptStart { last: number, state: None, asks: false },
            "B" => ShellMark::PromptEnd,
            "M" => ShellMark::Continuation,
            "C" => ShellMark::CommandStart { token },
            "D" => ShellMark::CommandEnd { status: number, token },
            "/" => ShellMark::Cwd(word),
            other => panic!("{other}"),
        };
        tracker.told(at * 10, mark, at);
    }
}

fn typed() -> Tracker {
    let mut tracker = Tracker::default();
    tracker.told(90, ShellMark::PromptStart { last: None, state: None, asks: false }, 0);
    tracker.told(95, ShellMark::PromptEnd, 0);
    tracker.begin(run(1, 100));
    tracker
}

#[test]
fn a_run_ends_under_its_token_alone() {
    let cases = [
        ("", Starting, None, None),
        ("C=", Running, None, None),
        ("C= D0", Running, None, None),
        ("C= D0 /fake A0 B C D7", Running, None, None),
        ("C= D3=", Ended, Some(3), Some(RunEnd::Exact)),
        ("C= A0 B D3= D4=", Ended, Some(3), Some(RunEnd::Exact)),
        // An old bash reads the token at the end.
        ("C D3=", Ended, Some(3), Some(RunEnd::Exact)),
        ("D3=", Ended, Some(3), Some(RunEnd::Exact)),
        ("A2 B", Ended, Some(2), Some(RunEnd::NotStarted)),
        ("M", Starting, None, None),
        ("M A130 B", Ended, Some(130), Some(RunEnd::NotStarted)),
    ];
    for (script, state, code, end) in cases {
        let mut tracker = typed();
        play(&mut tracker, script);
        let run = tracker.runs().next().expect("it is there");
        assert_eq!((run.state, run.exit_code, run.end), (state, code, end), "{script}");
        assert_eq!(tracker.current().is_some(), !state.is_over(), "{script}");
        // All of it told again changes nothing.
        let before = run.clone();
        play(&mut tracker, script);
        assert_eq!(tracker.runs().next(), Some(&before), "{script}");
    }
}

#[test]
fn what_is_printed_lies_between_start_and_end() {
    let mut tracker = typed();
    play(&mut tracker, "C= C= D0= /after A0 B");
    let run = tracker.runs().next().expect("it is there").clone();
    let mark = format!("\x1b]133;D;0;hf={TOKEN}\x07").len() as u64;
    assert_eq!((run.from, run.to), (110, Some(130 - mark).max(Some(110))));
    assert_eq!(run.cwd_after.as_deref(), Some("/after"));
    assert_eq!(tracker.shell(), ShellState::Prompt { at: 160 });

    let mut tracker = Tracker::default();
    tracker.begin(Run { by_file: true, ..super::tests::run(1, 100) });
    play(&mut tracker, "C= C= C=");
    assert_eq!(tracker.current().map(|run| run.from), Some(120), "a file's text is shown once");
}

#[test]
fn a_run_is_settled_with_the_prompt_behind_it() {
    let mut tracker = typed();
    let id = tracker.current().expect("typed").id;
    for (script, unsettled, followed) in [("C=", false, true), ("C= D0=", true, true), ("C= D0= A0", false, false)] {
        play(&mut tracker, script);
        assert_eq!((tracker.is_unsettled(id), tracker.is_followed()), (unsettled, followed), "{script}");
    }
}

#[test]
fn marks_say_what_the_shell_does_while_a_run_is_watched() {
    let mut tracker = Tracker::default();
    tracker.begin(Run { token: String::new(), ..run(1, 100) });
    play(&mut tracker, "C D0 A0 B");
    let watched = tracker.current().expect("no mark ends it");
    assert_eq!((watched.state, watched.end), (Starting, None));
    assert!(matches!(tracker.shell(), ShellState::Prompt { .. }));
}

#[test]
fn a_sessions_end_is_its_runs_end() {
    let cases = [
        ("C=", Exit::Code(6), false, Ended, Some(6), RunEnd::Exact),
        ("C=", Exit::Signal(9), false, Ended, Some(137), RunEnd::Exact),
        ("C=", Exit::Code(6), true, Cancelled, Some(6), RunEnd::Exact),
        ("C=", Exit::Lost, false, Lost, None, RunEnd::Unknown),
        ("", Exit::Code(0), false, Ended, None, RunEnd::Unknown),
    ];
    for (script, exit, cancelled, state, code, end) in cases {
        let mut tracker = typed();
        let id = tracker.current().expect("typed").id;
        play(&mut tracker, script);
        if cancelled {
            tracker.cancel(id);
        }
        tracker.session_ended(exit, 200, 9);
        let run = tracker.get(id).expect("it is there");
        assert_eq!((run.state, run.exit_code, run.end), (state, code, Some(end)), "{script} {exit:?}");
    }
}

#[test]
fn a_line_is_empty_when_what_was_typed_last_was_executed() {
    use LastKey::{Enter, Interrupt, Other};
    use Line::{Empty, Ended, Unsure};
    // What was typed where, where a command started, and where a prompt came.
    type Case<'a> = (&'a [(Offset, LastKey)], Option<Offset>, Option<Offset>, Line);
    let cases: [Case<'_>; 12] = [
        (&[], None, None, Empty),
        (&[(50, Enter)], None, None, Unsure),
        (&[(50, Enter)], Some(60), None, Empty),
        // Enter on an empty line, or into a program.
        (&[(50, Enter)], None, Some(60), Ended),
        (&[(50, Enter)], Some(40), Some(60), Ended),
        (&[(50, Other)], None, Some(60), Unsure),
        // The beginning of the next line came with the last one.
        (&[(50, Other)], Some(60), None, Unsure),
        (&[(50, Enter), (70, Other)], Some(60), Some(65), Unsure),
        (&[(50, Enter), (60, Enter)], Some(60), Some(55), Unsure),
        // fish shows no other prompt where the line was empty.
        (&[(50, Interrupt)], None, None, Ended),
        (&[(50, Other), (50, Interrupt)], None, Some(60), Ended),
        (&[(50, Interrupt), (55, Other)], None, None, Unsure),
    ];
    for (typed, started, prompt, line) in cases {
        let mut tracker = Tracker::default();
        typed.iter().for_each(|(at, last)| tracker.typed(*at, *last));
        started.into_iter().for_each(|at| tracker.told(at, ShellMark::CommandStart { token: None }, 0));
        prompt
            .into_iter()
            .for_each(|at| tracker.told(at, ShellMark::PromptStart { last: None, state: None, asks: false }, 0));
        assert_eq!(tracker.line(), line, "{typed:?} {started:?} {prompt:?}");
    }
}

#[test]
fn only_the_newest_runs_are_remembered_and_every_change_is_to_be_saved_once() {
    let mut tracker = Tracker::default();
    for number in 0..(RUNS_MAX as u128 + 3) {
        tracker.begin(run(number, 100));
        play(&mut tracker, "C= D0=");
        assert_eq!(tracker.take_unsaved().len(), 1);
    }
    assert_eq!(tracker.runs().count(), RUNS_MAX);
    assert_eq!(tracker.get(RunId::from_random_bits(0)), None);
    assert!(tracker.take_unsaved().is_empty());
}

#[test]
fn an_end_nobody_saw_is_unknown_once_the_shell_is_back_at_its_prompt() {
    let mut tracker = Tracker::resume(vec![Run { state: Running, ..run(1, 100) }]);
    tracker.caught_up(true, 500, 9);
    assert!(tracker.current().is_some(), "nothing says that it is over");
    // Whatever was told of it is lost; the prompt is not.
    tracker.shell = ShellState::Prompt { at: 400 };
    tracker.caught_up(true, 500, 9);
    let run = tracker.runs().next().expect("it is there");
    assert_eq!((run.state, run.end), (Ended, Some(RunEnd::Unknown)));
}

#[test]
fn the_end_of_a_run_is_given_once_also_when_its_directory_is_told_later() {
    let mut tracker = typed();
    let id = tracker.current().expect("typed").id;
    play(&mut tracker, "C=");
    assert_eq!(tracker.take_over(), []);
    play(&mut tracker, "D0= /dir");
    let over = tracker.take_over();
    assert_eq!(over.iter().map(|run| (run.id, run.state, run.act)).collect::<Vec<_>>(), [(id, Ended, Some(3))]);
    play(&mut tracker, "/other A0 B");
    tracker.lose(id, true, 300, 9);
    tracker.session_ended(Exit::Lost, 300, 9);
    assert_eq!(tracker.take_over(), []);
}

#[test]
fn the_echo_of_a_command_is_never_its_output() {
    // Seen up to 500; the run was typed at 100, its marks come from 110 on.
    let cases = [
        ("", false, (100, 100)),
        ("M", false, (100, 100)),
        ("C=", false, (110, 500)),
        ("C", false, (110, 500)),
        ("C=", true, (110, 110)),
        ("C= C=", true, (120, 500)),
        // An old bash reads the token at the end.
        ("C C", true, (120, 500)),
        ("C= C= C= C", true, (120, 500)),
    ];
    for (script, by_file, range) in cases {
        let mut tracker = Tracker::default();
        tracker.begin(Run { by_file, ..run(1, 100) });
        play(&mut tracker, script);
        let current = tracker.current().expect("it is on");
        assert_eq!(current.range(500), range, "{script} {by_file}");
    }
    let watched = Run { token: String::new(), ..run(1, 100) };
    assert_eq!(watched.range(500), (100, 500), "where the shell does not tell, all there is");
}

#[test]
fn what_may_become_an_end_is_told_from_other_sequences() {
    let end = format!("\x1b]133;D;0;hf={TOKEN}");
    for length in 0..end.len() {
        assert!(may_tell_an_end(&end.as_bytes()[..length]), "{length}");
    }
    for other in ["\x1b[1", "\x1b]133;C", "\x1b]0;title", "\x1bP"] {
        assert!(!may_tell_an_end(other.as_bytes()), "{other:?}");
    }
}

#[test]
fn a_command_behind_a_flush_is_not_taken_for_the_run_whose_keys_it_may_have_dropped() {
    let flushed = |script: &str| {
        let mut tracker = typed();
        assert_eq!(tracker.flushed(), Some(RunId::from_random_bits(1)));
        play(&mut tracker, script);
        let run = tracker.get(RunId::from_random_bits(1)).expect("there").clone();
        (run.state, run.end, run.exit_code)
    };
    assert_eq!(flushed("C D0 A0 B"), (Lost, Some(RunEnd::Unknown), None), "a person's, or its own without its token");
    assert_eq!(flushed("C= D3="), (Ended, Some(RunEnd::Exact), Some(3)), "the shell had its token already");
    assert_eq!(flushed("C D3="), (Ended, Some(RunEnd::Exact), Some(3)), "as an old bash tells it");
    assert_eq!(flushed("A0 B").1, Some(RunEnd::NotStarted));
    assert_eq!(flushed("").0, Starting);
    let mut running = typed();
    play(&mut running, "C=");
    assert_eq!(running.flushed(), None, "it has started");
}
