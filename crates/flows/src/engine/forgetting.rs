//! What becomes of flows that ended long ago: they are written to the archive, if there is one, and removed.

use super::Engine;
use crate::archive;
use crate::clock::now_ms;
use crate::store::{Old, StoreError};

/// Flows that are removed in one commit: others wait meanwhile.
const AT_ONCE_MAX: usize = 500;
/// Bytes of one file of the archive: what an editor still opens.
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often it is looked for them, at most.
const AGAIN_MS: u64 = 86_400_000;

impl Engine {
    /// When the service starts, and then with the first flow that ends each day: there is no tick.
    pub(super) fn forget(&mut self) {
        self.forgot_ms = now_ms();
        // What fails here is tried again the next time.
        self.trouble = self.forget_all().err();
    }

    pub(super) fn forget_daily(&mut self) {
        if std::mem::take(&mut self.has_ended) && now_ms().saturating_sub(self.forgot_ms) >= AGAIN_MS {
            self.forget();
        }
    }

    fn forget_all(&mut self) -> Result<(), String> {
        let told = |error: StoreError| super::views::unrecorded(&error).message;
        let before_ms = self.forgot_ms.saturating_sub(self.keeping.ended_ms);
        for number in 0.. {
            let mut old = self.store.old(before_ms, AT_ONCE_MAX).map_err(told)?;
            if old.is_empty() {
                break;
            }
            if let Some(dir) = &self.keeping.archive {
                let written =
                    self.lines(&mut old).and_then(|lines| archive::write(dir, self.forgot_ms, number, &lines));
                written.map_err(|error| format!("cannot write to the archive {}: {error}", dir.display()))?;
            }
            self.store.remove(&old).map_err(told)?;
        }
        Ok(())
    }

    /// The histories of the first of these, as many as one file takes; the others are left out.
    fn lines(&self, old: &mut Vec<Old>) -> std::io::Result<Vec<u8>> {
        let mut lines = Vec::new();
        let mut count = 0;
        for one in old.iter() {
            if lines.len() >= FILE_BYTES_MAX {
                break;
            }
            // One that does not read stays where it is readable by other means.
            let history = self.store.history(&one.id, 0).map_err(std::io::Error::other)?;
            lines.extend(archive::lines_of(one, &history)?);
            count += 1;
        }
        old.truncate(count);
        Ok(lines)
    }
}
