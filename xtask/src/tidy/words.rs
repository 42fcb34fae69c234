//! Words that must not be in the tree: paths of one machine, hosts of registries, unfinished code, tests that do not run
//! or that sleep. Exceptions are in `xtask/allow.txt`, each with its reason.

use super::Problem;
use super::rust::{Mark, Sources};
use super::tree::Tree;

/// The exceptions: `path | rule | how often | why`, one a line.
const ALLOW: &str = "xtask/allow.txt";
/// This file names what it forbids.
const OURSELVES: &str = "xtask/src/tidy/words.rs";

/// Directories that exist on somebody's machine only.
const MACHINE_PATHS: &[&str] = &["/work", "/root"];
/// Hosts that packages come from: whoever builds this has a mirror of their own.
const REGISTRY_HOSTS: &[&str] = &["crates.io", "registry.npmjs", "deb.debian.org", "security.debian.org", "pypi.org"];
/// The one source cargo writes for its default registry, whatever mirror served it.
const CARGO_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Something found, by rule.
struct Found {
    path: String,
    line: usize,
    rule: &'static str,
    what: String,
}

/// Looks at every text, and at the tokens of Rust.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Problem> {
    let mut found = vec![];
    for (path, text) in tree.files().filter(|(path, _)| *path != OURSELVES) {
        for (i, line) in text.lines().enumerate() {
            words_of_line(path, line, |rule, what| found.push(Found { path: path.into(), line: i + 1, rule, what }));
        }
    }
    for (path, source) in sources.files() {
        for (mark, line) in &source.marks {
            let (rule, what) = match mark {
                Mark::Todo => ("todo", "todo!() or unimplemented!(): finish it, or answer with an error"),
                Mark::Ignored => ("ignore", "a test that does not run: make it run, or delete it"),
                Mark::Sleep if source.is_test(path, *line) => {
                    ("sleep", "a test that sleeps: poll for the condition with a deadline, or use a hook")
                }
                Mark::Sleep => continue,
            };
            found.push(Found { path: path.into(), line: *line, rule, what: what.into() });
        }
    }
    judge(tree.get(ALLOW).unwrap_or_default(), found)
}

/// Takes out what is allowed; an exception nothing needs is a problem too.
fn judge(allow: &str, mut found: Vec<Found>) -> Vec<Problem> {
    let mut problems = vec![];
    for (i, line) in allow.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let at = format!("{ALLOW}:{}", i + 1);
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[path, rule, times, why] = fields.as_slice() else {
            problems.push(Problem::new(at, "not `path | rule | how often | why`"));
            continue;
        };
        if why.is_empty() {
            problems.push(Problem::new(&*at, "an exception without a reason"));
        }
        let is_this = |found: &Found| found.path == path && found.rule == rule;
        match found.iter().filter(|found| is_this(found)).count() {
            0 => problems.push(Problem::new(at, format!("{path} no longer needs this exception: take the line off"))),
            count if times.parse() == Ok(count) => found.retain(|found| !is_this(found)),
            count => problems.push(Problem::new(at, format!("{path} has {count} of rule `{rule}`, not {times}"))),
        }
    }
    problems.extend(found.into_iter().map(|found| {
        Problem::new(format!("{}:{}", found.path, found.line), format!("{} (rule `{}`)", found.what, found.rule))
    }));
    problems
}

fn words_of_line(path: &str, line: &str, mut report: impl FnMut(&'static str, String)) {
    for word in MACHINE_PATHS.iter().filter(|word| has_path(line, word)) {
        report("machine-path", format!("{word} is a path of one machine"));
    }
    let file = path.rsplit('/').next().unwrap_or_default();
    if file == "Cargo.lock" {
        if line.starts_with("source = ") && !line.contains(CARGO_SOURCE) {
            report("registry", "a package that is not from the default registry".into());
        }
        return;
    }
    for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(*host)) {
        report("registry", format!("{host} is a registry's host; say what the package is, not where it comes from"));
    }
    let is_npm_address = file == "package-lock.json" && line.contains("\"resolved\": \"http");
    if is_npm_address {
        report(
            "registry",
            "an address in a lock file: make it with `npm install --omit-lockfile-registry-resolved`".into(),
        );
    }
    let sets_registry = (file == ".npmrc" || path.ends_with(".cargo/config.toml")) && line.contains("registry");
    if sets_registry && !line.trim_start().starts_with(['#', ';']) && !line.contains("omit-lockfile-registry-resolved")
    {
        report("registry", "which registry to use is each machine's own business".into());
    }
    if path.ends_with(".rs") && line.trim_start().starts_with("//") && line.contains("```") && line.contains("ignore") {
        report("ignore", "an example that is not compiled: make it run, or mark it `text`".into());
    }
}

