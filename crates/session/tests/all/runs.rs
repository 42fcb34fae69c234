//! How a run comes into the shell: after a look at the prompt, and in an order that the next host can tell from what it finds.

use crate::world::{HOST, World, actor, policy};
use holdfast_abi::protocol::refused;
use holdfast_authority::{Ask, Authority, Ending};
use holdfast_screen::ShellMark;
use holdfast_session::{
    Busy, Came, Check, Core, Editor, Entering, Look, Next, NotEntered, Origin, Probed, Run, Seen, Sent, TakeUp,
    Tracker, Undecided,
};
use holdfast_types::{SessionId, Size};
use holdfast_wire::runs::{RunEnd, RunId, RunState};

const ICANON: u32 = 0o2;
/// The shell's process, as the test keeper says.
const SHELL: u32 = 0;

fn run() -> Run {
    Run {
        id: RunId::from_random_bits(1),
        key: Some("deploy".into()),
        command: "make".into(),
        actor: actor("agent:bot"),
        act: None,
        token: "ab12".into(),
        state: RunState::Starting,
        exit_code: None,
        end: None,
        started_ms: 5,
        ended_ms: None,
        typed_at: 0,
        from: 0,
        to: None,
        cwd_before: None,
        cwd_after: None,
        by_file: false,
        own: false,
        cancelled: false,
        shared: false,
    }
}

/// A session at whose shell a prompt waits, behind two bytes.
fn at_prompt() -> World {
    let mut world = World::new();
    world.out.output = b"$ ".to_vec();
    prompt(&mut world.core.runs);
    world
}

fn prompt(runs: &mut Tracker) {
    runs.told(1, ShellMark::PromptStart { last: None, state: None, asks: false }, 0);
    runs.told(2, ShellMark::PromptEnd, 0);
}

fn probed(foreground: u32, lflag: u32, unread: u32) -> Seen {
    Seen::Probed(Some(Probed { foreground, iflag: 0, oflag: 0, lflag, unread }))
}

fn check(world: &mut World, check: &mut Check, seen: Seen) -> Look {
    let now = world.now();
    world.core.check(&mut world.out, now, check, seen)
}

fn enter(world: &mut World, entering: &mut Entering, came: Came) -> Next {
    let now = world.now();
    world.core.enter(&mut world.out, now, entering, came)
}

fn decided(world: &mut World, has_hook: bool) -> Entering {
    let decided = world.ask("agent:bot", Ask::Run { key: "deploy".into(), command: "make".into() }).unwrap();
    Entering::new(&world.core, &decided, run(), b"make\r".to_vec(), None, has_hook)
}

#[test]
fn a_run_is_typed_behind_its_key_its_address_its_record_and_its_token() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, true);
    assert_eq!(enter(&mut world, &mut entering, Came::Decided), Next::TakeKey);
    assert_eq!(enter(&mut world, &mut entering, Came::KeyTaken), Next::KeepHook);
    assert!(world.out.kept.is_empty() && world.endings().is_empty(), "nothing of it is on disk but its key");
    let fence = world.core.fence();
    let next = enter(&mut world, &mut entering, Came::HookKept);
    assert_eq!(next, Next::Type { fence, bytes: b"make\r".to_vec() });
    assert_eq!(world.out.kept.iter().map(|run| run.state).collect::<Vec<_>>(), [RunState::Starting]);
    assert_eq!(world.out.token, "ab12");
    assert_eq!(world.endings(), [("run", &Ending::Done)], "from here on its own record tells what became of it");
    let sent = Came::Sent(Sent::Written { at: 2, fence });
    assert_eq!(enter(&mut world, &mut entering, sent), Next::Entered);
    assert!(world.out.freed.is_empty());
}

#[test]
fn a_key_that_is_anothers_leaves_nothing_and_frees_nothing() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    assert_eq!(enter(&mut world, &mut entering, Came::Failed), Next::NotEntered(NotEntered::Failed));
    assert!(world.out.kept.is_empty() && world.out.freed.is_empty());
    assert!(matches!(world.endings()[..], [("run", Ending::Failed { .. })]));
}

