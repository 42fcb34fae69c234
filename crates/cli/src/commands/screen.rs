//! `holdfast screen`: what a person attached now would see, as text.

use super::logs::say_gap;
use crate::args::ScreenArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{print, print_json, visible};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ScreenAnswer, ScreenParams};

/// `holdfast screen`.
pub fn screen(here: &Here, args: &ScreenArgs) -> Result<u8, Failure> {
    let params = ScreenParams { session: args.of.session.clone(), ansi: args.ansi, history: args.history };
    let answer = here.link()?.call::<op::Screen>(&params)?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    if let Some(gap) = answer.gap {
        say_gap(gap);
    }
    print(text(&answer, args.ansi))?;
    Ok(0)
}

/// History and rows, without the empty rows below the last one in use.
fn text(answer: &ScreenAnswer, ansi: bool) -> String {
    let used = answer.rows.iter().rposition(|row| !row.trim_end().is_empty()).map_or(0, |last| last + 1);
    let mut text = String::new();
    for line in answer.history.iter().chain(&answer.rows[..used]) {
        if ansi {
            // Each line ends as it began: a cut-off pipe must not leave the terminal red.
            text.push_str(line);
            text.push_str("\x1b[0m\n");
        } else {
            text.push_str(&visible(line.trim_end()));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Size;

    #[test]
    fn empty_rows_below_are_left_out_and_those_between_are_kept() {
        let rows = ["$ ls", "", "a  ", "", ""].map(str::to_owned).to_vec();
        let answer = ScreenAnswer {
            offset: 0,
            size: Size::default(),
            rows,
            history: vec!["old".into()],
            cursor: (0, 0),
            alternate: false,
            application_cursor: false,
            title: String::new(),
            gap: None,
        };
        assert_eq!(text(&answer, false), "old\n$ ls\n\na\n");
    }
}
