//! What a session's core reaches on this machine: the ring and the screen, the journal, the keeper's connection, clients.
//!
//! The core calls in here while the session's state is borrowed, so nothing here calls back into the session; what has to
//! be done on its account afterwards is left in [`After`].

use super::place::Place;
use super::sizes::Sizes;
use crate::journal::Journal;
use crate::link::Link;
use crate::metrics::Metrics;
use crate::notes::{About, Notes};
use crate::picture::Picture;
use crate::questions::Questions;
use crate::runs::index::{self, Whose};
use crate::runs::kept;
use crate::store::{Spec, replace};
use holdfast_abi::protocol::ToKeeper;
use holdfast_abi::ring::{Copied, Ring};
use holdfast_authority::journal::Link as Chained;
use holdfast_authority::{Act, Authority, By, Change, DeedId, How, Outcome, Record};
use holdfast_session::{Event, Fed, Outside, Placing, Probed, Run, Sent, Ticket, Undecided, Unwritten};
use holdfast_types::{ActorId, Offset, SessionName};
use holdfast_wire::Message;
use holdfast_wire::params::{AnswerEvent, DetachedEvent, Life};
use holdfast_wire::turns::{NoticeEvent, WritesEvent};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What host and shell share, in the session's directory.
pub(super) const SHELL_DIR: &str = "shell";

/// A client that was told to detach and did not is cut off after this long.
const DETACH_WAIT: Duration = Duration::from_millis(1000);

