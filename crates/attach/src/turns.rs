//! The turn, as the person at this terminal deals with it: what the host tells, and what chords ask for.
//!
//! Everything is asked on the host's connection and answered later; each act is signed by the actor's key.

use super::chord::{self, Meaning};
use super::inputs::{Answer, Request, Tag};
use super::machine::Attached;
use super::notice::{self, HOST_AWAY, Known, YOURS};
use super::prompt::{Decided, Prompt, Purpose};
use holdfast_authority::Ask;
use holdfast_types::{Actor, Handle};
use holdfast_wire::params::SessionView;
use holdfast_wire::questions::QuestionView;
use holdfast_wire::turns::Notice;
use holdfast_wire::{Code, Fault};

/// Acts that may wait for their answer at once: more than fingers, and a host that is stuck costs no memory.
const ASKED_MAX: usize = 16;

/// Why somebody seized the turn who has not said so yet.
const AT_TERMINAL: &str = "by a key at a terminal";

/// What the host was asked.
#[derive(Debug)]
pub(crate) enum Asked {
    Take,
    Request {
        waited: bool,
    },
    Release,
    Give,
    /// The turn, without a reason yet.
    Seize,
    /// The same again with the reason, and perhaps a freeze.
    Explain,
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
    asked: Vec<(Tag, Asked)>,
    /// The question that the open prompt is about.
    pub question: Option<QuestionView>,
}

impl Turns {
    /// The host is gone, and with it its answers.
    pub fn host_gone(&mut self) {
        self.asked.clear();
    }

    /// A seizure is on its way.
    fn seizes(&self) -> bool {
        self.asked.iter().any(|(_, what)| matches!(what, Asked::Seize))
    }

    /// It is one of these.
    pub fn was_asked_as(&self, tag: Tag) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == tag)
    }
}

impl Attached {
    pub(crate) fn chord_sign(&self) -> Option<char> {
        self.options.chord.map(|control| char::from(control + 64))
    }

    /// The host has something to tell the person.
    pub(crate) fn noticed(&mut self, notice: &Notice) {
        let sign = self.chord_sign();
        if let Some(text) = self.turns.known.hear(notice, &self.options.us, sign) {
            self.say(text);
        }
    }

    /// Our keys were refused.
    pub(crate) fn keys_refused(&mut self, fault: &Fault) {
        let text = notice::refused_keys(fault, self.chord_sign());
        self.say(text);
    }

    /// A chord was pressed.
    pub(crate) fn chord_pressed(&mut self, meaning: &Meaning) {
        match meaning {
            Meaning::Take | Meaning::Seize | Meaning::Answer if self.options.read_only => {
                self.say(" this terminal is read-only ")
            }
            Meaning::Take => self.ask_act(Ask::Take, Asked::Take),
            Meaning::Release => self.ask_act(Ask::Release, Asked::Release),
            Meaning::Thaw => self.ask_act(Ask::Thaw, Asked::Thaw),
            Meaning::Operators => self.ask(Request::View, Asked::Operators),
            Meaning::Answer => self.want_to_answer(),
            // At once: who stops an agent has no time to type. The reason follows.
            Meaning::Seize => {
                self.ask_act(Ask::Seize { freeze: false, reason: AT_TERMINAL.into() }, Asked::Seize);
                if self.turns.seizes() {
                    self.show_prompt(Prompt::new(Purpose::Seize { freeze: false }));
                }
            }
            Meaning::Give => {
                let mut prompt = Prompt::new(Purpose::Give);
                match &self.turns.known.asker {
                    Some(asker) => prompt.offer(asker),
                    None => self.ask(Request::View, Asked::Offer),
                }
                self.show_prompt(prompt);
            }
            Meaning::Help | Meaning::Nothing => {
                let Some(chord) = self.options.chord else { return };
                self.say(chord::help(chord, self.options.detach_key, usize::from(self.size.cols())))
            }
            // Not about the turn: the process that reads the keys handles them.
            Meaning::Type(_) | Meaning::Detach | Meaning::Switch | Meaning::Suspend => {}
        }
    }

    /// Keys for the prompt that is open.
    pub(crate) fn prompt_typed(&mut self, keys: &[u8]) {
        let Some(mut prompt) = self.line.prompt.take() else { return };
        match prompt.feed(keys) {
            None => self.show_prompt(prompt),
            Some(decided) => {
                self.close_prompt();
                match decided {
                    Decided::Nothing => {}
                    Decided::Give(handle) => self.ask(Request::Actors, Asked::Known(handle)),
                    Decided::Seize { freeze, reason } => {
                        let reason = if reason.is_empty() { AT_TERMINAL.into() } else { reason };
                        self.ask_act(Ask::Seize { freeze, reason }, Asked::Explain)
                    }
                    Decided::Answer(text) => self.answer_question(&text),
                }
            }
        }
    }

