//! Where this run of the program stands: its home, its own file, its configuration, and its link to the host.

use crate::config::Config;
use crate::failure::Failure;
use crate::hosts::{self, Elsewhere};
use crate::platform;
use crate::show::say;
use crate::versions;
use crate::who::{self, Me, Said};
use holdfast_authority::Ask;
use holdfast_client::{CallError, ConnectError, Connection, Greeted, Identity, PROGRAM, Route, greet, greet_or_start};
use holdfast_store::trust::must_be_ours;
use holdfast_types::{ActorClass, Home, Proof};
use holdfast_wire::hello::Inside;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ListParams, SessionParams, SessionView};
use holdfast_wire::{Code, Operation};
use rustix::termios::isatty;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Hosts that break one after the other without an answer in between before we give up: more is no crash but a fault
/// that comes back each time. Many, because on a busy machine hosts that are killed again and again die before they answer.
const BREAKS_MAX: u32 = 30;
/// Pause after a break, times the breaks so far.
const BREAK_PAUSE_MS: u64 = 20;
/// The longest: who comes late finds a host that dies next.
const BREAK_PAUSE_MS_MAX: u64 = 100;

/// How long a command that has begun waits for the way to another machine: as long as a turn is kept for who was cut off.
const AWAY: Duration = Duration::from_secs(30);
/// Pause between two tries, doubled up to the longest.
const AWAY_PAUSE: Duration = Duration::from_millis(200);
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(2);

/// What every command is given.
#[derive(Debug)]
pub struct Here {
    /// The directories.
    pub home: Home,
    /// This program, to start a host with.
    pub program: PathBuf,
    /// Answer in JSON.
    pub json: bool,
    /// Who acts, as the command line says.
    said: Option<Said>,
    /// Who acts, once somebody had to know.
    me: OnceCell<Me>,
    /// Where the host found this process, once it was asked.
    inside: OnceCell<Option<Inside>>,
    /// A connection on which nobody has said yet who speaks.
    greeted: RefCell<Option<Greeted>>,
    /// The host that is asked, where it is another machine's.
    elsewhere: Option<Elsewhere>,
    /// Its version was looked at.
    compared: Cell<bool>,
    /// A terminal will be attached by the next connection.
    attaches: Cell<bool>,
    /// Nobody else decides what lies in the home's directories.
    is_ours: Cell<bool>,
}

impl Here {
    /// From the command line and the environment.
    pub fn find(home: Option<&Path>, json: bool, said: Option<Said>, host: Option<&str>) -> Result<Here, Failure> {
        let program = own_path()?;
        settle_home(home, &program)?;
        let home = Home::from_env(|key| std::env::var_os(key))?;
        let elsewhere = host.map(|name| hosts::find(&home, name)).transpose()?;
        Ok(Here {
            elsewhere,
            home,
            program,
            json,
            said,
            me: OnceCell::new(),
            inside: OnceCell::new(),
            greeted: RefCell::default(),
            compared: Cell::default(),
            attaches: Cell::default(),
            is_ours: Cell::default(),
        })
    }

    /// The same person at another host; `here` is this machine's, where no host is called so.
    pub fn at(&self, host: &str) -> Result<Here, Failure> {
        let elsewhere = match hosts::find(&self.home, host) {
            Err(_) if host == "here" => None,
            found => Some(found?),
        };
        Ok(Here {
            elsewhere,
            home: self.home.clone(),
            program: self.program.clone(),
            json: self.json,
            said: self.said.clone(),
            me: OnceCell::new(),
            inside: OnceCell::new(),
            greeted: RefCell::default(),
            compared: Cell::default(),
            attaches: Cell::new(self.attaches.get()),
            is_ours: Cell::new(self.is_ours.get()),
        })
    }

    /// This place, if nobody else decides what lies there.
    pub fn if_ours(self) -> Result<Here, Failure> {
        self.must_be_ours()?;
        Ok(self)
    }

    /// Every directory is looked at once, and once more where it was made since.
    fn must_be_ours(&self) -> Result<(), Failure> {
        if !self.is_ours.get() {
            self.home.directories().into_iter().try_for_each(|path| Ok::<(), Failure>(must_be_ours(path)?))?;
            self.is_ours.set(true);
        }
        Ok(())
    }

    /// Who acts, and why; its key is made where that is the rule.
    pub fn me(&self) -> Result<&Me, Failure> {
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        self.make_state()?;
        let mut me = who::find(&self.home, self.said.as_ref(), || self.inside())?;
        if let Some(elsewhere) = &self.elsewhere {
            let mut host = elsewhere.clone();
            me.identity = host.known_as(&self.home, &me.identity)?;
            if host != *elsewhere {
                hosts::keep(&self.home, &host)?;
            }
        }
        Ok(self.me.get_or_init(|| me))
    }

