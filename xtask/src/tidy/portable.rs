//! What a client of any operating system needs names none: the protocol, keys, screens, channels and tools. Where a system is
//! spoken to, that is another crate's work. And the program names crates of the host only where it is Linux's: no other system is compiled for in CI.

use super::Problem;
use super::tree::Tree;

/// These crates.
const CRATES: &[&str] = &["types", "graph", "wire", "authority", "screen", "channel", "mcp"];
/// Ways to speak to one system.
const SYSTEMS: &[&str] = &["std::os::", "rustix::", "libc::", "tokio::net::Unix", "tokio::signal::unix"];

/// The program, which elsewhere is a client.
const PROGRAM: &str = "crates/cli/src/";
/// From here on its dependencies are Linux's alone.
const TABLE: &str = "[target.'cfg(target_os = \"linux\")'.dependencies]";
/// What an item of Linux is marked with.
const MARK: &str = "#[cfg(target_os = \"linux\")]";

/// Looks at every line of their sources but comments, and at the program's.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = marks(tree);
    let is_ours = |path: &str| CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    for (path, text) in tree.files().filter(|(path, _)| is_ours(path) && path.ends_with(".rs")) {
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if let Some(system) = SYSTEMS.iter().find(|system| line.contains(*system)) {
                let what = format!(
                    "{system} in a crate that clients of other systems need: do it in `client`, `store` or `host`"
                );
                problems.push(Problem::new(format!("{path}:{}", i + 1), what));
            }
        }
    }
    problems
}

/// Files of the program that name a crate of the host, and neither are marked where they are declared nor mark anything themselves; and marks
/// that stand twice, because the line between them went.
fn marks(tree: &Tree) -> Vec<Problem> {
    let manifest = tree.get("crates/cli/Cargo.toml").unwrap_or_default();
    let table = manifest.split(TABLE).nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    let crates: Vec<String> =
        table.lines().filter_map(|line| Some(line.split_once(" =")?.0.replace('-', "_") + "::")).collect();
    let mut problems = vec![];
    for (path, text) in tree.files().filter(|(path, _)| path.starts_with(PROGRAM) && path.ends_with(".rs")) {
        let mut before = "";
        for (i, line) in text.lines().enumerate() {
            if line.trim() == MARK && before.trim() == MARK {
                problems.push(Problem::new(format!("{path}:{}", i + 1), "marked twice: the line between them went"));
            }
            before = line;
        }
        let code = |line: &&str| !line.trim_start().starts_with("//");
        let named = crates.iter().find(|name| text.lines().filter(code).any(|line| is_named(line, name)));
        if let Some(name) = named
            && !text.contains(MARK)
            && !is_marked(tree, path)
        {
            let name = name.trim_end_matches("::");
            problems.push(Problem::new(
                path,
                format!("{name} is there on Linux alone: mark the module, or ask through `platform`"),
            ));
        }
    }
    problems
}

/// Whether code, not a text about it, names something of a crate.
fn is_named(line: &str, name: &str) -> bool {
    line.match_indices(name)
        .any(|(at, _)| matches!(line[..at].chars().next_back(), None | Some(' ' | '(' | '<' | '&' | '!')))
}

/// Whether a module, or one that it lies in, is declared for Linux alone.
fn is_marked(tree: &Tree, path: &str) -> bool {
    let inner = path.strip_prefix(PROGRAM).and_then(|path| path.strip_suffix(".rs")).unwrap_or_default();
    let mut parts: Vec<&str> = inner.split('/').collect();
    while let Some(name) = parts.pop() {
        let dir = parts.iter().map(|part| format!("{part}/")).collect::<String>();
        let parents = match dir.strip_suffix('/') {
            None => vec![format!("{PROGRAM}main.rs")],
            Some(dir) => vec![format!("{PROGRAM}{dir}.rs"), format!("{PROGRAM}{dir}/mod.rs")],
        };
        let declared = [format!("{MARK}\nmod {name};"), format!("{MARK}\npub mod {name};")];
        let texts = parents.iter().filter_map(|parent| tree.get(parent));
        if texts.into_iter().any(|text| declared.iter().any(|declared| text.contains(declared))) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_names_the_host_is_marked_and_a_mark_stands_once() {
        let manifest =
            format!("[dependencies]\nholdfast-wire = {{}}\n\n{TABLE}\nholdfast-host = {{}} # daemon\n\n[dev]\nx = 1\n");
        let names = "use holdfast_host::Ran;\n";
        let found = |main: &str, commands: &str, host: &str| -> Vec<String> {
            let tree = Tree::of(&[
                ("crates/cli/Cargo.toml", &manifest),
                ("crates/cli/src/main.rs", main),
                ("crates/cli/src/commands/mod.rs", commands),
                ("crates/cli/src/commands/host.rs", host),
            ]);
            marks(&tree).into_iter().map(|problem| problem.at).collect()
        };
        let (bare, marked) = ("mod commands;\n", format!("{MARK}\nmod host;\n"));
        assert_eq!(found(bare, "mod host;\n", names), ["crates/cli/src/commands/host.rs"]);
        assert_eq!(
            found(bare, &format!("{MARK}\nmod other;\nmod host;\n"), names),
            ["crates/cli/src/commands/host.rs"]
        );
        assert!(found(bare, &marked, names).is_empty());
        assert!(found(&format!("{MARK}\n{bare}"), "mod host;\n", names).is_empty(), "the directory is marked");
        assert!(found(bare, "mod host;\n", &format!("{MARK}\n{names}")).is_empty(), "it marks what it uses");
        assert!(
            found(bare, "mod host;\n", "// holdfast_host::x\nlet filter = \"info,holdfast_host::a=debug\";\n")
                .is_empty()
        );
        assert_eq!(found(bare, &format!("{MARK}\n{marked}"), names), ["crates/cli/src/commands/mod.rs:2"]);
    }

    #[test]
    fn a_system_is_named_in_comments_and_other_crates_only() {
        let code = "// std::os::unix\nuse std::os::unix::net::UnixStream;\n";
        let tree = Tree::of(&[
            ("crates/wire/src/a.rs", code),
            ("crates/client/src/a.rs", code),
            ("crates/wire/tests/a.rs", code),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, "crates/wire/src/a.rs:2");
    }
}