    pub(crate) fn ask(&mut self, request: Request, what: Asked) {
        // After a crash our number is only known once the resumption is answered.
        let there = self.host && self.resume_asked.is_none() && self.turns.asked.len() < ASKED_MAX;
        if !there {
            return self.say(HOST_AWAY);
        }
        let tag = self.ask_host(request);
        self.turns.asked.push((tag, what));
    }

    fn ask_act(&mut self, ask: Ask, what: Asked) {
        self.ask(Request::Act { client: self.client, ask }, what);
    }

    fn give(&mut self, to: Actor) {
        self.ask_act(Ask::Give { to }, Asked::Give);
    }

    /// Takes an answer, if it is to one of these.
    pub(crate) fn act_answered(&mut self, tag: Tag, answer: Result<Answer, Fault>) {
        let Some(at) = self.turns.asked.iter().position(|(asked, _)| *asked == tag) else { return };
        let (_, what) = self.turns.asked.remove(at);
        match answer {
            Ok(answer) => self.act_done(what, answer),
            Err(fault) => self.act_refused(&what, &fault),
        }
    }

    fn act_refused(&mut self, what: &Asked, fault: &Fault) {
        match what {
            Asked::Take if fault.code == Code::TurnHeld => {
                let waited = self.turns.known.waits;
                self.ask_act(Ask::Request, Asked::Request { waited });
            }
            Asked::Offer => {}
            Asked::Seize => {
                // There is nothing to give a reason for.
                if self.line.prompt.as_ref().is_some_and(Prompt::is_about_seizure) {
                    self.close_prompt();
                }
                self.say(notice::refused_act(fault))
            }
            _ => self.say(notice::refused_act(fault)),
        }
    }

    fn act_done(&mut self, what: Asked, answer: Answer) {
        match (what, answer) {
            (what, Answer::Turn(answer)) => {
                self.turns.known.saw(&answer.turn, &self.options.us);
                match what {
                    Asked::Request { waited } => self.say(notice::asked(&answer, waited)),
                    Asked::Release | Asked::Give => self.say(notice::whose(&answer.turn)),
                    Asked::Thaw => self.say(" the session continues "),
                    _ => self.say(YOURS),
                }
            }
            (what, Answer::Seized(answer)) => {
                self.turns.known.saw(&answer.turn, &self.options.us);
                if let (Asked::Seize, Some(prompt)) = (&what, self.line.prompt.take()) {
                    return self.show_prompt(prompt.seized());
                }
                let text = notice::seized(&answer, self.chord_sign());
                self.say(text);
            }
            (what, Answer::View(view)) => self.seen(what, &view),
            (Asked::Questions, Answer::Questions(open)) => self.questions_seen(open),
            (_, Answer::Replied(question)) => self.answer_taken(&question),
            (Asked::Known(handle), Answer::Actors(actors)) => {
                match actors.into_iter().map(|view| view.actor).find(|actor| actor.handle == handle) {
                    Some(actor) => self.give(actor),
                    None => self.ask(Request::View, Asked::Here(handle)),
                }
            }
            // As if there were none of them.
            (Asked::Questions, _) => self.questions_seen(Vec::new()),
            (Asked::Known(handle), _) => self.ask(Request::View, Asked::Here(handle)),
            (_, _) => {}
        }
    }

    fn seen(&mut self, what: Asked, view: &SessionView) {
        self.turns.known.saw(&view.turn, &self.options.us);
        let mut actors = view.clients.iter().filter_map(|client| client.actor.as_ref());
        match what {
            Asked::Offer => {
                let only = notice::whom_to_give(view, &self.options.us);
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

    /// Whether we write now, as the host says; an older word than the newest known counts for nothing.
    pub(crate) fn told_writes(&mut self, writes: bool, fence: u64) {
        let had = self.keys.writes;
        if !self.keys.adopt(writes, fence) || !had || self.keys.writes {
            return;
        }
        self.lost_writing();
        if self.keys.is_read_by_keeper() {
            self.ask_keys_back();
        }
    }

    /// We are no longer the writer: nor do we answer.
    pub(crate) fn lost_writing(&mut self) {
        self.keys.writes = false;
        self.duty.stop = self.answers || self.duty.begin.is_some();
    }
}