#[test]
fn what_was_not_typed_is_over_on_disk_before_its_key_is_free_and_has_no_token() {
    let stale = Sent::Refused(Undecided::Refused(holdfast_authority::Refusal::NotHolder));
    for sent in [stale, Sent::Full(refused::FULL)] {
        let mut world = at_prompt();
        let mut entering = decided(&mut world, false);
        enter(&mut world, &mut entering, Came::Decided);
        enter(&mut world, &mut entering, Came::KeyTaken);
        let next = enter(&mut world, &mut entering, Came::Sent(sent));
        assert!(matches!(next, Next::NotEntered(NotEntered::Refused(_) | NotEntered::Full(_))), "{next:?}");
        let last = world.out.kept.last().unwrap();
        assert_eq!((last.state, last.end), (RunState::Ended, Some(RunEnd::NotStarted)));
        assert_eq!((world.out.token.as_str(), &world.out.freed[..]), ("", &["deploy".to_owned()][..]));
        assert!(world.core.runs.current().is_none());
    }
}

#[test]
fn a_run_that_cannot_be_recorded_is_not_typed_and_its_key_is_free() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    world.out.full = true;
    let next = enter(&mut world, &mut entering, Came::KeyTaken);
    assert!(matches!(next, Next::NotEntered(NotEntered::Unrecorded(_))), "{next:?}");
    assert_eq!((world.out.token.as_str(), world.out.freed.len()), ("", 1));
    assert_eq!(world.typed(), []);
}

#[test]
fn a_run_whose_fate_the_keeper_took_along_counts_as_typed() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    enter(&mut world, &mut entering, Came::KeyTaken);
    assert_eq!(enter(&mut world, &mut entering, Came::Sent(Sent::Lost)), Next::Entered);
    assert!(world.core.runs.current().is_some() && world.out.freed.is_empty());
}

#[test]
fn a_run_whose_turn_ran_out_while_the_disk_took_its_key_is_typed_in_another_turn() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    let first = world.core.fence();
    world.pass(3_001);
    let next = enter(&mut world, &mut entering, Came::KeyTaken);
    let fence = world.core.fence();
    assert!(fence > first);
    assert_eq!(next, Next::Type { fence, bytes: b"make\r".to_vec() });
    assert_eq!(world.core.authority().state().turn().hold().unwrap().by, actor("agent:bot"));
    // Nor does it matter where the keeper is the slow one.
    world.pass(3_001);
    let refused = stale(&world);
    let next = enter(&mut world, &mut entering, refused);
    let last = world.core.fence();
    assert!(last > fence);
    assert_eq!(next, Next::Type { fence: last, bytes: b"make\r".to_vec() });
    assert_eq!(enter(&mut world, &mut entering, Came::Sent(Sent::Written { at: 2, fence: last })), Next::Entered);
    assert!(world.out.freed.is_empty() && world.out.kept.iter().all(|run| run.state == RunState::Starting));
}

#[test]
fn a_run_is_not_typed_in_another_turn_once_somebody_else_had_it_or_again_and_again() {
    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    world.pass(3_001);
    world.ask("human:ann", Ask::Take).unwrap();
    world.ask("human:ann", Ask::Release).unwrap();
    let next = enter(&mut world, &mut entering, Came::KeyTaken);
    assert!(matches!(next, Next::NotEntered(NotEntered::Refused(_))), "{next:?}");
    assert!(world.out.kept.is_empty());
    assert_eq!(world.out.freed, ["deploy"]);

    let mut world = at_prompt();
    let mut entering = decided(&mut world, false);
    enter(&mut world, &mut entering, Came::Decided);
    let mut next = enter(&mut world, &mut entering, Came::KeyTaken);
    let mut tries = 0;
    while matches!(next, Next::Type { .. }) {
        tries += 1;
        world.pass(3_001);
        let refused = stale(&world);
        next = enter(&mut world, &mut entering, refused);
    }
    assert!(matches!(next, Next::NotEntered(NotEntered::Refused(_))), "{next:?}");
    assert_eq!((tries, world.out.freed.len()), (4, 1));
}

