//! Records in columns: time, actor, what.

use crate::show::styled;
use holdfast_authority::By;
use holdfast_types::ActorClass;
use jiff::Zoned;
use jiff::civil::Date;

/// Lays lines out one behind the other; a new day has a line of its own.
#[derive(Debug)]
pub struct Lines {
    day: Option<Date>,
    /// Width of the actors' column: it grows, so what was printed stays as it was.
    width: usize,
    coloured: bool,
}

impl Lines {
    /// For standard output as it is.
    pub fn new() -> Lines {
        Lines { day: None, width: 0, coloured: styled() }
    }

    /// Makes the actors' column wide enough for what is to be shown next.
    pub fn make_room(&mut self, widths: impl Iterator<Item = usize>) {
        self.width = widths.fold(self.width, usize::max);
    }

    /// One record, with its line feed.
    pub fn line(&mut self, at: &Zoned, by: &By, what: &str) -> String {
        let day =
            if self.day.replace(at.date()) == Some(at.date()) { String::new() } else { format!("{}\n", at.date()) };
        let who = format!("{:<width$}", crate::tell::who(by), width = self.width);
        let who = if self.coloured { format!("\x1b[{}m{who}\x1b[m", colour(by)) } else { who };
        format!("{day}{}  {who}  {what}\n", at.strftime("%H:%M:%S"))
    }
}

/// People stand out from programs, and the host from both.
fn colour(by: &By) -> &'static str {
    match by.actor().map(|actor| actor.handle.class()) {
        None if *by == By::Unknown => "1;31",
        None => "2",
        Some(ActorClass::Human) => "32",
        Some(ActorClass::Agent) => "35",
        Some(ActorClass::Service) => "34",
        Some(ActorClass::Device) => "36",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Actor, ActorId};
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    #[test]
    fn actors_are_aligned_and_a_new_day_has_a_line() {
        let mut lines = Lines { day: None, width: 0, coloured: false };
        let ann = By::Actor(Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() });
        lines.make_room([9, 4].into_iter());
        let mut out = String::new();
        for (seconds, by, what) in [(0, &By::Host, "a"), (86_399, &ann, "b"), (86_400, &By::Host, "c")] {
            let at = Timestamp::from_second(seconds).unwrap().to_zoned(TimeZone::UTC);
            out.push_str(&lines.line(&at, by, what));
        }
        let expected =
            "1970-01-01\n00:00:00  host       a\n23:59:59  human:ann  b\n1970-01-02\n00:00:00  host       c\n";
        assert_eq!(out, expected);
        lines.coloured = true;
        let at = Timestamp::from_second(86_400).unwrap().to_zoned(TimeZone::UTC);
        assert_eq!(lines.line(&at, &ann, "d"), "00:00:00  \x1b[32mhuman:ann\x1b[m  d\n");
    }
}
