//! What is done for an update: a stranger's code, a command, a press.

use crate::card::bare;
use crate::chat::{Button, Inbound, Said};
use crate::code;
use crate::command::{self, Command, HELP};
use crate::desk::{Refused, now_ms};
use crate::engine::{Engine, Job};
use crate::envelope::Envelope;
use crate::state::{LIVE_MAX, Reply, TELLS_MAX, Tell, USERS_MAX, User};
use crate::text::{harmless, line, units};
use holdfast_authority::{Ask, recorded};
use holdfast_client::Identity;
use holdfast_screen::keys::Key;
use holdfast_types::{ActorClass, Handle, SessionId, terms_of};
use holdfast_wire::Code;
use holdfast_wire::attention::{Blind, Kind, Now};
use holdfast_wire::gate::{ApprovalAnswerParams, ApprovalId, ApprovalParams, ApprovalState};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadParams, ScreenParams, SendParams, SessionParams, SessionView};
use holdfast_wire::questions::{
    QuestionAnswerParams, QuestionId, QuestionParams, QuestionState, QuestionView, chosen, detail,
};
use holdfast_wire::runs::{RunCancelParams, RunId, RunRef, RunStartParams};
use holdfast_wire::turns::{SeizeParams, TurnParams};
use sha2::{Digest, Sha256};

/// An act that was asked for so long ago is not done: whoever asked has gone on.
pub const STALE_MS: u64 = 10 * 60 * 1000;
/// A stranger is told what to do so seldom.
const HINT_MS: u64 = 60 * 60 * 1000;
/// Strangers that are told something within that time.
const HINTS_MAX: usize = 200;
/// Wrong factors before a pause, and the pause.
const WRONG_MAX: u32 = 5;
const BARRED_MS: u64 = 15 * 60 * 1000;
/// Longest text that is typed, and most keys.
const TYPED_BYTES_MAX: usize = 2_000;
const KEYS_MAX: usize = 20;
/// Wait for what a key does before the screen is shown again.
const REACT_MS: u64 = 300;

/// What came of a command.
type Done = Result<(), Refused>;

impl Engine {
    /// Does what an update asks for, and has the reply said.
    pub fn obey(&mut self, inbound: &Inbound) {
        // What is said elsewhere is not meant for the bot, and nobody is told that it listens.
        if !inbound.private {
            return;
        }
        let Some(user) = self.user(&inbound.user) else { return self.stranger(inbound) };
        if user.chat != inbound.chat {
            return;
        }
        let done = match &inbound.said {
            Said::Forwarded => Err(Refused::Said("forwarded messages are not commands".into())),
            Said::Text { text, message } => self.text(&user, inbound, text, message),
            Said::Press { data, ack, message } => {
                self.passing.push_back(Job::Acknowledge(ack.clone()));
                if self.stale || is_old(inbound) {
                    Err(Refused::Said("I was away when you pressed that; press it again".into()))
                } else {
                    self.press(&user, inbound, data, message)
                }
            }
        };
        match done {
            Ok(()) => {}
            Err(Refused::Removed) => {
                self.forget(&inbound.user);
                self.stranger(inbound);
            }
            Err(refused) => self.reply(inbound, refused.to_string()),
        }
    }

    fn reply(&mut self, to: &Inbound, head: impl Into<String>) {
        self.tell_user(to, Reply::Text { head: head.into(), block: None }, Vec::new());
    }

    fn tell_user(&mut self, to: &Inbound, what: Reply, buttons: Vec<Vec<Button>>) {
        self.state.say(Some(&to.user), &to.chat, what, buttons, None);
    }

    /// Somebody who is not enrolled: a code enrols, everything else is answered with one line, seldom.
    fn stranger(&mut self, inbound: &Inbound) {
        let Said::Text { text, .. } = &inbound.said else { return };
        let now = now_ms();
        let said = text.trim();
        let said = said.strip_prefix("/start").unwrap_or(said);
        let service = self.config.service;
        if let Some(code) = code::read(said) {
            let name = code::name(&code);
            if !self.guesses.allow(&inbound.user, now) {
                return;
            }
            let offer = code::find(&self.home, service, &code, now).filter(|_| !self.state.spent.contains(&name));
            match offer {
                Some(offer) if self.state.users.len() < USERS_MAX => return self.enrol(inbound, &name, &offer),
                Some(_) | None => {
                    self.state.say(
                        None,
                        &inbound.chat,
                        text_reply("That code is not valid, or no longer."),
                        vec![],
                        None,
                    );
                }
            }
            return;
        }
        self.hinted.retain(|_, at| now.saturating_sub(*at) < HINT_MS);
        if self.hinted.len() < HINTS_MAX && !self.hinted.contains_key(&inbound.user) {
            self.hinted.insert(inbound.user.clone(), now);
            let hint = "This bot is private. Send the code you were given.";
            self.state.say(None, &inbound.chat, text_reply(hint), vec![], None);
        }
    }

