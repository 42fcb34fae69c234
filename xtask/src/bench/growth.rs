//! What costs do as things grow: sessions, clients, history, journals, process trees, sleeping flows, hosts on a relay. Nothing may grow
//! worse than linearly.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::ratios::{grow_tree, median_ms, succeeds};
use crate::soak::{HUMAN, Log, Place, Sdks, http, memory_kib};
use crate::step::say;

/// Costs at sizes.
pub struct Series {
    /// Of its file.
    pub id: &'static str,
    pub title: String,
    /// What there are more and more of.
    pub of: &'static str,
    pub unit: &'static str,
    /// Whether it is the cost of one more, which should stay, or of all, which may grow as they do.
    pub each: bool,
    /// Size and cost.
    pub points: Vec<(f64, f64)>,
}

/// Beyond this the growth is more than noise.
const SLACK: f64 = 0.2;

impl Series {
    /// The power of the size that the cost grows with at the large end: what is small hides behind what is there anyway.
    fn power(&self) -> f64 {
        let Some(last) = self.points.last() else { return 0.0 };
        // Nearer ones tell more of noise than of growth.
        let earlier = self.points.iter().rfind(|point| point.0 * 4.0 <= last.0).or(self.points.first());
        match earlier {
            Some(first) if last.0 > first.0 => (last.1 / first.1).ln() / (last.0 / first.0).ln(),
            _ => 0.0,
        }
    }

    fn verdict(&self) -> &'static str {
        let allowed = if self.each { 0.0 } else { 1.0 };
        if self.power() > allowed + SLACK { "**worse than linear**" } else { "fine" }
    }
}

/// What is done in a place for some series.
type Measure = fn(&Place, bool) -> Result<Vec<Series>>;

/// Measures all of them, each in a place of its own.
pub fn measure(program: &Path, full: bool) -> Result<Vec<Series>> {
    let mut all = vec![];
    let measures: [(&str, Measure); 6] = [
        ("sessions", sessions),
        ("clients", clients),
        ("history", history),
        ("journal", journal),
        ("trees", trees),
        ("flows", flows),
    ];
    for (name, measure) in measures {
        say(&format!("growth: {name}"));
        let log = Log::default();
        let place = Place::new(program, &super::plan(), Sdks::default(), &log)?;
        let series = measure(&place, full);
        place.end(&log);
        all.extend(series.with_context(|| format!("growth of {name}"))?);
    }
    Ok(all)
}

fn of(full: bool, large: &[usize], small: &[usize]) -> Vec<usize> {
    if full { large.to_vec() } else { small.to_vec() }
}

fn sessions(place: &Place, full: bool) -> Result<Vec<Series>> {
    let (mut create, mut list, mut memory) = (vec![], vec![], vec![]);
    let mut number = 0;
    for size in of(full, &[1, 10, 100, 500, 1000, 2000], &[1, 5, 20]) {
        let began = Instant::now();
        let before = number;
        while number < size {
            let body = json!({ "name": format!("s{number}"), "command": ["sleep", "infinity"], "cwd": "/" });
            let (status, answer) = http(place, "POST", "/v1/sessions", &body)?;
            ensure!(status < 300, "{status}: {answer}");
            number += 1;
        }
        create.push((size as f64, began.elapsed().as_secs_f64() * 1e3 / (number - before) as f64));
        let listed = median_ms(7, || {
            let (status, answer) = http(place, "GET", "/v1/sessions", &Value::Null)?;
            ensure!(status == 200 && answer.as_array().map(Vec::len) == Some(number), "{status}");
            Ok(())
        })?;
        list.push((size as f64, listed));
        let host = place.host_pid().context("no host")?;
        memory.push((size as f64, memory_kib(host) as f64 / 1024.0));
    }
    let series =
        |id, title: &str, unit, each, points| Series { id, title: title.into(), of: "sessions", unit, each, points };
    Ok(vec![
        series("sessions-create", "Start one more session", "ms", true, create),
        series("sessions-list", "List all sessions", "ms", false, list),
        series("sessions-memory", "Memory of the host", "MiB", false, memory),
    ])
}

