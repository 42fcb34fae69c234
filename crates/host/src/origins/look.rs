//! The shapers of a line: which changes of others have a say in it.

use super::time::Guess;
use super::{Background, SHAPERS_MAX, Stamp, Times, Written};
use holdfast_gate::{Line, Named, Surroundings, files_of, shapes};
use holdfast_types::{Actor, Channel, Shaper};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files of one line that are looked at, those that scripts bring in among them.
const FILES_MAX: usize = 64;
/// Of a script so much is read to find what it brings in.
const READ_BYTES_MAX: u64 = 64 * 1024;
/// How deep scripts that bring in scripts are followed.
const DEPTH_MAX: u32 = 3;

/// A line, and who wants to run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub by: &'a Actor,
    /// A person is not told of what nobody knows.
    pub is_human: bool,
    pub line: &'a Line,
    pub text: &'a str,
    pub around: &'a Surroundings,
}

/// Who else shaped a line, by what. Blocks.
pub(crate) fn shapers_of(wanted: &Wanted<'_>, past: &Background) -> Vec<Shaper> {
    let mut all: Vec<Shaper> = past.staged.iter().map(staged).collect();
    let has = |dir: &str, name: &str| has_program(Path::new(&wanted.around.cwd), dir, name);
    for entry in past.changes.iter() {
        let Some(by) = &entry.changed else { continue };
        let channel = entry.category.channel();
        let is_other = by.actor.as_ref().map_or(!wanted.is_human, |actor| actor.id != wanted.by.id);
        let named = Named { kind: channel.word(), name: &entry.name };
        if is_other && shapes(wanted.line, wanted.text, named, &has) {
            all.push(Shaper {
                by: channel,
                name: entry.name.clone(),
                actor: by.actor.clone(),
                act: by.act,
                known: by.known.word().into(),
                at_ms: by.at_ms,
            });
        }
    }
    all.extend(files(wanted, past));
    // Those who are known first.
    all.sort_by_key(|shaper| shaper.actor.is_none());
    all.truncate(SHAPERS_MAX);
    all
}

fn staged(actor: &Actor) -> Shaper {
    let name = "typed before".to_owned();
    Shaper {
        by: Channel::Line,
        name,
        actor: Some(actor.clone()),
        act: None,
        known: "log".into(),
        at_ms: crate::now_ms(),
    }
}