fn stale(world: &World) -> Came {
    let refusal = holdfast_authority::Refusal::FenceStale { newest: world.core.fence() };
    Came::Sent(Sent::Refused(Undecided::Refused(refusal)))
}

#[test]
fn a_prompt_at_which_something_was_typed_while_the_disk_was_slow_is_looked_at_again() {
    for came in [Came::Looked, Came::Failed] {
        let mut world = at_prompt();
        let mut entering = decided(&mut world, false);
        enter(&mut world, &mut entering, Came::Decided);
        let fence = world.core.fence().0;
        world.writes(HOST, fence, 9, b"half a line", 0);
        assert_eq!(enter(&mut world, &mut entering, Came::KeyTaken), Next::Look);
        assert!(world.out.kept.is_empty());
        world.out.output.extend_from_slice(b"half a line");
        match (enter(&mut world, &mut entering, came.clone()), came) {
            (Next::Type { .. }, Came::Looked) => {
                assert!(world.out.freed.is_empty());
                assert_eq!(world.out.kept[0].typed_at, 13, "behind what was printed meanwhile");
            }
            (Next::NotEntered(NotEntered::Failed), Came::Failed) => assert_eq!(world.out.freed, ["deploy"]),
            (next, came) => panic!("{came:?}: {next:?}"),
        }
    }
}

#[test]
fn only_an_empty_prompt_of_a_shell_that_reads_is_empty() {
    let empty = || probed(SHELL, 0, 0);
    let cases: [(&str, Seen, Look); 5] = [
        ("$ ", empty(), Look::Empty),
        ("$ ", probed(SHELL + 1, 0, 0), Look::Busy(Busy::OtherForeground)),
        ("$ ", Seen::Probed(None), Look::Busy(Busy::OtherReader)),
        // Marks may come a little before the editor; what is unread may be a command.
        ("$ ", probed(SHELL, ICANON, 0), Look::Wait { until: 1_000_002 }),
        ("$ ", probed(SHELL, 0, 1), Look::Wait { until: 1_000_002 }),
    ];
    for (output, seen, wanted) in cases {
        let mut world = at_prompt();
        world.out.output = output.into();
        let mut looks = Check::new(Editor::Zle, 0);
        assert_eq!(check(&mut world, &mut looks, Seen::Change), Look::Probe);
        assert_eq!(check(&mut world, &mut looks, seen), wanted, "{seen:?}");
    }
}

#[test]
fn a_shell_whose_editor_does_not_read_in_time_is_busy() {
    let mut world = at_prompt();
    let mut looks = Check::new(Editor::Fish, 0);
    check(&mut world, &mut looks, Seen::Change);
    for ms in [0, 1_995] {
        world.now_ms += ms;
        assert!(matches!(check(&mut world, &mut looks, probed(SHELL, ICANON, 0)), Look::Wait { .. }));
        world.now_ms += 2;
        assert_eq!(check(&mut world, &mut looks, Seen::Change), Look::Probe);
    }
    world.now_ms += 1;
    assert_eq!(check(&mut world, &mut looks, probed(SHELL, ICANON, 0)), Look::Busy(Busy::OtherReader));
}

#[test]
fn what_was_typed_at_the_prompt_is_in_the_way_while_it_may_stand_there() {
    use holdfast_session::LastKey::{Enter, Other};
    for (last, shown, wanted) in
        [(Other, "ls", Look::Busy(Busy::Input)), (Other, "  ", Look::Empty), (Enter, "  ", Look::Busy(Busy::Input))]
    {
        let mut world = at_prompt();
        world.core.runs.typed(if last == Enter { 3 } else { 2 }, last);
        world.out.output.extend_from_slice(if last == Enter { b"ls" } else { shown.as_bytes() });
        let mut looks = Check::new(Editor::Fish, 0);
        check(&mut world, &mut looks, Seen::Change);
        assert_eq!(check(&mut world, &mut looks, probed(SHELL, 0, 0)), wanted, "{last:?} {shown:?}");
    }
}

