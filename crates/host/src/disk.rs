//! Waiting for the disk without holding on to anything else.
//!
//! A thread that syncs cannot be killed until the disk is done, and what its process had open stays open with it: a host that was
//! killed would keep its lock and its sockets for as long, and neither would the next one begin nor anybody be answered. So what syncs
//! does it on a thread with a table of descriptors of its own, in which nothing of the host's is left.

use rustix::thread::UnshareFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Descriptors that stay: standard input, output and error.
const KEPT: libc::c_uint = 3;

/// Does what syncs. It opens what it needs by path, and leaves nothing open.
pub async fn at_disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let alone = move || {
        let_go();
        work()
    };
    // Waited for by a thread that has our descriptors: to wake somebody takes one.
    crate::off_thread(|| {
        let disk = std::thread::Builder::new().name("holdfast-disk".into()).spawn(alone)?;
        disk.join().unwrap_or_else(|_| Err(io::Error::other("what was to be synced failed")))
    })
    .await
}

/// Has the kernel write what a file has in memory, and does not wait for it. Where that fails, the sync behind it does all of it.
pub fn begin_writing(file: &File) {
    // SAFETY: no memory is passed, and the descriptor is open for as long as the file is borrowed.
    unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// From here on this thread has no descriptor of the others'. Where the kernel refuses, a killed host waits for its disk.
fn let_go() {
    // SAFETY: this thread was given no descriptor, and those it opens from now on it gives to nobody.
    if unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }.is_ok() {
        // SAFETY: the table is this thread's alone, and nothing that runs on it owns one of these.
        unsafe { libc::syscall(libc::SYS_close_range, KEPT, libc::c_uint::MAX, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_in(dir: &str) -> Vec<std::path::PathBuf> {
        let all = std::fs::read_dir(dir).unwrap().flatten();
        all.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    }

    #[test]
    fn what_waits_for_a_disk_has_nothing_of_the_hosts_open_and_the_host_still_has_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        let held = File::create(&lock).unwrap();
        let path = dir.path().join("journal");
        std::fs::write(&path, "one").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let work = move || {
            File::open(&path)?.sync_data()?;
            Ok(open_in("/proc/thread-self/fd"))
        };
        let there = runtime.block_on(at_disk(work)).unwrap();
        assert!(!there.contains(&lock), "{there:?}");
        // Standard input, output and error, and the directory that is being read.
        assert!(there.len() <= 4, "{there:?}");
        assert!(open_in("/proc/thread-self/fd").contains(&lock));
        held.sync_data().unwrap();
    }

    #[test]
    fn what_fails_says_so() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let failed = runtime.block_on(at_disk(|| File::open("/nowhere/at/all").map(drop)));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
