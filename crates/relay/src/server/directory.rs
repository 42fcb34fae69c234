//! Which relay has which host, for several relays: what each of them writes into etcd under its lease, and looks up there.
//!
//! A relay without etcd knows its own hosts alone. One with it keeps a key for each of its hosts, all under one lease that it renews; a relay that
//! dies is forgotten with its lease. One task writes: it compares the hosts that are connected with what it wrote, so that after any failure,
//! and under any new lease, it writes what is missing and nothing else.
//!
//! Nothing here is believed: a client that is sent to another relay proves the host's key there as everywhere. While etcd is away a relay serves
//! its own hosts, and says of all others that they are not there.

use super::Relay;
use crate::etcd::{Change, Cluster, Etcd, EtcdError, Lease};
use crate::random;
use crate::url::RelayUrl;
use holdfast_types::{HostKey, hex_text};
use std::collections::HashSet;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Below it lies what relays write; the number is that of its form.
const PREFIX: &str = "/holdfast/relays/1/hosts/";
/// Renewals within a lease: two may fail.
const RENEWALS: u32 = 3;
/// Between tries while etcd is away.
const PAUSE: Duration = Duration::from_secs(1);
/// Changes in one transaction: etcd takes 128.
const CHANGES_MAX: usize = 100;
/// Hosts are looked up so many at once: clients who ask for unknown ones cost etcd no more.
const LOOKS_MAX: usize = 32;
/// How long a look may take, its wait for a place included: a client waits for it.
const LOOK: Duration = Duration::from_secs(5);
/// Relays of one host that are looked at.
const RELAYS_MAX: usize = 8;

/// How relays share a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// Where it is.
    pub cluster: Cluster,
    /// Where clients find this relay.
    pub url: RelayUrl,
    /// A relay that died is forgotten so much later.
    pub lease: Duration,
}

/// The directory, as one relay knows it.
#[derive(Debug)]
pub(crate) struct Directory {
    etcd: Etcd,
    url: RelayUrl,
    ttl: Duration,
    changed: Notify,
    looks: Semaphore,
    lease: Mutex<Option<Lease>>,
    is_up: AtomicBool,
}

impl Directory {
    pub fn new(shared: &Shared) -> io::Result<Directory> {
        Ok(Directory {
            etcd: Etcd::new(&shared.cluster)?,
            url: shared.url.clone(),
            ttl: shared.lease,
            changed: Notify::new(),
            looks: Semaphore::new(LOOKS_MAX),
            lease: Mutex::default(),
            is_up: AtomicBool::new(false),
        })
    }

    /// A host came or went.
    pub fn changed(&self) {
        self.changed.notify_one();
    }

    /// What is written there is right, as far as is known.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Another relay that has this host; none where none is known, or etcd does not say.
    pub async fn elsewhere(&self, host: &HostKey) -> Option<RelayUrl> {
        let prefix = format!("{PREFIX}{}/", hex_text(&host.0));
        let look = async {
            let _place = self.looks.acquire().await.ok()?;
            self.etcd.below(&prefix, RELAYS_MAX).await.ok()
        };
        let found = tokio::time::timeout(LOOK, look).await.ok()??;
        let others: Vec<RelayUrl> =
            found.iter().filter_map(|url| url.parse().ok()).filter(|url| *url != self.url).collect();
        let [byte] = random::<1>();
        others.get(usize::from(byte) % others.len().max(1)).cloned()
    }

    /// Keeps what is written there, for as long as the relay runs.
    pub async fn follow(&self, relay: &Relay) {
        loop {
            let why = match self.etcd.grant(self.ttl).await {
                Ok((lease, _)) => {
                    self.remember(Some(lease));
                    self.keep(relay, lease).await
                }
                Err(why) => why,
            };
            self.remember(None);
            if self.is_up.swap(false, Ordering::Relaxed) {
                eprintln!("relay: the directory is out of reach: {why}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Forgets all of this relay's hosts at once, before it ends.
    pub async fn leave(&self) {
        let lease = self.remember(None);
        if let Some(lease) = lease {
            let _ = self.etcd.revoke(lease).await;
        }
    }

    fn remember(&self, lease: Option<Lease>) -> Option<Lease> {
        std::mem::replace(&mut *self.lease.lock().unwrap_or_else(PoisonError::into_inner), lease)
    }

    /// Writes and renews, until the lease is over.
    async fn keep(&self, relay: &Relay, lease: Lease) -> EtcdError {
        let mut written = HashSet::new();
        let every = self.ttl / RENEWALS;
        let (mut renewed, mut is_behind) = (Instant::now(), true);
        loop {
            let mut next = renewed + every;
            if is_behind {
                is_behind = match self.write(relay, lease, &mut written).await {
                    Ok(()) => false,
                    Err(EtcdError::LeaseOver) => return EtcdError::LeaseOver,
                    Err(EtcdError::Failed(_)) => {
                        next = next.min(Instant::now() + PAUSE);
                        true
                    }
                };
                if !is_behind && !self.is_up.swap(true, Ordering::Relaxed) {
                    eprintln!("relay: {} hosts are in the directory", written.len());
                }
            }
            tokio::select! {
                () = self.changed.notified() => is_behind = true,
                () = tokio::time::sleep_until(next) => {}
            }
            if renewed.elapsed() >= every {
                let asked = Instant::now();
                match self.etcd.renew(lease).await {
                    // Counted from the question: the answer may have been slow.
                    Ok(_) => renewed = asked,
                    Err(EtcdError::LeaseOver) => return EtcdError::LeaseOver,
                    Err(why) if renewed.elapsed() >= self.ttl => return why,
                    Err(EtcdError::Failed(_)) => tokio::time::sleep(PAUSE.min(every)).await,
                }
            }
        }
    }

    async fn write(&self, relay: &Relay, lease: Lease, written: &mut HashSet<HostKey>) -> Result<(), EtcdError> {
        let wanted: HashSet<HostKey> = relay.hosts().keys().copied().collect();
        let key = |host: &HostKey| format!("{PREFIX}{}/{}", hex_text(&host.0), self.url);
        let came = wanted.difference(written).map(|host| (*host, true));
        let went = written.difference(&wanted).map(|host| (*host, false));
        let changes: Vec<(HostKey, bool)> = came.chain(went).collect();
        for some in changes.chunks(CHANGES_MAX) {
            let change = |(host, is_there): &(HostKey, bool)| match is_there {
                true => Change::Put { key: key(host), value: self.url.to_string() },
                false => Change::Delete { key: key(host) },
            };
            self.etcd.change(lease, &some.iter().map(change).collect::<Vec<_>>()).await?;
            for (host, is_there) in some {
                if *is_there {
                    written.insert(*host);
                } else {
                    written.remove(host);
                }
            }
        }
        Ok(())
    }
}
