//! How things are shown: nothing that came from a session or another program reaches the terminal as a control character.

use crate::failure::Failure;
use holdfast_types::TimeMs;
use holdfast_wire::params::{Life, SessionView};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{isatty, tcgetwinsize};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use unicode_width::UnicodeWidthChar;

/// Writes to standard output, whole.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // The reader of our pipe has had enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::io("cannot write to standard output", error)),
    }
}

/// Ends the program as soon as its standard output is closed: what follows something for hours may have
/// nothing to write, and would not notice.
pub fn end_with_reader() {
    std::thread::spawn(|| {
        let out = std::io::stdout();
        loop {
            // Asks for no events: poll always reports that the other end is gone.
            let mut watched = [PollFd::new(&out, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => std::process::exit(0),
                // A terminal, on a system whose poll does not know them.
                Ok(_) if watched[0].revents().contains(PollFlags::NVAL) => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
}

/// One JSON document.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::from_error("json", &e))?;
    print(harmless(&text) + "\n")
}

/// One JSON document in one line.
pub fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::from_error("json", &e))?;
    Ok(harmless(&text))
}

/// The same JSON without what a terminal would obey: in JSON these characters stand in strings alone, where an escape is the
/// same character.
pub fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_obeyed(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character could move a cursor, change a colour or turn the direction of writing.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// A line for the person, beside the data.
pub fn say(text: &str) {
    // If standard error is closed, there is no reader.
    let _ = writeln!(std::io::stderr(), "holdfast: {}", visible(text));
}

/// The text with everything that could move a cursor, change a colour or turn the direction of writing made visible.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_obeyed(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// A command as a shell would take it.
pub fn command_line(command: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let words = command.iter().map(|word| match word {
        w if !w.is_empty() && w.chars().all(plain) => w.clone(),
        w => format!("'{}'", w.replace('\'', r"'\''")),
    });
    visible(&words.collect::<Vec<_>>().join(" "))
}

/// The first columns of a text; an ellipsis where something was cut.
pub fn cut(text: &str, columns: usize) -> String {
    let width = |c: char| c.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(width(*c)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Whether a session lives, or how it ended.
pub fn state(session: &SessionView) -> String {
    match (session.life, session.exit) {
        (Life::Running, _) => "running".into(),
        (Life::Ended, Some(exit)) => exit.to_string(),
        (Life::Ended, None) => "ended".into(),
        (Life::Lost, _) => "lost".into(),
        (Life::Unknown, _) => "unknown keeper version".into(),
        (Life::Damaged, _) => "damaged".into(),
    }
}

/// Milliseconds since the epoch.
pub fn now_ms() -> TimeMs {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as TimeMs)
}

/// A span as one number and a unit.
pub fn span(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3_600 => format!("{}m", s / 60),
        s @ 3_600..172_800 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

/// A moment by the calendar, in UTC, and how long ago it was.
pub fn moment(at: TimeMs, now: TimeMs) -> String {
    format!("{} ({} ago)", calendar(at), span(now.saturating_sub(at)))
}

/// A moment to come by the calendar, in UTC, and how far off it is.
pub fn deadline(at: TimeMs, now: TimeMs) -> String {
    format!("{} (in {})", calendar(at), left(at, now))
}

/// The span until a moment, rounded: two hours are not shown as one.
pub fn left(until: TimeMs, now: TimeMs) -> String {
    span(until.saturating_sub(now).saturating_add(500))
}

fn calendar(at: TimeMs) -> String {
    let (days, seconds) = (at / 86_400_000, at / 1000 % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of a day since 1970, by Howard Hinnant's `civil_from_days`.
fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// Bytes in the largest unit that keeps them whole, else with one decimal.
pub fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} bytes"),
        n if n >> 30 > 0 => format!("{:.1} GiB", n as f64 / f64::from(1 << 30)),
        n if n >> 20 > 0 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n => format!("{:.1} KiB", n as f64 / 1024.0),
    }
}

/// Rows with their columns aligned; the last column is cut at the terminal's edge.
pub fn table(rows: &[Vec<String>], width_max: Option<usize>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut text = String::new();
        for (at, cell) in row.iter().enumerate() {
            if at + 1 == columns {
                let room = width_max.map_or(usize::MAX, |max| max.saturating_sub(text.chars().count()).max(8));
                text.push_str(&cut(cell, room));
            } else {
                text.push_str(&format!("{cell:<width$}  ", width = widths[at]));
            }
        }
        text.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Names and values, aligned.
pub fn fields(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}

/// Standard input and output are a terminal.
pub fn on_terminal() -> bool {
    isatty(rustix::stdio::stdin()) && isatty(rustix::stdio::stdout())
}

/// Columns of the terminal on standard output; none where it is none.
pub fn columns() -> Option<usize> {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Attributes are welcome on standard output.
pub fn styled() -> bool {
    isatty(rustix::stdio::stdout()) && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_characters_are_shown_not_obeyed() {
        assert_eq!(visible("a\x1b]0;x\x07\u{9b}2J\u{202e}b\n"), "a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}b\\n");
    }

    #[test]
    fn a_command_is_shown_as_a_shell_takes_it() {
        let command = ["sh", "-c", "echo 'a' $b", ""].map(str::to_owned);
        assert_eq!(command_line(&command), r"sh -c 'echo '\''a'\'' $b' ''");
    }

    #[test]
    fn texts_are_cut_by_columns_not_by_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
    }

    #[test]
    fn moments_are_calendar_dates() {
        let at = 1_709_210_096_000;
        assert_eq!(moment(at, at + 90_000), "2024-02-29 12:34:56 UTC (1m ago)");
        assert_eq!(deadline(at, at - 90_000), "2024-02-29 12:34:56 UTC (in 1m)");
        assert_eq!(moment(0, 0), "1970-01-01 00:00:00 UTC (0s ago)");
    }

    #[test]
    fn spans_have_one_unit() {
        let spans: Vec<_> = [900, 59_999, 60_000, 7_200_000, 172_799_000, 172_800_000].map(span).into();
        assert_eq!(spans, ["0s", "59s", "1m", "2h", "47h", "2d"]);
    }
}
