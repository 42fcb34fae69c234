//! The turn, as the person at this terminal deals with it: what the host tells, and what chords ask for.
//!
//! Everything is asked on the host's connection and answered later; each act is signed by the actor's key.

use super::AttachError;
use super::chord::{self, Meaning};
use super::notice::{self, HOST_AWAY, Known, YOURS};
use super::prompt::{Decided, Prompt, Purpose};
use super::run::Attached;
use crate::connection::Incoming;
use holdfast_authority::Ask;
use holdfast_types::{Actor, Handle};
use holdfast_wire::operations::{Operation, op};
use holdfast_wire::params::{Nothing, SessionParams, SessionView};
use holdfast_wire::questions::QuestionView;
use holdfast_wire::turns::{ActorView, GiveParams, LeaveParams, SeizeAnswer, SeizeParams, TurnAnswer, TurnParams};
use holdfast_wire::{Code, Fault};
use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Acts that may wait for their answer at once: more than fingers, and a host that is stuck costs no memory.
const ASKED_MAX: usize = 16;

/// How long a host may take to let us go: what a person does not notice.
const LEAVE: Duration = Duration::from_millis(200);

/// What the host was asked.
#[derive(Debug)]
pub(super) enum Asked {
    Take,
    Request {
        waited: bool,
    },
    Release,
    Give,
    Seize,
    Thaw,
    Operators,
    /// Who could be meant by a prompt that was just opened.
    Offer,
    /// Whose handle this is: among known actors, then among who is attached.
    Known(Handle),
    Here(Handle),
    /// What is open.
    Questions,
    /// To take an answer.
    Answer,
}

/// What is known of the turn, and what was asked about it.
#[derive(Debug, Default)]
pub struct Turns {
    pub known: Known,
    asked: Vec<(u64, Asked)>,
    /// The question that the open prompt is about.
    pub question: Option<QuestionView>,
}

impl Turns {
    /// The host is gone, and with it its answers.
    pub fn host_gone(&mut self) {
        self.asked.clear();
    }
}

