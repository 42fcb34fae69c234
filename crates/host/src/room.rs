//! Descriptors kept free, so that a host that runs out of them can say so instead of leaving people waiting.

use holdfast_wire::{Body, Code, Fault, Message};
use std::fs::File;
use std::io;
use std::time::Duration;
use tokio::net::UnixListener;

/// What must be free before a session's keeper is connected to: its ring and link, and enough to go on serving clients.
pub const LINK_ROOM: usize = 16;
/// What must be free before a session is started: that, and the pipes and files of starting.
pub const START_ROOM: usize = 24;
/// How long a client that is turned away may take to say hello.
const HELLO_MS: u64 = 200;

/// Fails where fewer descriptors than that are free.
pub fn must_be(count: usize) -> io::Result<()> {
    if is_clear(count) {
        return Ok(());
    }
    let first = File::open("/dev/null")?;
    let others: io::Result<Vec<File>> = (1..count).map(|_| first.try_clone()).collect();
    others.map(drop)
}

/// Whether it is known without taking them: since Linux 6.2 the directory of open descriptors is as long as there are some.
fn is_clear(count: usize) -> bool {
    let open = rustix::fs::stat("/proc/self/fd").map_or(0, |dir| dir.st_size);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    open > 0 && limit.is_some_and(|limit| open.unsigned_abs().saturating_add(count as u64) <= limit)
}

/// A descriptor kept for the client that comes when there are none left.
#[derive(Debug)]
pub struct Spare {
    kept: Option<File>,
    said: bool,
}

impl Spare {
    /// Keeps one.
    pub fn keep() -> Spare {
        Spare { kept: File::open("/dev/null").ok(), said: false }
    }

    /// A client could not be accepted: tells it why.
    pub async fn turn_away(&mut self, listener: &UnixListener, error: &io::Error) {
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!("a client could not be accepted: {error}");
        }
        self.kept = None;
        let patience = Duration::from_millis(HELLO_MS);
        if let Ok(Ok((stream, _))) = tokio::time::timeout(patience, listener.accept()).await {
            let _ = tokio::time::timeout(patience, stream.readable()).await;
            let fault = Fault::new(Code::Busy, format!("the host has no room for another client: {error}"))
                .hint("end sessions, or raise the limit of open files (ulimit -n) and run `holdfast host restart`; sessions keep running");
            let mut out = Vec::new();
            // Hello is a client's first question.
            Message::plain(Body::Answer { id: 1, result: Err(fault) }).encode(&mut out);
            let _ = stream.try_write(&out);
        }
        self.kept = File::open("/dev/null").ok();
    }
}
