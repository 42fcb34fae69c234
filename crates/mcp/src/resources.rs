//! Sessions as resources: `session://NAME/screen`, `/log` and `/graph`; and runs: `run://RUN`.

use crate::excerpt;
use crate::host::{Host, ask, ask_with_bytes};
use crate::tools::graph_json;
use crate::trouble::Trouble;
use holdfast_graph::Depth;
use holdfast_wire::graphs::GraphParams;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, ReadParams, ScreenParams, SessionParams};
use holdfast_wire::runs::{KEY_BYTES_MAX, RunParams};
use rmcp::model::{MetaObject, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// Resources in one answer.
const RESOURCES_MAX: usize = 600;
/// Bytes of a log that are given: its end.
const LOG_BYTES: u32 = 64 * 1024;

/// What of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// What a terminal shows.
    Screen,
    /// What was printed.
    Log,
    /// What runs.
    Graph,
    /// How a run stands. Its address has the run in place of a session.
    Run,
}

/// All of a session.
const PARTS: [Part; 3] = [Part::Screen, Part::Log, Part::Graph];

impl Part {
    /// The last word of its address.
    fn word(self) -> &'static str {
        match self {
            Part::Screen => "screen",
            Part::Log => "log",
            Part::Graph => "graph",
            Part::Run => "run",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Part::Screen | Part::Log => "text/plain",
            Part::Graph | Part::Run => "application/json",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Part::Screen => "The session's current screen as text",
            Part::Log => "The end of the session's output as text; _meta has its offsets",
            Part::Graph => "The session's processes, ports and connections, and the act that started each",
            Part::Run => "A run by its handle or key: state, exit code, output. Subscribe to be told when it has ended",
        }
    }
}

/// A resource's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Name or id of the session, or a run's handle or key.
    pub session: String,
    /// What of it.
    pub part: Part,
}

impl Address {
    /// Reads an address.
    pub fn of(uri: &str) -> Option<Address> {
        if let Some(run) = uri.strip_prefix("run://") {
            let run = decoded(run).filter(|run| !run.is_empty() && run.len() <= KEY_BYTES_MAX)?;
            return Some(Address { session: run, part: Part::Run });
        }
        let (session, part) = uri.strip_prefix("session://")?.split_once('/')?;
        let part = PARTS.into_iter().find(|known| known.word() == part)?;
        let is_plain = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        is_plain.then(|| Address { session: session.to_owned(), part })
    }

    /// As text.
    fn uri(session: &str, part: Part) -> String {
        format!("session://{session}/{}", part.word())
    }
}

/// An address's text, in which `%` and two digits stand for a byte: a key has any character.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

/// Those of every live session one may observe.
pub async fn list(host: &impl Host) -> Result<Vec<Resource>, Trouble> {
    let sessions = ask::<op::List>(host, ListParams::default()).await?;
    let live = sessions.iter().filter(|session| session.life == Life::Running);
    let each = live.flat_map(|session| {
        PARTS.into_iter().map(|part| {
            let name = session.name.as_str();
            Resource::new(Address::uri(name, part), format!("{name}/{}", part.word()))
                .with_title(format!("{} of {name}", part.word()))
                .with_description(part.description())
                .with_mime_type(part.kind())
        })
    });
    Ok(each.take(RESOURCES_MAX).collect())
}

/// How addresses are made.
pub fn templates() -> Vec<ResourceTemplate> {
    let each = PARTS.into_iter().map(|part| {
        ResourceTemplate::new(Address::uri("{session}", part), part.word())
            .with_title(format!("A session's {}", part.word()))
            .with_description(part.description())
            .with_mime_type(part.kind())
    });
    let run = ResourceTemplate::new("run://{run}", "run")
        .with_title("A run")
        .with_description(Part::Run.description())
        .with_mime_type(Part::Run.kind());
    each.chain([run]).collect()
}

/// Names of live sessions that begin so.
pub async fn names(host: &impl Host, beginning: &str) -> Result<Vec<String>, Trouble> {
    let sessions = ask::<op::List>(host, ListParams::default()).await?;
    let names = sessions.iter().map(|session| session.name.to_string());
    Ok(names.filter(|name| name.starts_with(beginning)).collect())
}

/// Reads one.
pub async fn read(host: &impl Host, uri: &str, address: &Address) -> Result<ResourceContents, Trouble> {
    let session = address.session.clone();
    let (text, meta) = match address.part {
        Part::Screen => {
            let answer = ask::<op::Screen>(host, ScreenParams { session, ansi: false, history: 0 }).await?;
            let rows: Vec<&str> = answer.rows.iter().map(|row| row.trim_end()).collect();
            let (column, row) = answer.cursor;
            let meta = json!({ "offset": answer.offset, "size": answer.size, "column": column, "row": row });
            (rows.join("\n").trim_end().to_owned(), meta)
        }
        Part::Log => {
            let view = ask::<op::Get>(host, SessionParams { session }).await?;
            let from = view.head.saturating_sub(u64::from(LOG_BYTES)).max(view.oldest);
            let params =
                ReadParams { session: view.id.to_string(), from: Some(from), max: Some(LOG_BYTES), wait_ms: 0 };
            let (answer, bytes) = ask_with_bytes::<op::Read>(host, params, Vec::new()).await?;
            let (text, lossy) = excerpt::text(&bytes, view.size.cols());
            (text, json!({ "from": answer.from, "to": answer.to, "oldest": view.oldest, "lossy": lossy }))
        }
        Part::Graph => {
            let answer = ask::<op::Graph>(host, GraphParams { session, depth: Depth::Sockets }).await?;
            (graph_json(&answer), json!({}))
        }
        Part::Run => {
            let answer = ask::<op::RunGet>(host, RunParams { run: session.into(), wait_ms: 0 }).await?;
            (serde_json::to_string_pretty(&answer).unwrap_or_default(), json!({}))
        }
    };
    let meta: MetaObject = serde_json::from_value(json!({ "holdfast": meta })).unwrap_or_default();
    Ok(ResourceContents::text(text, uri).with_mime_type(address.part.kind()).with_meta(meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_session_and_what_of_it() {
        for part in PARTS {
            let address = Address::of(&Address::uri("build-2", part)).unwrap();
            assert_eq!((address.session.as_str(), address.part), ("build-2", part));
        }
        let run = |session: &str| Some(Address { session: session.into(), part: Part::Run });
        assert_eq!(Address::of("run://run_01"), run("run_01"));
        assert_eq!(Address::of("run://deploy%201%2f%C3%BC"), run("deploy 1/ü"));
        for uri in [
            "run://",
            "run://%",
            "run://%4",
            "run://%zz",
            "run://%ff",
            "session://a/run",
            "session://",
            "session://a",
            "session:///log",
            "session://a/b",
            "session://a b/log",
            "file:///log",
        ] {
            assert_eq!(Address::of(uri), None, "{uri}");
        }
    }
}
