//! The user of this process, as the system's directories know it: the password file, LDAP, sssd.

use rustix::process::getuid;
use uzers::os::unix::UserExt;

/// What the system says of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The home directory; may be empty.
    pub home: String,
    /// The login shell; may be empty.
    pub shell: String,
}

/// The user of this process; none where no directory knows it. One across a network may take its time.
#[must_use]
pub fn find() -> Option<User> {
    by_id(getuid().as_raw())
}

fn by_id(uid: u32) -> Option<User> {
    let user = uzers::get_user_by_uid(uid)?;
    Some(User {
        name: user.name().to_str()?.to_owned(),
        home: user.home_dir().to_str()?.to_owned(),
        shell: user.shell().to_str()?.to_owned(),
    })
}

/// Another user, as whom a session can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The name and the home.
    pub user: User,
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// All groups it is in.
    pub groups: Vec<u32>,
}

/// A user by its name.
#[must_use]
pub fn by_name(name: &str) -> Option<Other> {
    let user = uzers::get_user_by_name(name)?;
    let (uid, gid) = (user.uid(), user.primary_group_id());
    let groups = uzers::get_user_groups(name, gid)?.iter().map(uzers::Group::gid).collect();
    Some(Other { user: by_id(uid)?, uid, gid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_user_is_who_the_system_says_it_is() {
        for uid in [0, getuid().as_raw(), 65534] {
            let entry = Command::new("getent").args(["passwd", &uid.to_string()]).output().unwrap();
            let entry = String::from_utf8(entry.stdout).unwrap();
            let said = match entry.trim_end().split(':').collect::<Vec<_>>()[..] {
                [name, _, _, _, _, home, shell] => {
                    Some(User { name: name.into(), home: home.into(), shell: shell.into() })
                }
                _ => None,
            };
            assert_eq!(by_id(uid), said, "{uid}: {entry}");
        }
        assert_eq!(by_id(0).map(|user| user.name).as_deref(), Some("root"));
        assert_eq!(by_id(4_000_000_123), None);
    }
}
