//! Login codes: each serves a browser once, and not for long.

use super::{Maker, hash, is_human};
use holdfast_types::{Full, Handle, Places, TimeMs};
use holdfast_wire::tokens::LoginAnswer;
use holdfast_wire::{Code, Fault};

/// How long a login code is good: enough to open a browser, too short to be found lying about.
pub(super) const CODE_MS: u64 = 5 * 60 * 1000;
/// Codes at once: nobody opens more browsers in five minutes. The next one takes the place of the actor's oldest.
const CODES: Places = Places { all: 100, not_human: 50, of_one: 10, of_human: 10 };

/// Login codes that were not used yet, by their hashes. They end with the host.
#[derive(Debug, Default)]
pub struct Codes(Vec<Login>);

/// What a login code stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    hash: String,
    /// Who logs in.
    pub actor: Handle,
    until_ms: TimeMs,
    /// The token that asked for it: what comes of it ends with that one.
    pub token: Option<String>,
}

impl Codes {
    /// Makes one for its maker.
    pub fn add(&mut self, by: Maker<'_>, now: TimeMs) -> Result<LoginAnswer, Fault> {
        let code = holdfast_types::hex_text(&crate::random_token());
        let until_ms = now.saturating_add(CODE_MS);
        self.0.retain(|login| login.until_ms > now);
        let others = self.0.iter().map(|login| (&login.actor, is_human(&login.actor)));
        match CODES.admit(&by.actor, is_human(by.actor), others) {
            Ok(()) => {}
            Err(Full::OfOne(_)) => {
                let oldest = self.0.iter().position(|login| login.actor == *by.actor);
                oldest.map(|at| self.0.remove(at));
            }
            Err(full) => {
                return Err(Fault::new(Code::TooMany, format!("too many {}: {}", full.of("login links"), full.max()))
                    .hint("an unused link expires after five minutes; try again then"));
            }
        }
        let (hash, actor, token) = (hash(&code), by.actor.clone(), by.token.map(str::to_owned));
        self.0.push(Login { hash, actor, until_ms, token });
        Ok(LoginAnswer { code, until_ms })
    }

    /// What a code stands for.
    pub fn whose(&self, code: &str, now: TimeMs) -> Result<&Login, Fault> {
        self.place(code, now).map(|place| &self.0[place])
    }

    /// What a code stands for; it is used up.
    pub fn take(&mut self, code: &str, now: TimeMs) -> Result<Login, Fault> {
        self.place(code, now).map(|place| self.0.remove(place))
    }

    fn place(&self, code: &str, now: TimeMs) -> Result<usize, Fault> {
        let hash = hash(code);
        self.0.iter().position(|login| login.hash == hash && login.until_ms > now).ok_or_else(no_code)
    }
}

/// A login code is good no more.
pub fn no_code() -> Fault {
    Fault::new(Code::Unidentified, "this link was already used, or has expired").hint("get a new link: holdfast web")
}
