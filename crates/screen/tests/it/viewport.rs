//! A screen drawn into a terminal of another size shows the part it should, and nothing of what it showed before.

use crate::streams::{Case, Flavour, Random, Step, corpus, random_pieces};
use crate::xterm::{job, raw_job, reference, written};
use holdfast_screen::{Screen, Viewport};
use holdfast_types::Size;
use serde_json::{Value, json};

const BLANK: &str = " |1|d|d||";

/// Where the cropped part starts when the cursor is at `at`, drawn for the first time.
fn first_shown(at: usize, shown: usize) -> usize {
    (at + 1).saturating_sub(shown)
}

/// The part of a state that a smaller or larger terminal is to show.
fn crop(state: &Value, from: (usize, usize), cols: usize, rows: usize) -> Vec<Vec<String>> {
    let cells = state["cells"].as_array().unwrap();
    let key = |column: usize, row: usize| {
        let cell = cells.get(row).and_then(|row| row.as_array().unwrap().get(column));
        cell.map_or(BLANK.to_owned(), |cell| cell.as_str().unwrap().to_owned())
    };
    let mut out = Vec::new();
    for row in 0..rows {
        let mut line: Vec<String> = (0..cols).map(|column| key(column + from.0, row + from.1)).collect();
        // Half a wide character is a blank of the same colours.
        let halve = |cell: &mut String, text: &str| {
            if let Some(rest) = cell.strip_prefix(text) {
                *cell = format!(" |1{rest}");
            }
        };
        halve(&mut line[0], "|0");
        let last = line[cols - 1].clone();
        let wide = last.split('|').nth(1) == Some("2");
        if wide {
            let text = format!("{}|2", last.split('|').next().unwrap());
            halve(&mut line[cols - 1], &text);
        }
        out.push(line);
    }
    out
}

/// Draws a case at another size: once at the end, and once again and again on the way.
fn check(cases: &[Case], sizes: &[(u16, u16)]) {
    let mut jobs = Vec::new();
    for case in cases {
        jobs.push(raw_job(case));
        for (cols, rows) in sizes {
            let mut once = Viewport::new(Size::clamped(*cols, *rows));
            jobs.push(job(*cols, *rows, vec![written(&once.render(&case.play()))]));
            let mut often = Viewport::new(Size::clamped(*cols, *rows));
            let mut screen = case.screen();
            let mut bytes = Vec::new();
            for step in &case.steps {
                if let Step::Write(part) = step {
                    for part in part.chunks(50) {
                        screen.feed(part);
                        bytes.extend(often.render(&screen));
                    }
                } else {
                    crate::streams::apply(&mut screen, step);
                }
            }
            bytes.extend(often.render(&screen));
            assert!(often.render(&screen).is_empty(), "{}: nothing changed, so nothing is drawn", case.name);
            jobs.push(job(*cols, *rows, vec![written(&bytes)]));
        }
    }
    let states = reference(&jobs);
    for (case, states) in cases.iter().zip(states.chunks_exact(1 + 2 * sizes.len())) {
        let screen = case.play();
        if screen.rows_text().iter().any(|row| row.contains('\u{fffd}')) {
            continue;
        }
        for ((cols, rows), drawn) in sizes.iter().zip(states[1..].chunks_exact(2)) {
            let (cols, rows) = (usize::from(*cols), usize::from(*rows));
            let (column, row) = screen.cursor();
            let from = (first_shown(column.into(), cols), first_shown(row.into(), rows));
            let expected = json!(crop(&states[0], from, cols, rows));
            assert_eq!(drawn[0]["cells"], expected, "{} at {cols}x{rows}", case.name);
            let cursor = json!([usize::from(column) - from.0, usize::from(row) - from.1]);
            for drawn in drawn {
                if drawn["cursor"] == cursor {
                    continue;
                }
                // Drawn on the way, the view may have panned elsewhere; the cursor is visible all the same.
                assert!(drawn["cursor"][0].as_u64() < Some(cols as u64), "{}", case.name);
            }
            if usize::from(screen.size().cols()) <= cols && usize::from(screen.size().rows()) <= rows {
                assert_eq!(drawn[1]["cells"], expected, "{} drawn bit by bit at {cols}x{rows}", case.name);
            }
            assert_eq!(drawn[0]["modes"]["bracketed"], states[0]["modes"]["bracketed"], "{}", case.name);
            assert_eq!(drawn[0]["modes"]["hidden"], states[0]["modes"]["hidden"], "{}", case.name);
        }
    }
}

#[test]
fn the_corpus_is_cropped_and_padded_right() {
    // The two streams on which the screen itself differs from xterm.js are compared elsewhere.
    let cases: Vec<Case> = corpus()
        .into_iter()
        .filter(|case| !matches!(case.name.as_str(), "49_c1_8bit_utf8" | "77_alt_resize"))
        .collect();
    check(&cases, &[(20, 5), (79, 23), (100, 40)]);
}

#[test]
fn random_streams_are_drawn_right_bit_by_bit() {
    let cases: Vec<Case> = (500..520)
        .map(|seed| {
            let mut random = Random::new(seed);
            let steps = random_pieces(&mut random, 60, Flavour::Sane).into_iter().map(Step::Write).collect();
            Case { name: format!("seed {seed}"), cols: 30, rows: 8, steps }
        })
        .collect();
    check(&cases, &[(30, 8), (12, 3), (40, 10)]);
}

#[test]
fn a_small_change_is_a_small_drawing() {
    let mut screen = Screen::new(Size::clamped(80, 24), 0);
    screen.feed(&b"some text that fills a row of the screen\r\n".repeat(20));
    let mut viewport = Viewport::new(Size::clamped(60, 20));
    assert!(viewport.render(&screen).len() > 500);
    screen.feed(b"x");
    assert!(viewport.render(&screen).len() < 60);
    assert!(viewport.render(&screen).is_empty());
}
