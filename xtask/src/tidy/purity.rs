//! Pure crates stay pure, and the keeper stays small: their direct dependencies are on a list, and a clippy.toml in each
//! pure crate bans clocks, files and sockets.

use serde_json::Value;

use super::Problem;
use super::tree::Tree;

/// A crate whose dependencies are closed: nothing enters without a change here.
struct Closed {
    dir: &'static str,
    /// Pure: never reads a clock, opens a file or touches a socket.
    pure: bool,
    may: &'static [&'static str],
}

const CLOSED: &[Closed] = &[
    Closed { dir: "types", pure: true, may: &["schemars", "serde", "thiserror"] },
    Closed { dir: "graph", pure: true, may: &["holdfast-types", "schemars", "serde", "thiserror", "unicode-width"] },
    Closed {
        dir: "wire",
        pure: true,
        may: &["holdfast-graph", "holdfast-types", "schemars", "serde", "serde_json", "thiserror"],
    },
    Closed {
        dir: "authority",
        pure: true,
        may: &["holdfast-types", "blake3", "ed25519-dalek", "serde", "serde_json", "sha2", "thiserror"],
    },
    Closed { dir: "gate", pure: true, may: &["cedar-policy", "miette", "rable", "serde", "stacker"] },
    Closed {
        dir: "screen",
        pure: true,
        may: &["holdfast-types", "alacritty_terminal", "memchr", "thiserror", "unicode-width"],
    },
    Closed {
        dir: "attach",
        pure: true,
        may: &[
            "holdfast-abi",
            "holdfast-authority",
            "holdfast-screen",
            "holdfast-types",
            "holdfast-wire",
            "serde_json",
        ],
    },
    Closed { dir: "flow", pure: true, may: &["holdfast-types", "saphyr-parser", "serde", "serde_json", "thiserror"] },
    Closed { dir: "lease", pure: true, may: &["holdfast-types", "serde"] },
    Closed {
        dir: "session",
        pure: true,
        may: &["holdfast-abi", "holdfast-authority", "holdfast-screen", "holdfast-types", "holdfast-wire", "serde"],
    },
    Closed {
        dir: "channel",
        pure: true,
        may: &["base64", "curve25519-dalek", "ed25519-dalek", "holdfast-types", "snow", "thiserror", "zeroize"],
    },
    // Files are its work, so it is not pure; but it knows bytes alone, and so nothing of ours.
    Closed { dir: "store", pure: false, may: &["lz4_flex", "memchr", "rustix", "serde", "serde_json", "thiserror"] },
    // Not pure, for it has channels; but it stands between host and surfaces, and must pull neither into the other.
    Closed { dir: "door", pure: false, may: &["holdfast-types", "holdfast-wire", "serde_json", "tokio"] },
    // These two speak to the kernel, so they are not pure; but they outlive versions, so they link nothing else.
    Closed { dir: "abi", pure: false, may: &["libc"] },
    Closed { dir: "keeper", pure: false, may: &["holdfast-abi", "libc"] },
];

/// What the clippy.toml of a pure crate names at least.
const BANNED: &[&str] = &["std::time::SystemTime::now", "std::time::Instant::now", "std::fs::", "std::net::"];

/// The keeper is a program: only the simulation may use its decisions as a library.
const KEEPER: &str = "holdfast-keeper";
const MAY_LINK_KEEPER: &str = "holdfast-sim";

/// Checks the closed crates there are, and that nobody links the keeper.
pub fn check(tree: &Tree, metadata: &Value) -> Vec<Problem> {
    let mut problems = linked_keepers(metadata);
    for closed in CLOSED {
        let manifest = format!("crates/{}/Cargo.toml", closed.dir);
        if tree.get(&manifest).is_none() {
            continue;
        }
        match dependencies(metadata, &manifest) {
            None => problems.push(Problem::new(&*manifest, "cargo metadata does not know it: is it in the workspace?")),
            Some(names) => {
                for name in names.iter().filter(|name| !closed.may.contains(&name.as_str())) {
                    problems.push(Problem::new(&*manifest, format!(
                        "depends on {name}, which is not on its list; do without it, or, if it does no IO, add it in xtask/src/tidy/purity.rs"
                    )));
                }
            }
        }
        if closed.pure {
            bans(tree, closed.dir, &mut problems);
        }
    }
    problems
}

