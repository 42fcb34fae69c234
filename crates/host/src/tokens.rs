//! Tokens: `<state>/tokens.json`, with a hash in place of each token's text.
//!
//! Whether a token is good is asked at every act, never once at the start of a connection: one that was revoked or has ended
//! opens nothing any more, and so does one whose actor the host forgot, and one that was made with such a token.

mod browsers;
mod codes;

pub use browsers::Browsers;
pub use codes::{Codes, Login, no_code};

use holdfast_door::Cap;
use holdfast_store::{Survives, TOKENS, get_json, put_json};
use holdfast_types::{Actor, ActorClass, ActorId, FOREVER, Handle, Places, RUN_NEW, Rights, TimeMs};
use holdfast_wire::tokens::{TokenNewParams, TokenView};
use holdfast_wire::{Call, Code, Fault};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// How long a token is good unless said otherwise: a forgotten one does not open a machine for ever.
const TOKEN_MS_DEFAULT: u64 = 30 * 24 * 60 * 60 * 1000;
/// Most tokens at once, by who made them: a link for each of a large team, and each answer to `token.list` still small. A
/// program that makes one for each of its runs finds its share full, and nobody else's.
const TOKENS_AT_ONCE: Places = Places { all: 1000, not_human: 500, of_one: 100, of_human: 500 };
/// Longest note: a line.
const NOTE_BYTES_MAX: usize = 200;
const FILE: &str = "tokens.json";

/// Most tokens that stand on one another: a machine's, a program's, a browser's, a link's, and as many again. Each use looks through them.
const CHAIN_MAX: usize = 8;

/// Who makes a token or a login code, and with which token; none: with the actor's own key.
#[derive(Debug, Clone, Copy)]
pub struct Maker<'a> {
    pub actor: &'a Handle,
    pub token: Option<&'a str>,
}

/// A token as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    hash: String,
    /// The actor's key: another actor of the same name is somebody else.
    key: ActorId,
    /// A browser came by it by a code, and it goes with the browser.
    #[serde(default)]
    browsers: bool,
    /// It was taken back, and that is on its way to the disk, or could not be written: this host takes it no more.
    #[serde(skip)]
    revoked: bool,
    #[serde(flatten)]
    view: TokenView,
}

/// All tokens of a home.
#[derive(Debug)]
pub struct Tokens {
    state: PathBuf,
    kept: Vec<Kept>,
}

/// All tokens as they shall be: [written](Change::write) by a thread that may wait for the disk, then [adopted](Tokens::adopt).
#[derive(Debug, Clone)]
pub struct Change {
    state: PathBuf,
    kept: Vec<Kept>,
}

impl Change {
    /// Writes them, so that they survive a power cut: one that was revoked must not be good again.
    pub fn write(&self) -> io::Result<()> {
        put_json(&TOKENS, &self.state, FILE, &self.kept, Survives::PowerCut)
    }
}

/// A token that was made, and is good once its change is adopted.
#[derive(Debug)]
pub struct Made {
    pub text: String,
    pub view: TokenView,
    pub change: Change,
}

impl Tokens {
    /// Reads them. A file that cannot be read opens nothing.
    pub fn load(state: &Path) -> Tokens {
        let kept = get_json(&TOKENS, &state.join(FILE)).map(Option::unwrap_or_default).unwrap_or_else(|why| {
            tracing::error!("{}: {why}; no token is good", state.join(FILE).display());
            Vec::new()
        });
        Tokens { state: state.to_owned(), kept }
    }

    /// Makes one for an actor. One that is made with a token ends with it at the latest.
    pub fn add(&self, params: &TokenNewParams, actor: &Actor, by: Maker<'_>, now: TimeMs) -> Result<Made, Fault> {
        self.make(params, actor, by, now, false)
    }

    /// Makes one for a browser that logs in: it goes when that one signs out.
    pub fn add_browsers(&self, actor: &Actor, by: Maker<'_>, now: TimeMs) -> Result<Made, Fault> {
        let params = TokenNewParams { actor: actor.handle.clone(), can: None, for_ms: None, note: "a browser".into() };
        self.make(&params, actor, by, now, true)
    }

