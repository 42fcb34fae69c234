//! The screen against xterm.js: the same stream must look the same, and a repaint must make it look the same again.

use crate::streams::{Case, Flavour, Random, Step, corpus, random_pieces};
use base64::Engine;
use holdfast_screen::Screen;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Streams on which we mean to differ, or cannot help it, and why. A listed difference that vanishes fails the test.
const KNOWN: &[(&str, &str)] = &[
    ("49_c1_8bit_utf8", "U+009B is no CSI here: no program writes it, and text must not become commands"),
    ("77_alt_resize", "xterm.js brings back what a narrower alternate screen cut off; programs redraw it anyway"),
];

/// Runs jobs through xterm.js and returns the states.
pub fn reference(jobs: &[Value]) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xterm");
    assert!(
        folder.join("node_modules/@xterm/headless").exists(),
        "the xterm.js reference is missing: run `npm ci` in {}",
        folder.display()
    );
    let mut node = Command::new("node")
        .arg("reference.js")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node must be installed for the xterm.js reference");
    let input: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    let mut stdin = node.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "the reference failed");
    let states: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(states.len(), jobs.len());
    states
}

pub fn written(bytes: &[u8]) -> Value {
    json!({ "w": base64::engine::general_purpose::STANDARD.encode(bytes) })
}

pub fn job(cols: u16, rows: u16, steps: Vec<Value>) -> Value {
    json!({ "cols": cols, "rows": rows, "steps": steps })
}

pub fn raw_job(case: &Case) -> Value {
    let step = |step: &Step| match step {
        Step::Write(bytes) => written(bytes),
        Step::Resize(cols, rows) => json!({ "r": [cols, rows] }),
    };
    job(case.cols, case.rows, case.steps.iter().map(step).collect())
}

/// The rows as [`Screen::rows_ansi`] gives them, each in its place.
fn rows_job(screen: &Screen) -> Value {
    let mut bytes = Vec::new();
    for (at, row) in screen.rows_ansi().iter().enumerate() {
        bytes.extend_from_slice(format!("\x1b[{};1H", at + 1).as_bytes());
        bytes.extend_from_slice(row);
    }
    job(screen.size().cols(), screen.size().rows(), vec![written(&bytes)])
}

fn repaint_job(screen: &mut Screen) -> Value {
    let mut history = Vec::new();
    screen.drain_history(&mut history);
    job(screen.size().cols(), screen.size().rows(), vec![written(&screen.repaint(Some(&history)))])
}

/// How two states differ in the given fields; empty when they do not.
fn differences(expected: &Value, got: &Value, fields: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for field in fields {
        if expected[field] == got[field] {
            continue;
        }
        let (Some(rows), Some(other)) = (expected[field].as_array(), got[field].as_array()) else {
            found.push(format!("{field}: xterm.js {} we {}", expected[field], got[field]));
            continue;
        };
        let at = (0..rows.len().max(other.len())).find(|at| rows.get(*at) != other.get(*at)).unwrap();
        match (rows.get(at).and_then(Value::as_array), other.get(at).and_then(Value::as_array)) {
            (Some(cells), Some(others)) => {
                let column = (0..cells.len()).find(|c| cells.get(*c) != others.get(*c)).unwrap_or(0);
                found.push(format!(
                    "{field} row {at} column {column}: xterm.js {} we {}",
                    cells[column], others[column]
                ));
            }
            _ => found.push(format!(
                "{field} {at} of {}/{}: xterm.js {} we {}",
                rows.len(),
                other.len(),
                rows.get(at).unwrap_or(&Value::Null),
                other.get(at).unwrap_or(&Value::Null)
            )),
        }
    }
    found
}

const EVERYTHING: [&str; 9] =
    ["cells", "history", "primary", "cursor", "pending", "alternate", "region", "tabs", "modes"];

/// Compares cases and returns what differs, by name.
fn compare(cases: &[Case]) -> BTreeMap<String, Vec<String>> {
    let mut jobs = Vec::new();
    for case in cases {
        let mut screen = case.play();
        jobs.extend([raw_job(case), rows_job(&screen), repaint_job(&mut screen)]);
    }
    let states = reference(&jobs);
    let mut found = BTreeMap::new();
    for (case, states) in cases.iter().zip(states.chunks_exact(3)) {
        let mut lines = Vec::new();
        let screen = case.play();
        let (column, row) = screen.cursor();
        let own = json!({ "cells": states[1]["cells"], "cursor": [column, row], "alternate": screen.alternate() });
        for line in differences(&states[0], &own, &["cells", "cursor", "alternate"]) {
            lines.push(format!("state: {line}"));
        }
        for line in differences(&states[0], &states[2], &EVERYTHING) {
            lines.push(format!("repaint: {line}"));
        }
        if !lines.is_empty() {
            found.insert(case.name.clone(), lines);
        }
    }
    found
}

#[test]
fn the_corpus_looks_as_in_xterm_js_and_repaints_to_the_same() {
    let found = compare(&corpus());
    let mut wrong = Vec::new();
    for (name, lines) in &found {
        if !KNOWN.iter().any(|(known, _)| known == name) {
            wrong.push(format!("{name}\n    {}", lines.join("\n    ")));
        }
    }
    for (name, why) in KNOWN {
        if !found.contains_key(*name) {
            wrong.push(format!("{name}: the known difference is gone ({why}); take it off the list"));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_sane_streams_look_as_in_xterm_js_and_repaint_to_the_same() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let cases: Vec<Case> = (first..first + count).map(sane_case).collect();
    let found = compare(&cases);
    let text: Vec<String> = found.iter().map(|(name, lines)| format!("{name}\n    {}", lines.join("\n    "))).collect();
    if let Some(case) = cases.iter().find(|case| found.contains_key(&case.name)) {
        first_difference(case);
    }
    assert!(text.is_empty(), "{} of {count} streams:\n{}", text.len(), text.join("\n"));
}

fn sane_case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let (cols, rows) = (10 + random.below(40) as u16, 3 + random.below(12) as u16);
    let pieces = 20 + random.below(100);
    let steps = random_pieces(&mut random, pieces, Flavour::Sane).into_iter().map(Step::Write).collect();
    Case { name: format!("seed {seed} {cols}x{rows}"), cols, rows, steps }
}

/// Prints after which piece of a stream the two part ways.
fn first_difference(case: &Case) {
    let prefixes: Vec<Case> = (1..=case.steps.len())
        .map(|end| Case { name: format!("{end:05}"), steps: case.steps[..end].to_vec(), ..case.clone() })
        .collect();
    if let Some((end, lines)) = compare(&prefixes).into_iter().next() {
        let end: usize = end.parse().unwrap();
        for step in &case.steps[end.saturating_sub(8)..end] {
            if let Step::Write(bytes) = step {
                println!("  {:?}", String::from_utf8_lossy(bytes));
            }
        }
        println!("{}: after these\n    {}", case.name, lines.join("\n    "));
    }
}