fn linked_keepers(metadata: &Value) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = packages.iter().filter_map(|package| {
        let is_keeper = |dependency: &Value| dependency["name"] == KEEPER && dependency["kind"] != "dev";
        let links = package["dependencies"].as_array()?.iter().any(is_keeper);
        package["name"].as_str().filter(|name| links && *name != MAY_LINK_KEEPER)
    });
    names
        .map(|name| Problem::new(name, "links the keeper, which is a program of its own: speak to its socket"))
        .collect()
}

/// Names of a package's dependencies, those for tests left out.
fn dependencies(metadata: &Value, manifest: &str) -> Option<Vec<String>> {
    let ends = |package: &&Value| {
        package["manifest_path"].as_str().is_some_and(|path| path.ends_with(&format!("/{manifest}")))
    };
    let package = metadata["packages"].as_array()?.iter().find(ends)?;
    let all = package["dependencies"].as_array()?.iter();
    let used = all.filter(|dependency| dependency["kind"].as_str() != Some("dev"));
    used.map(|dependency| dependency["name"].as_str().map(str::to_owned)).collect()
}

fn bans(tree: &Tree, dir: &str, problems: &mut Vec<Problem>) {
    let path = format!("crates/{dir}/clippy.toml");
    let Some(text) = tree.get(&path) else {
        problems.push(Problem::new(
            path,
            "missing: a pure crate bans clocks, files and sockets (copy crates/types/clippy.toml)",
        ));
        return;
    };
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    if !code.contains("disallowed-methods") {
        problems.push(Problem::new(&*path, "has no disallowed-methods"));
    }
    for banned in BANNED.iter().filter(|banned| !code.contains(*banned)) {
        problems.push(Problem::new(&*path, format!("does not ban {banned}")));
    }
    let sources = format!("crates/{dir}/src/");
    for (file, text) in tree.files().filter(|(file, _)| file.starts_with(&sources)) {
        for (number, line) in text.lines().enumerate() {
            if line.contains("clippy::disallowed_") {
                problems.push(Problem::new(
                    format!("{file}:{}", number + 1),
                    "a pure crate does not lift its own ban; a test that must read files lives under tests/",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOOD: &str = "disallowed-methods = [\"std::time::SystemTime::now\", \"std::time::Instant::now\"]\n\
                        disallowed-types = [\"std::fs::File\", \"std::net::TcpStream\"]";

    fn whats(tree: &Tree, dependencies: Value) -> Vec<String> {
        let metadata =
            json!({"packages": [{"manifest_path": "/x/crates/types/Cargo.toml", "dependencies": dependencies}]});
        check(tree, &metadata).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_dependency_that_is_not_listed_is_a_problem_unless_only_tests_use_it() {
        let tree = Tree::of(&[("crates/types/Cargo.toml", ""), ("crates/types/clippy.toml", GOOD)]);
        let serde = json!({"name": "serde", "kind": null});
        assert_eq!(whats(&tree, json!([serde, {"name": "tokio", "kind": "dev"}])), [""; 0]);
        let found = whats(&tree, json!([serde, {"name": "tokio", "kind": null}, {"name": "cc", "kind": "build"}]));
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("tokio") && found[1].contains("cc"));
    }

    #[test]
    fn a_pure_crate_bans_io_and_does_not_lift_the_ban() {
        let manifest = ("crates/types/Cargo.toml", "");
        assert!(whats(&Tree::of(&[manifest]), json!([]))[0].contains("missing"));
        let half = Tree::of(&[
            manifest,
            ("crates/types/clippy.toml", "# std::net::\ndisallowed-methods = [\"std::fs::read\"]"),
        ]);
        assert_eq!(whats(&half, json!([])).len(), 3, "two clocks and the sockets");
        let lifted = ("crates/types/src/a.rs", "#[allow(clippy::disallowed_methods)]\nfn a() {}");
        assert!(
            whats(&Tree::of(&[manifest, ("crates/types/clippy.toml", GOOD), lifted]), json!([]))[0].contains("lift")
        );
    }

    #[test]
    fn only_the_simulation_links_the_keeper() {
        let package = |name: &str| json!({"name": name, "dependencies": [{"name": "holdfast-keeper", "kind": null}]});
        let found = check(&Tree::of(&[]), &json!({"packages": [package("holdfast-sim"), package("holdfast-host")]}));
        assert_eq!(found.iter().map(|problem| problem.at.as_str()).collect::<Vec<_>>(), ["holdfast-host"]);
    }

    #[test]
    fn a_crate_outside_the_workspace_is_noticed() {
        let tree = Tree::of(&[("crates/keeper/Cargo.toml", "")]);
        assert_eq!(check(&tree, &json!({"packages": []})).len(), 1);
    }
}
