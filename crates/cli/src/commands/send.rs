//! `holdfast send`: types into a session, exactly once whatever happens to the host in between.

use crate::args::SendArgs;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{print_json, say};
use holdfast_client::CallError;
use holdfast_screen::keys::Key;
use holdfast_wire::operations::op;
use holdfast_wire::params::{ScreenParams, SendAnswer, SendParams};
use holdfast_wire::{Code, Fault};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Bytes of one message: few round trips, and small against what a host accepts.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Bytes that one seq stands for, as [`SendParams`] has it.
const SEQ_BYTES: usize = 4096;
/// A program that reads nothing for this long is not going to.
const BUSY_MS_MAX: u64 = 30_000;
/// Longest pause between two attempts at a terminal that takes no more.
const BUSY_PAUSE_MS_MAX: u64 = 200;

/// `holdfast send`.
pub fn send(here: &Here, args: &SendArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    // The id: the pieces of a long text must all go to one session.
    let session = link.get(&args.of.session)?;
    let asks = args.keys.iter().any(Key::has_two_forms);
    let application = asks && application_cursor(&mut link, session.id.to_string())?;
    let bytes =
        Zeroizing::new(if args.secret { secret(args, session.name.as_str())? } else { typed(args, application)? });
    let stream = getrandom::u64().map_err(|e| Failure::new("io", format!("cannot get random bytes: {e}")))?;
    let mut params = SendParams {
        session: session.id.to_string(),
        stream,
        seq: 1,
        client: None,
        fence: None,
        secret: args.secret,
        force: args.force,
        in_order: false,
    };
    let mut last = SendAnswer { at: session.head, written: true, fence: session.turn.fence };
    for piece in bytes.chunks(MESSAGE_BYTES_MAX) {
        last = patiently(&mut link, &params, piece)
            .map_err(|failure| failure.of_session(&here.called(session.name.as_str())))?;
        params.seq += piece.len().div_ceil(SEQ_BYTES) as u64;
    }
    if here.json {
        print_json(&last)?;
    } else if !last.written {
        say("queued: the session's program is not reading its terminal");
    }
    Ok(0)
}

/// A secret, and Enter.
fn secret(args: &SendArgs, session: &str) -> Result<Vec<u8>, Failure> {
    let mut line = if args.stdin { super::secret::from_stdin()? } else { super::secret::from_terminal(session)? };
    line.push(b'\r');
    Ok(std::mem::take(&mut *line))
}

/// Whether the program wants cursor keys in their application form.
fn application_cursor(link: &mut Link<'_>, session: String) -> Result<bool, Failure> {
    Ok(link.call::<op::Screen>(&ScreenParams { session, ansi: false, history: 0 })?.application_cursor)
}

fn typed(args: &SendArgs, application: bool) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if args.stdin {
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| Failure::io("cannot read standard input", e))?;
    }
    for (at, word) in args.text.iter().enumerate() {
        bytes.extend_from_slice(if at > 0 { b" " } else { b"" });
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend(args.keys.iter().flat_map(|key| key.bytes(application)));
    if args.enter {
        bytes.push(b'\r');
    }
    Ok(bytes)
}

/// Sends one message again, under the same seq, until it was taken.
fn patiently(link: &mut Link<'_>, params: &SendParams, bytes: &[u8]) -> Result<SendAnswer, Failure> {
    let deadline = Instant::now() + Duration::from_millis(BUSY_MS_MAX);
    let mut pause_ms = 1;
    loop {
        match link.once::<op::Send>(params, bytes) {
            Err(CallError::Broken(error)) => link.mend(error)?,
            Err(CallError::Fault(Fault { code: Code::Busy, .. })) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(pause_ms));
                pause_ms = (pause_ms * 2).min(BUSY_PAUSE_MS_MAX);
            }
            other => return Ok(other?.0),
        }
    }
}
