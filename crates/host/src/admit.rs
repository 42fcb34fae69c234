//! Who comes with a token, or by a login code; and who may make one.

use crate::serve::Server;
use holdfast_door::{Cap, Speaker};
use holdfast_types::{Actor, ActorClass};
use holdfast_wire::tokens::{TokenNewAnswer, TokenNewParams, TokenView};
use holdfast_wire::{Code, Fault};
use std::time::Duration;

/// A token's end follows the wall clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

impl Server {
    /// A speaker as it is now: what caps its path may be another, or have ended.
    pub(crate) fn judge(&self, by: &Speaker) -> Result<Speaker, Fault> {
        let Some(cap) = by.path.cap() else { return Ok(by.clone()) };
        let (actor, cap) = self.token_holder(&cap.token)?;
        Ok(Speaker { actor, path: by.path.under(cap) })
    }

    /// Who shows a token, and what caps it, now.
    fn token_holder(&self, token: &str) -> Result<(Actor, Cap), Fault> {
        let (actor, cap) = self.tokens.borrow().good(token, crate::now_ms())?;
        if self.registry.shared.actors.borrow().vouched().get(&actor.id) == Some(&actor.handle) {
            return Ok((actor, cap));
        }
        Err(Fault::new(Code::Unidentified, format!("this host no longer knows {}", actor.handle)))
    }

    /// A browser's token, for a code that was made for it.
    pub(crate) fn log_in(&self, code: &str) -> Result<String, Fault> {
        let now = crate::now_ms();
        let handle = self.codes.borrow_mut().take(code, now)?;
        let actor = self.registry.shared.actors.borrow().by_handle(&handle);
        let actor =
            actor.ok_or_else(|| Fault::new(Code::NoSuchActor, format!("this host no longer knows {handle}")))?;
        self.tokens.borrow_mut().add_browsers(&actor, now)
    }

    /// A browser signs out. A token it was lent by a link stays good for others.
    pub(crate) fn log_out(&self, by: &Speaker) {
        if let Some(cap) = by.path.cap().filter(|cap| self.tokens.borrow().is_browsers(&cap.token)) {
            let _ = self.revoke(&cap.token);
        }
    }

    /// Who shows the token with this text, and what caps it.
    pub(crate) fn shown(&self, text: &str) -> Result<(Actor, Cap), Fault> {
        let id = self.tokens.borrow().find(text, crate::now_ms())?;
        self.token_holder(&id)
    }

    /// Makes a token. A human makes one for anybody, everybody else for themselves.
    pub(crate) fn token_new(&self, params: &TokenNewParams, by: &Actor) -> Result<TokenNewAnswer, Fault> {
        let shared = &self.registry.shared;
        if params.actor != by.handle && !shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, format!("{by} may not create a token for {}", params.actor))
                .hint("a human makes tokens for others"));
        }
        if params.actor != by.handle && params.actor.class() == ActorClass::Human {
            return Err(Fault::new(Code::Denied, "a person makes their own tokens"));
        }
        shared.actors.borrow_mut().refresh();
        let known = shared.actors.borrow().by_handle(&params.actor);
        let actor =
            match known {
                Some(actor) => actor,
                None => shared.actors.borrow_mut().make(&params.actor).map_err(|error| {
                    Fault::new(Code::Unrecorded, format!("cannot register {}: {error}", params.actor))
                })?,
            };
        self.registry.actors_changed();
        let (text, token) = self.tokens.borrow_mut().add(params, &actor, &by.handle, crate::now_ms())?;
        Ok(TokenNewAnswer { text, token })
    }

    pub(crate) fn token_list(&self, actor: &Actor) -> Vec<TokenView> {
        let is_human = self.registry.shared.policy().is_human(actor);
        let all = self.tokens.borrow().all(crate::now_ms()).into_iter();
        all.filter(|token| is_human || token.actor == actor.handle || token.by == actor.handle).collect()
    }

    pub(crate) fn token_revoke(&self, token: &str, by: &Actor) -> Result<TokenView, Fault> {
        let known = self.tokens.borrow().view(token)?;
        if known.actor != by.handle && known.by != by.handle && !self.registry.shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, "only a human may revoke another actor's token"));
        }
        self.revoke(token)
    }

    fn revoke(&self, token: &str) -> Result<TokenView, Fault> {
        let gone = self.tokens.borrow_mut().revoke(token)?;
        self.fewer_tokens.notify_waiters();
        Ok(gone)
    }

    /// Waits until what caps a speaker is good no more; where nothing does, for ever.
    pub(crate) async fn cap_ended(&self, by: &Speaker) {
        loop {
            let fewer = self.fewer_tokens.notified();
            let Ok(speaker) = self.judge(by) else { return };
            let Some(until) = speaker.path.cap().map(|cap| cap.until_ms) else { return std::future::pending().await };
            let left = Duration::from_millis(until.saturating_sub(crate::now_ms()));
            let _ = tokio::time::timeout(left.min(LOOK_EVERY), fewer).await;
        }
    }
}
