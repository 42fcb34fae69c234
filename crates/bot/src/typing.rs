//! What is done in a session for a chat user: runs, keys, the turn. Each is keyed by its update, so that a repeat is the same act.

use crate::act::Done;
use crate::chat::Inbound;
use crate::desk::Refused;
use crate::engine::Engine;
use crate::state::{LIVE_MAX, Reply, User};
use crate::text::harmless;
use holdfast_authority::{Ask, recorded};
use holdfast_screen::keys::Key;
use holdfast_types::{SessionId, terms_of};
use holdfast_wire::attention::{Blind, Kind, Now};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadParams, ScreenParams, SendParams, SessionParams, SessionView};
use holdfast_wire::runs::RunStartParams;
use holdfast_wire::turns::{SeizeParams, TurnParams};
use sha2::{Digest, Sha256};

/// Longest text that is typed, and most keys.
const TYPED_BYTES_MAX: usize = 2_000;
const KEYS_MAX: usize = 20;
/// Wait for what a key does before the screen is shown again.
const REACT_MS: u64 = 300;

impl Engine {
    pub fn run_line(&mut self, user: &User, inbound: &Inbound, line: &str) -> Done {
        if line.is_empty() {
            return Err(Refused::Said("run what? /run COMMAND".into()));
        }
        if self.state.live.iter().filter(|live| live.user == inbound.user).count() >= LIVE_MAX {
            return Err(Refused::Said("too many of your runs are going on; stop one first".into()));
        }
        let session = self.desk.session(user, None)?;
        // The same update is the same run, however often the bot dies over it.
        let key = format!("bot/{}/{}/{}", self.config.service, self.config.id, inbound.id);
        let ask = Ask::Run { key: key.clone(), command: recorded(line).into_owned() };
        let params = |proof| RunStartParams {
            session: Some(session.id.to_string()),
            key: Some(key.clone()),
            command: line.to_owned(),
            proof: Some(proof),
            ..RunStartParams::default()
        };
        let answer = self.desk.act::<op::RunStart>(user, session.id, &ask, params)?;
        self.tell_user(inbound, Reply::Run(answer.run.id, session.id), Vec::new());
        Ok(())
    }

    pub fn type_line(&mut self, user: &User, inbound: &Inbound, text: &str) -> Done {
        if text.is_empty() || text.len() > TYPED_BYTES_MAX {
            return Err(Refused::Said(format!("type 1 to {TYPED_BYTES_MAX} bytes: /type TEXT")));
        }
        if harmless(text).contains('·') && !text.contains('·') {
            return Err(Refused::Said("that has characters in it that a terminal obeys; use /key".into()));
        }
        let session = self.desk.session(user, None)?;
        self.not_hidden(user, &session)?;
        let bytes = format!("{}\r", text.replace('\n', "\r"));
        self.send(user, inbound, session.id, bytes.as_bytes())?;
        self.tell_user(inbound, Reply::Screen(session.id), Vec::new());
        Ok(())
    }

    /// Refuses where the terminal hides what is typed, or may.
    fn not_hidden(&mut self, user: &User, session: &SessionView) -> Done {
        let state = self.desk.state(user, session.id)?;
        match state.now {
            Now::Waiting { kind: Kind::Password, .. } | Now::Unknown { why: Blind::Unreadable } => {
                Err(Refused::Said(format!(
                    "{} asks for something it does not show, a password as a rule: answer it at a terminal or on the page, not here",
                    session.name
                )))
            }
            _ => Ok(()),
        }
    }

    pub fn keys(&mut self, user: &User, inbound: &Inbound, session: SessionId, names: &str) -> Done {
        let keys: Result<Vec<Key>, _> = names.split_whitespace().map(str::parse::<Key>).collect();
        let keys = keys.map_err(|error| Refused::Said(error.to_string()))?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(Refused::Said(format!("press 1 to {KEYS_MAX} keys: /key C-c, /key Up Enter")));
        }
        let view = self.desk.session(user, Some(&session.to_string()))?;
        // Letters one by one would be a password too. An interruption never is.
        if names.trim() != "C-c" {
            self.not_hidden(user, &view)?;
        }
        let params = ScreenParams { session: session.to_string(), ansi: false, history: 0 };
        let (screen, _) = self.desk.ask::<op::Screen>(user, Some(session), &params, &[])?;
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.bytes(screen.application_cursor)).collect();
        self.send(user, inbound, session, &bytes)
    }

    /// Types bytes, once for each update.
    fn send(&mut self, user: &User, inbound: &Inbound, session: SessionId, bytes: &[u8]) -> Done {
        let name = format!("bot/{}/{}/{}", self.config.service, self.config.id, inbound.id);
        let digest = Sha256::digest(name);
        let mut stream = [0; 8];
        stream.copy_from_slice(&digest[..8]);
        let params = SendParams {
            session: session.to_string(),
            stream: u64::from_le_bytes(stream),
            seq: 1,
            client: None,
            fence: None,
            secret: false,
            force: false,
            in_order: false,
        };
        let (sent, _) = self.desk.ask::<op::Send>(user, Some(session), &params, bytes)?;
        let wait = ReadParams { session: session.to_string(), from: Some(sent.at), max: Some(1), wait_ms: REACT_MS };
        let _ = self.desk.ask::<op::Read>(user, Some(session), &wait, &[]);
        Ok(())
    }

    /// Takes the turn, once: how the turn stood is noted first, and another fence than that means that it was done, or overtaken.
    pub fn seize(&mut self, user: &User, inbound: &Inbound, reason: &str, freeze: bool) -> Done {
        let reason = if reason.is_empty() { "by chat" } else { reason };
        let session = self.desk.session(user, None)?;
        self.desk.allows(user, Some(session.id), terms_of("turn.seize"))?;
        let of = SessionParams { session: session.id.to_string() };
        let (turn, _) = self.desk.ask::<op::Turn>(user, Some(session.id), &of, &[])?;
        match &self.state.begun {
            Some((id, fence)) if *id == inbound.id && *fence != turn.fence => {
                let holder = turn.holder.map_or_else(|| "nobody".to_owned(), |holder| holder.actor.handle.to_string());
                self.reply(
                    inbound,
                    format!("I was interrupted while seizing {}; {holder} has the turn now.", session.name),
                );
                return Ok(());
            }
            Some(_) | None => {}
        }
        self.state.begun = Some((inbound.id.clone(), turn.fence));
        self.save();
        let ask = Ask::Seize { freeze, reason: reason.to_owned() };
        let id = session.id.to_string();
        let params = |proof| SeizeParams {
            session: id.clone(),
            client: None,
            freeze,
            reason: reason.to_owned(),
            proof: Some(proof),
        };
        let answer = self.desk.act_once::<op::Seize>(user, session.id, &ask, params)?;
        let froze = answer.froze.map_or_else(String::new, |froze| {
            format!("; {} processes stand still, /thaw lets them go on", froze.processes)
        });
        self.reply(inbound, format!("You have the turn in {}{froze}.", session.name));
        Ok(())
    }

    pub fn thaw(&mut self, user: &User, inbound: &Inbound) -> Done {
        let session = self.desk.session(user, None)?;
        let id = session.id.to_string();
        let params = |proof| TurnParams { session: id.clone(), client: None, proof: Some(proof) };
        self.desk.act::<op::Thaw>(user, session.id, &Ask::Thaw, params)?;
        self.reply(inbound, format!("{} goes on.", session.name));
        Ok(())
    }
}
