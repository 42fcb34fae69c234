//! What an attached terminal and the host tell each other, and how they find each other again.

use super::output::View;
use super::relink::Relink;
use super::run::Attached;
use super::terminal::Terminal;
use super::{AttachEnd, AttachError, AttachOptions};
use crate::connection::Incoming;
use holdfast_types::Size;
use holdfast_wire::Fault;
use holdfast_wire::attention::RingEvent;
use holdfast_wire::operations::op;
use holdfast_wire::params::{AnswerEvent, Answers, AttachAnswer, AttachParams, Resume, UpdateAnswer, UpdateParams};
use holdfast_wire::turns::{NoticeEvent, WritesEvent};
use serde::de::DeserializeOwned;
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
                Incoming::Event { method, params } => self.event(&method, params)?,
                Incoming::Answer { id, result, bytes } => self.answer(id, result, &bytes)?,
            }
        }
        Ok(())
    }

    fn answer(&mut self, id: u64, result: Result<Value, Fault>, bytes: &[u8]) -> Result<(), AttachError> {
        if self.keys.was_sent_as(id) {
            return self.sent(result);
        }
        if self.paint_asked == Some(id) {
            self.paint_asked = None;
            return self.painted(result, bytes);
        }
        if self.update_asked == Some(id) {
            self.update_asked = None;
            if let Some(answer) = result.ok().and_then(|v| serde_json::from_value::<UpdateAnswer>(v).ok()) {
                self.session_has_size(answer.size);
            }
            self.repaint_rearranged();
        } else if self.resume_asked == Some(id) {
            self.resume_asked = None;
            if let Some(answer) = result.ok().and_then(|v| serde_json::from_value::<AttachAnswer>(v).ok()) {
                return self.resumed(&answer);
            }
        } else {
            self.act_answered(id, &result);
        }
        Ok(())
    }

    /// A new host knows us again.
    fn resumed(&mut self, answer: &AttachAnswer) -> Result<(), AttachError> {
        self.client = answer.client;
        self.repaint_rearranged();
        let us = self.us().clone();
        self.turns.known.saw(&answer.session.turn, &us);
        self.told_writes(answer.writes, answer.fence.0)
    }

    fn event(&mut self, method: &str, params: Value) -> Result<(), AttachError> {
        // Every event is for one client.
        if params.get("client").and_then(Value::as_u64) != Some(self.client.into()) {
            return Ok(());
        }
        match method {
            "detached" => self.end = Some(AttachEnd::Detached),
            "answer" => read::<AnswerEvent>(params).into_iter().for_each(|event| self.told_to_answer(event.from)),
            "notice" => read::<NoticeEvent>(params).into_iter().for_each(|event| self.noticed(&event.notice)),
            "ring" => read::<RingEvent>(params).into_iter().for_each(|event| self.ring_soon(&event.text)),
            "writes" => {
                return read::<WritesEvent>(params).map_or(Ok(()), |e| self.told_writes(e.writes, e.fence.0));
            }
            // A newer host may tell more.
            _ => {}
        }
        Ok(())
    }

    /// The host went away; the session does not care, and we go on while it is found again.
    pub(super) fn host_is_gone(&mut self) {
        self.host = None;
        (self.paint_asked, self.update_asked, self.resume_asked) = (None, None, None);
        self.keys.host_gone();
        self.turns.host_gone();
        if !self.answers {
            // The next one will say it again.
            self.duty.begin = None;
        }
        if self.relink.is_none() {
            self.relink =
                Relink::start(self.options.home.clone(), self.options.program.clone(), self.options.who.clone()).ok();
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
        let resume = Resume { client: self.client, connection: self.keeper.welcome.connection, answers: self.answers };
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
        let size = Terminal::size();
        if size == self.size {
            return;
        }
        self.size = size;
        self.rearranged = true;
        if let View::Drawn { viewport, .. } = &mut self.view {
            viewport.resize(self.size);
        }
        self.update(Some(self.size), None);
    }

    /// Each terminal rearranges its lines in its own way when its window changes: none of them is where we think it is.
    fn repaint_rearranged(&mut self) {
        if std::mem::take(&mut self.rearranged) {
            self.wanted.get_or_insert(false);
        }
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

fn read<T: DeserializeOwned>(params: Value) -> Option<T> {
    serde_json::from_value(params).ok()
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
        remote: false,
    }
}
