//! The attached terminal's loop: tells what decides what happened, and does what it says.

use super::far::{Far, Said};
use super::host::{Asked, attach_params, paint};
use super::keeper::{Keeper, lives};
use super::places::Places;
use super::relink::Relink;
use super::terminal::Terminal;
use super::{AttachEnd, AttachError, AttachOptions, failed};
use crate::connection::Connection;
use crate::ready::ready_of;
use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper, INPUT_BYTES_MAX};
use holdfast_abi::ring::{Copied, Ring, STATE_ENDED};
use holdfast_attach::{Attached, Begin, Effect, Input, Options, room};
use holdfast_types::{ClientToken, Exit, Handle, SessionId};
use holdfast_wire::attention::Until;
use holdfast_wire::operations::op;
use holdfast_wire::params::{AttachAnswer, PaintParams, Painted, WaitParams};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a host may take to notice that a keeper has ended.
const ENDING_MS: u64 = 2_000;

/// A terminal that is attached.
pub struct Driver<'a> {
    pub(super) options: &'a AttachOptions,
    pub(super) terminal: Terminal,
    pub(super) source: Source,
    pub(super) host: Option<Connection>,
    /// What the host has not answered.
    pub(super) asked: Vec<Asked>,
    relink: Option<Relink>,
    /// The session's id: its name may change.
    pub(super) session: String,
    pub(super) session_id: SessionId,
    /// What decides.
    pub(super) attached: Attached,
    started: Instant,
    /// Where output is copied to on its way to the terminal.
    buffer: Vec<u8>,
    /// Output was there the last time it was looked for.
    moved: bool,
    end: Option<AttachEnd>,
    /// What this terminal has seen.
    pub(super) places: Places,
    window_changed: UnixStream,
    told_to_go: UnixStream,
}

/// Where output comes from, and where keys go.
pub enum Source {
    /// A keeper and a ring of this machine.
    Near(Keeper, Ring),
    /// Those of another one, by its host.
    Far(Box<Far>),
}

