//! The daemon of a machine: finds keepers, keeps screens, answers clients.
//!
//! Everything here may crash safely: what a host knows it rebuilds from the sessions' files and their keepers. One thread
//! serves all sessions; nothing it does for one takes longer than a few milliseconds.

/// Does what blocks and must not wait for a place, where that holds nobody up: what syncs, stops or ends something. Who only
/// looks does it by [`shares::aside`]. An operation in which this is done says so in its terms.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    connection::must_say_other();
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten()
}

mod actors;
mod admit;
mod ahead;
mod attention;
mod birth;
mod connection;
mod contracts;
mod disk;
mod files;
mod flows;
mod follow;
mod gate;
mod given;
mod holder;
mod hooks;
mod journal;
mod leases;
mod lines;
mod link;
mod lives;
mod lobby;
mod log;
mod lookout;
mod metrics;
mod metrics_port;
mod moving;
mod names;
mod notes;
mod notify;
mod orders;
mod origins;
mod own;
mod picture;
pub mod portable;
mod prepared;
mod presence;
mod proofs;
mod questions;
mod reach;
mod reap;
mod registry;
mod relays;
mod rest;
mod room;
mod roster;
mod runs;
pub mod seam;
mod serve;
mod session;
mod shares;
mod shells;
mod spawn;
mod store;
mod surface;
mod tokens;
pub mod user;
mod wall;
mod watch;
mod whence;

/// What decides, apart from what does: for the simulation in `sim`, no interface of this crate.
#[doc(hidden)]
pub mod parts {
    pub use crate::journal::{Journal, Opened};
    pub use crate::picture::{Picture, Step};
}

pub use files::copy::copy as copy_file;
pub use gate::{Choice, POLICY_DIR};
pub use given::given;
pub use holder::{hold, let_go};
pub use holdfast_http::{Listen, Tls};
pub use holdfast_relay::Cluster;
pub use leases::LeaseConfig;
pub use log::{LogFormat, LogLevels, begin_log};
pub use notify::{Deliver, On, Rule};
pub use reap::Rules as ReapRules;
pub use relays::waits_at_relays;
pub use spawn::{KeeperBuild, keeper_of, own_keeper};

use holdfast_abi::address::Address;
use holdfast_abi::ring::Base;
use holdfast_store::trust::must_be_ours;
use holdfast_types::Home;
use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::UnixListener;

/// What a host can be told by configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Data bytes of a new session's ring.
    pub ring_bytes: u64,
    /// Lines of history kept per session.
    pub history_lines: u32,
    /// How long an ended session stays visible, in milliseconds.
    pub ended_keep_ms: u64,
    /// How long the key of a run is remembered, in milliseconds.
    pub runs_keep_ms: u64,
    /// What actors hold in a session before anything is granted.
    pub defaults: holdfast_types::Defaults,
    /// Where the counters are served over HTTP; none: at the socket alone.
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Where the whole host is served over HTTP; none: at the socket alone.
    pub http: Option<holdfast_http::Listen>,
    /// Whom to tell what.
    pub notify: Vec<notify::Rule>,
    /// Whether lost sessions get another life by themselves, where nothing was said of one.
    pub recover: holdfast_wire::lives::Recovery,
    /// Which sessions that nobody uses are ended.
    pub reap: ReapRules,
    /// By which policy acts are judged.
    pub policy: Choice,
    /// Where leases of sessions are kept; none: sessions are this machine's.
    pub lease: Option<LeaseConfig>,
    /// The shell of a session for which no command is given; none: the user's.
    pub shell: Option<String>,
    /// Where new sessions begin to count: at zero. Tests begin elsewhere, as a session that is recovered or moved will.
    #[doc(hidden)]
    pub base: Base,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig {
            ring_bytes: holdfast_types::RING_BYTES_DEFAULT,
            history_lines: holdfast_types::HISTORY_LINES_DEFAULT,
            ended_keep_ms: 24 * 60 * 60 * 1000,
            runs_keep_ms: 7 * 24 * 60 * 60 * 1000,
            defaults: holdfast_types::Defaults::default(),
            metrics_listen: None,
            http: None,
            notify: Vec::new(),
            recover: holdfast_wire::lives::Recovery::Manual,
            reap: ReapRules::default(),
            policy: Choice::default(),
            lease: None,
            shell: None,
            base: Base::default(),
        }
    }
}

