//! Whether the session's shell itself cannot read a line. The gate asks a human about what its parser does not read; where the shell
//! does not read it either, there is nothing to ask about: nothing would run, and the actor is told why at once.
//!
//! The shell is started with `-n`: it reads commands and executes none. It gets the line on its input, never as an argument, which every
//! user of the machine could read.

use crate::shells::Kind;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// The name of the rule that such a line is refused by.
pub(super) const RULE: &str = "gate.syntax";
/// Of what the shell says: its first line, within this.
const SAID_BYTES_MAX: u64 = 4096;

/// What the shell says of a line that it cannot read; none where it can, or where that is not known. Blocks.
pub(super) fn refused(line: &str, shell: Kind) -> Option<String> {
    let words: &[&str] = match shell {
        // What people's startup files turn on, and what can make a line readable.
        Kind::Bash => &["bash", "--norc", "--noprofile", "-O", "extglob", "-n", "/dev/stdin"],
        Kind::Zsh => &["zsh", "-f", "-n", "/dev/stdin"],
        Kind::Fish => &["fish", "-N", "-n", "/dev/stdin"],
    };
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    // A line fits into a pipe or is read meanwhile; one that stops reading has said what is wrong.
    let _ = child.stdin.take()?.write_all(line.as_bytes());
    let mut said = String::new();
    let mut from = child.stderr.take()?;
    let _ = (&mut from).take(SAID_BYTES_MAX).read_to_string(&mut said);
    // It could not end while nobody reads the rest.
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    let failed = !child.wait().ok()?.success();
    let first = said.lines().next()?.trim_start_matches('~').trim_start_matches("/dev/stdin");
    failed.then(|| format!("{}{first}", words[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_the_shell_cannot_read_is_told_and_no_other_and_nothing_of_it_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let touched = dir.path().join("touched");
        let touch = format!("touch {}", touched.display());
        for shell in [Kind::Bash, Kind::Zsh, Kind::Fish] {
            for line in ["echo ) oops", "echo 'open", &format!("{touch}; echo )"), &format!("{touch}\necho )")] {
                let said = refused(line, shell).unwrap_or_else(|| panic!("{shell:?} reads {line}"));
                assert!(!said.contains("stdin") && said.len() < 200, "{said}");
            }
            for line in ["echo fine", &touch, &format!("echo $({touch})"), ""] {
                assert_eq!(refused(line, shell), None, "{shell:?}: {line}");
            }
        }
        assert_eq!(refused("rm !(x)", Kind::Bash), None, "readable where extglob is on");
        assert!(!touched.exists());
    }
}
