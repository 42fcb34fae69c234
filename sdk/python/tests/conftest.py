"""A home of its own for each test, with the real host in it. Ended by process numbers when the test is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast import aio

PATIENCE_S = 30.0
"""How long anything may take on a busy machine."""
PROGRAM = os.environ.get("HOLDFAST_BIN", "")


class TestHome:
    """A temporary home."""

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self.path = directory

    @property
    def env(self) -> dict[str, str]:
        """An environment without surprises."""
        return {
            "HOLDFAST_HOME": str(self.path),
            "HOLDFAST_BIN": PROGRAM,
            # A test speaks as an agent and as a human from one process: the host looks no further up than here.
            "HOLDFAST_TEST_TOP": str(os.getpid()),
            "HOME": str(self.path),
            "PATH": os.environ["PATH"],
            "SHELL": "/bin/bash",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }

    def program(self, *words: str, check: bool = True) -> str:
        """What the program prints."""
        done = subprocess.run([PROGRAM, *words], env=self.env, cwd=self.path, capture_output=True, text=True)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def processes(self) -> list[int]:
        """Processes whose environment, words or file name this home."""
        needle = os.fsencode(self.path)

        def belongs(pid: str) -> bool:
            for name in ("environ", "cmdline"):
                with contextlib.suppress(OSError):
                    if needle in Path(f"/proc/{pid}/{name}").read_bytes():
                        return True
            with contextlib.suppress(OSError):
                return needle in os.fsencode(os.readlink(f"/proc/{pid}/exe"))
            return False

        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid() and belongs(pid)]

    def close(self) -> list[str]:
        """Ends what runs here; gives what would not end."""
        deadline = time.monotonic() + 10
        # In rounds: what is asked to end may start the host, and a host that starts wakes the service of flows.
        while (left := self.processes()) and time.monotonic() < deadline:
            self.end_all()
            time.sleep(0.01)
        told = []
        for pid in left:
            with contextlib.suppress(OSError):
                told.append(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()!r}")
                os.kill(pid, signal.SIGKILL)
        return told

    def end_all(self) -> None:
        """Ends the services and sessions of this home, once."""
        if self.path.joinpath("flows.db").exists():
            self.program("flow", "stop", check=False)
        if self.path.joinpath("run/host.sock").exists():
            # A person may end anything; the key is made as the program would at a terminal.
            from holdfast.home import Home
            from holdfast.identity import Identity

            Identity.load_or_make(Home.under(self.path), "human:tester")
            self.program("--as", "human:tester", "end", "--all", "--grace", "0", check=False)
            self.program("--as", "human:tester", "host", "stop", check=False)


def until(what: str, holds: Callable[[], bool]) -> None:
    """Polls until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestHome]:
    """An empty home; the process's own environment names it."""
    assert PROGRAM, "name the holdfast program in HOLDFAST_BIN"
    directory = Path(tempfile.mkdtemp(prefix="hfpy"))
    made = TestHome(directory)
    for name in list(os.environ):
        if name.startswith(("HOLDFAST_", "XDG_")):
            monkeypatch.delenv(name)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(directory)
    # No user's files are read by shells here, and every shell of a test has the same prompt.
    directory.joinpath(".bashrc").write_text("PS1='$ '\n")
    left = ["the test did not get so far"]
    try:
        yield made
        left = made.close()
    finally:
        if left:
            made.close()
        shutil.rmtree(directory, ignore_errors=True)
    assert left == [], "processes were left over"


@pytest_asyncio.fixture
async def client(home: TestHome) -> AsyncIterator[aio.Client]:
    """A client of a host that it has started."""
    async with aio.connect() as made:
        yield made
