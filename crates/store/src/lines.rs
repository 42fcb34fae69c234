//! Files of JSON lines that grow: one line for each change of something; the last of a thing is what holds.
//!
//! The first line says kind and version. Each line ends with a checksum of itself, as its last field, so that it is still JSON; a line
//! without one is of version 1, or was. A line that is torn or damaged costs that change alone, and the next one begins on a line of
//! its own. A file that is mostly the past is [written anew](rewrite).

use crate::envelope::{Format, Unreadable};
use crate::sum::checksum;
use crate::whole::{Survives, replace};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Before a line's checksum, and behind it.
const SUM_START: &[u8] = b",\"sum\":\"";
const SUM_END: &[u8] = b"\"}";
const SUM_BYTES: usize = SUM_START.len() + 16 + SUM_END.len();
/// Longest first line.
const HEADER_BYTES_MAX: u64 = 128;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    holdfast: String,
    version: u32,
}

/// The lines of a file, in order; none where there is no file, or one longer than any of ours.
pub fn load<T: DeserializeOwned>(format: &Format, path: &Path, bytes_max: u64) -> Result<Vec<T>, Unreadable> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > bytes_max => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format.io(error)),
    }
    decode(format, &std::fs::read(path).map_err(|error| format.io(error))?)
}

/// The values in a file's bytes.
pub fn decode<T: DeserializeOwned>(format: &Format, bytes: &[u8]) -> Result<Vec<T>, Unreadable> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).peekable();
    if let Some(header) = lines.peek().and_then(|line| header(line)).filter(|header| header.holdfast == format.kind) {
        format.must_know(header.version)?;
        lines.next();
    }
    Ok(lines.filter_map(content).filter_map(|line| serde_json::from_slice(&line).ok()).collect())
}

/// A file with these values.
pub fn encode<'a, T: Serialize + 'a>(format: &Format, values: impl IntoIterator<Item = &'a T>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    put(&mut text, &Header { holdfast: format.kind.to_owned(), version: format.version })?;
    values.into_iter().try_for_each(|value| put(&mut text, value))?;
    Ok(text)
}

/// Writes what changed behind what is there, unless a later version wrote that. Gives the file's length.
pub fn append<T: Serialize>(format: &Format, path: &Path, values: &[T]) -> io::Result<u64> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length == 0 {
        text = encode(format, values)?;
    } else {
        refuse_newer(format, &file)?;
        let mut last = [0];
        file.read_exact_at(&mut last, length - 1)?;
        if last != *b"\n" {
            // A write that failed halfway.
            text.push(b'\n');
        }
        values.iter().try_for_each(|value| put(&mut text, value))?;
    }
    file.write_all(&text)?;
    Ok(length + text.len() as u64)
}

/// Writes a file anew with what still holds, unless a later version wrote it. Gives the file's length.
pub fn rewrite<'a, T: Serialize + 'a>(
    format: &Format,
    dir: &Path,
    name: &str,
    values: impl IntoIterator<Item = &'a T>,
) -> io::Result<u64> {
    if let Ok(file) = File::open(dir.join(name)) {
        refuse_newer(format, &file)?;
    }
    let text = encode(format, values)?;
    replace(dir, name, &text, Survives::Crash)?;
    Ok(text.len() as u64)
}

fn refuse_newer(format: &Format, file: &File) -> io::Result<()> {
    let mut start = vec![0; HEADER_BYTES_MAX as usize];
    let count = file.read_at(&mut start, 0)?;
    start.truncate(count);
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match header(line).filter(|header| header.holdfast == format.kind) {
        Some(header) => Ok(format.must_know(header.version)?),
        None => Ok(()),
    }
}

/// The first line, where it is one and sound.
fn header(line: &[u8]) -> Option<Header> {
    let sound = content(line).filter(|content| content.len() < line.len())?;
    serde_json::from_slice(&sound).ok()
}

/// A line of JSON with its checksum as last field.
fn put(text: &mut Vec<u8>, value: &impl Serialize) -> io::Result<()> {
    let start = text.len();
    serde_json::to_writer(&mut *text, value)?;
    let sum = checksum(&text[start..]);
    if text[start..].ends_with(b"}") {
        text.pop();
        text.extend_from_slice(SUM_START);
        text.extend_from_slice(format!("{sum:016x}").as_bytes());
        text.extend_from_slice(SUM_END);
    }
    text.push(b'\n');
    Ok(())
}

