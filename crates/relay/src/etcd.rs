//! The few calls of etcd that relays and hosts need, over its JSON gateway: a lease, keys under it, a look at what lies below a prefix, a
//! transaction that compares.
//!
//! Several members are tried in turn, beginning with the one that answered last. Every call has a deadline and a bound on its answer. A call
//! may have taken effect although it failed: all of them can be repeated.

use crate::dial::connector;
use crate::stream::Stream;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// How long one member may take: an election takes 1.5 s, and the next member is asked meanwhile.
const CALL: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Members of a cluster; five is what people run.
const MEMBERS_MAX: usize = 9;

/// Where a cluster is, and how to prove oneself to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cluster {
    /// Its members.
    pub members: Vec<Member>,
    /// Authorities of the members' certificates, a PEM file; none: the world's.
    pub authorities: Option<PathBuf>,
    /// A certificate chain and its key, PEM files, for clusters that ask for them.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// One member: `http://NAME:PORT` or `https://NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    tls: bool,
    name: String,
    port: u16,
}

impl FromStr for Member {
    type Err = String;

    fn from_str(text: &str) -> Result<Member, String> {
        let form = || format!("invalid etcd member {text:?}; expected http://NAME:PORT or https://NAME:PORT");
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(form)?;
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(form()),
        };
        let (name, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(form)?;
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if name.is_empty() || !name.chars().all(fits) {
            return Err(form());
        }
        Ok(Member { tls, name: name.to_owned(), port: port.parse().map_err(|_| form())? })
    }
}

impl Cluster {
    /// Members separated by commas.
    pub fn of(text: &str) -> Result<Cluster, String> {
        let members = text.split(',').map(str::parse).collect::<Result<Vec<Member>, _>>()?;
        if members.len() > MEMBERS_MAX {
            return Err(format!("{} etcd members; at most {MEMBERS_MAX} can be named", members.len()));
        }
        Ok(Cluster { members, ..Cluster::default() })
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// The lease is over.
    #[error("the lease is over")]
    LeaseOver,
    /// No member answered as it should.
    #[error("{0}")]
    Failed(String),
}

/// A lease's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub i64);

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // what the fields are is plain
pub enum Change {
    Put { key: String, value: String },
    Delete { key: String },
}

/// What must be true of a key for a transaction to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// It is there.
    There(String),
    /// It is not.
    Absent(String),
    /// It was written at this revision, and not since.
    Written(String, u64),
}

/// A key's value, and the revision at which it was written.
pub type Kept = (String, u64);

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// It happened at this revision.
    Done(u64),
    /// It did not; the key that was asked about is this.
    Not(Option<Kept>),
}

/// A cluster.
pub struct Etcd {
    members: Vec<Member>,
    tls: TlsConnector,
    /// The member that answered last.
    good: AtomicUsize,
    call: Duration,
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Etcd({:?})", self.members)
    }
}

#[derive(Deserialize)]
struct Granted {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "TTL", default)]
    ttl_s: Option<String>,
}

/// Numbers of 64 bits are texts, and fields that are zero are left out.
#[derive(Deserialize)]
struct Renewed {
    result: Option<RenewedFor>,
}

#[derive(Deserialize)]
struct RenewedFor {
    #[serde(rename = "TTL", default)]
    ttl_s: Option<String>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    #[serde(default)]
    value: String,
    #[serde(default)]
    mod_revision: String,
}

impl Pair {
    fn text(&self) -> Option<String> {
        BASE64_STANDARD.decode(&self.value).ok().and_then(|bytes| String::from_utf8(bytes).ok())
    }

    fn kept(&self) -> Result<Kept, EtcdError> {
        let strange = || EtcdError::Failed("etcd has a value there that is not ours".into());
        Ok((self.text().ok_or_else(strange)?, self.mod_revision.parse().map_err(|_| strange())?))
    }
}

#[derive(Deserialize)]
struct Txn {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Header {
    revision: String,
}

#[derive(Deserialize)]
struct Response {
    response_range: Option<Range>,
}

impl Etcd {
    /// Reads the files that are named; connects to nothing yet.
    pub fn new(cluster: &Cluster) -> io::Result<Etcd> {
        let tls = connector(cluster.authorities.as_deref(), cluster.certificate.as_ref())?;
        Ok(Etcd { members: cluster.members.clone(), tls, good: AtomicUsize::new(0), call: CALL })
    }

