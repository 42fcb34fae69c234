//! Errors, worded so that an agent knows what to do next. No text tells how to get past a refusal.

use holdfast_wire::attention::Now;
use holdfast_wire::{Code, Fault};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A tool's error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trouble {
    /// A stable word: `turn_held`, `shell_busy`, `waiting_for_input`, `denied`, …
    pub code: String,
    /// What is the matter.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// What belongs to the code: who has the turn, what runs, which right is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<JsonObject>>,
}

impl Trouble {
    /// Of our own.
    pub fn new(code: &str, message: impl Into<String>) -> Trouble {
        let message = without_commands(message.into());
        Trouble { code: code.into(), message, hint: String::new(), details: None }
    }

    /// Arguments that do not fit.
    pub fn bad(message: impl Into<String>) -> Trouble {
        Trouble::new("bad_request", message)
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Trouble {
        self.hint = hint.into();
        self
    }

    /// Adds what belongs to the code.
    pub fn details(mut self, details: Value) -> Trouble {
        self.details = details.as_object().cloned().map(Box::new);
        self
    }

    /// As an answer: an error that the agent sees.
    pub fn answer(&self) -> CallToolResult {
        let mut text = format!("{}: {}", self.code, self.message);
        if !self.hint.is_empty() {
            text.push_str(&format!("\n{}", self.hint));
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "error": self }));
        result
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        let hint =
            hint(&fault).unwrap_or_else(|| if is_for_shells(&fault.hint) { String::new() } else { fault.hint.clone() });
        let code = serde_json::to_value(fault.code).ok().and_then(|code| code.as_str().map(str::to_owned));
        let mut details = fault.details.map(|details| match *details {
            Value::Object(details) => Box::new(details),
            other => Box::new(JsonObject::from_iter([("value".to_owned(), other)])),
        });
        // To an agent a command that waits for something else than input runs, as tools say of it elsewhere.
        let state = details.as_mut().and_then(|details| details.get_mut("state")?.get_mut("state"));
        if let Some(state) = state.filter(|state| **state == Now::BlockedElsewhere.word()) {
            *state = Now::Running.word().into();
        }
        let message = without_commands(fault.message);
        Trouble { code: code.unwrap_or_default(), message, hint, details }
    }
}

/// A message without what it says in parentheses about commands of a shell.
fn without_commands(message: String) -> String {
    let Some(from) = message.find(" (see `holdfast ") else { return message };
    let to = message[from..].find(')').map_or(message.len(), |end| from + end + 1);
    format!("{}{}", &message[..from], &message[to..])
}

/// Whether a hint names commands of a shell, which an agent with tools does not have.
fn is_for_shells(hint: &str) -> bool {
    hint.contains("holdfast ") || hint.contains("--")
}

/// What an agent can do about a refusal, by tools it has. None: what the host says is as good.
fn hint(fault: &Fault) -> Option<String> {
    let details = fault.details.as_deref();
    let text = match fault.code {
        Code::TurnHeld => {
            let by = details.and_then(|details| details["by"]["handle"].as_str()).unwrap_or("another actor");
            format!(
                "Nothing was typed: {by} has the turn. Request it with `turn` {{action: \"request\"}} and try again when you have it, or use a session of your own (`open_session`)."
            )
        }
        Code::ShellBusy => busy(details),
        Code::ApprovalNeeded => {
            let id = details.and_then(|details| details["approval"].as_str()).unwrap_or_default();
            format!("Nothing ran yet: a person is asked. Wait for the answer with `wait_for` {{approval: \"{id}\"}}; it then runs by itself, so do not run it again. `may` tells what is allowed without asking.")
        }
        Code::Denied if details.is_some_and(|details| details["rule"] == "gate.syntax") => {
            "Correct the line and run it again: a quote or bracket may be missing or too many. If it is right, put it into a script and run that.".into()
        }
        Code::Denied if details.is_some_and(|details| details["code"] == "forbidden") => {
            "The policy of this host denies it. Leave it, find another way to the goal that `may` allows, or ask a person with `ask_human`.".into()
        }
        Code::Denied => {
            let right = details.and_then(|details| details["right"].as_str());
            match right {
                Some(right) => format!(
                    "You do not have the right `{right}` here. Leave it, use a session of your own (`open_session`), or ask a person with `ask_human`."
                ),
                None => "Leave it, or ask a person with `ask_human`.".into(),
            }
        }
        Code::Frozen => {
            "A person froze this session. Leave it alone until it resumes; check with `session_state`, or ask with `ask_human`."
                .into()
        }
        Code::NotFound | Code::Ambiguous => "List sessions with `sessions`.".into(),
        Code::NoSuchRun => "Use the `run` that `run_command` returned, or the key it was given; `runs` lists them.".into(),
        Code::Ended => "`read_output` still shows its last output; `open_session` starts another session.".into(),
        Code::NameTaken => "Use that session by its name, or choose another name.".into(),
        Code::KeyConflict => "A key belongs to one command forever: use a new key for another command.".into(),
        Code::Ahead => "Read from an offset of an earlier answer: continue from `to`.".into(),
        Code::Busy => "The program is not reading its terminal. Look with `session_state`, then try again.".into(),
        Code::NotHolder => "`turn` {action: \"get\"} shows who has it.".into(),
        Code::UnknownOperation => {
            "This host is older than its client: a person can restart it; sessions keep running.".into()
        }
        Code::FenceStale => "Another actor has typed since. `read_output` the screen again before you continue.".into(),
        _ => return None,
    };
    Some(text)
}

