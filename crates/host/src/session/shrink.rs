//! Rings of sessions that have ended: the disk space they never used goes back to the file system.
//!
//! A ring is as large as it may become, from the start: output must not be lost to a full disk. Once it is final that is for nothing.

use super::Session;
use crate::disk::at_disk;
use holdfast_abi::ring::Ring;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

impl Session {
    /// Gives back what a final ring never used.
    pub(crate) fn shrink_ring(&self) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let _turn = this.syncs.place().await;
            let path = this.dir.join("ring");
            if let Err(error) = at_disk(move || shrink(&path)).await {
                // Where a file system cannot do it the ring stays as large as it was.
                tracing::debug!(session = %this.id, "its ring cannot be made smaller: {error}");
            }
        });
    }
}

fn shrink(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let unwritten = Ring::open_lean(file.try_clone()?).map_err(io::Error::other)?.unwritten();
    let unused: u64 = unwritten.iter().map(|pages| pages.end - pages.start).sum();
    let meta = file.metadata()?;
    if meta.blocks() * 512 <= meta.len().saturating_sub(unused) {
        return Ok(());
    }
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    unwritten.iter().try_for_each(|pages| Ok(fallocate(&file, how, pages.start, pages.end - pages.start)?))
}