/// A line as it was before its checksum was added; none where it is damaged.
fn content(line: &[u8]) -> Option<Vec<u8>> {
    let cut = line.len().checked_sub(SUM_BYTES).filter(|at| line[*at..].starts_with(SUM_START));
    let Some(at) = cut else { return Some(line.to_vec()) };
    let sum = &line[at + SUM_START.len()..line.len() - SUM_END.len()];
    let content = [&line[..at], b"}"].concat();
    let is_sound = line.ends_with(SUM_END) && sum == format!("{:016x}", checksum(&content)).as_bytes();
    is_sound.then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: Format = Format { kind: "notes", version: 2 };

    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    struct Note {
        id: u32,
        text: String,
    }

    fn note(id: u32) -> Note {
        Note { id, text: format!("the {id}th, \"quoted\"\n{{}}") }
    }

    fn read(path: &Path) -> Vec<u32> {
        load::<Note>(&NOTES, path, 1 << 20).unwrap().iter().map(|note| note.id).collect()
    }

    #[test]
    fn lines_are_json_of_a_pinned_form() {
        let text = String::from_utf8(encode(&NOTES, &[note(1)]).unwrap()).unwrap();
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert_eq!(text.lines().next(), Some("{\"holdfast\":\"notes\",\"version\":2,\"sum\":\"45df6ddf841356d4\"}"));
    }

    #[test]
    fn what_was_appended_reads_back_and_a_torn_line_costs_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        assert_eq!(read(&path), [0; 0]);
        append(&NOTES, &path, &[note(1), note(2)]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let length = append(&NOTES, &path, &[note(3)]).unwrap();
        let all = std::fs::read(&path).unwrap();
        assert_eq!((length, read(&path)), (all.len() as u64, vec![1, 2, 3]));
        for cut in whole.len()..all.len() - 1 {
            std::fs::write(&path, &all[..cut]).unwrap();
            append(&NOTES, &path, &[note(4)]).unwrap();
            assert_eq!(read(&path), [1, 2, 4], "cut at {cut}");
        }
        assert_eq!(rewrite(&NOTES, dir.path(), "notes", &[note(9)]).unwrap(), std::fs::metadata(&path).unwrap().len());
        assert_eq!(read(&path), [9]);
        assert_eq!(load::<Note>(&NOTES, &path, 10).unwrap(), [], "longer than any of ours");
    }

    #[test]
    fn a_flipped_bit_costs_at_most_the_lines_it_is_in_and_never_gives_another_value() {
        let notes: Vec<Note> = (0..4).map(note).collect();
        let text = encode(&NOTES, &notes).unwrap();
        for bit in 0..text.len() * 8 {
            let mut bad = text.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = decode::<Note>(&NOTES, &bad).unwrap();
            assert!(read.len() >= 2, "bit {bit}: {read:?}");
            assert!(read.iter().all(|note| notes.contains(note)), "bit {bit}: {read:?}");
        }
        for cut in 0..text.len() {
            let read = decode::<Note>(&NOTES, &text[..cut]).unwrap();
            assert!(notes.starts_with(&read), "cut at {cut}");
        }
    }

    #[test]
    fn a_file_of_version_1_is_read_and_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        std::fs::write(&path, "{\"id\":1,\"text\":\"a\"}\n\n{\"id\":2,\"te\n{\"id\":3,\"text\":\"c\"}\n").unwrap();
        assert_eq!(read(&path), [1, 3]);
        append(&NOTES, &path, &[note(4)]).unwrap();
        assert_eq!(read(&path), [1, 3, 4]);
    }

    #[test]
    fn a_later_versions_file_is_told_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        append(&Format { version: 3, ..NOTES }, &path, &[note(1)]).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(load::<Note>(&NOTES, &path, 1 << 20), Err(Unreadable::Newer { found: 3, .. })));
        assert_eq!(append(&NOTES, &path, &[note(2)]).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(rewrite(&NOTES, dir.path(), "notes", &[note(2)]).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        // Where the version is what is damaged, the line says nothing.
        std::fs::write(&path, String::from_utf8(before).unwrap().replacen(":3", ":9", 1)).unwrap();
        assert_eq!(read(&path), [1]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut rng = fastrand::Rng::with_seed(11);
        let text = encode(&NOTES, &(0..3).map(note).collect::<Vec<_>>()).unwrap();
        for _ in 0..20_000 {
            let mut bytes = text.clone();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..bytes.len());
                match rng.u8(..3) {
                    0 => bytes[at] = rng.u8(..),
                    1 => drop(bytes.splice(at..at, b",\"sum\":\"".iter().copied())),
                    _ => bytes.truncate(at + 1),
                }
            }
            let _ = decode::<Note>(&NOTES, &bytes);
        }
    }
}
