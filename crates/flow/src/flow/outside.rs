//! What comes from outside: signals, answers, what was waited for in sessions, and what people decide.

use super::{Decided, Flow, Open, Phase, Refusal, Verdict, WHY_CHARS_MAX, value_of};
use crate::command::Command;
use crate::effect::Effect;
use crate::event::{Event, Hosted, Outcome};
use crate::{EVENTS_MAX, MAIL_MAX, VALUE_BYTES_MAX};
use holdfast_types::TimeMs;
use serde_json::{Value, json};

impl Flow {
    /// What was waited for in a session has come, or never will; or nothing came so far, and it is to be watched again.
    pub fn watched(&mut self, n: u32, came: Option<(bool, Value)>, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        let Some(Command::Wait { session, until, .. }) = self.open.get(&n).map(|open| &open.command) else {
            return out;
        };
        match came {
            Some((ok, value)) => self.done(&mut out, n, ok, value, now_ms),
            // Its timeout is set already.
            None => out.effects.push(Effect::Watch { n, session: session.clone(), until: *until }),
        }
        out
    }

    /// A flow that a step started has ended, or cannot be started.
    pub fn child_over(&mut self, n: u32, child: &str, ok: bool, value: Value, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        let is_child = |open: &Open| matches!(open.command, Command::Child { .. });
        // A step that was asked for anew has another child.
        let waits = |open: &Open| is_child(open) && self.child_id(n, open.generation) == child;
        if self.open.get(&n).is_some_and(|open| waits(open)) {
            self.done(&mut out, n, ok, value, now_ms);
        }
        out
    }

    pub(super) fn first_mail(&self, name: &str) -> Option<Value> {
        self.mail.iter().find(|mail| mail.name == name).map(|mail| mail.value.clone())
    }

    /// A signal came; one with an id that came before changes nothing.
    pub fn signal(&mut self, name: &str, value: Value, id: &str, by: &str, now_ms: TimeMs) -> Result<Decided, Refusal> {
        let mut out = Decided::default();
        if self.phase != Phase::Going {
            return Err(Refusal::Ended);
        }
        if !id.is_empty() && self.ids.contains_key(id) {
            return Ok(out);
        }
        if self.mail.len() >= MAIL_MAX || self.seq >= EVENTS_MAX {
            return Err(Refusal::TooMany("too many signals wait in this flow"));
        }
        if value.to_string().len() > VALUE_BYTES_MAX {
            return Err(Refusal::TooMany("a signal's value has at most 65536 bytes"));
        }
        let (name, id, by) = (name.to_owned(), id.to_owned(), by.to_owned());
        let waits = |open: &Open| matches!(&open.command, Command::Signal { name: wanted, .. } if *wanted == name);
        let n = self.open.iter().find(|(_, open)| waits(open)).map(|(n, _)| *n);
        self.put(&mut out, Event::Signal { name: name.clone(), value, id, by }, now_ms);
        if let Some((n, value)) = n.zip(self.first_mail(&name)) {
            self.done(&mut out, n, true, value, now_ms);
        }
        Ok(out)
    }

    /// The open questions: number, text and options.
    pub fn questions(&self) -> impl Iterator<Item = (u32, &str, &[String])> {
        self.open.iter().filter_map(|(n, open)| match &open.command {
            Command::Ask { text, options, .. } => Some((*n, text.as_str(), options.as_slice())),
            _ => None,
        })
    }

    /// A human answers a question: the only open one, or that with this number.
    pub fn answer(&mut self, n: Option<u32>, text: &str, by: &str, now_ms: TimeMs) -> Result<Decided, Refusal> {
        let mut asked = self.questions().filter(|(number, ..)| n.is_none_or(|n| n == *number));
        let (number, _, options) = asked.next().ok_or(Refusal::NoQuestion)?;
        if asked.next().is_some() {
            return Err(Refusal::WhichQuestion);
        }
        if !options.is_empty() && !options.iter().any(|option| option == text) {
            return Err(Refusal::NoOption(options.join(", ")));
        }
        drop(asked);
        let mut out = Decided::default();
        self.done(&mut out, number, true, json!({"answer": text, "by": by}), now_ms);
        Ok(out)
    }

    /// Somebody cancels it: what runs is stopped, what was done is undone.
    pub fn cancel(&mut self, reason: &str, by: &str, now_ms: TimeMs) -> Result<Decided, Refusal> {
        if self.phase != Phase::Going {
            return Err(Refusal::Ended);
        }
        let mut out = Decided::default();
        let reason: String = reason.chars().take(WHY_CHARS_MAX).collect();
        let value =
            if reason.is_empty() { format!("cancelled by {by}") } else { format!("cancelled by {by}: {reason}") };
        self.end(&mut out, false, value.into(), Some(by.to_owned()), now_ms);
        Ok(out)
    }

    /// Somebody wants the newest code to decide from here on, though nothing is blocked; or this file, with which the service starts
    /// workers by itself.
    pub fn recode(&mut self, hosted: Option<(String, Hosted)>, by: &str, now_ms: TimeMs) -> Result<Decided, Refusal> {
        let mut out = Decided::default();
        if self.phase != Phase::Going {
            return Err(Refusal::Ended);
        }
        let was_blocked = self.blocked.is_some();
        if let Some((code, hosted)) = hosted {
            self.put(&mut out, Event::Coded { code, hosted: Some(hosted) }, now_ms);
        }
        self.put(&mut out, Event::Unblocked { by: by.to_owned() }, now_ms);
        if was_blocked {
            out.effects.extend(self.resume());
        } else {
            out.effects.push(Effect::Decide);
        }
        Ok(out)
    }

    /// Somebody has mended something: a blocked flow goes on, a stuck step gets its verdict.
    pub fn retry(&mut self, verdict: &Verdict, by: &str, now_ms: TimeMs) -> Result<Decided, Refusal> {
        let mut out = Decided::default();
        let stuck: Vec<(u32, u32, Outcome)> =
            self.open.iter().filter_map(|(n, open)| Some((*n, open.attempt, open.stuck.clone()?))).collect();
        if self.blocked.is_none() && stuck.is_empty() {
            return Err(if self.is_over() { Refusal::Ended } else { Refusal::NotStuck });
        }
        if self.blocked.is_some() {
            self.put(&mut out, Event::Unblocked { by: by.to_owned() }, now_ms);
            out.effects.extend(self.resume());
        }
        for (n, attempt, outcome) in stuck {
            match verdict {
                Verdict::Again => self.again(&mut out, n, attempt, outcome, 0, now_ms),
                Verdict::Failed => self.done(&mut out, n, false, value_of(&outcome), now_ms),
                Verdict::Done(value) => self.done(&mut out, n, true, value.clone(), now_ms),
            }
        }
        Ok(out)
    }
}
