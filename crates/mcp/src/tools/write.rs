//! `send_input`: types into a session, and gives what came of it.

use super::run::screen;
use super::views::Doing;
use super::{ANYTHING, Hints, Operate, Shown};
use crate::desk::{ASK_MS, Desk, in_ms, left_ms};
use crate::excerpt::{self, Span};
use crate::host::Host;
use crate::trouble::{PASSWORD, Trouble};
use holdfast_screen::keys::Key;
use holdfast_types::Offset;
use holdfast_wire::attention::Now;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadAnswer, ReadParams, ScreenParams, SendAnswer, SendParams, SessionParams, SessionView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long output is waited for, unless said otherwise.
const YIELD_MS: u64 = 5_000;
/// Longest that one call waits.
const YIELD_MS_MAX: u64 = 600_000;
/// Silence after which is looked whether the program waits for more.
const SETTLE_MS: u64 = 250;
/// Most that is typed at once: a large paste.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// A program that reads nothing for this long is not going to.
const BUSY_MS: u64 = 10_000;
/// Between two attempts at a terminal that takes no more.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// What to type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteIn {
    /// Name or id of the session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
    /// Text to type. A newline in it is the Enter key.
    #[serde(default)]
    text: Option<String>,
    /// Keys to press after the text: Enter, Tab, Esc, Up, C-c, C-d, M-x, F1, PgUp, or a character.
    #[serde(default)]
    keys: Vec<String>,
    /// How long to wait for output, in milliseconds (default 5000); the answer comes sooner if the program waits for input or is at its prompt.
    #[serde(default)]
    yield_ms: Option<u64>,
    /// Maximum bytes of output in the answer (default 8192, at most 65536).
    #[serde(default)]
    max_output_bytes: Option<u32>,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteOut {
    /// The session.
    session: String,
    /// What it printed since, as text: the echo of what was typed too. Of a full-screen program: its screen.
    output: String,
    /// Offset where that begins.
    from: Offset,
    /// Offset behind it: `read_output` from here for what comes.
    to: Offset,
    /// What is not shown: `read_output` shows it by its offsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<Span>,
    /// Some bytes were not UTF-8 and are shown as U+FFFD.
    lossy: bool,
    /// The input has reached the terminal; otherwise it is queued, because the program is not reading.
    written: bool,
    /// What the session is doing now.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<Doing>,
}

impl Shown for WriteOut {
    fn text(&self) -> String {
        let doing = self.doing.as_ref().map_or("unknown".into(), Doing::line);
        format!("[session {} · offsets {} to {} · {doing}]\n{}", self.session, self.from, self.to, self.output)
    }
}

/// The tool.
pub struct Write;

impl Operate for Write {
    const NAME: &'static str = "send_input";
    const TITLE: &'static str = "Type into a session";
    const DESCRIPTION: &'static str = "Types text and keys into a session's terminal and returns the output that \
        follows: for prompts, REPLs, editors, menus. For commands use `run_command`, which returns exit codes. Fails with `turn_held` while another actor has the turn, and with `waiting_for_input` at a password \
        prompt: only a person may type a password.";
    const HINTS: Hints = ANYTHING;
    type In = WriteIn;
    type Out = WriteOut;

    async fn call<H: Host>(desk: &Desk<H>, input: WriteIn) -> Result<WriteOut, Trouble> {
        let keys = input.keys.iter().map(|key| key.parse::<Key>().map_err(|e| Trouble::bad(format!("{key:?}: {e}"))));
        let keys = keys.collect::<Result<Vec<Key>, Trouble>>()?;
        let text = input.text.unwrap_or_default();
        if text.is_empty() && keys.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(Trouble::bad(format!("give `text`, `keys` or both, at most {TEXT_BYTES_MAX} bytes")));
        }
        let session = desk.find_or_own(input.session.as_deref()).await?;
        if !text.is_empty() || !keys.iter().all(leaves) {
            refuse_password(desk, &session).await?;
        }
        let bytes = typed(desk, &session, &text, &keys).await?;
        let sent = type_bytes(desk, &session, bytes).await?;
        let until = in_ms(input.yield_ms.unwrap_or(YIELD_MS).min(YIELD_MS_MAX));
        let to = settle(desk, &session, sent.at, until).await?;
        let range = Span { from: sent.at, to };
        let shown = shown(desk, &session, range, excerpt::bounded(input.max_output_bytes)).await?;
        let state = desk.ask::<op::State>(SessionParams { session: session.id.to_string() }).await.ok();
        let output = match &state {
            Some(state) if state.now == Now::FullScreen => screen(desk, session.id).await.unwrap_or(shown.text),
            Some(_) | None => shown.text,
        };
        Ok(WriteOut {
            session: session.name.to_string(),
            output: excerpt::with_short_lines(output),
            from: sent.at,
            to,
            omitted: shown.omitted,
            lossy: shown.lossy,
            written: sent.written,
            doing: state.as_ref().map(Doing::from),
        })
    }
}

/// Keys by which one gets out of a question without answering it.
fn leaves(key: &Key) -> bool {
    matches!(key.0.as_slice(), [0x03 | 0x04 | 0x1b | 0x1c])
}