    fn make(
        &self,
        params: &TokenNewParams,
        actor: &Actor,
        by: Maker<'_>,
        now: TimeMs,
        browsers: bool,
    ) -> Result<Made, Fault> {
        if params.note.len() > NOTE_BYTES_MAX || params.note.chars().any(char::is_control) {
            return Err(Fault::new(
                Code::BadRequest,
                format!("a note must be one line of at most {NOTE_BYTES_MAX} bytes"),
            ));
        }
        if params.can.is_some_and(Rights::is_empty) {
            return Err(Fault::new(Code::EmptyGrant, "a token that may do nothing is good for nothing"));
        }
        let chain = by.token.map_or(Ok(Vec::new()), |token| self.chain(token, now))?;
        if chain.len() >= CHAIN_MAX {
            return Err(Fault::new(Code::TooMany, format!("{CHAIN_MAX} tokens were made with one another already"))
                .hint("make it with an earlier one, or on the host's machine: holdfast token new"));
        }
        let longest = chain.iter().map(|kept| kept.view.until_ms).min().unwrap_or(FOREVER);
        let mut change = self.change(|kept| kept.view.until_ms > now);
        let others = change.kept.iter().map(|kept| (&kept.view.by, is_human(&kept.view.by)));
        TOKENS_AT_ONCE.admit(&by.actor, is_human(by.actor), others).map_err(|full| {
            Fault::new(Code::TooMany, format!("too many {}: {}", full.of("tokens"), full.max()))
                .hint("revoke some: holdfast token ls, holdfast token revoke ID")
        })?;
        let secret = [crate::random_token(), crate::random_token()].concat();
        let text = format!("hf_{}", holdfast_types::hex_text(&secret));
        let view = TokenView {
            id: format!("tok_{}", holdfast_types::hex_text(&crate::random_token()[..6])),
            actor: actor.handle.clone(),
            can: params.can,
            by: by.actor.clone(),
            created_ms: now,
            until_ms: now.saturating_add(params.for_ms.unwrap_or(TOKEN_MS_DEFAULT)).min(longest),
            note: params.note.clone(),
            parent: by.token.map(str::to_owned),
        };
        change.kept.push(Kept { hash: hash(&text), key: actor.id, browsers, revoked: false, view: view.clone() });
        Ok(Made { text, view, change })
    }

    /// Those that stay.
    fn change(&self, stays: impl Fn(&Kept) -> bool) -> Change {
        let kept = self.kept.iter().filter(|kept| !kept.revoked && stays(kept)).cloned().collect();
        Change { state: self.state.clone(), kept }
    }

    /// A change was written.
    pub fn adopt(&mut self, change: Change) {
        // What was taken back while it was written stays so.
        let revoked: Vec<String> =
            self.kept.iter().filter(|kept| kept.revoked).map(|kept| kept.view.id.clone()).collect();
        self.kept = change.kept;
        self.kept.iter_mut().for_each(|kept| kept.revoked = revoked.contains(&kept.view.id));
    }

    /// Whether it was made for a browser.
    pub fn is_browsers(&self, id: &str) -> bool {
        self.kept.iter().any(|kept| kept.view.id == id && kept.browsers)
    }

    /// Takes one back, and all that were made with it: they are good no more, from now on.
    pub fn revoke(&mut self, id: &str) -> Result<TokenView, Fault> {
        let gone = self.view(id)?;
        let mut ids = vec![gone.id.clone()];
        let mut at = 0;
        while let Some(parent) = ids.get(at).cloned() {
            let made = self.kept.iter().filter(|kept| kept.view.parent.as_ref() == Some(&parent));
            let made: Vec<String> = made.map(|kept| kept.view.id.clone()).filter(|id| !ids.contains(id)).collect();
            ids.extend(made);
            at += 1;
        }
        self.kept.iter_mut().filter(|kept| ids.contains(&kept.view.id)).for_each(|kept| kept.revoked = true);
        Ok(gone)
    }

    /// The file without those that were taken back.
    pub fn without_revoked(&self) -> Change {
        self.change(|_| true)
    }

    /// One by its id.
    pub fn view(&self, id: &str) -> Result<TokenView, Fault> {
        let found = self.kept.iter().find(|kept| kept.view.id == id);
        found
            .map(|kept| kept.view.clone())
            .ok_or_else(|| Fault::new(Code::NoSuchToken, format!("no token {id:?}")).hint("see `holdfast token ls`"))
    }

    /// Those that have not ended.
    pub fn all(&self, now: TimeMs) -> Vec<TokenView> {
        let is_good = |kept: &&Kept| !kept.revoked && kept.view.until_ms > now;
        self.kept.iter().filter(is_good).map(|kept| kept.view.clone()).collect()
    }

