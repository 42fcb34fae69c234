//! What actors do about the turn and about each other's rights, and the journal that tells of it.

use super::Session;
use holdfast_authority::{Ask, Caller, GrantId, Input, Reply, Revoke, Token};
use holdfast_door::Speaker;
use holdfast_session::Decided;
use holdfast_types::{Actor, ActorId, Right, Rights};
use holdfast_wire::params::Life;
use holdfast_wire::turns::{
    FrozeView, GiveParams, GrantParams, GrantView, GrantsAnswer, JournalAnswer, JournalParams, RevokeAnswer,
    RevokeParams, SeizeAnswer, SeizeParams, TEXT_BYTES_MAX, TurnAnswer, TurnParams,
};
use holdfast_wire::{Code, Fault};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A keeper answers at once; one that is stopped is not waited for longer than this.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// Bytes of journal in one answer.
const JOURNAL_BYTES: usize = 1024 * 1024;

impl Session {
    /// Takes, requests, withdraws, releases or thaws.
    pub async fn turn_asked(&self, params: &TurnParams, ask: Ask, actor: &Actor) -> Result<TurnAnswer, Fault> {
        self.running().await?;
        if matches!(ask, Ask::Take | Ask::Request) {
            self.lend_if_awaited(params.client, actor).await?;
        }
        let decided = self.ask(actor, params.client, ask, params.proof)?;
        if let Some(freeze) = decided.still {
            self.still(freeze).await?;
            // Nobody but the host could write into what was frozen.
            self.say_writer();
        }
        let mut answer = self.turn_answer(&decided);
        // A client that is attached is told by a notice.
        if answer.fence.is_some() && params.client.is_none() {
            answer.handover = self.handover_line(actor).await;
        }
        Ok(answer)
    }

    /// A human who asks for the turn gets a program's at once, if the session waits for a human.
    async fn lend_if_awaited(&self, client: Option<u32>, actor: &Actor) -> Result<(), Fault> {
        if self.with_core(|core, _, now| core.may_lend_to(actor, now)) {
            let hides = self.probe().await?.is_some_and(|probed| probed.hides());
            let by = self.caller(actor, client);
            self.with_core(|core, held, now| core.lend(held, now, by, hides));
        }
        Ok(())
    }

    /// Hands the turn over.
    pub async fn give(&self, params: &GiveParams, actor: &Actor) -> Result<TurnAnswer, Fault> {
        self.running().await?;
        let decided = self.ask(actor, params.client, Ask::Give { to: params.to.clone() }, params.proof)?;
        Ok(self.turn_answer(&decided))
    }

    fn turn_answer(&self, decided: &Decided) -> TurnAnswer {
        let (fence, before) = match decided.reply {
            Reply::Turn { fence } => (Some(fence), None),
            Reply::Waiting { before } => (None, Some(before)),
            Reply::Done | Reply::Granted(_) | Reply::Revoked(_) => (None, None),
        };
        TurnAnswer { fence, before, turn: self.turn(), handover: None }
    }

    /// Takes the turn whatever its holder does, and stops the tree if that is asked.
    pub async fn seize(&self, params: &SeizeParams, actor: &Actor) -> Result<SeizeAnswer, Fault> {
        let began = Instant::now();
        self.running().await?;
        let (freeze, reason) = (params.freeze, params.reason.clone());
        if reason.trim().is_empty() || reason.len() > TEXT_BYTES_MAX {
            return Err(Fault::new(Code::BadRequest, format!("a reason must have 1 to {TEXT_BYTES_MAX} bytes"))
                .hint("give a reason: the journal records it, and the holder that loses the turn sees it"));
        }
        let decided = self.ask(actor, params.client, Ask::Seize { freeze, reason }, params.proof)?;
        // The keeper answers behind the new fence and the flush: from there on nothing of the old holder gets through.
        let cut = async {
            let probed = self.probe().await;
            (probed, began.elapsed())
        };
        let frozen = async {
            match decided.still {
                Some(true) => self.still(true).await.map(|frozen| frozen.map(|f| (f, began.elapsed()))),
                Some(false) | None => Ok(None),
            }
        };
        let ((probed, cut), frozen) = tokio::join!(cut, frozen);
        probed?;
        let frozen = frozen?;
        self.metrics.seized(params.freeze, cut, frozen.as_ref().map(|(_, after)| *after));
        let froze = frozen.map(|(frozen, after)| FrozeView {
            how: frozen.how.word().into(),
            processes: frozen.processes as u32,
            refused: frozen.refused,
            us: after.as_micros() as u64,
        });
        // Of the decision: somebody else may have it by now.
        let fence = decided.fence().unwrap_or_else(|| self.fence());
        Ok(SeizeAnswer { fence, cut_us: cut.as_micros() as u64, froze, turn: self.turn() })
    }

