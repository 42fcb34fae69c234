//! Decisions are numbered and listed, the map stays short enough to be read, and what is promised has its tests.

use std::collections::BTreeMap;

use super::Problem;
use super::tree::Tree;

const DECISIONS: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";
const PROMISES: &str = "docs/security.md";
const MAP: &str = "ARCHITECTURE.md";
/// A map longer than this is not read to its end.
const MAP_LINES_MAX: usize = 300;

/// Checks the documents that have a form.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = untested(tree);
    match tree.get(MAP).map(|text| text.lines().count()) {
        None => problems.push(Problem::new(MAP, "missing")),
        Some(lines) if lines > MAP_LINES_MAX => {
            problems.push(Problem::new(
                MAP,
                format!("{lines} lines, more than {MAP_LINES_MAX}: move detail into module docs"),
            ));
        }
        Some(_) => {}
    }
    let Some(index) = tree.get(INDEX) else {
        problems.push(Problem::new(INDEX, "missing: it lists the decisions"));
        return problems;
    };
    let mut numbers = BTreeMap::new();
    for path in tree.files().map(|(path, _)| path).filter(|path| path.starts_with(DECISIONS) && *path != INDEX) {
        let name = &path[DECISIONS.len()..];
        let Some(number) = number(name) else {
            problems.push(Problem::new(path, "is not named NNNN-what-was-decided.md"));
            continue;
        };
        if !index.contains(&format!("({name})")) {
            problems.push(Problem::new(path, format!("is not listed in {INDEX}: add a line with a link to it")));
        }
        if let Some(other) = numbers.insert(number, name) {
            problems.push(Problem::new(path, format!("has the number of {other}")));
        }
    }
    for name in linked(index).filter(|name| tree.get(&format!("{DECISIONS}{name}")).is_none()) {
        problems.push(Problem::new(INDEX, format!("lists {name}, which is not there")));
    }
    problems
}

/// Tests that the promises name and nobody wrote.
fn untested(tree: &Tree) -> Vec<Problem> {
    let text = tree.get(PROMISES).unwrap_or_default();
    let is_test = |name: &&str| {
        name.matches('_').count() > 2 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let is_written = |name: &str| {
        let function = format!("fn {name}(");
        tree.files().any(|(path, text)| path.ends_with(".rs") && text.contains(&function))
    };
    let missing = text.split('`').skip(1).step_by(2).filter(is_test).filter(|name| !is_written(name));
    missing.map(|name| Problem::new(PROMISES, format!("names the test {name}, which is not there"))).collect()
}

fn number(name: &str) -> Option<&str> {
    let (number, rest) = name.split_once('-')?;
    let title = rest.strip_suffix(".md")?;
    let is_title = !title.is_empty() && title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()) && is_title).then_some(number)
}

/// Decisions the index links to.
fn linked(index: &str) -> impl Iterator<Item = &str> {
    let links = index.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| link.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|problem| format!("{} {}", problem.at, problem.what)).collect()
    }

    #[test]
    fn a_decision_is_numbered_once_and_listed() {
        let (map, index) = ((MAP, "x"), (INDEX, "- [0001](0001-a-b.md) a"));
        assert_eq!(whats(&[map, index, ("docs/decisions/0001-a-b.md", "")]), [""; 0]);
        assert!(whats(&[map, index])[0].contains("lists 0001-a-b.md, which is not there"));
        let second = |name| whats(&[map, index, ("docs/decisions/0001-a-b.md", ""), (name, "")]);
        assert!(second("docs/decisions/0002-c.md")[0].contains("is not listed"));
        assert!(second("docs/decisions/2-c.md")[0].contains("NNNN"));
        assert!(second("docs/decisions/0001-c.md").iter().any(|what| what.contains("has the number of")));
        assert!(whats(&[map])[0].contains("missing"));
    }

    #[test]
    fn a_promise_names_tests_that_are_there() {
        let promised = |source| {
            whats(&[(MAP, "x"), (INDEX, ""), (PROMISES, "`doctor` `a_wall_that_holds_them`"), ("a.rs", source)])
        };
        assert_eq!(promised("fn a_wall_that_holds_them() {}"), [""; 0]);
        assert!(promised("fn a_wall() {}")[0].contains("a_wall_that_holds_them, which is not there"));
    }

    #[test]
    fn the_map_has_at_most_its_lines() {
        let index = (INDEX, "");
        assert_eq!(whats(&[index, (MAP, &"x\n".repeat(300))]), [""; 0]);
        assert_eq!(whats(&[index, (MAP, &"x\n".repeat(301))]).len(), 1);
        assert_eq!(whats(&[index]).len(), 1);
    }
}