    /// The id of the token with this text.
    pub fn find(&self, text: &str, now: TimeMs) -> Result<String, Fault> {
        let hash = hash(text);
        let id = self.kept.iter().find(|kept| kept.hash == hash).map(|kept| kept.view.id.clone());
        let id = id.ok_or_else(|| no_token("the token is not known here"))?;
        self.good(&id, now).map(|_| id)
    }

    /// Who a token's holder is and what caps it, now.
    pub fn good(&self, id: &str, now: TimeMs) -> Result<(Actor, Cap), Fault> {
        let chain = self.chain(id, now)?;
        let kept = chain.first().ok_or_else(|| no_token("the token was revoked"))?;
        let (token, can) = (kept.view.id.clone(), kept.view.can.unwrap_or(Rights::ALL));
        Ok((kept.actor(), Cap { token, can, until_ms: kept.view.until_ms }))
    }

    /// The actors of a token and of those it was made with: each must be known for it to be good.
    pub fn actors(&self, id: &str, now: TimeMs) -> Result<Vec<Actor>, Fault> {
        Ok(self.chain(id, now)?.into_iter().map(Kept::actor).collect())
    }

    /// A token and those it was made with, itself first. Where one of them is not good, none of them is.
    fn chain(&self, id: &str, now: TimeMs) -> Result<Vec<&Kept>, Fault> {
        let mut chain: Vec<&Kept> = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let which = if chain.is_empty() { "the token" } else { "the token that this one was made with" };
            let kept = self.kept.iter().find(|kept| kept.view.id == id && !kept.revoked);
            let kept = kept.ok_or_else(|| no_token(&format!("{which} was revoked")))?;
            if kept.view.until_ms <= now {
                return Err(no_token(&format!("{which} has ended")));
            }
            if chain.len() >= CHAIN_MAX {
                return Err(no_token("the token stands on too many others"));
            }
            chain.push(kept);
            next = kept.view.parent.as_deref();
        }
        Ok(chain)
    }
}

impl Kept {
    fn actor(&self) -> Actor {
        Actor { id: self.key, handle: self.view.actor.clone() }
    }
}

/// Whether this is a person's: who makes tokens and links is known to the host, and is what its handle says.
fn is_human(handle: &Handle) -> bool {
    handle.class() == ActorClass::Human
}

fn no_token(why: &str) -> Fault {
    Fault::new(Code::Unidentified, why).hint("create a new token on the host's machine: holdfast token new")
}

fn hash(text: &str) -> String {
    holdfast_types::hex_text(&Sha256::digest(text.as_bytes()))
}

/// Whether a call lies within a token's rights; what its actor may do is another question.
pub fn allows(can: Rights, call: &Call) -> Result<(), Fault> {
    let needed = call.row().terms.rights;
    let needed = if needed.is_empty() || can.meets(needed) { needs_besides(call) } else { needed };
    let carries = needed.is_empty() || can.meets(needed);
    let missing = passed_on(call).without(can);
    if carries && !missing.is_empty() {
        let mut fault = Fault::new(Code::TooWide, format!("this token cannot pass on {missing}: it does not carry it"))
            .hint(format!("it carries {can}"));
        fault.details = Some(Box::new(serde_json::json!({ "missing": missing })));
        return Err(fault);
    }
    let Some(right) = needed.iter().next().filter(|_| !carries) else { return Ok(()) };
    let mut fault = Fault::new(Code::Denied, format!("this token does not carry the right `{right}`"))
        .hint(format!("it carries {can}"));
    fault.details = Some(Box::new(serde_json::json!({ "right": right, "can": can })));
    Err(fault)
}

/// What a call needs besides the rights of its terms.
fn needs_besides(call: &Call) -> Rights {
    match call {
        Call::RunStart(params) if params.new.is_some() => RUN_NEW,
        _ => Rights::NONE,
    }
}

/// What a call gives to others, or to the same actor in another token.
fn passed_on(call: &Call) -> Rights {
    match call {
        Call::TokenNew(params) => params.can.unwrap_or(Rights::ALL),
        // A flow acts by all that its starter may do, whatever started it.
        Call::LoginNew(_) | Call::FlowStart(_) => Rights::ALL,
        Call::Grant(params) => params.rights,
        Call::InviteNew(params) => crate::relays::passes_on(params),
        _ => Rights::NONE,
    }
}

