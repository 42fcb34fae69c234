//! A wall around a session's processes: Landlock, which the program that a keeper starts puts up before it becomes the session's
//! command (`holdfast session wall`).
//!
//! A process behind a wall can ask this host for things. So what it asks for is done behind the same wall, or not at all
//! ([`Server::behind_wall`]).

use crate::birth::Birth;
use crate::connection::{Connection, only_looks};
use crate::registry::Registry;
use crate::serve::Server;
use crate::session::Session;
use crate::store::Spec;
use crate::whence::Whence;
use holdfast_abi::start::Start;
use holdfast_types::Home;
use holdfast_wire::params::NewParams;
use holdfast_wire::wall::Wall;
use holdfast_wire::{Call, Code, Fault};
use landlock::{ABI, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Directories a wall may name: each is a descriptor while it is put up.
const DIRECTORIES_MAX: usize = 64;
/// Ports a wall may name.
const PORTS_MAX: usize = 256;

/// The session's own temporary directory.
pub(crate) fn temporary(session: &Session) -> PathBuf {
    session.dir.join("tmp")
}

/// A wall as it will stand, or why it cannot. Blocks for a few looks at directories.
pub(crate) fn checked(wall: Wall, home: &Home, is_other: bool) -> Result<Wall, Fault> {
    let refused = |message: String, hint: &str| Err(Fault::new(Code::CannotStart, message).hint(hint));
    if is_other {
        return refused(
            "a session of another user has no wall".into(),
            "use --user or --wall: another user cannot write your files anyway",
        );
    }
    if wall.write.len() > DIRECTORIES_MAX || wall.connect.as_ref().is_some_and(|ports| ports.len() > PORTS_MAX) {
        return refused(format!("a wall names at most {DIRECTORIES_MAX} directories and {PORTS_MAX} ports"), "");
    }
    if let Err(error) = handled(&wall) {
        return refused(
            format!("this kernel cannot put up the wall: {error}"),
            "Landlock is in Linux 5.13 and later, TCP ports in 6.7; check with: holdfast doctor",
        );
    }
    let mut write = Vec::new();
    for dir in &wall.write {
        let real = if dir.starts_with('/') { std::fs::canonicalize(dir).ok() } else { None };
        let Some(real) = real.filter(|real| real.is_dir()) else {
            return refused(
                format!("the wall's {dir:?} is no directory"),
                "name directories that exist, by absolute paths",
            );
        };
        // Whoever can write these can become anybody.
        if let Some(own) = own_directories(home).find(|own| own.starts_with(&real) || real.starts_with(own)) {
            return refused(
                format!("the wall's {dir} would leave Holdfast's own {} open", own.display()),
                "name the directories of the work, not a home directory that holds everything",
            );
        }
        match real.into_os_string().into_string() {
            Ok(real) => write.push(real),
            Err(_) => return refused(format!("the wall's {dir:?} has a name that is not UTF-8"), ""),
        }
    }
    Ok(Wall { write, ..wall })
}

/// Where this home keeps keys, policy and records.
fn own_directories(home: &Home) -> impl Iterator<Item = PathBuf> {
    let all = [&home.state, &home.config, &home.run].map(|path| std::fs::canonicalize(path).unwrap_or(path.clone()));
    all.into_iter()
}

/// What a wall is made of, as far as this kernel must have it.
fn handled(wall: &Wall) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))?;
    if wall.connect.is_some() {
        rules = rules.handle_access(AccessNet::ConnectTcp)?;
    }
    rules.create().map(drop)
}

/// Starts a session's command behind its wall, if it has one.
pub(crate) fn put_up(session: &Session, spec: &Spec, start: &mut Start) -> Result<(), Fault> {
    let Some(wall) = &spec.wall else { return Ok(()) };
    let cannot = |error: std::io::Error| Fault::new(Code::CannotStart, format!("cannot put up the wall: {error}"));
    let temporary = temporary(session);
    crate::store::make_dir(&temporary).map_err(cannot)?;
    start.env.retain(|pair| !pair.starts_with(b"TMPDIR="));
    start.env.push([b"TMPDIR=", temporary.as_os_str().as_bytes()].concat());
    let text = |path: &Path| path.to_string_lossy().into_owned();
    // What an integrated shell tells the host lies in files of the session.
    let shell = spec.shell.map(|_| text(&session.shell_dir()));
    let own = shell.into_iter().chain([text(&temporary)]);
    let whole = Wall { write: wall.write.iter().cloned().chain(own).collect(), ..wall.clone() };
    let whole = serde_json::to_vec(&whole).map_err(|error| cannot(error.into()))?;
    let program = crate::program().map_err(cannot)?;
    let argv0 = std::mem::take(&mut start.argv0);
    let words = [program.into_os_string().into_vec(), b"session".to_vec(), b"wall".to_vec(), whole, argv0];
    start.argv.splice(0..0, words);
    Ok(())
}

