//! `holdfast logs`: output by absolute offset. Output that is no longer kept is reported as a gap.

use crate::args::LogsArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{json_line, print, print_json, say};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdfast_screen::{PlainText, SettledText};
use holdfast_types::Offset;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Gap, ReadAnswer, ReadParams};
use serde_json::{Value, json};

/// Bytes asked for at once.
const READ_BYTES_MAX: u32 = 256 * 1024;
/// How long a question for more waits at the host before it is asked again.
const FOLLOW_WAIT_MS: u64 = 60_000;
/// Output that paused for this long is shown as it stands: shells draw a command again within some milliseconds.
const QUIET_MS: u64 = 100;

/// `holdfast logs`.
pub fn logs(here: &Here, args: &LogsArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    // The id: a name may go to another session while we follow.
    let view = link.get(&args.of.session)?;
    let session = view.id.to_string();
    let from = args.from.unwrap_or(0);
    let plain = args.plain.then(|| view.size.cols());
    let printer = Printer::new(here.json, args.follow, plain, from);
    read_all(&mut link, &session, from, args.follow, printer)?;
    Ok(0)
}

/// All output of a session that is still kept, as it came.
pub fn print_output(link: &mut Link<'_>, session: &str) -> Result<(), Failure> {
    read_all(link, session, 0, false, Printer::Raw)
}

fn read_all(
    link: &mut Link<'_>,
    session: &str,
    mut from: Offset,
    follow: bool,
    mut printer: Printer,
) -> Result<(), Failure> {
    // Without --follow, what is there now: a session that never stops writing must not keep us for ever.
    let mut until: Option<Offset> = None;
    loop {
        let params = ReadParams {
            session: session.to_owned(),
            from: Some(from),
            max: Some(READ_BYTES_MAX),
            wait_ms: match (follow, printer.holds_text()) {
                (false, _) => 0,
                (true, true) => QUIET_MS,
                (true, false) => FOLLOW_WAIT_MS,
            },
        };
        let (mut answer, mut bytes) = link.call_with_bytes::<op::Read>(&params, &[])?;
        let until = *until.get_or_insert(answer.head);
        if !follow && answer.to > until {
            answer.to = until.max(answer.from);
            answer.end = false;
            bytes.truncate((answer.to - answer.from) as usize);
        }
        printer.take(&answer, &bytes)?;
        if follow && bytes.is_empty() {
            printer.flush()?;
        }
        from = answer.to;
        if answer.end || (!follow && from >= until) {
            return printer.finish(&answer);
        }
    }
}

/// A gap on standard error.
pub fn say_gap(gap: Gap) {
    say(&format!("gap: bytes {}..{} are no longer kept", gap.from, gap.to));
}

/// Where output goes.
enum Printer {
    /// As it came.
    Raw,
    /// Without escape sequences, as a terminal of so many columns leaves it.
    Settled(SettledText, u16),
    /// A JSON document a line.
    Lines(Lines),
    /// One JSON document at the end.
    Document { from: Offset, bytes: Vec<u8>, gaps: Vec<Gap>, plain: Option<u16> },
}

impl Printer {
    fn new(json: bool, follow: bool, plain: Option<u16>, from: Offset) -> Printer {
        match (json, follow, plain) {
            (true, true, _) => Printer::Lines(Lines { kept: vec![], plain: plain.map(|_| PlainText::new()) }),
            (true, false, _) => Printer::Document { from, bytes: vec![], gaps: vec![], plain },
            (false, _, Some(cols)) => Printer::Settled(SettledText::new(cols), cols),
            (false, _, None) => Printer::Raw,
        }
    }

