//! The message: for people a sentence that says how to answer, for programs the event.

use super::On;
use super::hold::Due;
use holdfast_graph::render::visible;
use holdfast_types::doing::Kind;
use holdfast_wire::attention::{Now, What};
use serde_json::{Value, json};

/// A notification, ready to go.
#[derive(Debug, Clone)]
pub struct Message {
    /// Which kind.
    pub on: On,
    /// For people.
    pub text: String,
    /// The session's id and name.
    pub session: String,
    pub name: String,
    /// What the screen asks; empty where it asks nothing.
    pub prompt: String,
    /// For programs.
    pub json: Value,
}

impl Message {
    /// Of what is due.
    pub fn of(due: &Due) -> Message {
        let event = &due.event;
        let name = event.name.as_str();
        let (text, prompt, answer) = match &event.what {
            What::State { now: Now::Waiting { kind, prompt }, .. } => {
                let asks = if prompt.is_empty() { "input".into() } else { format!("\"{prompt}\"") };
                let (what, answer) = match kind {
                    Kind::Password => {
                        (format!("waits for a password: {asks}"), format!("holdfast send {name} --secret"))
                    }
                    Kind::Choice => (format!("waits for a choice: {asks}"), format!("holdfast attach {name}")),
                    Kind::Line | Kind::Repl => (format!("waits for input: {asks}"), format!("holdfast attach {name}")),
                };
                (what, prompt.clone(), answer)
            }
            What::Exit { exit } => (format!("has ended: {exit}"), String::new(), format!("holdfast screen {name}")),
            What::TurnRequested { by } => {
                (format!("{by} asks for the turn"), String::new(), format!("holdfast give {name} --to {by}"))
            }
            What::Asked { question, by, text, options } => {
                let options = if options.is_empty() { String::new() } else { format!(" [{}]", options.join("/")) };
                // What an actor wrote, for commands that may show it in a terminal.
                let asks = visible(&format!("{text}{options}"));
                (format!("{by} asks: {asks}"), asks, format!("holdfast answer {question}"))
            }
            What::Held { approval, by, command, why, .. } => {
                let wants = visible(command);
                let text = format!("{by} wants to run: {wants} ({})", visible(why));
                (text, wants, format!("holdfast approvals show {approval}"))
            }
            What::RunEnded { run, by, command, state, exit_code, .. } => {
                let status = exit_code.map_or_else(String::new, |code| format!(" with status {code}"));
                let text = format!("a run of {by} {}{status}: {}", state.word(), visible(command));
                (text, String::new(), format!("holdfast run output {run}"))
            }
            What::ReapSoon { ends_ms, why } => {
                let left_s = ends_ms.saturating_sub(event.at_ms).div_ceil(1000);
                let left = if left_s > 120 { format!("{} minutes", left_s / 60) } else { format!("{left_s} s") };
                let text = format!("is ended in {left}: {}", why.words());
                (text, String::new(), format!("holdfast keep {name}"))
            }
            What::Reaped { why } => {
                (format!("was ended: {}", why.words()), String::new(), format!("holdfast screen {name}"))
            }
            What::State { .. }
            | What::ReapAverted
            | What::Recovered { .. }
            | What::Renamed { .. }
            | What::RunStarted { .. }
            | What::Answered { .. }
            | What::QuestionClosed { .. }
            | What::HeldClosed { .. }
            | What::Turn { .. }
            | What::Started { .. }
            | What::Listen { .. }
            | What::NotListening { .. }
            | What::Attached { .. }
            | What::Detached { .. } => (String::new(), String::new(), String::new()),
        };
        let text = match due.on {
            On::Waiting => format!("holdfast: {name} {text} · answer: {answer}"),
            On::Approval => format!("holdfast: in {name} {text} · see and answer: {answer}"),
            On::Exit => format!("holdfast: {name} {text} · see: {answer}"),
            On::TurnRequested => format!("holdfast: in {name} {text} · give it: {answer}"),
            On::RunEnded => format!("holdfast: in {name} {text} · see: {answer}"),
            On::Reap if matches!(event.what, What::Reaped { .. }) => format!("holdfast: {name} {text} · see: {answer}"),
            On::Reap => format!("holdfast: {name} {text} · keep it: {answer}"),
            On::Question => format!("holdfast: in {name} {text} · answer: {answer}"),
        };
        let json = json!({ "on": due.on.word(), "text": text, "answer": answer, "event": event });
        Message { on: due.on, text, session: event.session.to_string(), name: name.to_owned(), prompt, json }
    }
}
