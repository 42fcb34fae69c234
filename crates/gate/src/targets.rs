//! What a command would write and delete, by its words.

use crate::find;
use crate::line::Command;
use crate::word::Word;

/// What happens to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    /// It is made or changed.
    Writes,
    /// It goes away.
    Deletes,
}

/// A word that names something to be written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The word.
    pub word: Word,
    /// What happens to it.
    pub does: Does,
    /// With everything in it.
    pub whole: bool,
    /// Something below it, not itself.
    pub below: bool,
    /// A link as last part is followed.
    pub follows: bool,
}

impl Target {
    fn of(word: &Word, does: Does) -> Target {
        // `rm link` removes the link; `rm link/` and every write go through it.
        let follows = does == Does::Writes || word.raw.ends_with('/');
        Target { word: word.clone(), does, whole: false, below: false, follows }
    }

    fn whole(self, whole: bool) -> Target {
        Target { whole, ..self }
    }
}

/// What a command writes and deletes.
#[must_use]
pub(crate) fn targets(command: &Command) -> Vec<Target> {
    let mut all = redirected(command);
    files(command, &mut all);
    tools(command, &mut all);
    // A pipe to another command, which is looked at by itself.
    all.retain(|target| !target.word.raw.starts_with(">(") && !target.word.raw.starts_with("<("));
    names_given(command, &mut all);
    all
}

fn writes(word: &Word) -> Target {
    Target::of(word, Does::Writes)
}

fn deletes(word: &Word) -> Target {
    Target::of(word, Does::Deletes)
}

