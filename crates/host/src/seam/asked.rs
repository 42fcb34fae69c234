//! A program that a rule asks about: its process waits, and one question stands for all that a run asks under one rule.

use crate::gate::{Act, Considered, Gate, Holding};
use holdfast_authority::{Gate as Note, Said};
use holdfast_gate::{Outcome, Risk};
use holdfast_wire::Fault;
use holdfast_wire::gate::ApprovalState;
use holdfast_wire::runs::RunId;
use serde::{Deserialize, Serialize};

/// Which process waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExecAct {
    /// The kernel's number for it, which no other has in this life of the session.
    pub exec: u64,
    /// Which life that is.
    pub incarnation: u32,
    /// The act that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// The run that act was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<RunId>,
}

impl Holding {
    /// The process that waits for it.
    fn exec(&self) -> Option<&ExecAct> {
        match &self.act {
            Act::Exec(act) => Some(act),
            Act::Run(_)
            | Act::Start(..)
            | Act::Signal(_)
            | Act::End(_)
            | Act::Recover(_)
            | Act::Checkpoint(_)
            | Act::Restore(_)
            | Act::Write(_)
            | Act::Fork(_)
            | Act::Discard(_) => None,
        }
    }

    /// Whether it is about this process.
    pub(super) fn is_of(&self, exec: u64) -> bool {
        self.exec().is_some_and(|act| act.exec == exec)
    }

    /// Whether an answer to this one counts for a program too: the same actor's, in the same run, under the same rule, and nothing that
    /// this one does not do. Where it cannot be taken back, only what this one names.
    fn covers(&self, wanted: &Holding) -> bool {
        let Some(of) = wanted.exec() else { return false };
        let is_same_run = match self.exec() {
            Some(known) => known.incarnation == of.incarnation && known.act.is_some() && known.act == of.act,
            None => self.run.is_some() && self.run == of.of,
        };
        let within = |known: &[String], all: &[String]| all.iter().all(|one| known.contains(one));
        let is_grave = wanted.risks.iter().any(|risk| risk == Risk::Catastrophic.word());
        let is_known = !wanted.writes.iter().chain(&wanted.deletes).any(|path| path == "?");
        let is_shown = is_known && within(&self.writes, &wanted.writes) && within(&self.deletes, &wanted.deletes);
        let has_paths = !(wanted.writes.is_empty() && wanted.deletes.is_empty());
        let is_meant = match self.exec() {
            Some(_) => self.command == wanted.command || (is_shown && has_paths),
            // The line was read as a whole.
            None => is_shown,
        };
        is_same_run
            && self.by.id == wanted.by.id
            && self.session == wanted.session
            && self.rule == wanted.rule
            && within(&self.risks, &wanted.risks)
            && (!is_grave || is_meant)
    }
}

impl Gate {
    /// What is to be done about a program; what a rule asks about is held. A new holding is given too.
    pub(super) fn settle_exec(&self, considered: Considered, act: ExecAct) -> Result<(Said, Option<Holding>), Fault> {
        let verdict = considered.verdict.clone();
        let (rule, why) = (verdict.rule, verdict.why);
        match verdict.outcome {
            Outcome::Allow => return Ok((Said::Allow(Note { rule, approval: None, shaped: Vec::new() }), None)),
            Outcome::Deny => return Ok((Said::Deny { rule, why }, None)),
            Outcome::Ask => {}
        }
        let holding = self.holding_of(&considered, Act::Exec(act.clone()));
        let now = crate::now_ms();
        {
            let held = self.held.borrow();
            let is_it = |known: &&Holding| {
                known.session == holding.session
                    && known.exec().is_some_and(|known| (known.exec, known.incarnation) == (act.exec, act.incarnation))
            };
            // An earlier host may have asked already.
            let known = held.iter().find(is_it);
            let covering = |state: fn(ApprovalState) -> bool| {
                held.iter().rev().find(|known| state(known.state) && known.covers(&holding))
            };
            let approved = |state| matches!(state, ApprovalState::Approved | ApprovalState::Done);
            let is_open = |state| state == ApprovalState::Open;
            let found = known
                .or_else(|| covering(approved))
                .or_else(|| held.pass_for(&holding, now))
                .or_else(|| covering(is_open))
                .or_else(|| covering(|state| state == ApprovalState::Denied))
                .or_else(|| held.lately_denied(&holding, now));
            if let Some(found) = found {
                let approval = found.id.to_string();
                return Ok(match found.state {
                    ApprovalState::Open => (Said::Hold { rule, why, approval }, None),
                    ApprovalState::Approved | ApprovalState::Done => {
                        (Said::Allow(Note { rule, approval: Some(approval), shaped: Vec::new() }), None)
                    }
                    ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Failed => {
                        (Said::Deny { rule, why: found.denial() }, None)
                    }
                });
            }
        }
        self.admit(&considered.asked)?;
        self.keep(holding.clone())?;
        Ok((Said::Hold { rule, why, approval: holding.id.to_string() }, Some(holding)))
    }

    /// The open approval that a process made, by the kernel's number.
    pub(super) fn asked_by(&self, session: holdfast_types::SessionId, exec: u64, incarnation: u32) -> Option<Holding> {
        let held = self.held.borrow();
        let is_it = |known: &&Holding| {
            known.session == Some(session)
                && known.state == ApprovalState::Open
                && known.exec().is_some_and(|act| (act.exec, act.incarnation) == (exec, incarnation))
        };
        held.iter().find(is_it).cloned()
    }
}