thread_local! {
    /// Where slices of output are copied to, for all sessions in turn.
    static SLICE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Everything of a session but its core.
#[derive(Debug)]
pub(crate) struct Held {
    pub spec: Spec,
    /// Where the session's files are.
    pub dir: PathBuf,
    /// Where keys of runs are.
    pub state_dir: PathBuf,
    pub life: Life,
    /// The offset at which this life began, until the ring tells.
    pub base: Offset,
    pub ring: Option<Ring>,
    pub picture: Picture,
    /// The sizes it had lately.
    pub sizes: Sizes,
    pub journal: Journal,
    pub pid: u32,
    /// The keeper's child: the command itself, or in a portable session what waits for it.
    pub waits: u32,
    pub keeper_pid: u32,
    /// Its keeper can be told what to spare.
    pub knows_spare: bool,
    /// Head and oldest byte of the ring of a session that no longer runs.
    pub final_bounds: std::cell::OnceCell<(Offset, Offset)>,
    pub child: Option<Child>,
    pub timers: Timers,
    /// How its lease stands.
    pub lease: super::leasing::HeldLease,
    pub questions: Questions,
    pub place: Place,
    pub notes: Notes,
    /// The journal was damaged, and has no record of that yet.
    pub damage: Option<String>,
    /// Deeds for the whole tree that are decided, and what to say to the keeper.
    pub to_tree: Vec<(DeedId, ToKeeper<'static>)>,
    /// The keeper's connection, while there is one.
    pub link: Option<Rc<Link>>,
    /// Why the keeper's connection must be taken up anew.
    pub link_error: Option<io::Error>,
    /// Where events for clients go, by their connections to this host.
    pub peers: HashMap<u64, UnboundedSender<Box<Message>>>,
    /// Who waits for bytes to be typed.
    pub sent: HashMap<Ticket, oneshot::Sender<Sent>>,
    pub last_ticket: u64,
    /// Who waits for the terminal's word, in order.
    pub probes: VecDeque<oneshot::Sender<Probed>>,
    /// Readers that wait for output.
    pub watchers: Rc<Cell<u32>>,
    /// Somebody listens for what the session does next.
    pub listens: bool,
    pub metrics: Arc<Metrics>,
    pub after: After,
    /// The file that says since when it is idle may be there.
    pub idle_kept: bool,
    /// When its next life begins by itself.
    pub next_life_ms: Option<holdfast_types::TimeMs>,
    pub names: crate::names::Names,
}

/// When the driver has to do something besides the core's deadlines.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timers {
    /// Look at what it is doing.
    pub track: Option<Instant>,
    /// Look whether its shell is at its prompt again.
    pub shell: Option<Instant>,
}

/// What is left to do once the state is no longer borrowed.
#[derive(Debug, Default)]
pub(crate) struct After {
    /// Changes that watchers hear of.
    pub changes: Vec<Change>,
    /// The screen was fed: runs may have moved on.
    pub fed: bool,
    /// The shell is to be moved.
    pub moves: bool,
    /// Something was decided.
    pub decided: bool,
    /// Something was typed, or its fate is known.
    pub typed: bool,
    /// Somebody used the session.
    pub used: bool,
}

impl Held {
    /// A number for bytes to type, and where their fate will be told.
    pub fn ticket(&mut self) -> (Ticket, oneshot::Receiver<Sent>) {
        self.last_ticket += 1;
        let (done, sent) = oneshot::channel();
        self.sent.insert(Ticket(self.last_ticket), done);
        (Ticket(self.last_ticket), sent)
    }

    /// The output head; where there is no ring yet, where it will begin.
    pub fn head(&self) -> Offset {
        self.ring.as_ref().map_or(self.base, Ring::head)
    }

    fn count(&self, records: &[Record]) {
        for record in records {
            let class = record.by.actor().map_or("host", |actor| actor.handle.class().word());
            let is_act = matches!(record.act, Act::Typed(_) | Act::Asked(_) | Act::Attached(_));
            self.metrics.recorded(class, is_act && record.outcome == Outcome::Done);
        }
    }
}

/// Whether somebody used the session: everything that was done there, but by the host itself.
fn is_use(record: &Record) -> bool {
    let is_hosts = match &record.by {
        By::Host => true,
        By::Actor(actor) => actor.is_hosts_own(),
        By::Unknown => false,
    };
    !is_hosts && record.outcome == Outcome::Done
}

fn unwritten(error: &io::Error) -> Unwritten {
    Unwritten(error.to_string())
}

impl Outside for Held {
    fn head(&self) -> Offset {
        Held::head(self)
    }

    fn oldest(&self) -> Offset {
        self.ring.as_ref().map_or(self.base, Ring::oldest)
    }

    fn ring_bytes(&self) -> u64 {
        self.spec.ring_bytes
    }

    fn log_head(&self) -> Option<u64> {
        self.ring.as_ref().map(Ring::log_head)
    }

    fn log_base(&self) -> u64 {
        self.ring.as_ref().map_or(0, |ring| ring.base().log)
    }

    fn log_bytes(&self) -> u64 {
        self.ring.as_ref().map_or(0, Ring::log_bytes)
    }

    fn log(&self, from: u64, to: u64) -> Vec<u8> {
        let Some(ring) = &self.ring else { return Vec::new() };
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
        ring.copy_log(from, &mut bytes);
        bytes
    }

    fn feed(&mut self, slices: u32) -> Fed {
        let mut fed = Fed::default();
        let Some(ring) = &self.ring else { return fed };
        // Of any other command's output no sequence is a shell's word.
        let tells = self.spec.shell.is_some();
        fed.more = true;
        SLICE.with_borrow_mut(|slice| {
            for _ in 0..slices {
                let step = self.picture.step(ring, slice);
                fed.replies.extend(step.replies);
                fed.marks.extend(step.marks.into_iter().filter(|_| tells));
                if !step.more {
                    fed.more = false;
                    break;
                }
            }
        });
        self.after.fed = true;
        fed
    }

    fn seen(&self) -> Offset {
        self.picture.seen()
    }

    fn saved(&self) -> Offset {
        self.picture.saved()
    }

    fn is_screen_live(&self) -> bool {
        self.picture.is_live()
    }

    fn take_sizes(&mut self) -> bool {
        match &self.ring {
            Some(ring) => self.picture.take_sizes(ring),
            None => true,
        }
    }

    fn save_screen(&mut self, let_go: bool) {
        self.picture.save(let_go);
    }

    fn output(&self, from: Offset, max: usize) -> Vec<u8> {
        let Some(ring) = &self.ring else { return Vec::new() };
        let mut bytes = vec![0; (ring.head().saturating_sub(from)).min(max as u64) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match ring.copy(from + filled as u64, &mut bytes[filled..]) {
                Copied::Bytes(count) if count > 0 => filled += count,
                Copied::Bytes(_) | Copied::Lapped { .. } | Copied::Ahead { .. } => return Vec::new(),
            }
        }
        bytes
    }

    fn waits_for_output(&self) -> bool {
        self.watchers.get() > 0 || self.listens
    }

    fn segment_due(&self) -> Option<Option<Chained>> {
        self.journal.wants_segment().then(|| self.journal.last())
    }

    fn begin_segment(&mut self, header: &Record) -> Result<(), Unwritten> {
        let begun = self.journal.begin_segment(header);
        begun.map_err(|error| {
            self.notes.add(About::Journal, format!("the journal cannot be written: {error}"));
            unwritten(&error)
        })
    }

    fn record(&mut self, records: &[Record], is_new_turn: bool, authority: &Authority) -> (u64, Result<(), Unwritten>) {
        self.count(records);
        if records.iter().any(is_use) {
            self.after.used = true;
            // Before it is recorded: no host finds a session idle since before it was used.
            if self.idle_kept {
                self.idle_kept = !crate::reap::kept::forget(&self.dir);
            }
        }
        let appended = self.journal.append(records);
        let first = self.journal.last().map_or(0, |last| last.seq + 1).saturating_sub(records.len() as u64);
        if let Some(newest) = first.checked_add(records.len() as u64).filter(|_| !records.is_empty()) {
            tracing::Span::current().record("seq", newest - 1);
        }
        self.place.saw(records, first, is_new_turn);
        if is_new_turn {
            let how = authority.state().turn().hold().map_or("freed", |hold| word(hold.how));
            self.metrics.turn_changed(how);
        }
        let done = records.iter().filter(|record| record.outcome == Outcome::Done);
        self.after.changes.extend(done.flat_map(|record| record.changes.iter().cloned()));
        self.notes.wrote(About::Journal, "the journal cannot be written", &appended);
        let recorded = appended.map_err(|error| {
            tracing::error!(session = %self.spec.id, "the journal cannot be written: {error}");
            unwritten(&error)
        });
        if !records.is_empty() {
            holdfast_pause::point("act.recorded");
        }
        if records.iter().flat_map(|record| &record.changes).any(|change| matches!(change, Change::Opened(_))) {
            holdfast_pause::point("deed.recorded");
        }
        (first, recorded)
    }

    fn retry_journal(&mut self) -> Result<(), Unwritten> {
        self.journal.retry().map_err(|error| unwritten(&error))
    }

    fn keep_runs(&mut self, changed: &[Run]) -> Result<(), Unwritten> {
        kept::append(&self.dir, changed).map_err(|error| unwritten(&error))
    }

    fn tell_shell(&mut self, token: &str, file: Option<&[u8]>) -> Result<(), Unwritten> {
        let dir = self.dir.join(SHELL_DIR);
        let write = |name: &str, text: &[u8]| replace(&dir, name, text).map_err(|error| unwritten(&error));
        if let Some(text) = file {
            write("run", text)?;
        }
        match (token, self.spec.shell) {
            (_, None) => Ok(()),
            ("", Some(_)) => write("next", b""),
            (token, Some(_)) => write("next", format!("{token}\n").as_bytes()),
        }
    }

    fn runs_moved(&mut self) {
        self.after.fed = true;
    }

    fn free_key(&mut self, run: &Run) {
        if let Some(key) = &run.key {
            index::give_back(&self.state_dir, Whose::of(&run.actor, run.shared), key);
        }
    }

    fn say(&mut self, frame: ToKeeper<'_>) -> bool {
        let Some(link) = &self.link else { return false };
        let sent = link.send(frame);
        if let Err(error) = sent {
            tracing::warn!(session = %self.spec.id, "keeper connection: {error}");
            self.link_error = Some(error);
            return false;
        }
        true
    }

    fn reach_tree(&mut self, deed: DeedId, frame: ToKeeper<'static>) -> Option<bool> {
        self.to_tree.push((deed, frame));
        None
    }

    fn cut_off_soon(&mut self, connections: Vec<u32>) {
        let Some(link) = self.link.clone().filter(|_| !connections.is_empty()) else { return };
        tokio::task::spawn_local(async move {
            tokio::time::sleep(DETACH_WAIT).await;
            for connection in connections {
                let _ = link.send(ToKeeper::Expel { connection });
            }
        });
    }

    fn rename(&mut self, name: &SessionName) -> Result<(), String> {
        // It was free when it was asked for; a host that takes this up may come to it later than others came to the name.
        if self.names.is_taken(name, Some(self.spec.id)) {
            return Err(format!("another session has the name {name} now"));
        }
        let mut spec = self.spec.clone();
        spec.name = name.clone();
        spec.save(&self.dir).map_err(|error| format!("cannot save the new name: {error}"))?;
        self.spec = spec;
        Ok(())
    }

    fn tell(&mut self, peer: u64, client: u32, event: Event) {
        let Some(events) = self.peers.get(&peer) else { return };
        // A client that is gone is noticed by its connection.
        let _ = events.send(match event {
            Event::Detached => super::event(&DetachedEvent { client }),
            Event::Notice(notice) => super::event(&NoticeEvent { client, notice }),
            Event::Writes { writes, fence } => super::event(&WritesEvent { client, writes, fence }),
            Event::Answer { from } => super::event(&AnswerEvent { client, from }),
        });
    }

    fn sent(&mut self, ticket: Ticket, sent: Sent) {
        if let Sent::Refused(Undecided::Refused(refusal)) = &sent {
            self.metrics.refused(refusal.code());
        }
        self.after.typed = true;
        if let Some(waiter) = self.sent.remove(&ticket) {
            let _ = waiter.send(sent);
        }
    }

    fn probed(&mut self, probed: Probed) {
        if let Some(waiter) = self.probes.pop_front() {
            let _ = waiter.send(probed);
        }
    }

    fn place_writer(&mut self, core: Placing<'_>) {
        if core.writes_next.is_some() && self.must_move(core) {
            // The holder of a turn that an earlier host gave writes already, and the shell was moved then: it is only looked
            // at. Naming nobody meanwhile would take the answers from its terminal.
            self.place.await_writer();
            self.begin_move(core);
        }
    }

    fn is_writer_awaited(&self) -> bool {
        self.place.is_awaited()
    }

    fn place_for(&mut self, actor: ActorId, core: Placing<'_>) -> bool {
        self.place.expect(Some(actor));
        self.begin_move(core);
        self.place.is_moving()
    }

    fn is_moving(&self) -> bool {
        self.place.is_moving()
    }

    fn nobody_expected(&mut self) {
        self.place.expect(None);
    }

    fn random(&mut self) -> u64 {
        crate::random()
    }

    fn stirred(&mut self) {
        self.after.decided = true;
    }
}

/// How somebody came by the turn, as it is shown and counted.
pub(crate) fn word(how: How) -> &'static str {
    match how {
        How::Wrote => "wrote",
        How::Asked => "asked",
        How::Given => "given",
        How::Seized => "seized",
        How::Lent => "lent",
    }
}
