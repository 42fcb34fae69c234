//! `holdfast wait`: ends as the session's command did.

use crate::args::WaitArgs;
use crate::failure::{Failure, STATUS_TIMEOUT};
use crate::here::Here;
use crate::show::print_json;
use holdfast_client::CallError;
use holdfast_types::Exit;
use holdfast_wire::operations::op;
use holdfast_wire::params::{WaitAnswer, WaitParams};
use std::time::{Duration, Instant};

/// `holdfast wait`.
pub fn wait(here: &Here, args: &WaitArgs) -> Result<u8, Failure> {
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout.ms)));
    let mut link = here.link()?;
    // The id: a name may go to another session while we wait.
    let session = link.get(&args.of.session)?;
    let answer = loop {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let params = WaitParams { session: session.id.to_string(), timeout_ms: deadline.map(left) };
        match link.once::<op::Wait>(&params, &[]) {
            Err(CallError::Broken(error)) => link.mend(error)?,
            Ok((WaitAnswer { exit: None }, _)) if deadline.is_none_or(|d| Instant::now() < d) => {}
            other => break other?.0,
        }
    };
    if here.json {
        print_json(&answer)?;
    }
    match answer.exit {
        Some(Exit::Lost) if !here.json => {
            let message = format!("session {} is lost: how its command ended is not known", session.name);
            Err(Failure::new("lost", message).status(Exit::Lost.as_status()))
        }
        Some(exit) => Ok(exit.as_status()),
        None if here.json => Ok(STATUS_TIMEOUT),
        None => Err(Failure::new("timeout", format!("session {} still runs", session.name)).status(STATUS_TIMEOUT)),
    }
}