fn has_program(cwd: &Path, dir: &str, name: &str) -> bool {
    let path = cwd.join(dir).join(name);
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Files that the line executes and that others wrote since the session began.
fn files(wanted: &Wanted<'_>, past: &Background) -> Vec<Shaper> {
    let mut found: Vec<(PathBuf, Metadata)> = Vec::new();
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut next: Vec<(PathBuf, u32)> =
        files_of(wanted.line, wanted.around).into_iter().map(|file| (PathBuf::from(file), 0)).collect();
    while let Some((file, depth)) = next.pop() {
        if found.len() >= FILES_MAX || !seen.insert(file.clone()) {
            continue;
        }
        let Some(meta) = file.metadata().ok().filter(Metadata::is_file) else { continue };
        if depth < DEPTH_MAX {
            next.extend(brings_in(&file, Path::new(&wanted.around.cwd)).into_iter().map(|file| (file, depth + 1)));
        }
        found.push((file, meta));
    }
    let stamps: Vec<(PathBuf, Stamp)> = found.into_iter().map(|(file, meta)| (file, Stamp::of(&meta))).collect();
    written_by_others(stamps, past, Some(wanted.by), wanted.is_human)
}

/// Of these files those that others wrote. What is told by time is remembered: a rename does not change it then. Blocks.
pub(super) fn written_by_others(
    stamps: Vec<(PathBuf, Stamp)>,
    past: &Background,
    me: Option<&Actor>,
    is_human: bool,
) -> Vec<Shaper> {
    let oldest = stamps.iter().map(|(_, stamp)| stamp.changed_ms()).filter(|at| *at >= past.since_ms).min();
    // Most files are older than the session: nobody looks into the journal for them.
    let times = oldest.map(|since_ms| Times::read(past.session, &past.spans, &past.journal, since_ms));
    let mut all = Vec::new();
    for (path, stamp) in stamps {
        let name = path.to_string_lossy().into_owned();
        let Some(mut writer) = writer_of(&name, stamp, past, times.as_ref(), me) else { continue };
        let is_mine = me.is_some_and(|me| writer.actor.as_ref().is_some_and(|actor| actor.id == me.id));
        if is_mine || (writer.actor.is_none() && is_human) {
            continue;
        }
        writer.name = name;
        all.push(writer);
    }
    all
}

/// Who wrote a file; none: it was there before the session.
fn writer_of(
    name: &str,
    stamp: Stamp,
    past: &Background,
    times: Option<&Times<'_>>,
    me: Option<&Actor>,
) -> Option<Shaper> {
    let guessed = times.filter(|_| stamp.changed_ms() >= past.since_ms).map(|times| times.of(stamp.changed_ms()));
    let recorded = {
        let writes = past.writes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writes.writer(&stamp).map(|(known, is_untouched)| (known.clone(), is_untouched))
    };
    let shaper = |actor, act, known: &str| Shaper {
        by: Channel::File,
        name: String::new(),
        actor,
        act,
        known: known.into(),
        at_ms: stamp.changed_ms(),
    };
    let of_record = |known: Written| {
        let act = known.act.filter(|_| known.session == past.session);
        shaper(Some(known.actor), act, &known.known)
    };
    match recorded {
        Some((known, true)) => Some(of_record(known)),
        // Renamed, or its time was put back: whoever may have done that counts too.
        Some((known, false)) => {
            let is_mine = me.is_some_and(|me| me.id == known.actor.id);
            let is_others =
                |guess: &Guess| guess.actor.as_ref().is_some_and(|actor| me.is_none_or(|me| me.id != actor.id));
            match guessed.filter(|guess| is_mine && is_others(guess)) {
                Some(guess) => Some(shaper(guess.actor, guess.act, guess.known)),
                None => Some(of_record(known)),
            }
        }
        None => {
            let guess = guessed?;
            if let Some(actor) = &guess.actor {
                let (session, known) = (past.session, guess.known.to_owned());
                let written =
                    Written { stamp, path: name.into(), actor: actor.clone(), act: guess.act, session, known };
                past.writes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).note(written);
            }
            Some(shaper(guess.actor, guess.act, guess.known))
        }
    }
}

/// Files that a script brings in: modules of Python beside it, what a shell script sources, what a Makefile includes.
fn brings_in(file: &Path, cwd: &Path) -> Vec<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let dir = file.parent().unwrap_or(cwd);
    let is_make = name.to_lowercase().ends_with("makefile") || name.ends_with(".mk");
    let mut text = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(READ_BYTES_MAX).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().next().unwrap_or_default();
    let is_python = name.ends_with(".py") || (first.starts_with("#!") && first.contains("python"));
    let is_shell = name.ends_with("sh") || (first.starts_with("#!") && first.trim_end().ends_with("sh"));
    let mut all = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
        match words.next() {
            Some("import") if is_python => {
                words.take_while(|word| *word != "as").for_each(|module| all.extend(module_files(dir, module)));
            }
            Some("from") if is_python => {
                words.next().into_iter().for_each(|module| all.extend(module_files(dir, module)))
            }
            Some("." | "source") if is_shell => {
                let path = words.next().unwrap_or_default().trim_matches(['"', '\'']);
                all.extend([cwd.join(path), dir.join(path)]);
            }
            Some("include" | "-include") if is_make => all.extend(words.map(|path| dir.join(path))),
            _ => {}
        }
    }
    all.truncate(FILES_MAX);
    all
}

fn module_files(dir: &Path, module: &str) -> Vec<PathBuf> {
    let path = module.trim_start_matches('.').trim_end_matches(';').replace('.', "/");
    if path.is_empty() {
        return Vec::new();
    }
    vec![dir.join(format!("{path}.py")), dir.join(path).join("__init__.py")]
}
