//! Long files, and long functions of Rust, are on a list that may only shrink. Functions of Python and TypeScript are measured by
//! `cargo xtask lint`, whose linters know those languages.

use std::collections::BTreeMap;

use super::Problem;
use super::rust::Sources;
use super::tree::Tree;

/// The list: a number, a path or `path::function`, and `# why` on each line.
pub const LIST: &str = "xtask/long.txt";
/// A file fits a head up to here.
const FILE_LINES_MAX: usize = 600;
/// A function fits a screen, a tall one.
const FUNCTION_LINES_MAX: usize = 80;

/// Compares what is long with the list.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Problem> {
    let measured = measure(tree, sources);
    let mut problems = vec![];
    let mut listed = BTreeMap::new();
    for (number, line) in entries(tree) {
        match entry(line) {
            Some((lines, name, why)) => {
                if why.is_empty() {
                    problems.push(Problem::new(
                        format!("{LIST}:{number}"),
                        format!("say why {name} is long: `{line} # why`"),
                    ));
                }
                listed.insert(name, lines);
            }
            None => problems.push(Problem::new(format!("{LIST}:{number}"), "not `NUMBER PATH[::FUNCTION] # why`")),
        }
    }
    for (name, lines) in &measured {
        let limit = limit(name);
        match listed.get(name.as_str()) {
            None if *lines > limit => {
                problems.push(Problem::new(name, format!("{lines} lines, more than {limit}: split it")));
            }
            Some(allowed) if lines > allowed => {
                problems.push(Problem::new(
                    name,
                    format!("grew from {allowed} lines to {lines}: it may only shrink, split it"),
                ));
            }
            Some(_) if *lines <= limit => {
                problems.push(Problem::new(
                    name,
                    format!("short enough now ({lines} lines): take it off {LIST} (`cargo xtask tidy --shrink`)"),
                ));
            }
            Some(allowed) if lines < allowed => {
                problems.push(Problem::new(
                    name,
                    format!(
                        "shrank from {allowed} lines to {lines}: write that in {LIST} (`cargo xtask tidy --shrink`)"
                    ),
                ));
            }
            None | Some(_) => {}
        }
    }
    for name in listed.keys().filter(|name| !measured.contains_key(**name)) {
        problems.push(Problem::new(*name, format!("is gone: take it off {LIST} (`cargo xtask tidy --shrink`)")));
    }
    problems
}

/// The list with every number lowered to today's, and without what is short or gone.
pub fn shrunk(tree: &Tree, sources: &Sources) -> String {
    let measured = measure(tree, sources);
    let keep = |line: &str| -> Option<String> {
        let Some((allowed, name, why)) = entry(line) else { return Some(line.to_owned()) };
        let lines = measured.get(name).copied().filter(|lines| *lines > limit(name))?;
        let why = if why.is_empty() { String::new() } else { format!(" # {why}") };
        Some(format!("{} {name}{why}", lines.min(allowed)))
    };
    let text = tree.get(LIST).unwrap_or_default();
    text.lines().filter_map(keep).map(|line| line + "\n").collect()
}

fn entries(tree: &Tree) -> impl Iterator<Item = (usize, &str)> {
    let lines = tree.get(LIST).unwrap_or_default().lines().enumerate();
    lines.map(|(i, line)| (i + 1, line.trim())).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A line's number, name and reason.
fn entry(line: &str) -> Option<(usize, &str, &str)> {
    let (code, why) = line.split_once('#').unwrap_or((line, ""));
    let (lines, name) = code.trim().split_once(' ')?;
    Some((lines.parse().ok()?, name.trim(), why.trim()))
}

fn limit(name: &str) -> usize {
    if name.contains("::") { FUNCTION_LINES_MAX } else { FILE_LINES_MAX }
}

/// Lines of every file, and of every function of Rust as `path::function`; of two of one name the longer counts.
fn measure(tree: &Tree, sources: &Sources) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in tree.files().filter(|(_, text)| !is_generated(text)) {
        let is_code = |ending| ["rs", "py", "ts", "tsx", "js", "mjs", "cjs"].contains(&ending);
        if path.rsplit('.').next().is_some_and(is_code) {
            found.insert(path.to_owned(), text.lines().count());
        }
    }
    for (path, source) in sources.files() {
        for (name, lines) in &source.functions {
            let longest = found.entry(format!("{path}::{name}")).or_default();
            *longest = (*longest).max(*lines);
        }
    }
    found
}

/// Made by a program, which its first line says: nobody reads it from top to bottom.
fn is_generated(text: &str) -> bool {
    ["# Made by ", "// Made by "].iter().any(|mark| text.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::super::rust::parse;
    use super::*;

    fn whats(list: &str, rust_lines: usize) -> Vec<String> {
        let text = format!("fn a() {{\n{}}}\n", "    x();\n".repeat(rust_lines - 2));
        let tree = Tree::of(&[(LIST, list), ("a.rs", &text)]);
        check(&tree, &parse(&tree)).into_iter().map(|problem| format!("{} {}", problem.at, problem.what)).collect()
    }

    #[test]
    fn a_long_function_or_file_that_is_not_listed_is_a_problem() {
        assert_eq!(whats("", 80), [""; 0]);
        assert!(whats("", 81)[0].starts_with("a.rs::a 81 lines, more than 80"));
        assert_eq!(whats("601 a.rs # x", 600).len(), 2, "the function is not listed, and the entry is not needed");
        assert!(whats("601 a.rs::a # x", 601)[0].starts_with("a.rs 601 lines, more than 600"));
    }

    #[test]
    fn what_a_program_made_may_be_long() {
        let long = "x = 1\n".repeat(700);
        let lengths = |text: &str| measure(&Tree::of(&[("a.py", text)]), &parse(&Tree::of(&[]))).len();
        assert_eq!((lengths(&long), lengths(&format!("# Made by generate.py\n{long}"))), (1, 0));
    }

    #[test]
    fn a_listed_length_is_exact_and_may_only_shrink() {
        assert_eq!(whats("90 a.rs::a # a table", 90), [""; 0]);
        assert!(whats("90 a.rs::a # a table", 91)[0].contains("grew from 90 lines to 91"));
        assert!(whats("90 a.rs::a # a table", 89)[0].contains("shrank from 90 lines to 89"));
        assert!(whats("90 a.rs::a # a table", 80)[0].contains("short enough"));
        assert!(whats("90 a.rs::b # a table", 80)[0].contains("is gone"));
    }

    #[test]
    fn a_list_entry_says_why() {
        assert!(whats("90 a.rs::a", 90)[0].contains("say why"));
        assert!(whats("a.rs::a", 70)[0].contains("not `NUMBER"));
    }

    #[test]
    fn shrinking_never_raises_a_number() {
        let text = format!("fn a() {{\n{}}}\n", "    x();\n".repeat(98));
        let tree =
            Tree::of(&[(LIST, "# head\n120 a.rs::a # why\n90 a.rs::b # gone\n700 a.rs # short\n"), ("a.rs", &text)]);
        assert_eq!(shrunk(&tree, &parse(&tree)), "# head\n100 a.rs::a # why\n");
        let tree = Tree::of(&[(LIST, "90 a.rs::a # why\n"), ("a.rs", &text)]);
        assert_eq!(shrunk(&tree, &parse(&tree)), "90 a.rs::a # why\n");
    }
}
