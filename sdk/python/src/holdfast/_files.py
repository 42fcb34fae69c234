"""Files of a session's working tree, for `async` code."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .types import (
    FileChange,
    FileEntry,
    FilesDiffAnswer,
    FilesEditAnswer,
    FilesListAnswer,
    FilesReadAnswer,
    FilesUploadAnswer,
)

if TYPE_CHECKING:
    from ._session import Session

Entries: TypeAlias = list[FileEntry]
Changes: TypeAlias = list[FileChange]

WRITE_BYTES_MAX = 4 * 1024 * 1024
"""What is longer is sent in pieces of so many bytes."""


@dataclass(frozen=True)
class FileEvent:
    """Something that happened to an entry of a directory."""

    kind: Literal["created", "changed", "removed"]
    entry: FileEntry


class Files:
    """Files of a session. Paths are from its live working directory on, and do not leave its working tree."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def _ask(self, method: str, params: dict[str, Any], data: bytes = b"", answer: Any = Any) -> tuple[Any, bytes]:
        session = self._session
        found: tuple[Any, bytes] = await session.client._ask(method, {"session": session.id, **params}, data, answer)
        return found

    async def list(self, path: str | None = None) -> Entries:
        """Lists a directory; of a file, its own entry."""
        entries: Entries = []
        after: str | None = None
        while True:
            page: FilesListAnswer
            page, _ = await self._ask("files.list", {"path": path, "after": after}, answer=FilesListAnswer)
            entries += page.entries
            after = page.next
            if after is None:
                return entries

    async def read(self, path: str) -> bytes:
        """Reads a whole file. Raises `FileChanged` where somebody writes it meanwhile."""
        parts = []  # pieces, in order
        offset, etag = 0, None
        while True:
            params = {"path": path, "offset": offset, "etag": etag}
            about: FilesReadAnswer
            about, data = await self._ask("files.read", params, answer=FilesReadAnswer)
            parts.append(data)
            offset, etag = offset + len(data), about.etag
            if about.end or not data:
                return b"".join(parts)

    async def read_text(self, path: str) -> str:
        """Reads a whole file as UTF-8."""
        return (await self.read(path)).decode()

    async def write(self, path: str, data: str | bytes, *, new: bool = False, mode: int | None = None) -> FileChange:
        """Writes a whole file at once. With `new` it must not exist yet."""
        content = data.encode() if isinstance(data, str) else bytes(data)
        if new or len(content) <= WRITE_BYTES_MAX:
            params = {"path": path, "new": new or None, "mode": mode}
            change, _ = await self._ask("files.write", params, content, FileChange)
            return change  # type: ignore[no-any-return]
        upload = {"path": path, "size": len(content), "tag": secrets.token_hex(16), "mode": mode}
        offset = 0
        while offset < len(content):
            piece = content[offset : offset + WRITE_BYTES_MAX]
            answer: FilesUploadAnswer
            answer, _ = await self._ask("files.upload", {**upload, "offset": offset}, piece, FilesUploadAnswer)
            offset = answer.offset
        answer, _ = await self._ask("files.upload", {**upload, "finish": True}, answer=FilesUploadAnswer)
        assert answer.change is not None
        return answer.change

    async def edit(self, path: str, old: str, new: str) -> FilesEditAnswer:
        """Replaces a text that is in the file exactly once."""
        found: FilesEditAnswer
        found, _ = await self._ask("files.edit", {"path": path, "old": old, "new": new}, answer=FilesEditAnswer)
        return found

    async def undo(self, path: str | None = None) -> FileChange:
        """Undoes your last write, where the bytes before it are kept."""
        found: FileChange
        found, _ = await self._ask("files.undo", {"path": path}, answer=FileChange)
        return found

    async def changes(self) -> Changes:
        """The last writes through the host, newest first."""
        found: Changes
        found, _ = await self._ask("files.changes", {}, answer=Changes)
        return found

    async def diff(self, change: FileChange | int) -> str | None:
        """What a write changed, where the bytes are kept."""
        number = change if isinstance(change, int) else change.id
        found: FilesDiffAnswer
        found, _ = await self._ask("files.diff", {"change": number}, answer=FilesDiffAnswer)
        return found.diff

    async def watch(self, path: str | None = None, *, interval: float = 1.0) -> AsyncIterator[FileEvent]:
        """What happens to the entries of a directory from now on. It is looked at every `interval` seconds."""
        before = {entry.name: entry for entry in await self.list(path)}
        while True:
            await asyncio.sleep(interval)
            now = {entry.name: entry for entry in await self.list(path)}
            for name, entry in now.items():
                if name not in before:
                    yield FileEvent("created", entry)
                elif entry != before[name]:
                    yield FileEvent("changed", entry)
            for name, entry in before.items():
                if name not in now:
                    yield FileEvent("removed", entry)
            before = now
