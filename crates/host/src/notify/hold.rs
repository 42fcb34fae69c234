//! What is sent when: a wait that passes by itself is not sent, and the same one not twice.
//!
//! Pure: the caller says what happened and what time it is, in milliseconds of any clock that does not go back.

use super::On;
use holdfast_types::SessionId;
use holdfast_wire::attention::{Event, Now, What};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::questions::QuestionId;
use holdfast_wire::runs::RunId;
use std::collections::BTreeMap;

/// A state must hold this long before a message is sent: a prompt that is answered at once needs no help.
const HOLD_MS: u64 = 1_000;
/// The same event of the same session is sent at most this often, unless the prompt differs.
const AGAIN_MS: u64 = 10_000;

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// What it is.
    pub on: On,
    /// The event.
    pub event: Event,
}

/// A message of a session replaces another of its kind; each question and each run has its own.
type Key = (SessionId, On, Option<Which>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    Question(QuestionId),
    Run(RunId),
    Approval(ApprovalId),
}

/// Messages that wait, and those that were sent.
#[derive(Debug, Default)]
pub struct Hold {
    pending: BTreeMap<Key, (u64, Event)>,
    sent: BTreeMap<Key, (u64, String)>,
}

impl Hold {
    /// Something happened.
    pub fn happened(&mut self, event: &Event, now_ms: u64) {
        let id = event.session;
        match &event.what {
            What::State { now: Now::Waiting { .. }, .. } => self.hold(On::Waiting, event, now_ms + HOLD_MS),
            What::State { .. } => {
                self.pending.remove(&(id, On::Waiting, None));
            }
            What::Exit { .. } => {
                // What an ended session wanted is over. What became of its runs is still news.
                self.pending.retain(|(session, on, _), _| *session != id || matches!(on, On::RunEnded | On::Reap));
                self.hold(On::Exit, event, now_ms);
            }
            What::TurnRequested { .. } => self.hold(On::TurnRequested, event, now_ms + HOLD_MS),
            What::Turn { .. } => {
                self.pending.remove(&(id, On::TurnRequested, None));
            }
            What::Asked { .. } => self.hold(On::Question, event, now_ms + HOLD_MS),
            What::Answered { question, .. } | What::QuestionClosed { question, .. } => {
                self.pending.remove(&(id, On::Question, Some(Which::Question(*question))));
            }
            What::Held { .. } => self.hold(On::Approval, event, now_ms),
            What::HeldClosed { approval, .. } => {
                self.pending.remove(&(id, On::Approval, Some(Which::Approval(*approval))));
            }
            What::RunEnded { .. } => self.hold(On::RunEnded, event, now_ms),
            What::ReapSoon { .. } => self.hold(On::Reap, event, now_ms),
            // What was told stays told: whoever came back to use it knows.
            What::ReapAverted => {
                self.pending.remove(&(id, On::Reap, None));
            }
            What::Reaped { .. } => self.hold(On::Reap, event, now_ms),
            What::Renamed { .. }
            | What::Recovered { .. }
            | What::RunStarted { .. }
            | What::Started { .. }
            | What::Attached { .. }
            | What::Detached { .. } => {}
            What::Listen { .. } | What::NotListening { .. } => {}
        }
    }

    fn hold(&mut self, on: On, event: &Event, at_ms: u64) {
        let which = match &event.what {
            What::Asked { question, .. } => Some(Which::Question(*question)),
            What::Held { approval, .. } => Some(Which::Approval(*approval)),
            What::RunEnded { run, .. } => Some(Which::Run(*run)),
            _ => None,
        };
        self.pending.insert((event.session, on, which), (at_ms, event.clone()));
    }

    /// What to send now.
    pub fn due(&mut self, now_ms: u64) -> Vec<Due> {
        self.sent.retain(|_, (at_ms, _)| now_ms < *at_ms + AGAIN_MS);
        let mut due = Vec::new();
        self.pending.retain(|key, (at_ms, event)| {
            if *at_ms > now_ms {
                return true;
            }
            let prompt = subject(&event.what);
            let sent = self.sent.get(key).is_some_and(|(_, before)| *before == prompt);
            if !sent {
                self.sent.insert(*key, (now_ms, prompt));
                due.push(Due { on: key.1, event: event.clone() });
            }
            false
        });
        due.sort_by_key(|due| due.event.seq);
        due
    }

    /// When to look again.
    pub fn next_ms(&self) -> Option<u64> {
        self.pending.values().map(|(at_ms, _)| *at_ms).min()
    }
}

