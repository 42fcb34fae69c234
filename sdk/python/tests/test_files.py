"""Files of a session's working tree, against a real host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import PATIENCE_S, TestHome

import holdfast
from holdfast import aio, errors


async def test_files_are_listed_read_written_edited_and_undone(client: aio.Client, tmp_path: Path) -> None:
    session = await client.open("work", cwd=tmp_path)
    written = await session.files.write("a.txt", "one\n")
    assert (written.path, written.before, written.size) == (str(tmp_path / "a.txt"), None, 4)
    assert (tmp_path / "a.txt").read_text() == "one\n"
    edited = await session.files.edit("a.txt", "one", "two")
    assert "-one\n+two\n" in edited.diff and edited.change.before == written.after
    assert await session.files.read_text("a.txt") == "two\n"
    assert [entry.name for entry in await session.files.list()] == ["a.txt"]
    changes = await session.files.changes()
    assert [change.id for change in changes] == [2, 1]
    assert "+two" in (await session.files.diff(changes[0]) or "")
    await session.files.undo()
    assert (tmp_path / "a.txt").read_text() == "one\n"
    with pytest.raises(errors.FileChanged):
        await session.files.write("a.txt", "x", new=True)
    with pytest.raises(errors.OutsideRoot):
        await session.files.read("../x")
    with pytest.raises(errors.NoSuchFile):
        await session.files.read("nothing")


async def test_a_large_file_goes_in_pieces(client: aio.Client, tmp_path: Path) -> None:
    session = await client.open("large", cwd=tmp_path)
    content = bytes(range(256)) * 40_000
    await session.files.write("large", content)
    assert (tmp_path / "large").read_bytes() == content
    assert await session.files.read("large") == content


async def test_a_watched_directory_tells_what_changes(client: aio.Client, tmp_path: Path) -> None:
    session = await client.open("watched", cwd=tmp_path)
    (tmp_path / "old").write_text("x")
    events = session.files.watch(interval=0.05)
    first = asyncio.create_task(anext(events))
    # The first look comes before the first sleep.
    for number in range(1000):
        if first.done():
            break
        (tmp_path / "new").write_text(str(number))
        await asyncio.sleep(0.02)
    event = await asyncio.wait_for(first, PATIENCE_S)
    assert event.entry.name == "new" and event.kind in ("created", "changed")
    await events.aclose()  # type: ignore[attr-defined]


def test_the_same_without_async(home: TestHome, tmp_path: Path) -> None:
    with holdfast.connect() as client:
        session = client.open("sync", cwd=tmp_path)
        session.files.write("b", b"\0\1")
        assert session.files.read("b") == b"\0\1"
        assert session.files.edit("b", "\1", "\2").change.size == 2
        assert [change.id for change in session.files.changes()] == [2, 1]
        session.files.undo("b")
        assert session.files.read("b") == b"\0\1"
