//! Who comes with a token, or by a login code; and who may make one.

use crate::serve::Server;
use crate::tokens::{self, Login, Maker};
use holdfast_door::{Browser, Cap, Challenge, Path, Shown, Speaker};
use holdfast_types::{Actor, ActorClass, Handle};
use holdfast_wire::tokens::{LoginAnswer, TokenNewAnswer, TokenNewParams, TokenView};
use holdfast_wire::{Code, Fault};
use std::time::Duration;

/// A token's end follows the wall clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

impl Server {
    /// A speaker as it is now: what caps its path may be another, or have ended.
    pub(crate) fn judge(&self, by: &Speaker) -> Result<Speaker, Fault> {
        let Some(cap) = by.path.cap() else { return Ok(by.clone()) };
        let (actor, cap) = self.cap_holder(&cap.token)?;
        Ok(Speaker { actor, path: by.path.under(cap) })
    }

    /// Who shows a token, and what caps it, now.
    pub(crate) fn token_holder(&self, token: &str) -> Result<(Actor, Cap), Fault> {
        let (tokens, now) = (self.tokens.borrow(), crate::now_ms());
        let good = tokens.good(token, now)?;
        // Of those it was made with, too: whoever was forgotten leaves nothing behind that opens.
        let actors = self.registry.shared.actors.borrow();
        let unknown = tokens.actors(token, now)?.into_iter().find(|a| actors.vouched().get(&a.id) != Some(&a.handle));
        match unknown {
            None => Ok(good),
            Some(actor) => Err(Fault::new(Code::Unidentified, format!("this host no longer knows {}", actor.handle))),
        }
    }

    /// A code for a browser, which logs in as who asks.
    pub(crate) fn login_new(&self, by: &Actor, path: &Path) -> Result<LoginAnswer, Fault> {
        must_not_be_a_device(path)?;
        self.codes.borrow_mut().add(maker(&by.handle, path), crate::now_ms())
    }

    /// Who logs in by a code.
    pub(crate) fn whose_code(&self, code: &str) -> Result<Handle, Fault> {
        let login = self.codes.borrow().whose(code, crate::now_ms())?.clone();
        self.must_be_open(&login)?;
        Ok(login.actor)
    }

    /// What a browser gets for a code that was made for it: it stands for a token of its own.
    pub(crate) async fn log_in(&self, code: &str) -> Result<Browser, Fault> {
        let login = self.codes.borrow_mut().take(code, crate::now_ms())?;
        let _alone = self.changing_tokens.lock().await;
        self.must_be_open(&login)?;
        let handle = &login.actor;
        let actor = self.registry.shared.actors.borrow().by_handle(handle);
        let actor =
            actor.ok_or_else(|| Fault::new(Code::NoSuchActor, format!("this host no longer knows {handle}")))?;
        let by = Maker { actor: handle, token: login.token.as_deref() };
        let made = self.tokens.borrow().add_browsers(&actor, by, crate::now_ms())?;
        self.keep_tokens(made.change).await?;
        Ok(self.browsers.parts(&made.view.id))
    }

    /// What a browser gets for a token that it was lent by a link.
    pub(crate) fn lend(&self, by: &Speaker) -> Result<Browser, Fault> {
        let cap = by.path.cap().ok_or_else(|| Fault::new(Code::Unidentified, "only a token logs a browser in"))?;
        Ok(self.browsers.parts(&cap.token))
    }

    /// The token that asked for a code is still good.
    fn must_be_open(&self, login: &Login) -> Result<(), Fault> {
        let asked_by = login.token.as_ref();
        asked_by.map_or(Ok(()), |token| self.token_holder(token).map(|_| ()).map_err(|_| tokens::no_code()))
    }

    /// A browser signs out. A token it was lent by a link stays good for others.
    pub(crate) async fn log_out(&self, by: &Speaker) {
        if let Some(cap) = by.path.cap().filter(|cap| self.tokens.borrow().is_browsers(&cap.token)) {
            let _ = self.revoke(&cap.token).await;
        }
    }

