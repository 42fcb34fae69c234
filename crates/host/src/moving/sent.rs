//! Which files of a session's directory are sent: by name, the same list at both ends. Nothing else becomes a path.

use super::carried;
use crate::portable::kept;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files that may be sent: an image has a few for each process.
pub(super) const FILES_MAX: usize = 1 << 16;
/// Keys of runs, which lie beside the sessions.
pub(super) const KEYS: &str = "keys";
/// Longest name of a file.
const NAME_BYTES_MAX: usize = 200;
/// Single files: what the session is, its past, what its shell and the host share, its init.
const WHOLE: [&str; 12] = [
    "spec",
    "birth",
    "keyframe",
    "journal-last",
    "env",
    "runs",
    "questions",
    "stderr",
    "shell.jsonl",
    "shell.key",
    "portable",
    carried::NAME,
];
/// Numbered files.
const NUMBERED: [&str; 3] = ["history.", "journal.", "journal-kept-"];
/// Of a checkpoint, beside its image.
pub(super) const BESIDE: [&str; 3] = ["manifest", "screen", "input"];

/// A name that is one part of a path, and none that means something else.
pub(super) fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits)
}

fn is_of_session(name: &str) -> bool {
    let numbered = |start: &str| {
        let digits = name.strip_prefix(start);
        digits.is_some_and(|rest| (1..=20).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    WHOLE.contains(&name) || NUMBERED.iter().any(|start| numbered(start))
}

/// Whether a file with this path below the session's directory may be sent with this checkpoint.
pub(super) fn is_sent(path: &str, checkpoint: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [name] => is_of_session(name) || *name == KEYS,
        ["shell", name] => is_plain(name),
        ["checkpoints", id, name] => *id == checkpoint && kept::is_id(id) && BESIDE.contains(name),
        ["checkpoints", id, "img", name] => *id == checkpoint && kept::is_id(id) && is_plain(name),
        _ => false,
    }
}

/// Copies what may change of a session into `to`: where each file is that will be sent, by its path. Blocks.
pub(super) fn take(dir: &Path, checkpoint: &str, to: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut all = Vec::new();
    holdfast_store::make_dir(&to.join("shell"))?;
    let mut copy = |path: String| -> io::Result<()> {
        let (from, copied) = (dir.join(&path), to.join(&path));
        if fs::symlink_metadata(&from)?.file_type().is_file() {
            fs::copy(&from, &copied)?;
            all.push((path, copied));
        }
        Ok(())
    };
    for name in plain_names(dir)?.filter(|name| is_of_session(name) && name != carried::NAME) {
        copy(name)?;
    }
    if dir.join("shell").is_dir() {
        plain_names(&dir.join("shell"))?.try_for_each(|name| copy(format!("shell/{name}")))?;
    }
    for name in [carried::NAME, KEYS] {
        all.push((name.to_owned(), to.join(name)));
    }
    let place = format!("checkpoints/{checkpoint}");
    all.extend(BESIDE.map(|name| (format!("{place}/{name}"), dir.join(&place).join(name))));
    for name in plain_names(&kept::image(dir, checkpoint))? {
        all.push((format!("{place}/img/{name}"), kept::image(dir, checkpoint).join(&name)));
    }
    match all.iter().find(|(path, _)| !is_sent(path, checkpoint)) {
        Some((odd, _)) => Err(io::Error::other(format!("{odd} cannot be sent"))),
        None => Ok(all),
    }
}

fn plain_names(dir: &Path) -> io::Result<impl Iterator<Item = String>> {
    let names = fs::read_dir(dir)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| is_plain(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_files_of_a_session_and_one_checkpoint_is_sent() {
        let id = "ckp_0123456789ab";
        for good in
            ["spec", "history.0", "journal.12", "journal-kept-3", "journal-last", "shell/hook", "portable", "keys"]
        {
            assert!(is_sent(good, id), "{good}");
        }
        assert!(is_sent("checkpoints/ckp_0123456789ab/img/pages-1.img.lz4", id));
        assert!(is_sent("checkpoints/ckp_0123456789ab/manifest", id));
        for bad in [
            "",
            "/etc/passwd",
            "../spec",
            "moved",
            "ring",
            "history.",
            "history.1x",
            "shell/../spec",
            "shell/.x",
            "shell/a/b",
            "checkpoints/ckp_0123456789ab/img/../../../x",
            "checkpoints/ckp_0123456789ab/still",
            "checkpoints/ckp_aaaaaaaaaaaa/manifest",
            "checkpoints//manifest",
            "journal.1/x",
            "spec\0",
        ] {
            assert!(!is_sent(bad, id), "{bad}");
        }
        assert!(!is_sent("checkpoints/../manifest", ".."));
    }
}