    /// Who acts, as this home knows it: also where the host that is asked knows it by another handle.
    pub fn own(&self) -> Result<Identity, Failure> {
        self.make_state()?;
        Ok(who::find(&self.home, self.said.as_ref(), || self.inside())?.identity)
    }

    /// Who acts.
    pub fn who(&self) -> Result<&Identity, Failure> {
        Ok(&self.me()?.identity)
    }

    /// Who was said to act on the command line.
    pub fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    /// Who acts, if its key is there already.
    pub fn who_if_there(&self) -> Option<Identity> {
        who::existing(&self.home, self.said.as_ref())
    }

    /// The settings that hold now.
    pub fn config(&self) -> Result<Config, Failure> {
        Config::load(&self.home.config_file(), |key| std::env::var_os(key))
    }

    /// The way to the host that is asked.
    pub fn route(&self) -> Result<Route, Failure> {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.route(&self.home),
            None => Ok(Route::Here { home: self.home.clone(), program: self.program.clone() }),
        }
    }

    /// The host that is asked is another machine's.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// The host that is asked, where it is another machine's.
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// What a person calls a session from here.
    pub fn called(&self, session: &str) -> String {
        match &self.elsewhere {
            Some(elsewhere) => format!("{}/{session}", elsewhere.name),
            None => session.to_owned(),
        }
    }

    /// The same by which a terminal is attached: it finds its host again by itself, and so may change its way.
    pub fn link_to_attach(&self) -> Result<Link<'_>, Failure> {
        self.attaches.set(true);
        self.link()
    }

    /// A link to the host, which is started where it does not run.
    pub fn link(&self) -> Result<Link<'_>, Failure> {
        Ok(Link { here: self, connection: self.connect()?, breaks: 0 })
    }

    /// Where the host found this process: inside a session, or below an agent. None: in neither, or no host runs.
    pub fn inside(&self) -> Option<Inside> {
        if let Some(inside) = self.inside.get() {
            return inside.clone();
        }
        let greeted = greet(&self.home).ok()?;
        let inside = self.inside.get_or_init(|| greeted.inside().cloned()).clone();
        *self.greeted.borrow_mut() = Some(greeted);
        inside
    }

    /// A connection to the host, which is started where it does not run.
    pub fn connect(&self) -> Result<Connection, Failure> {
        self.make_state()?;
        if self.is_elsewhere() {
            let route = if self.attaches.get() { self.route()?.moving() } else { self.route()? };
            let connection = route.connect(self.who()?)?;
            self.compare(&connection);
            return Ok(connection);
        }
        let kept = self.greeted.borrow_mut().take();
        let greeted = match kept.map_or_else(|| greet(&self.home), Ok) {
            Err(ConnectError::NoHost(_)) => return self.start(),
            other => other?,
        };
        match self.identify(greeted)? {
            Some(connection) => Ok(connection),
            None => self.start(),
        }
    }

    /// Says once which of two versions is older, and how to update it.
    fn compare(&self, connection: &Connection) {
        let Some(elsewhere) = &self.elsewhere else { return };
        if self.json || self.compared.replace(true) {
            return;
        }
        let difference = versions::difference(&elsewhere.name, PROGRAM, &connection.hello().program);
        difference.into_iter().for_each(|text| say(&text));
    }

    /// A connection to a host that was not running a moment ago.
    pub fn start(&self) -> Result<Connection, Failure> {
        if self.said.is_some() {
            // One that is not there is told before anything is started.
            self.me()?;
        }
        // A host that cannot read its configuration would only end up as a line in a log.
        self.config()?;
        self.make_state()?;
        for _ in 0..BREAKS_MAX {
            if let Some(connection) = self.identify(greet_or_start(&self.home, &self.program)?)? {
                return Ok(connection);
            }
        }
        Err(ConnectError::NotReady(self.home.host_log()).into())
    }

    /// Says who speaks. A human who is named on the command line where no person is known to be is asked from outside. None: the
    /// host went away meanwhile.
    fn identify(&self, greeted: Greeted) -> Result<Option<Connection>, Failure> {
        let is_inside = self.inside.get_or_init(|| greeted.inside().cloned()).is_some();
        let who = self.who()?;
        let handle = &who.actor().handle;
        let said = if !is_inside || self.said.is_none() || handle.class() != ActorClass::Human {
            greeted.identify(who)
        } else {
            say(&format!("confirm that you are {handle}: press Ctrl-\\ a here, or `holdfast answer` outside"));
            greeted.confirm(who)
        };
        match said {
            Ok(connection) => Ok(Some(connection)),
            Err(CallError::Broken(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What stands for somebody is not shown on a session's terminal: everyone who may look there could use it first.
    pub fn must_not_be_watched(&self, what: &str, instead: &str) -> Result<(), Failure> {
        let is_inside = || who::is_inside() || self.inside().is_some_and(|inside| inside.session.is_some());
        if !isatty(rustix::stdio::stdout()) || !is_inside() {
            return Ok(());
        }
        let message = format!("this terminal is inside a session: everyone who may watch it would see {what}");
        Err(Failure::new("watched", message)
            .hint(format!("run it in a terminal of your own, or write it to a file: {instead}")))
    }

    /// Sees to it that a variable has this value: a host that this run starts inherits it.
    #[cfg(target_os = "linux")]
    pub fn settle_variable(&self, variable: &str, value: &str) -> Result<(), Failure> {
        match std::env::var_os(variable).is_some_and(|is| is == value) {
            true => Ok(()),
            false => Err(start_again(&self.program, variable, value)),
        }
    }

    /// Sees to it that there is a place for keys and sessions.
    pub fn make_state(&self) -> Result<(), Failure> {
        if self.is_ours.get() && self.home.state.is_dir() {
            return Ok(());
        }
        self.is_ours.set(false);
        holdfast_store::make_dir(&self.home.state).map_err(|e| {
            Failure::io(format!("cannot create {}", self.home.state.display()), e).hint("use --home DIR")
        })?;
        self.must_be_ours()
    }
}

/// Why a signed act has no answer.
#[derive(Debug)]
pub struct NotDone {
    failure: Failure,
    code: Option<Code>,
    again: bool,
}

impl NotDone {
    /// It was refused so after a host had gone away with the answer to the same act: that one had done it.
    pub fn was_done(&self, code: Code) -> bool {
        self.again && self.code == Some(code)
    }

    /// Nothing was run because the shell still reads its own files: it will be at its prompt in a while.
    pub fn is_starting(&self) -> bool {
        let starts = |details: &serde_json::Value| details["starting"] == true;
        self.code == Some(Code::ShellBusy) && self.failure.details().is_some_and(starts)
    }
}

impl From<NotDone> for Failure {
    fn from(not_done: NotDone) -> Failure {
        not_done.failure
    }
}

/// Calls that may be asked twice, so that a host's crash between question and answer is no failure.
#[derive(Debug)]
pub struct Link<'a> {
    here: &'a Here,
    connection: Connection,
    breaks: u32,
}

impl Link<'_> {
    /// Asks until there is an answer.
    pub fn call<O: Operation>(&mut self, params: &O::Params) -> Result<O::Answer, Failure> {
        Ok(self.call_with_bytes::<O>(params, &[])?.0)
    }

    /// Asks with bytes until there is an answer.
    pub fn call_with_bytes<O: Operation>(
        &mut self,
        params: &O::Params,
        bytes: &[u8],
    ) -> Result<(O::Answer, Vec<u8>), Failure> {
        loop {
            match self.once::<O>(params, bytes) {
                Err(CallError::Broken(error)) => self.mend(error)?,
                other => return Ok(other?),
            }
        }
    }

    /// Asks several things in a row, and all of them again where a host's crash came between.
    pub fn ask_all<T>(&mut self, ask: impl Fn(&mut Connection) -> Result<T, CallError>) -> Result<T, Failure> {
        loop {
            match ask(&mut self.connection) {
                Err(CallError::Broken(error)) => self.mend(error)?,
                other => return Ok(other?),
            }
        }
    }

    /// Asks once: for what must look at the world again before it asks again.
    pub fn once<O: Operation>(&mut self, params: &O::Params, bytes: &[u8]) -> Result<(O::Answer, Vec<u8>), CallError> {
        let answer = self.connection.call_with_bytes::<O>(params, bytes);
        if answer.is_ok() {
            self.breaks = 0;
        }
        answer
    }

    /// Asks for an act in a session, signed, until there is an answer.
    pub fn act<O: Operation>(
        &mut self,
        session: &SessionView,
        ask: &Ask,
        params: impl Fn(Option<Proof>) -> O::Params,
    ) -> Result<O::Answer, NotDone> {
        let mut again = false;
        let failed = |failure, again| NotDone { failure, code: None, again };
        loop {
            // Anew each time: a copied signature is found out.
            let proof = self.here.who().map_err(|failure| failed(failure, again))?.prove(session.id, ask);
            match self.once::<O>(&params(Some(proof)), &[]) {
                Ok((answer, _)) => return Ok(answer),
                Err(CallError::Broken(error)) => {
                    self.mend(error).map_err(|failure| failed(failure, again))?;
                    again = true;
                }
                Err(error) => {
                    let code = if let CallError::Fault(fault) = &error { Some(fault.code) } else { None };
                    let failure = Failure::from(error).of_session(&self.here.called(session.name.as_str()));
                    return Err(NotDone { failure, code, again });
                }
            }
        }
    }

    /// Finds or starts a host again after the connection broke.
    pub fn mend(&mut self, error: std::io::Error) -> Result<(), Failure> {
        self.breaks += 1;
        if self.breaks > BREAKS_MAX {
            return Err(CallError::Broken(error).into());
        }
        let pause_ms = (BREAK_PAUSE_MS * u64::from(self.breaks - 1)).min(BREAK_PAUSE_MS_MAX);
        std::thread::sleep(Duration::from_millis(pause_ms));
        self.connection = self.connect_again()?;
        Ok(())
    }

    /// The way to another machine may be away for a while: a relay is started again, a laptop changes its network.
    fn connect_again(&self) -> Result<Connection, Failure> {
        let until = Instant::now() + AWAY;
        let mut pause = AWAY_PAUSE;
        loop {
            match self.here.connect() {
                Err(failure) if self.here.is_elsewhere() && failure.is("unreachable") && Instant::now() < until => {
                    if pause == AWAY_PAUSE && !self.here.json {
                        say(&format!("{}; trying again", failure.message()));
                    }
                }
                other => return other,
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(AWAY_PAUSE_MAX);
        }
    }

    /// One session.
    pub fn get(&mut self, session: &str) -> Result<SessionView, Failure> {
        match self.call::<op::Get>(&SessionParams { session: session.to_owned() }) {
            Err(failure) if failure.is("not_found") => Err(self.nearest(failure, session)),
            other => other,
        }
    }

    /// Names the session that may have been meant.
    fn nearest(&mut self, failure: Failure, wanted: &str) -> Failure {
        let all = self.call::<op::List>(&ListParams { all: false }).unwrap_or_default();
        let distance = |name: &str| strsim::damerau_levenshtein(name, wanted);
        let near = all.iter().map(|session| (distance(session.name.as_str()), session.name.as_str())).min();
        match near {
            // Half of a word that is wrong is no slip of the finger.
            Some((distance, near)) if distance * 2 <= wanted.len() => {
                failure.hint(format!("did you mean {near}? all of them: holdfast ls"))
            }
            Some(_) | None => failure,
        }
    }

    /// Who asks.
    pub fn who(&self) -> Result<&Identity, Failure> {
        self.here.who()
    }

    /// For requests whose answers are taken in another order.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// For what takes the connection with it.
    pub fn into_connection(self) -> Connection {
        self.connection
    }
}

/// The file this program runs from; the new one where an upgrade has replaced it.
fn own_path() -> Result<PathBuf, Failure> {
    platform::program().map_err(|e| Failure::io("cannot find the holdfast program itself", e))
}

/// Sees to it that `HOLDFAST_HOME` is what was asked for, and absolute: the host is started from `/` and inherits it.
///
/// The program starts itself again where it is not; setting a variable of a running process is not safe.
fn settle_home(flag: Option<&Path>, program: &Path) -> Result<(), Failure> {
    let variable = std::env::var_os("HOLDFAST_HOME").filter(|v| !v.is_empty());
    let Some(wanted) = flag.map(|p| p.as_os_str().to_owned()).or_else(|| variable.clone()) else { return Ok(()) };
    let absolute = std::path::absolute(&wanted)
        .map_err(|e| Failure::io(format!("cannot make {} an absolute path", Path::new(&wanted).display()), e))?;
    if variable.is_some_and(|v| Path::new(&v) == absolute) {
        return Ok(());
    }
    Err(start_again(program, "HOLDFAST_HOME", &absolute))
}

/// Starts the program again with a variable set; returns only where that fails.
fn start_again(program: &Path, variable: &str, value: impl AsRef<OsStr>) -> Failure {
    let error = std::process::Command::new(program).args(std::env::args_os().skip(1)).env(variable, value).exec();
    Failure::io(format!("cannot start holdfast again with {variable} set"), error)
}