    fn enrol(&mut self, inbound: &Inbound, name: &str, offer: &code::Offer) {
        let now = now_ms();
        let service = self.config.service;
        let handle = Handle::near(ActorClass::Human, &format!("{service}-{}", inbound.user));
        if let Err(error) = Identity::load_or_make(&self.home, &handle) {
            eprintln!("cannot make {handle}: {error}");
            return self.state.say(
                None,
                &inbound.chat,
                text_reply("I cannot enrol you now; my log says why."),
                vec![],
                None,
            );
        }
        let envelope = Envelope {
            can: offer.can,
            sessions: offer.sessions.clone(),
            until_ms: offer.for_ms.map(|for_ms| now.saturating_add(for_ms)),
        };
        let user = User {
            handle: handle.clone(),
            name: line(&inbound.name, 64),
            chat: inbound.chat.clone(),
            envelope,
            enrolled_ms: now,
            by: offer.by.clone(),
            current: None,
            unlocked_until_ms: 0,
            used_step: 0,
            wrong: 0,
            barred_until_ms: 0,
        };
        self.state.users.insert(inbound.user.clone(), user);
        self.state.spent(name.to_owned());
        self.save();
        // From here on the code is used, also if its file stays.
        code::spend(&self.home, service, name);
        self.watch_users();
        let head = format!("You are {handle} and may {}. What goes through this chat is read by {service}.", offer.can);
        self.tell_user(inbound, Reply::Text { head, block: Some(HELP.into()) }, Vec::new());
    }

    fn text(&mut self, user: &User, inbound: &Inbound, text: &str, message: &str) -> Done {
        let command = command::read(text);
        if is_old(inbound) {
            return Err(Refused::Said("that was sent long ago, when I was away; send it again".into()));
        }
        match command {
            Command::Help => {
                self.tell_user(inbound, Reply::Text { head: "Commands".into(), block: Some(HELP.into()) }, Vec::new());
            }
            Command::List => self.list(user, inbound)?,
            Command::Use(name) => {
                let session = self.desk.session(user, Some(name))?;
                self.set(&inbound.user, |user| user.current = Some(session.id));
                self.reply(inbound, format!("Commands mean {} now.", session.name));
            }
            Command::Screen(name) => {
                let session = self.desk.session(user, name)?.id;
                self.tell_user(inbound, Reply::Screen(session), Vec::new());
            }
            Command::Picture(name) => {
                let session = self.desk.session(user, name)?.id;
                self.tell_user(inbound, Reply::Picture(session), Vec::new());
            }
            Command::Logs(name) => {
                let session = self.desk.session(user, name)?.id;
                self.tell_user(inbound, Reply::Logs(session), Vec::new());
            }
            Command::Run(line) => self.run_line(user, inbound, line)?,
            Command::Type(text) => self.type_line(user, inbound, text)?,
            Command::Key(names) => {
                let session = self.desk.session(user, None)?;
                self.keys(user, inbound, session.id, names)?;
                self.tell_user(inbound, Reply::Screen(session.id), Vec::new());
            }
            Command::Seize(reason) => self.seize(user, inbound, reason, false)?,
            Command::Freeze(reason) => self.seize(user, inbound, reason, true)?,
            Command::Thaw => {
                let session = self.desk.session(user, None)?;
                let id = session.id.to_string();
                let params = |proof| TurnParams { session: id.clone(), client: None, proof: Some(proof) };
                self.desk.act::<op::Thaw>(user, session.id, &Ask::Thaw, params)?;
                self.reply(inbound, format!("{} goes on.", session.name));
            }
            Command::Questions => {
                let open = self.desk.questions(user)?;
                if open.is_empty() {
                    self.reply(inbound, "No question is open.");
                }
                open.iter().for_each(|question| self.show_question(&inbound.user, user, question));
            }
            Command::Approvals => {
                let open = self.desk.approvals(user)?;
                if open.is_empty() {
                    self.reply(inbound, "Nothing waits for approval.");
                }
                open.iter().for_each(|approval| self.show_approval(&inbound.user, user, approval));
            }
            Command::Answer(text) => {
                let mut open = self.desk.questions(user)?;
                open.retain(|question| question.options.is_empty() && question.by.handle != user.handle);
                match (open.pop(), open.is_empty()) {
                    (Some(question), true) => self.answer(user, inbound, &question, text)?,
                    (None, _) => return Err(Refused::Said("no question waits for an answer in words".into())),
                    (Some(_), false) => {
                        return Err(Refused::Said(
                            "several questions wait; answer them at a terminal or on the page".into(),
                        ));
                    }
                }
            }
            Command::Tell(what) => self.tell_when(user, inbound, what)?,
            Command::Unlock(said) => self.unlock(user, inbound, said, message)?,
            Command::Lock => {
                self.set(&inbound.user, |user| user.unlocked_until_ms = 0);
                self.reply(inbound, "Locked.");
            }
            Command::Me => self.me(user, inbound),
            Command::Leave => {
                self.desk.leave(user)?;
                self.forget(&inbound.user);
                self.state.say(None, &inbound.chat, text_reply("You are removed."), vec![], None);
            }
            Command::Unknown(word) => {
                return Err(Refused::Said(format!("unknown command {:?}; /help lists them", line(word, 40))));
            }
        }
        Ok(())
    }

