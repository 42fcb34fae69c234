//! Real etcd members on this machine, ended with the test.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A cluster; its members are killed, and their files removed, when it goes.
pub struct Etcds {
    dir: PathBuf,
    members: Vec<(Child, Vec<String>)>,
    pub ports: Vec<u16>,
}

/// Ports that nobody has at this moment, each another.
pub fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

impl Etcds {
    /// Starts so many, and waits until they serve.
    pub fn start(count: usize) -> Etcds {
        let random: [u8; 8] = {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).unwrap();
            bytes
        };
        let dir = std::env::temp_dir().join(format!("hf-etcd-{}", holdfast_types::hex_text(&random)));
        std::fs::create_dir(&dir).unwrap();
        let mut ports = free_ports(2 * count);
        let peers = ports.split_off(count);
        let url = |port: &u16| format!("http://127.0.0.1:{port}");
        let cluster: Vec<String> = peers.iter().enumerate().map(|(n, peer)| format!("n{n}={}", url(peer))).collect();
        let mut all = Etcds { dir, members: Vec::new(), ports };
        for (n, peer) in peers.iter().enumerate() {
            let args = [
                ("name", format!("n{n}")),
                ("data-dir", all.dir.join(format!("n{n}")).display().to_string()),
                ("listen-client-urls", url(&all.ports[n])),
                ("advertise-client-urls", url(&all.ports[n])),
                ("listen-peer-urls", url(peer)),
                ("initial-advertise-peer-urls", url(peer)),
                ("initial-cluster", cluster.join(",")),
                ("heartbeat-interval", "100".into()),
                ("election-timeout", "1000".into()),
                ("log-level", "error".into()),
            ];
            let args: Vec<String> = args.into_iter().flat_map(|(name, value)| [format!("--{name}"), value]).collect();
            all.members.push((spawn(&args), args));
        }
        for port in all.ports.clone() {
            super::world::until("etcd", || {
                let health = ask(port, "/v3/kv/range", &json!({ "key": "YQ==" }));
                health.is_some_and(|answer| answer["header"].is_object())
            });
        }
        all
    }

    /// As `--store` names it.
    pub fn named(&self) -> String {
        self.ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect::<Vec<_>>().join(",")
    }

    /// Kills a member.
    pub fn kill(&mut self, member: usize) {
        let (child, _) = &mut self.members[member];
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts a killed member again.
    pub fn again(&mut self, member: usize) {
        self.members[member].0 = spawn(&self.members[member].1);
    }

    /// Starts a killed member that has lost its files.
    pub fn begin_anew(&mut self, member: usize) {
        std::fs::remove_dir_all(self.dir.join(format!("n{member}"))).unwrap();
        self.again(member);
    }

    /// Which member leads.
    pub fn leader(&self) -> usize {
        let leads = |port: &u16| {
            let status = ask(*port, "/v3/maintenance/status", &json!({})).unwrap();
            status["leader"] == status["header"]["member_id"]
        };
        self.ports.iter().position(leads).unwrap()
    }

    /// Everything relays have written, by any member that lives: keys with their leases.
    pub fn entries(&self) -> Vec<(String, String)> {
        // Everything behind "/holdfast/" and before "/holdfast0".
        let asked = json!({ "key": "L2hvbGRmYXN0Lw==", "range_end": "L2hvbGRmYXN0MA==" });
        let answer = self.ports.iter().find_map(|port| ask(*port, "/v3/kv/range", &asked)).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = answer["kvs"].as_array().cloned().unwrap_or_default();
        pairs.iter().map(|pair| (text(&pair["key"]), text(&pair["lease"]))).collect()
    }
}

impl Drop for Etcds {
    fn drop(&mut self) {
        for (child, _) in &mut self.members {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn spawn(args: &[String]) -> Child {
    let mut etcd = Command::new("etcd");
    etcd.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    etcd.spawn().expect("etcd runs; `cargo xtask test` installs it (Debian: etcd-server)")
}

/// What a member answers; none where it does not, or says no.
fn ask(port: u16, path: &str, body: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let body = body.to_string();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.0 200").then(|| serde_json::from_str(body).ok()).flatten()
}
