//! Every package-lock.json belongs to a directory that `cargo xtask test` installs, and the other way round.

use super::Problem;
use super::tree::Tree;

/// Compares the tree with the table.
pub fn check(tree: &Tree, dirs: &[&str]) -> Vec<Problem> {
    let mut problems = vec![];
    for (path, _) in tree.ending("/package-lock.json") {
        let dir = path.trim_end_matches("/package-lock.json");
        if !dirs.contains(&dir) {
            problems.push(Problem::new(
                path,
                "is not in the table NPM_DIRS of xtask/src/test.rs: no test would find its packages",
            ));
        }
    }
    for dir in dirs.iter().filter(|dir| tree.get(&format!("{dir}/package-lock.json")).is_none()) {
        problems
            .push(Problem::new(*dir, "has no package-lock.json, but is in the table NPM_DIRS of xtask/src/test.rs"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_and_the_table_agree() {
        let tree = Tree::of(&[("a/package-lock.json", "{}")]);
        assert_eq!(check(&tree, &["a"]), []);
        assert_eq!(check(&tree, &[]).len(), 1);
        assert_eq!(check(&tree, &["a", "b"]).len(), 1);
    }
}
