//! Each rule of the ready policies, by its name: when it decides, and when it does not.

use crate::{judge, request};
use holdfast_gate::{Action, Judge, Outcome, Surroundings, look_at_write};

fn says(judge: &mut Judge, who: &str, action: Action, line: &str) -> (Outcome, String) {
    let verdict = judge.decide(&request(who, action, line));
    (verdict.outcome, verdict.rule)
}

/// Policy, actor, line, outcome, rule.
const CASES: &[(&str, &str, &str, Outcome, &str)] = &[
    ("solo", "agent:bot", "cargo build", Outcome::Allow, "solo.free"),
    ("solo", "human:ann", "rm -rf /", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "rm -rf /", Outcome::Deny, "solo.unthinkable"),
    ("solo", "service:ci", "rm -rf /", Outcome::Deny, "solo.unthinkable"),
    ("solo", "agent:bot", "pkill holdfast", Outcome::Deny, "solo.holdfast"),
    ("solo", "human:ann", "pkill holdfast", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "rm -rf ~", Outcome::Ask, "solo.catastrophic"),
    ("solo", "human:ann", "rm -rf ~", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "eval \"$X\"", Outcome::Ask, "solo.opaque"),
    ("solo", "agent:bot", "echo \"x", Outcome::Ask, "solo.opaque"),
    ("solo", "human:ann", "eval \"$X\"", Outcome::Allow, "solo.free"),
    ("careful", "agent:bot", "cargo build", Outcome::Allow, "careful.free"),
    ("careful", "human:ann", "sudo rm -rf /srv", Outcome::Allow, "careful.free"),
    ("careful", "agent:bot", "rm -rf /", Outcome::Deny, "careful.unthinkable"),
    ("careful", "agent:bot", "pkill holdfast", Outcome::Deny, "careful.holdfast"),
    ("careful", "agent:bot", "rm -rf .", Outcome::Ask, "careful.catastrophic"),
    ("careful", "agent:bot", "rm -rf /srv/x", Outcome::Ask, "careful.outside"),
    ("careful", "agent:bot", "rm -rf ./srv/x", Outcome::Allow, "careful.free"),
    ("careful", "agent:bot", "sudo ls", Outcome::Ask, "careful.escalates"),
    ("careful", "agent:bot", "curl https://x.test", Outcome::Ask, "careful.network"),
    ("careful", "agent:bot", "PATH=/x ls", Outcome::Ask, "careful.loader"),
    ("careful", "agent:bot", "eval \"$X\"", Outcome::Ask, "careful.opaque"),
    ("locked", "human:ann", "make", Outcome::Allow, "locked.humans"),
    ("locked", "agent:bot", "ls", Outcome::Allow, "locked.listed"),
    ("locked", "agent:bot", "make", Outcome::Deny, "gate.unlisted"),
    ("locked", "agent:bot", "rm -rf /", Outcome::Deny, "locked.unthinkable"),
    ("locked", "agent:bot", "pkill holdfast", Outcome::Deny, "locked.holdfast"),
    ("locked", "agent:bot", "eval \"$X\"", Outcome::Deny, "locked.opaque"),
];

#[test]
fn each_rule_decides_what_it_is_for() {
    let mut judges = ["solo", "careful", "locked"].map(|name| (name, judge(name)));
    for (policy, who, line, outcome, rule) in CASES {
        let judge = judges.iter_mut().find(|(name, _)| name == policy).map(|(_, judge)| judge).unwrap();
        assert_eq!(says(judge, who, Action::Run, line), (*outcome, (*rule).to_owned()), "{policy}: {who} runs {line}");
        assert_eq!(says(judge, who, Action::Type, line).0, *outcome, "{policy}: {who} types {line}");
    }
    for (name, judge) in &judges {
        for rule in judge.policy().rules().iter().filter(|rule| {
            !["careful.ends", "careful.shaped", "locked.start", "locked.programs"].contains(&rule.id.as_str())
        }) {
            assert!(CASES.iter().any(|(_, _, _, _, id)| *id == rule.id), "{name}: no case for {}", rule.id);
        }
    }
}

