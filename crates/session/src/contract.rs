//! A run held against its contract: which of its effects lie beyond what it promised.
//!
//! Only what is promised is compared. What could not be measured completely makes a promise unknown, never kept; what was seen beyond
//! it breaks it however little was seen.

use holdfast_wire::contracts::{Contract, Effects, Outcome, Unexpected, Validity};

/// Unexpected effects that are named: a person reads no more.
const NAMED_MAX: usize = 100;

/// What came out. The patterns of files are absolute by now, and so are the paths.
#[must_use]
pub fn outcome(contract: &Contract, patterns: &[String], effects: &Effects, exit_code: Option<i32>) -> Outcome {
    let expect = &contract.expect;
    let mut found = Found::default();
    let mut untold = Vec::new();
    let mut told = |is_complete: bool, kind: &str| {
        if !is_complete {
            untold.push(kind.to_owned());
        }
    };
    if expect.may_change.is_some() {
        told(effects.files_measured.complete, "files");
        let may = |path: &str| patterns.iter().any(|pattern| is_path_like(pattern, path));
        let files = &effects.files;
        let lists = [("created", &files.created), ("changed", &files.changed), ("deleted", &files.deleted)];
        for (what, paths) in lists {
            paths.iter().filter(|path| !may(path)).for_each(|path| found.add("file", || format!("{what} {path}")));
        }
        for moved in files.moved.iter().filter(|moved| !may(&moved.from) || !may(&moved.to)) {
            found.add("file", || format!("moved {} to {}", moved.from, moved.to));
        }
    }
    if let Some(ports) = &expect.ports {
        told(effects.ports_measured.complete, "ports");
        let beyond = effects.ports.iter().filter(|port| !ports.contains(port));
        beyond.for_each(|port| found.add("port", || port.to_string()));
    }
    if let Some(most) = expect.processes {
        told(effects.processes_measured.complete, "processes");
        if effects.processes.len() > most as usize {
            let shown =
                |pid: u32, argv: &[String]| format!("{pid} {}", argv.join(" ").chars().take(200).collect::<String>());
            let left = effects.processes.iter();
            left.for_each(|left| found.add("process", || shown(left.pid, &left.argv)));
        }
    }
    if let Some(network) = &expect.network {
        told(effects.network_measured.complete, "network");
        let may = |to: &&String| network.iter().any(|pattern| is_like(pattern.as_bytes(), to.as_bytes()));
        let beyond = effects.connections.iter().filter(|to| !may(to));
        beyond.for_each(|to| found.add("network", || to.clone()));
    }
    let validity = match (found.count, untold.is_empty()) {
        (0, true) => Validity::Valid,
        (0, false) => Validity::Unknown,
        (_, _) => Validity::Invalid,
    };
    let success = exit_code.is_some_and(|code| contract.expects_exit(code));
    Outcome { validity, success, unexpected: found.named, unexpected_count: found.count, untold }
}

#[derive(Default)]
struct Found {
    named: Vec<Unexpected>,
    count: u64,
}

impl Found {
    fn add(&mut self, kind: &str, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(Unexpected { kind: kind.to_owned(), what: what() });
        }
    }
}

/// Whether a path is one that a pattern stands for: `*` and `?` within a name, `**` for any number of directories, none too.
#[must_use]
pub fn is_path_like(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    greedy(&pattern, &path, |part| *part == "**", |part, name| is_like(part.as_bytes(), name.as_bytes()))
}

/// Whether a text is one that a pattern with `*` and `?` stands for.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    greedy(pattern, text, |byte| *byte == b'*', |byte, other| *byte == b'?' || byte == other)
}

