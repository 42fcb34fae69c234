//! Real programs: whatever becomes of the client, the next terminal shows exactly what the last one showed.

use holdfast_harness::{Client, DETACH, Home, Look, Terminal, signal, until};
use rustix::process::Signal;
use std::path::Path;

const SIZE: &str = "90x28";

/// The ways to lose a client.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Detached,
    Killed,
    WindowClosed,
    HungUp,
}

/// A program in a session, seen through a terminal that is replaced again and again.
struct Play {
    home: Home,
    terminal: Terminal,
    client: Client,
}

impl Play {
    /// Starts the command, which must be installed, and attaches.
    #[track_caller]
    fn start(command: &[&str]) -> Play {
        let home = Home::new();
        std::fs::write(home.join("text"), sample()).unwrap();
        let found = ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(command[0]).exists());
        assert!(found, "{} is not installed; `cargo xtask test` installs what the tests need", command[0]);
        home.ok(&[&["new", "-d", "-n", "p", "--size", SIZE, "--"], command].concat());
        let (terminal, client) = Terminal::attached(&home, "p", SIZE);
        Play { home, terminal, client }
    }

    /// Loses the client and comes back with a fresh terminal, in each way; it must look the same each time.
    #[track_caller]
    fn survives_every_loss(&mut self) -> Look {
        let look = self.terminal.settle(&self.home, "p");
        for loss in [Loss::Detached, Loss::Killed, Loss::WindowClosed, Loss::HungUp] {
            println!("loss: {loss:?}");
            let (terminal, client) = self.lose(loss);
            (self.terminal, self.client) = (terminal, client);
            self.terminal.wait_look(&self.home, "p", &look);
        }
        assert_eq!(self.terminal.settle(&self.home, "p"), look);
        look
    }

    #[track_caller]
    fn lose(&mut self, loss: Loss) -> (Terminal, Client) {
        match loss {
            Loss::Detached => {
                self.terminal.types(DETACH);
                assert_eq!(self.client.wait(), 0);
            }
            Loss::Killed => self.client.kill(),
            Loss::HungUp => {
                signal(self.client.pid, Signal::HUP);
                assert_eq!(self.client.wait(), 0);
            }
            Loss::WindowClosed => {
                self.terminal = Terminal::new(SIZE);
                self.client.wait();
            }
        }
        until("nobody to be attached", || (self.home.clients("p") == 0).then_some(()));
        Terminal::attached(&self.home, "p", SIZE)
    }

    /// The keys end the program, and the client with it.
    #[track_caller]
    fn ends_by(mut self, keys: impl AsRef<[u8]>) {
        self.terminal.types(keys);
        assert_eq!(self.client.wait(), 0, "{:?}", self.terminal.look());
    }
}

fn sample() -> String {
    let line = |n: usize| format!("{n}: the quick brown fox números ünïcödé 漢字 {}\n", "jumps ".repeat(n % 7));
    (1..=200).map(line).collect()
}

#[test]
fn vim_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "text"]);
    play.terminal.wait_text("quick brown fox");
    play.terminal.types(":syntax on | set number cursorline hlsearch mouse=a title laststatus=2 background=dark\r");
    play.terminal.types("/fox\r");
    play.terminal.types("50Gzt:vsplit\r");
    play.terminal.types("ihello ");
    play.terminal.wait_text("INSERT");
    play.terminal.types("from vim");
    play.terminal.wait_text("hello from vim");
    let look = play.survives_every_loss();
    assert!(look.alternate);
    play.terminal.types(" and back");
    play.terminal.wait_text("hello from vim and back");
    play.ends_by("\x1b:qa!\r");
}

#[test]
fn less_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["less", "text"]);
    play.terminal.wait_text("1: the quick");
    play.terminal.types("50g/fox\r");
    play.terminal.wait_text("60: the quick");
    let look = play.survives_every_loss();
    assert!(look.alternate && look.rows.iter().any(|row| row.contains("\x1b[")), "a highlighted search: {look:?}");
    play.terminal.types("G");
    play.terminal.wait_text("200: the quick");
    play.ends_by("q");
}

#[test]
fn htop_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["htop", "-d", "100"]);
    play.terminal.wait_text("PID");
    // It redraws by itself; stopped it stands still.
    signal(play.home.number("p", "pid") as u32, Signal::STOP);
    let look = play.survives_every_loss();
    assert!(look.alternate);
    signal(play.home.number("p", "pid") as u32, Signal::CONT);
    play.ends_by("q");
}

