//! What replies are made of when they are sent: screens, pictures, output, runs.

use crate::chat::{Body, Button};
use crate::desk::Refused;
use crate::engine::Engine;
use crate::picture;
use crate::state::{Queued, Reply, User};
use crate::text::{harmless, line, tail, units};
use holdfast_screen::SettledText;
use holdfast_types::SessionId;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadParams, ScreenParams};
use holdfast_wire::runs::{RunId, RunOutputParams, RunParams, RunRef, RunState, RunView};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Bytes of output that go into a file: services take 10 MB and more, a phone shows less.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes asked of the host at once.
const PIECE_BYTES: u32 = 256 * 1024;
/// A run that is over in this time is shown in one message.
const SOON_MS: u64 = 700;

/// A run as it is shown now.
pub struct RunCard {
    /// The message.
    pub body: Body,
    /// Its buttons.
    pub buttons: Vec<Vec<Button>>,
    /// Nothing more comes.
    pub over: bool,
    /// What is shown, as a number: the same is not sent again.
    pub seen: u64,
}

type Made = (Body, Vec<Vec<Button>>, Option<(RunId, bool)>);

/// A session's id without its prefix, for buttons.
pub fn bare(id: &impl ToString) -> String {
    id.to_string().chars().skip(4).collect()
}

/// The keys below a screen.
fn keys(session: SessionId) -> Vec<Vec<Button>> {
    let id = bare(&session);
    let key = |text: &str, name: &str| Button(text.into(), format!("k:{id}:{name}"));
    vec![
        vec![key("Enter", "Enter"), key("Ctrl-C", "C-c"), key("Tab", "Tab"), key("Esc", "Esc")],
        vec![key("←", "Left"), key("↑", "Up"), key("↓", "Down"), key("→", "Right")],
        vec![
            key("y", "y"),
            key("n", "n"),
            Button("Refresh".into(), format!("s:{id}")),
            Button("Picture".into(), format!("p:{id}")),
        ],
    ]
}

impl Engine {
    /// What is sent for a reply; and for a run whether it is over.
    pub fn rendered(&mut self, item: &Queued) -> Result<Made, Refused> {
        let user = item.user.as_deref().and_then(|user| self.user(user));
        let (Some(user), false) = (user, matches!(item.what, Reply::Text { .. })) else {
            let Reply::Text { head, block } = &item.what else { return Err(Refused::Removed) };
            let body = Body::Text { head: head.clone(), block: block.clone() };
            return Ok((body, item.buttons.clone(), None));
        };
        match item.what {
            Reply::Text { .. } => Err(Refused::Removed),
            Reply::Screen(session) => Ok((self.screen(&user, session)?, keys(session), None)),
            Reply::Picture(session) => Ok((self.picture(&user, session)?, keys(session), None)),
            Reply::Logs(session) => Ok((self.logs(&user, session)?, Vec::new(), None)),
            Reply::Run(run, session) => {
                let card = self.run_card(&user, run, session, SOON_MS)?;
                Ok((card.body, card.buttons, Some((run, card.over))))
            }
            Reply::Output(run, session) => Ok((self.output(&user, run, session)?, Vec::new(), None)),
        }
    }

    fn screen(&mut self, user: &User, session: SessionId) -> Result<Body, Refused> {
        let params = ScreenParams { session: session.to_string(), ansi: false, history: 0 };
        let (screen, _) = self.desk.ask::<op::Screen>(user, Some(session), &params, &[])?;
        let state = self.desk.state(user, session)?;
        let rows = screen.rows.join("\n");
        let shown = harmless(rows.trim_end());
        let shown = if shown.trim().is_empty() { "(the screen is empty)".to_owned() } else { shown };
        let head = format!("{}: {}", state.name, crate::notice::doing(&state.now));
        if units(&shown) > self.config.service.text_max() - 200 {
            // Larger than a message: as a file, so that nothing is missing.
            return Ok(Body::File { name: "screen.txt", bytes: shown.into_bytes(), head, picture: false });
        }
        Ok(Body::Text { head, block: Some(shown) })
    }

    fn picture(&mut self, user: &User, session: SessionId) -> Result<Body, Refused> {
        let params = ScreenParams { session: session.to_string(), ansi: true, history: 0 };
        let (screen, _) = self.desk.ask::<op::Screen>(user, Some(session), &params, &[])?;
        let state = self.desk.state(user, session)?;
        let head = format!("{}: {}", state.name, crate::notice::doing(&state.now));
        let bytes = picture::draw(screen.size, &screen.rows, Some(screen.cursor));
        Ok(Body::File { name: "screen.png", bytes, head, picture: true })
    }

