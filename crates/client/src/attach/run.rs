//! The attached terminal's loop.

use super::chord::Chord;
use super::duty::Duty;
use super::host::attach_params;
use super::keeper::Keeper;
use super::keys::Keys;
use super::line::Line;
use super::notice;
use super::output::View;
use super::relink::Relink;
use super::terminal::Terminal;
use super::turns::Turns;
use super::{AttachEnd, AttachError, AttachOptions, failed};
use crate::connection::Connection;
use holdfast_abi::protocol::{FOLLOW_HOLDS, FRAME_BYTES_MAX, FromKeeper, ToKeeper, refused};
use holdfast_abi::ring::{Ring, STATE_ENDED};
use holdfast_types::{Exit, SessionId, Size};
use holdfast_wire::attention::Until;
use holdfast_wire::operations::op;
use holdfast_wire::params::{AttachAnswer, WaitParams};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a host may take to notice that a keeper has ended.
const ENDING_MS: u64 = 2_000;

/// A terminal that is attached.
pub struct Attached<'a> {
    pub(super) options: &'a AttachOptions,
    pub(super) terminal: Terminal,
    pub(super) keeper: Keeper,
    pub(super) ring: Ring,
    pub(super) host: Option<Connection>,
    pub(super) relink: Option<Relink>,
    /// The session's id: its name may change.
    pub(super) session: String,
    pub(super) session_id: SessionId,
    pub(super) client: u32,
    /// Our terminal's size and the session's.
    pub(super) size: Size,
    pub(super) session_size: Size,
    pub(super) resizes: VecDeque<(u64, Size)>,
    /// Our window has changed since it was painted.
    pub(super) rearranged: bool,
    /// Everything before it is on the terminal.
    pub(super) position: u64,
    pub(super) acked: u64,
    /// We write to the terminal; otherwise the keeper may.
    pub(super) baton: bool,
    /// The keeper was asked to give it back.
    pub(super) baton_asked: bool,
    pub(super) view: View,
    pub(super) answers: bool,
    pub(super) duty: Duty,
    /// A paint is needed, with history or without; output waits for it.
    pub(super) wanted: Option<bool>,
    pub(super) paint_asked: Option<u64>,
    /// It was asked for by a terminal that answers queries.
    pub(super) paint_answers: bool,
    pub(super) update_asked: Option<u64>,
    pub(super) resume_asked: Option<u64>,
    pub(super) keys: Keys,
    pub(super) turns: Turns,
    pub(super) line: Line,
    pub(super) last_byte: u8,
    /// Where output is copied to on its way to the terminal.
    pub(super) buffer: Vec<u8>,
    over: Option<Exit>,
    pub(super) end: Option<AttachEnd>,
    window_changed: UnixStream,
    told_to_go: UnixStream,
}

/// What came of beginning.
pub enum Begun<'a> {
    /// The terminal is attached.
    Attached(Box<Attached<'a>>),
    /// The session ended in that moment.
    Ended(Exit),
}

/// The keeper cannot be reached: if that is because the session has just ended, the host knows how.
fn ended_meanwhile<'a>(
    host: &mut Connection,
    answer: &AttachAnswer,
    error: io::Error,
) -> Result<Begun<'a>, AttachError> {
    let params = WaitParams { session: answer.session.id.to_string(), timeout_ms: Some(ENDING_MS), until: Until::Exit };
    match host.call::<op::Wait>(&params)?.exit {
        Some(exit) => Ok(Begun::Ended(exit)),
        None => Err(failed("cannot reach the session's keeper")(error)),
    }
}

/// What a poll found.
#[derive(Default)]
struct Ready {
    keeper: bool,
    host: bool,
    relink: bool,
    stdin: bool,
    window: bool,
    go: bool,
}

