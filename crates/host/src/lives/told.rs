//! What a session's processes can read of the life they are in. A process that came from a checkpoint still has the variables it was
//! started with; the file behind `$HOLDFAST_LIFE` is written anew for each life, before the first process of it runs.

use crate::session::Session;
use crate::store::Spec;
use holdfast_types::{SessionId, SessionName, TimeMs};
use serde::Serialize;
use std::io;

/// Its name in the session's directory.
pub(crate) const LIFE: &str = "life.json";

/// How a life began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Began {
    /// The session was started.
    Started,
    /// It was lost, and has new processes.
    Recovered,
    /// Its processes came from a checkpoint.
    Restored,
    /// Its processes are a copy of another session's.
    Forked,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    session: SessionId,
    incarnation: u32,
    fence: u64,
    /// No other life of any session has this: keys of what is to happen once begin with it.
    key_prefix: String,
    began: Began,
    since_ms: TimeMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<From<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a str>,
    cut: &'a [String],
}

#[derive(Debug, Serialize)]
struct From<'a> {
    session: SessionId,
    name: &'a SessionName,
}

/// The fence of a life, for resources that check one: larger than that of every life before. Of a leased session the store's, which also
/// grows where an older copy of the session's files is taken up.
pub(crate) fn token(session: &Session, spec: &Spec) -> u64 {
    spec.lease.as_ref().map_or(session.fence().0, |lease| lease.fence)
}

/// Writes it.
pub(crate) fn tell(session: &Session, spec: &Spec, began: Began) -> io::Result<()> {
    let incarnation = session.incarnation().max(1);
    let branch = spec.portable.as_ref().and_then(|portable| portable.branch.as_ref());
    let restored = spec.portable.as_ref().and_then(|portable| portable.restored.as_ref());
    let told = Told {
        session: spec.id,
        incarnation,
        fence: token(session, spec),
        key_prefix: format!("{}.{incarnation}", spec.id),
        began,
        since_ms: crate::now_ms(),
        forked_from: branch.map(|branch| From { session: branch.of.session, name: &branch.of.name }),
        checkpoint: restored.map(|restored| restored.checkpoint.as_str()),
        cut: restored.map_or(&[], |restored| restored.cut.as_slice()),
    };
    let text = serde_json::to_vec_pretty(&told).map_err(io::Error::other)?;
    let text = [&text[..], b"\n"].concat();
    if holdfast_store::fill(&session.dir.join(LIFE), &text)? {
        return Ok(());
    }
    crate::store::replace(&session.dir, LIFE, &text)
}
