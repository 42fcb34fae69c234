//! The user of this process, by the password file.

use rustix::process::getuid;

/// What the password file says of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The home directory; may be empty.
    pub home: String,
    /// The login shell; may be empty.
    pub shell: String,
}

/// The user of this process; none where the file does not know it.
#[must_use]
pub fn find() -> Option<User> {
    let file = std::fs::read_to_string("/etc/passwd").ok()?;
    entry(&file, getuid().as_raw())
}

fn entry(file: &str, uid: u32) -> Option<User> {
    let uid = uid.to_string();
    file.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
        [name, _, id, _, _, home, shell] if id == uid => {
            Some(User { name: name.into(), home: home.into(), shell: shell.into() })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number_in_whole_lines_only() {
        let file = "broken:x:7\nann:x:7:7:Ann:/home/ann:/bin/zsh\nbot:x:8:8::/:\n";
        let ann = User { name: "ann".into(), home: "/home/ann".into(), shell: "/bin/zsh".into() };
        assert_eq!(entry(file, 7), Some(ann));
        assert_eq!(entry(file, 8).map(|user| user.shell), Some(String::new()));
        assert_eq!(entry(file, 9), None);
    }
}
