//! keepbench: terminal-session keepers side by side, as ratios measured in one run.

mod floor;
mod measures;
mod payload;
mod pieces;
mod report;
mod sys;
mod tools;

use std::collections::BTreeMap;
use std::time::Instant;

pub struct Profile {
    pub quick: bool,
    pub reps: usize,
    pub ascii: usize,
    pub sgr: usize,
    pub chunks: usize,
    pub echo: usize,
    pub create: usize,
    pub mem: Vec<usize>,
    pub mem_hist: Vec<usize>,
    pub fan: Vec<usize>,
    pub fan_bytes: usize,
    pub idle_sessions: usize,
    pub idle_secs: f64,
    pub limit_secs: u64,
}

const MB: usize = 1_000_000;

fn profile(quick: bool) -> Profile {
    if quick {
        Profile {
            quick,
            reps: 1,
            ascii: 8 * MB,
            sgr: 2 * MB,
            chunks: 6,
            echo: 100,
            create: 10,
            mem: vec![1, 10],
            mem_hist: vec![2],
            fan: vec![4],
            fan_bytes: 2 * MB,
            idle_sessions: 10,
            idle_secs: 0.5,
            limit_secs: 1,
        }
    } else {
        Profile {
            quick,
            reps: 2,
            ascii: 200 * MB,
            sgr: 50 * MB,
            chunks: 20,
            echo: 2000,
            create: 200,
            mem: vec![1, 50, 200],
            mem_hist: vec![1, 50, 200],
            fan: vec![1, 4, 16],
            fan_bytes: 20 * MB,
            idle_sessions: 100,
            idle_secs: 10.0,
            limit_secs: 12,
        }
    }
}

/// metric -> tool -> one value per round (NaN where the round gave none)
pub type Data = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("payload") {
        payload::main(&args[1..]);
    }
    if args.first().map(String::as_str) == Some("floor") {
        floor::main(&args[1..]);
    }
    let mut quick = true;
    let (mut file, mut out, mut only_tools, mut only_meas, mut reps) =
        (String::from("tools.conf"), String::new(), vec![], vec![], None);
    let mut bins: Vec<(String, String)> = vec![];
    let mut i = 0;
    while i < args.len() {
        let val = || args.get(i + 1).cloned().unwrap_or_default();
        let list = || val().split(',').map(String::from).collect::<Vec<_>>();
        match args[i].as_str() {
            "--quick" => quick = true,
            "--full" => quick = false,
            "--tools-file" => file = val(),
            "--tools" => only_tools = list(),
            "--measures" => only_meas = list(),
            "--reps" => reps = val().parse().ok(),
            "--out" => out = val(),
            "--autogroup" => {
                let n: i32 = val().parse().expect("--autogroup NICE");
                sys::AUTOGROUP.store(n.clamp(-20, 19), std::sync::atomic::Ordering::Relaxed);
            }
            "--bin" => {
                let v = val();
                let (n, p) = v.split_once('=').expect("--bin NAME=PATH");
                bins.push((n.into(), p.into()));
            }
            _ => {
                eprintln!(
                    "keepbench [--quick|--full] [--tools a,b] [--measures tput,det,echo,attach,create,mem,fan,idle]\n\
                     \x20         [--reps N] [--bin NAME=PATH] [--tools-file F] [--autogroup NICE] [--out PREFIX]  (writes PREFIX.md, PREFIX.json)"
                );
                std::process::exit(2);
            }
        }
        i += if args[i] == "--quick" || args[i] == "--full" { 1 } else { 2 };
    }
    let mut p = profile(quick);
    if let Some(r) = reps {
        p.reps = r;
    }
    let (use_tools, notes) = choose(tools::load(&file, &bins), &only_tools, quick);
    sys::become_subreaper();
    let t0 = Instant::now();
    let mut b = measures::Bench {
        p: &p,
        data: Data::new(),
        notes,
        t0,
        budget: if quick { 46.0 } else { 1e9 },
        self_exe: std::env::current_exe().unwrap().display().to_string(),
        cur: String::new(),
    };
    let save = |b: &measures::Bench| {
        if !out.is_empty() {
            let secs = t0.elapsed().as_secs_f64();
            std::fs::write(format!("{out}.md"), report::markdown(b, &use_tools, secs)).unwrap();
            std::fs::write(format!("{out}.json"), report::json(b, &use_tools, secs)).unwrap();
        }
    };
    b.run(&use_tools, &only_meas, &save);
    println!("{}", report::markdown(&b, &use_tools, t0.elapsed().as_secs_f64()));
    save(&b);
}

/// The tools that are installed and wanted, and what there is to say about the others.
fn choose(all: Vec<tools::Tool>, only: &[String], quick: bool) -> (Vec<tools::Tool>, Vec<String>) {
    let (mut chosen, mut notes) = (vec![], vec![]);
    for t in all {
        let named = only.contains(&t.name);
        let left_out = !only.is_empty() && !named && !t.raw;
        if left_out || (quick && !t.quick && !named) {
            continue;
        }
        if !t.raw && t.bin.is_empty() {
            notes.push(format!("{}: not installed, skipped", t.name));
            continue;
        }
        chosen.push(t);
    }
    (chosen, notes)
}