async fn refuse_password<H: Host>(desk: &Desk<H>, session: &SessionView) -> Result<(), Trouble> {
    let state = desk.ask::<op::State>(SessionParams { session: session.id.to_string() }).await?;
    let doing = Doing::from(&state);
    if !doing.is_password() {
        return Ok(());
    }
    let details = json!({ "kind": "password", "prompt": doing.prompt, "session": session.name });
    let trouble = Trouble::new("waiting_for_input", format!("{} asks for a password", session.name));
    Err(trouble.hint(PASSWORD).details(details))
}

/// What a terminal sends for the text and the keys.
async fn typed<H: Host>(desk: &Desk<H>, session: &SessionView, text: &str, keys: &[Key]) -> Result<Vec<u8>, Trouble> {
    let application = if keys.iter().any(Key::has_two_forms) {
        let params = ScreenParams { session: session.id.to_string(), ansi: false, history: 0 };
        desk.ask::<op::Screen>(params).await?.application_cursor
    } else {
        false
    };
    let mut bytes = text.replace("\r\n", "\r").replace('\n', "\r").into_bytes();
    bytes.extend(keys.iter().flat_map(|key| key.bytes(application)));
    Ok(bytes)
}

/// Types bytes, once.
pub async fn type_bytes<H: Host>(desk: &Desk<H>, session: &SessionView, bytes: Vec<u8>) -> Result<SendAnswer, Trouble> {
    let stream =
        getrandom::u64().map_err(|error| Trouble::new("internal", format!("cannot get random bytes: {error}")))?;
    let params = SendParams {
        session: session.id.to_string(),
        stream,
        seq: 1,
        client: None,
        fence: None,
        secret: false,
        force: false,
        in_order: false,
    };
    let until = in_ms(BUSY_MS);
    loop {
        match desk.ask_with_bytes::<op::Send>(params.clone(), bytes.clone()).await {
            Err(busy) if busy.code == "busy" && left_ms(until) > 0 => tokio::time::sleep(BUSY_PAUSE).await,
            other => return Ok(other?.0),
        }
    }
}

/// Waits until the output after an offset stops and no program in the foreground is working; returns its end.
async fn settle<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    from: Offset,
    until: Instant,
) -> Result<Offset, Trouble> {
    let mut to = from;
    while left_ms(until) > 0 {
        let wait_ms = if to == from { left_ms(until).min(ASK_MS) } else { left_ms(until).min(SETTLE_MS) };
        let (answer, _) = read(desk, session, to, 1, wait_ms).await?;
        if answer.end {
            return Ok(answer.head);
        }
        if answer.head > to {
            to = answer.head;
            desk.tell(|| format!("{} bytes of output", to - from)).await;
            // What is printed now is not worth a question of its own.
            tokio::time::sleep(Duration::from_millis(SETTLE_MS.min(left_ms(until)) / 4)).await;
        } else if to > from && rests(desk, session).await {
            break;
        }
    }
    Ok(to)
}

/// No program in the foreground is working: the output is complete for now.
async fn rests<H: Host>(desk: &Desk<H>, session: &SessionView) -> bool {
    match desk.ask::<op::State>(SessionParams { session: session.id.to_string() }).await {
        Ok(state) => !matches!(state.now, Now::Running | Now::BlockedElsewhere | Now::Unknown { .. }),
        Err(_) => true,
    }
}

/// Output as bounded text.
pub struct Excerpt {
    /// The text.
    pub text: String,
    /// What is not in it.
    pub omitted: Option<Span>,
    /// Some bytes were no UTF-8.
    pub lossy: bool,
}

/// A range of a session's output as bounded text.
pub async fn shown<H: Host>(desk: &Desk<H>, session: &SessionView, range: Span, max: u32) -> Result<Excerpt, Trouble> {
    if range.to <= range.from {
        return Ok(Excerpt { text: String::new(), omitted: None, lossy: false });
    }
    let (head, tail) = excerpt::parts(range, max);
    let (answer, bytes) = read(desk, session, head.from, (head.to - head.from) as u32, 0).await?;
    let cols = session.size.cols();
    let (mut text, mut lossy) = excerpt::text(&bytes, cols);
    let mut omitted = answer.gap.map(Span::from);
    if let Some(tail) = tail {
        let (answer, bytes) = read(desk, session, tail.from, (tail.to - tail.from) as u32, 0).await?;
        let left_out = Span { from: omitted.map_or(head.to, |gap| gap.from), to: answer.from };
        let (rest, lost) = excerpt::text(&bytes, cols);
        text.push_str(&excerpt::omission(left_out));
        text.push_str(&rest);
        lossy |= lost;
        omitted = Some(left_out);
    }
    Ok(Excerpt { text, omitted, lossy })
}

/// Reads output.
pub async fn read<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    from: Offset,
    max: u32,
    wait_ms: u64,
) -> Result<(ReadAnswer, Vec<u8>), Trouble> {
    let params = ReadParams { session: session.id.to_string(), from: Some(from), max: Some(max), wait_ms };
    desk.ask_with_bytes::<op::Read>(params, Vec::new()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_can_be_left_and_not_typed() {
        let key = |name: &str| name.parse::<Key>().unwrap();
        assert!(["C-c", "C-d", "Esc", "C-\\"].iter().all(|name| leaves(&key(name))));
        assert!(!["a", "Enter", "Up", "M-x"].iter().any(|name| leaves(&key(name))));
    }
}