#[test]
fn ends_signals_and_starts() {
    for action in [Action::Signal, Action::End] {
        assert_eq!(says(&mut judge("solo"), "agent:bot", action, ""), (Outcome::Allow, "solo.free".into()));
        assert_eq!(says(&mut judge("careful"), "agent:bot", action, ""), (Outcome::Ask, "careful.ends".into()));
        assert_eq!(says(&mut judge("careful"), "human:ann", action, ""), (Outcome::Allow, "careful.free".into()));
        assert_eq!(says(&mut judge("locked"), "agent:bot", action, ""), (Outcome::Deny, "gate.unlisted".into()));
    }
    assert_eq!(says(&mut judge("locked"), "agent:bot", Action::Start, ""), (Outcome::Allow, "locked.start".into()));
    assert_eq!(says(&mut judge("locked"), "agent:bot", Action::Start, "make"), (Outcome::Deny, "gate.unlisted".into()));
    assert_eq!(says(&mut judge("solo"), "agent:bot", Action::Start, "rm -rf /").0, Outcome::Deny);
}

#[test]
fn every_forbid_of_the_ready_policies_has_examples() {
    for name in ["solo", "careful", "locked"] {
        // These two are about no line.
        let has_lines = |id: &str| !["careful.ends", "careful.shaped"].contains(&id);
        for rule in judge(name).policy().rules().iter().filter(|rule| rule.kind != "permit" && has_lines(&rule.id)) {
            assert!(rule.text.contains("@example") && rule.text.contains("@counterexample"), "{}", rule.id);
            assert!(rule.why.len() > 10, "{}", rule.id);
        }
    }
}

/// Policy, actor, file, words, outcome, rule.
const PROGRAMS: &[(&str, &str, &str, &str, Outcome, &str)] = &[
    ("solo", "agent:bot", "/usr/bin/cargo", "cargo build", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "/usr/bin/rm", "rm -rf /", Outcome::Deny, "solo.unthinkable"),
    ("solo", "agent:bot", "/usr/bin/pkill", "pkill holdfast", Outcome::Deny, "solo.holdfast"),
    ("solo", "agent:bot", "/usr/bin/git", "git push --force", Outcome::Ask, "solo.catastrophic"),
    ("solo", "human:ann", "/usr/bin/rm", "rm -rf /", Outcome::Allow, "solo.free"),
    ("careful", "agent:bot", "/usr/bin/rm", "rm -rf /srv/x", Outcome::Ask, "careful.outside"),
    ("careful", "agent:bot", "/usr/bin/sudo", "sudo ls", Outcome::Ask, "careful.escalates"),
    ("careful", "agent:bot", "/usr/bin/curl", "curl https://x.test", Outcome::Ask, "careful.network"),
    ("careful", "agent:bot", "/usr/bin/mkfs.ext4", "mkfs.ext4 /dev/sda", Outcome::Deny, "careful.unthinkable"),
    ("careful", "human:ann", "/usr/bin/sudo", "sudo ls", Outcome::Allow, "careful.free"),
    ("locked", "agent:bot", "/usr/bin/ls", "ls -l", Outcome::Allow, "locked.programs"),
    ("locked", "agent:bot", "/usr/bin/git", "git log", Outcome::Allow, "locked.programs"),
    ("locked", "agent:bot", "/usr/bin/git", "git push", Outcome::Deny, "gate.unlisted"),
    ("locked", "agent:bot", "/home/user/project/ls", "ls", Outcome::Deny, "gate.unlisted"),
    ("locked", "agent:bot", "/usr/bin/make", "make", Outcome::Deny, "gate.unlisted"),
    ("locked", "human:ann", "/usr/bin/make", "make", Outcome::Allow, "locked.humans"),
];

#[test]
fn each_rule_for_programs_decides_what_it_is_for() {
    for (policy, who, program, line, outcome, rule) in PROGRAMS {
        let mut request = request(who, Action::Exec, line);
        request.facts.program = Some((*program).to_owned());
        let verdict = judge(policy).decide(&request);
        assert_eq!((verdict.outcome, &*verdict.rule), (*outcome, *rule), "{policy}: {who} starts {program}: {line}");
    }
}

