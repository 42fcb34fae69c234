//! `list_files`, `read_file`, `write_file` and `edit_file`: files of a session's working tree.

use super::{Hints, LOOKS, Operate, Shown};
use crate::desk::Desk;
use crate::host::Host;
use crate::trouble::Trouble;
use holdfast_wire::files::{
    FileKind, FilesEditParams, FilesListParams, FilesReadParams, FilesWriteParams, WRITE_BYTES_MAX,
};
use holdfast_wire::operations::op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a file in one answer: what a model reads at once.
const READ_BYTES: u64 = 64 * 1024;
/// Entries of a directory in one answer.
const ENTRIES: u32 = 200;

/// Which directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListIn {
    /// Omitted: the session's directory.
    #[serde(default)]
    path: Option<String>,
    /// Session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
    /// `next` of the page before.
    #[serde(default)]
    after: Option<String>,
}

/// A page of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListOut {
    path: String,
    /// Names; those of directories end with a slash.
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Shown for ListOut {
    fn text(&self) -> String {
        let more = self.next.as_ref().map_or(String::new(), |next| format!("\nmore: after {next}"));
        format!("{}\n{}{more}", self.path, self.names.join("\n"))
    }
}

/// The tool.
pub struct List;

impl Operate for List {
    const NAME: &'static str = "list_files";
    const TITLE: &'static str = "List files";
    const DESCRIPTION: &'static str = "Lists a directory of a session's working tree: 200 names a page.";
    const HINTS: Hints = LOOKS;
    type In = ListIn;
    type Out = ListOut;

    async fn call<H: Host>(desk: &Desk<H>, input: ListIn) -> Result<ListOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?.id.to_string();
        let params = FilesListParams { session, path: input.path, after: input.after, limit: Some(ENTRIES) };
        let page = desk.ask::<op::FilesList>(params).await?;
        let slash = |kind| if kind == FileKind::Dir { "/" } else { "" };
        let names = page.entries.into_iter().map(|entry| entry.name + slash(entry.kind)).collect();
        Ok(ListOut { path: page.path, names, next: page.next })
    }
}

/// Which file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadIn {
    /// From the session's directory on.
    path: String,
    /// Session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
    /// First byte (default 0).
    #[serde(default)]
    offset: u64,
}

/// A piece of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadOut {
    text: String,
    /// Bytes in the file.
    size: u64,
    /// Where the rest begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

impl Shown for ReadOut {
    fn text(&self) -> String {
        match self.next {
            Some(next) => format!("{}\n[{} bytes in all; the rest from offset {next}]", self.text, self.size),
            None => self.text.clone(),
        }
    }
}

/// The tool.
pub struct Read;

impl Operate for Read {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a text file of a session's working tree, 64 KiB at a time.";
    const HINTS: Hints = LOOKS;
    type In = ReadIn;
    type Out = ReadOut;

    async fn call<H: Host>(desk: &Desk<H>, input: ReadIn) -> Result<ReadOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?.id.to_string();
        let ReadIn { path, offset, .. } = input;
        let params = FilesReadParams { session, path, offset, max: Some(READ_BYTES), etag: None };
        let (answer, mut bytes) = desk.ask_with_bytes::<op::FilesRead>(params, Vec::new()).await?;
        if bytes.contains(&0) {
            return Err(Trouble::new("not_a_file", format!("{} is no text", answer.path))
                .hint("Look at it with a command that knows its form."));
        }
        if !answer.end {
            // Not in the middle of a character.
            let cut = std::str::from_utf8(&bytes).err().filter(|error| error.error_len().is_none());
            bytes.truncate(cut.map_or(bytes.len(), |error| error.valid_up_to()));
        }
        let next = Some(offset + bytes.len() as u64).filter(|_| !answer.end);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(ReadOut { text, size: answer.size, next })
    }
}

/// What to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteIn {
    /// From the session's directory on.
    path: String,
    /// The whole content.
    #[serde(default)]
    text: String,
    /// Session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteOut {
    path: String,
    /// Bytes in it now.
    size: u64,
}

impl Shown for WriteOut {
    fn text(&self) -> String {
        format!("wrote {}: {} bytes", self.path, self.size)
    }
}

/// Writes can be undone, but not by another tool.
const WRITES: Hints = Hints { reads: false, destroys: true, once: true, open: false };

/// The tool.
pub struct Write;

impl Operate for Write {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str =
        "Writes a whole text file of a session's working tree. To change a part: edit_file.";
    const HINTS: Hints = WRITES;
    type In = WriteIn;
    type Out = WriteOut;

    async fn call<H: Host>(desk: &Desk<H>, input: WriteIn) -> Result<WriteOut, Trouble> {
        if input.text.len() > WRITE_BYTES_MAX {
            return Err(Trouble::new("too_large", "the text is too long").hint("Make it with a command."));
        }
        let session = desk.find_or_there(input.session.as_deref()).await?.id.to_string();
        let WriteIn { path, text, .. } = input;
        let params = FilesWriteParams { session, path, ..FilesWriteParams::default() };
        let (change, _) = desk.ask_with_bytes::<op::FilesWrite>(params, text.into_bytes()).await?;
        Ok(WriteOut { path: change.path, size: change.size })
    }
}

/// What to replace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditIn {
    /// From the session's directory on.
    path: String,
    /// Text that is in the file exactly once.
    old: String,
    /// What stands there after.
    #[serde(default)]
    new: String,
    /// Session. Omitted: your own.
    #[serde(default)]
    session: Option<String>,
}

/// What was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EditOut {
    /// As a unified diff.
    diff: String,
}

impl Shown for EditOut {
    fn text(&self) -> String {
        self.diff.clone()
    }
}

/// The tool.
pub struct Edit;

impl Operate for Edit {
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str =
        "Replaces one exact text in a file of a session's working tree, and answers with the diff.";
    const HINTS: Hints = Hints { once: false, ..WRITES };
    type In = EditIn;
    type Out = EditOut;

    async fn call<H: Host>(desk: &Desk<H>, input: EditIn) -> Result<EditOut, Trouble> {
        let session = desk.find_or_there(input.session.as_deref()).await?.id.to_string();
        let EditIn { path, old, new, .. } = input;
        let answer = desk.ask::<op::FilesEdit>(FilesEditParams { session, path, old, new }).await?;
        Ok(EditOut { diff: answer.diff })
    }
}
