//! What our own surfaces cost, beside the plain thing that does the same.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::soak::{HUMAN, Mcp, Place, http};
use crate::step::on_path;

/// One comparison.
pub struct Row {
    what: String,
    base: String,
    /// Median milliseconds of ours and of the base; nothing where the machine does not offer it.
    times: Option<(f64, Option<f64>)>,
    why_not: String,
}

impl Row {
    /// A figure that has nothing beside it.
    pub fn alone(what: &str, ours: f64) -> Row {
        Row { what: what.into(), base: "–".into(), times: Some((ours, None)), why_not: String::new() }
    }

    /// What this machine does not offer.
    pub fn not_provided(what: &str, why_not: String) -> Row {
        Row { what: what.into(), base: "–".into(), times: None, why_not }
    }
}

/// Median, in milliseconds, of doing something `count` times, after a few to get warm.
pub fn median_ms(count: usize, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = vec![];
    for round in 0..count + 3 {
        let began = Instant::now();
        act()?;
        if round >= 3 {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    median(times)
}

pub fn median(mut times: Vec<f64>) -> Result<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().context("nothing was measured")
}

pub fn succeeds(ran: crate::soak::Ran) -> Result<()> {
    ensure!(ran.status == 0, "{}", ran.err);
    Ok(())
}

/// Measures all of them.
pub fn measure(place: &Place, full: bool) -> Result<Vec<Row>> {
    let count = if full { 200 } else { 15 };
    let mut rows = vec![];
    let mut row = |what: &str, base: &str, ours: f64, than: f64| {
        rows.push(Row {
            what: what.into(),
            base: base.into(),
            times: Some((ours, Some(than))),
            why_not: String::new(),
        });
    };
    let bare = median_ms(count, || {
        ensure!(Command::new("bash").args(["-c", "true"]).stdin(Stdio::null()).status()?.success());
        Ok(())
    })?;
    let actor = "agent:bench";
    for name in ["cli", "web", "mcp"] {
        succeeds(place.run(actor, &["new", "-d", "-n", name, "--", "bash", "--norc"])?)?;
    }
    let body = json!({ "session": "web", "command": "true", "wait_ms": 20_000 });
    let over_http = median_ms(count, || {
        let (status, answer) = http(place, "POST", "/v1/runs", &body)?;
        ensure!(answer["exit_code"] == 0, "{status}: {answer}");
        Ok(())
    })?;
    row("run of `true` over HTTP, a new connection each", "`bash -c true`", over_http, bare);
    let mut mcp = Mcp::open(place, actor)?;
    let over_mcp = median_ms(count, || {
        let answer = mcp.call("run_command", &json!({ "session": "mcp", "command": "true" }))?;
        ensure!(answer.is_ok(), "{answer:?}");
        Ok(())
    })?;
    row("run of `true` by an MCP tool", "`bash -c true`", over_mcp, bare);
    let by_program = median_ms(count, || succeeds(place.run(actor, &["run", "cli", "--", "true"])?))?;
    row("run of `true` by the command line", "`bash -c true`", by_program, bare);
    let there = format!("{}/cli", place.far_name);
    // The turn of whoever ran here ends with its release.
    succeeds(place.run(actor, &["release", "cli"])?)?;
    let through_relay = median_ms(count, || succeeds(place.far(&["run", &there, "--", "true"])?))?;
    row("the same through a relay, both ends on this machine", "the command line", through_relay, by_program);
    row(
        "a flow's step (`true` in a session of its own)",
        "`bash -c true`",
        flow_step(place, if full { 50 } else { 8 })?,
        bare,
    );
    let (gated, open) = exec_gate(place, if full { 1000 } else { 20 }, count.min(9))?;
    row("a program started under `new --gate exec`", "the same without a gate", gated, open);
    rows.push(snapshot(place, if full { 500 } else { 40 }, count.min(30))?);
    let mut cuts = vec![];
    median_ms(count, || {
        let ran = place.run(HUMAN, &["--json", "seize", "mcp", "--reason", "bench"])?;
        let answer: Value = serde_json::from_str(&ran.out).with_context(|| ran.err.clone())?;
        cuts.push(answer["cut_us"].as_f64().context("no cut_us")? / 1e3);
        Ok(())
    })?;
    rows.push(Row::alone("a seizure, until no byte of the old holder passes", median(cuts)?));
    rows.extend(super::portable::measure(place, if full { 15 } else { 2 })?);
    Ok(rows)
}

/// The time of a step of a flow of many.
fn flow_step(place: &Place, steps: usize) -> Result<f64> {
    let text: String = (0..steps).map(|n| format!("  - run: S{n}\n    command: \"true\"\n")).collect();
    let file = place.work().join("steps.yaml");
    std::fs::write(&file, format!("flow: Steps\nsteps:\n{text}"))?;
    let began = Instant::now();
    succeeds(place.run(HUMAN, &["flow", "start", path(&file)?, "x", "--id", "steps"])?)?;
    succeeds(place.run(HUMAN, &["flow", "watch", "steps"])?)?;
    Ok(began.elapsed().as_secs_f64() * 1e3 / steps as f64)
}

/// A program's start with and without the exec gate, in turns.
fn exec_gate(place: &Place, starts: usize, count: usize) -> Result<(f64, f64)> {
    succeeds(place.run(HUMAN, &["new", "-d", "-n", "gated", "--gate", "exec", "--", "bash", "--norc"])?)?;
    succeeds(place.run(HUMAN, &["new", "-d", "-n", "open", "--", "bash", "--norc"])?)?;
    let line = format!("for i in $(seq {starts}); do /bin/true; done");
    let (mut gated, mut open) = (vec![], vec![]);
    for _ in 0..count {
        for (name, times) in [("gated", &mut gated), ("open", &mut open)] {
            let began = Instant::now();
            succeeds(place.run(HUMAN, &["run", name, "--", &line])?)?;
            times.push(began.elapsed().as_secs_f64() * 1e3 / starts as f64);
        }
    }
    Ok((median(gated)?, median(open)?))
}

/// The graph of a session with many processes, beside lsof over the same ones.
fn snapshot(place: &Place, processes: usize, count: usize) -> Result<Row> {
    grow_tree(place, "tree", processes)?;
    let ours = median_ms(count, || {
        let (status, _) = http(place, "GET", "/v1/sessions/tree/graph", &Value::Null)?;
        ensure!(status == 200, "{status}");
        Ok(())
    })?;
    let what = format!("graph of a session with {processes} processes, over HTTP");
    let base = "`lsof` over the same processes".to_owned();
    let Some(lsof) =
        on_path("lsof").or_else(|| Some("/usr/bin/lsof".into()).filter(|path: &std::path::PathBuf| path.exists()))
    else {
        return Ok(Row { what, base, times: Some((ours, None)), why_not: "lsof is not installed".into() });
    };
    let info: Value = serde_json::from_str(&place.run(HUMAN, &["--json", "info", "tree"])?.out)?;
    let session = std::fs::read_to_string(format!("/proc/{}/stat", info["pid"])).context("the tree's root")?;
    // Fields behind the name: state, parent, group, session.
    let session =
        session.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2)).context("its group")?.to_owned();
    let theirs = median_ms(count.min(5), || {
        // Its status is 1 where it could not look at everything.
        Command::new(&lsof)
            .args(["-nP", "-g", &session])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(())
    })?;
    Ok(Row { what, base, times: Some((ours, Some(theirs))), why_not: String::new() })
}

