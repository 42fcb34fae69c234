//! Waiting for something in the output: a text, or nothing at all.

use super::{Came, Deadline, is_over, left_ms};
use crate::failure::Failure;
use crate::here::Link;
use crate::show::{cut, visible};
use holdfast_screen::Window;
use holdfast_types::{Exit, Offset};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ReadAnswer, ReadParams, SessionView};
use regex::bytes::Regex;
use serde_json::json;
use std::time::{Duration, Instant};

/// How long a question for more waits at the host before it is asked again.
const WAIT_MS: u64 = 60_000;
/// Bytes asked for at once.
const READ_BYTES: u32 = 64 * 1024;
/// Columns of the match that people are shown.
const SHOWN_COLUMNS: usize = 200;

/// Waits until a pattern fits the text of the output.
pub fn text(
    link: &mut Link<'_>,
    session: &SessionView,
    deadline: Deadline,
    pattern: &Regex,
    from: Option<Offset>,
) -> Result<Came, Failure> {
    let mut at = from.unwrap_or(session.head);
    let mut window = Window::default();
    loop {
        let wait_ms = deadline.map_or(WAIT_MS, |deadline| left_ms(deadline).min(WAIT_MS));
        let (answer, bytes) = read(link, session, at, READ_BYTES, wait_ms)?;
        if answer.gap.is_some() {
            // A text with a hole in it was never there.
            window = Window::default();
        }
        window.feed(answer.from, &bytes);
        if let Some(found) = find(&mut window, pattern) {
            let shown = visible(&cut(&found.text, SHOWN_COLUMNS));
            let seen = json!({ "text": found.text, "offset": found.at, "to": answer.to });
            return Ok(Came::Yes(seen, format!("{}: {shown}", found.at)));
        }
        window.forget();
        at = answer.to;
        if answer.end {
            return Ok(Came::Ended(link.get(&session.id.to_string())?.exit.unwrap_or(Exit::Lost)));
        }
        if is_over(deadline) {
            return Ok(Came::Late);
        }
    }
}

/// Waits until there was no output for so long.
pub fn quiet(link: &mut Link<'_>, session: &SessionView, deadline: Deadline, ms: u64) -> Result<Came, Failure> {
    let mut head = session.head;
    let mut since = Instant::now();
    loop {
        let enough = since + Duration::from_millis(ms);
        let until = deadline.map_or(enough, |deadline| deadline.min(enough));
        // What was written does not matter, only that it was.
        let (answer, _) = read(link, session, head, 1, left_ms(until).max(1))?;
        if answer.head > head {
            head = answer.head;
            since = Instant::now();
        } else if answer.end {
            return Ok(Came::Ended(link.get(&session.id.to_string())?.exit.unwrap_or(Exit::Lost)));
        } else if Instant::now() >= enough {
            return Ok(Came::Yes(json!({ "quiet_ms": ms, "at": head }), format!("no output for {ms} ms")));
        }
        if is_over(deadline) {
            return Ok(Came::Late);
        }
    }
}

fn read(
    link: &mut Link<'_>,
    session: &SessionView,
    from: Offset,
    max: u32,
    wait_ms: u64,
) -> Result<(ReadAnswer, Vec<u8>), Failure> {
    let params = ReadParams { session: session.id.to_string(), from: Some(from), max: Some(max), wait_ms };
    link.call_with_bytes::<op::Read>(&params, &[])
}

/// A match.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    text: String,
    /// The output byte with which it begins.
    at: Offset,
}

fn find(window: &mut Window, pattern: &Regex) -> Option<Found> {
    let found = pattern.find(window.news()?)?;
    let (start, text) = (found.start(), String::from_utf8_lossy(found.as_bytes()).into_owned());
    Some(Found { text, at: window.offset(start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_sequences_and_pieces_where_it_begins() {
        let mut window = Window::default();
        let pattern = Regex::new("listening on \\d+").unwrap();
        window.feed(100, b"x\r\nlist\x1b[1mening ");
        assert_eq!(find(&mut window, &pattern), None);
        window.forget();
        window.feed(118, b"on 80\r\n");
        assert_eq!(find(&mut window, &pattern), Some(Found { text: "listening on 80".into(), at: 103 }));
    }
}
