//! Whether a command can be entered now.
//!
//! Nothing is typed unless everything agrees that an empty prompt waits: the shell's marks, the keeper's word that the shell
//! has the terminal and reads keys one by one, and what was typed since. Whatever is in doubt is refused with the state.

use super::Session;
use crate::shells::Kind;
use crate::shells::keys::ASK_LINE;
use holdfast_abi::ring::Ring;
use holdfast_session::{Line, Place, Sent};
use holdfast_types::Actor;
use holdfast_wire::attention::Now;
use holdfast_wire::{Code, Fault};
use std::time::Duration;
use tokio::time::Instant;

/// How long a shell that was just started may take to its first prompt: user's files are slow.
const FIRST_PROMPT_WAIT: Duration = Duration::from_secs(10);
/// And one that is printing a prompt.
const PROMPT_WAIT: Duration = Duration::from_secs(2);
/// How often a shell at its prompt is asked whether it reads keys yet.
const READS_EVERY: Duration = Duration::from_millis(2);
/// A shell that reads shows what it read within this time.
const TAKEN_WAIT: Duration = Duration::from_millis(50);
/// How long who seems to work may take to come to rest where nobody tells, and how often it is looked at.
const REST_WAIT: Duration = Duration::from_millis(500);
const REST_EVERY: Duration = Duration::from_millis(20);
/// How often a shell is told again that it was interrupted.
const HEAR_TRIES: u32 = 10;
/// Why nothing is typed: behind what somebody left there.
const INPUT_THERE: &str = "there is input at the prompt";
const HALF_THERE: &str = "a half-typed command is at the prompt";
/// Linux's `ICANON`: the terminal edits lines, so no line editor reads.
const ICANON: u32 = 0o2;

impl Session {
    /// Waits until the shell is at a prompt with an empty line; refuses where it is not.
    pub(super) async fn idle_prompt(&self, actor: &Actor) -> Result<Kind, Fault> {
        let name = self.name();
        let Some(kind) = self.state.borrow().spec.shell else {
            return Err(self.shell_busy("its command is not a shell with integration").await.hint(format!(
                "choose how to detect the end: --detect quiet:500ms or --detect prompt:REGEX; or type with: holdfast send {name}"
            )));
        };
        if self.state.borrow().core.runs.place() == Place::Unknown {
            self.look();
            if self.state.borrow().core.runs.place() == Place::Unknown {
                self.scan_marks(0);
            }
        }
        self.drain_log();
        self.look();
        if kind != Kind::Fish {
            self.hear_interrupt().await;
        }
        let place = || self.state.borrow().core.runs.place();
        let patience = match place() {
            Place::Unknown if self.age_ms() < FIRST_PROMPT_WAIT.as_millis() as u64 => FIRST_PROMPT_WAIT,
            Place::Prompting => PROMPT_WAIT,
            Place::Unknown | Place::Prompt { .. } | Place::More | Place::Busy => Duration::ZERO,
        };
        self.expect_marks(1);
        let came = || (!matches!(place(), Place::Unknown | Place::Prompting) || !self.is_live()).then_some(());
        self.until(Some(patience), came).await;
        self.expect_marks(-1);
        let at = match place() {
            Place::Prompt { at } => at,
            Place::Unknown => return Err(self.shell_busy("its shell has not shown a prompt yet").await),
            Place::Prompting | Place::Busy => return Err(self.shell_busy("a command runs").await),
            Place::More => return Err(self.shell_busy(HALF_THERE).await),
        };
        if self.state.borrow().core.runs.current().is_some() {
            return Err(self.shell_busy("a run is on").await);
        }
        self.reads_keys().await?;
        // What was typed meanwhile, directly.
        self.drain_log();
        self.look();
        let (line, can_be_asked) = {
            let runs = &self.state.borrow().core.runs;
            (runs.line(), runs.can_be_asked())
        };
        let shows_nothing = || self.text_between(at, self.heads().0).trim().is_empty();
        let empty = match line {
            Line::Empty => true,
            Line::Ended if kind != Kind::Fish && self.state.borrow().core.runs.is_interrupted() => false,
            Line::Ended if shows_nothing() => true,
            Line::Ended | Line::Unsure if can_be_asked => return self.ask_line(kind, actor).await,
            // A prompt on the right stands there too.
            Line::Ended => self.stays_quiet().await?,
            Line::Unsure => shows_nothing(),
        };
        if place() != (Place::Prompt { at }) || !empty {
            return Err(self.shell_busy(INPUT_THERE).await);
        }
        Ok(kind)
    }

