//! How long a decision takes: `cargo run --release -p holdfast-gate --example decision`.
#![allow(clippy::disallowed_methods)] // it measures time, and nothing in the crate does

use holdfast_gate::{
    Action, Facts, Judge, Lexical, Line, Origin, Policy, Principal, Request, Resource, Source, Surroundings, look,
};
use std::time::Instant;

const ROUNDS: usize = 2_000;

fn main() {
    let around =
        Surroundings::new("/home/user/project", "/home/user", None, vec!["/home/user/.config/holdfast".into()]);
    let lines = [
        "cargo build",
        "rm -rf ./logs && git push",
        "cd a && make -j2 2>&1 | tee log; for f in *.c; do gcc -c $f; done",
    ];
    for name in ["solo", "careful", "locked"] {
        let ready = Source::ready(name).expect("one of ours");
        let began = Instant::now();
        let policy = Policy::load(std::slice::from_ref(&ready)).expect("ours load");
        println!("{name}: {} rules loaded in {:?}", policy.rules().len(), began.elapsed());
        measure(name, &mut Judge::new(policy), &lines, &around);
        // A person with many rules of their own.
        let own: String = (0..27).map(|n| format!("@id(\"own.r{n}\") @ask(\"why\") forbid (principal, action == Action::\"run\", resource) when {{ principal.class == \"agent\" && context.names.contains(\"cmd{n}\") && (context.cwd like \"/srv/{n}/*\" || context.writes.containsAny([\"/etc/{n}\", \"/usr/{n}\"])) && context.hour < 9 }};\n")).collect();
        let own = Source { file: "own.cedar".into(), text: own, origin: Origin::Own };
        let policy = Policy::load(&[ready, own]).expect("these load");
        measure(&format!("{name} and 27 of one's own"), &mut Judge::new(policy), &lines, &around);
    }
}

fn measure(name: &str, judge: &mut Judge, lines: &[&str], around: &Surroundings) {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let line = lines[round % lines.len()];
        let began = Instant::now();
        let seen = look(&Line::read(line), around, &Lexical);
        let request = Request {
            principal: Principal {
                handle: "agent:bot".into(),
                class: "agent".into(),
                record: holdfast_gate::Standing::default(),
            },
            action: Action::Run,
            resource: Resource { id: "ses_1".into(), name: "work".into() },
            facts: Facts {
                line: line.into(),
                seen,
                cwd: around.cwd.clone(),
                home: around.home.clone(),
                state: "idle".into(),
                hour: 12,
                ..Facts::default()
            },
        };
        std::hint::black_box(judge.decide(&request));
        times.push(began.elapsed());
    }
    times.sort();
    println!(
        "  {name}: line, paths, risks and decision: median {:?}, p99 {:?}",
        times[ROUNDS / 2],
        times[ROUNDS * 99 / 100]
    );
}
