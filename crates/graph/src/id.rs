//! Names that stay the same from one snapshot to the next, so that two can be compared. They travel as text.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process: `p<pid>-<start>`. The kernel gives the pid to another one later, but not with the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessId {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// A socket: `s<inode>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct SocketId(pub u64);

/// A pipe: `f<inode>`; one with a name in a file system has that file system's device too: `f<inode>@<major>:<minor>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct PipeId {
    /// Its inode.
    pub inode: u64,
    /// Whose inodes it is counted among, if it has a name.
    pub device: Option<(u32, u32)>,
}

/// What a descriptor leads to: the id of a socket or a pipe of the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Target {
    /// A socket.
    Socket(SocketId),
    /// A pipe.
    Pipe(PipeId),
}

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoId(String);

impl fmt::Display for NoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid id {:?}", self.0)
    }
}

impl std::error::Error for NoId {}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}-{}", self.pid, self.start)
    }
}

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for PipeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            None => write!(f, "f{}", self.inode),
            Some((major, minor)) => write!(f, "f{}@{major}:{minor}", self.inode),
        }
    }
}

impl From<ProcessId> for String {
    fn from(id: ProcessId) -> String {
        id.to_string()
    }
}

impl From<SocketId> for String {
    fn from(id: SocketId) -> String {
        id.to_string()
    }
}

impl From<PipeId> for String {
    fn from(id: PipeId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for ProcessId {
    type Error = NoId;

    fn try_from(text: String) -> Result<ProcessId, NoId> {
        let parts = text.strip_prefix('p').and_then(|rest| rest.split_once('-'));
        let id = parts.and_then(|(pid, start)| Some(ProcessId { pid: pid.parse().ok()?, start: start.parse().ok()? }));
        id.ok_or(NoId(text))
    }
}

impl TryFrom<String> for SocketId {
    type Error = NoId;

    fn try_from(text: String) -> Result<SocketId, NoId> {
        let id = text.strip_prefix('s').and_then(|inode| inode.parse().ok()).map(SocketId);
        id.ok_or(NoId(text))
    }
}

impl TryFrom<String> for PipeId {
    type Error = NoId;

    fn try_from(text: String) -> Result<PipeId, NoId> {
        fn parse(text: &str) -> Option<PipeId> {
            let rest = text.strip_prefix('f')?;
            let Some((inode, device)) = rest.split_once('@') else {
                return Some(PipeId { inode: rest.parse().ok()?, device: None });
            };
            let (major, minor) = device.split_once(':')?;
            Some(PipeId { inode: inode.parse().ok()?, device: Some((major.parse().ok()?, minor.parse().ok()?)) })
        }
        parse(&text).ok_or(NoId(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_travel_as_short_text_and_come_back() {
        let pipe = PipeId { inode: 9, device: Some((8, 1)) };
        let all = (ProcessId { pid: 7, start: 123 }, SocketId(5), [Target::Pipe(pipe), Target::Socket(SocketId(5))]);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text, r#"["p7-123","s5",["f9@8:1","s5"]]"#);
        assert_eq!(serde_json::from_str::<(ProcessId, SocketId, [Target; 2])>(&text).unwrap(), all);
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "p", "p1", "p1-", "p-1", "s", "sx", "f", "f1@", "f1@2", "q1"] {
            let text = text.to_owned();
            assert!(ProcessId::try_from(text.clone()).is_err(), "{text}");
            assert!(SocketId::try_from(text.clone()).is_err(), "{text}");
            assert!(PipeId::try_from(text.clone()).is_err(), "{text}");
        }
    }
}