fn busy(details: Option<&Value>) -> String {
    let state = details.map(|details| &details["state"]);
    let is = |field: &str, word: &str| state.is_some_and(|state| state[field] == word);
    if is("kind", "password") {
        return format!("Nothing was typed. {PASSWORD}");
    }
    if is("state", "waiting") {
        return "Nothing was typed: a program waits for input (`details.state.prompt`). Answer it with `send_input`, or stop it with `interrupt`.".into();
    }
    if is("state", "full_screen") {
        return "Nothing was typed: a full-screen program is active. Look with `read_output` {view: \"screen\"}; leave the program with its keys (`send_input`; a pager ends with q), or use another session (`open_session`).".into();
    }
    match details.and_then(|details| details["run"].as_str()) {
        Some(run) => format!(
            "Nothing was typed: another command is running. Wait for it with `wait_for` {{run: \"{run}\"}}, or use another session (`open_session`)."
        ),
        None => {
            "Nothing was typed. Wait with `wait_for` {until: \"idle\"}, look with `read_output`, or use another session (`open_session`)."
                .into()
        }
    }
}

/// What to do where a password is asked for.
pub const PASSWORD: &str = "A program asks for a password: do not guess or type one. Ask a person with `ask_human` to type it into this session, then `wait_for` the run; or `interrupt` the command.";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code, details: Value) -> Trouble {
        let mut fault = Fault::new(code, "no").hint("holdfast seize x");
        fault.details = Some(Box::new(details));
        fault.into()
    }

    #[test]
    fn a_refusal_names_a_tool_to_go_on_with() {
        let held = of(Code::TurnHeld, json!({"by": {"handle": "human:ann"}}));
        assert!(held.hint.contains("human:ann") && held.hint.contains("request"), "{held:?}");
        let busy = of(Code::ShellBusy, json!({"run": "run_1", "state": {"state": "running"}}));
        assert!(busy.hint.contains("run_1"), "{busy:?}");
        let asked = of(Code::ShellBusy, json!({"state": {"state": "waiting", "kind": "password"}}));
        assert!(asked.hint.contains("do not guess"), "{asked:?}");
        assert_eq!(of(Code::TooMany, json!({})).hint, "", "what only a shell can do is left out");
        let denied = of(Code::Denied, json!({"right": "signal"}));
        assert!(denied.hint.contains("`signal`"), "{denied:?}");
    }

    #[test]
    fn a_command_that_waits_for_something_else_than_input_runs() {
        let state = |details| of(Code::ShellBusy, details).details.unwrap()["state"].clone();
        assert_eq!(state(json!({"state": {"state": "blocked_elsewhere"}})), json!({"state": "running"}));
        assert_eq!(state(json!({"state": {"state": "waiting"}})), json!({"state": "waiting"}));
        assert_eq!(state(json!({"state": "blocked_elsewhere"})), "blocked_elsewhere", "another thing's");
    }

    #[test]
    fn no_message_names_commands_of_a_shell() {
        let bad = |text: &str| Trouble::bad(text.to_owned()).message;
        assert_eq!(bad("invalid id \"x\" (see `holdfast questions`)"), "invalid id \"x\"");
        assert_eq!(bad("a (see `holdfast run ls`), b (c)"), "a, b (c)");
        assert_eq!(bad("plain (as it is)"), "plain (as it is)");
    }

    #[test]
    fn no_hint_tells_how_to_take_over() {
        for code in [Code::TurnHeld, Code::ShellBusy, Code::Denied, Code::Frozen, Code::NotHolder] {
            for details in [json!({}), json!({"run": "run_1"}), json!({"state": {"kind": "password"}})] {
                let hint = of(code, details).hint;
                assert!(!hint.contains("seize") && !hint.contains("kill") && !hint.is_empty(), "{hint}");
            }
        }
    }
}
