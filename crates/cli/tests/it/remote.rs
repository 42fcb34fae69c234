//! What a caller from afar leaves out is the host's user's; and runs are known by their keys.

use holdfast_client::{CallError, Connection, Identity};
use holdfast_harness::{Home, TESTER, kill, until};
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, NewParams};
use holdfast_wire::runs::{RunAnswer, RunId, RunRef, RunStartParams, RunState};
use holdfast_wire::{Code, Fault};
use serde_json::Value;

/// A connection to the home's host, of the tester.
fn link(home: &Home) -> Connection {
    home.ok(&["host", "start"]);
    let place = holdfast_types::Home::under(home.path());
    let tester = Identity::load(&place, &TESTER.parse().unwrap()).unwrap();
    holdfast_client::connect(&place, &tester).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn fault<T: std::fmt::Debug>(answer: Result<T, CallError>) -> Fault {
    match answer {
        Err(CallError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn start(link: &mut Connection, params: &RunStartParams) -> RunAnswer {
    link.call::<op::RunStart>(params).unwrap()
}

#[test]
fn a_session_of_which_nothing_is_said_is_the_users_shell_at_home() {
    let home = Home::new();
    let mut link = link(&home);
    let view = link.call::<op::New>(&NewParams::default()).unwrap();
    let at_home = home.path().to_string_lossy().into_owned();
    assert_eq!((view.command, view.cwd), (texts(&["/bin/sh"]), at_home.clone()));
    let end = EndParams { session: view.id.to_string(), grace_ms: 0, proof: None };
    link.call::<op::End>(&end).unwrap();
    let new = NewParams { env_add: texts(&["MARK=a b", "LANG=C"]), ..NewParams::default() };
    let command = "echo $MARK/$LANG/$TERM/$HOME/$HOLDFAST_ACTOR/$PWD; pwd; exit 3".to_owned();
    let run = RunStartParams { new: Some(Box::new(new)), command, wait_ms: 20_000, ..Default::default() };
    let answer = start(&mut link, &run);
    let output = format!("a b/C/xterm-256color/{at_home}//{at_home}\n{at_home}\n");
    assert_eq!((answer.output, answer.run.exit_code, answer.existing), (output, Some(3), false));
    assert_eq!(answer.run.cwd_before, Some(at_home));
}

#[test]
fn an_environment_that_is_given_is_the_whole_one() {
    let home = Home::new();
    let mut link = link(&home);
    let new = NewParams {
        command: texts(&["/bin/sh", "-c", "echo $A-$B-$HOME"]),
        env: Some(texts(&["A=1", "B=2"])),
        env_add: texts(&["B=3"]),
        ..NewParams::default()
    };
    let run = RunStartParams { new: Some(Box::new(new)), wait_ms: 20_000, ..Default::default() };
    let answer = start(&mut link, &run);
    assert_eq!(answer.output, "1-3-\n");
    assert_eq!(answer.run.command, "/bin/sh -c 'echo $A-$B-$HOME'", "it is called by its words");
}

#[test]
fn what_cannot_be_started_is_refused_with_what_was_wrong() {
    let home = Home::new();
    let mut link = link(&home);
    let new = |command: &[&str], cwd: &str| NewParams {
        command: texts(command),
        cwd: Some(cwd.into()),
        ..NewParams::default()
    };
    let relative = fault(link.call::<op::New>(&new(&["true"], "work")));
    assert_eq!((relative.code, relative.hint.contains("starts with /")), (Code::BadRequest, true), "{relative:?}");
    let missing = fault(link.call::<op::New>(&new(&["true"], "/does/not/exist")));
    assert_eq!((missing.code, &missing.details.unwrap()["cwd"]), (Code::CannotStart, &"/does/not/exist".into()));
    let unknown = fault(link.call::<op::New>(&new(&["no-such-program"], "/")));
    assert_eq!((unknown.code, &unknown.details.unwrap()["command"]), (Code::CannotStart, &"no-such-program".into()));
    let variable = NewParams { env_add: texts(&["A"]), ..NewParams::default() };
    assert_eq!(fault(link.call::<op::New>(&variable)).code, Code::BadRequest);
    let nothing = RunStartParams { new: Some(Box::default()), ..Default::default() };
    assert_eq!(fault(link.call::<op::RunStart>(&nothing)).code, Code::BadRequest);
    assert_eq!(home.ok(&["ls", "--all"]).lines().count(), home.ok(&["ls"]).lines().count(), "nothing was started");
}

#[test]
fn two_who_come_at_once_with_one_key_get_one_run() {
    let home = Home::new();
    let links: Vec<Connection> = (0..4).map(|_| link(&home)).collect();
    let file = home.join("ran");
    let command = format!("echo once >> {}; sleep 1", file.display());
    let answers: Vec<RunAnswer> = std::thread::scope(|scope| {
        let ask = |mut link: Connection| {
            let run = RunStartParams {
                new: Some(Box::default()),
                key: Some("together".into()),
                command: command.clone(),
                ..Default::default()
            };
            scope.spawn(move || start(&mut link, &run))
        };
        let asked: Vec<_> = links.into_iter().map(ask).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| !answer.existing).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.run.id == answers[0].run.id), "{answers:?}");
    assert!(answers.iter().all(|answer| answer.run.state == RunState::Running), "{answers:?}");
    assert_eq!(home.run(&["run", "wait", "together"]).status, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "once\n");
}

#[test]
fn a_key_stands_for_its_run_also_after_the_host_died_and_the_session_went() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "ended_keep = \"500ms\"\n").unwrap();
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    home.run(&["actor", "new", "agent:bot"]);
    let call = ["run", "work", "--key", "deploy 1", "--", "echo out; sh -c 'exit 3'"];
    assert_eq!(home.run(&call).status, 3);
    let status = |who: &str, run: &str| -> Value {
        let ran = home.run_as(who, &["--json", "run", "status", run]);
        serde_json::from_str(if ran.status == 0 { &ran.out } else { &ran.err }).unwrap()
    };
    let id = status(TESTER, "deploy 1")["id"].as_str().unwrap().to_owned();
    for round in 0..2 {
        assert_eq!(home.ok(&["run", "output", "deploy 1"]), "out\r\n", "{round}");
        assert_eq!(home.run(&["run", "wait", "deploy 1"]).status, 3, "{round}");
        assert_eq!(home.run(&["run", "cancel", "deploy 1"]).status, 0, "{round}: it is over");
        assert_eq!(status("agent:bot", &id)["exit_code"], 3, "{round}: who may observe the session");
        assert_eq!(status("agent:bot", "deploy 1")["error"]["code"], "no_such_run", "{round}: the key is another's");
        kill(home.host_pid());
    }
    home.ok(&["end", "work", "--grace", "0"]);
    until("the session to be cleared", || home.json(&["ls", "--all"]).as_array().is_some_and(Vec::is_empty));
    for round in 0..2 {
        assert_eq!(status(TESTER, "deploy 1")["exit_code"], 3, "{round}");
        assert_eq!(status("agent:bot", &id)["error"]["code"], "no_such_run", "{round}");
        let again = home.run(&["run", "cancel", "deploy 1"]);
        assert_eq!(again.status, 0, "{round}: {again}");
        kill(home.host_pid());
    }
    let unknown = home.run(&["run", "status", "nothing"]);
    assert!(unknown.err.contains("no run with the key \"nothing\""), "{unknown}");
}

#[test]
fn a_run_is_interrupted_by_its_key_and_no_key_reads_like_an_id() {
    let home = Home::new();
    home.ok(&["new", "-d", "-n", "work", "--", "bash"]);
    home.run(&["run", "work", "--key", "long", "--timeout", "0", "--", "sleep 1000"]);
    assert!(home.ok(&["run", "cancel", "long"]).contains("cancelled"));
    let id = "run_00000000000000000000000000";
    assert!(matches!(RunRef::from(id.to_owned()), RunRef::Id(_)));
    let refused = home.run(&["run", "work", "--key", id, "--", "true"]);
    assert!(refused.err.contains("looks like a run id"), "{refused}");
}

#[test]
fn a_session_of_its_own_is_made_once_for_an_id_that_is_asked_for_again() {
    let home = Home::new();
    let mut link = link(&home);
    let id = RunId::from_random_bits(77);
    let run = |command: &str| RunStartParams {
        new: Some(Box::default()),
        run: Some(id),
        command: command.into(),
        wait_ms: 20_000,
        ..Default::default()
    };
    let first = start(&mut link, &run("exit 3"));
    let again = start(&mut link, &run("exit 3"));
    assert_eq!((first.existing, again.existing), (false, true));
    assert_eq!((first.run.session, again.run.exit_code), (again.run.session, Some(3)));
    assert_eq!(fault(link.call::<op::RunStart>(&run("exit 4"))).code, Code::BadRequest, "it is another run's");
}