    /// Asks the shell whether its line is empty, by a key that it reads behind everything typed before.
    async fn ask_line(&self, kind: Kind, actor: &Actor) -> Result<Kind, Fault> {
        let asked_at = self.heads().0;
        let answer = || self.state.borrow().core.runs.answer_behind(asked_at);
        self.expect_marks(1);
        if let Sent::Written { .. } | Sent::Queued { .. } = self.type_decided(actor, self.fence(), ASK_LINE).await {
            self.until(Some(PROMPT_WAIT), || (answer().is_some() || !self.is_live()).then_some(())).await;
        }
        let place = || self.state.borrow().core.runs.place();
        if let (Kind::Bash, Some((at, true))) = (kind, answer()) {
            // readline shows its prompt again behind the answer.
            let shown = || matches!(place(), Place::Prompt { at: prompt } if prompt > at);
            self.until(Some(TAKEN_WAIT), || shown().then_some(())).await;
        }
        self.expect_marks(-1);
        self.look();
        match (answer(), place()) {
            (Some((_, true)), Place::Prompt { .. }) => {
                self.state.borrow_mut().core.runs.line_is_empty(asked_at);
                Ok(kind)
            }
            _ => Err(self.shell_busy(INPUT_THERE).await),
        }
    }

    /// Whether the shell still waits at the prompt of before, with nothing typed there and nothing on its way to it.
    pub(super) async fn has_nothing_typed(&self) -> bool {
        if self.state.borrow().core.runs.place() == Place::Unknown {
            let oldest = self.state.borrow().ring.as_ref().map_or(0, Ring::oldest);
            self.scan_marks(oldest);
        }
        let place = || self.state.borrow().core.runs.place();
        let Place::Prompt { at } = place() else { return false };
        let is_quiet = self.reads_keys().await.is_ok() && self.stays_quiet().await.unwrap_or(false);
        is_quiet && place() == (Place::Prompt { at }) && self.text_between(at, self.heads().0).trim().is_empty()
    }

    /// Sees to it that an interrupt that was typed is over with. bash may notice one only at the next key, which it drops then.
    async fn hear_interrupt(&self) {
        let pending = || {
            let runs = &self.state.borrow().core.runs;
            matches!(runs.place(), Place::Prompt { .. }) && runs.is_interrupted()
        };
        for _ in 0..HEAR_TRIES {
            self.expect_marks(1);
            self.until(Some(TAKEN_WAIT), || (!pending()).then_some(())).await;
            self.expect_marks(-1);
            self.look();
            let shell = self.state.borrow().pid;
            let has_terminal = matches!(self.probe().await, Ok(Some(probed)) if probed.foreground == shell);
            if !pending() || !has_terminal {
                return;
            }
            self.interrupt();
        }
    }

    /// Nothing comes out of the terminal for a moment, and nothing waits to be read: the shell has taken what was typed ahead,
    /// and would have said so.
    async fn stays_quiet(&self) -> Result<bool, Fault> {
        let head = self.heads().0;
        let grown = self.until(Some(TAKEN_WAIT), || (self.heads().0 > head).then_some(())).await.is_some();
        self.look();
        Ok(!grown && self.heads().0 == head && self.probe().await?.is_some_and(|probed| probed.unread == 0))
    }