/// What came of beginning.
pub enum Begun<'a> {
    /// The terminal is attached.
    Attached(Box<Driver<'a>>),
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

impl<'a> Driver<'a> {
    /// Asks the host, takes up the keeper's connection, and paints.
    pub fn begin(mut host: Connection, options: &'a AttachOptions) -> Result<Begun<'a>, AttachError> {
        let terminal = Terminal::enter()?;
        let signals = failed("cannot watch signals");
        let (window_changed, told_to_go) = watch_signals().map_err(signals)?;
        let window = Terminal::size();
        let size = room(window, options.status);
        let places = Places::of_terminal(&options.terminals);
        let params = attach_params(options, &terminal, size, None);
        let (mut answer, mut bytes) = host.call_with_bytes::<op::Attach>(&params, &[])?;
        let far = options.route.is_far();
        let (source, token) = if far {
            if answer.painted.size != size {
                // Painted for the session's size: to draw it in ours, its screen is needed.
                let session = answer.session.id.to_string();
                let params = PaintParams { session, size, draws: options.status, ..PaintParams::default() };
                (answer.painted, bytes) = host.call_with_bytes::<op::Paint>(&params, &[])?;
            }
            let Painted { offset, size, .. } = answer.painted;
            let far = Far::new(answer.session.id, answer.client, offset, size);
            (Source::Far(Box::new(far)), ClientToken([0; 16]))
        } else {
            let token = token(&answer)
                .ok_or_else(|| failed("the host sent an invalid token")(io::ErrorKind::InvalidData.into()))?;
            match near(&answer, token)? {
                Ok(source) => (source, token),
                Err(error) => return ended_meanwhile(&mut host, &answer, error),
            }
        };
        let fixed = Options {
            read_only: options.read_only,
            chord: options.chord,
            detach_key: options.detach_key,
            path: terminal.path.clone(),
            holds: true,
            far,
            us: options.who.actor().handle.clone(),
            token,
            session: answer.session.id,
            name: options.name.clone(),
            title: options.title,
            status: options.status,
        };
        let begin = Begin {
            client: answer.client,
            size: window,
            paint: paint(&answer.painted, bytes)?,
            answers: answer.answers,
            writes: answer.writes,
            fence: answer.fence.0,
            history: answer.has_history && options.history,
            asks: answer.session.asks,
            greets: (options.greeting && !places.knows(answer.session.id)).then(|| others(&answer)),
            turn: answer.session.turn,
            over: options.over,
            behind: places.history(answer.session.id),
            random: random(),
        };
        let (attached, effects) = Attached::begin(fixed, begin, 0);
        let mut driver = Driver {
            options,
            terminal,
            source,
            host: Some(host),
            asked: Vec::new(),
            relink: None,
            session: answer.session.id.to_string(),
            session_id: answer.session.id,
            attached,
            started: Instant::now(),
            buffer: Vec::new(),
            moved: false,
            end: None,
            places,
            window_changed,
            told_to_go,
        };
        driver.perform(effects)?;
        Ok(Begun::Attached(Box::new(driver)))
    }

    /// Until it is detached or the session ends.
    pub fn run(mut self) -> Result<AttachEnd, AttachError> {
        let ran = self.cycle();
        match ran {
            Ok(AttachEnd::Detached | AttachEnd::HungUp | AttachEnd::Suspended | AttachEnd::Switches) => self.leave(),
            Ok(AttachEnd::Ended(_)) | Err(_) => {}
        }
        // The keeper must not read or write the terminal once it is the shell's again.
        let Driver { source, terminal, attached, .. } = self;
        drop(source);
        let end = ran.as_ref().copied().unwrap_or(AttachEnd::Detached);
        let _ = terminal.write(&attached.farewell(end));
        ran
    }

    fn cycle(&mut self) -> Result<AttachEnd, AttachError> {
        loop {
            self.moved = false;
            self.feed(Input::Proceed)?;
            if let Some(end) = self.end {
                return Ok(end);
            }
            if self.hear_far()? {
                continue;
            }
            // In a flood we look up once for each acknowledgement.
            if self.moved && self.attached.floods() {
                continue;
            }
            let ready = self.wait()?;
            self.handle(&ready)?;
            if let Some(end) = self.end {
                return Ok(end);
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Tells what happened, and does what follows from it.
    pub(super) fn feed(&mut self, input: Input<'_>) -> Result<(), AttachError> {
        let effects = self.attached.handle(self.now_ms(), input);
        self.perform(effects)
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Result<(), AttachError> {
        for effect in effects {
            match effect {
                Effect::Keeper(frame) => self.tell_keeper(&frame)?,
                Effect::Ask(tag, request) => self.request(tag, request)?,
                // A terminal that is gone ends the attachment, not the session.
                Effect::Put(bytes) if self.terminal.write(&bytes).is_err() => self.end = Some(AttachEnd::HungUp),
                Effect::Put(_) => {}
                Effect::Read { at, bytes_max } => self.copy(at, bytes_max)?,
                Effect::FindHost => self.find_host(),
                Effect::End(end) => self.end = Some(end),
            }
        }
        Ok(())
    }

    fn tell_keeper(&mut self, frame: &[u8]) -> Result<(), AttachError> {
        let keeper = match &mut self.source {
            Source::Near(keeper, _) => keeper,
            Source::Far(far) => {
                far.tell(frame, self.host.as_mut());
                return Ok(());
            }
        };
        match keeper.send(frame) {
            Ok(()) => Ok(()),
            // It has ended: what it said before is still to be read.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            Err(error) => Err(failed("the keeper cannot be reached")(error)),
        }
    }

    fn copy(&mut self, at: u64, bytes_max: usize) -> Result<(), AttachError> {
        // Taken out and put back: made once, a fresh one would be filled with zeros for every copy.
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.len() < bytes_max {
            buffer.resize(bytes_max, 0);
        }
        let copied = match &mut self.source {
            Source::Near(_, ring) => ring.copy(at, &mut buffer[..bytes_max]),
            Source::Far(far) => far.copy(at, &mut buffer[..bytes_max]),
        };
        self.moved = matches!(copied, Copied::Bytes(1..));
        let fed = match copied {
            Copied::Bytes(count) => self.feed(Input::Output(&buffer[..count])),
            Copied::Lapped { .. } | Copied::Ahead { .. } => self.feed(Input::Lapped),
        };
        self.buffer = buffer;
        fed
    }

    fn find_host(&mut self) {
        self.host_is_gone();
        if self.relink.is_none() {
            // Nobody can answer a question of ssh's while the terminal is the session's.
            self.relink =
                Relink::start(self.options.route.clone().unattended().moving(), self.options.who.clone()).ok();
        }
    }

    /// The search for the host has ended.
    fn host_is_back(&mut self) -> Result<(), AttachError> {
        let Some(found) = self.relink.as_ref().map(Relink::take) else { return Ok(()) };
        self.relink = None;
        self.host = found;
        if self.host.is_some() {
            return self.feed(Input::HostBack);
        }
        self.find_host();
        Ok(())
    }

    fn wait(&self) -> Result<Ready, AttachError> {
        let mut fds = Vec::with_capacity(6);
        let mut add = |fd| fds.push(fd);
        add(self.window_changed.as_fd());
        add(self.told_to_go.as_fd());
        // After the keeper has ended its socket would always be ready.
        let keeper = match &self.source {
            Source::Near(keeper, _) => Some(keeper).filter(|_| !self.attached.is_over()),
            Source::Far(_) => None,
        };
        let (with_keeper, with_keys) = (keeper.is_some(), self.attached.reads_keys());
        if let Some(keeper) = keeper {
            add(keeper.descriptor());
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
        let due = |at: u64| Duration::from_millis(at.saturating_sub(self.now_ms()));
        let pause = if self.moved { Some(Duration::ZERO) } else { self.attached.due_ms().map(due) };
        let mut found = ready_of(&fds, pause).map_err(failed("waiting failed"))?.into_iter();
        let mut next = |asked: bool| asked && found.next().unwrap_or(false);
        let mut ready = Ready { window: next(true), go: next(true), ..Ready::default() };
        ready.keeper = next(with_keeper);
        ready.stdin = next(with_keys);
        let last = next(with_host || self.relink.is_some());
        (ready.host, ready.relink) = (last && with_host, last && !with_host);
        Ok(ready)
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
            self.feed(Input::Window(Terminal::size()))?;
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
            self.host_is_back()?;
        }
        self.feed(Input::Settle)
    }

    fn read_keeper(&mut self) -> Result<(), AttachError> {
        let mut buffer = [0; FRAME_BYTES_MAX];
        loop {
            let Source::Near(keeper, ring) = &self.source else { return Ok(()) };
            match keeper.receive_now(&mut buffer).map_err(failed("the keeper cannot be read"))? {
                None => return Ok(()),
                Some(0) => {
                    let (exit, head) = (ending(ring), ring.head());
                    return self.feed(Input::KeeperGone { exit, head });
                }
                Some(count) => {
                    if let Ok(frame) = FromKeeper::decode(&buffer[..count]) {
                        self.feed(Input::Keeper(frame))?;
                    }
                }
            }
        }
    }

    /// What a keeper elsewhere says; true where it said something.
    fn hear_far(&mut self) -> Result<bool, AttachError> {
        let Source::Far(far) = &mut self.source else { return Ok(false) };
        let Some(said) = far.take_said() else { return Ok(false) };
        match said {
            Said::Frame(frame) => {
                if let Ok(frame) = FromKeeper::decode(&frame) {
                    self.feed(Input::Keeper(frame))?;
                }
            }
            Said::Gone { exit, head } => self.feed(Input::KeeperGone { exit, head })?,
        }
        self.feed(Input::Settle)?;
        Ok(true)
    }

    /// Reads keys ourselves.
    fn read_keys(&mut self) -> Result<(), AttachError> {
        let mut buffer = [0; INPUT_BYTES_MAX];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(count @ 1..) => self.feed(Input::Typed(&buffer[..count]))?,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.end = Some(AttachEnd::HungUp),
        }
        Ok(())
    }
}

/// Who else is attached.
fn others(answer: &AttachAnswer) -> Vec<Handle> {
    let others = answer.session.clients.iter().filter(|client| client.id != answer.client);
    others.filter_map(|client| Some(client.actor.as_ref()?.handle.clone())).collect()
}

/// The first stream's number: nobody else's.
fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    u64::from_le_bytes(bytes)
}

/// Opens the keeper's connection and the ring; the inner error says that there is no keeper.
fn near(answer: &AttachAnswer, token: ClientToken) -> Result<io::Result<Source>, AttachError> {
    let file = std::fs::File::open(&answer.ring).map_err(failed("cannot open the session's ring"))?;
    let ring = Ring::open(&file).map_err(|e| failed("cannot use the session's ring")(io::Error::other(e)))?;
    Ok(Keeper::open(Path::new(&answer.keeper), token.0).map(|keeper| Source::Near(keeper, ring)))
}

/// How the session ended whose keeper closed the connection; none: the keeper lives.
fn ending(ring: &Ring) -> Option<Exit> {
    let header = ring.header();
    if header.state.load(Ordering::Acquire) == STATE_ENDED {
        Some(Exit::from_wait_status(header.status.load(Ordering::Relaxed) as i32))
    } else {
        (!lives(header.keeper_pid)).then_some(Exit::Lost)
    }
}

fn token(answer: &AttachAnswer) -> Option<ClientToken> {
    answer.token.parse().ok()
}

/// Descriptors that become readable when the window changes, and when a signal asks us to end.
fn watch_signals() -> io::Result<(UnixStream, UnixStream)> {
    let (window, go) = signals()?;
    Ok((window.try_clone()?, go.try_clone()?))
}

/// A descriptor that becomes readable when a signal asks this process to end: it gives the terminal back first.
pub fn told_to_go() -> io::Result<UnixStream> {
    signals()?.1.try_clone()
}

/// Registered once for the process, which may attach many times; a signal that comes in between is found by the next one.
fn signals() -> io::Result<&'static (UnixStream, UnixStream)> {
    static SIGNALS: OnceLock<(UnixStream, UnixStream)> = OnceLock::new();
    if let Some(signals) = SIGNALS.get() {
        return Ok(signals);
    }
    let (window, window_bell) = UnixStream::pair()?;
    let (go, go_bell) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGWINCH, window_bell)?;
    signal_hook::low_level::pipe::register(SIGTERM, go_bell.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGHUP, go_bell)?;
    Ok(SIGNALS.get_or_init(|| (window, go)))
}
