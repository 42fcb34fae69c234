//! Whether a command can be entered now: brings about what the core's look at the prompt waits for, and says in words what it
//! found.

use super::{Held, Session};
use crate::shells::Kind;
use crate::shells::keys::ASK_LINE;
use holdfast_session::{Busy, Check, Core, Editor, Look, Now as Moment, Seen, Sent};
use holdfast_types::Actor;
use holdfast_wire::attention::Now;
use holdfast_wire::{Code, Fault};
use std::time::Duration;
use tokio::time::Instant;

/// How long who seems to work may take to come to rest where nobody tells, and how often it is looked at.
const REST_WAIT: Duration = Duration::from_millis(500);
const REST_EVERY: Duration = Duration::from_millis(20);

/// A look at the prompt that is over however it ends.
struct Checking<'a>(&'a Session, Check);

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        self.0.with_core(|core, _, now| core.end_check(now, &mut self.1));
    }
}

impl Session {
    /// Waits until the shell is at a prompt with an empty line; refuses where it is not.
    pub(super) async fn idle_prompt(&self, actor: &Actor) -> Result<Kind, Fault> {
        let name = self.name();
        let Some(kind) = self.state.borrow().spec.shell else {
            return Err(self.shell_busy("its command is not a shell with integration").await.hint(format!(
                "choose how to detect the end: --detect quiet:500ms or --detect prompt:REGEX; or type with: holdfast send {name}"
            )));
        };
        let editor = match kind {
            Kind::Bash => Editor::Readline,
            Kind::Zsh => Editor::Zle,
            Kind::Fish => Editor::Fish,
        };
        let mut checking = Checking(self, Check::new(editor, self.age_ms()));
        let check = &mut checking.1;
        let step = |core: &mut Core, held: &mut Held, now, seen| Some(core.check(held, now, check, seen));
        match self.look_on(Some(actor), step).await? {
            Some(Look::Empty) => Ok(kind),
            Some(Look::Busy(why)) => Err(self.shell_busy(why.words()).await),
            Some(Look::Wait { .. } | Look::Probe | Look::Ask) | None => Err(self.shell_busy(Busy::Input.words()).await),
        }
    }

    /// Brings about what each step waits for, until one waits for nothing. What is typed to ask the shell is typed for `actor`.
    pub(super) async fn look_on(
        &self,
        actor: Option<&Actor>,
        mut step: impl FnMut(&mut Core, &mut Held, Moment, Seen) -> Option<Look>,
    ) -> Result<Option<Look>, Fault> {
        let mut seen = Seen::Change;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the step, so that a change between the two is not missed.
            changed.as_mut().enable();
            let look = self.with_core(|core, held, now| step(core, held, now, seen));
            self.nudge.notify_one();
            seen = match look {
                Some(Look::Wait { until }) => {
                    let ms = until.saturating_sub(crate::now().clock_ms).max(1);
                    // Either will do.
                    let _ = tokio::time::timeout(Duration::from_millis(ms), changed).await;
                    Seen::Change
                }
                Some(Look::Probe) => Seen::Probed(self.probe().await?),
                Some(Look::Ask) => Seen::Asked(match actor {
                    Some(actor) => {
                        let sent = self.type_decided(actor, self.fence(), ASK_LINE).await;
                        matches!(sent, Sent::Written { .. } | Sent::Queued { .. })
                    }
                    None => false,
                }),
                Some(Look::Empty | Look::Busy(_)) | None => return Ok(look),
            };
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
        let is_starting = is_starting(why, &seen.now);
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
        if is_starting {
            details["starting"] = serde_json::json!(true);
        }
        fault.details = Some(Box::new(details));
        fault
    }
}

/// Whether the shell still reads its own files, and asks nobody for anything: who is patient tries again.
fn is_starting(why: &str, now: &Now) -> bool {
    why == Busy::NoPrompt.words() && matches!(now, Now::Running | Now::BlockedElsewhere | Now::Unknown { .. })
}

/// What helps where no command can be entered.
fn way_out(name: &str, why: &str, now: &Now) -> String {
    use holdfast_wire::attention::Kind::Repl;
    let look = format!("or look: holdfast attach {name}");
    match (why, now) {
        _ if [Busy::Input.words(), Busy::HalfTyped.words()].contains(&why) => {
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
