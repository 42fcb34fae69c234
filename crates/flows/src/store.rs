//! Histories on disk: one SQLite file in the home, one writer, a commit for everything that was decided together.
//!
//! Nothing is answered and no effect is performed before its events are committed and synced. The file carries a version; one of
//! a later version is not opened.

use crate::protocol::Listed;
use holdfast_flow::{Event, Recorded, Wakes};
use holdfast_types::TimeMs;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};

/// The version of the file's layout.
const VERSION: i64 = 2;
/// `hfFL`: whose file it is.
const APPLICATION: i64 = 0x6866_464c;
/// How long a write waits for somebody else's lock: a backup that takes longer is told to the asker.
const BUSY_MS: u64 = 5_000;
/// Older histories of one flow that are kept: enough to look back, and a loop does not fill the disk.
const OLDER_MAX: u32 = 100;

/// Why the histories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite's own word.
    #[error("the flow database failed")]
    Sql(#[from] rusqlite::Error),
    /// A later program wrote it.
    #[error(
        "the flow database {0} is of version {1}, and this program knows version {VERSION}; use the newer holdfast"
    )]
    Newer(PathBuf, i64),
    /// Another program wrote it.
    #[error("{0} is not a flow database")]
    Alien(PathBuf),
    /// A row does not read.
    #[error("the history of {0} is damaged: {1}")]
    Damaged(String, String),
}

/// A flow's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// When it ended.
    pub ended_ms: Option<TimeMs>,
    /// It is at rest, and this wakes it.
    pub asleep: Option<Vec<Wakes>>,
}

/// A flow, or an older history of one, that ended long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// Its id; of an older history with its number.
    pub id: String,
    row: i64,
}

/// The open file.
#[derive(Debug)]
pub struct Store {
    sql: Connection,
    path: PathBuf,
    begun: bool,
}

