//! What a session is doing now: at its prompt, running, or waiting for somebody to type.
//!
//! Decided by evidence from the kernel about the processes that have the terminal, never by names of programs or by
//! what is on the screen:
//!
//! | the foreground group | the terminal | state |
//! |---|---|---|
//! | the shell waits for input | not canonical, main screen, or the shell marks a prompt | [`Doing::IdlePrompt`] |
//! | a process waits for input | canonical, no echo | waiting: [`Kind::Password`] |
//! | a process waits for input | canonical, echo | waiting: [`Kind::Line`] |
//! | a process waits for input | not canonical, main screen | waiting: [`Kind::Repl`] |
//! | a process waits for input | not canonical, alternate screen | [`Doing::FullScreen`] |
//! | a process waits for input | has some unread | [`Doing::Running`]: it is about to take it |
//! | no process waits for input, one runs | | [`Doing::Running`] |
//! | no process waits for input, one cannot be seen | | [`Doing::Unknown`] |
//! | all are stopped | | [`Doing::Stopped`] |
//! | all wait for something else | | [`Doing::BlockedElsewhere`] |
//!
//! "Waits for input" is a read, poll, select or epoll on the session's terminal, by any thread.
//!
//! What it does not know. A program that selects on the terminal and on a socket reads as one that waits for input; so
//! does a relay such as ssh while the far side works. `read -e` and `read -n1` of a shell without prompt marks look
//! like its idle prompt, and the prompt of a shell that does not edit lines (dash) looks like a line that is read. A
//! password that is asked for without canonical mode is [`Kind::Repl`], and so is a program that draws on the main
//! screen (Debian's top). An epoll set inside another is not looked into. Dialogs such as whiptail are
//! [`Doing::FullScreen`]: nothing in the kernel tells a menu from an editor, so [`Kind::Choice`] takes what the caller
//! sees on the screen ([`Doing::with_screen`]). Devices of two mounts of devpts may have the same number; a foreground
//! process that waits for a terminal of a container with the number of its own reads as one that waits for its own.

mod group;
mod syscall;

use std::cell::Cell;
use std::os::fd::AsFd;

pub use holdfast_types::doing::{Blind, Doing, Kind, TerminalFacts};

use crate::proc::Proc;
use group::Member;
use syscall::{Look, Wait};

/// `ICANON` and `ECHO` of termios(3)'s `c_lflag`, the same on all machines that we run on.
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;

/// Threads looked at in one process. A browser has more; whether one of those waits for the terminal is not worth a
/// millisecond.
const THREADS_MAX: usize = 64;

/// Threads and descriptors looked at in all processes of the group: ten milliseconds at most, since the host waits for it. One
/// process that polls a thousand descriptors fits.
const LOOKS_MAX: u64 = 2048;

/// What a session is doing now. Looks at the foreground group only; some 50 µs for a job of one process.
///
/// One look is one moment: ask after the output has been quiet for a while.
pub fn state(keeper: u32, shell_pid: u32, facts: &TerminalFacts) -> Doing {
    let Ok(mut proc) = Proc::open() else { return Doing::Unknown { pid: None, why: Blind::Unreadable } };
    let group = group::find(&mut proc, keeper, facts.foreground);
    let mut evidence = Vec::new();
    let left = Cell::new(LOOKS_MAX);
    for member in &group.members {
        if let Some(sign) = sign(&mut proc, member, facts, &left) {
            evidence.push((member.pid, sign));
        }
    }
    decide(shell_pid, facts, &evidence, group.is_whole)
}

/// The controlling terminal of a process: major and minor. None where it has none, or is gone.
pub fn terminal_of(pid: u32) -> Option<(u32, u32)> {
    let mut proc = Proc::open().ok()?;
    group::terminal(&mut proc, pid).filter(|tty| *tty != 0).map(unpacked)
}

/// When a terminal was last used, in milliseconds since 1970. The kernel tells it to 8 seconds, never too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalTimes {
    /// A program read from it.
    pub read_ms: u64,
    /// A program wrote to it.
    pub written_ms: u64,
}

/// When this pseudoterminal was last used; none where it is not found.
pub fn terminal_times((major, minor): (u32, u32)) -> Option<TerminalTimes> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(format!("/dev/pts/{minor}")).ok()?;
    let is_it = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev())) == (major, minor);
    let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0) * 1000;
    is_it.then(|| TerminalTimes { read_ms: ms(found.atime()), written_ms: ms(found.mtime()) })
}

/// What one process shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Waits(Wait),
    Stopped,
    /// It has more threads than were looked at, and none of those says anything.
    TooMany,
}

