//! The guide, run: every command that its pages show, in their order, in fresh homes with a real host.
//!
//! A block of `console` has commands behind `$ ` and below each what it prints; `…` stands for anything, on a line of its own for
//! any lines. A block of `sh` has commands alone. Spaces, ages and the home's path do not count. A command must succeed unless the
//! page shows its error or asks for its status (`echo $?`) next.
//!
//! Comments that readers do not see steer the test: `<!-- test: WHAT -->` before a block, where WHAT is
//! - `new home`: the commands before are over;
//! - `relay`: there is a relay at `https://relay.example`, and `https://relay.example/i#…` is the last invite that was made;
//! - `http`: the host's `127.0.0.1:7433` is a free address;
//! - `run COMMAND`: something that must be so before the next block;
//! - `file NAME`: the next block is the text of this file in the home;
//! - `terminal`: the next block is at a person's terminal; `work$ make` is typed into the session `work`, a line with `Ctrl-\ d` presses that;
//! - `meanwhile`: the next block's commands go on beside those that follow, and what they print is compared at the end of the home;
//! - `parse only, REASON`: the next block cannot run here, but each of its command lines must be one that the program takes.
//!
//! `gpu$ holdfast ls` is a command on the machine `gpu`, which has a home of its own. `apr_…` in a command is the last id of this form that was
//! printed.
//!
//! A line of `sh` that ends with a backslash goes on in the next. Commands within the text are only parsed.

mod matching;
mod page;
mod play;

use page::{Page, Step};
use play::Player;

fn docs() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Every page.
fn pages() -> Vec<String> {
    let mut pages: Vec<_> = std::fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    pages.extend(["../README.md", "relay/README.md"].map(Into::into));
    let mut pages: Vec<_> = pages.into_iter().map(|name| name.into_string().unwrap()).collect();
    pages.retain(|name| name.ends_with(".md"));
    pages.sort();
    pages
}

/// Does what a page says. One that is read wrong shows fewer commands than it has.
fn play(name: &str, least: usize) {
    let page = Page::read(&docs().join(name));
    let mut player = Player::new();
    for step in &page.steps {
        player.take(step);
    }
    player.end();
    assert!(player.commands >= least, "{name}: {} commands", player.commands);
}

macro_rules! plays {
    ($($test:ident $page:literal $least:literal;)*) => {
        $(#[test]
        fn $test() {
            play($page, $least);
        })*

        #[test]
        fn every_page_that_shows_a_command_is_run() {
            let run = [$($page),*];
            for name in pages() {
                let shows = Page::read(&docs().join(&name)).steps.iter().any(|step| matches!(step, Step::Block { .. }));
                assert_eq!(shows, run.contains(&name.as_str()), "{name}");
            }
        }
    };
}

plays! {
    the_front_page_does_what_it_says "../README.md" 3;
    start_in_a_minute_does_what_it_says "start.md" 8;
    the_idea_is_what_the_program_does "idea.md" 5;
    every_recipe_works_as_it_is_written "recipes.md" 25;
    the_commands_for_people_who_come_from_elsewhere_work "coming-from.md" 10;
    the_failure_modes_are_shown_by_commands_that_work "failures.md" 1;
    what_is_shown_of_bots_is_what_the_program_takes "bots.md" 1;
    contracts_are_measured_as_shown "contracts.md" 3;
    other_machines_are_reached_as_shown "distance.md" 8;
    files_of_a_session_are_served_as_shown "files.md" 12;
    flows_go_on_as_shown "flows.md" 6;
    the_gate_asks_as_shown "gate.md" 5;
    http_answers_as_shown "http.md" 5;
    what_is_shown_of_installing_is_what_the_program_takes "install.md" 1;
    what_happens_in_a_session_is_shown "knowing.md" 1;
    leases_are_told_as_shown "leases.md" 2;
    agents_get_tools_as_shown "mcp.md" 4;
    operators_do_what_is_shown "operators.md" 8;
    originators_are_named_as_shown "originators.md" 3;
    the_phone_is_invited_as_shown "phone.md" 4;
    portable_sessions_come_back_as_shown "portable.md" 12;
    proofs_are_run_as_shown "prove.md" 3;
    idle_sessions_are_kept_as_shown "reaping.md" 4;
    lost_sessions_are_recovered_as_shown "recovery.md" 3;
    runs_end_as_shown "runs.md" 3;
    the_page_is_served_as_shown "web.md" 2;
}

/// Commands within the text, outside of its blocks.
#[test]
fn every_page_names_command_lines_that_the_program_takes() {
    let mut player = Player::new();
    let mut pages = pages();
    pages.retain(|name| name != "BENCHMARKS.md");
    let lines: std::collections::BTreeSet<_> = pages
        .iter()
        .flat_map(|name| page::inline(&std::fs::read_to_string(docs().join(name)).unwrap()))
        // `run\|start` is several, in a table.
        .filter(|line| !line.contains("\\|"))
        .collect();
    let refused: Vec<_> = lines.iter().filter_map(|line| Some((line, player.refuses(line)?))).collect();
    player.end();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(pages.len() > 15 && player.commands > 100, "{} pages, {} commands", pages.len(), player.commands);
}

/// A link to a page or a heading that is not there is as bad as a command that does not work.
#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let mut links = 0;
    for name in pages() {
        let path = docs().join(&name);
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