fn clients(place: &Place, full: bool) -> Result<Vec<Series>> {
    let mut points = vec![];
    for size in of(full, &[1, 4, 16, 64], &[1, 4]) {
        let name = format!("c{size}");
        let lines = if full { 100_000 } else { 5_000 };
        let command = format!("stty -echo; read x; seq {lines}; echo all-told; sleep 100");
        let new = place.run(HUMAN, &["new", "-d", "-n", &name, "--", "sh", "-c", &command])?;
        ensure!(new.status == 0, "{}", new.err);
        let mut readers = vec![];
        for _ in 0..size {
            let mut reader = place.command(HUMAN, &["logs", &name, "--follow"]);
            readers.push(reader.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
        }
        let outputs: Vec<_> = readers.iter_mut().filter_map(|reader| reader.stdout.take()).collect();
        let waiting: Vec<_> = outputs
            .into_iter()
            .map(|out| {
                std::thread::spawn(move || {
                    BufReader::new(out).lines().map_while(Result::ok).any(|line| line.contains("all-told"))
                })
            })
            .collect();
        // All of them have begun to follow once the host counts that many connections; a moment is enough and is not measured.
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let sent = place.run(HUMAN, &["send", &name, "--enter", "go"])?;
        ensure!(sent.status == 0, "{}", sent.err);
        let heard = waiting.into_iter().map(|reader| reader.join().unwrap_or(false)).filter(|heard| *heard).count();
        ensure!(heard == size, "{heard} of {size} clients read all of it");
        points.push((size as f64, began.elapsed().as_secs_f64() * 1e3));
        for mut reader in readers {
            reader.kill()?;
            reader.wait()?;
        }
    }
    let title = "Output until every client has read it".into();
    Ok(vec![Series { id: "clients", title, of: "clients that follow one session", unit: "ms", each: false, points }])
}

fn history(place: &Place, full: bool) -> Result<Vec<Series>> {
    let mut points = vec![];
    for size in of(full, &[10, 100, 1_000, 10_000], &[10, 100]) {
        let name = format!("h{size}");
        let told = format!("told-all-{size}");
        let command = format!("seq {size}; echo {told}; sleep 100000");
        succeeds(place.run(HUMAN, &["new", "-d", "-n", &name, "--", "sh", "-c", &command])?)?;
        let written = ["wait", &name, "--for", &format!("text:{told}"), "--from", "0", "--timeout", "60"];
        succeeds(place.run(HUMAN, &written)?)?;
        points.push((size as f64, median_ms(9, || attach(place, &name, &told))?));
        place.run(HUMAN, &["end", &name, "--grace", "0"])?;
    }
    let title = "Attach, until the screen is there".into();
    Ok(vec![Series { id: "history", title, of: "lines of history", unit: "ms", each: false, points }])
}

/// Attaches a terminal and leaves it when it shows the text.
fn attach(place: &Place, name: &str, text: &str) -> Result<()> {
    let words = place.command(HUMAN, &["attach", name]);
    let line = std::iter::once(words.get_program())
        .chain(words.get_args())
        .map(|word| word.to_str().context("a word"))
        .collect::<Result<Vec<_>>>()?
        .join(" ");
    // `script` gives it a terminal.
    let mut terminal = place.other(Path::new("script"));
    let mut child = terminal
        .args(["-qefc", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run script(1)")?;
    let mut out = child.stdout.take().context("piped")?;
    let (mut seen, mut some) = (vec![], [0; 65536]);
    let shown = loop {
        let count = out.read(&mut some)?;
        seen.extend_from_slice(&some[..count]);
        let shown = seen.windows(text.len()).any(|window| window == text.as_bytes());
        if shown || count == 0 {
            break shown;
        }
    };
    child.kill()?;
    child.wait()?;
    ensure!(shown, "{}", String::from_utf8_lossy(&seen));
    Ok(())
}

/// Hosts that wait at a relay, by the program that measures relays: `relayed`, an example of the crate `relay`.
pub fn relay(relayed: &Path, full: bool) -> Result<Series> {
    say("growth: hosts on a relay");
    let sizes = of(full, &[100, 1_000, 4_000, 10_000], &[10, 100]);
    let output = Command::new(relayed)
        .arg("idle")
        .args(sizes.iter().map(usize::to_string))
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", relayed.display()))?;
    ensure!(output.status.success(), "{}: {}", relayed.display(), output.status);
    let text = String::from_utf8(output.stdout)?;
    let points = text
        .lines()
        .map(|line| {
            let (size, cost) = line.split_once(' ').with_context(|| format!("not a figure: {line}"))?;
            Ok((size.parse()?, cost.parse()?))
        })
        .collect::<Result<Vec<(f64, f64)>>>()?;
    ensure!(points.len() == sizes.len(), "{text}");
    let title = "Memory of the relay".into();
    Ok(Series { id: "relay", title, of: "idle hosts on it", unit: "MiB", each: false, points })
}

fn journal(place: &Place, full: bool) -> Result<Vec<Series>> {
    let new = place.run(HUMAN, &["new", "-d", "-n", "j", "--", "sh", "-c", "stty -echo; exec cat > /dev/null"])?;
    ensure!(new.status == 0, "{}", new.err);
    let (mut act, mut verify) = (vec![], vec![]);
    let mut acts = 0;
    for size in of(full, &[100, 400, 1600, 6400], &[10, 40]) {
        let before = acts;
        let began = Instant::now();
        while acts < size {
            let size = if acts % 2 == 0 { "100x30" } else { "80x24" };
            let ran = place.run(HUMAN, &["resize", "j", size])?;
            ensure!(ran.status == 0, "{}", ran.err);
            acts += 1;
        }
        act.push((size as f64, began.elapsed().as_secs_f64() * 1e3 / (acts - before) as f64));
        let verified = median_ms(5, || {
            let ran = place.run(HUMAN, &["journal", "j", "--verify"])?;
            ensure!(ran.status == 0, "{}", ran.err);
            Ok(())
        })?;
        verify.push((size as f64, verified));
    }
    let series = |id, title: &str, each, points| Series {
        id,
        title: title.into(),
        of: "acts in the journal",
        unit: "ms",
        each,
        points,
    };
    Ok(vec![
        series("journal-act", "One more act, by the command line", true, act),
        series("journal-verify", "Verify the journal", false, verify),
    ])
}

fn trees(place: &Place, full: bool) -> Result<Vec<Series>> {
    let mut points = vec![];
    for size in of(full, &[10, 50, 200, 1000], &[5, 20]) {
        let name = format!("t{size}");
        grow_tree(place, &name, size)?;
        let looked = median_ms(7, || {
            let (status, _) = http(place, "GET", &format!("/v1/sessions/{name}/graph"), &Value::Null)?;
            ensure!(status == 200, "{status}");
            Ok(())
        })?;
        points.push((size as f64, looked));
        place.run(HUMAN, &["end", &name, "--grace", "0"])?;
    }
    let title = "Look at a session's processes".into();
    Ok(vec![Series { id: "trees", title, of: "processes in the session", unit: "ms", each: false, points }])
}

fn flows(place: &Place, full: bool) -> Result<Vec<Series>> {
    let file = place.work().join("wait.yaml");
    std::fs::write(&file, "flow: Wait\nsteps:\n  - sleep: 30d\n")?;
    let file = file.to_str().context("a path")?;
    let (mut start, mut memory) = (vec![], vec![]);
    let mut number = 0;
    for size in of(full, &[10, 100, 500, 2000], &[3, 12]) {
        let before = number;
        let began = Instant::now();
        while number < size {
            let ran = place.run(HUMAN, &["flow", "start", file, "x", "--id", &format!("w{number}")])?;
            ensure!(ran.status == 0, "{}", ran.err);
            number += 1;
        }
        start.push((size as f64, began.elapsed().as_secs_f64() * 1e3 / (number - before) as f64));
        let status: Value = serde_json::from_str(&place.run(HUMAN, &["--json", "flow", "status"])?.out)?;
        let pid =
            status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).with_context(|| format!("{status}"))?;
        memory.push((size as f64, memory_kib(pid) as f64 / 1024.0));
    }
    place.run(HUMAN, &["flow", "stop"])?;
    let series = |id, title: &str, unit, each, points| Series {
        id,
        title: title.into(),
        of: "sleeping flows",
        unit,
        each,
        points,
    };
    Ok(vec![
        series("flows-start", "Start one more flow, by the command line", "ms", true, start),
        series("flows-memory", "Memory of the flow service", "MiB", false, memory),
    ])
}

/// As a table with drawings.
pub fn markdown(series: &[Series]) -> String {
    let mut out = String::from(
        "A cost of all may grow as their number does (power 1); the cost of one more should stay (power 0). The dashed line grows as the \
         size does. The power is that of the large end.\n\n| cost | size | from | to | power | |\n|---|---|--:|--:|--:|---|\n",
    );
    for one in series {
        let (Some(first), Some(last)) = (one.points.first(), one.points.last()) else { continue };
        out += &format!(
            "| {} | {} to {} {} | {:.2} {} | {:.2} {} | {:.2} | {} |\n",
            one.title,
            first.0,
            last.0,
            one.of,
            first.1,
            one.unit,
            last.1,
            one.unit,
            one.power(),
            one.verdict()
        );
    }
    out += "\n";
    for one in series {
        out += &format!(
            "<img src=\"images/bench-{}.svg\" width=\"49%\" alt=\"{} against {}\">\n",
            one.id, one.title, one.of
        );
    }
    out
}

#[test]
fn growth_beyond_the_size_is_told() {
    let series = |each, last| Series {
        id: "x",
        title: "t".into(),
        of: "s",
        unit: "ms",
        each,
        points: vec![(1.0, 1.0), (100.0, last)],
    };
    assert_eq!(series(false, 100.0).verdict(), "fine");
    assert_ne!(series(false, 1000.0).verdict(), "fine");
    assert_eq!(series(true, 1.2).verdict(), "fine");
    assert_ne!(series(true, 50.0).verdict(), "fine");
}
