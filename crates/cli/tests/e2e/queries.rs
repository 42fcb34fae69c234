//! Terminal queries: each is answered exactly once, whoever is attached or just died.

use holdfast_harness::{Home, Terminal, poll, until};
use std::path::PathBuf;

/// Asks a round of queries whenever a file says so, and records every byte it is answered.
const ASKER: &str = r"
import os, select, sys, tty
tty.setraw(0)
log, go, n = open(sys.argv[1], 'ab', 0), sys.argv[2], 0
os.write(1, b'ready\r\n')
while True:
    if select.select([0], [], [], 0.003)[0]:
        log.write(os.read(0, 65536))
    if os.path.exists('%s.%d' % (go, n + 1)):
        n += 1
        os.write(1, b'\x1b[c\x1b[5n\x1b[>0q\x1b]11;?\x1b\\\x1b[?%d$p' % (5000 + n))
";

const HOST_COLOR: &str = "\x1b]11;rgb:1818/1818/1818\x1b\\";
const TERMINAL_COLOR: &str = "\x1b]11;rgb:1212/3434/5656\x1b\\";

struct Asker {
    home: Home,
    log: PathBuf,
    rounds: usize,
    /// Who answered each round, as the colour tells.
    by: Vec<&'static str>,
}

impl Asker {
    fn new() -> Asker {
        let home = Home::new();
        let (log, go) = (home.join("log"), home.join("go"));
        let (log_path, go_path) = (log.to_str().unwrap().to_owned(), go.to_str().unwrap().to_owned());
        home.ok(&["new", "-d", "-n", "q", "--size", "80x24", "--", "python3", "-c", ASKER, &log_path, &go_path]);
        home.until_screen_shows("q", "ready");
        Asker { home, log, rounds: 0, by: Vec::new() }
    }

    fn answers(&self) -> String {
        String::from_utf8(std::fs::read(&self.log).unwrap()).unwrap()
    }

    /// Has one round asked, without waiting for its answers.
    fn ask(&mut self) {
        self.rounds += 1;
        std::fs::write(self.home.join(&format!("go.{}", self.rounds)), "").unwrap();
    }

    /// Waits until the last query of the last round is answered, then looks at every byte that ever came.
    #[track_caller]
    fn check(&mut self) {
        let last = format!("\x1b[?{};0$y", 5000 + self.rounds);
        poll(|| self.answers().contains(&last).then_some(()))
            .unwrap_or_else(|| panic!("no answer: {:?}", self.answers()));
        let all = self.answers();
        let mut rest = all.as_str();
        self.by.clear();
        for round in 1..=self.rounds {
            let before = format!("\x1b[?62;22c\x1b[0n\x1bP>|holdfast {}\x1b\\", env!("CARGO_PKG_VERSION"));
            let after = format!("\x1b[?{};0$y", 5000 + round);
            let told = || panic!("round {round} of {} was not answered exactly once, in order: {all:?}", self.rounds);
            rest = rest.strip_prefix(before.as_str()).unwrap_or_else(told);
            let color = [HOST_COLOR, TERMINAL_COLOR].into_iter().find(|color| rest.starts_with(color));
            let color = color.unwrap_or_else(|| panic!("no colour in round {round}: {all:?}"));
            self.by.push(if color == HOST_COLOR { "host" } else { "terminal" });
            rest = rest[color.len()..].strip_prefix(after.as_str()).unwrap_or_else(told);
        }
        assert_eq!(rest, "", "bytes nobody asked for");
    }

    /// A round and its answers.
    #[track_caller]
    fn round(&mut self) -> &'static str {
        self.ask();
        self.check();
        self.by[self.rounds - 1]
    }

    fn attach(&self, size: &str) -> (Terminal, holdfast_harness::Client) {
        Terminal::attached(&self.home, "q", size)
    }

    /// Has a terminal take the turn, and asks until it answers: only a writer can.
    #[track_caller]
    fn until_answered_by(&mut self, terminal: &Terminal) {
        terminal.types(holdfast_harness::TAKE);
        let rounds = self.rounds;
        while self.round() != "terminal" {
            assert!(self.rounds < rounds + 1000, "the terminal with the turn never answered");
        }
    }
}

#[test]
fn with_nobody_attached_the_host_answers_each_query_once() {
    let mut asker = Asker::new();
    for _ in 0..5 {
        assert_eq!(asker.round(), "host");
    }
}

#[test]
fn an_attached_terminal_answers_each_query_once_and_the_host_after_it_left() {
    let mut asker = Asker::new();
    asker.round();
    let (terminal, mut client) = asker.attach("80x24");
    assert_eq!(asker.round(), "host", "it has not the turn");
    // Now and then the host answers what a repaint skipped.
    for _ in 0..3 {
        asker.until_answered_by(&terminal);
    }
    terminal.types(holdfast_harness::DETACH);
    assert_eq!(client.wait(), 0);
    until("nobody to be attached", || (asker.home.clients("q") == 0).then_some(()));
    assert_eq!(asker.round(), "host");
    asker.round();
}

