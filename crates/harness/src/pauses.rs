//! Stopping a process of the program at a named point: [`holdfast_pause`] from the test's side.

use crate::wait::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A point at which processes stop, one after the other, as long as this is not dropped.
pub struct Pause {
    path: PathBuf,
    listener: UnixListener,
}

/// A process that stands at a point; it goes on when this is dropped.
#[must_use = "the process goes on when this is dropped"]
pub struct Paused(#[allow(dead_code)] UnixStream); // closed when it is dropped

impl Pause {
    /// Holds a point for the processes that look for it in this directory.
    pub(crate) fn at(dir: &Path, point: &str) -> Pause {
        if !cfg!(debug_assertions) {
            panic!("a release build has no points to stop at");
        }
        std::fs::create_dir_all(dir).unwrap();
        let path = dir.join(point);
        let listener = UnixListener::bind(&path).unwrap();
        Pause { path, listener }
    }

    /// Waits until a process has come to the point, where it stands then.
    #[track_caller]
    pub fn reached(&self) -> Paused {
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
        assert!(poll(&mut ready, Some(&patience)).unwrap() > 0, "nothing came to {}", self.path.display());
        Paused(self.listener.accept().unwrap().0)
    }
}

impl Drop for Pause {
    /// From now on the point is passed.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
