//! Shapes that several tools answer with.

use holdfast_types::{Exit, TimeMs};
use holdfast_wire::attention::{Now, StateView};
use holdfast_wire::params::{Life, SessionView};
use holdfast_wire::turns::TurnView;
use schemars::JsonSchema;
use serde::Serialize;

/// A session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Session {
    /// Its name: what the other tools take as `session`.
    pub name: String,
    /// Its id, which is never used again.
    pub id: String,
    /// `running`, `ended`, `lost`, `unknown` or `damaged`.
    pub life: String,
    /// The status of its command, where that has ended; 128 and more for a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// Its command and arguments.
    pub command: Vec<String>,
    /// Where it started.
    pub cwd: String,
    /// When it started, in milliseconds since the epoch.
    pub created_ms: TimeMs,
    /// The command's process.
    pub pid: u32,
    /// Columns and rows.
    pub size: String,
    /// Offset of the next output byte.
    pub head: u64,
    /// The oldest offset that can still be read.
    pub oldest: u64,
    /// The title its program set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Who has the turn: only this actor can write now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Who is attached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<String>,
}

impl From<&SessionView> for Session {
    fn from(view: &SessionView) -> Session {
        let life = match view.life {
            Life::Running => "running",
            Life::Ended => "ended",
            Life::Lost => "lost",
            Life::Unknown => "unknown",
            Life::Damaged => "damaged",
        };
        let attached = view.clients.iter().filter_map(|client| client.actor.as_ref());
        Session {
            name: view.name.to_string(),
            id: view.id.to_string(),
            life: life.into(),
            exit_code: view.exit.map(Exit::as_status),
            command: view.command.clone(),
            cwd: view.cwd.clone(),
            created_ms: view.created_ms,
            pid: view.pid,
            size: view.size.to_string(),
            head: view.head,
            oldest: view.oldest,
            title: view.title.clone(),
            turn: holder(&view.turn),
            attached: attached.map(|actor| actor.handle.to_string()).collect(),
        }
    }
}

/// Who has the turn.
pub fn holder(turn: &TurnView) -> Option<String> {
    turn.holder.as_ref().map(|holder| holder.actor.handle.to_string())
}

impl Session {
    /// One line.
    pub fn line(&self) -> String {
        let mut line = format!("{}  {}  {}  in {}", self.name, self.life, self.command.join(" "), self.cwd);
        if let Some(code) = self.exit_code {
            line.push_str(&format!("  exit {code}"));
        }
        if let Some(turn) = &self.turn {
            line.push_str(&format!("  turn: {turn}"));
        }
        line
    }
}

/// What to do about who waits.
const WAITS: &str = "A program waits for input: answer with `send_input`, or stop it with `interrupt`.";
const PAGER: &str = "This looks like a pager: `send_input` {keys: [\"q\"]} leaves it. Use `| cat` next time.";
const FULL_SCREEN: &str = "A full-screen program is on; the output is its screen. Press keys with `send_input`: q leaves a pager, \
    [\"Esc\", \":\", \"q\", \"!\", \"Enter\"] leaves vi.";
/// How the last line of a pager ends.
const PAGERS: &[&str] = &["(END)", "--More--"];

/// What a session is doing.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Doing {
    /// `idle_prompt`, `running`, `waiting`, `full_screen`, `stopped`, `frozen`, `ended` or `unknown`.
    pub state: String,
    /// Where it waits, for what: `line`, `password`, `repl` or `choice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where it waits, the text before the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Where it is frozen, by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The status of its command, where that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The process that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Since when it was seen so, in milliseconds since the epoch.
    pub since_ms: TimeMs,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl From<&StateView> for Doing {
    fn from(view: &StateView) -> Doing {
        let mut doing = Doing {
            // Who waits for a clock, a child or the network works, as far as an agent is concerned.
            state: if view.now == Now::BlockedElsewhere { "running" } else { view.now.word() }.into(),
            kind: None,
            prompt: None,
            by: None,
            exit_code: None,
            pid: view.pid,
            since_ms: view.since_ms,
            advice: None,
        };
        match &view.now {
            Now::Waiting { kind, prompt } => {
                doing.kind = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
                doing.prompt = Some(prompt.clone());
                doing.advice = Some(if doing.is_password() {
                    crate::trouble::PASSWORD.to_owned()
                } else {
                    PAGERS.iter().find(|end| prompt.trim_end().ends_with(**end)).map_or(WAITS, |_| PAGER).to_owned()
                });
            }
            Now::FullScreen => {
                doing.advice = Some(FULL_SCREEN.to_owned());
            }
            Now::Frozen { by } => {
                doing.by = Some(by.to_string());
                doing.advice = Some("A person froze it: leave it alone until it resumes.".to_owned());
            }
            Now::Ended { exit } => doing.exit_code = Some(exit.as_status()),
            Now::IdlePrompt | Now::Running | Now::BlockedElsewhere | Now::Stopped | Now::Unknown { .. } => {}
        }
        doing
    }
}

impl Doing {
    /// A password is asked for.
    pub fn is_password(&self) -> bool {
        self.kind.as_deref() == Some("password")
    }

    /// A line or two.
    pub fn line(&self) -> String {
        let mut line = self.state.clone();
        if let Some(kind) = &self.kind {
            line.push_str(&format!(" for {kind}"));
        }
        if let Some(prompt) = self.prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
            line.push_str(&format!(": {prompt:?}"));
        }
        if let Some(by) = &self.by {
            line.push_str(&format!(" by {by}"));
        }
        if let Some(code) = self.exit_code {
            line.push_str(&format!(" with {code}"));
        }
        if let Some(advice) = &self.advice {
            line.push_str(&format!("\n{advice}"));
        }
        line
    }
}