    /// The same, with another time that one member may take.
    #[must_use]
    pub fn within(self, call: Duration) -> Etcd {
        Etcd { call, ..self }
    }

    /// A new lease, and for how long it is: that may be longer than was asked for.
    pub async fn grant(&self, ttl: Duration) -> Result<(Lease, Duration), EtcdError> {
        let granted: Granted = self.call("/v3/lease/grant", &json!({ "TTL": ttl.as_secs().max(1) })).await?;
        let strange = || EtcdError::Failed("etcd answered with no lease".into());
        Ok((granted.id.parse().map(Lease).map_err(|_| strange())?, seconds(granted.ttl_s).ok_or_else(strange)?))
    }

    /// Lets a lease go on; gives for how long.
    pub async fn renew(&self, Lease(id): Lease) -> Result<Duration, EtcdError> {
        let renewed: Renewed = self.call("/v3/lease/keepalive", &json!({ "ID": id.to_string() })).await?;
        renewed.result.and_then(|result| seconds(result.ttl_s)).ok_or(EtcdError::LeaseOver)
    }

    /// How long a lease still lives; none: it is over.
    pub async fn left(&self, Lease(id): Lease) -> Result<Option<Duration>, EtcdError> {
        let left: RenewedFor = self.call("/v3/lease/timetolive", &json!({ "ID": id.to_string() })).await?;
        Ok(seconds(left.ttl_s))
    }

    /// A key's value. Asked of the whole cluster, not of what one member happens to know.
    pub async fn get(&self, key: &str) -> Result<Option<Kept>, EtcdError> {
        let found: Range = self.call("/v3/kv/range", &json!({ "key": text(key) })).await?;
        found.kvs.first().map(Pair::kept).transpose()
    }