fn sign(proc: &mut Proc, member: &Member, facts: &TerminalFacts, left: &Cell<u64>) -> Option<Sign> {
    let runs = match member.state {
        'Z' | 'X' if member.threads < 2 => return None,
        'T' | 't' => return Some(Sign::Stopped),
        'R' | 'D' => true,
        _ => false,
    };
    if runs && member.threads == 1 {
        return Some(Sign::Waits(Wait::Runs));
    }
    let is_own = member.tty == packed(facts.device);
    if member.threads == 1 {
        let mut look = Look { proc, dir: member.dir.as_fd(), device: facts.device, is_own, left };
        return Some(Sign::Waits(look.thread("syscall")));
    }
    let mut tids = Vec::new();
    if proc.numbers(&member.dir, "task", &mut tids).is_err() {
        return None;
    }
    let mut look = Look { proc, dir: member.dir.as_fd(), device: facts.device, is_own, left };
    let waits: Vec<Wait> =
        tids.iter().take(THREADS_MAX).map(|tid| look.thread(&format!("task/{tid}/syscall"))).collect();
    let by_weight = [Wait::Tty, Wait::Runs, Wait::Unreadable, Wait::Opaque];
    let strongest = by_weight.into_iter().find(|wait| waits.contains(wait) || (runs && *wait == Wait::Runs));
    Some(match strongest {
        Some(wait) => Sign::Waits(wait),
        None if tids.len() > THREADS_MAX => Sign::TooMany,
        None => Sign::Waits(Wait::Elsewhere),
    })
}

/// A device as the kernel packs it into `stat`.
fn packed((major, minor): (u32, u32)) -> i32 {
    ((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)) as i32
}

fn unpacked(device: i32) -> (u32, u32) {
    let device = device as u32;
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00))
}

fn decide(shell_pid: u32, facts: &TerminalFacts, evidence: &[(u32, Sign)], is_whole: bool) -> Doing {
    let first = |wanted: Sign| evidence.iter().find(|(_, sign)| *sign == wanted).map(|(pid, _)| *pid);
    let at_tty = || evidence.iter().filter(|(_, sign)| *sign == Sign::Waits(Wait::Tty)).map(|(pid, _)| *pid);
    // A program that the shell runs without a group of its own waits for itself.
    if let Some(pid) = at_tty().find(|pid| *pid != shell_pid).or_else(|| at_tty().next()) {
        return at_terminal(pid, shell_pid, facts);
    }
    if let Some(pid) = first(Sign::Waits(Wait::Runs)) {
        return Doing::Running { pid };
    }
    for (sign, why) in [
        (Sign::Waits(Wait::Unreadable), Blind::Unreadable),
        (Sign::Waits(Wait::Opaque), Blind::Opaque),
        (Sign::TooMany, Blind::TooMany),
    ] {
        if let Some(pid) = first(sign) {
            return Doing::Unknown { pid: Some(pid), why };
        }
    }
    match evidence {
        _ if !is_whole => Doing::Unknown { pid: None, why: Blind::TooMany },
        [] => Doing::Unknown { pid: None, why: Blind::Nobody },
        [(pid, _), ..] if evidence.iter().all(|(_, sign)| *sign == Sign::Stopped) => Doing::Stopped { pid: *pid },
        [(pid, _), ..] => Doing::BlockedElsewhere { pid: *pid },
    }
}

