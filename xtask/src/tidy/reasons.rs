//! Every dependency says what it is for, at the end of its line.

use super::Problem;
use super::tree::Tree;

/// Shorter than this is no reason.
const REASON_CHARS_MIN: usize = 4;

/// Checks every Cargo.toml.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = tree.files().filter(|(path, _)| *path == "Cargo.toml" || path.ends_with("/Cargo.toml"));
    manifests.flat_map(|(path, text)| manifest(path, text)).collect()
}

fn manifest(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = vec![];
    let mut section = Section::Other;
    let mut depth = 0;
    for (number, line) in text.lines().enumerate() {
        let (code, comment) = split_comment(line);
        if code.is_empty() {
            continue;
        }
        let wanting = if depth == 0 && code.starts_with('[') {
            section = Section::of(code);
            // `[dependencies.x]` is the line of that dependency.
            section == Section::One
        } else {
            depth += brackets(code);
            let is_ours = section == Section::Workspace && code.contains("path =");
            matches!(section, Section::Many | Section::Workspace) && depth == 0 && !is_ours
        };
        if wanting && comment.chars().count() < REASON_CHARS_MIN {
            let at = format!("{path}:{}", number + 1);
            problems.push(Problem::new(at, "a dependency without `# what it is for` at the end of its line"));
        }
    }
    problems
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Section {
    /// Dependencies, one a line.
    Many,
    /// One dependency as a table.
    One,
    /// The workspace's, where our own crates need no reason.
    Workspace,
    /// Nothing of dependencies.
    Other,
}

impl Section {
    fn of(header: &str) -> Section {
        const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
        let name = header.trim_matches(['[', ']']).trim();
        let last = name.rsplit('.').next().unwrap_or_default();
        let parent = name.rsplit('.').nth(1).unwrap_or_default();
        if name == "workspace.dependencies" {
            Section::Workspace
        } else if TABLES.contains(&last) {
            Section::Many
        } else if TABLES.contains(&parent) {
            Section::One
        } else {
            Section::Other
        }
    }
}

/// A line's code and its comment; a `#` in a string is code.
fn split_comment(line: &str) -> (&str, &str) {
    let mut quote = None;
    for (i, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return (line[..i].trim(), line[i + 1..].trim()),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
    }
    (line.trim(), "")
}

/// How many more brackets a line opens than it closes.
fn brackets(code: &str) -> i32 {
    let count = |c| i32::try_from(code.matches(c).count()).unwrap_or(i32::MAX);
    count(['[', '{']) - count([']', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        check(&Tree::of(&[("Cargo.toml", text)])).into_iter().map(|problem| problem.at).collect()
    }

    #[test]
    fn a_dependency_without_a_reason_is_found_in_every_kind_of_table() {
        for table in ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            assert_eq!(
                lines(&format!("[{table}]\na = \"1\" # a reason\nb = \"1\"\nc = \"1\" # x\n")),
                ["Cargo.toml:3", "Cargo.toml:4"]
            );
        }
        assert_eq!(lines("[dependencies.a]\nversion = \"1\"\n[package]\nname = \"a\""), ["Cargo.toml:1"]);
        assert_eq!(lines("[dependencies.a] # the reason\nversion = \"1\""), [""; 0]);
    }

    #[test]
    fn a_hash_in_a_text_is_no_reason() {
        assert_eq!(lines("[dependencies]\na = { git = \"x#reason\" }"), ["Cargo.toml:2"]);
    }

    #[test]
    fn an_entry_of_several_lines_says_it_on_the_last() {
        let entry = "[dependencies]\na = { version = \"1\", features = [\n  \"x\",\n] }";
        assert_eq!(lines(entry), ["Cargo.toml:4"]);
        assert_eq!(lines(&format!("{entry} # the reason")), [""; 0]);
    }

    #[test]
    fn our_own_crates_need_no_reason_in_the_workspace_table() {
        let text = "[workspace.dependencies]\nholdfast-abi = { path = \"crates/abi\" }\nserde = \"1\"";
        assert_eq!(lines(text), ["Cargo.toml:3"]);
    }
}
