//! Who comes with a token, or by a login code; and who may make one.

use crate::serve::Server;
use holdfast_types::{Actor, ActorClass, Rights};
use holdfast_wire::tokens::{TokenNewAnswer, TokenNewParams, TokenView};
use holdfast_wire::{Code, Fault};
use std::time::Duration;

/// A token's end follows the wall clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

impl Server {
    /// Who shows a token, and the most it may do, now.
    pub(crate) fn token_holder(&self, token: &str) -> Result<(Actor, Rights), Fault> {
        let (actor, can) = self.tokens.borrow().good(token, crate::now_ms())?;
        if self.registry.shared.actors.borrow().vouched().get(&actor.id) == Some(&actor.handle) {
            return Ok((actor, can));
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
    pub(crate) fn log_out(&self, token: &str) {
        if self.tokens.borrow().is_browsers(token) {
            let _ = self.revoke(token);
        }
    }

    /// The id of the token with this text.
    pub(crate) fn token_of(&self, text: &str) -> Result<String, Fault> {
        self.tokens.borrow().find(text, crate::now_ms())
    }

    /// Makes a token. A human makes one for anybody, everybody else for themselves.
    pub(crate) fn token_new(&self, params: &TokenNewParams, by: &Actor) -> Result<TokenNewAnswer, Fault> {
        self.must_be_known(by)?;
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

    pub(crate) fn token_list(&self, actor: &Actor) -> Result<Vec<TokenView>, Fault> {
        self.must_be_known(actor)?;
        let is_human = self.registry.shared.policy().is_human(actor);
        let all = self.tokens.borrow().all(crate::now_ms()).into_iter();
        Ok(all.filter(|token| is_human || token.actor == actor.handle || token.by == actor.handle).collect())
    }

    pub(crate) fn token_revoke(&self, token: &str, by: &Actor) -> Result<TokenView, Fault> {
        self.must_be_known(by)?;
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

    /// Waits until a token is good no more.
    pub(crate) async fn token_ended(&self, token: &str) {
        loop {
            let fewer = self.fewer_tokens.notified();
            let until = match self.token_holder(token).and_then(|_| self.tokens.borrow().view(token)) {
                Ok(view) => view.until_ms,
                Err(_) => return,
            };
            let left = Duration::from_millis(until.saturating_sub(crate::now_ms()));
            let _ = tokio::time::timeout(left.min(LOOK_EVERY), fewer).await;
        }
    }
}
