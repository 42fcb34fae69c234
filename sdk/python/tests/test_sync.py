"""The client that waits: the same names as in `aio`, and the example of the README as it stands."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_S, TestHome, until
from test_sessions import free_port

import holdfast
from holdfast import aio, calls, errors

README = Path(__file__).resolve().parents[1] / "README.md"


def surface(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_") and inspect.isfunction(value)}


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (aio.Client, holdfast.Client),
        (aio.Session, holdfast.Session),
        (aio.Run, holdfast.Run),
        (aio.Turn, holdfast.Turn),
        (aio.Files, holdfast.Files),
        (calls.AsyncCalls, calls.Calls),
    ],
)
def test_both_have_the_same_methods_with_the_same_parameters(there: type, here: type) -> None:
    assert surface(there).keys() == surface(here).keys()
    for name, value in surface(there).items():
        mine = list(inspect.signature(surface(here)[name]).parameters.values())
        theirs = list(inspect.signature(value).parameters.values())
        assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in theirs], name
        assert value.__doc__ and surface(here)[name].__doc__, name


def test_connect_takes_the_same() -> None:
    mine, theirs = inspect.signature(holdfast.connect), inspect.signature(aio.connect)
    assert list(mine.parameters.values()) == list(theirs.parameters.values())


def test_a_session_is_used_without_async(home: TestHome) -> None:
    with holdfast.connect() as client:
        session = client.open("work")
        answer = session.run("echo hello", timeout=PATIENCE_S)
        assert (answer.exit_code, answer.output) == (0, "hello\n")
        heard: list[tuple[str, str]] = []
        session.run("echo heard", on_output=lambda text: heard.append((threading.current_thread().name, text)))
        assert heard == [("MainThread", "heard\r\n")]
        assert client.run("exit 4", on_output=print).exit_code == 4
        run = session.start("cat")
        session.wait_for(state="waiting", timeout=PATIENCE_S)
        session.send("typed\r\x04")
        assert run.wait(PATIENCE_S).state == "ended"
        assert "typed" in run.output().text
        assert "hello" in session.screen().text
        assert session.turn.get().fence > 0
        assert [found.name for found in client.sessions()] == ["work"]
        pieces = list(session.output(0, follow=False))
        assert b"hello" in b"".join(piece for _, piece in pieces if isinstance(piece, bytes))
        with pytest.raises(errors.NotFound):
            client.session("other")
        session.end(grace=0)


def test_an_iterator_that_is_dropped_leaves_nothing_behind(home: TestHome) -> None:
    with holdfast.connect() as client:
        session = client.open("talk", "cat")
        left = session.output(0)
        assert isinstance(next(left)[1] if session.send("zero\r") else b"", bytes)
        session.send("one\r")
        for _, piece in session.output(0):
            assert isinstance(piece, bytes)
            break
        for event in client.events():
            assert not isinstance(event, holdfast.Lost)
            break
        assert session.refresh().life == "running"
    until("the thread's end", lambda: all(thread.name != "holdfast" for thread in threading.enumerate()))


def test_the_example_of_the_readme_runs(home: TestHome) -> None:
    text = README.read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    lines = [line for line in example[1].splitlines() if line.strip() and not line.startswith("import")]
    assert len(lines) == 5, "it says in a few lines what it is for"
    code = example[1].replace("8123", str(free_port()))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S * 2)
    assert done.returncode == 0, done.stderr
    assert "building" in done.stdout
    # The client is gone, and what it started is not.
    assert '"build"' in home.program("--json", "ls")


def test_who_forgets_to_close_can_still_end(home: TestHome) -> None:
    code = "import holdfast; client = holdfast.connect(); print(client.status().pid)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr


def test_both_modules_have_the_same_names() -> None:
    assert set(aio.__all__) - {"Connecting"} <= set(holdfast.__all__)
