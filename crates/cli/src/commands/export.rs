//! `holdfast export`: a session's output and acts as a recording.

use super::journal::{Records, Source};
use crate::asciicast::{self, Anchor, Chunk, Code, Header, Mark, Times, Version};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::journal_args::ExportArgs;
use crate::show::{command_line, now_ms, print, print_json};
use crate::tell::{Teller, who};
use holdfast_authority::{Act, Ask, Ending, Outcome, Record};
use holdfast_types::{Offset, Size};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Gap, Life, ReadParams, SessionView};
use jiff::tz::TimeZone;
use serde_json::json;

/// Bytes asked for at once.
const READ_BYTES_MAX: u32 = 256 * 1024;

/// `holdfast export`.
pub fn export(here: &Here, args: &ExportArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = link.get(&args.of.session)?;
    let (chunks, gaps) = read(&mut link, &session)?;
    let mut source = Source::of_session(link, &session.id.to_string())?;
    let mut records = Records::default();
    let mut acts = Acts::new(args.input);
    while let Some(batch) = source.next(false)? {
        batch.iter().filter_map(|line| records.take(line)).for_each(|entry| acts.take(&entry.record));
    }
    let Recording { header, events } = recording(&session, &chunks, &gaps, acts);
    let version = if args.asciicast == "2" { Version::V2 } else { Version::V3 };
    let text = asciicast::file(version, &header, &events, args.idle_limit.map(|limit| limit.ms.saturating_mul(1000)));
    match &args.output {
        None => print(text)?,
        Some(path) => {
            std::fs::write(path, text).map_err(|e| Failure::io(format!("cannot write {}", path.display()), e))?;
            let markers = events.iter().filter(|event| event.code == Code::Marker).count();
            if here.json {
                print_json(&json!({"file": path, "events": events.len(), "markers": markers}))?;
            } else {
                let name = path.display().to_string();
                print(format!("wrote {}: {} events, {markers} markers\n", crate::show::visible(&name), events.len()))?;
            }
        }
    }
    Ok(records.finish())
}

/// All output that is kept now, and what is not.
fn read(link: &mut Link<'_>, session: &SessionView) -> Result<(Vec<Chunk>, Vec<Gap>), Failure> {
    let (mut chunks, mut gaps) = (Vec::<Chunk>::new(), Vec::new());
    let mut from = 0;
    // What is there now: a session that never stops writing must not keep us for ever.
    while from < session.head {
        let params =
            ReadParams { session: session.id.to_string(), from: Some(from), max: Some(READ_BYTES_MAX), wait_ms: 0 };
        let (answer, mut bytes) = link.call_with_bytes::<op::Read>(&params, &[])?;
        gaps.extend(answer.gap);
        bytes.truncate(usize::try_from(session.head.saturating_sub(answer.from)).unwrap_or(usize::MAX));
        match chunks.last_mut().filter(|last| last.from + last.bytes.len() as Offset == answer.from) {
            Some(last) => last.bytes.extend_from_slice(&bytes),
            None => chunks.push(Chunk { from: answer.from, bytes }),
        }
        if answer.to <= from || answer.end {
            break;
        }
        from = answer.to;
    }
    let is_cut = |chunk: &Chunk| gaps.iter().any(|gap: &Gap| gap.to == chunk.from);
    let chunks =
        chunks.into_iter().map(|chunk| if is_cut(&chunk) { chunk.without_cut_line() } else { chunk }).collect();
    Ok((chunks, gaps))
}

/// What acts say about a recording.
#[derive(Debug)]
struct Acts {
    teller: Teller,
    input: bool,
    anchors: Vec<Anchor>,
    marks: Vec<Mark>,
    sizes: Vec<(Offset, Size)>,
}

impl Acts {
    fn new(input: bool) -> Acts {
        Acts { teller: Teller::new(TimeZone::system()), input, anchors: vec![], marks: vec![], sizes: vec![] }
    }

    fn take(&mut self, record: &Record) {
        let what = self.teller.tell(record);
        self.anchors.push(Anchor { at: record.at, time_ms: record.time_ms });
        // What a keeper recorded by itself came late: it stands where its first byte was typed.
        let (at, time_ms) = match &record.act {
            Act::Typed(burst) if burst.from < record.at => (burst.from, None),
            _ => (record.at, Some(record.time_ms)),
        };
        let mut mark = |code, data| self.marks.push(Mark { at, time_ms, code, data });
        if is_shown(&record.act) {
            mark(Code::Marker, format!("{}: {what}", who(&record.by)));
        }
        match (&record.outcome, &record.act) {
            (Outcome::Done, Act::Asked(Ask::Resize { size })) => {
                mark(Code::Resize, size.to_string());
                self.sizes.push((at, *size));
            }
            (Outcome::Done, Act::Typed(burst)) if self.input => {
                let keys = burst.keys.iter().map(|keys| String::from_utf8_lossy(&keys.0).into_owned());
                keys.for_each(|keys| mark(Code::Input, keys));
            }
            (Outcome::Done | Outcome::Refused(_), _) => {}
        }
    }
}

/// The journal's own affairs are no acts.
fn is_shown(act: &Act) -> bool {
    match act {
        Act::Header { .. } | Act::Linked | Act::Joined(_) | Act::Did { ending: Ending::Done, .. } => false,
        Act::Started | Act::Began | Act::Restarted | Act::Damaged { .. } | Act::Ended(_) => true,
        Act::Attached(_) | Act::Resumed(_) | Act::Left(_) | Act::CutOff(_) => true,
        Act::RefusedMore { .. } | Act::Forked(_) | Act::Restored(_) | Act::Leased(_) => true,
        Act::Took | Act::Typed(_) | Act::Asked(_) | Act::Lapsed(_) | Act::Forgotten(_) | Act::Did { .. } => true,
    }
}

#[derive(Debug)]
struct Recording {
    header: Header,
    events: Vec<asciicast::Event>,
}

fn recording(session: &SessionView, chunks: &[Chunk], gaps: &[Gap], acts: Acts) -> Recording {
    let Acts { mut anchors, mut marks, sizes, .. } = acts;
    anchors.push(Anchor { at: 0, time_ms: session.created_ms });
    let end_ms = session.ended_ms.unwrap_or_else(now_ms);
    anchors.push(Anchor { at: session.head, time_ms: end_ms });
    let first = chunks.first().map_or(session.head, |chunk| chunk.from);
    marks.retain(|mark| mark.at >= first);
    marks.extend(gaps.iter().map(|gap| {
        let data = match gap.from {
            0 => format!("output before offset {} is no longer kept", gap.to),
            from => format!("output from offset {from} to {} is no longer kept", gap.to),
        };
        Mark { at: gap.to, time_ms: None, code: Code::Marker, data }
    }));
    // The one in force where the recording begins. Before the first resize the size is unknown.
    let is_before = |(at, _): &&(Offset, Size)| *at <= first;
    let size = sizes.iter().rfind(is_before).or(sizes.first()).map_or(session.size, |(_, size)| *size);
    let mut events = asciicast::events(chunks, &Times::new(anchors), marks);
    if session.life == Life::Ended {
        let time_us = events.last().map_or(0, |last| last.time_us).max(end_ms.saturating_mul(1000));
        let data = session.exit.map_or(1, |exit| exit.as_status()).to_string();
        events.push(asciicast::Event { time_us, code: Code::Exit, data });
    }
    let header = Header { size, command: command_line(&session.command), title: session.name.to_string() };
    Recording { header, events }
}
