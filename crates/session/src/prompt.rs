//! Whether a command can be entered now.
//!
//! Nothing is typed unless everything agrees that an empty prompt waits: the shell's marks, the keeper's word that the shell has
//! the terminal and reads keys one by one, and what was typed since. Any doubt is an answer: [`Busy`].
//!
//! A [`Check`] takes several steps. Each says what it waits for; the caller brings that, and asks for the next step.

use crate::core::{Core, Now};
use crate::outside::{Outside, Probed};
use crate::runs::{Line, ShellState};
use holdfast_abi::protocol::ToKeeper;
use holdfast_screen::{PlainText, Screen};
use holdfast_types::Offset;

/// How long a shell that was just started may take to its first prompt: user's files are slow.
const FIRST_PROMPT_WAIT_MS: u64 = 10_000;
/// And one that is printing a prompt.
const PROMPT_WAIT_MS: u64 = 2_000;
/// How often a shell at its prompt is asked whether it reads keys yet.
const READS_EVERY_MS: u64 = 2;
/// A shell that reads shows what it read within this time.
const TAKEN_WAIT_MS: u64 = 50;
/// How often a shell is told again that it was interrupted.
const HEAR_TRIES: u32 = 10;
/// Linux's `ICANON`: the terminal edits lines, so no line editor reads.
const ICANON: u32 = 0o2;
/// SIGINT, to the group in the foreground.
const INTERRUPT: u8 = 2;
/// Read at once when marks are looked for in the ring.
const SCAN_BYTES: usize = 512 * 1024;

/// What a check needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Ask for the next step when something has changed, at the latest at this time.
    Wait {
        /// By the clock that never jumps.
        until: u64,
    },
    /// Ask the keeper what the terminal says of itself, and bring its answer to the next step.
    Probe,
    /// Type the key by which the shell is asked what its line holds, and say whether it is on its way.
    Ask,
    /// An empty prompt waits.
    Empty,
    /// No empty prompt waits.
    Busy(Busy),
}

/// Why nothing can be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Its shell has not shown a prompt yet.
    NoPrompt,
    /// A command runs.
    Command,
    /// The shell wants the rest of a command.
    HalfTyped,
    /// A run is on.
    Run,
    /// The terminal's foreground is not the shell.
    OtherForeground,
    /// The shell's line editor does not read, or the keeper does not answer.
    OtherReader,
    /// There is input at the prompt, or may be.
    Input,
}

impl Busy {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Busy::NoPrompt => "its shell has not shown a prompt yet",
            Busy::Command => "a command runs",
            Busy::HalfTyped => "a half-typed command is at the prompt",
            Busy::Run => "a run is on",
            Busy::OtherForeground => "another program has the terminal",
            Busy::OtherReader => "another program reads the terminal",
            Busy::Input => "there is input at the prompt",
        }
    }
}

/// What brings a check further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Time passed, or something changed.
    Change,
    /// The keeper's answer; none: it did not answer in time.
    Probed(Option<Probed>),
    /// The key that asks was typed, or could not be.
    Asked(bool),
}

/// Whose line editor reads at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editor {
    /// Of bash: it shows its prompt again behind an answer, and may notice an interrupt only at the next key.
    Readline,
    /// Of zsh: it may notice an interrupt only at the next key.
    Zle,
    /// Of fish.
    Fish,
}

impl Editor {
    /// It may notice an interrupt only at the next key, and drops that key then.
    fn hears_late(self) -> bool {
        matches!(self, Editor::Readline | Editor::Zle)
    }
}