/// How often sessions that ended long ago are looked for, at the least.
const CLEAR_EVERY_MS: u64 = 60 * 60 * 1000;

/// Clients that wait to be accepted: a thousand that come back at once after a restart.
const BACKLOG: i32 = 1024;

/// How long a host that was asked to stop waits for what it does on other threads: longer than a sync takes.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// How a host's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It was asked to stop.
    Stopped,
    /// Another host serves this home already.
    Yielded,
}

/// The file this program runs from; the new one where an upgrade has replaced it.
pub fn program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let replaced =
        path.as_os_str().as_bytes().strip_suffix(b" (deleted)").map(|path| Path::new(OsStr::from_bytes(path)));
    Ok(replaced.filter(|new| new.exists()).map_or_else(|| path.clone(), Path::to_owned))
}

/// Serves a home until asked to stop.
pub fn run(home: &Home, config: &HostConfig) -> io::Result<Ran> {
    run_at(home, config, None)
}

/// The same at the socket that systemd listens on, where it passed one ([`given`]).
pub fn run_at(home: &Home, config: &HostConfig, given: Option<OwnedFd>) -> io::Result<Ran> {
    store::make_dir(&home.run)?;
    store::make_dir(&home.state)?;
    // Once they are there: who was first to make one in a directory for everybody would be found out here.
    for path in home.directories() {
        must_be_ours(path)?;
    }
    // The lock says who is the host; a crash releases it, whatever files are left.
    let lock =
        std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(home.host_lock())?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) if given.is_some() && given::relieve(&lock)? => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Ran::Yielded),
        Err(error) => return Err(error.into()),
    }
    raise_file_limit();
    // No program of the same user reads our memory or takes our descriptors.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!("other programs of this user can look into the host: {error}");
    }
    // One started inside a session would otherwise be stopped with it, and all keepers it starts.
    if let Err(error) = holdfast_observe::leave_sessions() {
        tracing::warn!("the cgroup of a session cannot be left: {error}");
    }
    // For people who look at processes. What is spared is known otherwise, see `own`.
    let _ = rustix::thread::set_name(c"holdfast-host");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, serve(home, config, given))?;
    drop(lock);
    // What is being told to somebody who does not answer is told again by the next host.
    runtime.shutdown_timeout(LEAVE_TIME);
    Ok(Ran::Stopped)
}