/// Programs whose work is files: they delete, move, copy, make and change them.
fn files(command: &Command, all: &mut Vec<Target>) {
    let recursive = command.has("rR", &["recursive"]);
    match command.name() {
        "rm" | "srm" | "trash" => {
            all.extend(command.operands().map(|word| deletes(word).whole(recursive)));
        }
        "rmdir" | "unlink" => all.extend(command.operands().map(deletes)),
        "shred" => all.extend(command.operands().map(if command.has("u", &["remove"]) { deletes } else { writes })),
        "mv" => {
            let (sources, into) = sources_and_place(command, &["-t", "-S"]);
            all.extend(sources.iter().map(|word| deletes(word).whole(true)));
            all.extend(into.iter().map(writes));
        }
        "cp" | "install" | "ln" | "link" => {
            let (sources, into) = sources_and_place(command, &["-t", "-S", "-m", "-o", "-g"]);
            // `ln -s x` makes one here; `install -d` makes all.
            let makes_all = command.name() == "install" && command.has("d", &["directory"]);
            all.extend(sources.iter().filter(|_| makes_all).map(writes));
            all.extend(into.iter().map(writes));
        }
        "rsync" => {
            let (_, into) = sources_and_place(command, &["-e", "-f", "-B"]);
            let local = into.iter().filter(|word| !word.beginning().contains(':'));
            let mirrors = command.options().any(|option| option.starts_with("--del"));
            all.extend(local.flat_map(|word| {
                let below = Target { below: true, ..deletes(word).whole(true) };
                std::iter::once(writes(word)).chain(mirrors.then_some(below))
            }));
        }
        "tee" | "touch" | "mkdir" | "mkfifo" | "mktemp" => {
            all.extend(
                without_values(command, &["-d", "-r", "-t", "-m", "--date", "--reference", "--mode"])
                    .iter()
                    .map(writes),
            );
        }
        "truncate" | "fallocate" => {
            all.extend(without_values(command, &["-s", "-r", "-l", "-o", "--size", "--length"]).iter().map(writes));
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => {
            let words = without_values(command, &["-m", "-x", "-M", "-X", "--reference"]);
            let own = usize::from(command.name() != "setfacl" && !command.has("", &["reference"]));
            all.extend(words.iter().skip(own).map(|word| writes(word).whole(recursive)));
        }
        _ => {}
    }
}

/// Programs that also write files.
fn tools(command: &Command, all: &mut Vec<Target>) {
    match command.name() {
        "dd" => all.extend(command.words.iter().filter_map(|word| word.behind("of=")).map(|word| writes(&word))),
        "sed" | "perl" | "gsed" if in_place(command) => {
            let scripts =
                command.options().any(|option| option == "-e" || option == "-f" || option.starts_with("--expression"));
            let words = without_values(command, &["-e", "-f", "-E"]);
            all.extend(words.iter().skip(usize::from(!scripts && command.name() != "perl")).map(writes));
        }
        "find" => {
            if command.words.iter().any(|word| word.beginning() == "-delete") {
                let whole = find::takes_all(command);
                let of = |word: Word| Target { below: true, ..deletes(&word).whole(whole) };
                all.extend(find::starts(command).into_iter().map(of));
            }
            let files = command
                .words
                .windows(2)
                .filter(|pair| matches!(pair[0].beginning().as_str(), "-fprint" | "-fprint0" | "-fls"));
            all.extend(files.map(|pair| writes(&pair[1])));
        }
        "git" => all.extend(git(command)),
        "tar" | "bsdtar" | "gtar" if extracts(command) => {
            let into = value_of(command, &["-C", "--directory"]).unwrap_or_else(|| Word::plain("."));
            all.push(Target { below: true, ..writes(&into) });
        }
        "unzip" => {
            let into = value_of(command, &["-d"]).unwrap_or_else(|| Word::plain("."));
            all.push(Target { below: true, ..writes(&into) });
        }
        "sort" => all.extend(value_of(command, &["-o", "--output"]).iter().map(writes)),
        // The second word is where it writes.
        "uniq" => all.extend(command.operands().nth(1).map(writes)),
        "curl" => all.extend(value_of(command, &["-o", "--output"]).iter().map(writes)),
        "wget" => all.extend(value_of(command, &["-O", "--output-document"]).iter().map(writes)),
        "scp" => {
            let (_, into) = sources_and_place(command, &["-P", "-i", "-o", "-F", "-l", "-S", "-c"]);
            all.extend(into.iter().filter(|word| !word.beginning().contains(':')).map(writes));
        }
        _ => {}
    }
}

/// Files that a command downloads.
pub(crate) fn downloads(command: &Command) -> Vec<String> {
    let (output, by_address) = match command.name() {
        "curl" => (value_of(command, &["-o", "--output"]), command.has("O", &["remote-name", "remote-name-all"])),
        "wget" => (value_of(command, &["-O", "--output-document"]), true),
        _ => return Vec::new(),
    };
    let redirected = command.redirects.iter().filter(|redirect| redirect.writes).map(|redirect| &redirect.target);
    let named: Vec<String> = output.iter().chain(redirected).filter_map(Word::text).collect();
    // A question mark in an address is no pattern to be known.
    let by_address = command.operands().filter(|_| by_address && named.is_empty()).map(Word::beginning);
    let by_address = by_address.map(|address| address.split(['?', '#']).next().unwrap_or_default().to_owned());
    by_address.chain(named.iter().cloned()).filter(|file| !file.is_empty() && !file.ends_with('/')).collect()
}

/// Names that come by a pipe, or from `find`.
fn names_given(command: &Command, all: &mut Vec<Target>) {
    let Some(below) = fed(command) else { return };
    let recursive = command.has("rR", &["recursive"]);
    let (does, whole) = match command.name() {
        "rm" | "rmdir" | "unlink" | "shred" | "mv" => (Does::Deletes, recursive),
        "chmod" | "chown" | "chgrp" | "touch" | "sed" | "tee" | "truncate" => (Does::Writes, recursive),
        _ => return,
    };
    all.retain(|target| !target.word.raw.contains("{}"));
    let of = |word: &Word| Target { below: true, ..Target::of(word, does).whole(whole) };
    match below {
        Some(below) => all.extend(below.iter().map(of)),
        None => all.push(Target { does, whole, ..of(&Word::read("$1")) }),
    }
}

/// Whether a command gets names besides those among its words; and below which they lie.
fn fed(command: &Command) -> Option<Option<Vec<Word>>> {
    let gets = command.via.iter().any(|wrapper| wrapper == "xargs" || wrapper == "find");
    gets.then(|| command.below.clone())
}

fn redirected(command: &Command) -> Vec<Target> {
    let written = command.redirects.iter().filter(|redirect| redirect.writes);
    written.map(|redirect| Target::of(&redirect.target, Does::Writes)).collect()
}

/// Operands, without the values of options that take one.
fn without_values(command: &Command, values: &[&str]) -> Vec<Word> {
    let mut all = Vec::new();
    let mut words = command.words.iter();
    let mut ended = false;
    while let Some(word) = words.next() {
        let text = word.beginning();
        if !ended && word.text().as_deref() == Some("--") {
            ended = true;
        } else if !ended && values.contains(&text.as_str()) {
            words.next();
        } else if ended || !word.is_option() {
            all.push(word.clone());
        }
    }
    all
}

/// The value of an option: the next word, or what is attached to it.
fn value_of(command: &Command, names: &[&str]) -> Option<Word> {
    let mut words = command.words.iter();
    while let Some(word) = words.next() {
        let text = word.beginning();
        if names.contains(&text.as_str()) {
            return words.next().cloned();
        }
        let attached = |name: &&str| match name.starts_with("--") {
            true => word.behind(&format!("{name}=")),
            false => word.behind(name).filter(|_| !text.starts_with("--")),
        };
        if let Some(value) = names.iter().find_map(attached) {
            return Some(value);
        }
    }
    None
}

/// Sources, and where they go: the last word, or `-t DIR`.
fn sources_and_place(command: &Command, values: &[&str]) -> (Vec<Word>, Option<Word>) {
    let mut words = without_values(command, values);
    match value_of(command, &["-t", "--target-directory"]) {
        Some(place) => (words, Some(place)),
        None if words.len() > 1 => {
            let place = words.pop();
            (words, place)
        }
        None => (words, None),
    }
}

fn in_place(command: &Command) -> bool {
    command.options().any(|option| match option.strip_prefix("--") {
        Some(long) => long.starts_with("in-place"),
        None => option.chars().skip(1).take_while(|c| c.is_alphabetic()).any(|c| c == 'i'),
    })
}

fn extracts(command: &Command) -> bool {
    let first = command.words.first().map(Word::beginning).unwrap_or_default();
    let bundled = !first.starts_with('-') && first.contains('x');
    bundled || command.has("x", &["extract", "get"])
}

/// What git deletes in its directory.
fn git(command: &Command) -> Vec<Target> {
    let words = without_values(command, &["-C", "-c", "--git-dir", "--work-tree", "--namespace"]);
    let place = value_of(command, &["-C", "--work-tree"]).unwrap_or_else(|| Word::plain("."));
    let below = |does| Target { below: true, ..Target::of(&place, does) };
    match words.first().and_then(Word::text).as_deref() {
        Some("clean") if command.has("f", &["force"]) => vec![below(Does::Deletes)],
        Some("rm") => {
            words.iter().skip(1).map(|word| Target::of(word, Does::Deletes).whole(command.has("r", &[]))).collect()
        }
        Some("reset") if command.has("", &["hard"]) => vec![below(Does::Writes)],
        Some("clone") => words.get(2).map(|word| Target::of(word, Does::Writes)).into_iter().collect(),
        _ => Vec::new(),
    }
}
