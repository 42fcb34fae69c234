//! Whom a process is taken for when it speaks for itself.
//!
//! The rule, in order:
//! 1. what was said explicitly (`--as`, `HOLDFAST_ACTOR`);
//! 2. with a known coding-agent marker in the environment: `agent:<the marker's name>`;
//! 3. inside a session: `agent:<login>`;
//! 4. without a terminal, neither at standard input nor at standard output: `agent:<login>`;
//! 5. else a person at an interactive terminal outside any session: `human:<login>`.
//!
//! So a process of 2, 3 or 4 is never taken for a human unless it says so, and then the record shows what it said. The
//! honest limit: what runs under the same uid can read the same files, the human's key too. Another uid helps.

use holdfast_types::{ActorClass, Handle};

/// What a process can see of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// `--as`, else `HOLDFAST_ACTOR`.
    pub explicit: Option<Handle>,
    /// Standard input is a terminal.
    pub stdin_tty: bool,
    /// Standard output is a terminal.
    pub stdout_tty: bool,
    /// It runs inside a session.
    pub inside_session: bool,
    /// What [`marker`] found in its environment.
    pub agent_marker: Option<String>,
    /// The user's login name.
    pub login: String,
}

/// Whom it is taken for, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Its handle.
    pub handle: Handle,
    /// Why.
    pub because: Because,
}

/// Why a process is taken for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It was said.
    Said,
    /// A coding agent's marker is in the environment.
    Marked,
    /// It runs inside a session.
    Inside,
    /// It has no terminal.
    NoTerminal,
    /// It is at an interactive terminal outside any session.
    AtTerminal,
}

/// Applies the rule of this module.
#[must_use]
pub fn decide(evidence: &Evidence) -> Who {
    let agent = |name: &str| Handle::near(ActorClass::Agent, name);
    let (handle, because) = match (&evidence.explicit, &evidence.agent_marker) {
        (Some(said), _) => (said.clone(), Because::Said),
        (None, Some(name)) => (agent(name), Because::Marked),
        (None, None) if evidence.inside_session => (agent(&evidence.login), Because::Inside),
        (None, None) if !evidence.stdin_tty && !evidence.stdout_tty => (agent(&evidence.login), Because::NoTerminal),
        (None, None) => (Handle::near(ActorClass::Human, &evidence.login), Because::AtTerminal),
    };
    Who { handle, because }
}