async fn serve(home: &Home, config: &HostConfig, given: Option<OwnedFd>) -> io::Result<()> {
    let registry = registry::Registry::open(home, config)?;
    registry.recover().await?;
    let server = Rc::new(serve::Server::new(registry));
    // Tokens may have ended while there was no host, or with the one that recorded it.
    server.fewer_tokens();
    let path = home.host_socket();
    // A host that left may have taken the path of systemd's socket with it: then nobody would find us there.
    let given = given.filter(|_| path.exists());
    let bound = given.is_none();
    // We have the lock: whatever a crash left there, nobody serves it.
    let listener = UnixListener::from_std(given.map_or_else(|| bind_socket(&path), Ok)?.into())?;
    let file = bound.then(|| file_id(&path)).flatten();
    if let Some(address) = config.metrics_listen {
        tokio::task::spawn_local(metrics_port::serve(address, Rc::clone(&server)));
    }
    let holder = Rc::new(holder::Holder::default());
    let held = holder.inherit(home, config.http.as_ref().map(|listen| listen.address));
    if let Some(listen) = &config.http
        && let Some(listener) = surface::open(listen, held, &server).await
    {
        tokio::task::spawn_local(Rc::clone(&holder).keep(listener, Arc::clone(&server.registry.shared.own)));
    }
    if !config.notify.is_empty() {
        tokio::task::spawn_local(notify::follow(Rc::clone(&server)));
    }
    relays::begin(&server);
    follow_all(&server);
    let mut spare = room::Spare::keep();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        activated = !bound,
        "listens on {}",
        path.display()
    );
    let mut clearing =
        tokio::time::interval(Duration::from_millis((config.ended_keep_ms / 2).clamp(500, CLEAR_EVERY_MS)));
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    // What init systems and reclaim hooks send when the power fails.
    let mut power = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(libc::SIGPWR))?;
    let mut hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !is_ours(&stream) => {}
                Ok((stream, _)) => {
                    tokio::task::spawn_local(Rc::clone(&server).serve(stream));
                }
                // Out of descriptors: those who are connected go on; newcomers are told.
                Err(error) => spare.turn_away(&listener, &error).await,
            },
            _ = clearing.tick() => server.registry.clear_old(now_ms()),
            () = server.stop.notified() => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = power.recv() => {
                let registry = server.registry.clone();
                tokio::task::spawn_local(async move { registry.checkpoint_all().await });
            }
            // A terminal's end is no reason to stop.
            _ = hangup.recv() => {}
        }
    }
    tracing::info!("stops");
    holder.bye();
    // Not the one that systemd listens on, now or since: the next host comes by it.
    if file.is_some() && file == file_id(&path) {
        let _ = std::fs::remove_file(&path);
    }
    server.registry.ahead.end_all().await;
    server.registry.save_all();
    // The answer to whoever asked us to stop is on its way.
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

/// What the host does by itself for as long as it runs.
fn follow_all(server: &Rc<serve::Server>) {
    tokio::task::spawn_local(hooks::follow(Rc::clone(server)));
    tokio::task::spawn_local(lives::follow(Rc::clone(server)));
    tokio::task::spawn_local(leases::follow(Rc::clone(server)));
    tokio::task::spawn_local(reap::follow(Rc::clone(server)));
    tokio::task::spawn_local(portable::auto::follow(Rc::clone(server)));
    tokio::task::spawn_local(gate::follow(Rc::clone(server)));
    tokio::task::spawn_local(lookout::ports::follow(Rc::clone(server)));
    let asked = Rc::clone(server);
    tokio::task::spawn_local(async move { rest::follow(&asked.presence).await });
}

/// Which file lies at a path.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Binds a socket of the home, in place of one that a crash left behind.
fn bind_socket(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let kind = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, kind, None)?;
    // The file that is bound has the socket's mode: at no moment can another user connect, whatever the umask.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(Address::of(path)?.path())?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Whether whoever connected is this user, or root. The directory's mode says the same; this holds where it was changed.
fn is_ours(stream: &impl AsFd) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

/// Two descriptors per session: as many as the system lets us have. Sessions get their starter's limit, not ours.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    birth::keep_file_limit(limit.current);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Milliseconds since the epoch.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The clock deadlines follow: it never jumps.
fn started() -> tokio::time::Instant {
    static STARTED: std::sync::OnceLock<tokio::time::Instant> = std::sync::OnceLock::new();
    *STARTED.get_or_init(tokio::time::Instant::now)
}

/// Now, by both clocks.
fn now() -> holdfast_session::Now {
    holdfast_session::Now { time_ms: now_ms(), clock_ms: started().elapsed().as_millis() as u64 }
}

fn random_token() -> [u8; 16] {
    let mut token = [0; 16];
    getrandom::fill(&mut token).expect("the kernel gives random bytes");
    token
}

fn random() -> u64 {
    u64::from_le_bytes(random_token()[..8].try_into().expect("eight bytes"))
}
