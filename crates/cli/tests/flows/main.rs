//! Durable flows, as a person uses them: the real program, service and host, killed at bad moments. A ledger outside counts what
//! really happened.
#![allow(clippy::unwrap_used)] // a test's failure is its message

mod crashing;
mod dev;
mod documented;
mod lineage;
mod using;
mod who;

use holdfast_harness::{Home, until};
use serde_json::Value;
use std::path::PathBuf;

/// A home with a ledger: commands write into it, and nothing is ever taken out.
struct Kitchen {
    home: Home,
}

impl Kitchen {
    fn new() -> Kitchen {
        Kitchen { home: Home::new() }
    }

    fn ledger(&self) -> PathBuf {
        self.home.join("ledger")
    }

    /// A command that leaves a trace each time it really runs.
    fn effect(&self, what: &str, rest: &str) -> String {
        format!("echo {{{{ flow }}}} {what} >> {}; {rest}", self.ledger().display())
    }

    /// How often each line is in the ledger.
    fn counted(&self) -> std::collections::BTreeMap<String, usize> {
        let mut counted = std::collections::BTreeMap::new();
        for line in std::fs::read_to_string(self.ledger()).unwrap_or_default().lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
        counted
    }

    /// Writes a definition.
    fn file(&self, text: &str) -> String {
        let path = self.home.join("flow.yaml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn start(&self, text: &str, id: &str) {
        let file = self.file(text);
        self.home.ok(&["flow", "start", &file, "margherita", "--id", id]);
    }

    fn flow(&self, id: &str) -> Value {
        self.home.json(&["flow", "show", id])
    }

    #[track_caller]
    fn until_status(&self, id: &str, status: &str) -> Value {
        let mut last = Value::Null;
        let found = holdfast_harness::poll(|| {
            last = self.flow(id);
            last["status"] == status
        });
        assert!(found.is_some(), "waited in vain for {status} of {last:#}");
        last
    }

    fn service_pid(&self) -> u32 {
        until("an answer of the flow service", || {
            let ran = self.home.run(&["flow", "ls", "--json"]);
            let status = self.home.run(&["flow", "status", "--json"]);
            let pid = serde_json::from_str::<Value>(&status.out).ok()?["pid"].as_u64()?;
            (ran.status == 0).then_some(pid as u32)
        })
    }
}
