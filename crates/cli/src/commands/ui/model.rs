//! What the picker shows and what keys do to it. Pure: sessions and keys in, wishes out.

use super::keys::Key;
use holdfast_types::{SessionId, SessionName};
use holdfast_wire::attention::{Kind, Now, StateView};
use holdfast_wire::params::{Life, ScreenAnswer, SessionView};
use holdfast_wire::questions::{QuestionView, meant};
use std::collections::HashMap;

/// Longest text that is typed here.
const TEXT_MAX: usize = 200;

/// What the person wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// Into this session.
    Attach(SessionId),
    /// A new session of this name, or of a generated one.
    New(Option<SessionName>),
    /// This session's end.
    End(SessionId),
    /// The questions that are open in this session.
    Questions(SessionId),
    /// To answer one.
    Answer(Box<QuestionView>, String),
    /// To leave.
    Quit,
}

/// What keys are for.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// Choosing.
    Browse,
    /// The name of a new session is typed.
    New(String),
    /// A session is to be ended, if the person says so.
    End(SessionId),
    /// A question is answered.
    Answer(Box<QuestionView>, String),
}

/// The picker.
#[derive(Debug)]
pub struct Model {
    sessions: Vec<SessionView>,
    states: HashMap<SessionId, StateView>,
    /// What was typed to find a session.
    pub filter: String,
    selected: Option<SessionId>,
    /// What keys are for.
    pub mode: Mode,
    /// Something to tell, until the next key.
    pub message: Option<String>,
    preview: Option<(SessionId, ScreenAnswer)>,
    /// The sessions were listed once.
    pub is_loaded: bool,
    /// The first row that is shown, and how many there are.
    top: usize,
    rows: usize,
    /// A question fits on the screen whole.
    pub fits: bool,
}

impl Model {
    /// Nothing known yet; this one is to be selected.
    pub fn new(selected: Option<SessionId>) -> Model {
        Model {
            sessions: Vec::new(),
            states: HashMap::new(),
            filter: String::new(),
            selected,
            mode: Mode::Browse,
            message: None,
            preview: None,
            is_loaded: false,
            top: 0,
            rows: 1,
            fits: true,
        }
    }

    /// The sessions as they are now.
    pub fn listed(&mut self, mut sessions: Vec<SessionView>) {
        sessions.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        self.states.retain(|id, _| sessions.iter().any(|session| session.id == *id));
        self.sessions = sessions;
        self.is_loaded = true;
        self.keep_selection(0);
    }

    /// What a session does.
    pub fn saw(&mut self, state: StateView) {
        self.states.insert(state.session, state);
    }

    /// What a session shows.
    pub fn looked(&mut self, id: SessionId, screen: ScreenAnswer) {
        self.preview = Some((id, screen));
    }

    /// The question to answer, or that there is none.
    pub fn asked(&mut self, open: Vec<QuestionView>) {
        match open.into_iter().next() {
            Some(question) if self.mode == Mode::Browse => {
                self.mode = Mode::Answer(Box::new(question), String::new());
            }
            Some(_) => {}
            None => self.message = Some("no open question there".into()),
        }
    }

