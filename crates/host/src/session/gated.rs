//! The gate in front of what actors do in a session: runs, lines that programs type at a prompt, signals, ends.
//!
//! The actor's envelope comes first: what it may not ask for at all is refused without a look, and holds nobody up. What the gate
//! says goes into the journal with the act.

use super::{Session, Shared};
use crate::gate::{Act, Asked, Considered, Gate, Place, Text};
use holdfast_authority::{Ask, Input, Policy, Said};
use holdfast_gate::Action;
use holdfast_session::{Decided, ShellState};
use holdfast_types::{Actor, Proof, Right};
use holdfast_wire::Fault;
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::SendParams;
use holdfast_wire::runs::RunStartParams;
use std::rc::Rc;

/// Longest line that is followed while it is typed; more is not known.
const TYPED_BYTES_MAX: usize = 16 * 1024;

/// The gate, and who types before it.
#[derive(Debug)]
pub(crate) struct Gated {
    gate: Rc<Gate>,
    /// One program at a time types at the prompt: a line is judged as it will stand there.
    typing: tokio::sync::Mutex<()>,
    /// One file is written at a time: from the look at it to its new content.
    pub filing: tokio::sync::Mutex<()>,
}

impl Gated {
    pub fn new(gate: &Rc<Gate>) -> Gated {
        Gated { gate: Rc::clone(gate), typing: Default::default(), filing: Default::default() }
    }

    /// The gate of all sessions.
    pub fn shared(&self) -> Rc<Gate> {
        Rc::clone(&self.gate)
    }
}

impl std::ops::Deref for Gated {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl Shared {
    /// Whether an actor is a human for certain.
    pub fn policy_is_human(&self, actor: &holdfast_types::Actor) -> bool {
        let is_its = self.actors.borrow().vouched().get(&actor.id) == Some(&actor.handle);
        is_its && actor.handle.class() == holdfast_types::ActorClass::Human
    }

    /// What the host says of actors now.
    pub fn policy(&self) -> Policy {
        Policy { defaults: self.config.defaults.clone(), vouched: self.actors.borrow().vouched().clone() }
    }
}

impl Session {
    /// Where acts in this session happen.
    pub(crate) fn place_of_acts(&self) -> Place {
        let state = self.state.borrow();
        let told = state.core.runs.cwd().map(str::to_owned);
        let read = || std::fs::read_link(format!("/proc/{}/cwd", state.pid)).ok();
        let cwd = told.or_else(|| read().map(|path| path.to_string_lossy().into_owned()));
        let authority = state.core.authority();
        let is_human = |actor: &Actor| authority.policy().is_human(actor);
        let humans = authority.state().operators().filter(|(_, operator)| is_human(&operator.actor)).count();
        let home = state.spec.user.as_deref().and_then(crate::user::by_name).map(|other| other.user.home);
        Place {
            cwd: cwd.unwrap_or_else(|| state.spec.cwd.clone()),
            home: home.unwrap_or_else(crate::birth::home),
            start: Some(state.spec.cwd.clone()),
            session: Some((self.id, state.spec.name.clone())),
            state: match state.core.runs.shell() {
                ShellState::Prompt { .. } => "idle",
                ShellState::Busy | ShellState::More | ShellState::Prompting => "busy",
                ShellState::Unknown => "unknown",
            },
            humans: humans as u32,
            shell: state.spec.shell,
            past: None,
        }
    }

    pub(crate) fn is_human(&self, actor: &Actor) -> bool {
        self.state.borrow().core.authority().policy().is_human(actor)
    }

    /// What the policy says of an act; none where nothing is judged, or where its actor may not ask for it anyway.
    pub(crate) async fn consider(&self, ask: &Ask, asked: Asked) -> Option<Considered> {
        if !self.rights(&asked.by).meets(ask.needs().1) {
            return None;
        }
        self.gate.consider(asked).await
    }

    /// What the policy says of a run here.
    pub(super) async fn consider_run(&self, params: &RunStartParams, actor: &Actor, ask: &Ask) -> Option<Considered> {
        let asked = Asked {
            by: actor.clone(),
            is_human: self.is_human(actor),
            action: Action::Run,
            text: Text::Line(params.command.clone()),
            place: Place { state: "idle", past: Some(self.past_for(actor, Vec::new()).await), ..self.place_of_acts() },
            signal: None,
            intent: crate::contracts::intent_of(params),
            contract: params.contract.clone(),
        };
        self.consider(ask, asked).await
    }

    /// The shell is elsewhere by now.
    pub(super) fn has_moved(&self, considered: &Considered) -> bool {
        self.place_of_acts().cwd != considered.asked.place.cwd
    }

    /// What the gate says: what a rule asks about is held, and the session's people are told.
    pub(crate) fn said(&self, considered: Considered, act: Act, released: Option<ApprovalId>) -> Result<Said, Fault> {
        let (said, held) = self.gate.said(considered, act, released)?;
        if let Some(holding) = held {
            self.used();
            self.tell_held(&holding);
        }
        Ok(said)
    }

