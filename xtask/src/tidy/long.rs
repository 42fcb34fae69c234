//! Long files and long functions are on a list that may only shrink.
//!
//! Rust is measured by its syntax. Python and TypeScript or JavaScript are measured by indentation, which a formatter keeps:
//! a Python function ends before the next line that is not deeper, a brace function at the first `}` that is not deeper.

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

/// Lines of every file, and of every function as `path::function`; of two of one name the longer counts.
fn measure(tree: &Tree, sources: &Sources) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in tree.files().filter(|(_, text)| !is_generated(text)) {
        let functions = match path.rsplit('.').next().unwrap_or_default() {
            "rs" => vec![],
            "py" => python(text),
            "ts" | "tsx" | "js" | "mjs" | "cjs" => braces(text),
            _ => continue,
        };
        found.insert(path.to_owned(), text.lines().count());
        add(&mut found, path, &functions);
    }
    for (path, source) in sources.files() {
        add(&mut found, path, &source.functions);
    }
    found
}

/// Made by a program, which its first line says: nobody reads it from top to bottom.
fn is_generated(text: &str) -> bool {
    ["# Made by ", "// Made by "].iter().any(|mark| text.starts_with(mark))
}

fn add(found: &mut BTreeMap<String, usize>, path: &str, functions: &[(String, usize)]) {
    for (name, lines) in functions {
        let longest = found.entry(format!("{path}::{name}")).or_default();
        *longest = (*longest).max(*lines);
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn python(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (first, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(rest) = code.strip_prefix("async ").unwrap_or(code).strip_prefix("def ") else { continue };
        let name = rest.split('(').next().unwrap_or_default().trim();
        let deeper =
            |line: &str| line.trim().is_empty() || indent(line) > indent(lines[first]) || line.trim().starts_with(')');
        let body = lines[first + 1..].iter().take_while(|line| deeper(line)).count();
        let blank = lines[first + 1..first + 1 + body].iter().rev().take_while(|line| line.trim().is_empty()).count();
        found.push((name.to_owned(), 1 + body - blank));
    }
    found
}

fn braces(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (first, line) in lines.iter().enumerate() {
        let Some(name) = brace_function(line) else { continue };
        let ends = |line: &str| line.trim_start().starts_with('}') && indent(line) <= indent(lines[first]);
        if line.trim_end().ends_with(['}', ';']) {
            found.push((name, 1));
        } else if let Some(body) = lines[first + 1..].iter().position(|line| ends(line)) {
            found.push((name, body + 2));
        }
    }
    found
}

/// The name of the function that begins on this line of TypeScript or JavaScript.
fn brace_function(line: &str) -> Option<String> {
    const CONTROL: [&str; 7] = ["if", "for", "while", "switch", "catch", "else", "return"];
    let code = line.trim();
    if code.starts_with("//") || code.starts_with('*') || code.starts_with('}') {
        return None;
    }
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || "_$".contains(*c)).collect() };
    if let Some((_, rest)) = code.split_once("function").filter(|(_, rest)| rest.starts_with(['*', ' ', '('])) {
        let name = word(rest.trim_start_matches(['*', ' ']));
        return Some(if name.is_empty() { "function".into() } else { name });
    }
    if code.ends_with("=> {") {
        let names = code.split(['=', '(', ':']).next().unwrap_or_default().split_whitespace();
        return Some(names.last().map(word).filter(|name| !name.is_empty()).unwrap_or_else(|| "arrow".into()));
    }
    // A method: `async name(…) {`, or its first line `name(`.
    let (head, _) = code.split_once('(')?;
    let name = head.split_whitespace().last().unwrap_or_default();
    let is_name =
        !name.is_empty() && word(name.trim_start_matches('#').split('<').next()?) == name.trim_start_matches('#');
    let opens = code.ends_with('{') || (code.ends_with('(') && indent(line) > 0);
    (is_name && opens && !CONTROL.contains(&name) && !CONTROL.contains(&head.split_whitespace().next()?))
        .then(|| name.to_owned())
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

    #[test]
    fn python_functions_end_where_the_indentation_does() {
        let text = "class A:\n    def a(\n        self,\n    ):\n        x\n\n        y\n\n    async def b(self):\n        z\n\n\nc = 1\n";
        assert_eq!(python(text), [("a".to_owned(), 6), ("b".to_owned(), 2)]);
    }

    #[test]
    fn brace_functions_end_at_their_own_brace() {
        let text = "\
export async function a(x: string): Promise<void> {
  if (x) {
    y();
  }
}
const b = (x) => {
  z();
};
class C {
  private async d(
    x: string,
  ) {
    for (;;) {
    }
  }
  e() { return 1; }
  f(): void {
  }
}
";
        let expected = [("a", 5), ("b", 3), ("d", 6), ("f", 2)];
        assert_eq!(braces(text), expected.map(|(name, lines)| (name.to_owned(), lines)));
    }
}