    fn logs(&mut self, user: &User, session: SessionId) -> Result<Body, Refused> {
        let view = self.desk.session(user, Some(&session.to_string()))?;
        let mut from = view.oldest.max(view.head.saturating_sub(FILE_BYTES_MAX));
        let cut = from > 0;
        let mut bytes = Vec::new();
        while from < view.head {
            let params =
                ReadParams { session: session.to_string(), from: Some(from), max: Some(PIECE_BYTES), wait_ms: 0 };
            let (answer, piece) = self.desk.ask::<op::Read>(user, Some(session), &params, &[])?;
            if piece.is_empty() && answer.to <= from {
                break;
            }
            bytes.extend_from_slice(&piece);
            from = answer.to.max(from);
        }
        let head = format!("{}: output{}", view.name, if cut { ", its end" } else { "" });
        Ok(file("output.txt", head, view.size.cols(), &bytes))
    }

    fn output(&mut self, user: &User, run: RunId, session: SessionId) -> Result<Body, Refused> {
        let mut bytes = Vec::new();
        let mut from = None;
        loop {
            let params = RunOutputParams { run: RunRef::Id(run), from, max: Some(PIECE_BYTES), wait_ms: 0 };
            let (answer, piece) = self.desk.ask::<op::RunOutput>(user, Some(session), &params, &[])?;
            bytes.extend_from_slice(&piece);
            if answer.end || piece.is_empty() {
                break;
            }
            if bytes.len() as u64 > FILE_BYTES_MAX {
                bytes.drain(..bytes.len() - FILE_BYTES_MAX as usize);
            }
            from = Some(answer.to);
        }
        let view = self.desk.session(user, Some(&session.to_string()));
        let cols = view.map_or(80, |view| view.size.cols());
        Ok(file("output.txt", "all of its output".into(), cols, &bytes))
    }

    /// A run as it stands; waits a moment for its end.
    pub fn run_card(&mut self, user: &User, run: RunId, session: SessionId, wait_ms: u64) -> Result<RunCard, Refused> {
        let params = RunParams { run: RunRef::Id(run), wait_ms };
        let (answer, _) = self.desk.ask::<op::RunGet>(user, Some(session), &params, &[])?;
        // The answer says which session it is of; a run elsewhere is none of this user's.
        if answer.run.session != session {
            return Err(Refused::Outside(crate::envelope::Outside::Elsewhere));
        }
        let over = answer.run.state.is_over();
        let head = format!("{} $ {}\n{}", answer.run.name, line(&answer.run.command, 200), status(&answer.run));
        let shown = harmless(answer.output.trim_end());
        let room = self.config.service.text_max().saturating_sub(units(&head) + 100);
        let (shown, cut) = tail(&shown, room);
        let block = (!shown.is_empty()).then(|| shown.to_owned());
        let mut buttons = Vec::new();
        if !over {
            buttons.push(vec![Button("Stop".into(), format!("x:{}:{}", bare(&run), bare(&session)))]);
        } else if cut || answer.truncated {
            buttons.push(vec![Button("All of it as a file".into(), format!("o:{}:{}", bare(&run), bare(&session)))]);
        }
        let mut hasher = DefaultHasher::new();
        (&head, &block).hash(&mut hasher);
        Ok(RunCard { body: Body::Text { head, block }, buttons, over, seen: hasher.finish() })
    }
}

fn file(name: &'static str, head: String, cols: u16, bytes: &[u8]) -> Body {
    let text = SettledText::of(cols, bytes);
    let text = harmless(&String::from_utf8_lossy(&text));
    let text = if text.is_empty() { "(no output)\n".to_owned() } else { text };
    Body::File { name, bytes: text.into_bytes(), head, picture: false }
}

fn status(run: &RunView) -> String {
    let took = format!("{}.{} s", run.duration_ms / 1000, run.duration_ms % 1000 / 100);
    match (run.state, run.exit_code) {
        // Without the time: it would change the message by itself.
        (RunState::Starting | RunState::Running, _) => "running…".into(),
        (RunState::Ended, Some(code)) => format!("exit {code} after {took}"),
        (RunState::Ended, None) => format!("ended after {took}; its status is unknown"),
        (RunState::Cancelled, _) => format!("cancelled after {took}"),
        (RunState::Lost, _) => "lost: its outcome is unknown, and it is not run again".into(),
    }
}