    /// Decides about something that the gate has judged, or that it does not judge.
    pub(crate) fn ask_said(
        &self,
        actor: &Actor,
        ask: Ask,
        proof: Option<Proof>,
        said: Option<Said>,
    ) -> Result<Decided, Fault> {
        let by = self.caller(actor, None);
        let Some(said) = said else { return self.ask_as(by, ask, proof) };
        self.must_be_its(&by, &ask, proof.as_ref())?;
        self.decide(Input::Judged { by, ask, proof, said })
    }

    /// Decides about a signal, an end or another life, once the gate has judged it.
    pub(super) async fn ask_judged(
        &self,
        actor: &Actor,
        ask: Ask,
        proof: Option<Proof>,
        act: Act,
        released: Option<ApprovalId>,
    ) -> Result<Decided, Fault> {
        let (action, text, signal) = match ask {
            Ask::Signal { number, .. } => (Action::Signal, Text::None, Some(number)),
            Ask::Recover { run: true } => (Action::Start, Text::of_start(&self.state.borrow().spec.command), None),
            Ask::Recover { run: false } => (Action::Start, Text::None, None),
            Ask::Operation { ref name, .. } if name == "session.restore" || name == "session.fork" => {
                (Action::Start, Text::None, None)
            }
            _ => (Action::End, Text::None, None),
        };
        let asked = Asked {
            by: actor.clone(),
            is_human: self.is_human(actor),
            action,
            text,
            place: self.place_of_acts(),
            signal,
            intent: None,
            contract: None,
        };
        let said = match self.consider(&ask, asked).await {
            Some(considered) => Some(self.said(considered, act, released)?),
            None => None,
        };
        // What was signed is used up by then.
        let proof = proof.filter(|_| released.is_none());
        self.ask_said(actor, ask, proof, said)
    }

    /// Decides about a move: judged as an end is. What a rule asks about is not held: who moves it is gone when a human answers.
    pub(crate) async fn ask_move(&self, actor: &Actor, ask: Ask, proof: Option<Proof>) -> Result<Decided, Fault> {
        let asked = Asked {
            by: actor.clone(),
            is_human: self.is_human(actor),
            action: Action::End,
            text: Text::None,
            place: self.place_of_acts(),
            signal: None,
            intent: None,
            contract: None,
        };
        let Some(Considered { verdict, .. }) = self.consider(&ask, asked).await else {
            return self.ask_said(actor, ask, proof, None);
        };
        let said = match verdict.outcome {
            holdfast_gate::Outcome::Allow => {
                Said::Allow(holdfast_authority::Gate { rule: verdict.rule, approval: None, shaped: Vec::new() })
            }
            holdfast_gate::Outcome::Ask | holdfast_gate::Outcome::Deny => {
                Said::Deny { rule: verdict.rule, why: verdict.why }
            }
        };
        self.gate.count(&said);
        self.ask_said(actor, ask, proof, Some(said)).map_err(|fault| match verdict.outcome {
            holdfast_gate::Outcome::Ask => fault.hint("a human can move it"),
            _ => fault,
        })
    }

    /// A human's answer to a held act, on record.
    pub(crate) fn answer_held(&self, actor: &Actor, ask: Ask, proof: Option<Proof>) -> Result<Decided, Fault> {
        self.ask(actor, None, ask, proof)
    }

