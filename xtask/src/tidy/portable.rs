//! What a client of any operating system needs names none: the protocol, keys, screens, channels and tools. Where a system is
//! spoken to, that is another crate's work.

use super::Problem;
use super::tree::Tree;

/// These crates.
const CRATES: &[&str] = &["types", "graph", "wire", "authority", "screen", "channel", "mcp"];
/// Ways to speak to one system.
const SYSTEMS: &[&str] = &["std::os::", "rustix::", "libc::", "tokio::net::Unix", "tokio::signal::unix"];

/// Looks at every line of their sources but comments.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = vec![];
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

#[cfg(test)]
mod tests {
    use super::*;

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