/// How a variable marks a coding agent.
enum Mark {
    /// This variable, set to anything but nothing, `0` or `false`.
    Is(&'static str),
    /// Every variable that begins so, unless it is one of [`SETTINGS`].
    Begins(&'static str),
    /// This variable holds the agent's name.
    Names(&'static str),
}

/// Variables coding agents set for what they run, in the order they are looked for. `AIDER_*` is left out: aider marks nothing,
/// those are settings people export.
const MARKS: &[(Mark, &str)] = &[
    (Mark::Is("CLAUDECODE"), "claude"),
    (Mark::Is("CLAUDE_CODE"), "claude"),
    (Mark::Begins("CLAUDE_CODE_"), "claude"),
    (Mark::Begins("CODEX_"), "codex"),
    (Mark::Begins("CURSOR_"), "cursor"),
    (Mark::Is("GEMINI_CLI"), "gemini"),
    (Mark::Is("QWEN_CODE"), "qwen"),
    (Mark::Is("OPENCODE"), "opencode"),
    (Mark::Begins("OPENCODE_"), "opencode"),
    (Mark::Is("CLINE_ACTIVE"), "cline"),
    (Mark::Is("GOOSE_TERMINAL"), "goose"),
    (Mark::Is("AUGMENT_AGENT"), "augment"),
    (Mark::Is("ANTIGRAVITY_AGENT"), "antigravity"),
    (Mark::Is("COPILOT_AGENT"), "copilot"),
    (Mark::Is("TRAE_AI_SHELL_ID"), "trae"),
    (Mark::Names("AI_AGENT"), "unnamed"),
    (Mark::Names("AGENT"), "unnamed"),
];

/// Beginnings of variables that people export for themselves, or that an editor sets in its own terminal: not marks.
const SETTINGS: &[&str] = &[
    "CLAUDE_CODE_API_",
    "CLAUDE_CODE_DISABLE_",
    "CLAUDE_CODE_ENABLE_",
    "CLAUDE_CODE_MAX_",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_",
    "CODEX_API_KEY",
    "CODEX_HOME",
    "CURSOR_API_KEY",
    "CURSOR_CONFIG_DIR",
    "CURSOR_TRACE_ID",
    "OPENCODE_API_KEY",
    "OPENCODE_CONFIG",
    "OPENCODE_DISABLE_",
    "OPENCODE_EXPERIMENTAL",
    "OPENCODE_MODEL",
    "OPENCODE_PERMISSION",
];

/// The name of the coding agent whose marker is among these variables.
#[must_use]
pub fn marker<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let on = |value: &str| !matches!(value, "" | "0" | "false");
    let set: Vec<(&str, &str)> = variables.into_iter().filter(|(_, value)| on(value)).collect();
    let is_setting = |key: &str| SETTINGS.iter().any(|setting| key.starts_with(setting));
    MARKS.iter().find_map(|(mark, name)| match mark {
        Mark::Is(is) => set.iter().any(|(key, _)| key == is).then(|| (*name).to_owned()),
        Mark::Begins(with) => {
            set.iter().any(|(key, _)| key.starts_with(with) && !is_setting(key)).then(|| (*name).to_owned())
        }
        Mark::Names(by) => set.iter().find(|(key, _)| key == by).map(|(_, value)| {
            let is_flag = matches!(*value, "1" | "true");
            if is_flag { (*name).to_owned() } else { (*value).to_owned() }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `said|marked|inside|in|out` → handle; login is always `Ann`.
    fn who(facts: &str) -> String {
        let has = |word: &str| facts.split(' ').any(|fact| fact == word);
        let evidence = Evidence {
            explicit: has("said").then(|| "human:bob".parse().unwrap()),
            stdin_tty: has("in"),
            stdout_tty: has("out"),
            inside_session: has("inside"),
            agent_marker: has("marked").then(|| "claude".to_owned()),
            login: "Ann".into(),
        };
        decide(&evidence).handle.to_string()
    }

    #[test]
    fn only_a_person_at_a_terminal_outside_any_session_is_human_without_saying_so() {
        let cases = [
            ("in out", "human:ann"),
            ("in", "human:ann"),
            ("out", "human:ann"),
            ("", "agent:ann"),
            ("in out inside", "agent:ann"),
            ("in out marked", "agent:claude"),
            ("in out inside marked", "agent:claude"),
            ("marked", "agent:claude"),
            ("said", "human:bob"),
            ("said in out inside marked", "human:bob"),
        ];
        for (facts, expected) in cases {
            assert_eq!(who(facts), expected, "{facts}");
        }
    }

    #[test]
    fn markers_are_known_by_name_and_settings_are_not_markers() {
        let cases: &[(&str, Option<&str>)] = &[
            ("CLAUDECODE=1", Some("claude")),
            ("CLAUDECODE=0", None),
            ("CLAUDE_CODE_ENTRYPOINT=cli", Some("claude")),
            ("CLAUDE_CODE_USE_BEDROCK=1", None),
            ("CLAUDE_CODE_SSE_PORT=4711", None),
            ("CODEX_SANDBOX=seatbelt", Some("codex")),
            ("CODEX_HOME=/home/ann/.codex", None),
            ("CURSOR_AGENT=1", Some("cursor")),
            ("CURSOR_TRACE_ID=abc", None),
            ("GEMINI_CLI=1", Some("gemini")),
            ("GEMINI_API_KEY=x", None),
            ("OPENCODE=1", Some("opencode")),
            ("OPENCODE_CONFIG=/x", None),
            ("AI_AGENT=devin", Some("devin")),
            ("AI_AGENT=1", Some("unnamed")),
            ("AIDER_MODEL=x", None),
            ("HOME=/home/ann", None),
            ("", None),
        ];
        for (variable, expected) in cases {
            assert_eq!(marker(variable.split_once('=')).as_deref(), *expected, "{variable}");
        }
    }
}