/// A look at the prompt, in steps. Give it to [`Core::end_check`] when it is over or given up.
#[derive(Debug)]
pub struct Check {
    editor: Editor,
    /// The shell was started this long ago.
    age_ms: u64,
    /// Nothing must be typed at the prompt since, whatever is known of the line: a host that was killed may have typed there.
    untouched: bool,
    stage: Stage,
    /// The output is followed for its marks meanwhile.
    follows: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// An interrupt that was typed is to be over with.
    Hearing {
        tries: u32,
        until: u64,
    },
    /// Whether the shell still has the terminal, which it must to hear an interrupt.
    HasTerminal {
        tries: u32,
    },
    /// A prompt is to come.
    Coming {
        until: u64,
    },
    /// The keeper was asked whether the line editor of the prompt at this offset reads.
    Reads {
        at: Offset,
        until: u64,
    },
    /// It is asked again in a moment.
    ReadsSoon {
        at: Offset,
        until: u64,
        again: u64,
    },
    /// Nothing is to come out of the terminal for a moment.
    Quiet {
        at: Offset,
        head: Offset,
        until: u64,
    },
    /// And nothing to wait there to be read.
    Unread {
        at: Offset,
        head: Offset,
    },
    /// The shell is being asked what its line holds, by a key that it reads behind everything typed before.
    Asking {
        asked_at: Offset,
    },
    /// Its answer is to come.
    Answering {
        asked_at: Offset,
        until: u64,
    },
    /// And the prompt behind an empty line's.
    ShowingAgain {
        asked_at: Offset,
        answered_at: Offset,
        until: u64,
    },
}

impl Check {
    /// Before a command is entered into a shell of this age.
    #[must_use]
    pub fn new(editor: Editor, age_ms: u64) -> Check {
        Check { editor, age_ms, untouched: false, stage: Stage::Begin, follows: false }
    }

    /// Whether the shell still waits at its prompt, with nothing typed there and nothing on its way to it.
    #[must_use]
    pub fn untouched() -> Check {
        Check { untouched: true, ..Check::new(Editor::Fish, u64::MAX) }
    }
}

impl Core {
    /// The next step of a check. `seen` is what the last one waited for.
    pub fn check(&mut self, out: &mut impl Outside, now: Now, check: &mut Check, seen: Seen) -> Look {
        let look = self.check_step(out, now, check, seen);
        let follows = match check.stage {
            Stage::Hearing { .. } | Stage::Coming { .. } | Stage::Asking { .. } => true,
            Stage::Answering { .. } | Stage::ShowingAgain { .. } => true,
            Stage::Begin | Stage::HasTerminal { .. } | Stage::Reads { .. } | Stage::ReadsSoon { .. } => false,
            Stage::Quiet { .. } | Stage::Unread { .. } => false,
        };
        self.follow(now, check, follows && matches!(look, Look::Wait { .. } | Look::Ask));
        look
    }

    /// Whether the shell waits at a prompt with an empty line, as far as its marks and what was typed tell: any doubt is a no. Types and
    /// signals nothing. The kernel's word on the terminal is for the caller to get.
    pub fn is_at_empty_prompt(&mut self, out: &mut impl Outside, now: Now) -> bool {
        if self.runs.shell() == ShellState::Unknown {
            self.look(out, now);
        }
        if self.runs.shell() == ShellState::Unknown {
            self.scan_marks(out, now, 0);
        }
        self.drain_log(out, now, true);
        self.look(out, now);
        let ShellState::Prompt { at } = self.runs.shell() else { return false };
        // A host that was not there when it was typed does not know of a half-typed line; the screen shows it.
        let is_empty = match self.runs.line() {
            Line::Empty => self.knows_line() || shows_nothing(out, at),
            Line::Ended => !self.runs.is_interrupted() && shows_nothing(out, at),
            Line::Unsure => false,
        };
        is_empty && self.runs.current().is_none()
    }

    /// Whether this host knows of everything that can stand in the line.
    fn knows_line(&self) -> bool {
        self.knows_all_typing || self.runs.has_seen_typing()
    }

    /// Whether what a keeper says of its terminal is what it says while the shell's line editor reads, and has read everything.
    #[must_use]
    pub fn reads_keys(&self, probed: &Probed) -> bool {
        probed.foreground == self.child && probed.lflag & ICANON == 0 && probed.unread == 0
    }

