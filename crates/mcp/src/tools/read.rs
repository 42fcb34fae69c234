//! `read_output`: the screen as it is, or output by offset.

use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::{ASK_MS, Desk};
use crate::excerpt::{self, Span};
use crate::host::Host;
use crate::trouble::Trouble;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_types::Offset;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadParams, ScreenParams, SessionView};
use holdfast_wire::runs::{RunOutputParams, RunParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of history in one answer.
const HISTORY_MAX: u32 = 1000;

/// What of a session is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// What a terminal shows now.
    Screen,
    /// What was printed, from an offset on.
    #[default]
    Output,
}

/// How bytes are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As text without escape sequences.
    #[default]
    Text,
    /// As they are.
    Base64,
}

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadIn {
    /// Name or id of the session. Omitted, without a run: your own.
    #[serde(default)]
    session: Option<String>,
    /// Or a run's handle or key: its output alone.
    #[serde(default)]
    run: Option<String>,
    /// `output` (default): output by offset. `screen`: what the terminal shows now, for full-screen programs.
    #[serde(default)]
    view: View,
    /// First offset to read: the `to` of the previous answer, or an offset from another tool. Omitted: the end of a session's output, the beginning of a run's.
    #[serde(default)]
    from: Option<Offset>,
    /// Maximum bytes (default 8192, at most 65536).
    #[serde(default)]
    max_bytes: Option<u32>,
    /// `text` (default): without escape sequences. `base64`: the exact bytes.
    #[serde(default)]
    encoding: Encoding,
    /// Wait this long for the first byte at that offset, in milliseconds (20000 at most).
    #[serde(default)]
    wait_ms: u64,
    /// With `screen`: include this many lines of history.
    #[serde(default)]
    history: u32,
}

/// What was read.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ReadOut {
    /// The session.
    session: String,
    /// As text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// As exact bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Offset of the first byte given; for a screen, everything before it is in it.
    from: Offset,
    /// Offset after the last byte returned: continue from here.
    to: Offset,
    /// Offset of the next byte to come, or behind a run's last.
    head: Offset,
    /// There is more now.
    more: bool,
    /// What was asked for and is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<Span>,
    /// It is over, and everything was given.
    end: bool,
    /// Some bytes were not UTF-8 and are shown as U+FFFD.
    lossy: bool,
    /// The screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<ScreenOut>,
}

/// What a terminal shows besides its text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ScreenOut {
    /// Columns and rows.
    size: String,
    /// The cursor's column, from 0.
    column: u16,
    /// The cursor's row, from 0.
    row: u16,
    /// A full-screen program is on.
    alternate: bool,
    /// The title.
    title: String,
    /// Rows at the top that did not fit into the answer.
    left_out: usize,
}

impl Shown for ReadOut {
    fn text(&self) -> String {
        if let Some(screen) = &self.screen {
            let text = self.text.as_deref().unwrap_or_default();
            let (size, column, row) = (&screen.size, screen.column, screen.row);
            return format!("[{} · screen {size}, cursor at column {column} row {row}]\n{text}", self.session);
        }
        let body = self.text.as_deref().or(self.base64.as_deref()).unwrap_or_default();
        let mut status = format!("bytes {} to {} of {}", self.from, self.to, self.head);
        if let Some(gap) = self.gap {
            status.push_str(&format!("; {} to {} are no longer available", gap.from, gap.to));
        }
        if self.more {
            status.push_str(&format!("; continue with from: {}", self.to));
        }
        if self.end {
            status.push_str("; that is all");
        }
        if self.lossy {
            status.push_str("; some of it is not UTF-8");
        }
        format!("[{} · {status}]\n{body}", self.session)
    }
}

/// The tool.
pub struct Read;

impl Operate for Read {
    const NAME: &'static str = "read_output";
    const TITLE: &'static str = "Read screen or output";
    const DESCRIPTION: &'static str = "Reads a session's output from an offset, a run's output by handle or key, or \
        the current screen (`view`). Continue from `to`: you miss nothing and get nothing twice. Offsets count output \
        bytes from the session's start and never change. Output that is no longer kept is reported as `gap`.";
    const HINTS: Hints = LOOKS;
    type In = ReadIn;
    type Out = ReadOut;

    async fn call<H: Host>(desk: &Desk<H>, input: ReadIn) -> Result<ReadOut, Trouble> {
        let max = excerpt::bounded(input.max_bytes);
        if let Some(run) = &input.run {
            if input.session.is_some() || input.view == View::Screen {
                return Err(Trouble::bad("a run has output but no screen: give its session instead"));
            }
            return of_run(desk, run, &input, max).await;
        }
        let session = desk.find_or_there(input.session.as_deref()).await?;
        match input.view {
            View::Screen => of_screen(desk, &session, input.history, max).await,
            View::Output => of_output(desk, &session, &input, max).await,
        }
    }
}