#[test]
fn nano_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["nano", "--ignorercfiles", "text"]);
    play.terminal.wait_text("1: the quick");
    play.terminal.types("\x1f50\rnano was here ");
    play.terminal.wait_text("nano was here 50: the quick");
    let look = play.survives_every_loss();
    assert!(look.alternate);
    play.terminal.types("\x18");
    play.terminal.wait_text("Save modified buffer");
    play.ends_by("n");
}

#[test]
fn dialog_looks_the_same_after_every_loss() {
    let dialog = ["dialog", "--title", "a title", "--menu", "choose", "15", "50", "5", "one", "first", "two", "second"];
    let mut play = Play::start(&dialog);
    play.terminal.wait_text("a title");
    // It wants application cursor keys.
    play.terminal.types("\x1bOB");
    play.terminal
        .wait_for("the second choice", |seen| seen.look().rows.iter().any(|row| row.contains("\x1b[0;1;31;44mt")));
    play.survives_every_loss();
    play.ends_by("\r");
}

#[test]
fn the_python_prompt_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["python3", "-q"]);
    play.terminal.wait_text(">>>");
    play.terminal.types("for n in range(40): print(n, '\\033[3%dmcoloured\\033[0m' % (n % 8))\r\r");
    play.terminal.wait_text("39 coloured");
    play.terminal.types("half = 'a li");
    play.terminal.wait_text("half = 'a li");
    play.survives_every_loss();
    play.terminal.types("ne'; print(half.upper())\r");
    play.terminal.wait_text("A LINE");
    play.ends_by("\x04");
}

#[test]
fn tmux_inside_looks_the_same_after_every_loss() {
    let options = "set -g status-right '' ';' set -g mouse on ';' set -g set-titles on";
    let tmux = format!("tmux -L hfe{}", std::process::id());
    let panes = "new-session -s inner 'exec bash --norc' ';' split-window -h 'exec cat'";
    let mut play = Play::start(&["bash", "-c", &format!("{tmux} -f /dev/null {panes} ';' {options}")]);
    play.terminal.wait_text("[inner]");
    play.terminal.wait_text("│");
    play.terminal.wait_text("bash");
    play.terminal.wait_text("#");
    play.terminal.types("typed into cat\r");
    play.terminal.wait_for("the echo", |seen| {
        seen.screen.rows_text().iter().filter(|row| row.contains("typed into cat")).count() == 2
    });
    let look = play.survives_every_loss();
    assert!(look.alternate);
    play.terminal.types("\x03");
    play.terminal.wait_for("one pane", |seen| !seen.shows("typed into cat"));
    play.ends_by("exit\r");
}

#[test]
fn bash_looks_the_same_after_every_loss() {
    let mut play = Play::start(&["bash", "--norc", "-i"]);
    play.terminal.types("PS1='\\[\\e[1;32m\\]here\\[\\e[0m\\]> '; printf '\\e]2;a title\\a\\e[5 q'\r");
    play.terminal.wait_for("the prompt", |seen| seen.screen.title() == "a title");
    play.terminal
        .types("ls --color=always -l /usr/bin | head -40; printf '\\e]8;;http://x.y\\e\\\\link\\e]8;;\\e\\\\\\n'\r");
    play.terminal.wait_text("link");
    play.terminal.types("echo half a li");
    play.terminal.wait_text("here> echo half a li");
    let look = play.survives_every_loss();
    assert!(look.bracketed_paste && !look.alternate, "{look:?}");
    assert_eq!(look.title, "a title");
    play.terminal.types("ne\r");
    play.terminal.wait_text("half a line");
    play.ends_by("exit\r");
}

#[test]
fn a_screen_full_of_unusual_state_looks_the_same_after_every_loss() {
    // Region, origin, tabs, charsets, saved cursor, kitty keys, mouse, focus, cursor shape, palette, pending wrap.
    let state = concat!(
        "\\033[3g\\033[5G\\033H\\033[20G\\033H\\033[3;9r\\033[?6h\\033[2;4H\\0337\\033(0lqqk\\033(B",
        "\\033[>5u\\033[?1002h\\033[?1006h\\033[?1004h\\033[?2004h\\033[?1h\\033=\\033[3 q",
        "\\033]4;1;rgb:11/22/33\\033\\\\\\033]11;rgb:01/02/03\\033\\\\\\033[38;2;1;2;3;48;5;77;4:3;58:5:9m",
        "\\033[4;1Hstyled\\033[6;84Hlast col",
    );
    let script = format!("stty raw -echo; printf '{state}'; exec cat >/dev/null");
    let mut play = Play::start(&["sh", "-c", &script]);
    play.terminal.wait_text("styled");
    play.survives_every_loss();
}
