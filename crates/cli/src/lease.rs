//! What a host is told about leases, in `config.toml`.

use crate::failure::Failure;
use holdfast_host::{Cluster, LeaseConfig};
use std::path::PathBuf;
use std::time::Duration;

/// Long enough for an etcd that elects a leader, short enough that somebody waits for it.
const TTL_MS: u64 = 15_000;
/// Twice what a keeper was seen to be late on a busy machine, and what an old leader of etcd may still say before it knows that it is none.
const MARGIN_MS: u64 = 3_000;
/// etcd grants no shorter ones.
const TTL_MS_MIN: u64 = 2_000;
/// A keeper was seen to be late by 0.7 s under load.
const MARGIN_MS_MIN: u64 = 500;

/// The settings that begin with `lease`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseSettings {
    pub store: Option<Cluster>,
    pub ttl_ms: Option<u64>,
    pub margin_ms: Option<u64>,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl LeaseSettings {
    /// `etcd=URL,URL…`, or `embedded`.
    pub fn store(text: &str) -> Result<Option<Cluster>, String> {
        match text.split_once('=') {
            None if text == "embedded" => Ok(None),
            Some(("etcd", members)) => Cluster::of(members).map(Some),
            _ => Err("expected \"embedded\" or \"etcd=http://NAME:PORT,…\"".into()),
        }
    }

    /// All of it, for the host.
    pub fn config(self) -> Result<Option<LeaseConfig>, Failure> {
        let wrong = |message: &str| Failure::new("config", message.to_owned());
        let Some(cluster) = self.store else { return Ok(None) };
        let (ttl_ms, margin_ms) = (self.ttl_ms.unwrap_or(TTL_MS), self.margin_ms.unwrap_or(MARGIN_MS));
        if ttl_ms < TTL_MS_MIN || ttl_ms % 1000 != 0 {
            return Err(wrong("lease_ttl: expected whole seconds, at least 2"));
        }
        if margin_ms < MARGIN_MS_MIN || margin_ms * 2 > ttl_ms {
            return Err(wrong("lease_margin: expected at least 0.5 s, and at most half of lease_ttl"));
        }
        let certificate = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(wrong("lease_cert and lease_key: expected both or neither")),
        };
        Ok(Some(LeaseConfig {
            cluster: Cluster { authorities: self.ca, certificate, ..cluster },
            ttl: Duration::from_millis(ttl_ms),
            margin: Duration::from_millis(margin_ms),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(ttl_ms: u64, margin_ms: u64) -> Result<Option<LeaseConfig>, Failure> {
        let store = LeaseSettings::store("etcd=http://127.0.0.1:2379").unwrap();
        LeaseSettings { store, ttl_ms: Some(ttl_ms), margin_ms: Some(margin_ms), ..LeaseSettings::default() }.config()
    }

    #[test]
    fn a_margin_leaves_half_of_the_lease_and_is_never_nothing() {
        assert!(config(4000, 1000).unwrap().is_some());
        assert!(config(4000, 2001).is_err() && config(4000, 0).is_err());
        assert!(config(1000, 500).is_err() && config(2500, 500).is_err());
        assert_eq!(LeaseSettings::default().config().unwrap(), None);
        assert!(LeaseSettings::store("consul=x").is_err());
    }
}