/// Somebody waits for the terminal's input.
fn at_terminal(pid: u32, shell_pid: u32, facts: &TerminalFacts) -> Doing {
    let is_canonical = facts.lflag & ICANON != 0;
    let has_echo = facts.lflag & ECHO != 0;
    if facts.unread > 0 {
        return Doing::Running { pid };
    }
    match (pid == shell_pid, facts.shell_prompt, is_canonical) {
        (true, Some(true), _) => return Doing::IdlePrompt { pid },
        // Without marks, and on the alternate screen, it is no shell: the session is an editor's.
        (true, None, false) if !facts.alternate_screen => return Doing::IdlePrompt { pid },
        // By its marks it runs a command, and reads with its line editor: `read -e`, `vared`.
        (true, Some(false), false) => return Doing::Waiting { pid, kind: Kind::Line },
        (true, Some(false) | None, true) | (true, None, false) | (false, _, _) => {}
    }
    match (is_canonical, has_echo) {
        (true, false) => Doing::Waiting { pid, kind: Kind::Password },
        (true, true) => Doing::Waiting { pid, kind: Kind::Line },
        (false, _) if facts.alternate_screen => Doing::FullScreen { pid },
        (false, _) => Doing::Waiting { pid, kind: Kind::Repl },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKED: u32 = ICANON | ECHO;
    const SHELL: u32 = 10;

    fn facts(lflag: u32) -> TerminalFacts {
        TerminalFacts {
            foreground: 10,
            iflag: 0,
            oflag: 0,
            lflag,
            unread: 0,
            device: (136, 3),
            alternate_screen: false,
            shell_prompt: None,
        }
    }

    const TTY: Sign = Sign::Waits(Wait::Tty);
    const RUNS: Sign = Sign::Waits(Wait::Runs);
    const ELSEWHERE: Sign = Sign::Waits(Wait::Elsewhere);

    fn doing(facts: &TerminalFacts, evidence: &[(u32, Sign)]) -> Doing {
        decide(SHELL, facts, evidence, true)
    }

    #[test]
    fn the_table_is_followed() {
        let waiting = |kind| Doing::Waiting { pid: 20, kind };
        assert_eq!(doing(&facts(0), &[(SHELL, TTY)]), Doing::IdlePrompt { pid: SHELL });
        assert_eq!(doing(&facts(ICANON), &[(20, TTY)]), waiting(Kind::Password));
        assert_eq!(doing(&facts(COOKED), &[(20, TTY)]), waiting(Kind::Line));
        assert_eq!(doing(&facts(0), &[(20, TTY)]), waiting(Kind::Repl));
        let alternate = TerminalFacts { alternate_screen: true, ..facts(0) };
        assert_eq!(doing(&alternate, &[(20, TTY)]), Doing::FullScreen { pid: 20 });
        assert_eq!(doing(&alternate, &[(SHELL, TTY)]), Doing::FullScreen { pid: SHELL });
        let marked = TerminalFacts { shell_prompt: Some(true), ..alternate };
        assert_eq!(doing(&marked, &[(SHELL, TTY)]), Doing::IdlePrompt { pid: SHELL });
        assert_eq!(doing(&facts(COOKED), &[(20, ELSEWHERE), (21, RUNS)]), Doing::Running { pid: 21 });
        assert_eq!(doing(&facts(COOKED), &[(20, ELSEWHERE)]), Doing::BlockedElsewhere { pid: 20 });
        assert_eq!(doing(&facts(COOKED), &[(20, Sign::Stopped)]), Doing::Stopped { pid: 20 });
    }

    #[test]
    fn who_waits_for_the_terminal_outweighs_who_runs() {
        assert_eq!(doing(&facts(0), &[(20, RUNS), (21, TTY)]), Doing::Waiting { pid: 21, kind: Kind::Repl });
        assert_eq!(doing(&facts(COOKED), &[(SHELL, TTY), (21, TTY)]), Doing::Waiting { pid: 21, kind: Kind::Line });
    }

    #[test]
    fn input_that_is_there_is_about_to_be_taken() {
        let unread = TerminalFacts { unread: 1, ..facts(0) };
        assert_eq!(doing(&unread, &[(SHELL, TTY)]), Doing::Running { pid: SHELL });
    }

    #[test]
    fn a_shell_that_marks_its_prompts_is_believed() {
        let marked = |at_prompt, lflag| TerminalFacts { shell_prompt: Some(at_prompt), ..facts(lflag) };
        let line = Doing::Waiting { pid: SHELL, kind: Kind::Line };
        assert_eq!(doing(&marked(true, COOKED), &[(SHELL, TTY)]), Doing::IdlePrompt { pid: SHELL });
        assert_eq!(doing(&marked(false, 0), &[(SHELL, TTY)]), line);
        assert_eq!(doing(&marked(false, COOKED), &[(SHELL, TTY)]), line);
        assert_eq!(doing(&facts(COOKED), &[(SHELL, TTY)]), line);
    }

    #[test]
    fn nothing_is_guessed() {
        let unknown = |pid, why| Doing::Unknown { pid, why };
        for (wait, why) in [(Wait::Unreadable, Blind::Unreadable), (Wait::Opaque, Blind::Opaque)] {
            assert_eq!(doing(&facts(ICANON), &[(19, ELSEWHERE), (20, Sign::Waits(wait))]), unknown(Some(20), why));
        }
        assert_eq!(doing(&facts(0), &[]), unknown(None, Blind::Nobody));
        assert_eq!(doing(&facts(0), &[(20, Sign::TooMany)]), unknown(Some(20), Blind::TooMany));
        assert_eq!(decide(SHELL, &facts(0), &[(20, ELSEWHERE)], false), unknown(None, Blind::TooMany));
    }

    #[test]
    fn devices_are_packed_as_the_kernel_does() {
        assert_eq!(packed((136, 3)), 34819);
        assert_eq!(packed((136, 0x1_02)), 0x0010_8802);
        assert_eq!(unpacked(34819), (136, 3));
        assert_eq!(unpacked(0x0010_8802), (136, 0x1_02));
    }

    #[test]
    fn states_travel_as_json() {
        let doing = Doing::Waiting { pid: 7, kind: Kind::Password };
        let text = serde_json::to_string(&doing).unwrap();
        assert_eq!(text, r#"{"doing":"waiting","pid":7,"kind":"password"}"#);
        assert_eq!(serde_json::from_str::<Doing>(&text).unwrap(), doing);
    }
}
