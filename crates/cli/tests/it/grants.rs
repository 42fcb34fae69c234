//! Rights: what agents may not do by themselves, what is passed on, and what falls when it is taken back.

use holdfast_harness::{Home, TESTER, settle};

const ANN: &str = "human:ann";
const BOT: &str = "agent:bot";
const AID: &str = "agent:aid";

/// A home with a person, two agents and a session.
fn settled() -> Home {
    let home = Home::new();
    settle(home.path(), ANN);
    home.ok(&["actor", "new", BOT]);
    home.ok(&["actor", "new", AID]);
    home.session("work", "echo ready; exec cat");
    home.until_screen_shows("work", "ready");
    home
}

#[test]
fn an_agent_is_refused_what_it_may_not_and_told_no_way_around() {
    let home = settled();
    let _settled = home.settle_snapshots();
    home.ok(&["actor", "new", "agent:stranger", "--key", "stranger.key"]);
    std::fs::remove_file(home.join("actors/agent.stranger.pub")).unwrap();
    let told = home.told(&[
        &[BOT, "end", "work"],
        &[BOT, "end", "--all"],
        &[BOT, "rename", "work", "mine"],
        &[BOT, "signal", "work", "INT"],
        &[BOT, "--json", "signal", "work", "INT"],
        &[BOT, "grant", "work", "--to", AID, "--can", "observe"],
        &["service:deploy", "screen", "work"],
        &["device:phone", "send", "work", "x"],
        &["./stranger.key", "screen", "work"],
    ]);
    insta::assert_snapshot!(told);
    for recipe in ["holdfast seize", "revoke", "--as ", "HOLDFAST_ACTOR", "holdfast grant "] {
        let answers = told.lines().filter(|line| !line.contains(" $ "));
        assert!(answers.clone().all(|line| !line.contains(recipe)), "{recipe}: {told}");
    }
    assert_eq!(home.json(&["info", "work"])["name"], "work");
}

#[test]
fn a_grant_is_used_passed_on_and_falls_with_what_it_came_from() {
    let home = settled();
    let _settled = home.settle_snapshots();
    insta::assert_snapshot!(home.told(&[
        &[TESTER, "grants", "work"],
        &[TESTER, "grant", "work", "--to", BOT, "--can", "signal,grant", "--for", "2h"],
        &[BOT, "signal", "work", "WINCH"],
        &[BOT, "grant", "work", "--to", AID, "--can", "signal", "--for", "90s"],
        &[BOT, "grant", "work", "--to", AID, "--can", "signal,end"],
        &[BOT, "grant", "work", "--to", AID, "--can", "signal", "--for", "3d"],
        &[BOT, "grant", "work", "--to", AID, "--can", "none"],
        &[TESTER, "grant", "work", "--to", AID, "--can", "end", "--until", "2001-01-01T00:00:00Z"],
        &[BOT, "grants", "work"],
        &[AID, "signal", "work", "WINCH"],
        &[AID, "revoke", "work", "1"],
        &[TESTER, "revoke", "work", "2"],
        &[TESTER, "revoke", "work", "2"],
        &[BOT, "signal", "work", "WINCH"],
        &[AID, "signal", "work", "WINCH"],
        &[TESTER, "revoke", "work", "--to", BOT],
        &[BOT, "screen", "work"],
        &[TESTER, "grants", "work"],
        &[ANN, "revoke", "work", "--to", "agent:nobody"],
    ]));
}

#[test]
fn a_grant_lasts_as_long_as_it_says() {
    let home = settled();
    let until = |args: &[&str]| {
        let view = home.json(&[&["grant", "work", "--to", BOT, "--can", "end"], args].concat());
        view["until_ms"].as_u64().map(|until| until - view["at_ms"].as_u64().unwrap())
    };
    assert_eq!(until(&[]), None);
    let ms = until(&["--for", "2h"]).unwrap();
    assert!((7_190_000..=7_200_000).contains(&ms), "{ms}");
    let ms = until(&["--until", "00:00"]).unwrap();
    assert!(ms <= 25 * 3_600_000, "{ms}");
    let view = home.json(&["grant", "work", "--to", BOT, "--can", "end", "--until", "2100-01-01T00:00:00+01:00"]);
    assert_eq!(view["until_ms"], 4_102_441_200_000_u64);
}

#[test]
fn what_classes_hold_is_configured() {
    let home = Home::new();
    std::fs::write(home.join("config.toml"), "rights_agent = \"observe\"\nrights_service = \"all\"\n").unwrap();
    home.session("work", "exec cat");
    let refused = home.run_as(BOT, &["send", "work", "x"]);
    assert_eq!(
        (refused.status, refused.err.lines().last()),
        (1, Some("holdfast: agent:bot may not type in this session (this needs the right `type`)"))
    );
    assert_eq!(home.run_as("service:deploy", &["end", "work"]).status, 0);
}

#[test]
fn the_counters_are_told_by_a_host_that_runs() {
    let home = Home::new();
    let told = home.run(&["host", "metrics"]);
    assert!(told.status == 1 && told.err.contains("no host is running"), "{told}");
    home.session("work", "exec cat");
    home.ok(&["take", "work"]);
    let text = home.ok(&["host", "metrics"]);
    assert!(text.contains("# TYPE holdfast_turn_changes counter\n"), "{text}");
    assert_eq!(home.json(&["host", "metrics"])["text"].as_str().map(|text| text.starts_with('#')), Some(true));
}
