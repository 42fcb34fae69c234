//! `holdfast prove`, run as a person runs it.

use holdfast_harness::Home;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;

#[test]
fn everything_that_is_provided_holds_and_what_is_not_says_why() {
    let home = Home::new();
    let page = home.join("prove.html");
    // All of it takes longer than one command may elsewhere.
    let ran = home.command(&["prove", "--json", "--report", page.to_str().unwrap()]).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {err}"));
    let findings = report["findings"].as_array().unwrap();
    assert!(ran.status.success(), "{report:#}");
    let of = |outcome: &str| -> Vec<&str> {
        findings
            .iter()
            .filter(|finding| finding["outcome"] == outcome)
            .map(|finding| finding["id"].as_str().unwrap())
            .collect()
    };
    // Forks and moves need root and CRIU, which `cargo xtask test` fetches.
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let not_provided: &[&str] = if is_root { &[] } else { &["migration", "fork"] };
    assert_eq!(of("not_provided"), not_provided, "{report:#}");
    assert_eq!(of("held").len(), findings.len() - not_provided.len());
    // An experiment that saw nothing has shown nothing.
    for finding in findings.iter().filter(|finding| finding["outcome"] == "held") {
        assert!(!finding["steps"].as_array().unwrap().is_empty(), "{finding}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(findings.iter().all(|finding| page.contains(finding["id"].as_str().unwrap())));
}

#[test]
fn an_unknown_experiment_is_a_usage_error_and_another_program_does_not_pass() {
    let home = Home::new();
    let ran = home.run(&["prove", "--only", "telepathy"]);
    assert!(ran.status == 2 && ran.err.contains("no experiment `telepathy`"), "{ran}");
    // A program that does nothing proves nothing.
    let ran = home.run(&["prove", "--program", "/bin/true", "--only", "ownerless", "--json"]);
    assert_eq!(ran.status, 1, "{ran}");
}