    /// Stops the tree, or lets it go on; off this thread, one at a time.
    pub(crate) async fn still(&self, freeze: bool) -> Result<Option<holdfast_observe::Frozen>, Fault> {
        // Processes that stand still for a checkpoint or a move go on when that is over, or never.
        let _not_standing = if freeze { None } else { Some(self.reviving.lock().await) };
        if !freeze && self.moved().is_some() {
            return Ok(None);
        }
        let _one_at_a_time = self.stilling.lock().await;
        // What was decided last counts: a thaw that overtook its freeze must not be undone by it.
        let frozen = self.state.borrow().core.is_frozen();
        if frozen != freeze {
            return Ok(None);
        }
        if freeze {
            self.lease_still();
        } else if self.thaw_by_keeper().await? {
            self.with_core(|core, held, _| core.thawed(held));
            return Ok(None);
        }
        let (freezer, keeper) = (Arc::clone(&self.freezer), self.state.borrow().keeper_pid);
        let spared = self.own.spared();
        let stilled = crate::off_thread(move || {
            if freeze {
                freezer.freeze(keeper, &spared).map(Some)
            } else {
                freezer.thaw(keeper, &spared).map(|()| None)
            }
        });
        let stilled = stilled.await;
        let word = if freeze { "stopped" } else { "let go on" };
        let stilled = stilled.map_err(|error| {
            Fault::new(Code::Internal, format!("cannot have all processes of {} {word}: {error}", self.name()))
                .hint("try again; to see what this machine supports: holdfast doctor")
        })?;
        if !freeze {
            self.with_core(|core, held, _| core.thawed(held));
        }
        Ok(stilled)
    }

    /// What the terminal says of itself; none where the keeper does not answer.
    pub(crate) async fn probe(&self) -> Result<Option<super::Probed>, Fault> {
        self.running().await?;
        let (done, probed) = oneshot::channel();
        self.with_core(|core, held, _| {
            held.probes.push_back(done);
            core.probe(held);
        });
        Ok(tokio::time::timeout(PROBE_WAIT, probed).await.ok().and_then(Result::ok))
    }

    /// Passes rights on.
    pub fn grant(&self, params: &GrantParams, by: &Speaker) -> Result<GrantView, Fault> {
        // `all` of a client that does not know of files means all it knows.
        let is_all = params.rights.and(Rights::of(&[Right::FilesRead, Right::FilesWrite])) == Rights::ALL;
        if params.rights.has(Right::Start) && !is_all {
            return Err(Fault::new(Code::BadRequest, "`start` is not a right in a session: an actor's class has it")
                .hint("a human sets it in config.toml: rights_agent, rights_service, rights_device"));
        }
        let ask = Ask::Grant { to: params.to.clone(), rights: params.rights, until: params.until_ms };
        let token = by.path.cap().map(|cap| Token { id: cap.token.clone(), until: cap.until_ms });
        let caller = Caller { token, ..self.caller(&by.actor, None) };
        let Decided { reply, .. } = self.ask_as(caller, ask, params.proof)?;
        let made = match reply {
            Reply::Granted(id) => self.grant_views().into_iter().find(|grant| grant.id == id.0),
            Reply::Done | Reply::Turn { .. } | Reply::Waiting { .. } | Reply::Revoked(_) => None,
        };
        made.ok_or_else(|| Fault::new(Code::Internal, "the grant is gone already"))
    }

