//! Records and leases in etcd.
//!
//! | key | value | lives |
//! |---|---|---|
//! | `/holdfast/leases/1/hosts/<lease>` | the host's name | with the host's lease: its absence says that the lease is over |
//! | `/holdfast/leases/1/sessions/<id>` | the record, JSON | until the session has ended |

use holdfast_lease::{Answer, Change, Expect, Found, LeaseId};
use holdfast_relay::etcd::{self, Compare, Etcd, EtcdError, Kept, Lease, Tried};
use holdfast_types::SessionId;

fn host_key(LeaseId(lease): LeaseId) -> String {
    format!("/holdfast/leases/1/hosts/{lease:016x}")
}

fn session_key(session: SessionId) -> String {
    format!("/holdfast/leases/1/sessions/{session}")
}

fn found((text, fence): Kept) -> Result<Found, EtcdError> {
    let record = serde_json::from_str(&text);
    // Fails closed: nobody claims what cannot be read.
    let record = record.map_err(|_| EtcdError::Failed("the session's record in etcd cannot be read".into()))?;
    Ok(Found { record, fence })
}

/// A session's record.
pub async fn look(etcd: &Etcd, session: SessionId) -> Result<Option<Found>, EtcdError> {
    etcd.get(&session_key(session)).await?.map(found).transpose()
}

/// Whether a lease lives.
pub async fn is_live(etcd: &Etcd, lease: LeaseId) -> Result<bool, EtcdError> {
    Ok(etcd.get(&host_key(lease)).await?.is_some())
}

/// Lets others see that a lease lives.
pub async fn be_live(etcd: &Etcd, lease: Lease, host: &str) -> Result<(), EtcdError> {
    etcd.change(lease, &[etcd::Change::Put { key: host_key(LeaseId(lease.0)), value: host.to_owned() }]).await
}

/// Does a transaction.
pub async fn change(etcd: &Etcd, change: &Change) -> Answer {
    let key = session_key(change.session);
    let mut compares: Vec<Compare> = change.live.iter().map(|lease| Compare::There(host_key(*lease))).collect();
    compares.extend(match &change.expect {
        Expect::Absent => vec![Compare::Absent(key.clone())],
        Expect::Same { fence } => vec![Compare::Written(key.clone(), *fence)],
        Expect::Over { fence, lease } => {
            vec![Compare::Written(key.clone(), *fence), Compare::Absent(host_key(*lease))]
        }
    });
    let wanted = match &change.put {
        Some(record) => match serde_json::to_string(record) {
            Ok(value) => etcd::Change::Put { key, value },
            Err(_) => return Answer::Failed,
        },
        None => etcd::Change::Delete { key },
    };
    match etcd.attempt(&compares, &wanted).await {
        Ok(Tried::Done(fence)) => Answer::Done { fence },
        Ok(Tried::Not(kept)) => kept.map(found).transpose().map_or(Answer::Failed, Answer::Differs),
        Err(_) => Answer::Failed,
    }
}
