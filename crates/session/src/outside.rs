//! What a session's core reaches: the keeper, the journal, the screen, clients.

use crate::runs::Run;
use crate::sends::{Sent, Ticket};
use holdfast_abi::protocol::ToKeeper;
use holdfast_authority::journal::Link;
use holdfast_authority::{Authority, DeedId, Record};
use holdfast_screen::{Mark, Reply};
use holdfast_types::{ActorId, Fence, Notice, Offset, SessionName};

/// The journal could not be written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten(pub String);

/// What feeding the screen brought.
#[derive(Debug, Default)]
pub struct Fed {
    /// Answers to queries in the output.
    pub replies: Vec<Reply>,
    /// What the session's shell says of itself there; empty where its command is no shell that does.
    pub marks: Vec<Mark>,
    /// There is more output to feed.
    pub more: bool,
}

/// What the keeper says of its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// The process group in the foreground.
    pub foreground: u32,
    /// The terminal's input flags.
    pub iflag: u32,
    /// Its output flags.
    pub oflag: u32,
    /// Its local flags.
    pub lflag: u32,
    /// Bytes typed and not read yet.
    pub unread: u32,
}

impl Probed {
    /// Whether the terminal takes a line and does not show it: a password prompt.
    #[must_use]
    pub fn hides(&self) -> bool {
        const ICANON: u32 = 0o2;
        const ECHO: u32 = 0o10;
        self.lflag & ECHO == 0 && self.lflag & ICANON != 0
    }
}

/// An event for one attached client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is no longer attached.
    Detached,
    /// Something about the turn or its rights.
    Notice(Notice),
    /// It writes under this fence, or no longer does.
    Writes {
        /// Whether it writes.
        writes: bool,
        /// The newest fence.
        fence: Fence,
    },
    /// Its terminal answers queries from this offset on.
    Answer {
        /// The offset.
        from: Offset,
    },
}

/// The outside of a session's core. Calls happen in the order in which they must take effect.
pub trait Outside {
    /// The output head; where there is no ring yet, where it will begin.
    fn head(&self) -> Offset;
    /// The oldest offset that the ring still has.
    fn oldest(&self) -> Offset;
    /// Bytes the ring holds.
    fn ring_bytes(&self) -> u64;
    /// The head of the keeper's log; none where there is no ring.
    fn log_head(&self) -> Option<u64>;
    /// The position at which this life's log began.
    fn log_base(&self) -> u64;
    /// Bytes the log holds.
    fn log_bytes(&self) -> u64;
    /// The log's bytes between two positions it still has.
    fn log(&self, from: u64, to: u64) -> Vec<u8>;

    /// Output from an offset on, at most this much; empty where it was overwritten.
    fn output(&self, from: Offset, max: usize) -> Vec<u8>;

    /// Feeds up to this many slices of output to the screen.
    fn feed(&mut self, slices: u32) -> Fed;
    /// The screen has seen the output up to here.
    fn seen(&self) -> Offset;
    /// The screen was saved at this offset.
    fn saved(&self) -> Offset;
    /// The screen is in memory.
    fn is_screen_live(&self) -> bool;
    /// Takes sizes from the log before it is overwritten; false where it was overwritten already.
    fn take_sizes(&mut self) -> bool;
    /// Saves the screen, and frees its memory if asked.
    fn save_screen(&mut self, let_go: bool);
    /// Somebody waits for output.
    fn waits_for_output(&self) -> bool;

    /// Where a new segment of the journal is due, the end of the last one.
    fn segment_due(&self) -> Option<Option<Link>>;
    /// Begins a segment.
    fn begin_segment(&mut self, header: &Record) -> Result<(), Unwritten>;
    /// Writes records; gives the number of the first. `authority` is the state behind them.
    fn record(&mut self, records: &[Record], is_new_turn: bool, authority: &Authority) -> (u64, Result<(), Unwritten>);
    /// Writes what could not be written before.
    fn retry_journal(&mut self) -> Result<(), Unwritten>;

    /// Writes what became of runs. What was written survives a crash of the host.
    fn keep_runs(&mut self, changed: &[Run]) -> Result<(), Unwritten>;
    /// Leaves for the shell under which token the next command runs, and its text where it reads that from a file. An empty token
    /// takes back the one before.
    fn tell_shell(&mut self, token: &str, file: Option<&[u8]>) -> Result<(), Unwritten>;
    /// Runs may have moved on: they are to be saved ([`Core::save_runs`](crate::Core::save_runs)).
    fn runs_moved(&mut self);
    /// Nothing was started under a run's key: gives it back.
    fn free_key(&mut self, run: &Run);

    /// Says something to the keeper; false where there is no connection. It is then about to be taken up anew, and what follows
    /// from the state said again.
    fn say(&mut self, frame: ToKeeper<'_>) -> bool;
    /// Says something to the keeper that is for the whole tree, once the keeper knows which processes in it are Holdfast's own.
    /// None: that is on its way, and [`Core::did`](crate::Core::did) will say how it ended.
    fn reach_tree(&mut self, deed: DeedId, frame: ToKeeper<'static>) -> Option<bool>;
    /// Clients at these connections to the keeper were told to let go: cuts off those that have not within a second.
    fn cut_off_soon(&mut self, connections: Vec<u32>);
    /// Keeps another name of the session.
    fn rename(&mut self, name: &SessionName) -> Result<(), String>;
    /// Sends an event to a client.
    fn tell(&mut self, peer: u64, client: u32, event: Event);
    /// What became of bytes that were to be typed.
    fn sent(&mut self, ticket: Ticket, sent: Sent);
    /// An answer to a probe that somebody outside asked for.
    fn probed(&mut self, probed: Probed);

    /// A client is about to be named as the writer: where the shell must be moved first, begins that and notes that the
    /// writer waits for it.
    fn place_writer(&mut self, core: Placing<'_>);
    /// The next writer must not write yet: the shell is being moved for it.
    fn is_writer_awaited(&self) -> bool;
    /// This actor is about to write: begins to move the shell if that is due. True while it is on its way.
    fn place_for(&mut self, actor: ActorId, core: Placing<'_>) -> bool;
    /// The shell is on its way.
    fn is_moving(&self) -> bool;
    /// Nobody is expected to write any more.
    fn nobody_expected(&mut self);

    /// A random number.
    fn random(&mut self) -> u64;
    /// A decision was made: waiters look again, the disk is synced.
    fn stirred(&mut self);
}

/// What the outside may know of the core while it looks where the shell belongs.
#[derive(Debug, Clone, Copy)]
pub struct Placing<'a> {
    /// Who may write.
    pub authority: &'a Authority,
    /// The client that writes next, frozen or not.
    pub writes_next: Option<u32>,
    /// The run that is on.
    pub run: Option<&'a Run>,
}