    fn set(&mut self, user: &str, change: impl FnOnce(&mut User)) {
        if let Some(user) = self.state.users.get_mut(user) {
            change(user);
        }
    }

    fn me(&mut self, user: &User, inbound: &Inbound) {
        let wide = match user.envelope.sessions.len() {
            0 => "all sessions".to_owned(),
            1 => "one session".to_owned(),
            many => format!("{many} sessions"),
        };
        let left = user.envelope.until_ms.map(|until| until.saturating_sub(now_ms()) / 60_000);
        let until = left.map_or_else(String::new, |minutes| format!(", for {minutes} more minutes"));
        self.reply(inbound, format!("You are {} and may {} in {wide}{until}.", user.handle, user.envelope.can));
    }

    fn list(&mut self, user: &User, inbound: &Inbound) -> Done {
        let all = self.desk.sessions(user)?;
        if all.is_empty() {
            self.reply(inbound, "No session is running.");
            return Ok(());
        }
        let mut text = String::new();
        let mut buttons = Vec::new();
        let room = self.config.service.text_max() - 200;
        for (n, one) in all.iter().enumerate() {
            if units(&text) > room {
                text.push_str(&format!("and {} more\n", all.len() - n));
                break;
            }
            let doing =
                self.desk.state(user, one.id).map_or_else(|_| "?".into(), |state| crate::notice::doing(&state.now));
            let turn =
                one.turn.holder.as_ref().map_or_else(String::new, |holder| format!(", turn: {}", holder.actor.handle));
            let asks = if one.asks > 0 { format!(", asks {}", one.asks) } else { String::new() };
            let mark = if user.current == Some(one.id) { "*" } else { " " };
            text.push_str(&format!("{mark} {}: {doing}{turn}{asks}\n", one.name));
            if buttons.len() < 8 {
                buttons.push(vec![Button(one.name.to_string(), format!("s:{}", bare(&one.id)))]);
            }
        }
        self.tell_user(inbound, Reply::Text { head: "Sessions".into(), block: Some(text) }, buttons);
        Ok(())
    }

