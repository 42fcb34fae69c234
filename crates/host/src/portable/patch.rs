//! Changed text files as a unified diff.

use super::branch::Branch;
use super::files::{self, Change, Found};
use holdfast_wire::forks::{ForkDiffAnswer, HowChanged};
use similar::TextDiff;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A longer file is not compared line by line.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A longer patch is cut at a file: a person reads none of it.
const PATCH_BYTES_MAX: usize = 16 << 20;
/// How long the lines of one file are compared: what is hard to compare is then told in larger pieces.
const COMPARE_MAX: Duration = Duration::from_millis(500);

/// A branch: its directory, and how it is one.
pub(super) type Side = (PathBuf, Branch);

/// What differs, with the patch if that is wanted. Blocks.
pub(super) fn answer(one: &Side, other: Option<&Side>, patch: bool) -> std::io::Result<ForkDiffAnswer> {
    let found = match other {
        None => files::changes(&one.0, &one.1)?,
        Some(other) => files::between((&one.0, &one.1), (&other.0, &other.1))?,
    };
    let text = patch.then(|| {
        unified(&found, |path| match other {
            None => fs::symlink_metadata(path).is_ok().then(|| path.to_owned()),
            Some(_) => files::place(&one.0, &one.1, path),
        })
    });
    let changes = found.changes.iter().map(Change::view).collect();
    let is_cut = text.as_ref().is_some_and(|(_, is_cut)| *is_cut);
    Ok(ForkDiffAnswer { changes, more: found.more || is_cut, patch: text.map(|(text, _)| text) })
}

/// The patch, and whether it was cut.
fn unified(found: &Found, before: impl Fn(&Path) -> Option<PathBuf>) -> (String, bool) {
    let mut text = String::new();
    for change in found.changes.iter().filter(|change| !change.is_dir && change.how != HowChanged::Attributes) {
        let name = change.path.display().to_string();
        let name = name.trim_start_matches('/');
        let old = before(&change.path).filter(|_| change.how != HowChanged::Created);
        let (was, is) = (old.as_deref().map(read), change.at.as_deref().map(read));
        if [&was, &is].into_iter().flatten().any(|side| matches!(side, Content::Other)) {
            text.push_str(&format!("Files a/{name} and b/{name} differ, and are no text\n"));
        } else {
            let lines = |side: &Option<Content>| side.as_ref().map_or_else(String::new, Content::text);
            let head = |side: &Option<Content>, letter: &str| match side {
                None => "/dev/null".to_owned(),
                Some(_) => format!("{letter}/{name}"),
            };
            let (was_text, is_text) = (lines(&was), lines(&is));
            let diff = TextDiff::configure().timeout(COMPARE_MAX).diff_lines(&was_text, &is_text);
            let mut shown = diff.unified_diff();
            text.push_str(&shown.context_radius(3).header(&head(&was, "a"), &head(&is, "b")).to_string());
        }
        if text.len() > PATCH_BYTES_MAX {
            return (text, true);
        }
    }
    (text, false)
}

/// What is in a file.
#[derive(Debug)]
enum Content {
    Text(String),
    /// No text, too long, or no plain file.
    Other,
}

impl Content {
    fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Other => String::new(),
        }
    }
}

fn read(path: &Path) -> Content {
    let mut bytes = Vec::new();
    let Ok(file) = files::open_plain(path) else { return Content::Other };
    match file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 <= FILE_BYTES_MAX && !bytes.contains(&0) => {
            String::from_utf8(bytes).map_or(Content::Other, Content::Text)
        }
        _ => Content::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_are_shown_line_by_line_and_others_by_name_alone() {
        let home = tempfile::tempdir().unwrap();
        let (real, dir) = (home.path().join("real"), home.path().join("branch"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("text"), "one\ntwo\nthree\n").unwrap();
        fs::write(real.join("bytes"), [1, 0, 2]).unwrap();
        let branch = files::tests::branch(&real);
        branch.make(&dir).unwrap();
        let upper = Branch::upper(&dir, 0);
        fs::write(upper.join("text"), "one\n2\nthree\n").unwrap();
        fs::write(upper.join("bytes"), [1, 0, 3]).unwrap();
        fs::write(upper.join("new"), "made\n").unwrap();
        let answer = answer(&(dir, branch), None, true).unwrap();
        let root = real.display().to_string();
        let shown = answer.patch.unwrap().replace(root.trim_start_matches('/'), "R");
        let expected = "Files a/R/bytes and b/R/bytes differ, and are no text\n\
                        --- /dev/null\n+++ b/R/new\n@@ -0,0 +1 @@\n+made\n\
                        --- a/R/text\n+++ b/R/text\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        assert_eq!(shown, expected);
    }
}
