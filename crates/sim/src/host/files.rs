//! What a session's core reaches in this world: a wire to the keeper, real files, lines to clients. Every call may be the last.

use super::serve::event;
use crate::cast::Who;
use crate::ctx::Ctx;
use holdfast_abi::protocol::ToKeeper;
use holdfast_abi::ring::{Copied, Ring};
use holdfast_authority::journal::Link;
use holdfast_authority::{Act, Ask, Authority, Change, DeedId, Outcome, Record, State};
use holdfast_host::parts::{Journal, Picture};
use holdfast_session::{Event, Fed, Outside, Placing, Probed, Run, Sent, Ticket, Unwritten, is_own_stream};
use holdfast_types::{ActorId, Offset, SessionName};
use holdfast_wire::params::{AnswerEvent, DetachedEvent};
use holdfast_wire::turns::{NoticeEvent, WritesEvent};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A host's files and wire.
pub(super) struct Files {
    dir: PathBuf,
    pub wire: usize,
    /// It dies at the so-manieth frame, record or file from now.
    pub fuse: Option<u32>,
    /// It died: nothing reaches anybody any more.
    pub is_dead: bool,
    pub ring: Ring,
    pub picture: Picture,
    journal: Journal,
    /// The state behind the last record in the journal: what the next host must come back to.
    pub recorded: State,
    /// Sends whose fate is known and not yet told.
    pub sent: Vec<(Ticket, Sent)>,
    /// What the keeper said of its terminal, not yet given to who asked.
    pub probed: Vec<Probed>,
}

impl Files {
    pub fn new(dir: &Path, wire: usize, ring: Ring, picture: Picture, journal: Journal, recorded: State) -> Files {
        let (fuse, is_dead, sent, probed) = (None, false, Vec::new(), Vec::new());
        Files { dir: dir.to_owned(), wire, fuse, is_dead, ring, picture, journal, recorded, sent, probed }
    }

    /// Something reaches the world outside: here a host may die. Whether it lives.
    pub fn reach(&mut self) -> bool {
        match &mut self.fuse {
            Some(0) => self.is_dead = true,
            Some(left) => *left -= 1,
            None => {}
        }
        !self.is_dead
    }
}

/// The files, and the world they are in.
pub(super) struct Outer<'a> {
    pub files: &'a mut Files,
    pub ctx: &'a mut Ctx,
}