impl Store {
    /// Opens the file, and makes it where there is none.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let sql = Connection::open(path)?;
        sql.busy_timeout(std::time::Duration::from_millis(BUSY_MS))?;
        let version: i64 = sql.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let application: i64 = sql.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 = sql.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Newer(path.to_owned(), version));
        }
        if tables > 0 && application != APPLICATION {
            return Err(StoreError::Alien(path.to_owned()));
        }
        sql.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;")?;
        if version == 1 {
            // What is not known to be at rest is looked at once more.
            sql.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 ALTER TABLE flows ADD COLUMN asleep TEXT; ALTER TABLE flows ADD COLUMN code TEXT;
                 ALTER TABLE code ADD COLUMN file TEXT NOT NULL DEFAULT '';
                 PRAGMA user_version = {VERSION};
                 COMMIT;"
            ))?;
        }
        if version == 0 {
            sql.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 CREATE TABLE IF NOT EXISTS code (
                     digest TEXT PRIMARY KEY, text TEXT NOT NULL, file TEXT NOT NULL DEFAULT ''
                 ) WITHOUT ROWID;
                 CREATE TABLE IF NOT EXISTS flows (
                     id TEXT PRIMARY KEY, name TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER,
                     asleep TEXT, code TEXT
                 );
                 CREATE INDEX IF NOT EXISTS open_flows ON flows (id) WHERE ended_ms IS NULL;
                 CREATE INDEX IF NOT EXISTS ended_flows ON flows (ended_ms) WHERE ended_ms IS NOT NULL;
                 CREATE TABLE IF NOT EXISTS events (
                     flow INTEGER NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL, body TEXT NOT NULL,
                     PRIMARY KEY (flow, seq)
                 ) WITHOUT ROWID;
                 PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};
                 COMMIT;"
            ))?;
        }
        Ok(Store { sql, path: path.to_owned(), begun: false })
    }

    /// A disk of so many pages.
    #[cfg(test)]
    pub fn limit_pages(&self, max: u32) {
        let set = self.sql.pragma_update_and_check(None, "max_page_count", max, |row| row.get::<_, i64>(0));
        set.expect("SQLite knows it");
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if !self.begun {
            self.sql.execute_batch("BEGIN IMMEDIATE")?;
            self.begun = true;
        }
        Ok(())
    }

    /// Adds events to a flow, from number `seq` on; they are there once [`Store::commit`] has returned.
    pub fn add(&mut self, id: &str, seq: u64, now_ms: TimeMs, events: &[Event]) -> Result<(), StoreError> {
        self.append(id, seq, events.iter().map(|event| (now_ms, event)))
    }

    /// Puts a new history in a flow's place; the old one stays readable under [`older_id`].
    pub fn replace(
        &mut self,
        id: &str,
        generation: u32,
        now_ms: TimeMs,
        history: &[Recorded],
    ) -> Result<(), StoreError> {
        self.begin()?;
        let mut keep =
            self.sql.prepare_cached("UPDATE flows SET id = ?, ended_ms = coalesce(ended_ms, ?) WHERE id = ?")?;
        keep.execute(params![older_id(id, generation), now_ms as i64, id])?;
        drop(keep);
        if let Some(oldest) = generation.checked_sub(OLDER_MAX).filter(|oldest| *oldest > 0) {
            let oldest = older_id(id, oldest);
            let mut events =
                self.sql.prepare_cached("DELETE FROM events WHERE flow = (SELECT rowid FROM flows WHERE id = ?)")?;
            events.execute([&oldest])?;
            self.sql.prepare_cached("DELETE FROM flows WHERE id = ?")?.execute([&oldest])?;
        }
        self.append(id, 0, history.iter().map(|one| (one.at_ms, &one.event)))
    }

    fn append<'a>(
        &mut self,
        id: &str,
        seq: u64,
        events: impl Iterator<Item = (TimeMs, &'a Event)>,
    ) -> Result<(), StoreError> {
        for (seq, (now_ms, event)) in (seq..).zip(events) {
            self.begin()?;
            match event {
                Event::Started { name, code, .. } => {
                    let mut new = self
                        .sql
                        .prepare_cached("INSERT INTO flows (id, name, started_ms, code) VALUES (?, ?, ?, ?)")?;
                    new.execute(params![id, name, now_ms as i64, code])?;
                }
                Event::Coded { code, .. } => {
                    self.sql.prepare_cached("UPDATE flows SET code = ? WHERE id = ?")?.execute([code, id])?;
                }
                Event::Ended { .. } => {
                    let mut end =
                        self.sql.prepare_cached("UPDATE flows SET ended_ms = ?, asleep = NULL WHERE id = ?")?;
                    end.execute(params![now_ms as i64, id])?;
                }
                _ => {}
            }
            let body = serde_json::to_string(event).map_err(|e| StoreError::Damaged(id.into(), e.to_string()))?;
            let mut add = self.sql.prepare_cached(
                "INSERT INTO events (flow, seq, at_ms, body) SELECT rowid, ?, ?, ? FROM flows WHERE id = ?",
            )?;
            if add.execute(params![seq as i64, now_ms as i64, body, id])? != 1 {
                return Err(StoreError::Damaged(id.into(), "it has no row".into()));
            }
        }
        Ok(())
    }

    /// Makes everything since the last commit durable.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.begun {
            holdfast_pause::point("flows.commit");
            self.sql.execute_batch("COMMIT")?;
            self.begun = false;
            holdfast_pause::point("flows.committed");
        }
        Ok(())
    }

    /// Forgets everything since the last commit.
    pub fn roll_back(&mut self) {
        if self.begun {
            // SQLite may have rolled back by itself.
            let _ = self.sql.execute_batch("ROLLBACK");
            self.begun = false;
        }
    }

    /// Notes what wakes a flow at rest, or that it is not at rest.
    pub fn lay(&mut self, id: &str, asleep: Option<&[Wakes]>) -> Result<(), StoreError> {
        self.begin()?;
        let text = asleep.map(serde_json::to_string).transpose();
        let text = text.map_err(|e| StoreError::Damaged(id.into(), e.to_string()))?;
        self.sql.prepare_cached("UPDATE flows SET asleep = ? WHERE id = ?")?.execute(params![text, id])?;
        Ok(())
    }

    /// A flow's row.
    pub fn row(&self, id: &str) -> Result<Option<Row>, StoreError> {
        let mut find = self.sql.prepare_cached("SELECT id, ended_ms, asleep FROM flows WHERE id = ?")?;
        Ok(find.query_row([id], row).optional()?)
    }

    /// Flows, the newest first: those that have not ended, or the last so many.
    pub fn rows(&self, all: bool, max: usize) -> Result<Vec<Row>, StoreError> {
        let only = if all { "WHERE instr(id, '@') = 0" } else { "WHERE ended_ms IS NULL" };
        let text = format!("SELECT id, ended_ms, asleep FROM flows {only} ORDER BY rowid DESC LIMIT {max}");
        let mut find = self.sql.prepare_cached(&text)?;
        let rows = find.query_map([], row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Histories behind this number, the oldest first.
    pub fn histories(&self, after: u64, max: usize) -> Result<Vec<Listed>, StoreError> {
        let text = "SELECT rowid, id, ended_ms IS NOT NULL FROM flows WHERE rowid > ? ORDER BY rowid LIMIT ?";
        let mut find = self.sql.prepare_cached(text)?;
        let read = |row: &rusqlite::Row<'_>| {
            let (number, id, ended): (i64, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (flow, generation) = match id.split_once('@') {
                Some((flow, generation)) => (flow.to_owned(), generation.parse().ok()),
                None => (id, None),
            };
            Ok(Listed { number: number as u64, flow, generation, ended })
        };
        Ok(find.query_map([after as i64, max as i64], read)?.collect::<Result<_, _>>()?)
    }

    /// A flow's history behind so many events.
    pub fn history(&self, id: &str, after: u64) -> Result<Vec<Recorded>, StoreError> {
        let mut find = self.sql.prepare_cached(
            "SELECT at_ms, body FROM events WHERE flow = (SELECT rowid FROM flows WHERE id = ?) AND seq >= ? ORDER BY seq",
        )?;
        let rows =
            find.query_map(params![id, after as i64], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let read = |row: rusqlite::Result<(i64, String)>| {
            let (at_ms, body) = row?;
            let event = serde_json::from_str(&body).map_err(|e| StoreError::Damaged(id.into(), e.to_string()))?;
            Ok(Recorded { at_ms: at_ms as TimeMs, event })
        };
        rows.map(read).collect()
    }

    /// The first event of a flow's first history, or of the one that goes on where that is gone.
    pub fn beginning(&self, id: &str) -> Result<Option<Event>, StoreError> {
        let mut find = self.sql.prepare_cached(
            "SELECT body FROM events WHERE flow = (SELECT rowid FROM flows WHERE id IN (?, ?) ORDER BY rowid LIMIT 1)
             AND seq = 0",
        )?;
        let body: Option<String> = find.query_row([&older_id(id, 1), id], |row| row.get(0)).optional()?;
        let read =
            |body: String| serde_json::from_str(&body).map_err(|e| StoreError::Damaged(id.into(), e.to_string()));
        body.map(read).transpose()
    }

    /// The number of the next flow of this name: one more than any that was given.
    pub fn next_number(&self, name: &str) -> Result<u64, StoreError> {
        // Neither older histories nor the flows that steps started.
        let mut find = self.sql.prepare_cached(
            "SELECT id FROM flows WHERE name = ?1 AND instr(id, '@') = 0 AND substr(id, 1, length(?1) + 1) = ?1 || '-'
             AND instr(substr(id, length(?1) + 2), '.') = 0 ORDER BY rowid DESC LIMIT 1000",
        )?;
        let ids = find.query_map([name], |row| row.get::<_, String>(0))?;
        let number = |id: rusqlite::Result<String>| id.ok()?.strip_prefix(name)?.strip_prefix('-')?.parse::<u64>().ok();
        Ok(ids.filter_map(number).max().unwrap_or(0).saturating_add(1))
    }

    /// Keeps code under its digest; a worker's file with its name.
    pub fn keep_code(&mut self, digest: &str, text: &str, file: &str) -> Result<(), StoreError> {
        self.begin()?;
        let mut keep = self.sql.prepare_cached("INSERT OR IGNORE INTO code (digest, text, file) VALUES (?, ?, ?)")?;
        keep.execute([digest, text, file])?;
        Ok(())
    }

    /// The name of the file that was kept under a digest.
    pub fn file(&self, digest: &str) -> Result<Option<String>, StoreError> {
        let mut find = self.sql.prepare_cached("SELECT file FROM code WHERE digest = ?")?;
        Ok(find.query_row([digest], |row| row.get(0)).optional()?)
    }

    /// Removes code by which no flow goes on. Only before anybody is served: who has just kept some is about to use it.
    pub fn forget_code(&mut self) -> Result<usize, StoreError> {
        self.begin()?;
        // Of flows that an older program recorded it is not known.
        let gone = self.sql.execute(
            "DELETE FROM code WHERE digest NOT IN (SELECT code FROM flows WHERE code IS NOT NULL)
             AND NOT EXISTS (SELECT 1 FROM flows WHERE code IS NULL)",
            [],
        )?;
        self.commit()?;
        Ok(gone)
    }

    /// The code of a digest.
    pub fn code(&self, digest: &str) -> Result<Option<String>, StoreError> {
        let mut find = self.sql.prepare_cached("SELECT text FROM code WHERE digest = ?")?;
        Ok(find.query_row([digest], |row| row.get(0)).optional()?)
    }

    /// Flows that ended before this moment, the first so many.
    pub fn old(&self, before_ms: TimeMs, max: usize) -> Result<Vec<Old>, StoreError> {
        let text = "SELECT id, rowid FROM flows WHERE ended_ms IS NOT NULL AND ended_ms < ? ORDER BY ended_ms LIMIT ?";
        let mut find = self.sql.prepare_cached(text)?;
        let read = |row: &rusqlite::Row<'_>| Ok(Old { id: row.get(0)?, row: row.get(1)? });
        Ok(find.query_map([before_ms as i64, max as i64], read)?.collect::<Result<_, _>>()?)
    }

    /// Removes flows with their histories.
    pub fn remove(&mut self, old: &[Old]) -> Result<(), StoreError> {
        self.begin()?;
        for Old { row, .. } in old {
            self.sql.prepare_cached("DELETE FROM events WHERE flow = ?")?.execute([row])?;
            self.sql.prepare_cached("DELETE FROM flows WHERE rowid = ?")?.execute([row])?;
        }
        self.commit()
    }
}

/// Under which id an older history is kept: no flow can have it.
#[must_use]
pub fn older_id(id: &str, generation: u32) -> String {
    format!("{id}@{generation}")
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    // A note that does not read is none: the history says it all.
    let asleep = row.get_ref(2)?.as_str_or_null().ok().flatten().and_then(|text| serde_json::from_str(text).ok());
    Ok(Row { id: row.get(0)?, ended_ms: row.get::<_, Option<i64>>(1)?.map(|ms| ms as TimeMs), asleep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_flow::Lineage;
    use serde_json::Value;

    fn started(name: &str) -> Event {
        let (name, by, nonce) = (name.to_owned(), "human:ann".to_owned(), "00".to_owned());
        Event::Started {
            name,
            input: Value::Null,
            code: String::new(),
            by,
            nonce,
            cwd: None,
            skip_timers: false,
            lineage: Lineage::default(),
        }
    }

    #[test]
    fn what_is_committed_is_there_and_what_is_rolled_back_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.db");
        let mut store = Store::open(&path).unwrap();
        store.add("A-1", 0, 7, &[started("A")]).unwrap();
        store.commit().unwrap();
        store.add("A-1", 1, 8, &[Event::Blocked { why: "x".into() }]).unwrap();
        assert_eq!(store.history("A-1", 0).unwrap().len(), 2);
        store.roll_back();
        assert_eq!(
            Store::open(&path).unwrap().history("A-1", 0).unwrap(),
            [Recorded { at_ms: 7, event: started("A") }]
        );
        assert_eq!(store.next_number("A").unwrap(), 2);
        assert!(store.add("A-1", 0, 9, &[started("A")]).is_err(), "an id is used once");
    }

    #[test]
    fn a_file_of_a_later_version_or_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flows.db");
        drop(Store::open(&path).unwrap());
        Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Newer(_, 3))));
        let other = dir.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        assert!(matches!(Store::open(&other), Err(StoreError::Alien(_))));
        std::fs::write(&path, b"not a database, but long enough to look like one").unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Sql(_))));
    }

    #[test]
    fn ended_flows_are_forgotten_with_their_events() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("flows.db")).unwrap();
        for id in ["A-1", "A-2"] {
            store.add(id, 0, 1, &[started("A")]).unwrap();
        }
        store.add("A-1", 1, 5, &[Event::Ended { ok: true, value: Value::Null }]).unwrap();
        store.commit().unwrap();
        assert_eq!(store.old(5, 10).unwrap(), []);
        let old = store.old(6, 10).unwrap();
        assert_eq!(old.len(), 1);
        store.remove(&old).unwrap();
        assert_eq!(store.rows(true, 10).unwrap().len(), 1);
        assert!(store.history("A-1", 0).unwrap().is_empty());
    }
}