    fn take(&mut self, answer: &ReadAnswer, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(gap) = answer.gap {
            self.gap(gap)?;
        }
        match self {
            Printer::Raw => print(bytes),
            Printer::Settled(settled, _) => {
                let mut text = Vec::new();
                settled.feed(bytes, &mut text);
                print(text)
            }
            Printer::Lines(lines) => lines.take(answer.from, bytes),
            Printer::Document { bytes: all, .. } => {
                all.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Whether something came that is not printed yet.
    fn holds_text(&self) -> bool {
        matches!(self, Printer::Settled(settled, _) if settled.holds_text())
    }

    /// Prints what stands there: nobody waits for the end of a line.
    fn flush(&mut self) -> Result<(), Failure> {
        let Printer::Settled(settled, _) = self else { return Ok(()) };
        let mut text = Vec::new();
        settled.flush(&mut text);
        print(text)
    }

    fn gap(&mut self, gap: Gap) -> Result<(), Failure> {
        match self {
            Printer::Raw => say_gap(gap),
            Printer::Settled(settled, cols) => {
                let mut text = Vec::new();
                std::mem::replace(settled, SettledText::new(*cols)).finish(&mut text);
                print(text)?;
                say_gap(gap);
            }
            Printer::Lines(lines) => {
                lines.flush(gap.from)?;
                lines.plain = lines.plain.as_ref().map(|_| PlainText::new());
                print_line(&json!({ "gap": gap }))?;
            }
            Printer::Document { gaps, .. } => gaps.push(gap),
        }
        Ok(())
    }

    fn finish(mut self, answer: &ReadAnswer) -> Result<(), Failure> {
        match &mut self {
            Printer::Raw => Ok(()),
            Printer::Settled(settled, _) => {
                let mut text = Vec::new();
                settled.finish(&mut text);
                print(text)
            }
            Printer::Lines(lines) => {
                lines.flush(answer.to)?;
                print_line(&json!({"end": {"offset": answer.to}}))
            }
            Printer::Document { from, bytes, gaps, plain } => {
                let text = match *plain {
                    Some(cols) => SettledText::of(cols, bytes),
                    None => std::mem::take(bytes),
                };
                let mut document = json!({
                    "from": from,
                    "to": answer.to,
                    "end": answer.end,
                    "gaps": gaps,
                    "text": String::from_utf8_lossy(&text),
                });
                if plain.is_none() {
                    document["bytes_base64"] = json!(BASE64_STANDARD.encode(&text));
                }
                print_json(&document)
            }
        }
    }
}

/// JSON lines whose texts never cut a character in two.
struct Lines {
    /// The beginning of a character whose rest is still to come.
    kept: Vec<u8>,
    plain: Option<PlainText>,
}

impl Lines {
    fn take(&mut self, from: Offset, bytes: &[u8]) -> Result<(), Failure> {
        let from = from - self.kept.len() as Offset;
        let mut all = std::mem::take(&mut self.kept);
        all.extend_from_slice(bytes);
        self.kept = all.split_off(all.len() - cut_character(&all));
        self.put(from, &all)
    }

    /// What was kept, whole or not: `to` is the offset behind it.
    fn flush(&mut self, to: Offset) -> Result<(), Failure> {
        let kept = std::mem::take(&mut self.kept);
        self.put(to - kept.len() as Offset, &kept)
    }

    fn put(&mut self, offset: Offset, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let text = match &mut self.plain {
            Some(plain) => {
                let mut text = Vec::new();
                plain.feed(bytes, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }
            None => String::from_utf8_lossy(bytes).into_owned(),
        };
        print_line(&json!({"offset": offset, "text": text, "bytes_base64": BASE64_STANDARD.encode(bytes)}))
    }
}

/// How many bytes at the end begin a character that is not whole.
fn cut_character(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let starts = (0..tail.len()).filter(|at| tail[*at] >= 0xc0);
    let cut =
        |at: &usize| std::str::from_utf8(&tail[*at..]).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none());
    starts.into_iter().find(cut).map_or(0, |at| tail.len() - at)
}

fn print_line(value: &Value) -> Result<(), Failure> {
    print(json_line(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_character_that_can_still_become_whole_is_kept_back() {
        for (bytes, kept) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("aé".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe2\x82", 2),
            (b"x\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"\x80\x80", 0),
            (b"\xc3a", 0),
        ] {
            assert_eq!(cut_character(bytes), kept, "{bytes:?}");
        }
    }
}
