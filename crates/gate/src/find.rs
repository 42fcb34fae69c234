//! `find` and what is fed by it: what may be reached is what lies below its starting points.

use crate::line::{Command, Line};
use crate::word::Word;

/// Where the names come from that a command prints for a pipe: what gets them reaches things below these.
pub(crate) fn names_below(command: &Command) -> Option<Vec<Word>> {
    match command.name() {
        "find" => Some(starts(command)),
        "fd" | "fdfind" | "ls" | "rg" | "grep" => Some(vec![Word::plain(".")]),
        "git" if command.operand(0).as_deref() == Some("ls-files") => Some(vec![Word::plain(".")]),
        // They let through what they are given.
        "sort" | "head" | "tail" | "uniq" | "sed" | "awk" | "tr" | "cut" => command.below.clone(),
        _ => None,
    }
}

/// The starting points of a `find`.
pub(crate) fn starts(command: &Command) -> Vec<Word> {
    let is_expression = |word: &Word| {
        let text = word.beginning();
        text.starts_with('-') && !matches!(text.as_str(), "-L" | "-P" | "-H") || text == "(" || text == "!"
    };
    let before = command.words.iter().take_while(|word| !is_expression(word));
    let starts: Vec<Word> = before.filter(|word| !word.is_option()).cloned().collect();
    if starts.is_empty() { vec![Word::plain(".")] } else { starts }
}

/// It takes all there is: nothing narrows it down.
pub(crate) fn takes_all(command: &Command) -> bool {
    const NARROW: [&str; 22] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-newer",
        "-size",
        "-empty",
        "-user",
        "-group",
        "-perm",
        "-maxdepth",
        "-type",
        "-inum",
        "-links",
    ];
    !command.words.iter().any(|word| NARROW.contains(&word.beginning().as_str()))
}

/// The commands that a `find -exec` runs.
pub(crate) fn inner(line: &mut Line, command: &Command, depth: u32) {
    let words = &command.words;
    let is_exec =
        |text: &str| matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch");
    let mut at = 0;
    while at < words.len() {
        if is_exec(&words[at].beginning()) {
            let ends = |word: &Word| matches!(word.beginning().as_str(), ";" | "+");
            let end = words[at + 1..].iter().position(ends).map_or(words.len(), |n| at + 1 + n);
            let inner: Vec<Word> = words[at + 1..end].to_vec();
            if !inner.is_empty() && depth < crate::line::INNER_MAX && !line.is_full() {
                let below = if command.name() == "find" { starts(command) } else { vec![Word::plain(".")] };
                let run = Command {
                    dirs: command.dirs.clone(),
                    via: command.via.iter().cloned().chain(["find".into()]).collect(),
                    below: Some(below),
                    stands_in: Some("{}".into()),
                    ..Command::default()
                };
                line.add(run, inner, None, depth + 1);
            }
            at = end;
        }
        at += 1;
    }
}
