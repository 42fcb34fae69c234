//! What a run is expected to come out as.

use crate::args::pattern_of;
use regex::bytes::Regex;
use serde::Serialize;
use std::str::FromStr;

/// One expectation.
#[derive(Debug, Clone)]
pub struct Expect {
    /// As it was given.
    given: String,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Exit(Vec<i32>),
    Text(Regex),
    NoText(Regex),
}

/// A run as far as somebody can expect something of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// Its status, where it is known.
    pub exit_code: Option<i32>,
    /// Its output as text.
    pub text: &'a [u8],
    /// The text is all there was.
    pub whole: bool,
}

/// Whether everything came as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expected {
    pub met: bool,
    /// What did not, as it was given.
    pub unmet: Vec<String>,
}

impl Expected {
    /// Looks at a run that is over.
    pub fn of(expects: &[Expect], outcome: Outcome<'_>) -> Expected {
        let unmet = expects.iter().filter(|expect| !expect.is_met(outcome)).map(|expect| expect.given.clone());
        let unmet: Vec<String> = unmet.collect();
        Expected { met: unmet.is_empty(), unmet }
    }
}

impl Expect {
    /// As it was given.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The statuses it allows, where it is about those.
    pub fn exits(&self) -> Option<&[i32]> {
        match &self.what {
            What::Exit(codes) => Some(codes),
            What::Text(_) | What::NoText(_) => None,
        }
    }

    /// It is about the output.
    pub fn is_of_text(&self) -> bool {
        match self.what {
            What::Exit(_) => false,
            What::Text(_) | What::NoText(_) => true,
        }
    }

    fn is_met(&self, outcome: Outcome<'_>) -> bool {
        match &self.what {
            What::Exit(codes) => outcome.exit_code.is_some_and(|code| codes.contains(&code)),
            What::Text(regex) => regex.is_match(outcome.text),
            // Output that is no longer kept may have contained it.
            What::NoText(regex) => outcome.whole && !regex.is_match(outcome.text),
        }
    }
}

impl FromStr for Expect {
    type Err = String;

    fn from_str(text: &str) -> Result<Expect, String> {
        let what = match text.split_once(':') {
            Some(("exit", codes)) => {
                let codes =
                    codes.split(',').map(|code| code.trim().parse().map_err(|_| format!("invalid status {code:?}")));
                What::Exit(codes.collect::<Result<_, _>>()?)
            }
            Some(("text", regex)) => What::Text(pattern_of(regex)?),
            Some(("no-text", regex)) => What::NoText(pattern_of(regex)?),
            Some(_) | None => return Err("expected exit:CODE, exit:CODE,CODE, text:REGEX or no-text:REGEX".into()),
        };
        Ok(Expect { given: text.to_owned(), what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_held_against_everything_that_was_expected() {
        let cases: [(&str, Option<i32>, &str, bool, bool); 13] = [
            ("exit:0", Some(0), "", true, true),
            ("exit:0", Some(2), "", true, false),
            ("exit:0,2", Some(2), "", true, true),
            ("exit: 0, 2", Some(1), "", true, false),
            // Inferred, or lost.
            ("exit:0", None, "", true, false),
            ("text:^ok$", Some(1), "not\nok\n", true, true),
            ("text:^ok$", Some(0), "okay\n", true, false),
            ("text:^ok$", Some(0), "ok\n", false, true),
            ("no-text:error", Some(0), "fine\n", true, true),
            ("no-text:error", Some(0), "an error\n", true, false),
            ("no-text:error", Some(0), "fine\n", false, false),
            ("text:a:b", Some(0), "a:b", true, true),
            ("text:(?i)OK", Some(0), "ok", true, true),
        ];
        for (given, exit_code, text, whole, met) in cases {
            let expect: Expect = given.parse().expect("it can be read");
            let expected = Expected::of(&[expect], Outcome { exit_code, text: text.as_bytes(), whole });
            let unmet = if met { vec![] } else { vec![given.to_owned()] };
            assert_eq!(expected, Expected { met, unmet }, "{given} {text:?}");
        }
        for wrong in ["", "exit", "exit:", "exit:x", "exit:0,", "text:", "text:(", "status:0"] {
            assert!(wrong.parse::<Expect>().is_err(), "{wrong:?}");
        }
    }
}