    /// Those that fit what was typed.
    pub fn shown(&self) -> Vec<&SessionView> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        self.sessions.iter().filter(|session| fits(session, self.word(session), &words)).collect()
    }

    /// All of them.
    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// The selected one, where it is shown.
    pub fn selected(&self) -> Option<&SessionView> {
        self.shown().into_iter().find(|session| Some(session.id) == self.selected)
    }

    /// One of them.
    pub fn session(&self, id: SessionId) -> Option<&SessionView> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// What the selected one shows.
    pub fn preview(&self) -> Option<&ScreenAnswer> {
        self.preview.as_ref().filter(|(id, _)| Some(*id) == self.selected).map(|(_, screen)| screen)
    }

    /// A look at the selected one is due: none was taken, or it has printed since.
    pub fn preview_due(&self) -> Option<SessionId> {
        let session = self.selected().filter(|session| session.life == Life::Running)?;
        self.preview().is_none_or(|screen| screen.offset < session.head).then_some(session.id)
    }

    /// The rows that are on the screen: the first, and those.
    pub fn page(&mut self, rows: usize) -> (usize, Vec<SessionView>) {
        self.rows = rows.max(1);
        let shown = self.shown();
        let at = shown.iter().position(|session| Some(session.id) == self.selected).unwrap_or(0);
        let last = shown.len().saturating_sub(self.rows);
        let top = self.top.min(last).clamp((at + 1).saturating_sub(self.rows), at);
        let page: Vec<SessionView> = shown.into_iter().skip(top).take(self.rows).cloned().collect();
        self.top = top;
        (at - top, page)
    }

    /// Running sessions on the screen: worth a look at what they do.
    pub fn visible(&self) -> Vec<SessionId> {
        let running = |session: &&&SessionView| session.life == Life::Running;
        let shown = self.shown();
        shown.iter().skip(self.top).take(self.rows).filter(running).map(|session| session.id).collect()
    }

    /// What a session does, in a word; and whether that waits for a person.
    pub fn word(&self, session: &SessionView) -> (&'static str, bool) {
        if session.asks > 0 {
            return ("asks", true);
        }
        match (session.life, &session.turn.frozen, self.states.get(&session.id).map(|state| &state.now)) {
            (Life::Ended, ..) => ("ended", false),
            (Life::Lost, ..) => ("lost", true),
            (Life::Unknown, ..) => ("unknown", false),
            (Life::Damaged, ..) => ("damaged", false),
            (Life::Running, Some(_), _) => ("frozen", true),
            (Life::Running, None, Some(now)) => word(now),
            (Life::Running, None, None) => ("", false),
        }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key) -> Option<Wish> {
        self.message = None;
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.press_browsing(key),
            Mode::New(text) => self.press_new(text, key),
            Mode::End(id) => match key {
                Key::Char('y' | 'Y') => Some(Wish::End(id)),
                _ => None,
            },
            Mode::Answer(question, text) => self.press_answer(question, text, key),
        }
    }

    fn press_browsing(&mut self, key: Key) -> Option<Wish> {
        let selected = self.selected().map(|session| (session.id, session.life, session.asks));
        match key {
            Key::Enter => match selected {
                Some((id, Life::Running, _)) => return Some(Wish::Attach(id)),
                Some((_, Life::Lost, _)) => {
                    self.message = Some("it was lost; leave, then: holdfast recover NAME".into())
                }
                Some(_) => self.message = Some("it does not run".into()),
                None => {}
            },
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape | Key::Ctrl('c' | 'd') => return Some(Wish::Quit),
            Key::Char(c) => {
                if self.filter.chars().count() < TEXT_MAX {
                    self.filter.push(c);
                }
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Ctrl('u') => self.filter.clear(),
            Key::Up => return self.step(-1),
            Key::Down => return self.step(1),
            Key::PageUp => return self.step(-(self.rows as isize)),
            Key::PageDown => return self.step(self.rows as isize),
            Key::Home => return self.step(isize::MIN),
            Key::End => return self.step(isize::MAX),
            Key::Tab => self.next_waiting(),
            Key::Ctrl('n') => self.mode = Mode::New(String::new()),
            Key::Ctrl('x') => match selected {
                Some((id, Life::Running | Life::Lost, _)) => self.mode = Mode::End(id),
                _ => self.message = Some("it does not run".into()),
            },
            Key::Ctrl('a') => match selected {
                Some((id, _, 1..)) => return Some(Wish::Questions(id)),
                _ => self.message = Some("no open question there".into()),
            },
            Key::Ctrl(_) | Key::Other => {}
        }
        self.keep_selection(0);
        None
    }

    fn press_new(&mut self, mut text: String, key: Key) -> Option<Wish> {
        match key {
            Key::Enter if text.is_empty() => return Some(Wish::New(None)),
            Key::Enter => match text.parse() {
                Ok(name) => return Some(Wish::New(Some(name))),
                Err(error) => {
                    self.message = Some(format!("{error}"));
                    self.mode = Mode::New(text);
                }
            },
            _ => {
                if edit(&mut text, key) {
                    self.mode = Mode::New(text);
                }
            }
        }
        None
    }

    fn press_answer(&mut self, question: Box<QuestionView>, mut text: String, key: Key) -> Option<Wish> {
        match key {
            // Nobody decides about a text that was cut off.
            Key::Enter if !self.fits => {
                self.message = Some(format!("too long for this window; use: holdfast answer {}", question.id));
            }
            Key::Enter => match meant(&question.options, text.trim()) {
                Ok((answer, _)) if !answer.is_empty() => return Some(Wish::Answer(question, answer)),
                Ok(_) => self.mode = Mode::Answer(question, text),
                Err(fault) => {
                    self.message = Some(format!("{} {}", fault.message, fault.hint));
                    self.mode = Mode::Answer(question, text);
                }
            },
            _ => {
                if edit(&mut text, key) {
                    self.mode = Mode::Answer(question, text);
                }
            }
        }
        None
    }

    fn step(&mut self, by: isize) -> Option<Wish> {
        self.keep_selection(by);
        None
    }

    /// The next one that waits for a person, round about.
    fn next_waiting(&mut self) {
        let shown = self.shown();
        let at = shown.iter().position(|session| Some(session.id) == self.selected).map_or(0, |at| at + 1);
        let waits = |session: &&&SessionView| self.word(session).1;
        let next = shown[at.min(shown.len())..].iter().chain(shown.iter()).find(waits).map(|session| session.id);
        match next {
            Some(id) => self.selected = Some(id),
            None => self.message = Some("nothing waits for you".into()),
        }
    }

    /// The selection stays where it is, or moves by so many rows; where its session is gone, to the nearest.
    fn keep_selection(&mut self, by: isize) {
        let ids: Vec<SessionId> = self.shown().iter().map(|session| session.id).collect();
        let Some(last) = ids.len().checked_sub(1) else { return };
        let at = ids.iter().position(|id| Some(*id) == self.selected);
        let at = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = Some(ids[at]);
    }
}