#[test]
fn programs_are_judged_by_class_and_risks_alone_where_no_rule_is_ones_own() {
    // The host remembers what was said by these two, in `solo` and `careful`.
    for name in ["solo", "careful"] {
        let mut judge = judge(name);
        let mut said = std::collections::BTreeMap::new();
        for line in include_str!("../../data/corpus.tsv").lines().skip(1).filter_map(|line| line.split('\t').nth(4)) {
            let mut request = request("agent:bot", Action::Exec, line);
            request.facts.seen.opaque.clear();
            request.facts.seen.parsed = true;
            let verdict = judge.decide(&request);
            let known = said.entry(request.facts.seen.risks.clone()).or_insert_with(|| verdict.clone());
            assert_eq!((known.outcome, &known.rule), (verdict.outcome, &verdict.rule), "{name}: {line}");
        }
        assert!(said.len() > 20, "{name}: {}", said.len());
    }
}

/// Policy, actor, path, outcome, rule; in /home/user/project.
const WRITES: &[(&str, &str, &str, Outcome, &str)] = &[
    ("solo", "agent:bot", "/home/user/project/a.c", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "/home/user/notes", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "/home/user/.ssh/authorized_keys", Outcome::Ask, "solo.catastrophic"),
    ("solo", "human:ann", "/home/user/.ssh/authorized_keys", Outcome::Allow, "solo.free"),
    ("solo", "agent:bot", "/home/user/.config/holdfast/policy/x.cedar", Outcome::Deny, "solo.holdfast"),
    ("careful", "agent:bot", "/home/user/project/a.c", Outcome::Allow, "careful.free"),
    ("careful", "agent:bot", "/home/user/notes", Outcome::Ask, "careful.outside"),
    ("careful", "agent:bot", "/tmp/x", Outcome::Allow, "careful.free"),
    ("careful", "service:ci", "/etc/passwd", Outcome::Ask, "careful.catastrophic"),
    ("locked", "agent:bot", "/home/user/project/a.c", Outcome::Deny, "gate.unlisted"),
    ("locked", "human:ann", "/home/user/project/a.c", Outcome::Allow, "locked.humans"),
];

#[test]
fn a_write_is_judged_by_its_path_as_a_command_that_writes_it() {
    let own = vec!["/home/user/.local/state/holdfast".into(), "/home/user/.config/holdfast".into()];
    let around = Surroundings::new("/home/user/project", "/home/user", None, own);
    for (policy, who, path, outcome, rule) in WRITES {
        let mut request = request(who, Action::Write, "");
        request.facts.seen = look_at_write(path, &around);
        let verdict = judge(policy).decide(&request);
        assert_eq!((verdict.outcome, &*verdict.rule), (*outcome, *rule), "{policy}: {who} writes {path}");
    }
}

#[test]
fn an_agent_is_asked_about_what_another_shaped_and_a_human_is_not() {
    for (policy, who, outcome) in [
        ("careful", "agent:bot", Outcome::Ask),
        ("careful", "service:ci", Outcome::Ask),
        ("careful", "human:ann", Outcome::Allow),
        ("solo", "agent:bot", Outcome::Allow),
    ] {
        let mut judge = judge(policy);
        for action in [Action::Run, Action::Type] {
            let mut shaped = request(who, action, "ls");
            shaped.facts.shaped.insert("file /srv/unknown.sh".into());
            assert_eq!(judge.decide(&shaped).outcome, Outcome::Allow, "nobody is known to have shaped it");
            shaped.facts.shapers.insert("agent:a".into());
            let verdict = judge.decide(&shaped);
            assert_eq!(verdict.outcome, outcome, "{policy}: {who}: {verdict:?}");
            assert!(outcome == Outcome::Allow || verdict.rule == "careful.shaped", "{verdict:?}");
        }
    }
}
