//! What a session is doing now: the keeper's word on its terminal, the kernel's on its processes, and the screen's where
//! these two leave something open.
//!
//! The kernel is asked on the host's thread: some 50 µs for a job of one process, and what is looked at is bounded; handing
//! it to another thread and back would cost as much. The screen is looked at only for who waits at the terminal.

use super::Session;
use holdfast_observe::waiting::{self, Blind, Doing, TerminalFacts, TerminalTimes};
use holdfast_screen::Screen;
use holdfast_session::ShellState;
use holdfast_types::{Exit, Offset, TimeMs};
use holdfast_wire::Fault;
use holdfast_wire::attention::{Now, PROMPT_CHARS_MAX, StateView};
use holdfast_wire::params::Life;

/// How a line ends that a program wrote to ask for something, though it went on to the next.
const ENDS_OF_QUESTIONS: [char; 6] = ['?', ':', ']', ')', '>', '…'];

/// What was seen last, and since when.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub now: Now,
    pub pid: Option<u32>,
    pub since_ms: TimeMs,
    pub at: Offset,
    /// When it was seen so.
    looked_ms: TimeMs,
    /// How far the log of input went.
    log: u64,
}

impl Session {
    /// What it is doing, as clients see it.
    pub async fn doing(&self) -> Result<StateView, Fault> {
        if self.view_life() == Life::Running {
            // One that was just started has no keeper to ask yet.
            let _ = self.running().await;
        }
        let seen = self.see().await;
        self.news_of_state(&seen);
        Ok(self.state_view(&seen))
    }

    pub(crate) fn state_view(&self, seen: &Seen) -> StateView {
        let Seen { now, pid, since_ms, at, .. } = seen.clone();
        StateView { session: self.id, name: self.state.borrow().spec.name.clone(), now, pid, since_ms, at }
    }

    /// Looks, and remembers since when it was so.
    pub(crate) async fn see(&self) -> Seen {
        let (now, pid) = self.look_at_processes().await;
        let (at, log) = self.heads();
        let (ended_ms, looked_ms) = (self.ended_ms(), crate::now_ms());
        let (created_ms, frozen_ms) = {
            let state = self.state.borrow();
            let frozen = state.core.authority().state().frozen();
            (state.spec.created_ms, frozen.map(|frozen| frozen.since))
        };
        let mut last = self.track.seen.borrow_mut();
        let since_ms = match last.as_ref() {
            _ if matches!(now, Now::Ended { .. }) => ended_ms.unwrap_or(looked_ms),
            _ if matches!(now, Now::Frozen { .. }) => frozen_ms.unwrap_or(looked_ms),
            // Who was typed to in between may have done something else meanwhile.
            Some(last) if last.now == now && last.pid == pid && (last.log == log || !takes_input(&now)) => {
                last.since_ms
            }
            other => {
                let times = self.track.device.get().and_then(waiting::terminal_times);
                let earliest = other.map_or(created_ms, |last| last.looked_ms);
                begun_at(&now, times, earliest, looked_ms)
            }
        };
        let seen = Seen { now, pid, since_ms, at, looked_ms, log };
        *last = Some(seen.clone());
        seen
    }

    /// Where the output and the log of input stand.
    pub(crate) fn heads(&self) -> (Offset, u64) {
        let state = self.state.borrow();
        state.ring.as_ref().map_or((0, 0), |ring| (ring.head(), ring.log_head()))
    }

    async fn look_at_processes(&self) -> (Now, Option<u32>) {
        if let Some(told) = self.without_a_look() {
            return (told, None);
        }
        let probed = self.probe().await.ok().flatten();
        // It may have ended, or been frozen, while the keeper was asked.
        if let Some(told) = self.without_a_look() {
            return (told, None);
        }
        let (keeper, shell) = {
            let state = self.state.borrow();
            (state.keeper_pid, state.pid)
        };
        let device = self.track.device.get().or_else(|| waiting::terminal_of(shell));
        self.track.device.set(device);
        let (Some(probed), Some(device)) = (probed, device) else {
            let why = if probed.is_none() { Blind::Keeper } else { Blind::Nobody };
            return (Now::Unknown { why }, None);
        };
        let mut facts = TerminalFacts {
            foreground: probed.foreground,
            iflag: probed.iflag,
            oflag: probed.oflag,
            lflag: probed.lflag,
            unread: probed.unread,
            device,
            alternate_screen: false,
            shell_prompt: None,
        };
        let doing = waiting::state(keeper, shell, &facts);
        let mut prompt = String::new();
        let doing = match doing {
            Doing::IdlePrompt { .. } | Doing::Waiting { .. } => {
                self.look();
                let mut state = self.state.borrow_mut();
                facts.shell_prompt = by_its_marks(state.core.runs.shell());
                let screen = state.picture.screen();
                facts.alternate_screen = screen.alternate();
                let before = before_cursor(screen);
                prompt = asked(screen, &before);
                drop(state);
                waiting::state(keeper, shell, &facts).with_screen(&before)
            }
            other => other,
        };
        (now(doing, prompt), doing.pid())
    }

