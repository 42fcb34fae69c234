//! The processes as a picture for a page: a tree from left to right, one file without scripts or anything to fetch.

use std::collections::HashMap;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::parts::{Badge, BadgeKind, Notes, Picture, command, cut, duration, size};
use crate::{Graph, ProcessId, ProcessNode};

/// Boxes drawn: a thousand are a wall already, and a browser still scrolls it.
const BOXES_MAX: usize = 1000;

const BOX_WIDTH: usize = 300;
const BOX_HEIGHT: usize = 44;
const COLUMN: usize = BOX_WIDTH + 50;
const BADGE_HEIGHT: usize = 18;
const BADGE_GAP: usize = 4;
const GAP: usize = 12;
const MARGIN: usize = 16;
/// Columns of the monospaced letters, at the sizes below; rounded up, for fonts differ.
const LETTER: usize = 8;
const BADGE_LETTER: usize = 7;

const STYLE: &str = "\
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}
.page{fill:#ffffff}.box{fill:#f6f8fa;stroke:#8c959f}.fg{stroke:#0969da;stroke-width:2}.edge{fill:none;stroke:#8c959f}
.small{font-size:11px;fill:#59636e}.badge{font-size:10px}.R{fill:#1a7f37}.D,.Z,.X{fill:#d1242f}.T,.t{fill:#9a6700}
.note{fill:none;stroke:#8c959f;stroke-dasharray:2}
.listens{fill:#ddf4ff;stroke:#0969da}.connects{fill:#f6f8fa;stroke:#8c959f}.holds,.unknown{fill:#fff8c5;stroke:#9a6700}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.box{fill:#161b22;stroke:#6e7681}
.fg{stroke:#58a6ff}.edge{stroke:#6e7681}.small{fill:#9198a1}.R{fill:#3fb950}.D,.Z,.X{fill:#f85149}.T,.t{fill:#d29922}
.listens{fill:#0c2d6b;stroke:#58a6ff}.connects{fill:#161b22;stroke:#6e7681}.holds,.unknown{fill:#3b2300;stroke:#d29922}}
";

/// The graph as one SVG document. Text is escaped, and colours follow the reader's light or dark scheme.
pub fn svg(graph: &Graph, notes: &Notes) -> String {
    let picture = Picture::new(graph, notes);
    let walked: Vec<(&ProcessNode, Vec<bool>)> = picture.walk();
    let shown = &walked[..walked.len().min(BOXES_MAX)];
    let mut rows: HashMap<ProcessId, usize> = HashMap::new();
    let (mut edges, mut boxes) = (String::new(), String::new());
    let mut free = MARGIN;
    let mut width = 0;
    for (process, path) in shown {
        let x = MARGIN + path.len().saturating_sub(1) * COLUMN;
        let mut y = free;
        if let Some(row) = process.parent.and_then(|parent| rows.get(&parent)).copied() {
            // The first child stands beside its parent, the others below all that came before.
            let first = picture.children(process.parent).first();
            if first.is_some_and(|first| first.id == process.id) {
                y = row;
            }
            edge(&mut edges, (x + BOX_WIDTH - COLUMN, row + BOX_HEIGHT / 2), (x, y + BOX_HEIGHT / 2));
        }
        rows.insert(process.id, y);
        let bottom = draw(&mut boxes, process, &picture.badges(process), x, y);
        free = free.max(bottom + GAP);
        width = width.max(x + BOX_WIDTH + MARGIN);
    }
    let left_out = walked.len() - shown.len();
    let note = match (left_out, graph.partial) {
        (0, false) => None,
        (0, true) => Some("not all could be read".to_owned()),
        (more, _) => Some(format!("{more} more processes")),
    };
    if let Some(note) = note {
        let _ = writeln!(boxes, "<text class=\"small\" x=\"{MARGIN}\" y=\"{}\">{note}</text>", free + 12);
        free += 20;
        width = width.max(COLUMN);
    }
    let height = free + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{} processes</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{edges}{boxes}</svg>\n",
        graph.processes.len()
    )
}

fn edge(out: &mut String, from: (usize, usize), to: (usize, usize)) {
    let middle = from.0 + 20;
    let _ = writeln!(out, "<path class=\"edge\" d=\"M{} {}H{middle}V{}H{}\"/>", from.0, from.1, to.1, to.0);
}

/// Draws one process and its badges below it; gives where that ends.
fn draw(out: &mut String, process: &ProcessNode, badges: &[Badge], x: usize, y: usize) -> usize {
    let foreground = if process.foreground == Some(true) { " fg" } else { "" };
    let whole = command(process);
    let shown = escaped(&cut(&whole, (BOX_WIDTH - 20) / LETTER));
    let facts = format!("{} · {} · {}", process.pid, duration(process.cpu_ms), size(process.rss_bytes));
    let state = if process.state.is_ascii_alphabetic() { process.state } else { '?' };
    let _ = writeln!(
        out,
        "<g><title>{}</title>\
         <rect class=\"box{foreground}\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>\
         <text x=\"{}\" y=\"{}\">{shown}</text><text class=\"small {state}\" x=\"{}\" y=\"{}\">{state}</text>\
         <text class=\"small\" x=\"{}\" y=\"{}\">{facts}</text></g>",
        escaped(&whole),
        x + 10,
        y + 18,
        x + 10,
        y + 35,
        x + 26,
        y + 35,
    );
    draw_badges(out, badges, x, y + BOX_HEIGHT)
}

fn draw_badges(out: &mut String, badges: &[Badge], x: usize, y: usize) -> usize {
    let (mut at, mut top, mut bottom) = (x, y + BADGE_GAP, y);
    for badge in badges {
        let class = match badge.kind {
            BadgeKind::Listens => "listens",
            BadgeKind::Connects => "connects",
            BadgeKind::Holds => "holds",
            BadgeKind::Unknown => "unknown",
            BadgeKind::Note => "note",
        };
        let text = cut(&badge.text, (BOX_WIDTH - 12) / BADGE_LETTER);
        let width = text.width() * BADGE_LETTER + 12;
        if at > x && at + width > x + BOX_WIDTH {
            (at, top) = (x, top + BADGE_HEIGHT + BADGE_GAP);
        }
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{at}\" y=\"{top}\" width=\"{width}\" height=\"{BADGE_HEIGHT}\" rx=\"9\"/>\
             <text class=\"badge\" x=\"{}\" y=\"{}\">{}</text>",
            at + 6,
            top + 13,
            escaped(&text)
        );
        at += width + BADGE_GAP;
        bottom = top + BADGE_HEIGHT;
    }
    bottom
}

/// XML's own characters as entities, and what XML may not hold as a replacement.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
