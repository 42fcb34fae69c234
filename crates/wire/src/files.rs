//! Files of a session's working tree: listing, reading, and writes that are acts.

use holdfast_types::{Handle, Hash, TimeMs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest piece of a file in one answer: a tenth of a second on a slow line, and nothing that a host notices.
pub const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Largest file that `files.write` and `files.edit` take: one request with room for its JSON. What is larger is uploaded in pieces.
pub const WRITE_BYTES_MAX: usize = 7 * 1024 * 1024;
/// Largest piece of an upload.
pub const UPLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest piece that the host takes from a descriptor of a local client: a tenth of a second's copying, so that progress is seen.
pub const TAKEN_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Largest file that is known by its SHA-256: 30 ms of hashing.
pub const SHA256_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Entries of a directory in one answer.
pub const ENTRIES_MAX: u32 = 1_000;
/// Longest path.
pub const PATH_BYTES_MAX: usize = 4096;
/// Longest diff in an answer: more than a person reads.
pub const DIFF_BYTES_MAX: usize = 64 * 1024;

/// Which directory to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesListParams {
    /// Name or id.
    pub session: String,
    /// A path from the session's live working directory on, or an absolute one; left out: that directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Entries of this page, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device, which is never opened.
    Special,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Its name; where that is not UTF-8, the nearest text.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes in it.
    pub size: u64,
    /// When it last changed.
    pub modified_ms: TimeMs,
    /// Its permissions, as in chmod(1).
    pub mode: u32,
    /// Where a link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A page of a directory, in the order of the names' bytes; for a file, its one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesListAnswer {
    /// The directory, or the file, without links.
    pub path: String,
    /// The top of the working tree: nothing above it can be reached.
    pub root: String,
    /// The session's live working directory, where it is in that tree.
    pub cwd: String,
    /// It is a directory.
    pub is_dir: bool,
    /// This page.
    pub entries: Vec<FileEntry>,
    /// Where the next page begins; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which part of a file to read.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesReadParams {
    /// Name or id.
    pub session: String,
    /// A path from the session's live working directory on, or an absolute one.
    pub path: String,
    /// The first byte.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// Bytes of this piece, at most 4 MiB; left out: as many as that. 0 tells size and etag alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The file as it was read before; where it is another by now, the answer is `file_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A piece of a file; its bytes belong to the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesReadAnswer {
    /// The file, without links.
    pub path: String,
    /// Bytes in the whole file.
    pub size: u64,
    /// When it last changed.
    pub modified_ms: TimeMs,
    /// Its permissions, as in chmod(1).
    pub mode: u32,
    /// Changes whenever the file does.
    pub etag: String,
    /// The first byte of this piece.
    pub offset: u64,
    /// The file ends with this piece.
    pub end: bool,
}

/// A file to write, whole; its bytes belong to the question.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesWriteParams {
    /// Name or id.
    pub session: String,
    /// A path from the session's live working directory on, or an absolute one.
    pub path: String,
    /// The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Write only while the file has this etag, from `files.read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Write only where there is no file yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
}

/// What to replace in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesEditParams {
    /// Name or id.
    pub session: String,
    /// A path from the session's live working directory on, or an absolute one.
    pub path: String,
    /// The text that is there now. It must be there exactly once.
    pub old: String,
    /// What stands there after.
    pub new: String,
}

/// What an edit came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesEditAnswer {
    /// The write.
    pub change: FileChange,
    /// What it changed, as a unified diff.
    pub diff: String,
}

/// A piece of an upload; its bytes belong to the question. The same session, path, size and tag are the same upload: whoever was cut
/// off asks without bytes where it stands, and goes on from there.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesUploadParams {
    /// Name or id.
    pub session: String,
    /// A path from the session's live working directory on, or an absolute one.
    pub path: String,
    /// Bytes in the whole file.
    pub size: u64,
    /// What tells this content from another of the same size: 1 to 64 letters and digits of the caller's choice.
    pub tag: String,
    /// Where this piece begins; left out: tell how far the upload is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// A descriptor of the asking process, from which the host takes the piece itself. For clients at the host's own socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<u32>,
    /// Everything was sent: put the file in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finish: bool,
    /// The SHA-256 of the whole file. Where what arrived has another, it is thrown away. A file of more than 64 MiB is read once more for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The permissions of a new file, as in chmod(1); left out: 0644. A file that exists keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// How far an upload is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesUploadAnswer {
    /// Bytes that arrived: the next piece begins here.
    pub offset: u64,
    /// The write, once it was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
}

/// Whose last write to undo.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesUndoParams {
    /// Name or id.
    pub session: String,
    /// The file; left out: the one you wrote last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// How a file was hashed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HashKind {
    /// SHA-256: files of at most 64 MiB.
    #[default]
    Sha256,
    /// BLAKE3, with 32 bytes: larger files, whose SHA-256 takes longer than all the rest of a transfer.
    Blake3,
}

impl HashKind {
    /// How a file of this size is hashed.
    #[must_use]
    pub fn of_size(bytes: u64) -> HashKind {
        if bytes > SHA256_BYTES_MAX { HashKind::Blake3 } else { HashKind::Sha256 }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HashKind::Sha256 => "sha256",
            HashKind::Blake3 => "blake3",
        }
    }

    fn is_sha256(&self) -> bool {
        *self == HashKind::Sha256
    }
}

/// Which writes to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesChangesParams {
    /// Name or id.
    pub session: String,
}

/// A write to a file through the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Its number in the session.
    pub id: u64,
    /// The file, without links.
    pub path: String,
    /// Who wrote it.
    pub by: Handle,
    /// When.
    pub at_ms: TimeMs,
    /// The hash before; absent: there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// How that was hashed; absent: SHA-256.
    #[serde(default, skip_serializing_if = "HashKind::is_sha256")]
    pub before_kind: HashKind,
    /// The hash after; absent: there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// How that was hashed; absent: SHA-256.
    #[serde(default, skip_serializing_if = "HashKind::is_sha256")]
    pub after_kind: HashKind,
    /// Bytes in the file after.
    pub size: u64,
    /// The bytes before are kept: it can be undone.
    pub can_undo: bool,
    /// The bytes before and after are kept: it can be shown as a diff.
    pub can_diff: bool,
    /// The number of the write that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
}

/// Which write to show.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesDiffParams {
    /// Name or id.
    pub session: String,
    /// Its number.
    pub change: u64,
}

/// What a write changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesDiffAnswer {
    /// The write.
    pub change: FileChange,
    /// What it changed, as a unified diff; absent: the bytes are not kept, or are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// A write as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The file, without links.
    pub path: String,
    /// The hash before; none: there was no file.
    pub before: Option<Hash>,
    /// How that was hashed; absent, and in records of earlier versions: SHA-256.
    #[serde(default, skip_serializing_if = "HashKind::is_sha256")]
    pub before_kind: HashKind,
    /// The hash after; none: there is no file.
    pub after: Option<Hash>,
    /// How that was hashed.
    #[serde(default, skip_serializing_if = "HashKind::is_sha256")]
    pub after_kind: HashKind,
    /// Bytes in the file after.
    pub size: u64,
}

impl Written {
    /// As it is recorded.
    #[must_use]
    pub fn detail(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers always serialise")
    }

    /// From a record; none: it is of another form.
    #[must_use]
    pub fn read(detail: &str) -> Option<Written> {
        serde_json::from_str(detail).ok()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