    /// What needs no process to be looked at.
    fn without_a_look(&self) -> Option<Now> {
        let state = self.state.borrow();
        match state.life {
            Life::Ended | Life::Lost => Some(Now::Ended { exit: state.spec.exit.unwrap_or(Exit::Lost) }),
            Life::Unknown => Some(Now::Unknown { why: Blind::Keeper }),
            Life::Damaged => Some(Now::Unknown { why: Blind::Damaged }),
            Life::Running => {
                let frozen = state.core.authority().state().frozen();
                frozen.map(|frozen| Now::Frozen { by: frozen.by.handle.clone() })
            }
        }
    }
}

/// Whether the shell is at its prompt, by what it says itself; any program can say the same, so it counts only for a shell
/// that waits at the terminal. One that wants the rest of a command waits for a line.
fn by_its_marks(place: ShellState) -> Option<bool> {
    match place {
        ShellState::Unknown => None,
        ShellState::Prompting | ShellState::Prompt { .. } => Some(true),
        ShellState::More | ShellState::Busy => Some(false),
    }
}

/// Since when a state lasts that was not seen before, by when the terminal was last used: a program that works has done so since it was
/// given something, one that waits since it last read or wrote. Not before the last look, which saw another state.
fn begun_at(now: &Now, times: Option<TerminalTimes>, earliest: TimeMs, looked_ms: TimeMs) -> TimeMs {
    let used_ms = times.map_or(looked_ms, |times| match now {
        Now::Running | Now::BlockedElsewhere => times.read_ms,
        Now::IdlePrompt | Now::Waiting { .. } | Now::FullScreen | Now::Stopped => times.read_ms.max(times.written_ms),
        Now::Frozen { .. } | Now::Ended { .. } | Now::Unknown { .. } => looked_ms,
    });
    used_ms.max(earliest).min(looked_ms)
}

/// Whether input ends the state, so that the same one after input is a new one.
fn takes_input(now: &Now) -> bool {
    matches!(now, Now::IdlePrompt | Now::Waiting { .. })
}

fn now(doing: Doing, prompt: String) -> Now {
    match doing {
        Doing::IdlePrompt { .. } => Now::IdlePrompt,
        Doing::Running { .. } => Now::Running,
        Doing::Waiting { kind, .. } => Now::Waiting { kind, prompt },
        Doing::FullScreen { .. } => Now::FullScreen,
        Doing::BlockedElsewhere { .. } => Now::BlockedElsewhere,
        Doing::Stopped { .. } => Now::Stopped,
        Doing::Unknown { why, .. } => Now::Unknown { why },
    }
}

/// The end of the last line up to the cursor that has something in it: what a prompt is, as a rule. It comes from the cells,
/// in which no control character can be.
fn before_cursor(screen: &Screen) -> String {
    let text = screen.before_cursor();
    let from = text.char_indices().rev().nth(PROMPT_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    text[from..].to_owned()
}

/// What a program asks: the line it left open. A whole line above the cursor is output, as of `seq 3; cat`, unless it ends as questions
/// do.
fn asked(screen: &Screen, before: &str) -> String {
    let is_open = screen.cursor().0 > 0;
    if is_open || before.ends_with(ENDS_OF_QUESTIONS) { before.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> String {
        let mut screen = Screen::new("40x5".parse().unwrap(), 0);
        screen.feed(output.as_bytes());
        before_cursor(&screen)
    }

    #[test]
    fn a_prompt_is_what_stands_before_the_cursor() {
        assert_eq!(shown("motd\r\nPassword: "), "Password:");
        assert_eq!(shown("Name: right\x1b[5D"), "Name:");
        assert_eq!(shown("日本: "), "日本:");
        assert_eq!(shown("Really?\r\n"), "Really?");
        assert_eq!(shown("below\r\n\r\n\x1b[1;1H"), "");
        assert_eq!(shown("\x1b[31mred\x1b[0m> "), "red>");
    }

    #[test]
    fn a_state_began_when_the_terminal_was_last_used_and_not_when_it_was_looked_at() {
        let times = Some(TerminalTimes { read_ms: 40_000, written_ms: 60_000 });
        assert_eq!(begun_at(&Now::IdlePrompt, times, 10_000, 90_000), 60_000);
        assert_eq!(begun_at(&Now::Running, times, 10_000, 90_000), 40_000);
        assert_eq!(begun_at(&Now::Running, times, 70_000, 90_000), 70_000, "another state was seen then");
        assert_eq!(begun_at(&Now::Running, times, 10_000, 30_000), 30_000, "a clock that was put back");
        assert_eq!(begun_at(&Now::IdlePrompt, None, 10_000, 90_000), 90_000);
    }

    #[test]
    fn a_line_that_a_program_left_behind_asks_nothing_unless_it_ends_as_a_question() {
        let asked = |output: &str| {
            let mut screen = Screen::new("40x5".parse().unwrap(), 0);
            screen.feed(output.as_bytes());
            asked(&screen, &before_cursor(&screen))
        };
        assert_eq!(asked("2\r\n3\r\n"), "");
        assert_eq!(asked("Name"), "Name");
        assert_eq!(asked("Really?\r\n"), "Really?");
        assert_eq!(asked("Enter a value:\r\n\r\n"), "Enter a value:");
    }

    #[test]
    fn a_long_prompt_keeps_its_end() {
        let mut screen = Screen::new("600x3".parse().unwrap(), 0);
        screen.feed(format!("{}end", "ü".repeat(500)).as_bytes());
        let prompt = before_cursor(&screen);
        assert!(prompt.ends_with("üend") && prompt.chars().count() == PROMPT_CHARS_MAX, "{prompt}");
    }
}
