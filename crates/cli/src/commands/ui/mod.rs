//! The picker: all sessions, what they do, and what one of them shows; a person chooses, starts, ends and answers.
//!
//! Nothing is waited for but keys: the list, what is on the screen and the preview are asked for side by side, and drawn as they come.
//! Of many sessions only those on the screen are looked at.

mod draw;
mod keys;
mod model;
mod stage;
mod surface;

use super::new;
use crate::args::NewArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use holdfast_authority::Ask;
use holdfast_client::{CallError, Connection, Incoming, ready_of};
use holdfast_types::{SessionId, terms_of};
use holdfast_wire::Fault;
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, ListParams, ScreenParams, SessionParams, SessionView};
use holdfast_wire::questions::{QuestionAnswerParams, QuestionListParams, QuestionView, detail};
use model::{Model, Wish};
use serde_json::Value;
use stage::Stage;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often sessions are listed and looked at: what a person calls live.
const LIST_EVERY: Duration = Duration::from_millis(1_000);
/// How often the preview of a session that prints is drawn.
const PREVIEW_EVERY: Duration = Duration::from_millis(250);
/// How often it is looked whether the window has changed.
const TICK: Duration = Duration::from_millis(250);
/// How long until a host that went away is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// What was chosen.
#[derive(Debug)]
pub enum Picked {
    /// This session.
    Session(Box<SessionView>),
    /// None.
    Nothing,
}

/// What the host was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    List,
    State,
    Screen(SessionId),
    End,
    Questions,
    Answer,
}

/// What there is to do.
struct Ready {
    typed: bool,
    go: bool,
    answered: bool,
}

/// Shows the picker until something was chosen. `from` is the session the person came from.
pub fn pick(here: &Here, from: Option<SessionId>) -> Result<Picked, Failure> {
    let connection = here.connect()?;
    let stage = Stage::new()?;
    let now = Instant::now();
    let picker = Picker {
        here,
        connection: Some(connection),
        stage,
        model: Model::new(from),
        asked: HashMap::new(),
        listed: None,
        previewed: now,
        again: now,
        read: Vec::new(),
        told_to_go: holdfast_client::told_to_go().map_err(|error| Failure::io("cannot watch signals", error))?,
    };
    picker.run()
}

struct Picker<'a> {
    here: &'a Here,
    connection: Option<Connection>,
    stage: Stage,
    model: Model,
    asked: HashMap<u64, Asked>,
    /// When sessions were last listed, and previewed.
    listed: Option<Instant>,
    previewed: Instant,
    /// When to look for a host again.
    again: Instant,
    /// Bytes of a key that has not come whole.
    read: Vec<u8>,
    /// Readable when a signal asks us to end: the terminal is given back first.
    told_to_go: UnixStream,
}