#[cfg(test)]
mod crowded;

#[cfg(test)]
mod tests {
    use super::codes::CODE_MS;
    use super::*;
    use holdfast_types::Right;

    fn bot() -> Actor {
        Actor { id: ActorId([7; 32]), handle: "agent:bot".parse().unwrap() }
    }

    fn params(can: Option<&str>, for_ms: Option<u64>) -> TokenNewParams {
        let can = can.map(|can| can.parse().unwrap());
        TokenNewParams { actor: bot().handle, can, for_ms, note: String::new() }
    }

    fn ann() -> Handle {
        "human:ann".parse().unwrap()
    }

    fn by(actor: &Handle) -> Maker<'_> {
        Maker { actor, token: None }
    }

    /// Makes one, and keeps it.
    fn add(tokens: &mut Tokens, params: &TokenNewParams, by: Maker<'_>, now: TimeMs) -> (String, TokenView) {
        let Made { text, view, change } = tokens.add(params, &bot(), by, now).unwrap();
        change.write().unwrap();
        tokens.adopt(change);
        (text, view)
    }

    fn revoke(tokens: &mut Tokens, id: &str) -> Result<TokenView, Fault> {
        let gone = tokens.revoke(id)?;
        let change = tokens.without_revoked();
        change.write().unwrap();
        tokens.adopt(change);
        Ok(gone)
    }

    #[test]
    fn a_token_that_was_made_with_another_ends_with_it_and_not_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(dir.path());
        let (ann, forever) = (ann(), params(None, Some(u64::MAX)));
        let (_, first) = add(&mut tokens, &params(None, Some(1000)), by(&ann), 5000);
        let (child_text, child) = add(&mut tokens, &forever, Maker { actor: &ann, token: Some(&first.id) }, 5000);
        let (_, grandchild) = add(&mut tokens, &forever, Maker { actor: &ann, token: Some(&child.id) }, 5000);
        let (_, short) = add(&mut tokens, &params(None, Some(10)), Maker { actor: &ann, token: Some(&first.id) }, 5000);
        assert_eq!([child.until_ms, grandchild.until_ms, short.until_ms], [6000, 6000, 5010]);
        assert_eq!((&child.parent, &grandchild.parent), (&Some(first.id.clone()), &Some(child.id.clone())));
        let (_, other) = add(&mut tokens, &forever, by(&ann), 5000);
        // Also for the next host.
        let mut tokens = Tokens::load(dir.path());
        assert!(tokens.good(&grandchild.id, 5500).is_ok());
        tokens.revoke(&first.id).unwrap();
        for _ in 0..2 {
            for id in [&first.id, &child.id, &grandchild.id, &short.id] {
                assert_eq!(tokens.good(id, 5001).unwrap_err().code, Code::Unidentified);
            }
            assert_eq!(tokens.find(&child_text, 5001).unwrap_err().code, Code::Unidentified);
            assert!(tokens.good(&other.id, 5001).is_ok());
            let refused =
                tokens.add(&forever, &bot(), Maker { actor: &ann, token: Some(&child.id) }, 5001).unwrap_err();
            assert_eq!(refused.code, Code::Unidentified);
            // Before it is written, and after.
            let change = tokens.without_revoked();
            change.write().unwrap();
            tokens = Tokens::load(dir.path());
        }
        assert_eq!(tokens.all(5001).len(), 1);
    }

    #[test]
    fn what_is_revoked_while_another_change_is_written_stays_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(dir.path());
        let ann = ann();
        let (text, view) = add(&mut tokens, &params(None, None), by(&ann), 5000);
        let Made { change, .. } = tokens.add(&params(None, None), &bot(), by(&ann), 5000).unwrap();
        tokens.revoke(&view.id).unwrap();
        change.write().unwrap();
        tokens.adopt(change);
        assert_eq!(tokens.find(&text, 5000).unwrap_err().code, Code::Unidentified);
        // It can be taken back once more, where it could not be written the first time.
        assert_eq!(revoke(&mut tokens, &view.id).unwrap().id, view.id);
        assert_eq!(revoke(&mut tokens, &view.id).unwrap_err().code, Code::NoSuchToken);
        assert_eq!(Tokens::load(dir.path()).all(5000).len(), 1);
    }

    #[test]
    fn so_many_tokens_stand_on_one_another_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(dir.path());
        let ann = ann();
        let mut last = add(&mut tokens, &params(None, None), by(&ann), 5000).1.id;
        for _ in 1..CHAIN_MAX {
            last = add(&mut tokens, &params(None, None), Maker { actor: &ann, token: Some(&last) }, 5000).1.id;
        }
        assert!(tokens.good(&last, 5000).is_ok());
        let refused =
            tokens.add(&params(None, None), &bot(), Maker { actor: &ann, token: Some(&last) }, 5000).unwrap_err();
        assert_eq!(refused.code, Code::TooMany);
    }

    #[test]
    fn a_token_is_good_until_it_ends_or_is_revoked_also_for_the_next_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(dir.path());
        let (text, view) = add(&mut tokens, &params(Some("observe"), Some(1000)), by(&ann()), 5000);
        let (other, _) = add(&mut tokens, &params(None, None), by(&ann()), 5000);
        let file = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(!file.contains(&text), "the text is not kept");
        let mut tokens = Tokens::load(dir.path());
        assert_eq!(tokens.find(&text, 5999).unwrap(), view.id);
        let cap = Cap { token: view.id.clone(), can: Right::Observe.into(), until_ms: 6000 };
        assert_eq!(tokens.good(&view.id, 5999).unwrap(), (bot(), cap));
        assert_eq!(tokens.find(&text, 6000).unwrap_err().code, Code::Unidentified);
        assert_eq!(tokens.find("hf_00", 5000).unwrap_err().code, Code::Unidentified);
        let id = tokens.find(&other, 6000).unwrap();
        revoke(&mut tokens, &id).unwrap();
        assert_eq!(tokens.good(&id, 6000).unwrap_err().code, Code::Unidentified);
        assert_eq!(Tokens::load(dir.path()).find(&other, 6000).unwrap_err().code, Code::Unidentified);
        assert_eq!(revoke(&mut tokens, &id).unwrap_err().code, Code::NoSuchToken);
    }

    #[test]
    fn a_token_narrows_what_may_be_asked() {
        let call = |name: &str, params| Call::decode(name, params).unwrap();
        let observe = Rights::from(Right::Observe);
        let session = serde_json::json!({ "session": "s" });
        for (name, params, allowed) in [
            ("session.list", serde_json::json!({}), true),
            ("session.get", session.clone(), true),
            ("turn.take", session.clone(), false),
            ("turn.release", session.clone(), false),
            ("session.end", session.clone(), false),
            ("session.new", serde_json::json!({ "command": ["sh"], "cwd": "/" }), false),
            ("host.stop", serde_json::json!({}), false),
            ("token.new", serde_json::json!({ "actor": "agent:x" }), false),
        ] {
            assert_eq!(allows(observe, &call(name, params.clone())).is_ok(), allowed, "{name}");
            assert!(allows(Rights::ALL, &call(name, params)).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_token_carries_one_of_the_rights_of_the_terms() {
        let session = serde_json::json!({ "session": "s" });
        let to = serde_json::to_value(bot()).unwrap();
        let give = serde_json::json!({ "session": "s", "to": to });
        let revoke = serde_json::json!({ "session": "s", "grant": 1 });
        for (name, params, opened_by) in [
            ("session.list", serde_json::json!({}), "observe"),
            ("session.state", session.clone(), "observe"),
            (
                "actor.me",
                serde_json::json!({}),
                "observe,type,run,start,signal,seize,grant,approve,checkpoint,fork,end,configure,files:read,files:write",
            ),
            ("session.new", serde_json::json!({}), "start"),
            ("run.start", serde_json::json!({ "session": "s", "command": "x" }), "run"),
            ("run.start", serde_json::json!({ "new": {}, "command": "x" }), ""),
            ("turn.take", session.clone(), "type,run,seize"),
            ("turn.withdraw", session.clone(), "type,run,seize"),
            ("turn.release", session.clone(), "type,run,seize"),
            ("turn.give", give, "type,run,seize"),
            ("turn.thaw", session, "seize"),
            ("grant.revoke", revoke, "grant"),
            ("actor.remove", serde_json::json!({ "handle": "agent:x" }), "configure"),
        ] {
            let call = Call::decode(name, params).unwrap();
            let opens = Right::EACH.iter().filter(|right| allows((**right).into(), &call).is_ok());
            assert_eq!(Rights::of(&opens.copied().collect::<Vec<_>>()).to_string(), opened_by, "{name}");
        }
    }

    #[test]
    fn a_token_passes_on_no_more_than_it_carries() {
        let call = |name: &str, params| Call::decode(name, params).unwrap();
        let can: Rights = "observe,grant".parse().unwrap();
        let make = |can: serde_json::Value| call("token.new", serde_json::json!({ "actor": "agent:x", "can": can }));
        assert!(allows(can, &make("observe".into())).is_ok());
        assert_eq!(allows(can, &make("observe,type".into())).unwrap_err().code, Code::TooWide);
        assert_eq!(allows(can, &make(serde_json::Value::Null)).unwrap_err().code, Code::TooWide);
        assert_eq!(allows(can, &call("login.new", serde_json::json!({}))).unwrap_err().code, Code::TooWide);
        let to = serde_json::to_value(bot()).unwrap();
        let grant = |rights: &str| call("grant.add", serde_json::json!({ "session": "s", "to": to, "rights": rights }));
        assert!(allows(can, &grant("observe")).is_ok());
        assert_eq!(allows(can, &grant("type")).unwrap_err().code, Code::TooWide);
        assert!(
            allows(Rights::ALL, &grant("type")).is_ok() && allows(Rights::ALL, &make(serde_json::Value::Null)).is_ok()
        );
    }

    #[test]
    fn a_clock_that_jumps_ends_tokens_and_codes_early_or_late_and_opens_none_that_was_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(dir.path());
        let (text, view) = add(&mut tokens, &params(None, Some(1000)), by(&ann()), 5000);
        // Their end is a moment of the wall clock: ahead it comes early, and back it comes late.
        assert_eq!(tokens.find(&text, u64::MAX).unwrap_err().code, Code::Unidentified);
        assert_eq!(tokens.find(&text, 0).unwrap(), view.id);
        let (forever, view) = add(&mut tokens, &params(None, Some(u64::MAX)), by(&ann()), u64::MAX - 1);
        assert_eq!((view.until_ms, tokens.find(&forever, u64::MAX - 1).is_ok()), (holdfast_types::FOREVER, true));
        revoke(&mut tokens, &view.id).unwrap();
        assert_eq!(tokens.find(&forever, 0).unwrap_err().code, Code::Unidentified);
        let mut codes = Codes::default();
        let code = codes.add(by(&bot().handle), u64::MAX).unwrap().code;
        assert_eq!(codes.take(&code, u64::MAX).unwrap_err().code, Code::Unidentified);
        let code = codes.add(by(&bot().handle), 9_000).unwrap().code;
        assert_eq!(codes.take(&code, 0).unwrap().actor, bot().handle);
        assert_eq!(codes.take(&code, 0).unwrap_err().code, Code::Unidentified);
    }

    #[test]
    fn a_code_serves_once_and_not_for_long() {
        let mut codes = Codes::default();
        let code = codes.add(by(&bot().handle), 0).unwrap().code;
        let late = codes.add(by(&bot().handle), 0).unwrap().code;
        assert_eq!(codes.take(&code, 1).unwrap().actor, bot().handle);
        assert_eq!(codes.take(&code, 1).unwrap_err().code, Code::Unidentified);
        assert_eq!(codes.take(&late, CODE_MS).unwrap_err().code, Code::Unidentified);
    }

    #[test]
    fn a_token_of_the_version_before_is_still_good_and_a_later_versions_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (old, path) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1"), dir.path().join(FILE));
        std::fs::copy(old.join(FILE), &path).unwrap();
        let mut tokens = Tokens::load(dir.path());
        let text = "hf_ba506b73c7360c208942acb9f5142f8b6a8254e210233a67aa287f3eae5268b8";
        assert_eq!(tokens.find(text, 0).unwrap(), "tok_88ceca1dce9e");
        add(&mut tokens, &params(None, None), by(&bot().handle), 5000);
        assert_eq!(Tokens::load(dir.path()).find(text, 0).unwrap(), "tok_88ceca1dce9e");
        let newer = holdfast_store::Format { version: 3, ..TOKENS }.seal(b"[]");
        std::fs::write(&path, &newer).unwrap();
        let made = Tokens::load(dir.path()).add(&params(None, None), &bot(), by(&bot().handle), 5000).unwrap();
        let refused = made.change.write().unwrap_err().to_string();
        assert!(refused.contains("version 3"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), newer);
    }

    #[test]
    fn a_file_that_is_damaged_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), b"[{").unwrap();
        assert!(Tokens::load(dir.path()).all(0).is_empty());
    }
}