impl Attached<'_> {
    pub(super) fn us(&self) -> &Handle {
        &self.options.who.actor().handle
    }

    pub(super) fn chord_sign(&self) -> char {
        char::from(self.options.chord + 64)
    }

    /// The host has something to tell the person.
    pub(super) fn noticed(&mut self, notice: &holdfast_wire::turns::Notice) {
        let (us, sign) = (self.us().clone(), self.chord_sign());
        if let Some(text) = self.turns.known.hear(notice, &us, sign) {
            self.say(text);
        }
    }

    /// Our keys were refused.
    pub(super) fn keys_refused(&mut self, fault: &Fault) {
        let text = notice::refused_keys(fault, self.chord_sign());
        self.say(text);
    }

    /// A chord was pressed.
    pub(super) fn chord_pressed(&mut self, meaning: &Meaning) {
        match meaning {
            Meaning::Take | Meaning::Seize | Meaning::Answer if self.options.read_only => {
                self.say(" this terminal is read-only ")
            }
            Meaning::Take => self.ask_act::<op::Take>(Ask::Take, Asked::Take),
            Meaning::Release => self.ask_act::<op::Release>(Ask::Release, Asked::Release),
            Meaning::Thaw => self.ask_act::<op::Thaw>(Ask::Thaw, Asked::Thaw),
            Meaning::Operators => self.ask_view(Asked::Operators),
            Meaning::Answer => self.want_to_answer(),
            Meaning::Seize => self.show_prompt(Prompt::new(Purpose::Seize { freeze: false })),
            Meaning::Give => {
                let mut prompt = Prompt::new(Purpose::Give);
                match &self.turns.known.asker {
                    Some(asker) => prompt.offer(asker),
                    None => self.ask_view(Asked::Offer),
                }
                self.show_prompt(prompt);
            }
            Meaning::Help | Meaning::Nothing => self.say(chord::help(self.options.chord, self.options.detach_key)),
            // Not about the turn: the process that reads the keys handles them.
            Meaning::Type(_) | Meaning::Detach => {}
        }
    }

    /// Keys for the prompt that is open.
    pub(super) fn prompt_typed(&mut self, keys: &[u8]) {
        let Some(mut prompt) = self.line.prompt.take() else { return };
        match prompt.feed(keys) {
            None => self.show_prompt(prompt),
            Some(decided) => {
                self.close_prompt();
                match decided {
                    Decided::Nothing => {}
                    Decided::Give(handle) => self.ask::<op::Actors>(&Nothing {}, Asked::Known(handle)),
                    Decided::Seize { freeze, reason } => self.seize(freeze, reason),
                    Decided::Answer(text) => self.answer_question(&text),
                }
            }
        }
    }

    pub(super) fn ask<O: Operation>(&mut self, params: &O::Params, what: Asked) {
        // After a crash our number is only known once the resumption is answered.
        let there = self.resume_asked.is_none() && self.turns.asked.len() < ASKED_MAX;
        let Some(host) = self.host.as_mut().filter(|_| there) else { return self.say(HOST_AWAY) };
        match host.ask::<O>(params, &[]) {
            Ok(id) => self.turns.asked.push((id, what)),
            Err(_) => {
                self.host_is_gone();
                self.say(HOST_AWAY);
            }
        }
    }

    fn ask_act<O: Operation<Params = TurnParams>>(&mut self, ask: Ask, what: Asked) {
        let proof = Some(self.options.who.prove(self.session_id, &ask));
        self.ask::<O>(&TurnParams { session: self.session.clone(), client: Some(self.client), proof }, what);
    }

    fn ask_view(&mut self, what: Asked) {
        self.ask::<op::Get>(&SessionParams { session: self.session.clone() }, what);
    }

    fn seize(&mut self, freeze: bool, reason: String) {
        let proof = self.options.who.prove(self.session_id, &Ask::Seize { freeze, reason: reason.clone() });
        let (session, client) = (self.session.clone(), Some(self.client));
        self.ask::<op::Seize>(&SeizeParams { session, client, freeze, reason, proof: Some(proof) }, Asked::Seize);
    }

    fn give(&mut self, to: Actor) {
        let proof = self.options.who.prove(self.session_id, &Ask::Give { to: to.clone() });
        let (session, client) = (self.session.clone(), Some(self.client));
        self.ask::<op::Give>(&GiveParams { session, client, to, proof: Some(proof) }, Asked::Give);
    }

    /// Takes an answer that is to one of these; false where it is to something else.
    pub(super) fn act_answered(&mut self, id: u64, result: &Result<Value, Fault>) -> bool {
        let Some(at) = self.turns.asked.iter().position(|(asked, _)| *asked == id) else { return false };
        let (_, what) = self.turns.asked.remove(at);
        match result {
            Ok(answer) => self.act_done(what, answer),
            Err(fault) => self.act_refused(&what, fault),
        }
        true
    }

    fn act_refused(&mut self, what: &Asked, fault: &Fault) {
        match what {
            Asked::Take if fault.code == Code::TurnHeld => {
                let waited = self.turns.known.waits;
                self.ask_act::<op::Request>(Ask::Request, Asked::Request { waited });
            }
            Asked::Offer => {}
            _ => self.say(notice::refused_act(fault)),
        }
    }

    fn act_done(&mut self, what: Asked, answer: &Value) {
        match what {
            Asked::Take | Asked::Request { .. } | Asked::Release | Asked::Give | Asked::Thaw => {
                let Some(answer) = read::<TurnAnswer>(answer) else { return };
                let us = self.us().clone();
                self.turns.known.saw(&answer.turn, &us);
                match what {
                    Asked::Request { waited } => self.say(notice::asked(&answer, waited)),
                    Asked::Release | Asked::Give => self.say(notice::whose(&answer.turn)),
                    Asked::Thaw => self.say(" the session continues "),
                    _ => self.say(YOURS),
                }
            }
            Asked::Seize => {
                let Some(answer) = read::<SeizeAnswer>(answer) else { return };
                let us = self.us().clone();
                self.turns.known.saw(&answer.turn, &us);
                let text = notice::seized(&answer, self.chord_sign());
                self.say(text);
            }
            Asked::Operators | Asked::Offer | Asked::Here(_) => {
                let Some(view) = read::<SessionView>(answer) else { return };
                self.seen(what, &view);
            }
            Asked::Questions => self.questions_seen(read(answer).unwrap_or_default()),
            Asked::Answer => read::<QuestionView>(answer).iter().for_each(|question| self.answer_taken(question)),
            Asked::Known(handle) => {
                let actors = read::<Vec<ActorView>>(answer).unwrap_or_default();
                match actors.into_iter().map(|view| view.actor).find(|actor| actor.handle == handle) {
                    Some(actor) => self.give(actor),
                    None => self.ask_view(Asked::Here(handle)),
                }
            }
        }
    }

    fn seen(&mut self, what: Asked, view: &SessionView) {
        let us = self.us().clone();
        self.turns.known.saw(&view.turn, &us);
        let mut actors = view.clients.iter().filter_map(|client| client.actor.as_ref());
        match what {
            Asked::Offer => {
                let only = notice::whom_to_give(view, &us);
                if let Some((mut prompt, whom)) = self.line.prompt.take().zip(only) {
                    prompt.offer(&whom);
                    self.show_prompt(prompt);
                }
            }
            Asked::Here(handle) => match actors.find(|actor| actor.handle == handle).cloned() {
                Some(actor) => self.give(actor),
                None => self.say(format!(" no actor {handle} ")),
            },
            _ => self.say(notice::operators(view, self.client)),
        }
    }

    /// Tells the host that we go, so that the turn is free at once. If that fails, it learns of the broken
    /// connection: that could be a tunnel, so the turn is kept for a while.
    pub(super) fn leave(&mut self) {
        let params = LeaveParams { session: self.session.clone(), client: self.client };
        let Some(host) = &mut self.host else { return };
        let Ok(left) = host.ask::<op::Leave>(&params, &[]) else { return };
        // Waited for: else it may hear from the keeper first that our connection broke.
        let deadline = Instant::now() + LEAVE;
        while let Some(patience) = deadline.checked_duration_since(Instant::now()) {
            let patience = patience.try_into().expect("short times fit");
            match poll(&mut [PollFd::from_borrowed_fd(host.descriptor(), PollFlags::IN)], Some(&patience)) {
                Ok(1..) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Ok(0) | Err(_) => return,
            }
            let Ok(incoming) = host.receive_ready() else { return };
            if incoming.iter().any(|one| matches!(one, Incoming::Answer { id, .. } if *id == left)) {
                return;
            }
        }
    }

    /// Whether we write now, as the host says; an older word than the newest known counts for nothing.
    pub(super) fn told_writes(&mut self, writes: bool, fence: u64) -> Result<(), AttachError> {
        let had = self.keys.writes;
        if !self.keys.adopt(writes, fence) || !had || self.keys.writes {
            return Ok(());
        }
        self.lost_writing();
        if self.keys.is_read_by_keeper() { self.ask_keys_back() } else { Ok(()) }
    }

    /// We are no longer the writer: nor do we answer.
    pub(super) fn lost_writing(&mut self) {
        self.keys.writes = false;
        self.duty.stop = self.answers || self.duty.begin.is_some();
    }
}

fn read<T: DeserializeOwned>(answer: &Value) -> Option<T> {
    T::deserialize(answer).ok()
}