    /// The shell has the terminal, and its line editor reads.
    async fn reads_keys(&self) -> Result<(), Fault> {
        let until = Instant::now() + PROMPT_WAIT;
        loop {
            let shell = self.state.borrow().pid;
            match self.probe().await? {
                Some(probed) if probed.foreground != shell => {
                    return Err(self.shell_busy("another program has the terminal").await);
                }
                Some(probed) if probed.lflag & ICANON == 0 && probed.unread == 0 => return Ok(()),
                // Marks may come a little before the editor.
                Some(_) if Instant::now() < until => tokio::time::sleep(READS_EVERY).await,
                Some(_) | None => return Err(self.shell_busy("another program reads the terminal").await),
            }
        }
    }

    /// Where the shell does not tell: nothing that hides what is typed, and nothing that has the whole screen.
    pub(super) async fn takes_a_line(&self) -> Result<(), Fault> {
        if self.state.borrow().core.runs.current().is_some() {
            return Err(self.shell_busy("a run is on").await);
        }
        let until = Instant::now() + REST_WAIT;
        let mut now = self.see().await.now;
        while now == Now::Running && Instant::now() < until {
            // It may be about to show its prompt.
            tokio::time::sleep(REST_EVERY).await;
            now = self.see().await.now;
        }
        match now {
            Now::Waiting { kind: holdfast_wire::attention::Kind::Password, .. } => {
                Err(self.shell_busy("a password is asked for").await)
            }
            Now::FullScreen => Err(self.shell_busy("a program has the whole screen").await),
            Now::Running => Err(self.shell_busy("a command runs").await),
            Now::Stopped => Err(self.shell_busy("its job is stopped").await),
            Now::IdlePrompt | Now::Waiting { .. } | Now::BlockedElsewhere | Now::Unknown { .. } => Ok(()),
            Now::Frozen { .. } | Now::Ended { .. } => Ok(()),
        }
    }

    /// Says what the terminal does in place of waiting for a command.
    async fn shell_busy(&self, why: &str) -> Fault {
        let seen = self.see().await;
        let (name, view) = (self.name(), self.state_view(&seen));
        let way_out = way_out(&name, why, &seen.now);
        let why = match &seen.now {
            Now::Waiting { prompt, .. } if !prompt.is_empty() => format!("{why}, and waits for input: {prompt}"),
            Now::Waiting { .. } => format!("{why}, and waits for input"),
            _ => why.to_owned(),
        };
        let run = self.state.borrow().core.runs.current().map(|run| run.id);
        let mut fault =
            Fault::new(Code::ShellBusy, format!("{name} is not at an empty prompt: {why}")).hint(match run {
                Some(run) => {
                    format!("wait for it: holdfast run wait {run}; or interrupt it: holdfast run cancel {run}")
                }
                None => way_out,
            });
        let mut details = serde_json::json!({ "why": why, "state": view });
        if let Some(run) = run {
            details["run"] = serde_json::json!(run);
        }
        fault.details = Some(details);
        fault
    }

    pub(super) fn expect_marks(&self, by: i32) {
        let mut state = self.state.borrow_mut();
        state.core.runs.expect(by);
        state.core.timers.rearm = Some(crate::now().clock_ms);
        drop(state);
        self.nudge.notify_one();
    }
}

/// What helps where no command can be entered.
fn way_out(name: &str, why: &str, now: &Now) -> String {
    use holdfast_wire::attention::Kind::Repl;
    let look = format!("or look: holdfast attach {name}");
    match (why, now) {
        (INPUT_THERE | HALF_THERE, _) => {
            format!("finish it: holdfast attach {name}; or throw it away: holdfast send {name} --key C-c")
        }
        // Waiting for the session's own shell would not help.
        (_, Now::IdlePrompt | Now::Waiting { kind: Repl, .. }) => {
            format!("if it is a shell, say how its prompt looks: holdfast run {name} --detect prompt:REGEX; {look}")
        }
        (_, Now::Waiting { .. }) => format!("type what it waits for: holdfast send {name} --enter TEXT; {look}"),
        _ => format!("wait for the prompt: holdfast wait {name} --for idle; {look}"),
    }
}
