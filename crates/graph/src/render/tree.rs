//! The processes as a tree of lines for a terminal.

use unicode_width::UnicodeWidthStr;

use super::parts::{Badge, BadgeKind, Notes, Picture, command, cut, duration, size};
use crate::{Graph, ProcessNode};

/// Columns of a command that stay whatever hangs on its line.
const COMMAND_COLS_MIN: usize = 20;

/// Levels that are drawn as branches; below, the line only says how deep it is. Thirty fill a narrow terminal.
const BRANCHES_MAX: usize = 30;

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";

/// The graph as lines of at most `width` columns, with escape sequences for colour if asked. Processes of the
/// foreground group have a `+`, as in ps(1); a process's note stands at the end of its line.
pub fn tree(graph: &Graph, notes: &Notes, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let picture = Picture::new(graph, notes);
    let mut out = String::new();
    let header = format!("{:>7} {:<2} {:>6} {:>6}  {}", "PID", "S", "CPU", "MEM", "COMMAND");
    out.push_str(&paint.with(DIM, &cut(&header, width)));
    out.push('\n');
    for (process, path) in picture.walk() {
        out.push_str(&line(&picture, process, &path, width, &paint));
        out.push('\n');
    }
    if graph.partial {
        out.push_str(&paint.with(YELLOW, &cut("not all could be read", width)));
        out.push('\n');
    }
    out
}

fn line(picture: &Picture<'_>, process: &ProcessNode, path: &[bool], width: usize, paint: &Paint) -> String {
    let mark = if process.foreground == Some(true) { '+' } else { ' ' };
    let left = format!("{:>7} ", process.pid);
    let state = format!("{}{mark}", process.state);
    let right = format!(" {:>6} {:>6}  ", duration(process.cpu_ms), size(process.rss_bytes));
    let branches = branches(path);
    let used = left.width() + state.width() + right.width() + branches.width();
    let Some(room) = width.checked_sub(used).filter(|room| *room > 0) else {
        return cut(&format!("{left}{state}{right}{branches}"), width);
    };
    let command = command(process);
    let badges = fitting(picture.badges(process), room.saturating_sub(COMMAND_COLS_MIN.min(command.width())));
    let badges_cols: usize = badges.iter().map(|badge| badge.text.width() + 2).sum();
    let command = cut(&command, room - badges_cols);
    let command = if process.foreground == Some(true) { paint.with(BOLD, &command) } else { command };
    let badges: String = badges.iter().map(|badge| format!("  {}", paint.badge(badge))).collect();
    format!(
        "{left}{}{}{}{command}{badges}",
        paint.state(process.state, &state),
        paint.with(DIM, &right),
        paint.with(DIM, &branches)
    )
}

/// The first badges that fit.
fn fitting(badges: Vec<Badge>, room: usize) -> Vec<Badge> {
    let mut used = 0;
    let fits = |badge: &Badge| {
        used += badge.text.width() + 2;
        used <= room
    };
    badges.into_iter().take_while(fits).collect()
}

/// The lines from the ancestors: who has no parent here has none.
fn branches(path: &[bool]) -> String {
    let levels = path.get(1..).unwrap_or_default();
    let Some((last, above)) = levels.split_last() else { return String::new() };
    let own = if *last { "└─ " } else { "├─ " };
    if levels.len() > BRANCHES_MAX {
        return format!("({} deep) {own}", levels.len());
    }
    let above: String = above.iter().map(|is_last| if *is_last { "   " } else { "│  " }).collect();
    above + own
}

struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, sequence: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{sequence}{text}{RESET}") } else { text.to_owned() }
    }

    fn state(&self, state: char, text: &str) -> String {
        match state {
            'R' => self.with(GREEN, text),
            'D' | 'Z' | 'X' => self.with(RED, text),
            'T' | 't' => self.with(YELLOW, text),
            _ => text.to_owned(),
        }
    }

    fn badge(&self, badge: &Badge) -> String {
        match badge.kind {
            BadgeKind::Listens => self.with(CYAN, &badge.text),
            BadgeKind::Connects | BadgeKind::Note => self.with(DIM, &badge.text),
            BadgeKind::Holds | BadgeKind::Unknown => self.with(YELLOW, &badge.text),
        }
    }
}