async fn of_output<H: Host>(
    desk: &Desk<H>,
    session: &SessionView,
    input: &ReadIn,
    max: u32,
) -> Result<ReadOut, Trouble> {
    let end = session.head.saturating_sub(u64::from(max)).max(session.oldest);
    // The end of the output may begin anywhere, also within an escape sequence: what stands before it tells.
    let before = if input.from.is_none() && input.encoding == Encoding::Text { excerpt::LOOK_BACK_BYTES } else { 0 };
    let from = input.from.unwrap_or_else(|| end.saturating_sub(u64::from(before)).max(session.oldest));
    let params = ReadParams {
        session: session.id.to_string(),
        from: Some(from),
        max: Some(max + before),
        wait_ms: input.wait_ms.min(ASK_MS),
    };
    let (answer, mut bytes) = desk.ask_with_bytes::<op::Read>(params, Vec::new()).await?;
    let cut = usize::try_from(end.saturating_sub(answer.from)).unwrap_or(usize::MAX).min(bytes.len());
    let skipped = if before > 0 { excerpt::beginning(&bytes, cut) } else { 0 };
    bytes.drain(..skipped);
    let out = ReadOut {
        session: session.name.to_string(),
        from: answer.from + skipped as u64,
        head: answer.head,
        gap: answer.gap.map(Span::from),
        ..ReadOut::default()
    };
    Ok(with_bytes(out, &bytes, input.encoding, answer.end, session.size.cols()))
}

async fn of_run<H: Host>(desk: &Desk<H>, run: &str, input: &ReadIn, max: u32) -> Result<ReadOut, Trouble> {
    let view = desk.ask::<op::RunGet>(RunParams { run: run.to_owned().into(), wait_ms: 0 }).await?.run;
    let cols = desk.find(&view.session.to_string()).await.map_or(0, |session| session.size.cols());
    let params = RunOutputParams { run: view.id.into(), from: input.from, max: Some(max), wait_ms: 0 };
    let (answer, bytes) = desk.ask_with_bytes::<op::RunOutput>(params, Vec::new()).await?;
    let out = ReadOut {
        session: view.name.to_string(),
        from: answer.from,
        head: view.to.max(answer.to),
        gap: answer.gap.map(Span::from),
        ..ReadOut::default()
    };
    Ok(with_bytes(out, &bytes, input.encoding, answer.end, cols))
}

/// Puts the bytes in, as they were asked for. Text of which more follows ends with a line, so that neither a character nor an
/// escape sequence is cut.
fn with_bytes(out: ReadOut, bytes: &[u8], encoding: Encoding, end: bool, cols: u16) -> ReadOut {
    let whole = out.from + bytes.len() as u64;
    let (bytes, to) = match encoding {
        Encoding::Text if whole < out.head => {
            let cut = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            (&bytes[..cut], out.from + cut as u64)
        }
        Encoding::Text | Encoding::Base64 => (bytes, whole),
    };
    let (text, base64, lossy) = match encoding {
        Encoding::Text => {
            let (text, lossy) = excerpt::text(bytes, cols);
            (Some(text), None, lossy)
        }
        Encoding::Base64 => (None, Some(STANDARD.encode(bytes)), false),
    };
    ReadOut { text, base64, to, more: to < out.head, end: end && to == whole, lossy, ..out }
}

async fn of_screen<H: Host>(desk: &Desk<H>, session: &SessionView, history: u32, max: u32) -> Result<ReadOut, Trouble> {
    let params = ScreenParams { session: session.id.to_string(), ansi: false, history: history.min(HISTORY_MAX) };
    let answer = desk.ask::<op::Screen>(params).await?;
    let rows: Vec<&str> = answer.history.iter().chain(&answer.rows).map(|row| row.trim_end()).collect();
    let (text, left_out) = last_rows(&rows, max as usize);
    let (column, row) = answer.cursor;
    let screen = ScreenOut {
        size: answer.size.to_string(),
        column,
        row,
        alternate: answer.alternate,
        title: answer.title,
        left_out,
    };
    Ok(ReadOut {
        session: session.name.to_string(),
        text: Some(text),
        from: answer.offset,
        to: answer.offset,
        head: session.head.max(answer.offset),
        gap: answer.gap.map(Span::from),
        screen: Some(screen),
        ..ReadOut::default()
    })
}

/// The last rows that fit, without empty ones behind them, and how many did not fit.
fn last_rows(rows: &[&str], max: usize) -> (String, usize) {
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    let mut bytes = 0;
    let fits = rows[..used].iter().rev().take_while(|row| {
        bytes += row.len() + 1;
        bytes <= max
    });
    let first = used - fits.count();
    (rows[first..used].join("\n"), first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_that_does_not_fit_keeps_its_end() {
        assert_eq!(last_rows(&["a", "", "b", "", ""], 100), ("a\n\nb".into(), 0));
        assert_eq!(last_rows(&["aaaa", "bb", "c"], 5), ("bb\nc".into(), 1));
        assert_eq!(last_rows(&["", ""], 5), (String::new(), 0));
    }

    #[test]
    fn text_of_which_more_follows_ends_with_a_line_and_goes_on_behind_it() {
        let out = |head| ReadOut { from: 10, head, ..ReadOut::default() };
        let cut = with_bytes(out(100), b"one\ntw", Encoding::Text, false, 80);
        assert_eq!((cut.text.as_deref(), cut.to, cut.more), (Some("one\n"), 14, true));
        let whole = with_bytes(out(16), b"one\ntw", Encoding::Text, true, 80);
        assert_eq!((whole.text.as_deref(), whole.to, whole.more, whole.end), (Some("one\ntw"), 16, false, true));
        let line = with_bytes(out(100), b"onetwo", Encoding::Text, false, 80);
        assert_eq!((line.text.as_deref(), line.to), (Some("onetwo"), 16));
        let exact = with_bytes(out(100), b"\xff\n\x00", Encoding::Base64, false, 80);
        assert_eq!((exact.base64.as_deref(), exact.to, exact.text), (Some("/woA"), 13, None));
    }
}