impl<'a> Attached<'a> {
    /// Asks the host, paints, and takes up the keeper's connection.
    pub fn begin(mut host: Connection, options: &'a AttachOptions) -> Result<Begun<'a>, AttachError> {
        let terminal = Terminal::enter()?;
        let signals = failed("cannot watch signals");
        let (window_changed, told_to_go) = watch_signals().map_err(signals)?;
        let size = Terminal::size();
        let params = attach_params(options, &terminal, size, None);
        let (answer, bytes) = host.call_with_bytes::<op::Attach>(&params, &[])?;
        let file = std::fs::File::open(&answer.ring).map_err(failed("cannot open the session's ring"))?;
        let ring = Ring::open(&file).map_err(|e| failed("cannot use the session's ring")(io::Error::other(e)))?;
        let token = token(&answer)
            .ok_or_else(|| failed("the host sent an invalid token")(io::ErrorKind::InvalidData.into()))?;
        let keeper = match Keeper::open(Path::new(&answer.keeper), token) {
            Ok(keeper) => keeper,
            Err(error) => return ended_meanwhile(&mut host, &answer, error),
        };
        let chord = Chord::new(options.chord, options.detach_key);
        let mut attached = Attached {
            options,
            session: answer.session.id.to_string(),
            session_id: answer.session.id,
            client: answer.client,
            size,
            session_size: answer.painted.size,
            resizes: VecDeque::new(),
            rearranged: false,
            position: answer.painted.offset,
            acked: answer.painted.offset,
            baton: true,
            baton_asked: false,
            view: View::Raw(None),
            answers: answer.answers,
            duty: Duty::default(),
            wanted: (answer.has_history && options.history).then_some(true),
            paint_asked: None,
            paint_answers: false,
            update_asked: None,
            resume_asked: None,
            keys: Keys::new(chord, options.read_only, answer.writes, answer.fence.0),
            turns: Turns::default(),
            line: Line::default(),
            last_byte: b'\n',
            buffer: Vec::new(),
            over: None,
            end: None,
            host: Some(host),
            relink: None,
            window_changed,
            told_to_go,
            terminal,
            keeper,
            ring,
        };
        attached.turns.known.saw(&answer.session.turn, &options.who.actor().handle);
        attached.first_paint(&answer.painted, &bytes)?;
        attached.tell_keeper(|position| ToKeeper::Follow { position, flags: FOLLOW_HOLDS })?;
        notice::questions_wait(answer.session.asks, attached.chord_sign())
            .into_iter()
            .for_each(|text| attached.say(text));
        Ok(Begun::Attached(Box::new(attached)))
    }

    /// Until it is detached or the session ends.
    pub fn run(mut self) -> Result<AttachEnd, AttachError> {
        let ran = self.cycle();
        if let Ok(AttachEnd::Detached | AttachEnd::HungUp) = ran {
            self.leave();
        }
        // The keeper must not read or write the terminal once it is the shell's again.
        let Attached { keeper, terminal, last_byte, view, .. } = self;
        drop(keeper);
        let in_place = matches!((&ran, &view), (Ok(AttachEnd::Ended(_)), View::Raw(_)));
        let _ = terminal.write(&holdfast_screen::leave(!in_place));
        if in_place && last_byte != b'\n' {
            let _ = terminal.write(b"\r\n");
        }
        ran
    }

    fn cycle(&mut self) -> Result<AttachEnd, AttachError> {
        // What there is to say at once.
        self.show_line()?;
        self.hand_over_keys()?;
        loop {
            if let Some(end) = self.end {
                return Ok(end);
            }
            let moved = self.pump()?;
            self.ask_for_paint()?;
            if let (Some(exit), false, None) = (self.over, moved, self.wanted) {
                return Ok(AttachEnd::Ended(exit));
            }
            // In a flood we look up once for each acknowledgement; a keeper that has our keys does so for us.
            if moved && self.acked != self.position && !self.keys.are_ours() {
                continue;
            }
            let ready = self.wait(moved)?;
            self.handle(&ready)?;
        }
    }

    pub(super) fn tell_keeper<'f>(&mut self, frame: impl FnOnce(u64) -> ToKeeper<'f>) -> Result<(), AttachError> {
        match self.keeper.send(frame(self.position)) {
            Ok(()) => Ok(()),
            // It has ended: what it said before is still to be read.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            Err(error) => Err(failed("the keeper cannot be reached")(error)),
        }
    }