/// Matches items in order, where some stand for any number. Goes back to the last of those alone: no pattern takes long.
fn greedy<P, T>(pattern: &[P], items: &[T], is_any: impl Fn(&P) -> bool, is_one: impl Fn(&P, &T) -> bool) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while next < items.len() {
        match pattern.get(at) {
            Some(part) if is_any(part) => {
                last = Some((at, next));
                at += 1;
            }
            Some(part) if is_one(part, &items[next]) => {
                at += 1;
                next += 1;
            }
            Some(_) | None => {
                let Some((any, taken)) = last else { return false };
                last = Some((any, taken + 1));
                (at, next) = (any + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_wire::contracts::{FileEffects, LeftProcess, Measure, Moved};

    #[test]
    fn patterns_stand_for_paths() {
        for (pattern, path, is) in [
            ("/p/a", "/p/a", true),
            ("/p/a", "/p/ab", false),
            ("/p/*.o", "/p/x.o", true),
            ("/p/*.o", "/p/d/x.o", false),
            ("/p/**", "/p", true),
            ("/p/**", "/p/a/b/c", true),
            ("/p/**", "/pa", false),
            ("/p/**/x", "/p/x", true),
            ("/p/**/x", "/p/a/b/x", true),
            ("/p/**/x", "/p/a/b/y", false),
            ("/p/**/a/**/b", "/p/a/c/a/d/b", true),
            ("/p/?", "/p/ab", false),
            ("/**", "/etc/passwd", true),
            ("/p/[ab]", "/p/a", false),
            ("/p/**/*a*b*", "/p/q/xaybz", true),
        ] {
            assert_eq!(is_path_like(pattern, path), is, "{pattern} {path}");
        }
        assert!(!is_like(("a*".repeat(200) + "c").as_bytes(), "a".repeat(4000).as_bytes()));
    }

    fn whole() -> Measure {
        Measure { complete: true, by: "fanotify".into(), why: None }
    }

    fn effects() -> Effects {
        Effects {
            files: FileEffects {
                created: vec!["/p/out/a.o".into()],
                changed: vec!["/p/src/m.c".into()],
                deleted: vec!["/p/old".into()],
                moved: vec![Moved { from: "/p/out/x".into(), to: "/etc/x".into() }],
                count: 4,
                passing: 0,
            },
            processes: vec![LeftProcess { pid: 7, argv: vec!["sleep".into(), "9".into()] }],
            ports: vec![8080],
            connections: vec!["192.0.2.1:443".into()],
            files_measured: whole(),
            processes_measured: whole(),
            ports_measured: whole(),
            network_measured: whole(),
        }
    }

    fn compared(text: &str, patterns: &[&str], effects: &Effects, exit: Option<i32>) -> (Validity, bool, Vec<String>) {
        let contract: Contract = serde_json::from_str(text).unwrap();
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let Outcome { validity, success, unexpected, .. } = outcome(&contract, &patterns, effects, exit);
        (validity, success, unexpected.into_iter().map(|one| format!("{}: {}", one.kind, one.what)).collect())
    }

    #[test]
    fn each_kind_of_effect_beyond_a_contract_is_named() {
        let all = effects();
        let free = compared("{}", &[], &all, Some(0));
        assert_eq!(free, (Validity::Valid, true, vec![]), "what is not promised is not compared");
        let files = compared(r#"{"expect": {"may_change": ["x"]}}"#, &["/p/out/**", "/p/src/*.c"], &all, Some(1));
        let named = vec!["file: deleted /p/old".to_owned(), "file: moved /p/out/x to /etc/x".to_owned()];
        assert_eq!(files, (Validity::Invalid, false, named));
        let ports = compared(r#"{"expect": {"ports": [80]}}"#, &[], &all, Some(0));
        assert_eq!(ports.2, ["port: 8080"]);
        let left = compared(r#"{"expect": {"processes": 0}}"#, &[], &all, Some(0));
        assert_eq!(left.2, ["process: 7 sleep 9"]);
        assert_eq!(compared(r#"{"expect": {"processes": 1}}"#, &[], &all, Some(0)).0, Validity::Valid);
        let network = compared(r#"{"expect": {"network": ["10.*:443"]}}"#, &[], &all, Some(0));
        assert_eq!(network.2, ["network: 192.0.2.1:443"]);
        assert_eq!(compared(r#"{"expect": {"network": ["*:443"]}}"#, &[], &all, Some(0)).0, Validity::Valid);
        for (expect, exit, success) in
            [("[]", Some(0), true), ("[1, 2]", Some(2), true), ("[1]", Some(0), false), ("[0]", None, false)]
        {
            let text = format!(r#"{{"expect": {{"exit": {expect}}}}}"#);
            assert_eq!(compared(&text, &[], &all, exit).1, success, "{expect} {exit:?}");
        }
    }

    #[test]
    fn what_was_not_measured_completely_is_unknown_and_never_kept() {
        let part = Measure { complete: false, by: "ctime".into(), why: None };
        let some = Effects { files_measured: part, ..effects() };
        let text = r#"{"expect": {"may_change": ["x"]}}"#;
        let (validity, _, unexpected) = compared(text, &["/**"], &some, Some(0));
        assert_eq!((validity, unexpected.len()), (Validity::Unknown, 0));
        assert_eq!(compared(text, &["/p/**"], &some, Some(0)).0, Validity::Invalid, "what was seen counts");
    }
}
