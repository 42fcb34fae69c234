//! `holdfast logs`: output by absolute offset. What is no longer kept is told as a gap, never passed over.

use crate::args::LogsArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, say};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdfast_types::Offset;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Gap, ReadAnswer, ReadParams};
use serde_json::{Value, json};

/// Bytes asked for at once.
const READ_BYTES_MAX: u32 = 256 * 1024;
/// How long a question for more waits at the host before it is asked again.
const FOLLOW_WAIT_MS: u64 = 60_000;

/// `holdfast logs`.
pub fn logs(here: &Here, args: &LogsArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    // The id: a name may go to another session while we follow.
    let session = link.get(&args.of.session)?.id.to_string();
    let mut printer = Printer::new(here.json, args.follow, args.plain);
    let mut from = args.from.unwrap_or(0);
    // Without --follow, what is there now: a session that never stops writing must not keep us for ever.
    let mut until: Option<Offset> = None;
    loop {
        let params = ReadParams {
            session: session.clone(),
            from: Some(from),
            max: Some(READ_BYTES_MAX),
            wait_ms: if args.follow { FOLLOW_WAIT_MS } else { 0 },
        };
        let (answer, mut bytes) = link.call_with_bytes::<op::Read>(&params, &[])?;
        let until = *until.get_or_insert(answer.head);
        if !args.follow {
            bytes.truncate(until.saturating_sub(answer.from) as usize);
        }
        printer.take(&answer, &bytes)?;
        from = answer.to;
        if answer.end || (!args.follow && from >= until) {
            return printer.finish(&answer).map(|()| 0);
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
    /// Without escape sequences.
    Plain(Box<holdfast_screen::PlainText>),
    /// A JSON document a line.
    Lines(Cutter),
    /// One JSON document at the end.
    Document { from: Option<Offset>, bytes: Vec<u8>, gaps: Vec<Gap>, plain: bool },
}

impl Printer {
    fn new(json: bool, follow: bool, plain: bool) -> Printer {
        match (json, follow) {
            (true, true) => Printer::Lines(Cutter { kept: Vec::new(), plain: plain.then(Default::default) }),
            (true, false) => Printer::Document { from: None, bytes: vec![], gaps: vec![], plain },
            (false, _) if plain => Printer::Plain(Box::default()),
            (false, _) => Printer::Raw,
        }
    }
}
