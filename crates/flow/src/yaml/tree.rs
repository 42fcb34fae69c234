//! YAML as a tree that knows its lines. Anchors, aliases, tags and second documents are refused: no flow needs them, and files
//! that grow when they are read are made of them.

use super::{Problem, YAML_BYTES_MAX, problem};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// How deep lists and maps may be inside each other: a step inside `all` is at four.
const DEPTH_MAX: usize = 8;

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text(String),
    /// Written as nothing, `~` or `null`.
    Nothing,
    List(Vec<Node>),
    /// In the order of the file; a key is there once.
    Map(Vec<(String, Node)>),
}

impl Node {
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Text(_) => "text",
            Kind::Nothing => "nothing",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

/// Reads one document.
pub fn read(text: &str) -> Result<Node, Problem> {
    if text.len() > YAML_BYTES_MAX {
        return problem(1, format!("the file is longer than {YAML_BYTES_MAX} bytes"), "split it into several flows");
    }
    let mut events = Events { parser: Parser::new_from_str(text), line: 1 };
    let mut root = None;
    loop {
        match events.next()? {
            Event::StreamEnd | Event::Nothing => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            _ if root.is_some() => {
                return problem(events.line, "the file has a second document", "remove it, from `---` on");
            }
            event => root = Some(node(&mut events, event, 0)?),
        }
    }
    match root {
        Some(root) => Ok(root),
        None => problem(1, "the file is empty", "begin with `flow: NAME` and `steps:`"),
    }
}

struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
    line: usize,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<Event<'a>, Problem> {
        match self.parser.next_event() {
            None => Ok(Event::Nothing),
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line();
                Ok(event)
            }
            Some(Err(error)) => {
                let line = error.marker().line();
                problem(line, format!("this is not YAML: {}", error.info()), "check indentation, quotes and colons")
            }
        }
    }
}

fn node<'a>(events: &mut Events<'a>, event: Event<'a>, depth: usize) -> Result<Node, Problem> {
    let line = events.line;
    if depth > DEPTH_MAX {
        return problem(line, format!("lists and maps are more than {DEPTH_MAX} deep"), "");
    }
    let plain = |anchor: usize, tagged: bool| match (anchor, tagged) {
        (0, false) => Ok(()),
        (0, true) => problem(line, "tags are not supported", "remove the word that begins with `!`"),
        _ => problem(line, "anchors are not supported", "remove the word that begins with `&`"),
    };
    let kind = match event {
        Event::Scalar(text, style, anchor, tag) => {
            plain(anchor, tag.is_some())?;
            match (style, text.as_ref()) {
                (ScalarStyle::Plain, "" | "~" | "null") => Kind::Nothing,
                (_, text) => Kind::Text(text.to_owned()),
            }
        }
        Event::SequenceStart(anchor, tag) => {
            plain(anchor, tag.is_some())?;
            let mut list = Vec::new();
            loop {
                match events.next()? {
                    Event::SequenceEnd => break Kind::List(list),
                    event => list.push(node(events, event, depth + 1)?),
                }
            }
        }
        Event::MappingStart(anchor, tag) => {
            plain(anchor, tag.is_some())?;
            let mut map: Vec<(String, Node)> = Vec::new();
            loop {
                let event = events.next()?;
                if matches!(event, Event::MappingEnd) {
                    break Kind::Map(map);
                }
                let key = node(events, event, depth + 1)?;
                let at = key.line;
                let Kind::Text(key) = key.kind else {
                    return problem(at, format!("a key must be text, not {}", key.word()), "");
                };
                if map.iter().any(|(known, _)| *known == key) {
                    return problem(at, format!("`{key}` is there twice"), "remove one of the two");
                }
                let event = events.next()?;
                map.push((key, node(events, event, depth + 1)?));
            }
        }
        Event::Alias(_) => return problem(line, "aliases are not supported", "write the value out"),
        other => return problem(line, format!("unexpected {other:?}"), ""),
    };
    Ok(Node { line, kind })
}