/// A session with so many processes; waits until they are there.
pub fn grow_tree(place: &Place, name: &str, processes: usize) -> Result<()> {
    let grow = format!("i=1; while [ $i -lt {processes} ]; do sleep 100000 & i=$((i + 1)); done; echo grown; wait");
    succeeds(place.run(HUMAN, &["new", "-d", "-n", name, "--", "sh", "-c", &grow])?)?;
    succeeds(place.run(HUMAN, &["wait", name, "--for", "text:grown", "--from", "0", "--timeout", "60"])?)
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path")
}

/// As a table.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::from("| what | beside | ours, ms | base, ms | ratio |\n|---|---|--:|--:|--:|\n");
    for Row { what, base, times, why_not } in rows {
        let figures = match times {
            Some((ours, Some(than))) => format!("{ours:.2} | {than:.2} | {:.2}×", ours / than),
            Some((ours, None)) => format!("{ours:.2} | – | {}", if why_not.is_empty() { "–" } else { why_not }),
            None => format!("– | – | not provided: {why_not}"),
        };
        out += &format!("| {what} | {base} | {figures} |\n");
    }
    out
}

#[test]
fn a_row_without_a_base_says_why() {
    let row = |times, why_not: &str| Row { what: "w".into(), base: "b".into(), times, why_not: why_not.into() };
    let table = markdown(&[
        row(Some((3.0, Some(2.0))), ""),
        row(Some((3.0, None)), "lsof is not installed"),
        Row::not_provided("w", "no relay".into()),
    ]);
    assert!(
        table.contains("| 1.50× |") && table.contains("lsof is not installed") && table.contains("no relay"),
        "{table}"
    );
}
