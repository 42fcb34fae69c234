//! What is done for an update: a stranger's code, a command, a press.

use crate::card::bare;
use crate::chat::{Button, Inbound, Said};
use crate::code;
use crate::command::{self, Command, HELP};
use crate::desk::{Refused, now_ms};
use crate::engine::{Engine, Job};
use crate::envelope::Envelope;
use crate::state::{Reply, TELLS_MAX, Tell, USERS_MAX, User};
use crate::text::{line, units};
use holdfast_client::Identity;
use holdfast_types::{ActorClass, Handle, SessionId};

/// An act that was asked for so long ago is not done: whoever asked has gone on.
pub const STALE_MS: u64 = 10 * 60 * 1000;
/// A stranger is told what to do so seldom.
const HINT_MS: u64 = 60 * 60 * 1000;
/// Strangers that are told something within that time.
const HINTS_MAX: usize = 200;
/// Wrong factors before a pause, and the pause.
const WRONG_MAX: u32 = 5;
const BARRED_MS: u64 = 15 * 60 * 1000;

/// What came of a command.
pub type Done = Result<(), Refused>;

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

    pub fn reply(&mut self, to: &Inbound, head: impl Into<String>) {
        self.tell_user(to, Reply::Text { head: head.into(), block: None }, Vec::new());
    }

    pub fn tell_user(&mut self, to: &Inbound, what: Reply, buttons: Vec<Vec<Button>>) {
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
            Command::Use(name) => self.use_session(user, inbound, name)?,
            Command::Screen(name) => self.look(user, inbound, name, Reply::Screen)?,
            Command::Picture(name) => self.look(user, inbound, name, Reply::Picture)?,
            Command::Logs(name) => self.look(user, inbound, name, Reply::Logs)?,
            Command::Run(line) => self.run_line(user, inbound, line)?,
            Command::Type(text) => self.type_line(user, inbound, text)?,
            Command::Key(names) => {
                let session = self.desk.session(user, None)?;
                self.keys(user, inbound, session.id, names)?;
                self.tell_user(inbound, Reply::Screen(session.id), Vec::new());
            }
            Command::Seize(reason) => self.seize(user, inbound, reason, false)?,
            Command::Freeze(reason) => self.seize(user, inbound, reason, true)?,
            Command::Thaw => self.thaw(user, inbound)?,
            Command::Questions => self.questions(user, inbound)?,
            Command::Approvals => self.approvals(user, inbound)?,
            Command::Answer(text) => self.answer_in_words(user, inbound, text)?,
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

    fn use_session(&mut self, user: &User, inbound: &Inbound, name: &str) -> Done {
        let session = self.desk.session(user, Some(name))?;
        self.set(&inbound.user, |user| user.current = Some(session.id));
        self.reply(inbound, format!("Commands mean {} now.", session.name));
        Ok(())
    }

    /// What only looks is made when it is sent.
    fn look(&mut self, user: &User, to: &Inbound, name: Option<&str>, what: impl Fn(SessionId) -> Reply) -> Done {
        let session = self.desk.session(user, name)?.id;
        self.tell_user(to, what(session), Vec::new());
        Ok(())
    }

    fn questions(&mut self, user: &User, inbound: &Inbound) -> Done {
        let open = self.desk.questions(user)?;
        if open.is_empty() {
            self.reply(inbound, "No question is open.");
        }
        open.iter().for_each(|question| self.show_question(&inbound.user, user, question));
        Ok(())
    }

    fn approvals(&mut self, user: &User, inbound: &Inbound) -> Done {
        let open = self.desk.approvals(user)?;
        if open.is_empty() {
            self.reply(inbound, "Nothing waits for approval.");
        }
        open.iter().for_each(|approval| self.show_approval(&inbound.user, user, approval));
        Ok(())
    }

    pub fn set(&mut self, user: &str, change: impl FnOnce(&mut User)) {
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
}

fn is_old(inbound: &Inbound) -> bool {
    inbound.at_ms.is_some_and(|at| now_ms().saturating_sub(at) > STALE_MS)
}

fn text_reply(head: &str) -> Reply {
    Reply::Text { head: head.to_owned(), block: None }
}
