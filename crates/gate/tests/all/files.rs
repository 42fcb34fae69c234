//! Files of one's own: what loads, what does not, and what a message says.

use crate::request;
use holdfast_gate::{Action, Judge, Origin, Outcome, Policy, Promised, Source, Standing};

fn own(text: &str) -> Source {
    Source { file: "own.cedar".into(), text: text.into(), origin: Origin::Own }
}

fn with(base: &str, text: &str) -> Result<Policy, Vec<String>> {
    let sources: Vec<Source> = Source::ready(base).into_iter().chain([own(text)]).collect();
    Policy::load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn what_is_broken_does_not_load_and_says_where() {
    for (text, expected) in [
        ("permit (principal, action, resource);", "own.cedar:1:1: this rule has no name"),
        ("@id(\"t\")\npermit (principal, action == Action::\"runn\", resource);", "runn"),
        (
            "@id(\"t\")\npermit (principal, action, resource)\nwhen { context.lien == \"x\" };",
            "own.cedar:3:8: attribute `lien`",
        ),
        ("@id(\"t\")\npermit (principal, action, resource)\nwhen { context.hour == \"x\" };", "own.cedar:3:"),
        ("@id(\"t\")\npermit (principal, action, resource)\nwhen { context.intent == \"x\" };", "optional attribute"),
        ("@id(\"t\")\npermit (principal, action, resource)\nwhen { context.hour > };", "own.cedar:3:"),
        ("@id(\"t\") @ask(\"x\")\npermit (principal, action, resource);", "permits and asks"),
        ("@id(\"t\") @why(\"x\")\nforbid (principal, action, resource) when { false };", "own.cedar"),
        (
            "@id(\"t\") permit (principal, action, resource);\n@id(\"t\") permit (principal, action, resource);",
            "own.cedar:2:1: two rules have the name \"t\" (the other is at own.cedar:1)",
        ),
        ("@id(\"t\")\nforbid (principal, action, resource);", "denies without a reason"),
        ("@id(\"t\") @aks(\"x\")\nforbid (principal, action, resource);", "unknown annotation @aks"),
        ("@id(\"solo.free\") permit (principal, action, resource);", "belongs to a policy that comes with the program"),
        ("@id(\"gate.opaque\") permit (principal, action, resource);", "invalid name"),
        (
            "@id(\"t\") @why(\"no make\") @example(\"ls\")\nforbid (principal, action == Action::\"run\", resource) when { context.names.contains(\"make\") };",
            "`t` is not met by its @example `ls` (its names are [ls]",
        ),
        (
            "@id(\"t\") @why(\"no make\") @counterexample(\"make\")\nforbid (principal, action == Action::\"run\", resource) when { context.names.contains(\"make\") };",
            "`t` is met by its @counterexample `make`",
        ),
        ("@id(\"t\") permit (principal == ?principal, action, resource);", "template"),
        ("garbage", "own.cedar:1:"),
    ] {
        let problems = with("solo", text).expect_err(text).join("\n");
        assert!(problems.contains(expected), "{text}\n=> {problems}");
        assert!(!problems.contains("policy0"), "{problems}");
    }
    // A mistake is told once, however many actions it concerns.
    assert_eq!(
        with("solo", "@id(\"t\")\npermit (principal, action, resource)\nwhen { context.lien == \"x\" };")
            .unwrap_err()
            .len(),
        1
    );
}

#[test]
fn own_rules_deny_before_they_ask_before_they_allow() {
    let text = r#"
@id("mine.deny-make") @why("no make on Sundays") forbid (principal, action == Action::"run", resource) when { context.names.contains("make") };
@id("mine.ask-make") @ask("make?") forbid (principal, action == Action::"run", resource) when { context.names.containsAny(["make", "ninja"]) };
@id("mine.humans-too") @ask("sure?") forbid (principal == Actor::"human:ann", action == Action::"run", resource) when { context.names.contains("reboot") };
"#;
    let mut judge = Judge::new(with("solo", text).unwrap());
    let mut says = |who: &str, line: &str| {
        let verdict = judge.decide(&request(who, Action::Run, line));
        (verdict.outcome, verdict.rule, verdict.why)
    };
    assert_eq!(says("agent:bot", "make"), (Outcome::Deny, "mine.deny-make".into(), "no make on Sundays".into()));
    assert_eq!(says("agent:bot", "ninja"), (Outcome::Ask, "mine.ask-make".into(), "make?".into()));
    assert_eq!(says("human:ann", "reboot"), (Outcome::Ask, "mine.humans-too".into(), "sure?".into()));
    assert_eq!(says("human:bob", "reboot").0, Outcome::Allow);
    assert_eq!(says("agent:bot", "ls").0, Outcome::Allow);
}

#[test]
fn without_a_permit_a_rule_that_asks_is_a_deny() {
    let only_asks = [own("@id(\"t\") @ask(\"x?\") forbid (principal, action, resource);")];
    let mut judge = Judge::new(Policy::load(&only_asks).unwrap());
    let verdict = judge.decide(&request("agent:bot", Action::Run, "ls"));
    assert_eq!((verdict.outcome, verdict.rule.as_str()), (Outcome::Deny, "gate.unlisted"));
}

#[test]
fn a_rule_that_fails_is_never_an_allow_for_an_agent() {
    let overflows = "(context.hour + 1) * 9223372036854775807 > 5";
    for (annotation, outcome) in [("@why(\"boom\")", Outcome::Deny), ("@ask(\"boom?\")", Outcome::Ask)] {
        let text = format!(
            "@id(\"t\") {annotation} forbid (principal, action, resource) when {{ {overflows} && context.hour < 99 }};"
        );
        let mut judge = Judge::new(with("solo", &text).unwrap());
        let mut at_noon = request("agent:bot", Action::Run, "ls");
        at_noon.facts.hour = 12;
        let verdict = judge.decide(&at_noon);
        assert_eq!((verdict.outcome, verdict.rule.as_str()), (outcome, "gate.error"));
        at_noon.principal = request("human:ann", Action::Run, "ls").principal;
        assert_eq!(judge.decide(&at_noon).outcome, Outcome::Allow, "humans are not stopped by it");
    }
}

#[test]
fn what_cannot_be_known_is_asked_also_where_no_rule_says_so() {
    let mut judge = Judge::new(Policy::load(&[own("@id(\"t\") permit (principal, action, resource);")]).unwrap());
    for line in ["eval \"$X\"", "echo \"x", "$X", "echo ${ rm x; }"] {
        let verdict = judge.decide(&request("agent:bot", Action::Run, line));
        assert_eq!((verdict.outcome, verdict.rule.as_str()), (Outcome::Ask, "gate.opaque"), "{line}");
        assert_eq!(judge.decide(&request("human:ann", Action::Run, line)).outcome, Outcome::Allow);
    }
    let long = format!("echo {}", "x".repeat(70_000));
    assert_eq!(judge.decide(&request("agent:bot", Action::Run, &long)).outcome, Outcome::Ask);
}

#[test]
fn own_permits_widen_locked() {
    let text = "@id(\"mine.make\") @example(\"make test\") permit (principal, action == Action::\"run\", resource) when { context.names == [\"make\"] };";
    let mut judge = Judge::new(with("locked", text).unwrap());
    assert_eq!(judge.decide(&request("agent:bot", Action::Run, "make test")).outcome, Outcome::Allow);
    assert_eq!(judge.decide(&request("agent:bot", Action::Run, "make test; curl x")).outcome, Outcome::Deny);
    assert_eq!(judge.decide(&request("agent:bot", Action::Run, "make `rm -rf /`")).rule, "locked.unthinkable");
}

#[test]
fn a_rule_knows_what_a_run_promises_and_how_its_actors_runs_came_out() {
    let rules = r#"
@id("own.contract") @why("say what it changes")
forbid (principal, action == Action::"run", resource)
when { principal.class == "agent" }
unless { context has contract && context.contract.promises.contains("files") && !context.contract.may_change.contains("/**") };
@id("own.earned") @ask("it has not earned this yet")
forbid (principal, action == Action::"run", resource)
when { context.names.contains("make") }
unless { principal.record.unexpected == 0 && principal.record.runs >= 50 && context.record.valid >= 10 };
"#;
    let mut judge = Judge::new(with("solo", rules).unwrap());
    let promised = |pattern: &str| Promised {
        promises: ["files".to_owned()].into(),
        may_change: [pattern.to_owned()].into(),
        processes: Some(0),
        ..Promised::default()
    };
    let standing =
        |runs, unexpected| Standing { runs, valid: runs - unexpected, succeeded: runs, unexpected, unknown: 0 };
    let cases = [
        (None, standing(0, 0), standing(0, 0), "ls", Outcome::Deny),
        (Some("/**"), standing(0, 0), standing(0, 0), "ls", Outcome::Deny),
        (Some("/p/**"), standing(0, 0), standing(0, 0), "ls", Outcome::Allow),
        (Some("/p/**"), standing(49, 0), standing(49, 0), "make", Outcome::Ask),
        (Some("/p/**"), standing(50, 0), standing(9, 0), "make", Outcome::Ask),
        (Some("/p/**"), standing(50, 0), standing(10, 0), "make", Outcome::Allow),
        (Some("/p/**"), standing(60, 1), standing(20, 0), "make", Outcome::Ask),
    ];
    for (pattern, all, this, line, expected) in cases {
        let mut request = request("agent:bot", Action::Run, line);
        request.facts.contract = pattern.map(promised);
        (request.principal.record, request.facts.record) = (all, this);
        assert_eq!(judge.decide(&request).outcome, expected, "{pattern:?} {all:?} {this:?} {line}");
    }
    // A word that is not there does not load.
    let wrong = rules.replace("record.unexpected", "record.unexpeted");
    assert!(with("solo", &wrong).unwrap_err().join("\n").contains("unexpeted"));
}
