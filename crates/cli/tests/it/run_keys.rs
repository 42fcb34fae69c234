//! Keys of runs: whose they are, how long they live, and what a run leaves on disk.

use holdfast_client::{CallError, Connection, Identity};
use holdfast_harness::{Home, TESTER, until};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::NewParams;
use holdfast_wire::runs::RunStartParams;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// What a run in a session of its own keeps of its ring, at most: its header, and a page of output and of the log.
const ENDED_RING_BYTES_MAX: u64 = 32 * 1024;

fn answer_as(home: &Home, actor: &str, args: &[&str]) -> Value {
    let ran = home.run_as(actor, &[&["run", "--json"], args].concat());
    let text = if ran.out.is_empty() { ran.err.lines().last().unwrap_or_default() } else { &ran.out };
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{args:?}: {ran}"))
}

fn answer(home: &Home, args: &[&str]) -> Value {
    answer_as(home, TESTER, args)
}

fn lines_in(home: &Home, file: &str) -> usize {
    std::fs::read_to_string(home.join(file)).unwrap_or_default().lines().count()
}

#[test]
fn a_key_lives_as_long_as_its_run_however_old_it_is() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "runs_keep = \"1s\"\nended_keep = \"1s\"\n").unwrap();
    home.ok(&["new", "-d", "-n", "bash", "--", "bash"]);
    let script = "echo x >> own; exec sleep 1000";
    let own = ["--new", "--key", "own", "--timeout", "0", "--", "sh", "-c", script];
    let entered = ["bash", "--key", "entered", "--timeout", "0", "--", "echo x >> entered; sleep 1000"];
    let first = [answer(&home, &own), answer(&home, &entered)];
    // One that began later is over and forgotten: the host has cleared keys of that age.
    assert_eq!(answer(&home, &["--new", "--key", "over", "--", "true"])["state"], "ended");
    until("a younger key to be forgotten", || home.run(&["run", "status", "over"]).err.contains("no run with the key"));
    for (call, first) in [own.as_slice(), &entered].into_iter().zip(&first) {
        let again = answer(&home, call);
        assert_eq!((&again["id"], &again["existing"]), (&first["id"], &true.into()), "{call:?}: {again}");
    }
    until("both to have begun", || lines_in(&home, "own") > 0 && lines_in(&home, "entered") > 0);
    assert_eq!((lines_in(&home, "own"), lines_in(&home, "entered")), (1, 1));
    // And as long as a session still lists it.
    assert_eq!(answer(&home, &["cancel", "entered"])["state"], "cancelled");
    assert_eq!(answer(&home, &["--new", "--key", "over", "--", "true"])["existing"], false);
    until("a younger key to be forgotten", || home.run(&["run", "status", "over"]).err.contains("no run with the key"));
    assert_eq!(answer(&home, &entered)["id"], first[1]["id"]);
    assert_eq!(lines_in(&home, "entered"), 1);
}

#[test]
fn nobody_takes_anothers_key_unless_it_is_shared_on_purpose() {
    let home = Home::new();
    let (bot, other) = ("agent:bot", "agent:other");
    let call = |word| ["--new", "--key", "deploy", "--", "sh", "-c", word];
    let squatted = answer_as(&home, bot, &call("exit 7"));
    assert_eq!(squatted["exit_code"], 7, "{squatted}");
    // The same key, another command, another actor: it runs.
    let own = answer(&home, &call("exit 0"));
    assert_eq!((&own["exit_code"], &own["existing"]), (&0.into(), &false.into()), "{own}");
    assert_ne!(own["id"], squatted["id"]);
    // Each finds its own by the key, and the same command is no reason to find another's.
    assert_eq!(answer(&home, &["status", "deploy"])["id"], own["id"]);
    assert_eq!(answer_as(&home, bot, &["status", "deploy"])["id"], squatted["id"]);
    assert_eq!(answer_as(&home, other, &["status", "deploy"])["error"]["code"], "no_such_run");
    let third = answer_as(&home, other, &call("exit 7"));
    assert_eq!((&third["existing"], &third["exit_code"]), (&false.into(), &7.into()), "{third}");

    let shared = |word| ["--new", "--key", "deploy", "--shared", "--", "sh", "-c", word];
    let first = answer_as(&home, bot, &shared("exit 5"));
    let second = answer(&home, &shared("exit 5"));
    assert_eq!((&first["existing"], &first["exit_code"]), (&false.into(), &5.into()), "{first}");
    assert_eq!((&second["existing"], &second["id"]), (&true.into(), &first["id"]), "{second}");
    assert_eq!(second["actor"]["handle"], bot, "{second}");
    assert_eq!(answer(&home, &shared("exit 6"))["error"]["code"], "key_conflict");
    let alone = home.run(&["run", "--new", "--shared", "--", "true"]);
    assert_eq!(alone.status, 2, "{alone}");
}