    /// A check is over, or given up.
    pub fn end_check(&mut self, now: Now, check: &mut Check) {
        self.follow(now, check, false);
    }

    fn follow(&mut self, now: Now, check: &mut Check, follows: bool) {
        if check.follows != follows {
            check.follows = follows;
            self.runs.expect(if follows { 1 } else { -1 });
            self.timers.rearm = Some(now.clock_ms);
        }
    }

    fn check_step(&mut self, out: &mut impl Outside, now: Now, check: &mut Check, seen: Seen) -> Look {
        let is_over = |until: u64| until <= now.clock_ms;
        match (check.stage, seen) {
            (Stage::Begin, _) => self.begin_check(out, now, check),
            (Stage::Hearing { tries, until }, _) => {
                if self.is_interrupt_pending() && !is_over(until) {
                    return Look::Wait { until };
                }
                self.look(out, now);
                if !self.is_interrupt_pending() || tries >= HEAR_TRIES {
                    return self.await_prompt(out, now, check);
                }
                check.stage = Stage::HasTerminal { tries };
                Look::Probe
            }
            (Stage::HasTerminal { tries }, Seen::Probed(probed)) => {
                let has_terminal = probed.is_some_and(|probed| probed.foreground == self.child);
                if !self.is_interrupt_pending() || !has_terminal {
                    return self.await_prompt(out, now, check);
                }
                self.interrupt(out);
                self.hear(now, check, tries + 1)
            }
            (Stage::Coming { until }, _) => {
                let is_coming = matches!(self.runs.shell(), ShellState::Unknown | ShellState::Prompting);
                if is_coming && self.is_running && !is_over(until) {
                    return Look::Wait { until };
                }
                self.prompt_came(now, check)
            }
            (Stage::Reads { at, until }, Seen::Probed(probed)) => match probed {
                Some(probed) if probed.foreground != self.child => Look::Busy(Busy::OtherForeground),
                Some(probed) if self.reads_keys(&probed) => self.reads(out, now, check, at),
                // Marks may come a little before the editor.
                Some(_) if !is_over(until) => {
                    let again = now.clock_ms + READS_EVERY_MS;
                    check.stage = Stage::ReadsSoon { at, until, again };
                    Look::Wait { until: again }
                }
                Some(_) | None => Look::Busy(Busy::OtherReader),
            },
            (Stage::ReadsSoon { again, .. }, _) if !is_over(again) => Look::Wait { until: again },
            (Stage::ReadsSoon { at, until, .. }, _) => {
                check.stage = Stage::Reads { at, until };
                Look::Probe
            }
            (Stage::Quiet { head, until, .. }, _) if out.head() == head && !is_over(until) => Look::Wait { until },
            (Stage::Quiet { at, head, .. }, _) => {
                self.look(out, now);
                if out.head() != head {
                    return Look::Busy(Busy::Input);
                }
                check.stage = Stage::Unread { at, head };
                Look::Probe
            }
            (Stage::Unread { at, head }, Seen::Probed(probed)) => {
                let is_empty = out.head() == head && probed.is_some_and(|probed| probed.unread == 0);
                self.checked(at, is_empty && (!check.untouched || shows_nothing(out, at)))
            }
            (Stage::Asking { asked_at }, Seen::Asked(true)) => {
                check.stage = Stage::Answering { asked_at, until: now.clock_ms + PROMPT_WAIT_MS };
                self.check_step(out, now, check, Seen::Change)
            }
            (Stage::Asking { .. }, Seen::Asked(false)) => Look::Busy(Busy::Input),
            (Stage::Asking { .. }, Seen::Change | Seen::Probed(_)) => Look::Ask,
            (Stage::Answering { asked_at, until }, _) => self.answer_came(out, now, check, asked_at, until),
            (Stage::ShowingAgain { asked_at, answered_at, until }, _) => {
                let shows = matches!(self.runs.shell(), ShellState::Prompt { at } if at > answered_at);
                if shows || is_over(until) { self.answered(out, now, asked_at) } else { Look::Wait { until } }
            }
            // The keeper's answer is still awaited.
            (Stage::HasTerminal { .. } | Stage::Reads { .. } | Stage::Unread { .. }, Seen::Change | Seen::Asked(_)) => {
                Look::Probe
            }
        }
    }

