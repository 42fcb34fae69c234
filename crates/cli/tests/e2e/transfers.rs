//! Files to and from a session on another machine, whichever way leads there: whole, and from where they were cut off.

use holdfast_harness::{Home, Ran, Terminal, kill, until};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PIECE: usize = 4 * 1024 * 1024;
const BYTES: usize = 4 * PIECE + 77;
/// Put over the beginning of what has arrived: it is in the end only if nothing was sent twice.
const MARK: &[u8] = b"arrived before";

/// Two machines, and how the near one speaks to the far one, `gpu`.
pub struct Way<'a> {
    pub near: &'a Home,
    pub far: &'a Home,
    pub command: &'a dyn Fn(&[&str]) -> Command,
    /// What may break on the way.
    pub breaks: &'a dyn Fn(),
}

/// Where the far session is. To be made before anything else asks for the far host, so that the host can be held there.
pub fn tree(far: &Home) -> PathBuf {
    let tree = far.join("tree");
    std::fs::create_dir(&tree).unwrap();
    far.ok(&["new", "-d", "-n", "work", "--cwd", tree.to_str().unwrap(), "--", "bash", "--norc"]);
    tree
}

fn noise() -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

fn part(dir: &Path) -> Option<PathBuf> {
    let hidden = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("part");
    std::fs::read_dir(dir).unwrap().flatten().find(hidden).map(|entry| entry.path())
}

impl Way<'_> {
    fn begin(&self, args: &[&str]) -> Child {
        (self.command)(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    #[track_caller]
    fn ends_well(&self, client: Child) {
        let ran = Ran::from(client.wait_with_output().unwrap());
        assert_eq!(ran.status, 0, "{ran}");
    }

    /// Goes well; and where the client is killed behind the second piece, where the host is, and where the way breaks, goes on.
    fn moved(&self, args: &[&str], point: &str, from: &Path, to: &Path, content: &[u8]) {
        self.ends_well(self.begin(args));
        assert!(std::fs::read(to).unwrap() == content);
        let dir = to.parent().unwrap();
        assert!(part(dir).is_none());
        let held = |after: &dyn Fn(&mut Child)| {
            std::fs::remove_file(to).unwrap();
            let pause = self.near.pause(point);
            let mut client = self.begin(args);
            drop(pause.reached());
            let paused = pause.reached();
            let part = part(dir).expect("what has arrived");
            assert_eq!(part.metadata().unwrap().len(), 2 * PIECE as u64, "{}", from.display());
            after(&mut client);
            drop((paused, pause));
            (client, part)
        };
        let (_, part) = held(&|client| {
            kill(client.id());
            client.wait().unwrap();
        });
        std::fs::OpenOptions::new().write(true).open(&part).unwrap().write_all_at(MARK, 0).unwrap();
        self.ends_well(self.begin(args));
        let found = std::fs::read(to).unwrap();
        assert!(found.starts_with(MARK) && found[MARK.len()..] == content[MARK.len()..], "{args:?}");
        let kill_host = || {
            self.far.kill_host();
        };
        for broken in [&kill_host as &dyn Fn(), self.breaks] {
            let (client, _) = held(&|_| broken());
            self.ends_well(client);
            assert!(std::fs::read(to).unwrap() == content, "{args:?}");
        }
    }

    /// All of it.
    pub fn carries_files(&self, tree: &Path) {
        let (content, local) = (noise(), tempfile::tempdir().unwrap());
        let (near, far, back) = (local.path().join("up.bin"), tree.join("up.bin"), local.path().join("down.bin"));
        std::fs::write(&near, &content).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        self.moved(&["files", "put", &text(&near), "gpu/work:up.bin"], "files.sent", &near, &far, &content);
        self.moved(&["files", "get", "gpu/work:up.bin", &text(&back)], "files.got", &far, &back, &content);
        let journal = self.far.ok(&["journal", "work"]);
        assert!(journal.contains("human:tester.") && journal.contains("up.bin"), "{journal}");
        // What else there is to do with files.
        let run = |args: &[&str]| Ran::from((self.command)(args).output().unwrap());
        std::fs::write(tree.join("a.txt"), "one\n").unwrap();
        let edited = run(&["files", "edit", "gpu/work:a.txt", "--replace", "one", "--with", "two"]);
        assert!(edited.out.contains("+two"), "{edited}");
        assert_eq!(run(&["files", "undo", "gpu/work"]).status, 0);
        assert_eq!(std::fs::read_to_string(tree.join("a.txt")).unwrap(), "one\n");
        assert!(run(&["files", "ls", "gpu/work"]).out.contains("a.txt"));
        assert_ne!(run(&["files", "get", "gpu/work:../config.toml", "-"]).status, 0);
        self.shows_progress(&near);
    }

    /// A person sees how far it is.
    fn shows_progress(&self, near: &Path) {
        let terminal = Terminal::new("80x24");
        let pause = self.near.pause("files.sent");
        let mut client = terminal.start((self.command)(&["files", "put", near.to_str().unwrap(), "gpu/work:again"]));
        let paused = pause.reached();
        let began = Instant::now();
        until("what is long enough for a line", || began.elapsed() > Duration::from_secs(1));
        drop(paused);
        let paused = pause.reached();
        terminal.wait_text("% [");
        terminal.wait_text("up.bin");
        drop((paused, pause));
        assert_eq!(client.wait(), 0);
        terminal.wait_text("wrote ");
        terminal.wait_for("the line to be gone", |seen| !seen.screen.rows_text().iter().any(|row| row.contains("% [")));
    }
}