    /// Who shows a token, and what caps it: by its text, or as a browser does.
    pub(crate) fn shown(&self, shown: &Shown) -> Result<(Actor, Cap), Fault> {
        let id = match shown {
            Shown::Text(text) => self.tokens.borrow().find(text, crate::now_ms())?,
            Shown::Browser { cookie, page } => self.browsers.shown(cookie, page, crate::now().clock_ms)?,
        };
        self.token_holder(&id)
    }

    /// Shows a browser's page that this is its host, and asks it for its own proof.
    pub(crate) fn challenge(&self, cookie: &str, nonce: &str) -> Result<Challenge, Fault> {
        self.browsers.challenge(cookie, nonce, crate::now().clock_ms)
    }

    /// Makes a token. A human makes one for anybody, everybody else for themselves.
    pub(crate) async fn token_new(
        &self,
        params: &TokenNewParams,
        by: &Actor,
        path: &Path,
    ) -> Result<TokenNewAnswer, Fault> {
        must_not_be_a_device(path)?;
        let shared = &self.registry.shared;
        if params.actor != by.handle && !shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, format!("{by} may not create a token for {}", params.actor))
                .hint("a human makes tokens for others"));
        }
        if params.actor != by.handle && params.actor.class() == ActorClass::Human {
            return Err(Fault::new(Code::Denied, "a person makes their own tokens"));
        }
        if params.actor.is_reserved() {
            return Err(Fault::new(Code::Denied, format!("the host itself acts as {}", params.actor))
                .hint("choose another name"));
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
        let _alone = self.changing_tokens.lock().await;
        let made = self.tokens.borrow().add(params, &actor, maker(&by.handle, path), crate::now_ms())?;
        self.keep_tokens(made.change).await?;
        Ok(TokenNewAnswer { text: made.text, token: made.view })
    }

    pub(crate) fn token_list(&self, actor: &Actor) -> Vec<TokenView> {
        let is_human = self.registry.shared.policy().is_human(actor);
        let all = self.tokens.borrow().all(crate::now_ms()).into_iter();
        all.filter(|token| is_human || token.actor == actor.handle || token.by == actor.handle).collect()
    }

    pub(crate) async fn token_revoke(&self, token: &str, by: &Actor) -> Result<TokenView, Fault> {
        let known = self.tokens.borrow().view(token)?;
        if known.actor != by.handle && known.by != by.handle && !self.registry.shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, "only a human may revoke another actor's token"));
        }
        self.revoke(token).await
    }

    /// Takes a token back, with all that was made with it and given through it: at once, and then on disk.
    async fn revoke(&self, token: &str) -> Result<TokenView, Fault> {
        let gone = self.tokens.borrow_mut().revoke(token)?;
        self.fewer_tokens();
        let _alone = self.changing_tokens.lock().await;
        let change = self.tokens.borrow().without_revoked();
        self.keep_tokens(change).await.map_err(|fault| {
            fault.hint("this host takes the token no more, but the next one would: make room, and revoke it again")
        })?;
        Ok(gone)
    }

    /// Has the tokens on disk for certain, and only then in use.
    async fn keep_tokens(&self, change: tokens::Change) -> Result<(), Fault> {
        let write = change.clone();
        let written = crate::disk::at_disk(move || write.write()).await;
        written.map_err(|error| Fault::new(Code::Unrecorded, format!("cannot write the tokens: {error}")))?;
        self.tokens.borrow_mut().adopt(change);
        Ok(())
    }

    /// Fewer tokens are good than before: their connections end, and the grants that were given through them.
    pub(crate) fn fewer_tokens(&self) {
        self.fewer_tokens.notify_waiters();
        for session in self.registry.all() {
            session.tokens_ended(|token| self.cap_holder(token).is_ok());
        }
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

/// A token would let its device in past the relay, and outlast it.
fn must_not_be_a_device(path: &Path) -> Result<(), Fault> {
    match path {
        Path::Relay(_) => Err(Fault::new(Code::Denied, "tokens and login links are made on the host's own machine")),
        Path::Local | Path::Http(_) | Path::Mcp(_) => Ok(()),
    }
}

/// Who makes something, and with which token.
fn maker<'a>(actor: &'a Handle, path: &'a Path) -> Maker<'a> {
    Maker { actor, token: path.cap().map(|cap| cap.token.as_str()) }
}
