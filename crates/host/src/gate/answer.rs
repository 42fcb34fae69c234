//! What clients ask of the gate: what the policy says, which acts wait, and the answer of a human.

use super::facts::{Asked, Place, Text};
use super::{Gate, Holding};
use crate::connection::while_asked;
use crate::serve::Server;
use crate::session::{Session, fault};
use holdfast_authority::{Ask, Audience, Refusal, Rule};
use holdfast_gate::{Action, Outcome, Risk, Seen};
use holdfast_types::{Actor, ActorId, Notice, Right, terms_of};
use holdfast_wire::attention::What;
use holdfast_wire::gate::{
    ApprovalAnswerParams, ApprovalId, ApprovalListParams, ApprovalParams, ApprovalState, ApprovalView, MINUTES_MAX,
    MayAnswer, MayParams, PolicyView, REASON_BYTES_MAX, detail,
};
use holdfast_wire::{Code, Fault};
use std::time::Duration;
use tokio::time::Instant;

impl Server {
    pub(crate) fn gate(&self) -> &Gate {
        &self.registry.shared.gate
    }

    /// The policy in force.
    pub(crate) fn policy_get(&self) -> PolicyView {
        self.gate().view()
    }

    /// What the policy says of a command. Nothing is done, and nothing held.
    pub(crate) async fn policy_may(&self, params: &MayParams, actor: &Actor) -> Result<MayAnswer, Fault> {
        let registry = &self.registry;
        let mut place = match &params.session {
            Some(session) => {
                let session = registry.find_for(session, actor, Right::Observe)?;
                let past = session.past_for(actor, Vec::new()).await;
                Place { past: Some(past), ..session.place_of_acts() }
            }
            None => registry.place_of_start(params.cwd.as_deref()),
        };
        if let Some(cwd) = &params.cwd {
            if !cwd.starts_with('/') {
                return Err(Fault::new(Code::BadRequest, format!("the directory {cwd:?} is not an absolute path")));
            }
            place.cwd.clone_from(cwd);
        }
        // Another actor's name says what it could do; what it is allowed elsewhere stays its own.
        let known = |handle| registry.shared.actors.borrow().by_handle(handle);
        let by = match &params.actor {
            None => actor.clone(),
            Some(handle) => known(handle).unwrap_or(Actor { id: ActorId([0; 32]), handle: handle.clone() }),
        };
        let is_human = registry.shared.policy_is_human(&by);
        let action = if params.session.is_some() { Action::Run } else { Action::Start };
        let text = Text::Line(params.command.clone());
        let asked = Asked { by, is_human, action, text, place, signal: None, intent: None, contract: None };
        let found = self.gate().facts(&asked).await;
        let facts = &found.request.facts;
        let all = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        let (outcome, rule, why) = match self.gate().judge(&found.request) {
            None => (Outcome::Allow, "off".to_owned(), String::new()),
            Some(verdict) => (verdict.outcome, verdict.rule, verdict.why),
        };
        Ok(MayAnswer {
            outcome: outcome.word().into(),
            rule,
            why,
            instead: if outcome == Outcome::Allow { Vec::new() } else { instead(&facts.seen, &facts.cwd) },
            cwd: facts.cwd.clone(),
            parsed: facts.seen.parsed,
            opaque: all(&facts.seen.opaque),
            names: all(&facts.seen.names),
            risks: facts.seen.risks.iter().map(|risk| risk.word().to_owned()).collect(),
            writes: all(&facts.seen.writes),
            deletes: all(&facts.seen.deletes),
            shapers: found.shapers.clone(),
        })
    }

    /// Acts that wait, or waited.
    pub(crate) fn approval_list(&self, params: &ApprovalListParams, actor: &Actor) -> Result<Vec<ApprovalView>, Fault> {
        self.lapse_approvals();
        let of = match &params.session {
            Some(session) => Some(self.registry.find_for(session, actor, Right::Observe)?.id),
            None => None,
        };
        let held = self.gate().held.borrow();
        let shown = held.iter().filter(|one| of.is_none() || one.session == of);
        let shown = shown.filter(|one| params.all || !one.state.is_over());
        Ok(shown.filter(|one| self.may_see(one, actor)).map(Holding::view).collect())
    }