/// Types into a line; false: the person gave up.
fn edit(text: &mut String, key: Key) -> bool {
    match key {
        Key::Char(c) if text.chars().count() < TEXT_MAX => text.push(c),
        Key::Backspace => {
            text.pop();
        }
        Key::Ctrl('u') => text.clear(),
        Key::Escape | Key::Ctrl('c') => return false,
        _ => {}
    }
    true
}

/// Whether each word is somewhere in it.
fn fits(session: &SessionView, (state, _): (&str, bool), words: &[String]) -> bool {
    let holder = session.turn.holder.as_ref().map_or(String::new(), |holder| holder.actor.handle.to_string());
    let text = [session.name.as_str(), state, &holder, &session.title, &session.cwd, &session.command.join(" ")]
        .join("\n")
        .to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

fn word(now: &Now) -> (&'static str, bool) {
    match now {
        Now::IdlePrompt => ("idle", false),
        Now::Running | Now::BlockedElsewhere | Now::Unknown { .. } => ("running", false),
        Now::Waiting { kind: Kind::Password, .. } => ("password", true),
        Now::Waiting { kind: Kind::Choice, .. } => ("choice", true),
        // What shows no prompt only reads.
        Now::Waiting { kind: Kind::Line, prompt } => ("input", !prompt.is_empty()),
        Now::Waiting { kind: Kind::Repl, .. } => ("prompt", false),
        Now::FullScreen => ("full screen", false),
        Now::Stopped => ("stopped", true),
        Now::Frozen { .. } => ("frozen", true),
        Now::Ended { .. } => ("ended", false),
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
