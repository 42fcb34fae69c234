//! What an attached terminal and the host tell each other, and how they find each other again.

use super::output::View;
use super::relink::Relink;
use super::run::Attached;
use super::terminal::Terminal;
use super::{AttachEnd, AttachError, AttachOptions};
use crate::connection::Incoming;
use holdfast_types::Size;
use holdfast_wire::operations::op;
use holdfast_wire::params::{
    AnswerEvent, Answers, AttachAnswer, AttachParams, DetachedEvent, Resume, UpdateAnswer, UpdateParams,
};
use serde_json::Value;

/// Variables a session may want to follow from client to client.
const FOLLOWED: &[&str] = &[
    "TERM",
    "COLORTERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "SSH_AUTH_SOCK",
    "SSH_CONNECTION",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

impl Attached<'_> {
    /// What the host sent.
    pub(super) fn read_host(&mut self) -> Result<(), AttachError> {
        let Some(host) = &mut self.host else { return Ok(()) };
        let Ok(incoming) = host.receive_ready() else {
            self.host_is_gone();
            return Ok(());
        };
        for one in incoming {
            match one {
                Incoming::Event { method, params } => self.event(&method, params),
                Incoming::Answer { id, result, bytes } => {
                    if self.paint_asked == Some(id) {
                        self.paint_asked = None;
                        self.painted(result, &bytes)?;
                    } else if self.update_asked == Some(id) {
                        self.update_asked = None;
                        if let Some(answer) = result.ok().and_then(|v| serde_json::from_value::<UpdateAnswer>(v).ok()) {
                            self.session_has_size(answer.size);
                        }
                    } else if self.resume_asked == Some(id) {
                        self.resume_asked = None;
                        if let Some(answer) = result.ok().and_then(|v| serde_json::from_value::<AttachAnswer>(v).ok()) {
                            self.client = answer.client;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, method: &str, params: Value) {
        let ours = |client: u32| client == self.client;
        match method {
            "detached" if serde_json::from_value(params.clone()).is_ok_and(|e: DetachedEvent| ours(e.client)) => {
                self.end = Some(AttachEnd::Detached);
            }
            // The filter may hold half a sequence, so a fresh paint is where we begin to answer.
            "answer"
                if serde_json::from_value(params).is_ok_and(|e: AnswerEvent| ours(e.client) && self.can_answer()) =>
            {
                self.answers = true;
                self.wanted.get_or_insert(false);
            }
            _ => {}
        }
    }

    fn can_answer(&self) -> bool {
        !self.answers && matches!(self.view, View::Raw(_))
    }

    /// The host went away; the session does not care, and we go on while it is found again.
    pub(super) fn host_is_gone(&mut self) {
        self.host = None;
        (self.paint_asked, self.update_asked, self.resume_asked) = (None, None, None);
        if self.relink.is_none() {
            self.relink = Relink::start(self.options.home.clone(), self.options.program.clone()).ok();
        }
    }

    /// The search for the host has ended.
    pub(super) fn host_is_back(&mut self) {
        let Some(found) = self.relink.as_ref().map(Relink::take) else { return };
        self.relink = None;
        let Some(mut host) = found else {
            self.host_is_gone();
            return;
        };
        let resume = Resume { connection: self.keeper.welcome.connection, answers: self.answers };
        let mut params = attach_params(self.options, &self.terminal, self.size, Some(resume));
        params.session.clone_from(&self.session);
        self.resume_asked = host.ask::<op::Attach>(&params, &[]).ok();
        self.host = Some(host);
        if self.resume_asked.is_none() {
            self.host_is_gone();
        }
    }

    /// The person's window has another size.
    pub(super) fn window_has_changed(&mut self) {
        self.size = Terminal::size();
        if let View::Drawn { viewport, .. } = &mut self.view {
            viewport.resize(self.size);
        }
        self.update(Some(self.size), None);
    }

    /// Tells the host what changed here.
    pub(super) fn update(&mut self, size: Option<Size>, answers: Option<Answers>) {
        let params = UpdateParams {
            session: self.session.clone(),
            client: self.client,
            connection: Some(self.keeper.welcome.connection),
            size,
            answers,
        };
        let Some(host) = &mut self.host else { return };
        match host.ask::<op::Update>(&params, &[]) {
            Ok(id) if size.is_some() => self.update_asked = Some(id),
            Ok(_) => {}
            Err(_) => self.host_is_gone(),
        }
    }
}

/// What this terminal is, for the host.
pub(super) fn attach_params(
    options: &AttachOptions,
    terminal: &Terminal,
    size: Size,
    resume: Option<Resume>,
) -> AttachParams {
    let followed = |key: &&str| std::env::var(key).ok().map(|value| format!("{key}={value}"));
    AttachParams {
        session: options.session.clone(),
        size,
        read_only: options.read_only,
        tty: terminal.name(),
        pid: std::process::id(),
        env: FOLLOWED.iter().filter_map(followed).collect(),
        resume,
    }
}