    /// One of them.
    pub(crate) async fn approval_get(&self, params: &ApprovalParams, actor: &Actor) -> Result<ApprovalView, Fault> {
        let before = self.see(params.approval, actor)?.state;
        let moved = |state: ApprovalState| state != before || state.is_over();
        while_asked(self.approval_until(params.approval, params.wait_ms, moved)).await;
        self.see(params.approval, actor).map(|holding| holding.view())
    }

    fn may_see(&self, holding: &Holding, actor: &Actor) -> bool {
        let session = holding.session.and_then(|id| self.registry.find(&id.to_string()).ok());
        match session {
            _ if holding.by == *actor => true,
            Some(session) => session.rights(actor).has(Right::Observe),
            None => self.registry.shared.policy_is_human(actor),
        }
    }

    /// One that this actor may know of.
    fn see(&self, id: ApprovalId, actor: &Actor) -> Result<Holding, Fault> {
        self.lapse_approvals();
        let found = self.gate().held.borrow().get(id).filter(|one| self.may_see(one, actor)).cloned();
        found.ok_or_else(|| {
            Fault::new(Code::NoSuchApproval, format!("no approval {id}")).hint("see `holdfast approvals ls --all`")
        })
    }

    /// Waits until it stands so with one, or until it is forgotten.
    pub(crate) async fn approval_until(&self, id: ApprovalId, wait_ms: u64, is_so: impl Fn(ApprovalState) -> bool) {
        let deadline = Instant::now() + Duration::from_millis(wait_ms);
        loop {
            let stirred = self.gate().stirred.notified();
            tokio::pin!(stirred);
            stirred.as_mut().enable();
            let state = self.gate().held.borrow().get(id).map(|one| one.state);
            if state.is_none_or(&is_so) || tokio::time::timeout_at(deadline, stirred).await.is_err() {
                return;
            }
        }
    }

    /// A human approves or denies.
    pub(crate) async fn approval_answer(
        &self,
        params: &ApprovalAnswerParams,
        actor: &Actor,
    ) -> Result<ApprovalView, Fault> {
        let holding = self.see(params.approval, actor)?;
        self.may_answer(&holding, actor)?;
        check(params)?;
        if holding.state != ApprovalState::Open {
            return Err(closed(&holding));
        }
        if params.seen != holding.hash {
            return Err(Fault::new(Code::BadRequest, "this is not what was read: it has changed")
                .hint("look at it again: holdfast approvals show ID"));
        }
        let said = detail(holding.id, params.approve, params.minutes, holding.hash, &holding.command);
        let ask = Ask::other(const { terms_of("approval.answer") }, said);
        let session = match holding.session {
            Some(session) => Some(self.registry.find_acting(&session.to_string(), actor)?),
            None => None,
        };
        // In the journal first: what is approved there and not on disk waits on, and can be approved again.
        let decided = match &session {
            Some(session) => Some(session.answer_held(actor, ask, params.proof)?),
            None => {
                self.registry.must_hold(actor, Right::Approve, "approve this")?;
                None
            }
        };
        holdfast_pause::task_point("approval.recorded").await;
        let mut deed = session.as_ref().zip(decided.as_ref()).map(|(session, decided)| session.begun(decided));
        // Somebody else may have answered meanwhile.
        let now = self.see(params.approval, actor)?;
        if now.state != ApprovalState::Open || now.hash != holding.hash {
            return Err(closed(&now));
        }
        let at = crate::now_ms();
        let answered = Holding {
            state: if params.approve { ApprovalState::Approved } else { ApprovalState::Denied },
            answered_by: Some(actor.clone()),
            answered_ms: Some(at),
            reason: params.reason.clone().filter(|reason| !reason.trim().is_empty()),
            until_ms: params.minutes.filter(|_| params.approve).map(|minutes| at + u64::from(minutes) * 60_000),
            ..holding
        };
        let kept = self.gate().keep(answered.clone());
        if let Some(deed) = &mut deed {
            deed.over(&kept.as_ref().map_err(|fault| fault.message.clone()).copied());
        }
        kept?;
        self.tell_held(&answered);
        holdfast_pause::task_point("approval.kept").await;
        if params.approve {
            self.gate().released.borrow_mut().push(answered.id);
            self.gate().stirred.notify_waiters();
        }
        Ok(answered.view())
    }

