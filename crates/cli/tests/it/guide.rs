//! The guide, run: every command that its pages show, in their order, in fresh homes with a real host.
//!
//! A block of `console` has commands behind `$ ` and below each what it prints; `…` stands for anything, on a line of its own for
//! any lines. A block of `sh` has commands alone. Spaces, ages and the home's path do not count. A command must succeed unless the
//! page shows its error or asks for its status (`echo $?`) next.
//!
//! Comments that readers do not see steer the test: `<!-- test: WHAT -->` before a block, where WHAT is
//! - `new home`: the commands before are over;
//! - `relay`: there is a relay at `https://relay.example`, and `https://relay.example/i#…` is the last invite that was made;
//! - `run COMMAND`: something that must be so before the next block;
//! - `file NAME`: the next block is the text of this file in the home;
//! - `terminal`: the next block is at a person's terminal; `work$ make` is typed into the session `work`, a line with `Ctrl-\ d` presses that;
//! - `meanwhile`: the next block's commands go on beside those that follow, and what they print is compared at the end of the home;
//! - `parse only, REASON`: the next block cannot run here, but each of its command lines must be one that the program takes.
//!
//! `gpu$ holdfast ls` is a command on the machine `gpu`, which has a home of its own. `apr_…` in a command is the last id of this form that was
//! printed.
//!
//! All other pages, the README among them, show command lines that the program takes.

mod matching;
mod page;
mod play;

use page::{Page, Step};
use play::Player;

/// The pages whose commands are run, and how many at least: a page that is read wrong shows none.
const GUIDE: &[(&str, usize)] =
    &[("start.md", 8), ("idea.md", 5), ("recipes.md", 25), ("coming-from.md", 10), ("failures.md", 1)];

fn docs() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn play(name: &str) {
    let (_, least) = GUIDE.iter().find(|(page, _)| *page == name).unwrap();
    let page = Page::read(&docs().join(name));
    let mut player = Player::new();
    for step in &page.steps {
        player.take(step);
    }
    player.end();
    assert!(player.commands >= *least, "{name}: {} commands", player.commands);
}

#[test]
fn start_in_a_minute_does_what_it_says() {
    play("start.md");
}

#[test]
fn the_idea_is_what_the_program_does() {
    play("idea.md");
}

#[test]
fn every_recipe_works_as_it_is_written() {
    play("recipes.md");
}

#[test]
fn the_commands_for_people_who_come_from_elsewhere_work() {
    play("coming-from.md");
}

#[test]
fn the_failure_modes_are_shown_by_commands_that_work() {
    play("failures.md");
}

/// Pages that are not run may show what needs other machines or hours, but no command line that the program does not take.
#[test]
fn every_page_shows_command_lines_that_the_program_takes() {
    let mut pages: Vec<_> = std::fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.push(docs().join("../README.md"));
    pages.push(docs().join("relay/README.md"));
    pages.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    let mut player = Player::new();
    for path in &pages {
        for step in &Page::read(path).steps {
            if let Step::Block { commands, at, .. } = step {
                commands.iter().for_each(|command| player.parses(&command.line, at));
            }
        }
    }
    for (name, _) in GUIDE {
        for line in page::inline(&std::fs::read_to_string(docs().join(name)).unwrap()) {
            player.parses(&line, name);
        }
    }
    player.end();
    assert!(pages.len() > 15 && player.commands > 100, "{} pages, {} commands", pages.len(), player.commands);
}

/// A link to a page or a heading that is not there is as bad as a command that does not work.
#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let mut links = 0;
    for (name, _) in GUIDE.iter().chain(&[("README.md", 0), ("../README.md", 0)]) {
        let path = docs().join(name);
        for link in page::links(&std::fs::read_to_string(&path).unwrap()) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{name}: there is no {link}");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                assert!(page::headings(&text).iter().any(|known| known == heading), "{name}: there is no {link}");
            }
            links += 1;
        }
    }
    assert!(links > 40, "{links}");
}