#[test]
fn no_prompt_and_another_run_are_reasons_and_the_output_is_followed_only_meanwhile() {
    let mut world = World::new();
    let mut looks = Check::new(Editor::Fish, 0);
    assert_eq!(check(&mut world, &mut looks, Seen::Change), Look::Wait { until: 1_010_000 });
    assert!(world.core.runs.is_followed());
    world.now_ms += 10_000;
    assert_eq!(check(&mut world, &mut looks, Seen::Change), Look::Busy(Busy::NoPrompt));
    assert!(!world.core.runs.is_followed());
    let mut world = at_prompt();
    world.core.runs.begin(Run { token: String::new(), ..run() });
    assert_eq!(check(&mut world, &mut Check::new(Editor::Fish, 0), Seen::Change), Look::Busy(Busy::Run));
}

#[test]
fn a_shell_that_can_be_asked_says_itself_whether_its_line_is_empty() {
    let line = |empty| ShellMark::Line { empty };
    let cases: [(bool, Option<ShellMark<'_>>, Look); 4] = [
        (true, Some(line(true)), Look::Empty),
        (true, Some(line(false)), Look::Busy(Busy::Input)),
        (true, None, Look::Busy(Busy::Input)),
        (false, Some(line(true)), Look::Busy(Busy::Input)),
    ];
    for (typed, answer, wanted) in cases {
        let mut world = at_prompt();
        let asks = ShellMark::PromptStart { last: None, state: None, asks: true };
        [asks, ShellMark::PromptEnd].into_iter().for_each(|mark| world.core.runs.told(2, mark, 0));
        world.core.runs.typed(2, holdfast_session::LastKey::Other);
        let mut looks = Check::new(Editor::Zle, 0);
        check(&mut world, &mut looks, Seen::Change);
        assert_eq!(check(&mut world, &mut looks, probed(SHELL, 0, 0)), Look::Ask);
        assert!(world.core.runs.is_followed());
        let mut look = check(&mut world, &mut looks, Seen::Asked(typed));
        answer.into_iter().for_each(|mark| world.core.runs.told(9, mark, 0));
        while let Look::Wait { until } = look {
            world.now_ms = if answer.is_some() { world.now_ms } else { until };
            look = check(&mut world, &mut looks, Seen::Change);
        }
        assert_eq!(look, wanted, "{typed} {answer:?}");
        assert!(!world.core.runs.is_followed());
    }
}

/// The next host finds a run that was recorded; gives it after its time, with this output behind the prompt.
fn taken_up(shown: &[u8], marks: &[ShellMark<'_>]) -> Run {
    let mut world = at_prompt();
    world.out.output.extend_from_slice(shown);
    let runs = Tracker::resume(vec![Run { typed_at: 2, from: 2, ..run() }]);
    let authority = Authority::replay(policy(), &world.out.records);
    world.core = Core::new(SessionId::from_random_bits(7), authority, Size::clamped(80, 24), Origin::Found, 5, runs);
    prompt(&mut world.core.runs);
    let now = world.now();
    let up = world.core.take_up_runs(&mut world.out, now, true).unwrap();
    watched(world, up, marks)
}

/// What becomes of a run that is watched, if its shell tells this.
fn watched(mut world: World, mut up: TakeUp, marks: &[ShellMark<'_>]) -> Run {
    marks.iter().for_each(|mark| world.core.runs.told(9, *mark, 0));
    let mut step = |world: &mut World, seen| {
        let now = world.now();
        world.core.take_up(&mut world.out, now, &mut up, seen)
    };
    let mut seen = Seen::Change;
    while let Some(look) = step(&mut world, seen) {
        seen = match look {
            Look::Wait { until } => {
                world.now_ms = until;
                Seen::Change
            }
            _ => probed(SHELL, 0, 0),
        };
    }
    world.core.runs.runs().next().unwrap().clone()
}

#[test]
fn a_run_that_a_killed_host_left_is_lost_and_can_have_started_unless_its_prompt_is_untouched() {
    type Case<'a> = (&'a [u8], &'a [ShellMark<'a>], RunState, Option<RunEnd>);
    let cases: [Case<'_>; 3] = [
        (b"", &[], RunState::Lost, Some(RunEnd::NotStarted)),
        (b"make", &[], RunState::Lost, Some(RunEnd::Unknown)),
        (b"make", &[ShellMark::CommandStart { token: Some("ab12") }], RunState::Running, None),
    ];
    for (shown, marks, state, end) in cases {
        let run = taken_up(shown, marks);
        assert_eq!((run.state, run.end), (state, end), "{shown:?}");
    }
}

#[test]
fn a_seizure_that_may_have_dropped_a_runs_keys_takes_its_token_back_and_looks_what_became_of_it() {
    let theirs =
        [ShellMark::CommandStart { token: None }, ShellMark::PromptStart { last: Some(0), state: None, asks: false }];
    let cases: [(&[ShellMark<'_>], RunState, Option<RunEnd>); 3] = [
        (&[], RunState::Lost, Some(RunEnd::NotStarted)),
        (&theirs, RunState::Lost, Some(RunEnd::Unknown)),
        (&[ShellMark::CommandStart { token: Some("ab12") }], RunState::Running, None),
    ];
    for (marks, state, end) in cases {
        let mut world = at_prompt();
        let mut entering = decided(&mut world, false);
        enter(&mut world, &mut entering, Came::Decided);
        enter(&mut world, &mut entering, Came::KeyTaken);
        let fence = world.core.fence();
        enter(&mut world, &mut entering, Came::Sent(Sent::Written { at: 2, fence }));
        assert_eq!(world.out.token, "ab12");
        world.ask("human:ann", Ask::Seize { freeze: false, reason: "stop".into() }).unwrap();
        assert_eq!(world.out.token, "", "it must not wait for ann's next command");
        let now = world.now();
        let up = world.core.take_flushed(now).unwrap();
        let run = watched(world, up, marks);
        assert_eq!((run.state, run.end), (state, end), "{marks:?}");
    }
}

#[test]
fn a_prompt_is_empty_for_the_reaper_only_where_nothing_can_stand_there() {
    use holdfast_session::LastKey::{Enter, Interrupt, Other};
    let found = |world: &mut World| {
        let authority = Authority::replay(policy(), &world.out.records);
        let (id, size) = (SessionId::from_random_bits(7), Size::clamped(80, 24));
        world.core = Core::new(id, authority, size, Origin::Found, 5, Tracker::default());
        prompt(&mut world.core.runs);
    };
    // What this host saw typed, what the terminal shows behind the prompt, and whether the host was there from the beginning.
    let cases = [
        (None, "", true, true),
        (None, "a prompt on the right", true, true),
        (None, "", false, true),
        (None, "half a command", false, false),
        (Some(Other), "", true, false),
        (Some(Enter), "", true, false),
        (Some(Interrupt), "", true, false),
    ];
    for (typed, shown, is_new, wanted) in cases {
        let mut world = at_prompt();
        world.out.output.extend_from_slice(shown.as_bytes());
        if !is_new {
            found(&mut world);
        }
        typed.into_iter().for_each(|last| world.core.runs.typed(2, last));
        let now = world.now();
        let is_empty = world.core.is_at_empty_prompt(&mut world.out, now);
        assert_eq!(is_empty, wanted, "{typed:?} {shown:?} {is_new}");
        assert_eq!(world.out.token, "", "nothing is typed or told");
    }
    let mut world = at_prompt();
    world.core.runs.begin(Run { token: String::new(), ..run() });
    let now = world.now();
    assert!(!world.core.is_at_empty_prompt(&mut world.out, now), "a run is on");
    let reads = |lflag, foreground, unread| Probed { foreground, iflag: 0, oflag: 0, lflag, unread };
    assert!(world.core.reads_keys(&reads(0, SHELL, 0)));
    for other in [reads(ICANON, SHELL, 0), reads(0, 77, 0), reads(0, SHELL, 1)] {
        assert!(!world.core.reads_keys(&other), "{other:?}");
    }
}