    /// The floor that no policy lowers: a human, known as one, and never the actor that asked.
    fn may_answer(&self, holding: &Holding, actor: &Actor) -> Result<(), Fault> {
        if self.registry.shared.policy_is_human(actor) && holding.by.id != actor.id {
            return Ok(());
        }
        self.registry.shared.metrics.refused("denied");
        Err(fault(&Refusal::Denied { right: Right::Approve, rule: Rule::HumansApprove }))
    }

    /// Tells a session's terminals and watchers about a held act.
    pub(crate) fn tell_held(&self, holding: &Holding) {
        let session = holding.session.and_then(|id| self.registry.find(&id.to_string()).ok());
        if let Some(session) = session {
            session.tell_held(holding);
        }
        self.gate().stirred.notify_waiters();
    }
}

impl Session {
    /// Tells terminals and watchers about a held act.
    pub(crate) fn tell_held(&self, holding: &Holding) {
        let command = match holding.command.as_str() {
            "" => holding.kind.clone(),
            command => crate::session::beginning(command),
        };
        let (by, why) = (holding.by.handle.clone(), holding.why.clone());
        if holding.state == ApprovalState::Open {
            let notice = Notice::Held {
                approval: holding.id.to_string(),
                by: by.clone(),
                command: command.clone(),
                why: why.clone(),
            };
            self.tell(Audience::All, &notice);
            let rule = holding.rule.clone();
            self.tell_watchers(What::Held { approval: holding.id, by, command, rule, why });
        } else {
            let by = holding.answered_by.as_ref().map(|by| by.handle.clone());
            let (approval, state, reason) = (holding.id, holding.state, holding.reason.clone());
            self.tell_watchers(What::HeldClosed { approval, state, by, reason });
        }
    }
}

fn closed(holding: &Holding) -> Fault {
    let by = holding.answered_by.as_ref();
    let message = match (holding.state, by) {
        (ApprovalState::Open, _) => "what it is about has changed".to_owned(),
        (ApprovalState::Expired, _) | (_, None) => "it has expired".to_owned(),
        (state, Some(by)) => format!("{by} already answered: {}", state.word()),
    };
    let mut fault = Fault::new(Code::ApprovalClosed, message).hint("see `holdfast approvals ls --all`");
    fault.details =
        Some(Box::new(serde_json::json!({ "state": holding.state, "by": by, "at_ms": holding.answered_ms })));
    fault
}

fn check(params: &ApprovalAnswerParams) -> Result<(), Fault> {
    let bad = |message: String| Err(Fault::new(Code::BadRequest, message));
    if params.reason.as_ref().is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return bad(format!("a reason may have at most {REASON_BYTES_MAX} bytes"));
    }
    match params.minutes {
        Some(minutes) if !params.approve || !(1..=MINUTES_MAX).contains(&minutes) => {
            bad(format!("`minutes` goes with an approval, from 1 to {MINUTES_MAX}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// What would be allowed in place of it, as far as that can be said.
fn instead(seen: &Seen, cwd: &str) -> Vec<String> {
    let mut all = Vec::new();
    if !seen.is_clear() {
        all.push("write the command out: no eval, no variable as command, no shell that reads a pipe".to_owned());
    }
    for risk in &seen.risks {
        let text = match risk {
            Risk::DeletesOutside | Risk::WritesOutside => {
                format!("write and delete below {cwd}, in /tmp or in a cache directory, by names that are written out")
            }
            Risk::DeletesUnknown => "name what is deleted, without variables".into(),
            Risk::DeletesHere => "name the files and directories in it that are to go".into(),
            Risk::RunsDownload => "download it to a file, read it, and run that file".into(),
            Risk::RewritesRemote => "push without force, or to a new branch".into(),
            Risk::Escalates => "do it with your own rights".into(),
            Risk::Network => "work without the network".into(),
            _ => continue,
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