/// What makes one notification another than the last of its kind.
fn subject(what: &What) -> String {
    match what {
        What::State { now: Now::Waiting { prompt, .. }, .. } => prompt.clone(),
        What::TurnRequested { by } => by.to_string(),
        What::Asked { text, .. } => text.clone(),
        What::RunEnded { command, .. } | What::Held { command, .. } => command.clone(),
        What::Renamed { .. } | What::RunStarted { .. } | What::Answered { .. } | What::QuestionClosed { .. } => {
            String::new()
        }
        What::State { .. } | What::Exit { .. } | What::Recovered { .. } | What::Turn { .. } => String::new(),
        What::HeldClosed { .. } | What::ReapAverted => String::new(),
        // One is told though the other was a moment ago.
        What::ReapSoon { ends_ms, .. } => ends_ms.to_string(),
        What::Reaped { .. } => "reaped".into(),
        What::Started { .. } | What::Attached { .. } | What::Detached { .. } => String::new(),
        What::Listen { .. } | What::NotListening { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Exit;
    use holdfast_types::doing::Kind;

    fn waits(prompt: &str) -> What {
        What::State { now: Now::Waiting { kind: Kind::Line, prompt: prompt.into() }, pid: None, since_ms: 0 }
    }

    fn runs() -> What {
        What::State { now: Now::Running, pid: None, since_ms: 0 }
    }

    /// Plays what happened at which time; returns what was sent, and when.
    fn play(script: &[(u64, What)]) -> Vec<(u64, String)> {
        let mut hold = Hold::default();
        let mut sent = Vec::new();
        let mut events = script.iter().enumerate().peekable();
        for now_ms in 0..30_000 {
            while let Some((seq, (_, what))) = events.next_if(|(_, (at, _))| *at == now_ms) {
                let name = "work".parse().unwrap();
                let session = SessionId::from_random_bits(1);
                hold.happened(&Event { seq: seq as u64, at_ms: 0, session, name, what: what.clone() }, now_ms);
            }
            let due = hold.due(now_ms);
            sent.extend(due.into_iter().map(|due| (now_ms, format!("{} {}", due.on.word(), subject(&due.event.what)))));
        }
        sent
    }

    fn sent(at: u64, text: &str) -> (u64, String) {
        (at, text.into())
    }

    #[test]
    fn a_wait_is_told_when_it_has_held_and_not_when_it_passed() {
        assert_eq!(play(&[(0, waits("a"))]), [sent(1_000, "waiting a")]);
        assert_eq!(play(&[(0, waits("a")), (900, runs())]), []);
    }

    #[test]
    fn the_same_is_told_again_after_a_while_and_another_prompt_at_once() {
        let again = [(0, waits("a")), (2_000, runs()), (3_000, waits("a")), (13_000, runs()), (14_000, waits("a"))];
        assert_eq!(play(&again), [sent(1_000, "waiting a"), sent(15_000, "waiting a")]);
        let other = [(0, waits("a")), (2_000, waits("b"))];
        assert_eq!(play(&other), [sent(1_000, "waiting a"), sent(3_000, "waiting b")]);
    }

    #[test]
    fn an_end_is_told_at_once_and_settles_the_rest() {
        assert_eq!(play(&[(0, waits("a")), (500, What::Exit { exit: Exit::Code(0) })]), [sent(500, "exit ")]);
    }

    #[test]
    fn every_question_is_told_unless_it_was_answered_at_once() {
        let by: holdfast_types::Handle = "agent:bot".parse().unwrap();
        let id = QuestionId::from_random_bits;
        let asked = |n, text: &str| What::Asked { question: id(n), by: by.clone(), text: text.into(), options: vec![] };
        let answered = What::Answered { question: id(2), by: by.clone(), text: "no".into(), option: None };
        let script = [(0, asked(1, "a")), (0, asked(2, "b")), (0, asked(3, "c")), (900, answered)];
        assert_eq!(play(&script), [sent(1_000, "question a"), sent(1_000, "question c")]);
    }

    #[test]
    fn every_runs_end_is_told_at_once_also_with_its_sessions() {
        let over = |n| What::RunEnded {
            run: RunId::from_random_bits(n),
            by: "agent:bot".parse().unwrap(),
            command: "make".into(),
            state: holdfast_wire::runs::RunState::Ended,
            exit_code: Some(0),
            act: None,
        };
        let script = [(0, over(1)), (0, over(2)), (0, What::Exit { exit: Exit::Code(0) })];
        assert_eq!(play(&script), [sent(0, "run_ended make"), sent(0, "run_ended make"), sent(0, "exit ")]);
    }

    #[test]
    fn a_request_that_is_granted_at_once_is_not_told() {
        let by: holdfast_types::Handle = "agent:bot".parse().unwrap();
        let asked = (0, What::TurnRequested { by: by.clone() });
        assert_eq!(play(&[asked.clone(), (10, What::Turn { holder: Some(by) })]), []);
        assert_eq!(play(&[asked]), [sent(1_000, "turn_requested agent:bot")]);
    }
}