    /// Makes a change if all of this is true; else says what the change's key is.
    pub async fn attempt(&self, compares: &[Compare], change: &Change) -> Result<Tried, EtcdError> {
        let compare = |compare: &Compare| match compare {
            Compare::There(key) => {
                json!({ "key": text(key), "target": "CREATE", "result": "GREATER", "create_revision": "0" })
            }
            Compare::Absent(key) => {
                json!({ "key": text(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0" })
            }
            Compare::Written(key, revision) => {
                json!({ "key": text(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision.to_string() })
            }
        };
        let (success, key) = match change {
            Change::Put { key, value } => (json!({ "request_put": { "key": text(key), "value": text(value) } }), key),
            Change::Delete { key } => (json!({ "request_delete_range": { "key": text(key) } }), key),
        };
        let asked = json!({
            "compare": compares.iter().map(compare).collect::<Vec<_>>(),
            "success": [success],
            "failure": [{ "request_range": { "key": text(key) } }],
        });
        let txn: Txn = self.call("/v3/kv/txn", &asked).await?;
        if txn.succeeded {
            let strange = |_| EtcdError::Failed("etcd answered with no revision".into());
            return txn.header.revision.parse().map(Tried::Done).map_err(strange);
        }
        let found = txn.responses.iter().find_map(|response| response.response_range.as_ref());
        found.and_then(|range| range.kvs.first()).map(Pair::kept).transpose().map(Tried::Not)
    }

    /// Ends a lease, and what lies under it.
    pub async fn revoke(&self, Lease(id): Lease) -> Result<(), EtcdError> {
        self.call::<Value>("/v3/lease/revoke", &json!({ "ID": id.to_string() })).await.map(drop)
    }

    /// Makes changes at once, under a lease.
    pub async fn change(&self, Lease(id): Lease, changes: &[Change]) -> Result<(), EtcdError> {
        let operation = |change: &Change| match change {
            Change::Put { key, value } => {
                json!({ "request_put": { "key": text(key), "value": text(value), "lease": id.to_string() } })
            }
            Change::Delete { key } => json!({ "request_delete_range": { "key": text(key) } }),
        };
        let operations: Vec<Value> = changes.iter().map(operation).collect();
        self.call::<Value>("/v3/kv/txn", &json!({ "success": operations })).await.map(drop)
    }

    /// The values below a prefix, so many at most.
    pub async fn below(&self, prefix: &str, max: usize) -> Result<Vec<String>, EtcdError> {
        // The first key behind all that begin so; prefixes end with an ASCII character.
        let mut end = prefix.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let asked = json!({ "key": text(prefix), "range_end": BASE64_STANDARD.encode(end), "limit": max.to_string() });
        let found: Range = self.call("/v3/kv/range", &asked).await?;
        Ok(found.kvs.iter().filter_map(Pair::text).collect())
    }

    async fn call<T: DeserializeOwned>(&self, path: &str, asked: &Value) -> Result<T, EtcdError> {
        let first = self.good.load(Ordering::Relaxed);
        let mut why = EtcdError::Failed("no etcd member is named".into());
        for at in (0..self.members.len()).map(|step| (first + step) % self.members.len()) {
            let member = &self.members[at];
            let failed = |reason: String| EtcdError::Failed(format!("{}:{}: {reason}", member.name, member.port));
            match tokio::time::timeout(self.call, self.ask(member, path, asked)).await {
                Ok(Ok((true, bytes))) => match serde_json::from_slice(&bytes) {
                    Ok(answer) => {
                        self.good.store(at, Ordering::Relaxed);
                        return Ok(answer);
                    }
                    Err(_) => why = failed("not an answer of etcd".into()),
                },
                Ok(Ok((false, bytes))) => {
                    let said = String::from_utf8_lossy(&bytes);
                    // Also what a member says that has not heard of it yet: the lease is asked for anew.
                    if said.contains("requested lease not found") {
                        return Err(EtcdError::LeaseOver);
                    }
                    why = failed(said.chars().filter(|c| !c.is_control()).take(200).collect());
                }
                Ok(Err(error)) => why = failed(error.to_string()),
                Err(_) => why = failed("it does not answer".into()),
            }
        }
        Err(why)
    }

    /// Asks one member: whether it said yes, and what it said.
    async fn ask(&self, member: &Member, path: &str, asked: &Value) -> io::Result<(bool, Bytes)> {
        let stream = TcpStream::connect((member.name.as_str(), member.port)).await?;
        let stream = if member.tls {
            let name = ServerName::try_from(member.name.clone()).map_err(io::Error::other)?;
            Stream::Tls(Box::new(self.tls.connect(name, stream).await?.into()))
        } else {
            Stream::Plain(stream)
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let request = hyper::Request::post(path)
            .header(HOST, format!("{}:{}", member.name, member.port))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(asked.to_string())))
            .map_err(io::Error::other)?;
        let exchange = async {
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let is_good = answer.status().is_success();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(io::Error::other)?;
            Ok((is_good, body.to_bytes()))
        };
        tokio::pin!(exchange, connection);
        tokio::select! {
            answer = &mut exchange => answer,
            // The connection may be over before its answer is taken.
            _ = &mut connection => exchange.await,
        }
    }
}

/// Seconds above zero.
fn seconds(text: Option<String>) -> Option<Duration> {
    text.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

fn text(plain: &str) -> String {
    BASE64_STANDARD.encode(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_a_list_of_members() {
        let cluster = Cluster::of("http://127.0.0.1:2379,https://etcd-2.example:2379/, http://[::1]:1").unwrap();
        let shown: Vec<_> = cluster.members.iter().map(|m| (m.tls, m.name.as_str(), m.port)).collect();
        assert_eq!(shown, [(false, "127.0.0.1", 2379), (true, "etcd-2.example", 2379), (false, "::1", 1)]);
        for bad in
            ["", "127.0.0.1:2379", "ftp://a:1", "http://a", "http://a:x", "http://:1", "http://a b:1", "http://a:1,"]
        {
            assert!(Cluster::of(bad).is_err(), "{bad}");
        }
        assert!(Cluster::of(&["http://a:1"; MEMBERS_MAX + 1].join(",")).is_err());
    }
}
