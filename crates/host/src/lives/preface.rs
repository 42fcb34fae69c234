//! What the output of another life begins with: the terminal is made usable again, and a few lines say what died.
//!
//! Everything in them that comes from programs is shown without control characters.

use holdfast_wire::lives::LostView;
use std::fmt::Write;

/// Names in one line: more are counted.
const NAMED_MAX: usize = 6;

/// Ends whatever sequence was cut off, and undoes what full-screen programs do to a terminal. The cursor stays where it is.
const RESET: &str = "\x18\x1b\\\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?2026l\x1b[?1l\
    \x1b>\x1b[?25h\x1b[?7h\x1b[4l\x1b[>4;0m\x1b[0 q\x1b]8;;\x1b\\\x1b(B\x0f\x1b[0m";

/// How the screen of the life before stood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stood {
    /// A full-screen program was on.
    pub alternate: bool,
    /// Columns before the cursor.
    pub column: u16,
}

/// What the next life has and has not.
#[derive(Debug, Clone, Default)]
pub(super) struct Next {
    pub incarnation: u32,
    /// Where it starts, where that is not where the last one was.
    pub moved_to: Option<String>,
    /// The command that is not run again.
    pub not_run: Option<String>,
    /// Variables that are missing.
    pub missing: Vec<String>,
    /// Why the last life is over, where it was not lost.
    pub failed: Option<String>,
}

/// The bytes.
pub(super) fn text(lost: Option<&LostView>, stood: Stood, next: &Next) -> Vec<u8> {
    told(stood, lines(lost, next))
}

/// The same for lines that are not about a loss.
pub(super) fn plainly(stood: Stood, lines: &[String]) -> Vec<u8> {
    told(stood, lines.iter().map(|line| format!("[{}]", plain(line))).collect())
}

fn told(stood: Stood, lines: Vec<String>) -> Vec<u8> {
    let mut text = RESET.to_owned();
    // Leaving the other screen brings the cursor back; the margins would move it, so it is remembered around them.
    text.push_str(if stood.alternate { "\x1b[r\x1b[?1049l" } else { "\x1b7\x1b[r\x1b8" });
    text.push_str("\x1b[0m");
    if stood.column > 0 || stood.alternate {
        text.push_str("\r\n");
    }
    for line in lines {
        let _ = write!(text, "\x1b[7m{line}\x1b[0m\r\n");
    }
    text.into_bytes()
}

fn lines(lost: Option<&LostView>, next: &Next) -> Vec<String> {
    let mut lines = Vec::new();
    let Next { incarnation, .. } = next;
    let begins = format!("holdfast: life {incarnation} begins here");
    lines.push(match (lost, &next.failed) {
        (Some(lost), _) => format!("[{begins}; lost: {}]", plain(&lost.why)),
        (None, Some(how)) => format!("[{begins}; the command ended ({}) and is run again]", plain(how)),
        (None, None) => format!("[{begins}]"),
    });
    if let Some(lost) = lost {
        let died = lost.processes.iter().filter(|process| !process.survives).map(|process| process.program.as_str());
        lines.extend(named("died", died.collect()));
        let on = lost.processes.iter().filter(|process| process.survives);
        let on: Vec<String> = on.map(|process| format!("{} ({})", process.program, process.pid)).collect();
        lines.extend(named("still running without a terminal", on.iter().map(String::as_str).collect()));
        lines.extend(named("was listening", lost.listened.iter().map(String::as_str).collect()));
        lines.extend(named("connections cut", lost.connected.iter().map(String::as_str).collect()));
        let runs: Vec<String> = lost.runs.iter().map(ToString::to_string).collect();
        lines.extend(named("runs lost, not run again", runs.iter().map(String::as_str).collect()));
    }
    lines.extend(
        next.not_run.iter().map(|command| format!("[not run again: {}; this is a shell in its place]", plain(command))),
    );
    lines.extend(next.moved_to.iter().map(|cwd| format!("[the last directory is gone; this is {}]", plain(cwd))));
    lines.extend(named("variables whose values are not kept", next.missing.iter().map(String::as_str).collect()));
    lines
}

fn named(what: &str, all: Vec<&str>) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = all.iter().take(NAMED_MAX).map(|name| plain(name)).collect();
    if all.len() > NAMED_MAX {
        shown.push(format!("{} more", all.len() - NAMED_MAX));
    }
    Some(format!("[{what}: {}]", shown.join(", ")))
}

/// Without what could steer a terminal, and not too long.
fn plain(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(120).collect();
    if shown.len() < text.len() && text.chars().nth(120).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_screen::Screen;
    use holdfast_wire::lives::{Cause, LostProcess};

    fn lost() -> LostView {
        let process = |pid, program: &str, survives| LostProcess { pid, program: program.into(), survives };
        LostView {
            at_ms: 1,
            cause: Cause::Reboot,
            why: "the machine was restarted".into(),
            cwd: None,
            seen_ms: None,
            processes: vec![process(1, "bash", false), process(2, "vi\x1b]0;x\x07m", false), process(3, "nohup", true)],
            listened: vec!["tcp 127.0.0.1:5173".into()],
            connected: Vec::new(),
            runs: Vec::new(),
            checkpoint: None,
            withheld: Vec::new(),
        }
    }

    fn shown(before: &str, stood: Stood, next: &Next) -> Vec<String> {
        let mut screen = Screen::new("100x12".parse().unwrap(), 0);
        screen.feed(before.as_bytes());
        screen.feed(&text(Some(&lost()), stood, next));
        screen.feed(b"$ ");
        screen.rows_text().into_iter().map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn what_died_stands_below_what_was_there_and_above_the_next_prompt() {
        let next = Next { incarnation: 2, missing: vec!["AWS_PROFILE".into()], ..Next::default() };
        let rows = shown("make\r\ndone 4", Stood { alternate: false, column: 6 }, &next);
        let expected = [
            "make",
            "done 4",
            "[holdfast: life 2 begins here; lost: the machine was restarted]",
            "[died: bash, vi]0;xm]",
            "[still running without a terminal: nohup (3)]",
            "[was listening: tcp 127.0.0.1:5173]",
            "[variables whose values are not kept: AWS_PROFILE]",
            "$",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_full_screen_program_with_margins_mouse_and_half_a_sequence_leaves_a_usable_terminal() {
        let before = "$ vim\r\n\x1b7\x1b[?1049h\x1b[3;6r\x1b[?1003h\x1b[?25lfull\x1b]0;half";
        let rows = shown(before, Stood { alternate: true, column: 4 }, &Next { incarnation: 3, ..Next::default() });
        assert_eq!(rows[0], "$ vim");
        assert!(rows[1].contains("life 3 begins here") && rows.last().unwrap() == "$", "{rows:?}");
    }
}
