//! What a new session needs, made before anybody asks for one: its directory with its files, and its keeper.
//!
//! To make a file takes the file system up to a third of a millisecond, where many were removed lately; to start a process takes as long.
//! A session has six files and a keeper. So when one was started, the next ones' directories are made on another thread, each file there
//! and empty, and a keeper is started that waits for its orders. Whoever starts a session next renames a directory, fills its files and gives
//! the keeper its orders.
//!
//! Nothing depends on it: where there is nothing prepared, it is made then. A keeper that waits has been told nothing and holds nothing; it
//! ends with its host, whose socket it reads. Directories that a host leaves are removed by the next.

use crate::own::Own;
use crate::spawn::{self, Waiting};
use holdfast_store::{make_dir, make_empty};
use holdfast_types::Home;
use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Directories: as many as a person or a script starts in the time in which others are made.
const DIRECTORIES: usize = 4;
/// Files of a session that starts. Each is written whole once, or is added to.
pub(crate) const FILES: [&str; 5] = ["spec", "birth", "life.json", "journal.1", "journal-last"];
/// Whoever has just started a session has an answer to read first.
const AFTER: Duration = Duration::from_micros(500);

/// What was prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    place: PathBuf,
    state: PathBuf,
    own: Arc<Own>,
    directories: RefCell<Vec<PathBuf>>,
    keeper: RefCell<Option<Waiting>>,
    is_making: Cell<bool>,
    made: Cell<u64>,
}

impl Prepared {
    /// Nothing yet; what an earlier host left is removed.
    pub fn new(home: &Home, own: &Arc<Own>) -> Prepared {
        let place = home.prepared();
        if place.exists() {
            let _ = std::fs::remove_dir_all(&place);
        }
        Prepared {
            place,
            state: home.state.clone(),
            own: Arc::clone(own),
            directories: RefCell::default(),
            keeper: RefCell::default(),
            is_making: Cell::default(),
            made: Cell::default(),
        }
    }

    /// Makes a session's directory.
    pub fn directory(&self, dir: &Path) -> io::Result<()> {
        let ahead = self.directories.borrow_mut().pop();
        // A tidy person may have emptied the place.
        match ahead.map(|ahead| std::fs::rename(ahead, dir)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => make_dir(dir),
        }
    }

    /// A keeper that runs this program and waits, if there is one.
    pub fn keeper(&self, program: &Path) -> Option<Waiting> {
        let mut waiting = self.keeper.borrow_mut().take()?;
        if waiting.program == program && waiting.is_there() {
            return Some(waiting);
        }
        self.own.spares(None);
        spawn::reap(waiting.child);
        None
    }

    /// Makes what is missing, on another thread.
    pub fn again(self: &Rc<Self>) {
        if self.is_making.replace(true) {
            return;
        }
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(AFTER).await;
            while this.make().await {}
            this.is_making.set(false);
        });
    }

    /// Makes one of each that is missing. True where there is more to do.
    async fn make(&self) -> bool {
        let wants_keeper = self.keeper.borrow().is_none();
        let wants_directory = self.directories.borrow().len() < DIRECTORIES;
        if !wants_keeper && !wants_directory {
            return false;
        }
        let number = self.made.get();
        self.made.set(number + 1);
        let (dir, state) = (self.place.join(number.to_string()), self.state.clone());
        let made = crate::off_thread(move || {
            let keeper = wants_keeper.then(|| spawn::ahead(&spawn::install(&state, spawn::KEEPER)?)).transpose();
            let made = wants_directory
                .then(|| make_dir(&dir).and_then(|()| make_empty(&dir, &FILES)).map(|()| dir))
                .transpose();
            Ok((keeper, made))
        });
        // Where it cannot be done now, whoever starts a session is told why.
        let Ok((Ok(keeper), Ok(directory))) = made.await else { return false };
        self.directories.borrow_mut().extend(directory);
        if let Some(keeper) = keeper {
            self.own.spares(Some(keeper.child.id()));
            *self.keeper.borrow_mut() = Some(keeper);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Spec;

    fn run<T>(what: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, what)
    }

    #[test]
    fn a_directory_that_was_prepared_is_a_sessions_as_one_that_was_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        make_dir(&home.sessions()).unwrap();
        run(async {
            let prepared = Prepared::new(&home, &Arc::default());
            let (cold, warm) = (home.sessions().join("cold"), home.sessions().join("warm"));
            prepared.directory(&cold).unwrap();
            assert_eq!(std::fs::read_dir(&cold).unwrap().count(), 0);
            assert!(prepared.make().await);
            prepared.directory(&warm).unwrap();
            assert_eq!(std::fs::read_dir(&warm).unwrap().count(), FILES.len());
            assert!(Spec::load(&warm).is_err() && Spec::load(&cold).is_err(), "nothing is there");
            std::fs::remove_dir_all(home.prepared()).unwrap();
            assert!(prepared.make().await, "the place is made again");
            let left = Prepared::new(&home, &Arc::default());
            assert!(!home.prepared().exists() && left.directories.borrow().is_empty());
        });
    }

    #[test]
    fn a_keeper_waits_for_one_session_and_ends_with_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        make_dir(&home.state).unwrap();
        run(async {
            let own = Arc::<Own>::default();
            let prepared = Prepared::new(&home, &own);
            prepared.make().await;
            let program = spawn::install(&home.state, spawn::KEEPER).unwrap();
            assert!(prepared.keeper(Path::new("/another/build")).is_none(), "it runs another program");
            prepared.make().await;
            let Waiting { mut child, stream, .. } = prepared.keeper(&program).unwrap();
            assert!(prepared.keeper(&program).is_none(), "it is given away once");
            drop(stream);
            child.wait().unwrap();
        });
    }
}