    fn run_line(&mut self, user: &User, inbound: &Inbound, line: &str) -> Done {
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

    fn type_line(&mut self, user: &User, inbound: &Inbound, text: &str) -> Done {
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

    fn keys(&mut self, user: &User, inbound: &Inbound, session: SessionId, names: &str) -> Done {
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
    fn seize(&mut self, user: &User, inbound: &Inbound, reason: &str, freeze: bool) -> Done {
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

    fn tell_when(&mut self, user: &User, inbound: &Inbound, what: &str) -> Done {
        let (what, name) = what.split_once(' ').unwrap_or((what, ""));
        let session = self.desk.session(user, (!name.trim().is_empty()).then_some(name.trim()))?;
        let ends = match what {
            "ends" => true,
            "waits" => false,
            "off" => {
                self.state.tells.retain(|tell| tell.user != inbound.user || tell.session != session.id);
                self.reply(inbound, format!("You are told nothing more of {}.", session.name));
                return Ok(());
            }
            _ => return Err(Refused::Said("tell you what? /tell ends, /tell waits, /tell off".into())),
        };
        let state = self.desk.state(user, session.id)?;
        if crate::notice::fits(ends, &state.now) {
            self.reply(inbound, format!("{}: {} already.", session.name, crate::notice::doing(&state.now)));
            return Ok(());
        }
        if self.state.tells.iter().filter(|tell| tell.user == inbound.user).count() >= TELLS_MAX {
            return Err(Refused::Said("you are to be told of too many things; /tell off".into()));
        }
        let tell = Tell { user: inbound.user.clone(), session: session.id, ends };
        if !self.state.tells.contains(&tell) {
            self.state.tells.push(tell);
        }
        self.reply(
            inbound,
            format!("You are told when {} {}.", session.name, if ends { "ends" } else { "waits for input" }),
        );
        Ok(())
    }

    fn unlock(&mut self, user: &User, inbound: &Inbound, said: &str, message: &str) -> Done {
        // Whatever it was, it is not left lying there.
        self.passing.push_back(Job::Remove(inbound.chat.clone(), message.to_owned()));
        let Some(factor) = self.config.factor.clone() else {
            return Err(Refused::Said("nothing is locked".into()));
        };
        let now = now_ms();
        if user.barred_until_ms > now {
            return Err(Refused::Said("too many wrong attempts; try again in a quarter of an hour".into()));
        }
        let mut used = user.used_step;
        if factor.check(said, &mut used, now) {
            self.set(&inbound.user, |user| {
                (user.used_step, user.wrong) = (used, 0);
                user.unlocked_until_ms = now.saturating_add(factor.again_ms);
            });
            self.reply(
                inbound,
                format!("Unlocked for {} minutes. Delete your message if it is still there.", factor.again_ms / 60_000),
            );
            return Ok(());
        }
        self.set(&inbound.user, |user| {
            user.wrong += 1;
            if user.wrong >= WRONG_MAX {
                (user.wrong, user.barred_until_ms) = (0, now + BARRED_MS);
            }
        });
        Err(Refused::Said("that is not it".into()))
    }

    fn press(&mut self, user: &User, inbound: &Inbound, data: &str, message: &str) -> Done {
        let mut parts = data.split(':');
        let (kind, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (third, fourth) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let odd = || Refused::Said("that button is of another version".into());
        let session = || format!("ses_{id}").parse::<SessionId>().map_err(|_| odd());
        match kind {
            "k" => {
                let session = session()?;
                self.keys(user, inbound, session, third)?;
                self.refresh(inbound, session, message);
            }
            "s" => {
                let session = session()?;
                self.desk.session(user, Some(&session.to_string()))?;
                self.set(&inbound.user, |user| user.current = Some(session));
                self.tell_user(inbound, Reply::Screen(session), Vec::new());
            }
            "p" => {
                let session = session()?;
                self.desk.session(user, Some(&session.to_string()))?;
                self.tell_user(inbound, Reply::Picture(session), Vec::new());
            }
            "x" => {
                let run: RunId = format!("run_{id}").parse().map_err(|_| odd())?;
                let session: SessionId = format!("ses_{third}").parse().map_err(|_| odd())?;
                self.run_card(user, run, session, 0)?;
                let ask = Ask::other(terms_of("run.cancel"), run.to_string());
                let params = |proof| RunCancelParams { run: RunRef::Id(run), wait_ms: 0, proof: Some(proof) };
                self.desk.act::<op::RunCancel>(user, session, &ask, params)?;
            }
            "o" => {
                let run: RunId = format!("run_{id}").parse().map_err(|_| odd())?;
                let session: SessionId = format!("ses_{third}").parse().map_err(|_| odd())?;
                self.run_card(user, run, session, 0)?;
                self.tell_user(inbound, Reply::Output(run, session), Vec::new());
            }
            "q" => {
                let question: QuestionId = format!("que_{id}").parse().map_err(|_| odd())?;
                let view = self.question(user, question)?;
                let option: u32 = third.parse().map_err(|_| odd())?;
                if !view.hash.to_string().starts_with(fourth) || fourth.len() < 16 {
                    return Err(odd());
                }
                let (text, _) = chosen(&view.options, None, Some(option)).map_err(Refused::Fault)?;
                self.answer(user, inbound, &view, &text)?;
            }
            "a" => self.decide(user, inbound, id, third, fourth)?,
            _ => return Err(odd()),
        }
        Ok(())
    }

    /// Shows the screen again in the message whose key was pressed. A picture has text beside it only, so a new message follows it.
    fn refresh(&mut self, inbound: &Inbound, session: SessionId, message: &str) {
        self.tell_user(inbound, Reply::Screen(session), Vec::new());
        if let Some(item) = self.state.outbox.back_mut() {
            item.edit = Some(message.to_owned());
        }
    }

    /// A question of the user's envelope.
    pub fn question(&mut self, user: &User, question: QuestionId) -> Result<QuestionView, Refused> {
        let params = QuestionParams { question, wait_ms: 0 };
        let (view, _) = self.desk.ask::<op::QuestionGet>(user, None, &params, &[])?;
        self.desk.allows(user, Some(view.session), terms_of("question.get"))?;
        Ok(view)
    }

    fn answer(&mut self, user: &User, inbound: &Inbound, question: &QuestionView, text: &str) -> Done {
        // A process in a session that wants to act in this user's name: it would have all of a human's rights, and not this envelope.
        if question.by.handle == user.handle {
            return Err(Refused::Said("nobody confirms here to be at a process in a session; use a terminal".into()));
        }
        let ask = Ask::other(terms_of("question.answer"), detail(question.id, text, &question.text));
        let params = |proof| QuestionAnswerParams {
            question: question.id,
            seen: question.hash,
            text: Some(text.to_owned()),
            option: None,
            proof: Some(proof),
        };
        let answered = self.desk.act::<op::QuestionAnswer>(user, question.session, &ask, params);
        match answered {
            Ok(_) => {}
            Err(Refused::Fault(fault)) if fault.code == Code::QuestionClosed => {
                let now = self.question(user, question.id)?;
                // It may have been this very answer, before the bot was interrupted.
                let mine =
                    now.answer.as_ref().is_some_and(|answer| answer.by.handle == user.handle && answer.text == text);
                if now.state != QuestionState::Answered || !mine {
                    return Err(Refused::Fault(fault));
                }
            }
            Err(refused) => return Err(refused),
        }
        self.reply(inbound, format!("Answered {} in {}: {}", question.by.handle, question.name, line(text, 200)));
        Ok(())
    }

    fn decide(&mut self, user: &User, inbound: &Inbound, id: &str, how: &str, seen: &str) -> Done {
        let odd = || Refused::Said("that button is of another version".into());
        let approval: ApprovalId = format!("apr_{id}").parse().map_err(|_| odd())?;
        let params = ApprovalParams { approval, wait_ms: 0 };
        let (view, _) = self.desk.ask::<op::ApprovalGet>(user, None, &params, &[])?;
        if !user.envelope.covers(view.session) {
            return Err(crate::envelope::Outside::Elsewhere.into());
        }
        self.desk.allows(user, view.session, terms_of("approval.answer"))?;
        if !view.hash.to_string().starts_with(seen) || seen.len() < 16 {
            return Err(Refused::Said("what it is about has changed; look again: /approvals".into()));
        }
        let approve = match how {
            "y" => true,
            "n" => false,
            _ => return Err(odd()),
        };
        let answer =
            |proof| ApprovalAnswerParams { approval, seen: view.hash, approve, reason: None, minutes: None, proof };
        let decided = match view.session {
            Some(session) => {
                let said = holdfast_wire::gate::detail(approval, approve, None, view.hash, &view.command);
                let ask = Ask::other(terms_of("approval.answer"), said);
                self.desk.act::<op::ApprovalAnswer>(user, session, &ask, |proof| answer(Some(proof)))
            }
            None => self.desk.ask::<op::ApprovalAnswer>(user, None, &answer(None), &[]).map(|(view, _)| view),
        };
        match decided {
            Ok(_) => {}
            Err(Refused::Fault(fault)) if fault.code == Code::ApprovalClosed => {
                let (now, _) = self.desk.ask::<op::ApprovalGet>(user, None, &params, &[])?;
                let mine = now.answered_by.as_ref().is_some_and(|by| by.handle == user.handle);
                if !mine || approve == matches!(now.state, ApprovalState::Denied | ApprovalState::Expired) {
                    return Err(Refused::Fault(fault));
                }
            }
            Err(refused) => return Err(refused),
        }
        let word = if approve { "Approved" } else { "Denied" };
        self.reply(inbound, format!("{word} for {}: {}", view.by.handle, line(&view.command, 200)));
        Ok(())
    }
}

fn is_old(inbound: &Inbound) -> bool {
    inbound.at_ms.is_some_and(|at| now_ms().saturating_sub(at) > STALE_MS)
}

fn text_reply(head: &str) -> Reply {
    Reply::Text { head: head.to_owned(), block: None }
}
