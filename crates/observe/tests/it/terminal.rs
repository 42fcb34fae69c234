//! A shell with a job at a terminal does not see that both were stopped.

use std::fs;
use std::io::Write;

use holdfast_observe::How;

use crate::harness::{Session, eventually, stands_still, with_both};

/// An interactive bash at a terminal that something holds as a keeper would. Not script(1): it stops itself when it
/// sees its child stop, and a keeper does not look.
struct Terminal(Session);

impl Terminal {
    fn new(how: How) -> Terminal {
        let python =
            "import os, pty\nos.environ['PS1'] = 'prompt> '\npty.spawn(['bash', '--norc', '--noprofile', '-i'])\n";
        let terminal = Terminal(Session::start(how, "python3", &["-c", python]));
        terminal.shows("prompt>", 1);
        terminal
    }

    fn types(&mut self, text: &str) {
        self.0.keeper.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.0.dir.join("output")).unwrap()).into_owned()
    }

    /// Waits until a text was printed this often.
    #[track_caller]
    fn shows(&self, text: &str, times: usize) {
        let what = format!("{times} times {text:?}");
        eventually(&what, || (self.text().matches(text).count() >= times).then_some(()));
    }

    /// The foreground process group, by the shell's `stat`.
    fn foreground(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.tree()[0].pid)).unwrap();
        stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(5).unwrap().to_owned()
    }
}

#[test]
fn bash_keeps_its_job_in_the_foreground() {
    with_both(|how| {
        let mut terminal = Terminal::new(how);
        terminal.types("sh -c 'while :; do echo ti\"\"ck; sleep 0.02; done'\n");
        let mut ticks = 3;
        terminal.shows("tick", ticks);
        let foreground = terminal.foreground();
        for _ in 0..5 {
            terminal.0.freeze();
            terminal.0.thaw();
            ticks = terminal.text().matches("tick").count() + 3;
            terminal.shows("tick", ticks);
            assert_eq!(terminal.foreground(), foreground, "the shell took the terminal back");
        }
        terminal.types("\x03");
        terminal.shows("prompt>", 2);
        terminal.types("echo ali''ve\n");
        terminal.shows("alive", 1);
        assert!(!terminal.text().contains("Stopped"), "{}", terminal.text());
    });
}

#[test]
fn a_job_the_person_suspended_stays_suspended() {
    with_both(|how| {
        let mut terminal = Terminal::new(how);
        // It forks nothing: a ^Z that meets the child in a vfork leaves the parent waiting for it, unstopped.
        terminal.types("sh -c 'while :; do echo x >> job; done'\n");
        terminal.0.grows("job");
        terminal.types("\x1a");
        terminal.shows("Stopped", 1);
        terminal.types("sh -c 'while :; do echo x >> other; sleep 0.02; done'\n");
        terminal.0.grows("other");
        for _ in 0..3 {
            terminal.0.freeze();
            terminal.0.thaw();
            terminal.0.grows("other");
        }
        stands_still("a suspended job runs", || terminal.0.size("job"));
        assert_eq!(terminal.text().matches("Stopped").count(), 1, "{}", terminal.text());
    });
}