#[test]
fn of_three_terminals_exactly_one_answers_also_after_that_one_was_killed() {
    let mut asker = Asker::new();
    let mut all: Vec<_> = (0..3).map(|_| asker.attach("80x24")).collect();
    while let Some((terminal, client)) = all.first_mut() {
        asker.until_answered_by(terminal);
        for _ in 0..3 {
            asker.round();
        }
        // It answers; a question it never saw is the host's.
        client.kill();
        asker.round();
        all.remove(0);
        asker.round();
    }
    until("nobody to be attached", || (asker.home.clients("q") == 0).then_some(()));
    assert_eq!(asker.round(), "host");
    asker.round();
}

#[test]
fn terminals_of_another_size_and_those_that_only_watch_leave_the_answers_to_the_host() {
    let mut asker = Asker::new();
    let (one, _client) = asker.attach("80x24");
    let (_two, _other) = asker.attach("40x12");
    let watcher = Terminal::new("80x24");
    let _watching = watcher.run(&asker.home, &["attach", "-r", "q"]);
    until("three clients", || (asker.home.clients("q") == 3).then_some(()));
    asker.until_answered_by(&one);
    drop(_client);
    asker.round();
    // The small one is the only writer now, and has not typed.
    asker.round();
    asker.round();
}

#[test]
fn after_the_host_was_killed_each_query_is_still_answered_once() {
    let mut asker = Asker::new();
    let (one, _client) = asker.attach("80x24");
    asker.until_answered_by(&one);
    for _ in 0..3 {
        asker.home.kill_host();
        asker.ask();
        asker.home.host_pid();
        asker.check();
        asker.round();
    }
    drop(_client);
    asker.home.kill_host();
    asker.ask();
    // Nobody is there to answer until somebody starts a host again.
    asker.home.ok(&["ls"]);
    asker.check();
    assert_eq!(asker.round(), "host");
}

#[test]
fn a_query_asked_while_the_host_was_away_is_answered_although_a_cropped_terminal_is_attached() {
    let mut asker = Asker::new();
    let (terminal, wide) = asker.attach("80x24");
    let (_narrow, _client) = asker.attach("40x12");
    asker.until_answered_by(&terminal);
    drop(wide);
    until("one client", || (asker.home.clients("q") == 1).then_some(()));
    asker.round();
    asker.home.kill_host();
    asker.ask();
    asker.home.host_pid();
    asker.check();
    assert_eq!(asker.round(), "host");
}

#[test]
fn a_program_that_asks_and_does_not_read_is_answered_again_once_it_does() {
    let home = Home::new();
    let asker = r"
import os, select, sys, tty
tty.setraw(0)
for n in range(2000):
    os.write(1, b'\x1b[c' * 100)
os.write(1, b'asked\r\n')
while not os.path.exists(sys.argv[1]):
    select.select([], [], [], 0.005)
while select.select([0], [], [], 0.5)[0]:
    os.read(0, 65536)
answer = b''
while b'\x1b[0n' not in answer:
    os.write(1, b'\x1b[5n')
    while select.select([0], [], [], 0.5)[0] and b'\x1b[0n' not in answer:
        answer += os.read(0, 65536)
os.write(1, b'answered\r\n')
os.read(0, 1)
";
    let go = home.join("go");
    home.ok(&["new", "-d", "-n", "q", "--", "python3", "-c", asker, go.to_str().unwrap()]);
    home.until_screen_shows("q", "asked");
    std::fs::write(go, "").unwrap();
    home.until_screen_shows("q", "answered");
}

#[test]
fn a_program_sets_the_clipboard_of_the_terminal_that_writes_and_of_no_other() {
    let home = Home::new();
    let script =
        r"stty -echo; while read word; do printf '\033]52;c;aGVsbG8=\007\033]0;%s\007said %s\n' $word $word; done";
    home.session("q", script);
    let (writer, _client) = Terminal::attached(&home, "q", "80x24");
    let (other, _other) = Terminal::attached(&home, "q", "80x24");
    let watcher = Terminal::new("80x24");
    let _watching = watcher.run(&home, &["attach", "-r", "q"]);
    until("three clients", || (home.clients("q") == 3).then_some(()));
    let has = |terminal: &Terminal| terminal.peek(|seen| seen.raw.windows(5).any(|part| part == b"\x1b]52;"));
    writer.types("one\r");
    // It answers, and so is passed everything, from some moment on.
    until("the writer's clipboard", || {
        writer.types("two\r");
        has(&writer).then_some(())
    });
    writer.types("last\r");
    for terminal in [&other, &watcher] {
        terminal.wait_text("said last");
        assert!(!has(terminal));
        assert_eq!(terminal.look().title, "last", "what is no question passes");
    }
}