    fn wait(&self, moved: bool) -> Result<Ready, AttachError> {
        let mut fds = Vec::with_capacity(6);
        let mut add = |fd| fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        add(self.window_changed.as_fd());
        add(self.told_to_go.as_fd());
        // After the keeper has ended its socket would always be ready.
        let (with_keeper, with_keys) = (self.over.is_none(), self.keys.are_ours());
        if with_keeper {
            add(self.keeper.descriptor());
        }
        if with_keys {
            add(rustix::stdio::stdin());
        }
        let with_host = self.host.is_some();
        match (&self.host, &self.relink) {
            (Some(host), _) => add(host.descriptor()),
            (None, Some(relink)) => add(relink.descriptor()),
            (None, None) => {}
        }
        let pause = if moved { Some(Duration::ZERO) } else { self.next_due() };
        let timeout = pause.map(|pause| pause.try_into().expect("short times fit"));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed("waiting failed")(error.into())),
        }
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut next = |asked: bool| asked && found.next().unwrap_or(false);
        let mut ready = Ready { window: next(true), go: next(true), ..Ready::default() };
        ready.keeper = next(with_keeper);
        ready.stdin = next(with_keys);
        let last = next(with_host || self.relink.is_some());
        (ready.host, ready.relink) = (last && with_host, last && !with_host);
        Ok(ready)
    }

    fn next_due(&self) -> Option<Duration> {
        let notice = self.line.goes_in().filter(|_| self.host.is_some() && self.wanted.is_none());
        [notice, self.keys.retry_in(), self.view.next_draw()].into_iter().flatten().min()
    }

    fn handle(&mut self, ready: &Ready) -> Result<(), AttachError> {
        if ready.go {
            let mut signal = [0];
            let _ = self.told_to_go.read(&mut signal);
            self.end = Some(AttachEnd::HungUp);
            return Ok(());
        }
        if ready.window {
            let _ = self.window_changed.read(&mut [0; 64]);
            self.window_has_changed();
        }
        if ready.keeper {
            self.read_keeper()?;
        }
        if ready.stdin {
            self.read_keys()?;
        }
        if ready.host {
            self.read_host()?;
        }
        if ready.relink {
            self.host_is_back();
        }
        self.settle_duty()?;
        self.show_line()?;
        self.ring_if_ours()?;
        self.quiet_keeper()?;
        self.retry_keys()
    }

    fn read_keeper(&mut self) -> Result<(), AttachError> {
        let mut buffer = [0; FRAME_BYTES_MAX];
        loop {
            match self.keeper.receive_now(&mut buffer).map_err(failed("the keeper cannot be read"))? {
                None => return Ok(()),
                Some(0) => {
                    self.keeper_gone();
                    return Ok(());
                }
                Some(count) => {
                    if let Ok(frame) = FromKeeper::decode(&buffer[..count]) {
                        self.frame(frame)?;
                    }
                }
            }
        }
    }

    fn frame(&mut self, frame: FromKeeper<'_>) -> Result<(), AttachError> {
        match frame {
            FromKeeper::Wake { position } => {
                (self.baton, self.baton_asked) = (true, false);
                if position > self.position {
                    self.last_byte = b' ';
                }
                self.position = position.max(self.position);
                self.acked = self.position;
            }
            FromKeeper::Keys { bytes } => self.keys_handed_back(bytes)?,
            FromKeeper::Written { stream, seq, .. } => self.keys.written(stream, seq),
            FromKeeper::Refused { code: refused::TTY, .. } => self.keys.terminal_refused(),
            FromKeeper::Refused { code, fence, stream, seq } => self.input_refused(code, fence, stream, seq),
            FromKeeper::Resized { head, cols, rows } => {
                self.resizes.push_back((head, Size::clamped(cols, rows)));
                // The keeper would go on painting for the old size.
                self.ask_for_baton()?;
            }
            FromKeeper::Exited { status, .. } => {
                self.over = Some(Exit::from_wait_status(status as i32));
                self.baton = true;
            }
            FromKeeper::Welcome(_)
            | FromKeeper::Joined { .. }
            | FromKeeper::Left { .. }
            | FromKeeper::Logged { .. }
            | FromKeeper::Probed { .. } => {}
        }
        Ok(())
    }

    /// The keeper's connection ended without a word: it was killed, or it let us go.
    fn keeper_gone(&mut self) {
        if self.over.is_some() {
            return;
        }
        let header = self.ring.header();
        if header.state.load(Ordering::Acquire) == STATE_ENDED {
            self.over = Some(Exit::from_wait_status(header.status.load(Ordering::Relaxed) as i32));
        } else {
            if lives(header.keeper_pid) {
                self.end = Some(AttachEnd::Detached);
                return;
            }
            self.over = Some(Exit::Lost);
        }
        if !self.baton {
            // Whether the last few bytes were painted by it is not known: they are not painted twice.
            self.position = self.ring.head();
            self.baton = true;
        }
    }
}

fn token(answer: &AttachAnswer) -> Option<[u8; 16]> {
    u128::from_str_radix(&answer.token, 16).ok().map(u128::to_be_bytes)
}

/// How long a process that was killed may take from letting go of its sockets to being gone.
const DYING_MS: u64 = 300;

/// Whether a process runs; one that has ended and was not collected yet does not, nor does one that is about to.
fn lives(pid: u32) -> bool {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(process) = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return false;
    };
    let patience = Duration::from_millis(DYING_MS).try_into().expect("short times fit");
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience));
    matches!(ended, Ok(0))
}

/// Descriptors that become readable when the window changes, and when a signal asks us to end.
fn watch_signals() -> io::Result<(UnixStream, UnixStream)> {
    let (window, window_bell) = UnixStream::pair()?;
    let (go, go_bell) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGWINCH, window_bell)?;
    signal_hook::low_level::pipe::register(SIGTERM, go_bell.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGHUP, go_bell)?;
    Ok((window, go))
}
