//! The gate in front of new sessions.

use super::{Act, Asked, Place, Text};
use crate::birth::Birth;
use crate::origins::Background;
use crate::registry::Registry;
use crate::session;
use holdfast_authority::{Refusal, Said};
use holdfast_gate::{Action, Outcome};
use holdfast_types::{Actor, SessionId};
use holdfast_wire::Fault;
use holdfast_wire::contracts::Contract;
use holdfast_wire::gate::ApprovalId;
use std::sync::Arc;

/// What the shell of a new session is to execute, and what is said of it.
pub(crate) struct Line<'a> {
    pub text: &'a str,
    pub intent: Option<String>,
    pub contract: Option<Box<Contract>>,
}

impl Registry {
    /// Where a session would start.
    pub(crate) fn place_of_start(&self, cwd: Option<&str>) -> Place {
        let home = crate::birth::home();
        Place { cwd: cwd.map_or_else(|| home.clone(), str::to_owned), home, state: "new", ..Place::default() }
    }

    /// Asks the gate about a session that is to start. `line` is what its shell is to execute.
    pub(crate) async fn judge_start(
        &self,
        actor: &Actor,
        birth: &Birth,
        act: Act,
        line: Option<Line<'_>>,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        let gate = &self.shared.gate;
        let Some(considered) = gate.consider(self.asked_start(actor, birth, line)).await else { return Ok(()) };
        let refusal = match gate.said(considered, act, released)?.0 {
            Said::Allow(_) => return Ok(()),
            Said::Deny { rule, why } => Refusal::Forbidden { rule, why },
            Said::Hold { rule, why, approval } => Refusal::ApprovalNeeded { approval, rule, why },
        };
        self.shared.metrics.refused(session::counted(&refusal));
        Err(session::fault(&refusal))
    }

    /// Whether a session may start without anybody being asked. Nothing is held for an answer.
    pub(crate) async fn may_start_unasked(&self, actor: &Actor, birth: &Birth) -> bool {
        let considered = self.shared.gate.consider(self.asked_start(actor, birth, None)).await;
        considered.is_none_or(|considered| considered.verdict.outcome == Outcome::Allow)
    }

    /// Of a session that does not exist yet the files it executes are known, and who wrote those.
    fn past_of_start(&self) -> Arc<Background> {
        let gate = &self.shared.gate;
        Arc::new(Background {
            session: SessionId::from_random_bits(0),
            changes: Arc::default(),
            staged: Vec::new(),
            since_ms: 0,
            journal: Vec::new(),
            spans: gate.spans.borrow().all(),
            writes: Arc::clone(&gate.writes),
        })
    }

    fn asked_start(&self, actor: &Actor, birth: &Birth, line: Option<Line<'_>>) -> Asked {
        let text = match &line {
            Some(line) => Text::Line(line.text.to_owned()),
            None => Text::of_start(&birth.command),
        };
        Asked {
            by: actor.clone(),
            is_human: self.shared.policy_is_human(actor),
            action: Action::Start,
            text,
            place: Place { past: Some(self.past_of_start()), ..self.place_of_start(Some(&birth.cwd)) },
            signal: None,
            intent: line.as_ref().and_then(|line| line.intent.clone()),
            contract: line.and_then(|line| line.contract),
        }
    }
}

impl Text {
    /// What a session's command is to the gate.
    pub(crate) fn of_start(command: &[String]) -> Text {
        // A shell by itself runs nothing yet.
        if is_bare_shell(command) { Text::None } else { Text::Words(command.to_vec()) }
    }
}

/// A shell that is started to be typed into.
pub(crate) fn is_bare_shell(command: &[String]) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "fish", "dash", "ksh", "ash"];
    let is_shell = |program: &String| SHELLS.contains(&program.rsplit('/').next().unwrap_or_default());
    match command {
        [program] => is_shell(program),
        [program, option] => is_shell(program) && matches!(option.as_str(), "-i" | "-l" | "-il" | "--login" | "--norc"),
        _ => false,
    }
}