impl Outside for Outer<'_> {
    fn head(&self) -> Offset {
        self.files.ring.head()
    }

    fn ring_bytes(&self) -> u64 {
        self.files.ring.capacity()
    }

    fn log_head(&self) -> Option<u64> {
        Some(self.files.ring.log_head())
    }

    fn log_base(&self) -> u64 {
        self.files.ring.base().log
    }

    fn log_bytes(&self) -> u64 {
        self.files.ring.log_bytes()
    }

    fn log(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; (to - from) as usize];
        self.files.ring.copy_log(from, &mut bytes);
        bytes
    }

    fn oldest(&self) -> Offset {
        self.files.ring.oldest()
    }

    fn output(&self, from: Offset, max: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.files.ring.head().saturating_sub(from).min(max as u64) as usize];
        match self.files.ring.copy(from, &mut bytes) {
            Copied::Bytes(count) => bytes.truncate(count),
            Copied::Lapped { .. } | Copied::Ahead { .. } => bytes.clear(),
        }
        bytes
    }

    fn feed(&mut self, slices: u32) -> Fed {
        let Files { picture, ring, .. } = &mut *self.files;
        let gap = picture.gap();
        let mut fed = Fed { more: true, ..Fed::default() };
        let mut buffer = Vec::new();
        for _ in 0..slices {
            let step = picture.step(ring, &mut buffer);
            fed.replies.extend(step.replies);
            fed.marks.extend(step.marks);
            if !step.more {
                fed.more = false;
                break;
            }
        }
        if picture.gap() != gap {
            self.ctx.counts.screen_gaps += 1;
            self.ctx.oracle.disturbed(self.ctx.now);
            self.ctx.note(format_args!("host: its screen has a gap {:?}", picture.gap()));
        }
        fed
    }

    fn seen(&self) -> Offset {
        self.files.picture.seen()
    }

    fn saved(&self) -> Offset {
        self.files.picture.saved()
    }

    fn is_screen_live(&self) -> bool {
        self.files.picture.is_live()
    }

    fn take_sizes(&mut self) -> bool {
        let Files { picture, ring, .. } = &mut *self.files;
        picture.take_sizes(ring)
    }

    fn save_screen(&mut self, let_go: bool) {
        if self.files.reach() {
            self.files.picture.save(let_go);
            if let Some(note) = self.files.picture.note() {
                panic!("the files of {} failed: {note}", self.files.dir.display());
            }
        }
    }

    fn waits_for_output(&self) -> bool {
        false
    }

    fn segment_due(&self) -> Option<Option<Link>> {
        self.files.journal.wants_segment().then(|| self.files.journal.last())
    }

    fn begin_segment(&mut self, header: &Record) -> Result<(), Unwritten> {
        if self.files.reach() {
            self.files.journal.begin_segment(header).expect("the disk has room");
            self.files.recorded.apply(header);
            self.ctx.counts.segments += 1;
        }
        Ok(())
    }

    fn record(&mut self, records: &[Record], _: bool, authority: &Authority) -> (u64, Result<(), Unwritten>) {
        if !records.is_empty() && self.files.reach() {
            self.files.journal.append(records).expect("the disk has room");
            self.files.recorded = authority.state().clone();
            records.iter().for_each(|record| learn(self.ctx, record));
            // Synced elsewhere, and power does not fail here.
            while self.files.journal.unsynced().is_some() {}
        }
        (self.files.journal.last().map_or(0, |last| last.seq + 1).saturating_sub(records.len() as u64), Ok(()))
    }

    fn retry_journal(&mut self) -> Result<(), Unwritten> {
        Ok(())
    }

    fn keep_runs(&mut self, changed: &[Run]) -> Result<(), Unwritten> {
        if self.files.reach() {
            self.ctx.disk.runs.extend_from_slice(changed);
        }
        Ok(())
    }

    fn tell_shell(&mut self, token: &str, _: Option<&[u8]>) -> Result<(), Unwritten> {
        if self.files.reach() {
            self.ctx.disk.token = token.to_owned();
        }
        Ok(())
    }

    fn runs_moved(&mut self) {}

    fn free_key(&mut self, run: &Run) {
        if self.files.reach() {
            self.ctx.disk.keys.retain(|key, _| Some(key) != run.key.as_ref());
        }
    }

    fn say(&mut self, frame: ToKeeper<'_>) -> bool {
        let reaches = self.files.reach();
        if reaches {
            if let ToKeeper::Input { stream, .. } = frame {
                self.ctx.counts.answered_by_host += u64::from(is_own_stream(stream));
            }
            self.ctx.net.say(self.files.wire, frame);
        }
        reaches
    }

    fn reach_tree(&mut self, _: DeedId, frame: ToKeeper<'static>) -> Option<bool> {
        Some(self.say(frame))
    }

    fn cut_off_soon(&mut self, connections: Vec<u32>) {
        for connection in connections {
            self.say(ToKeeper::Expel { connection });
        }
    }

    fn rename(&mut self, _: &SessionName) -> Result<(), String> {
        Ok(())
    }

    fn tell(&mut self, peer: u64, client: u32, told: Event) {
        if self.files.is_dead {
            return;
        }
        self.ctx.note(format_args!("host: tells client {client} {told:?}"));
        self.ctx.lines[peer as usize].tell(match told {
            Event::Detached => event("detached", json!(DetachedEvent { client })),
            Event::Notice(notice) => event("notice", json!(NoticeEvent { client, notice })),
            Event::Writes { writes, fence } => event("writes", json!(WritesEvent { client, writes, fence })),
            Event::Answer { from } => event("answer", json!(AnswerEvent { client, from })),
        });
    }

    fn sent(&mut self, ticket: Ticket, sent: Sent) {
        self.files.sent.push((ticket, sent));
    }

    fn probed(&mut self, probed: Probed) {
        self.files.probed.push(probed);
    }

    fn place_writer(&mut self, _: Placing<'_>) {}

    fn is_writer_awaited(&self) -> bool {
        false
    }

    fn place_for(&mut self, _: ActorId, _: Placing<'_>) -> bool {
        false
    }

    fn is_moving(&self) -> bool {
        false
    }

    fn nobody_expected(&mut self) {}

    fn random(&mut self) -> u64 {
        self.ctx.rng.u64(1 << 32..)
    }

    fn stirred(&mut self) {}
}

/// What a record that is on disk tells the oracle.
fn learn(ctx: &mut Ctx, record: &Record) {
    let by = record.by.actor().map_or("host".to_owned(), |actor| actor.handle.to_string());
    match &record.act {
        Act::Typed(burst) => ctx.note(format_args!("journal: {by} typed {} under {:?}", burst.len, record.fence)),
        act => ctx.note(format_args!("journal: {by} {act:?} under {:?}", record.fence)),
    }
    if let (Act::Asked(Ask::Seize { .. }), Outcome::Done) = (&record.act, &record.outcome) {
        ctx.counts.seizures += 1;
    }
    for change in &record.changes {
        if let Change::Turn(turn) = change {
            ctx.counts.turn_changes += 1;
            let holder = turn.hold().map(|hold| (hold.fence.0, Who::of(&hold.by)));
            ctx.turn_is(holder, record.fence.0);
        }
    }
}
