//! Waiting for something in the output: a text, or nothing at all.

use super::{Came, Deadline, is_over, left_ms};
use crate::failure::Failure;
use crate::here::Link;
use crate::show::{cut, visible};
use holdfast_screen::PlainText;
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
/// A match lies within this much text: a few screens.
const WINDOW_BYTES: usize = 256 * 1024;
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
        if let Some(found) = window.find(pattern) {
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

/// The last text of the output, and where in the output each byte of it came from.
#[derive(Default)]
struct Window {
    plain: PlainText,
    text: Vec<u8>,
    offsets: Vec<Offset>,
    /// What was searched: a match that begins before it was no match yet.
    searched: usize,
}

/// A match.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    text: String,
    /// The output byte with which it begins.
    at: Offset,
}

impl Window {
    fn feed(&mut self, from: Offset, bytes: &[u8]) {
        for (at, byte) in (from..).zip(bytes) {
            self.plain.feed(std::slice::from_ref(byte), &mut self.text);
            self.offsets.resize(self.text.len(), at);
        }
    }

    fn find(&mut self, pattern: &Regex) -> Option<Found> {
        if self.searched == self.text.len() {
            return None;
        }
        self.searched = self.text.len();
        let found = pattern.find(&self.text)?;
        // An empty match stands behind the last byte, or before any.
        let at = self.offsets.get(found.start()).or(self.offsets.last()).copied().unwrap_or(0);
        Some(Found { text: String::from_utf8_lossy(found.as_bytes()).into_owned(), at })
    }

    /// Lets go of what no match can begin in any more.
    fn forget(&mut self) {
        let old = self.text.len().saturating_sub(WINDOW_BYTES);
        self.text.drain(..old);
        self.offsets.drain(..old);
        self.searched -= old;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_sequences_and_pieces_where_it_begins() {
        let mut window = Window::default();
        let pattern = Regex::new("listening on \\d+").unwrap();
        window.feed(100, b"x\r\nlist\x1b[1mening ");
        assert_eq!(window.find(&pattern), None);
        window.forget();
        window.feed(118, b"on 80\r\n");
        assert_eq!(window.find(&pattern), Some(Found { text: "listening on 80".into(), at: 103 }));
    }

    #[test]
    fn a_flood_is_forgotten_but_for_its_end() {
        let mut window = Window::default();
        let pattern = Regex::new("needle").unwrap();
        for n in 0..20 {
            window.feed(n * 65_536, &[b'x'; 65_536]);
            assert_eq!(window.find(&pattern), None);
            window.forget();
            assert!(window.text.len() <= WINDOW_BYTES && window.offsets.len() == window.text.len());
        }
        window.feed(20 * 65_536, b"needle");
        assert_eq!(window.find(&pattern).unwrap().at, 20 * 65_536);
    }
}