fn link(home: &Home) -> Connection {
    home.ok(&["host", "start"]);
    let tester = Identity::load(&home.places(), &TESTER.parse().unwrap()).unwrap();
    holdfast_client::connect(&home.places(), &tester).unwrap()
}

#[test]
fn a_run_is_called_by_the_command_that_runs() {
    let home = Home::new();
    let mut link = link(&home);
    let run = |command: &str, words: &[&str]| RunStartParams {
        new: Some(Box::new(NewParams {
            command: words.iter().map(|&word| word.into()).collect(),
            ..NewParams::default()
        })),
        command: command.into(),
        wait_ms: 20_000,
        ..RunStartParams::default()
    };
    let lies = link.call::<op::RunStart>(&run("echo harmless", &["sh", "-c", "echo x >> ran"]));
    let Err(CallError::Fault(fault)) = lies else { panic!("{lies:?}") };
    assert_eq!((fault.code, fault.hint.as_str()), (Code::BadRequest, "leave one of them out"), "{fault:?}");
    assert!(!home.join("ran").exists());
    for (command, words, called) in [
        ("", &["sh", "-c", "exit 0"][..], "sh -c 'exit 0'"),
        ("sh -c 'exit 0'", &["sh", "-c", "exit 0"], "sh -c 'exit 0'"),
        ("exit 0", &[], "exit 0"),
    ] {
        let answer = link.call::<op::RunStart>(&run(command, words)).unwrap();
        assert_eq!((answer.run.command.as_str(), answer.run.exit_code), (called, Some(0)));
    }
    let unkeyed = RunStartParams { shared: true, ..run("exit 0", &[]) };
    let Err(CallError::Fault(fault)) = link.call::<op::RunStart>(&unkeyed) else { panic!("it has no key") };
    assert_eq!(fault.code, Code::BadRequest);
}

#[test]
fn the_ring_of_a_run_that_is_over_takes_little_more_space_than_what_it_has() {
    let home = Home::new();
    let ring_of =
        |answer: &Value| -> PathBuf { home.join("sessions").join(answer["session"].as_str().unwrap()).join("ring") };
    let on_disk = |ring: &PathBuf| std::fs::metadata(ring).unwrap().blocks() * 512;
    let over = answer(&home, &["--new", "--", "sh", "-c", "echo some; exit 3"]);
    let slow = answer(&home, &["--new", "--timeout", "0", "--", "sh", "-c", "read x; echo got $x"]);
    let (ring, kept) = (ring_of(&over), ring_of(&slow));
    let whole = std::fs::metadata(&ring).unwrap().len();
    assert!(on_disk(&kept) >= whole, "one that runs has all its space: {}", on_disk(&kept));
    until("the ring to shrink", || on_disk(&ring) <= ENDED_RING_BYTES_MAX);
    assert_eq!(std::fs::metadata(&ring).unwrap().len(), whole);
    assert_eq!(home.ok(&["run", "output", "--plain", over["id"].as_str().unwrap()]), "some\n");
    // Also of one that ended while no host was there.
    let session = slow["name"].as_str().unwrap().to_owned();
    home.ok(&["send", &session, "this\n"]);
    until("its end", || answer(&home, &["status", slow["id"].as_str().unwrap()])["state"] == "ended");
    until("its ring to shrink", || on_disk(&kept) <= ENDED_RING_BYTES_MAX);
    // What a host that was killed did not come to, the next one does.
    home.kill_host();
    let grown = std::fs::File::options().write(true).open(&kept).unwrap();
    rustix::fs::fallocate(&grown, rustix::fs::FallocateFlags::empty(), 0, whole).unwrap();
    drop(grown);
    assert!(on_disk(&kept) >= whole);
    home.ok(&["host", "start"]);
    until("its ring to shrink again", || on_disk(&kept) <= ENDED_RING_BYTES_MAX);
    assert!(home.ok(&["run", "output", "--plain", slow["id"].as_str().unwrap()]).contains("got this"));
}
