//! What lies in a home is for its user alone, whatever the umask of who starts the host.

use holdfast_harness::Home;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything below a directory, links as they are.
fn below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), found);
        }
    }
}

#[test]
fn sockets_and_files_are_for_the_user_alone_whatever_the_umask() {
    let home = Home::new();
    let start = home.command(&["new", "-d", "-n", "work", "--", "/bin/sh", "-c", "exec cat"]);
    let mut open = Command::new("/bin/sh");
    open.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(start.get_program()).args(start.get_args()).env_clear();
    open.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(home.path());
    assert!(open.status().unwrap().success());
    home.ok(&["token", "new"]);
    let mut all = Vec::new();
    below(home.path(), &mut all);
    let mut sockets = 0;
    for path in all {
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        let kind = meta.file_type();
        sockets += usize::from(kind.is_socket());
        if kind.is_socket() || path.extension().is_none_or(|end| end != "pub") && kind.is_file() {
            assert_eq!(meta.mode() & 0o077, 0, "{} is {:o}", path.display(), meta.mode() & 0o777);
        }
    }
    assert_eq!(sockets, 2, "the host's and the keeper's");
}