    /// Takes rights back.
    pub fn revoke(&self, params: &RevokeParams, actor: &Actor) -> Result<RevokeAnswer, Fault> {
        let what = match (params.grant, params.actor) {
            (Some(grant), None) => Revoke::Grant(GrantId(grant)),
            (None, Some(actor)) => Revoke::Actor(actor),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Fault::new(Code::BadRequest, "give either a grant or an actor"));
            }
        };
        let grants = match self.ask(actor, None, Ask::Revoke(what), params.proof)?.reply {
            Reply::Revoked(fallen) => fallen.into_iter().map(|id| id.0).collect(),
            Reply::Done | Reply::Turn { .. } | Reply::Waiting { .. } | Reply::Granted(_) => Vec::new(),
        };
        Ok(RevokeAnswer { grants })
    }

    /// What was granted here.
    pub fn grants(&self, actor: &Actor) -> GrantsAnswer {
        let grants = self.grant_views();
        let state = self.state.borrow();
        GrantsAnswer {
            grants,
            barred: state.core.authority().state().barred().collect(),
            defaults: state.core.authority().policy().defaults.clone(),
            you: actor.clone(),
            yours: state.rights(actor),
        }
    }

    fn grant_views(&self) -> Vec<GrantView> {
        let state = self.state.borrow();
        let view = |grant: &holdfast_authority::Grant| GrantView {
            id: grant.id.0,
            to: grant.to.clone(),
            by: grant.by.clone(),
            rights: grant.rights,
            until_ms: grant.until,
            at_ms: grant.at,
        };
        state.core.authority().state().grants().map(view).collect()
    }

    /// What an actor may do here now.
    pub fn rights(&self, actor: &Actor) -> Rights {
        self.state.borrow().rights(actor)
    }

    /// Lines of the journal.
    pub async fn journal(&self, params: &JournalParams) -> Result<(JournalAnswer, Vec<u8>), Fault> {
        if params.wait_ms == 0 {
            // What was typed until now is in it. Whoever follows gets it in bursts.
            self.drain_log();
        }
        let newest = self.state.borrow().journal.newest();
        let after = params.last.map_or(params.after, |last| params.after.max(newest.saturating_sub(last)));
        let read = || {
            let reader = self.state.borrow().journal.reader();
            crate::shares::aside(move || reader.read(after, JOURNAL_BYTES))
        };
        let failed = |error: std::io::Error| Fault::new(Code::Damaged, format!("cannot read the journal: {error}"));
        let mut lines = read().await.map_err(failed)?;
        if lines.bytes.is_empty() && params.wait_ms > 0 {
            let limit = Duration::from_millis(params.wait_ms);
            let grown = || {
                let state = self.state.borrow();
                (state.journal.newest() > after || matches!(state.life, Life::Ended | Life::Lost)).then_some(())
            };
            self.until(Some(limit), grown).await;
            lines = read().await.map_err(failed)?;
        }
        let end = !self.is_live() && !lines.more;
        let last = self.state.borrow().journal.last_on_disk();
        let answer = JournalAnswer {
            from: lines.from,
            to: lines.to,
            more: lines.more,
            end,
            newest: last.map(|last| last.seq),
            newest_hash: last.map(|last| last.hash),
        };
        Ok((answer, lines.bytes))
    }

    /// The host no longer knows a key.
    pub fn forget(&self, actor: ActorId) {
        let _ = self.decide(Input::Forgotten { actor });
    }

    /// Tokens are good no more: those through which something was given here end that.
    pub fn tokens_ended(&self, is_good: impl Fn(&str) -> bool) {
        let tokens: Vec<String> = {
            let state = self.state.borrow();
            let through = state.core.authority().state().grants().filter_map(|grant| grant.token.clone());
            through.filter(|token| !is_good(token)).collect()
        };
        if !tokens.is_empty() {
            let _ = self.decide(Input::TokensEnded { tokens });
        }
    }

    /// What the host says of actors has changed.
    pub fn policy_changed(&self, policy: holdfast_authority::Policy) {
        *self.state.borrow_mut().core.authority_mut().policy_mut() = policy;
        if self.is_live() {
            let _ = self.decide(Input::Tick);
        }
    }
}