    fn begin_check(&mut self, out: &mut impl Outside, now: Now, check: &mut Check) -> Look {
        if check.untouched {
            if self.runs.shell() == ShellState::Unknown {
                // From there on nothing is missing: a prompt that is found does not end the run that is asked about.
                self.scan_marks(out, now, out.oldest());
            }
            let ShellState::Prompt { at } = self.runs.shell() else { return Look::Busy(Busy::Command) };
            check.stage = Stage::Reads { at, until: now.clock_ms + PROMPT_WAIT_MS };
            return Look::Probe;
        }
        if self.runs.shell() == ShellState::Unknown {
            self.look(out, now);
        }
        if self.runs.shell() == ShellState::Unknown {
            self.scan_marks(out, now, 0);
        }
        self.drain_log(out, now, true);
        self.look(out, now);
        if check.editor.hears_late() && self.is_interrupt_pending() {
            return self.hear(now, check, 0);
        }
        self.await_prompt(out, now, check)
    }

    fn hear(&mut self, now: Now, check: &mut Check, tries: u32) -> Look {
        let until = now.clock_ms + TAKEN_WAIT_MS;
        check.stage = Stage::Hearing { tries, until };
        Look::Wait { until }
    }

    fn await_prompt(&mut self, out: &mut impl Outside, now: Now, check: &mut Check) -> Look {
        let patience_ms = match self.runs.shell() {
            ShellState::Unknown if check.age_ms < FIRST_PROMPT_WAIT_MS => FIRST_PROMPT_WAIT_MS,
            ShellState::Prompting => PROMPT_WAIT_MS,
            ShellState::Unknown | ShellState::Prompt { .. } | ShellState::More | ShellState::Busy => 0,
        };
        check.stage = Stage::Coming { until: now.clock_ms + patience_ms };
        self.check_step(out, now, check, Seen::Change)
    }

    /// The shell has said what it does, or has had its time.
    fn prompt_came(&mut self, now: Now, check: &mut Check) -> Look {
        let at = match self.runs.shell() {
            ShellState::Prompt { at } => at,
            ShellState::Unknown => return Look::Busy(Busy::NoPrompt),
            ShellState::Prompting | ShellState::Busy => return Look::Busy(Busy::Command),
            ShellState::More => return Look::Busy(Busy::HalfTyped),
        };
        if self.runs.current().is_some() {
            return Look::Busy(Busy::Run);
        }
        check.stage = Stage::Reads { at, until: now.clock_ms + PROMPT_WAIT_MS };
        Look::Probe
    }

    /// The shell has the terminal, and its line editor reads: what is in its line?
    fn reads(&mut self, out: &mut impl Outside, now: Now, check: &mut Check, at: Offset) -> Look {
        if !check.untouched {
            // What was typed meanwhile, directly.
            self.drain_log(out, now, true);
            self.look(out, now);
        }
        match self.runs.line() {
            _ if check.untouched => self.stays_quiet(out, now, check, at),
            Line::Empty if self.knows_line() => self.checked(at, true),
            Line::Ended if check.editor.hears_late() && self.runs.is_interrupted() => self.checked(at, false),
            Line::Ended if shows_nothing(out, at) => self.checked(at, true),
            // A host that was not there when it was typed knows nothing of a half-typed line.
            Line::Empty if shows_nothing(out, at) => self.checked(at, true),
            Line::Empty | Line::Ended | Line::Unsure if self.runs.can_be_asked() => {
                check.stage = Stage::Asking { asked_at: out.head() };
                Look::Ask
            }
            // A prompt on the right stands there too.
            Line::Ended => self.stays_quiet(out, now, check, at),
            Line::Empty | Line::Unsure => self.checked(at, shows_nothing(out, at)),
        }
    }

