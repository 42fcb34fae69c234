//! Finding the host again after it went away, beside the terminal's loop.

use crate::connection::Connection;
use crate::identity::Identity;
use crate::route::Route;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long between two attempts once one has failed for good.
const PAUSE: Duration = Duration::from_millis(500);

/// A search that is under way.
#[derive(Debug)]
pub struct Relink {
    found: Receiver<Connection>,
    bell: UnixStream,
}

impl Relink {
    /// Starts searching; this machine's host is started where there is none.
    pub fn start(route: Route, who: Identity) -> std::io::Result<Relink> {
        let (bell, mut ring) = UnixStream::pair()?;
        let (sender, found) = channel();
        std::thread::Builder::new().name("relink".into()).spawn(move || {
            loop {
                if let Ok(connection) = route.connect(&who) {
                    // Once the terminal has been left, there is no receiver.
                    let _ = sender.send(connection);
                    let _ = ring.write_all(b"!");
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        })?;
        Ok(Relink { found, bell })
    }

    /// Where to poll.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The connection, once it is there.
    pub fn take(&self) -> Option<Connection> {
        self.found.try_recv().ok()
    }
}
