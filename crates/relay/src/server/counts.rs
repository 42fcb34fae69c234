//! What the relay counts. No names, no addresses: numbers alone.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds, and gives what it was.
    pub fn add(&self, by: u64) -> u64 {
        self.0.fetch_add(by, Ordering::Relaxed)
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub registrations: Count,
    pub refused_hosts: Count,
    pub joined: Count,
    pub not_there: Count,
    pub sent_on: Count,
    pub not_dialled: Count,
    pub crowded: Count,
    pub bytes: Count,
}

impl Counts {
    /// In the Prometheus text format.
    pub fn text(&self, hosts: usize, connections: usize, directory: Option<bool>) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, value: usize| {
            let _ = writeln!(
                text,
                "# HELP holdfast_relay_{name} {help}\n# TYPE holdfast_relay_{name} gauge\nholdfast_relay_{name} {value}"
            );
        };
        gauge("hosts", "Hosts that are registered.", hosts);
        gauge("connections", "Open connections.", connections);
        if let Some(is_up) = directory {
            gauge("directory_up", "Whether the directory has this relay's hosts.", is_up.into());
        }
        for (name, help, count) in [
            ("registrations", "Hosts that proved their key.", &self.registrations),
            ("refused_hosts", "Hosts that did not.", &self.refused_hosts),
            ("joined", "Clients that were joined with their host.", &self.joined),
            ("not_there", "Clients whose host was not registered.", &self.not_there),
            ("sent_on", "Clients that were sent to another relay.", &self.sent_on),
            ("not_dialled", "Clients whose host did not dial back.", &self.not_dialled),
            ("crowded", "Connections that were refused because of a limit.", &self.crowded),
            ("bytes", "Bytes that were passed on.", &self.bytes),
        ] {
            let value = count.get();
            let _ = writeln!(
                text,
                "# HELP holdfast_relay_{name}_total {help}\n# TYPE holdfast_relay_{name}_total counter\nholdfast_relay_{name}_total {value}"
            );
        }
        text
    }
}