impl Picker<'_> {
    fn run(mut self) -> Result<Picked, Failure> {
        loop {
            self.find_host();
            self.ask_what_is_due();
            let mut surface = Stage::surface();
            draw::draw(&mut self.model, &mut surface);
            self.stage.show(surface)?;
            let Ready { typed, answered, go } = self.wait()?;
            if go {
                return Ok(Picked::Nothing);
            }
            if answered {
                self.hear();
            }
            if !typed {
                continue;
            }
            let Some(keys) = self.keys()? else { return Ok(Picked::Nothing) };
            for key in keys {
                match self.model.press(key) {
                    None => {}
                    Some(Wish::Quit) => return Ok(Picked::Nothing),
                    Some(Wish::Attach(id)) => {
                        if let Some(session) = self.model.session(id) {
                            return Ok(Picked::Session(Box::new(session.clone())));
                        }
                    }
                    Some(Wish::New(name)) => match self.start(name) {
                        Ok(session) => return Ok(Picked::Session(Box::new(session))),
                        Err(failure) => self.model.message = Some(failure.message().to_owned()),
                    },
                    Some(wish) => self.wish(wish)?,
                }
            }
        }
    }

    fn find_host(&mut self) {
        if self.connection.is_none() && self.again <= Instant::now() {
            match self.here.connect() {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.listed = None;
                }
                Err(failure) => {
                    self.model.message = Some(failure.message().to_owned());
                    self.again = Instant::now() + AGAIN;
                }
            }
        }
    }

    fn lost_host(&mut self) {
        self.connection = None;
        self.asked.clear();
        self.again = Instant::now();
    }

    fn ask<O: holdfast_wire::Operation>(&mut self, what: Asked, params: &O::Params) {
        let Some(connection) = &mut self.connection else { return };
        match connection.ask::<O>(params, &[]) {
            Ok(id) => {
                self.asked.insert(id, what);
            }
            Err(_) => self.lost_host(),
        }
    }

    fn is_asked(&self, what: Asked) -> bool {
        self.asked.values().any(|asked| *asked == what)
    }

    fn ask_what_is_due(&mut self) {
        let now = Instant::now();
        if self.listed.is_none_or(|at| now >= at + LIST_EVERY) && !self.is_asked(Asked::List) {
            self.listed = Some(now);
            self.ask::<op::List>(Asked::List, &ListParams { all: false });
            if !self.is_asked(Asked::State) {
                for id in self.model.visible() {
                    self.ask::<op::State>(Asked::State, &SessionParams { session: id.to_string() });
                }
            }
        }
        if let Some(id) = self.model.preview_due()
            && !self.is_asked(Asked::Screen(id))
            && (self.model.preview().is_none() || now >= self.previewed + PREVIEW_EVERY)
        {
            self.previewed = now;
            let params = ScreenParams { session: id.to_string(), ansi: false, history: 0 };
            self.ask::<op::Screen>(Asked::Screen(id), &params);
        }
    }

    /// Waits for keys or the host.
    fn wait(&self) -> Result<Ready, Failure> {
        let mut fds = vec![rustix::stdio::stdin(), self.told_to_go.as_fd()];
        fds.extend(self.connection.as_ref().map(Connection::descriptor));
        let found = ready_of(&fds, Some(TICK)).map_err(|error| Failure::io("cannot wait for keys", error))?;
        let ready = |at: usize| found.get(at).copied().unwrap_or(false);
        Ok(Ready { typed: ready(0), go: ready(1), answered: ready(2) })
    }

    /// What was typed; none: the terminal is gone.
    fn keys(&mut self) -> Result<Option<Vec<keys::Key>>, Failure> {
        let mut buffer = [0; 1024];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => Ok(None),
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                Ok(Some(keys::take_keys(&mut self.read)))
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Some(Vec::new())),
            Err(_) => Ok(None),
        }
    }

    fn hear(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let Ok(incoming) = connection.receive_ready() else { return self.lost_host() };
        for one in incoming {
            if let Incoming::Answer { id, result, .. } = one
                && let Some(asked) = self.asked.remove(&id)
            {
                self.answered(asked, result);
            }
        }
    }

    fn answered(&mut self, asked: Asked, result: Result<Value, Fault>) {
        let value = match result {
            Ok(value) => value,
            // A session that went away meanwhile is gone from the next list.
            Err(_) if matches!(asked, Asked::State | Asked::Screen(_)) => return,
            Err(fault) => {
                return self.model.message = Some(Failure::from(CallError::Fault(fault)).message().to_owned());
            }
        };
        match asked {
            Asked::List => {
                if let Ok(sessions) = serde_json::from_value(value) {
                    let first = !self.model.is_loaded;
                    self.model.listed(sessions);
                    if first {
                        // Those on the screen are looked at right away.
                        self.listed = None;
                    }
                }
            }
            Asked::State => serde_json::from_value(value).into_iter().for_each(|state| self.model.saw(state)),
            Asked::Screen(id) => {
                serde_json::from_value(value).into_iter().for_each(|screen| self.model.looked(id, screen));
            }
            Asked::End => {
                let name = serde_json::from_value::<SessionView>(value).map(|view| view.name.to_string());
                self.model.message = Some(format!("ended {}", name.unwrap_or_default()));
                self.listed = None;
            }
            Asked::Questions => self.model.asked(serde_json::from_value(value).unwrap_or_default()),
            Asked::Answer => {
                let answer = serde_json::from_value::<QuestionView>(value).ok().and_then(|view| view.answer);
                self.model.message = Some(format!("answered: {}", answer.map(|it| it.text).unwrap_or_default()));
                self.listed = None;
            }
        }
    }

    /// Asks the host for what the person wants. Ending takes as long as its grace: the picker goes on meanwhile.
    fn wish(&mut self, wish: Wish) -> Result<(), Failure> {
        match wish {
            Wish::End(id) => {
                let grace_ms = u32::try_from(self.here.config()?.grace_ms).unwrap_or(u32::MAX);
                let proof = Some(self.here.who()?.prove(id, &Ask::End { grace_ms }));
                self.model.message = Some("ending it…".into());
                self.ask::<op::End>(Asked::End, &EndParams { session: id.to_string(), grace_ms, proof });
            }
            Wish::Questions(id) => {
                let params = QuestionListParams { session: Some(id.to_string()), all: false };
                self.ask::<op::QuestionList>(Asked::Questions, &params);
            }
            Wish::Answer(question, text) => {
                let act = Ask::other(const { terms_of("question.answer") }, detail(question.id, &text, &question.text));
                let proof = Some(self.here.who()?.prove(question.session, &act));
                let (id, seen) = (question.id, question.hash);
                let params = QuestionAnswerParams { question: id, seen, text: Some(text), option: None, proof };
                self.ask::<op::QuestionAnswer>(Asked::Answer, &params);
            }
            Wish::Attach(_) | Wish::New(_) | Wish::Quit => {}
        }
        Ok(())
    }

    fn start(&mut self, name: Option<holdfast_types::SessionName>) -> Result<SessionView, Failure> {
        let mut link: Link<'_> = self.here.link()?;
        new::start(self.here, &mut link, &NewArgs { name, ..NewArgs::default() })
    }
}