    /// A line that a program types at the prompt of an integrated shell is judged as a run is. What a rule asks about is not
    /// held: whoever approves it later would approve it for another prompt.
    ///
    /// What is typed meanwhile would change the line: give what this gives back once the bytes were typed.
    pub(super) async fn judge_typing(
        &self,
        params: &SendParams,
        bytes: &[u8],
        actor: &Actor,
    ) -> Result<Option<tokio::sync::MutexGuard<'_, ()>>, Fault> {
        let is_judged = !self.gate.is_off() && !self.is_human(actor) && self.rights(actor).has(Right::Type);
        if !is_judged || self.state.borrow().spec.shell.is_none() {
            return Ok(None);
        }
        self.look();
        if !matches!(self.state.borrow().core.runs.shell(), ShellState::Prompt { .. } | ShellState::More) {
            return Ok(None);
        }
        let alone = self.gate.typing.lock().await;
        // Everything that was typed and printed so far counts.
        self.drain_log();
        self.look();
        let text = match self.lines_typed(bytes) {
            lines if lines.iter().all(|line| line.as_ref().is_some_and(|line| line.trim().is_empty())) => Text::None,
            // Several lines may be one command.
            lines => match lines.into_iter().collect::<Option<Vec<String>>>() {
                Some(lines) if !lines.last().is_some_and(|line| line.ends_with('\\')) => Text::Line(lines.join("\n")),
                Some(_) | None => Text::Hidden("a line that was edited at the prompt, or is not whole"),
            },
        };
        if !matches!(text, Text::None) {
            let past = Some(self.past_for(actor, self.staged_for(actor)).await);
            let place = Place { state: "idle", past, ..self.place_of_acts() };
            let (is_human, action, intent) = (false, Action::Type, None);
            let by = actor.clone();
            let asked = Asked { by, is_human, action, text, place, signal: None, intent, contract: None };
            let Some(Considered { verdict, .. }) = self.gate.consider(asked).await else { return Ok(None) };
            if verdict.outcome == holdfast_gate::Outcome::Allow {
                return Ok(Some(alone));
            }
            let said = Said::Deny { rule: verdict.rule.clone(), why: verdict.why.clone() };
            self.gate.count(&said);
            // On record, as a refusal to type: the bytes were never sent.
            let refusal = holdfast_authority::Refusal::Forbidden { rule: verdict.rule, why: verdict.why };
            let fault = super::decide::fault(&refusal);
            let ask = Ask::other(const { holdfast_types::terms_of("session.send") }, "a line at the prompt".into());
            let _ = self.decide(Input::Judged { by: self.caller(actor, params.client), ask, proof: None, said });
            let is_asked = verdict.outcome == holdfast_gate::Outcome::Ask;
            return Err(if is_asked { fault.hint("as a run, a human can approve it: use `run`") } else { fault });
        }
        Ok(Some(alone))
    }

    /// The lines that these keys would enter at the prompt, with what stands there already.
    fn lines_typed(&self, bytes: &[u8]) -> Vec<Option<String>> {
        let state = self.state.borrow();
        match state.core.runs.shell() {
            ShellState::Prompt { .. } => {}
            // The rest of a command of which only the shell has the beginning.
            ShellState::More => return entered(None, bytes).0,
            ShellState::Unknown | ShellState::Prompting | ShellState::Busy => return Vec::new(),
        }
        let before = state.core.runs.keys_at_prompt().and_then(|keys| entered(Some(String::new()), &keys).1);
        entered(before, bytes).0
    }
}

/// The lines that keys enter, given what stands there; and what stands there after. None: only the shell knows.
pub(super) fn entered(mut text: Option<String>, bytes: &[u8]) -> (Vec<Option<String>>, Option<String>) {
    let mut lines = Vec::new();
    let typed = String::from_utf8_lossy(bytes).replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
    for c in typed.chars() {
        match c {
            // Return, line feed, and `operate-and-get-next`.
            '\r' | '\n' | '\u{f}' => {
                lines.push(text.take());
                text = Some(String::new());
            }
            // Ctrl-C leaves nothing. Ctrl-U clears what is before the cursor, and only where nothing moved that is all.
            '\u{3}' => text = Some(String::new()),
            '\u{15}' => {
                if let Some(text) = &mut text {
                    text.clear();
                }
            }
            '\u{8}' | '\u{7f}' => {
                if let Some(text) = &mut text {
                    text.pop();
                }
            }
            c if c.is_control() || c == char::REPLACEMENT_CHARACTER => text = None,
            c => {
                if let Some(text) = &mut text {
                    text.push(c);
                }
            }
        }
        if text.as_ref().is_some_and(|text| text.len() > TYPED_BYTES_MAX) {
            text = None;
        }
    }
    (lines, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_the_lines_they_enter() {
        let all = |before: &str, keys: &str| entered(Some(before.to_owned()), keys.as_bytes());
        assert_eq!(all("", "ls\r"), (vec![Some("ls".into())], Some(String::new())));
        assert_eq!(all("rm -rf ", "/\r"), (vec![Some("rm -rf /".into())], Some(String::new())));
        assert_eq!(all("", "ls"), (vec![], Some("ls".into())));
        assert_eq!(all("x", "\u{3}"), (vec![], Some(String::new())));
        assert_eq!(all("", "lx\u{7f}s\n"), (vec![Some("ls".into())], Some(String::new())));
        assert_eq!(all("", "a\rb\r").0, vec![Some("a".into()), Some("b".into())]);
        assert_eq!(all("", "\u{1b}[200~ls\u{1b}[201~\r").0, vec![Some("ls".into())]);
        assert_eq!(all("", "\u{1b}[A\r").0, vec![None], "from the shell's history");
        assert_eq!(all("", "l\t\r").0, vec![None], "completed by the shell");
        assert_eq!(all("rm x", "\u{15}ls\r").0, vec![Some("ls".into())]);
        assert_eq!(all("rm x", "\u{1}\u{15}\r").0, vec![None], "the cursor was at the beginning: nothing is cleared");
        assert_eq!(all("ls", "\u{f}").0, vec![Some("ls".into())]);
        assert_eq!(entered(None, b"x\ry\r").0, vec![None, Some("y".into())]);
    }
}
