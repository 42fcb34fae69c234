//! A command line, taken apart: which commands it has, with which words, in which directories, and what only the live shell knows.

use crate::word::Word;
use std::collections::BTreeSet;

/// Longest line that is parsed: more is a script, and the parser is young.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Commands of one line.
pub(crate) const COMMANDS_MAX: usize = 512;
/// Lines within lines (`sh -c`, `eval`, here-documents for a shell).
pub(crate) const INNER_MAX: u32 = 8;
/// From this many opening signs on the parser gets a stack of its own: it goes down by one call for each, a thousand at most.
const SHALLOW: usize = 40;
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Where a redirection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// It writes.
    pub writes: bool,
    /// To or from here.
    pub target: Word,
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Its name without directories; none where only the live shell knows.
    pub name: Option<String>,
    /// The name as it was written, where that has directories in it: no alias, function or `PATH` has a say in it.
    pub path: Option<String>,
    /// What follows the name.
    pub words: Vec<Word>,
    /// Where its descriptors go.
    pub redirects: Vec<Redirect>,
    /// What it is wrapped in, outermost first: `sudo`, `env`, `xargs`.
    pub via: Vec<String>,
    /// Where it may run: absolute, or relative to the shell's directory. None among them: only the live shell knows.
    pub dirs: Vec<Option<String>>,
    /// It reads from a pipe.
    pub piped: bool,
    /// It is run in the background or in a pipe.
    pub aside: bool,
    /// What feeds it: the commands before it in its pipe, and those whose output is among its words.
    pub fed_by: Vec<String>,
    /// For `xargs`: where the names it gets come from, if that is known.
    pub below: Option<Vec<Word>>,
    /// What `xargs` and `find` put such a name in place of.
    pub stands_in: Option<String>,
}

impl Command {
    /// The name, or nothing.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Words that are no options, `--` left out.
    pub fn operands(&self) -> impl Iterator<Item = &Word> {
        let mut all = false;
        self.words.iter().filter(move |word| {
            if !all && word.text().as_deref() == Some("--") {
                all = true;
                return false;
            }
            all || !word.is_option()
        })
    }

    /// Options before `--`, as texts.
    pub fn options(&self) -> impl Iterator<Item = String> {
        let until = self.words.iter().take_while(|word| word.text().as_deref() != Some("--"));
        until.filter(|word| word.is_option()).map(Word::beginning)
    }

    /// Whether one of these is among its options: a letter, alone or with others, or a long name.
    #[must_use]
    pub fn has(&self, letters: &str, long: &[&str]) -> bool {
        self.options().any(|option| match option.strip_prefix("--") {
            Some(name) => long.contains(&name.split('=').next().unwrap_or_default()),
            None => option.chars().skip(1).any(|c| letters.contains(c)),
        })
    }

    /// The operand of this number, as a text.
    #[must_use]
    pub fn operand(&self, number: usize) -> Option<String> {
        self.operands().nth(number).and_then(Word::text)
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// It was understood. Where it was not, nothing below is complete.
    pub parsed: bool,
    /// Its commands, those within substitutions and known inner lines too.
    pub commands: Vec<Command>,
    /// What only the live shell knows, in words: `eval`, `a variable as command`.
    pub opaque: BTreeSet<String>,
    /// Functions it defines that call themselves in the background.
    pub bombs: BTreeSet<String>,
    /// Variables it sets.
    pub sets: BTreeSet<String>,
    /// Lines that it has other machines run.
    pub far: Vec<Line>,
    /// What a line within this one reads.
    pub(crate) reads: Reads,
}

/// What the command reads that runs a line within a line: the line's commands read the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    /// It comes through a pipe or from a here-document.
    pub(crate) piped: bool,
    /// Commands before it in its pipe.
    pub(crate) from: Vec<String>,
}

impl Line {
    /// Takes a line apart.
    #[must_use]
    pub fn read(text: &str) -> Line {
        let mut line = Line { parsed: true, ..Line::default() };
        let mut dirs = vec![Some(String::new())];
        line.read_inner(text, &mut dirs, 0);
        line
    }

    /// Takes a line of fish apart: where it is no line of bash, its `(command)` is read as `$(command)`.
    #[must_use]
    pub fn read_fish(text: &str) -> Line {
        let line = Line::read(text);
        if line.parsed { line } else { Line::read(&text.replace('(', "$(").replace("$$(", "$(")) }
    }

    /// A line that is given as words: no shell reads it.
    #[must_use]
    pub fn of_words<S: AsRef<str>>(words: &[S]) -> Line {
        let mut line = Line { parsed: true, ..Line::default() };
        let words: Vec<Word> = words.iter().map(|word| Word::plain(word.as_ref())).collect();
        let command = Command { dirs: vec![Some(String::new())], ..Command::default() };
        line.add(command, words, None, 0);
        line
    }

    pub(crate) fn read_inner(&mut self, text: &str, dirs: &mut Vec<Option<String>>, depth: u32) {
        if depth > INNER_MAX || text.len() > LINE_BYTES_MAX {
            self.not_parsed();
            return;
        }
        // bash 5.3 runs these in the shell itself; the parser reads them as text.
        if text.contains("${ ") || text.contains("${|") || text.contains("${\t") || text.contains("${\n") {
            self.opaque.insert("a function substitution".into());
        }
        // A NUL ends a line for some, and not for others.
        if text.contains('\0') {
            self.not_parsed();
            return;
        }
        let deep = text.matches(['(', '{', '`', '[', '!']).count() > SHALLOW
            || text.split_whitespace().filter(|word| NESTING.contains(word)).count() > SHALLOW;
        let mut read = || match std::panic::catch_unwind(|| rable::parse(text, true)) {
            Ok(Ok(nodes)) => self.walk_all(&nodes, dirs, depth),
            Ok(Err(_)) | Err(_) => self.not_parsed(),
        };
        if deep { stacker::grow(STACK_BYTES, read) } else { read() }
    }

    pub(crate) fn not_parsed(&mut self) {
        self.parsed = false;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.commands.len() >= COMMANDS_MAX
    }

    pub(crate) fn opaque(&mut self, what: &str) {
        self.opaque.insert(what.into());
    }
}

/// Words that open something.
const NESTING: [&str; 10] = ["if", "while", "until", "for", "case", "select", "coproc", "time", "!", "function"];