impl Registry {
    /// Whether a session has a wall: only then it matters where a process comes from.
    pub(crate) fn has_walls(&self) -> bool {
        self.all().iter().any(|session| session.state.borrow().spec.wall.is_some() && session.is_live())
    }

    /// Whether a session has a seam at which its programs are judged.
    fn has_seams(&self) -> bool {
        self.all().iter().any(|session| session.state.borrow().spec.gate.is_some() && session.is_live())
    }

    /// What a session starts with, once the wall it asks for is known to stand. Directories can be far away: not on this thread.
    pub(crate) async fn behind_its_wall(&self, birth: Birth) -> Result<Birth, Fault> {
        let Some(wall) = birth.wall.clone() else { return Ok(birth) };
        let (home, is_other) = (self.shared.home.clone(), birth.other.is_some());
        let checked = crate::off_thread(move || Ok(checked(wall, &home, is_other))).await;
        let checked =
            checked.map_err(|error| Fault::new(Code::CannotStart, format!("cannot check the wall: {error}")))?;
        Ok(Birth { wall: Some(checked?), ..birth })
    }
}

impl Server {
    /// Where a process comes from is known before it can ask for anything, if that matters.
    pub(crate) async fn look_for_walls(&self, connection: &Connection) {
        if self.registry.has_walls() || self.registry.has_seams() {
            self.whence(connection).await;
        }
    }

    /// What a process behind a session's wall asks for: anything within that session, looks at others, and sessions behind the same
    /// wall. Otherwise this host would do outside what the process itself cannot. The programs of sessions that are started from one
    /// with a seam are judged too.
    ///
    /// Whoever connects while there is a wall is looked at when it says who it is; who was there before is behind none.
    pub(crate) fn behind_wall(&self, call: Call, connection: &Connection) -> Result<Call, Fault> {
        if connection.process.is_none() || only_looks(&call) {
            return Ok(call);
        }
        let id = match connection.whence.get() {
            Some(Whence::Inside { session: Some(id), .. }) => *id,
            Some(Whence::Unknown) if self.registry.has_walls() => {
                return Err(Fault::new(
                    Code::Denied,
                    "where this process comes from is not known, and a session has a wall",
                )
                .hint("try again from a terminal of your own"));
            }
            Some(_) | None => return Ok(call),
        };
        let Ok(session) = self.registry.find(&id.to_string()) else { return Ok(call) };
        let (wall, gate) = {
            let state = session.state.borrow();
            (state.spec.wall.clone(), state.spec.gate)
        };
        let has_wall = wall.is_some();
        let within =
            |params: NewParams| NewParams { wall: wall.clone().or(params.wall), gate: gate.or(params.gate), ..params };
        match call {
            Call::New(params) => Ok(Call::New(within(params))),
            Call::RunStart(mut params) if params.new.is_some() => {
                params.new = params.new.map(|new| Box::new(within(*new)));
                Ok(Call::RunStart(params))
            }
            call if !has_wall || self.is_within(&call, &session) => Ok(call),
            call => Err(Fault::new(
                Code::Denied,
                format!(
                    "this process runs behind the wall of session {}: {} reaches beyond it",
                    session.name(),
                    call.row().name
                ),
            )
            .hint("a person can do it from a terminal outside")),
        }
    }

    /// Whether an act stays within this session.
    fn is_within(&self, call: &Call, session: &Session) -> bool {
        let named = match call {
            Call::Attach(params) => &params.session,
            Call::Update(params) => &params.session,
            Call::Leave(params) => &params.session,
            Call::Send(params) => &params.session,
            Call::Resize(params) => &params.session,
            Call::Rename(params) => &params.session,
            Call::Detach(params) => &params.session,
            Call::Signal(params) => &params.session,
            Call::End(params) => &params.session,
            Call::Take(params) | Call::Request(params) | Call::Withdraw(params) | Call::Release(params) => {
                &params.session
            }
            Call::Give(params) => &params.session,
            // Below the same wall: a write beyond it is refused where the file is known.
            Call::FilesWrite(params) => &params.session,
            Call::FilesEdit(params) => &params.session,
            Call::FilesUpload(params) => &params.session,
            Call::FilesUndo(params) => &params.session,
            Call::QuestionAsk(params) => &params.session,
            Call::RunStart(params) => match &params.session {
                Some(session) => session,
                None => return false,
            },
            // Those who asked take back what they asked, and no more.
            Call::QuestionWithdraw(_) => return true,
            _ => return false,
        };
        self.registry.find(named).is_ok_and(|found| found.id == session.id)
    }
}
