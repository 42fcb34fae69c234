//! `holdfast files`: files of a session's working tree.

mod edit;
mod get;
mod progress;

pub use progress::Progress;
mod put;

use crate::args::{FilePlace, FilesCommand, FilesLsArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{bytes, moment, now_ms, print, print_json, table, visible};
use holdfast_types::{Hash, SessionId};
use holdfast_wire::files::{
    FileChange, FileEntry, FileKind, FilesChangesParams, FilesDiffParams, FilesListAnswer, FilesListParams,
    FilesUndoParams,
};
use holdfast_wire::operations::op;

/// `holdfast files`.
pub fn files(here: &Here, command: &FilesCommand) -> Result<u8, Failure> {
    match command {
        FilesCommand::Ls(args) => list(here, args),
        FilesCommand::Get(args) => get::get(here, args),
        FilesCommand::Put(args) => put::put(here, &args.from, &args.of.place),
        FilesCommand::Edit(args) => edit::edit(here, args),
        FilesCommand::Undo(args) => undo(here, &args.place),
        FilesCommand::Changes(args) => changes(here, &args.session),
        FilesCommand::Diff(args) => diff(here, &args.of.session, args.change),
    }
}

/// A session, by what a person calls it.
fn session_of(link: &mut Link<'_>, name: &str) -> Result<SessionId, Failure> {
    link.get(name).map(|session| session.id)
}

fn list(here: &Here, args: &FilesLsArgs) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let FilePlace { session, path } = &args.of.place;
    let session = session_of(&mut link, session)?.to_string();
    let path = Some(path.clone()).filter(|path| !path.is_empty());
    let mut left = args.limit;
    let mut all: Option<FilesListAnswer> = None;
    loop {
        let after = all.as_ref().and_then(|all: &FilesListAnswer| all.next.clone());
        let params = FilesListParams { session: session.clone(), path: path.clone(), after, limit: left };
        let page = link.call::<op::FilesList>(&params)?;
        left = left.map(|left| left.saturating_sub(page.entries.len() as u32));
        let is_last = page.next.is_none();
        match &mut all {
            None => all = Some(page),
            Some(all) => {
                all.entries.extend(page.entries);
                all.next = page.next;
            }
        }
        if is_last || left == Some(0) {
            break;
        }
    }
    let Some(all) = all else { return Ok(0) };
    match here.json {
        true => print_json(&all)?,
        false => print(listed(&all, now_ms()))?,
    }
    Ok(0)
}

fn listed(all: &FilesListAnswer, now: u64) -> String {
    let row = |entry: &FileEntry| {
        let name = visible(&entry.name);
        let name = match (entry.kind, &entry.target) {
            (FileKind::Dir, _) => format!("{name}/"),
            (FileKind::Link, Some(target)) => format!("{name} -> {}", visible(target)),
            (FileKind::File | FileKind::Link | FileKind::Special, _) => name,
        };
        let size = if entry.kind == FileKind::File { bytes(entry.size) } else { "-".into() };
        vec![mode(entry), size, moment(entry.modified_ms, now), name]
    };
    let head = ["MODE", "SIZE", "MODIFIED", "NAME"].map(str::to_owned).to_vec();
    if all.entries.is_empty() {
        return format!("{} is empty\n", visible(&all.path));
    }
    let rows: Vec<_> = std::iter::once(head).chain(all.entries.iter().map(row)).collect();
    let mut text: String = table(&rows, None).into_iter().map(|line| line + "\n").collect();
    if all.next.is_some() {
        text.push_str("…\n");
    }
    text
}

/// As ls(1) shows it.
fn mode(entry: &FileEntry) -> String {
    let kind = match entry.kind {
        FileKind::File => '-',
        FileKind::Dir => 'd',
        FileKind::Link => 'l',
        FileKind::Special => '?',
    };
    let bit = |at: u32, letter: char| if entry.mode >> at & 1 == 1 { letter } else { '-' };
    let bits = (0..9).rev().map(|at| bit(at, ['x', 'w', 'r'][at as usize % 3]));
    std::iter::once(kind).chain(bits).collect()
}

fn undo(here: &Here, place: &FilePlace) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = session_of(&mut link, &place.session)?.to_string();
    let path = Some(place.path.clone()).filter(|path| !path.is_empty());
    // Once: asked twice it would undo two writes.
    let (change, _) = link.once::<op::FilesUndo>(&FilesUndoParams { session, path }, &[])?;
    told(here, &change)
}

fn changes(here: &Here, session: &str) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let session = session_of(&mut link, session)?.to_string();
    let all = link.call::<op::FilesChanges>(&FilesChangesParams { session })?;
    if here.json {
        print_json(&all)?;
        return Ok(0);
    }
    if all.is_empty() {
        print("no writes are remembered\n")?;
        return Ok(0);
    }
    let now = now_ms();
    let head = ["CHANGE", "WHEN", "WHO", "SIZE", "UNDO", "FILE"].map(str::to_owned).to_vec();
    let row = |change: &FileChange| {
        let size = if change.after.is_some() { bytes(change.size) } else { "removed".into() };
        let undo = match (change.undoes, change.can_undo) {
            (Some(undone), _) => format!("of {undone}"),
            (None, true) => "yes".into(),
            (None, false) => "no".into(),
        };
        let who = visible(&change.by.to_string());
        vec![change.id.to_string(), moment(change.at_ms, now), who, size, undo, visible(&change.path)]
    };
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    print(table(&rows, None).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn diff(here: &Here, session: &str, number: Option<u64>) -> Result<u8, Failure> {
    let mut link = here.link()?;
    let id = session_of(&mut link, session)?.to_string();
    let change = match number {
        Some(number) => number,
        None => {
            let all = link.call::<op::FilesChanges>(&FilesChangesParams { session: id.clone() })?;
            let none = || Failure::new("no_such_file", "no writes are remembered");
            all.first().ok_or_else(none)?.id
        }
    };
    let answer = link.call::<op::FilesDiff>(&FilesDiffParams { session: id, change })?;
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    match &answer.diff {
        Some(diff) => print(diff.lines().map(|line| visible(line) + "\n").collect::<String>())?,
        None => print("the bytes are not kept, or are no text\n")?,
    }
    Ok(0)
}

/// What became of a write.
fn told(here: &Here, change: &FileChange) -> Result<u8, Failure> {
    if here.json {
        print_json(change)?;
        return Ok(0);
    }
    let path = visible(&change.path);
    print(match (change.after, change.undoes) {
        (None, _) => format!("removed {path}\n"),
        (Some(_), Some(undone)) => format!("{path} is as it was before change {undone}\n"),
        (Some(after), None) => {
            format!("wrote {path}: {}, {} {}\n", bytes(change.size), change.after_kind.name(), short(after))
        }
    })?;
    Ok(0)
}

fn short(hash: Hash) -> String {
    hash.to_string()[..16].to_owned()
}