    /// The shell was asked: is its answer there?
    fn answer_came(
        &mut self,
        out: &mut impl Outside,
        now: Now,
        check: &mut Check,
        asked_at: Offset,
        until: u64,
    ) -> Look {
        match self.runs.answer_behind(asked_at) {
            None if self.is_running && now.clock_ms < until => Look::Wait { until },
            Some((answered_at, true)) if check.editor == Editor::Readline => {
                let until = now.clock_ms + TAKEN_WAIT_MS;
                check.stage = Stage::ShowingAgain { asked_at, answered_at, until };
                self.check_step(out, now, check, Seen::Change)
            }
            Some(_) | None => self.answered(out, now, asked_at),
        }
    }

    /// The shell said what its line holds, or had its time.
    fn answered(&mut self, out: &mut impl Outside, now: Now, asked_at: Offset) -> Look {
        self.look(out, now);
        match (self.runs.answer_behind(asked_at), self.runs.shell()) {
            (Some((_, true)), ShellState::Prompt { .. }) => {
                self.runs.line_is_empty(asked_at);
                self.knows_all_typing = true;
                Look::Empty
            }
            (_, _) => Look::Busy(Busy::Input),
        }
    }

    /// The shell has taken what was typed ahead, and would have said so.
    fn stays_quiet(&mut self, out: &mut impl Outside, now: Now, check: &mut Check, at: Offset) -> Look {
        let until = now.clock_ms + TAKEN_WAIT_MS;
        check.stage = Stage::Quiet { at, head: out.head(), until };
        Look::Wait { until }
    }

    fn checked(&self, at: Offset, is_empty: bool) -> Look {
        let is_there = self.runs.shell() == ShellState::Prompt { at };
        if is_there && is_empty { Look::Empty } else { Look::Busy(Busy::Input) }
    }

    /// An interrupt was typed at a prompt, and the shell has not said that it heard.
    fn is_interrupt_pending(&self) -> bool {
        matches!(self.runs.shell(), ShellState::Prompt { .. }) && self.runs.is_interrupted()
    }

    /// Interrupts what is in the foreground. Where that fails the keeper's connection is taken up anew, and whatever runs goes on
    /// until it is interrupted again.
    pub fn interrupt(&mut self, out: &mut impl Outside) {
        if self.is_running {
            out.say(ToKeeper::Signal { fence: self.fence().0, target: 0, number: INTERRUPT });
        }
    }

    /// Reads marks from the ring: what the screen saw before this host was there.
    pub fn scan_marks(&mut self, out: &mut impl Outside, now: Now, from: Offset) {
        let (mut at, head) = (from.max(out.oldest()), out.head());
        let lapped = at > from;
        let mut screen = Screen::new(self.size, at);
        while at < head {
            let bytes = out.output(at, SCAN_BYTES.min((head - at) as usize));
            if bytes.is_empty() {
                // Overwritten meanwhile, unless there is nothing at all.
                let oldest = out.oldest();
                if oldest <= at {
                    break;
                }
                at = oldest;
                screen = Screen::new(self.size, at);
                continue;
            }
            screen.feed(&bytes);
            screen.drain_history(&mut Vec::new());
            at += bytes.len() as u64;
            self.runs.told_all(&screen.take_marks(), now.time_ms);
        }
        self.runs.caught_up(lapped, head, now.time_ms);
        out.runs_moved();
        self.timers.rearm = Some(now.clock_ms);
    }
}

/// Whether the terminal shows nothing since the prompt that ended here.
fn shows_nothing(out: &impl Outside, at: Offset) -> bool {
    if at < out.oldest() {
        return false;
    }
    let bytes = out.output(at, out.head().saturating_sub(at) as usize);
    let mut text = Vec::new();
    PlainText::new().feed(&bytes, &mut text);
    String::from_utf8_lossy(&text).trim().is_empty()
}