/// Whether a line has this absolute path: not as the tail of another one, nor as the start of a longer name.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(i, _)| {
        let before = line[..i].chars().next_back();
        let after = line[i + path.len()..].chars().next();
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && !"._-~*}])/$".contains(c));
        let ends = after.is_none_or(|c| !c.is_alphanumeric() && !"_-.".contains(c));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::super::rust::parse;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        check(&tree, &parse(&tree)).into_iter().map(|problem| format!("{} {}", problem.at, problem.what)).collect()
    }

    #[test]
    fn machine_paths_are_found_and_their_lookalikes_are_not() {
        for line in ["/root/.cargo", "cd /work/main", "\"/root\"", "x=/work"] {
            assert_eq!(found(&[("a.md", line)]).len(), 1, "{line}");
        }
        for line in ["target/work/x", "/workspace", "~/work", "./root", "/root-cause", "$HOME/work"] {
            assert_eq!(found(&[("a.md", line)]), [""; 0], "{line}");
        }
    }

    #[test]
    fn registry_hosts_are_found_in_texts_and_lock_files() {
        assert_eq!(found(&[("a.md", "from crates.io")]).len(), 1);
        assert_eq!(
            found(&[("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\"")]),
            [""; 0]
        );
        assert_eq!(found(&[("Cargo.lock", "source = \"registry+https://mirror.example/index\"")]).len(), 1);
        assert_eq!(found(&[("w/package-lock.json", "  \"resolved\": \"https://mirror.example/x.tgz\",")]).len(), 1);
        assert_eq!(found(&[(".cargo/config.toml", "[registries.x]")]).len(), 0, "the word alone");
        assert_eq!(found(&[(".cargo/config.toml", "registry = \"x\"")]).len(), 1);
        assert_eq!(found(&[("w/.npmrc", "omit-lockfile-registry-resolved=true")]), [""; 0]);
    }

    #[test]
    fn unfinished_code_and_tests_that_do_not_run_are_found() {
        let all = found(&[("a.rs", "fn a() { todo!() }\n#[ignore]\nfn b() {}\n/// ```ignore\nfn c() {}")]);
        assert_eq!(all.len(), 3, "{all:?}");
    }

    #[test]
    fn only_tests_may_not_sleep() {
        let sleeps = "fn a() { std::thread::sleep(D) }";
        assert_eq!(found(&[("crates/x/src/a.rs", sleeps)]), [""; 0]);
        assert_eq!(found(&[("crates/x/tests/a.rs", sleeps)]).len(), 1);
        assert_eq!(found(&[("crates/x/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {sleeps} }}"))]).len(), 1);
    }

    #[test]
    fn an_exception_needs_a_reason_and_a_use() {
        let test = ("crates/x/tests/a.rs", "fn a() { sleep(D) }");
        let with = |line| found(&[test, (ALLOW, line)]);
        assert_eq!(with("crates/x/tests/a.rs | sleep | 1 | the one poll loop"), [""; 0]);
        assert_eq!(with("crates/x/tests/a.rs | sleep | 1 |").len(), 1);
        assert_eq!(
            with("crates/x/tests/a.rs | sleep | 2 | two loops").len(),
            2,
            "the entry is wrong, and excuses nothing"
        );
        assert_eq!(with("crates/x/tests/a.rs | todo | 1 | x").len(), 2);
        assert_eq!(with("crates/x/tests/a.rs sleep").len(), 2);
    }
}
