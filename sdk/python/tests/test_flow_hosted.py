"""Flows that are started from a file of code: the service starts their workers, with the file as it was then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_S, TestHome

from holdfast.flow._worker import Connection, Ticket, Trouble
from holdfast.home import Home
from holdfast.identity import Identity

HUMAN = "human:tester"
FILE = """
from __future__ import annotations

from dataclasses import dataclass
from holdfast.flow import Context, flow

@dataclass
class Oven:
    heat: int = 200

@flow
async def Hosted(ctx: Context, ledger: str) -> str:
    await ctx.run("Take", f"echo {ctx.id} take >> {ctx.quote(ledger)}")
    await ctx.signal("go")
    return await ctx.child("Loaf", ledger)

@flow
async def Loaf(ctx: Context, ledger: str) -> str:
    return await ctx.run("Bake", f"echo {ctx.id} bake >> {ctx.quote(ledger)}; echo loaf {Oven().heat}")
"""
# Its flows can be named, but no worker can be started with it.
FAILING = """
import os
from holdfast.flow import flow

if "HOLDFAST_FLOW_ACTOR" in os.environ:
    raise RuntimeError("the oven is cold")

@flow
async def Baked(ctx, _):
    return await ctx.run("Bake", "echo baked")
"""


@pytest.fixture(autouse=True)
def human(home: TestHome) -> None:
    Identity.load_or_make(Home.under(home.path), HUMAN)


def told(home: TestHome, *words: str, check: bool = True) -> str:
    env = {**home.env, "HOLDFAST_PYTHON": sys.executable}
    done = subprocess.run(
        [os.environ["HOLDFAST_BIN"], "--as", HUMAN, *words], env=env, cwd=home.path, capture_output=True, text=True
    )
    assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def until(home: TestHome, flow: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    while not wanted(view := json.loads(told(home, "--json", "flow", "show", flow))):
        assert time.monotonic() < deadline, view
        time.sleep(0.01)
    return dict(view)


def tickets(home: TestHome) -> list[str]:
    """What workers of this home were given, as whoever looks at their environment sees it."""
    found = []
    for pid in home.processes():
        variables = b""
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        found += [
            one.split(b"=", 1)[1].decode() for one in variables.split(b"\0") if one.startswith(b"HOLDFAST_FLOW_TICKET=")
        ]
    return found


def test_a_flow_from_a_file_gets_its_workers_whatever_dies_and_whatever_becomes_of_the_file(
    home: TestHome, tmp_path: Path
) -> None:
    file, ledger = tmp_path / "hosted.py", tmp_path / "ledger"
    file.write_text(FILE)
    assert "which flow? it has Hosted, Loaf" in _refused(home, "flow", "start", str(file))
    told(home, "flow", "start", str(file), str(ledger), "--flow", "Hosted", "--id", "H-1")
    until(home, "H-1", lambda view: view["status"] == "WAITING_FOR(go)")
    # A worker's ticket is its own, however it came to somebody else.
    shown = tickets(home)
    assert shown, "the worker is there"
    for ticket in [shown[0], "00" * 18]:
        with pytest.raises(Trouble, match="this ticket is another worker's"):
            Connection(Home.under(home.path), Ticket(HUMAN, ticket)).ask("status")
    file.write_text("this is no longer Python")
    os.kill(json.loads(told(home, "--json", "flow", "status"))["pid"], signal.SIGKILL)
    told(home, "flow", "signal", "H-1", "go")
    assert until(home, "H-1", lambda view: view["status"] == "COMPLETED")["value"] == "loaf 200"
    assert sorted(ledger.read_text().splitlines()) == ["H-1 take", "H-1.3 bake"]


def test_a_flow_whose_workers_fail_is_blocked_with_their_last_words_and_goes_on_with_a_mended_file(
    home: TestHome, tmp_path: Path
) -> None:
    file = tmp_path / "baked.py"
    file.write_text(FAILING)
    told(home, "flow", "start", str(file), "--id", "B-1")
    blocked = until(home, "B-1", lambda view: view["status"] == "BLOCKED")
    assert "its worker fails: exit 1" in blocked["why"] and "the oven is cold" in blocked["why"], blocked
    file.write_text(FAILING.replace('raise RuntimeError("the oven is cold")', "pass"))
    assert "--new-code=FILE" in _refused(home, "flow", "retry", "B-1", "--new-code")
    told(home, "flow", "retry", "B-1", f"--new-code={file}")
    assert until(home, "B-1", lambda view: view["status"] == "COMPLETED")["value"] == "baked"


def _refused(home: TestHome, *words: str) -> str:
    env = {**home.env, "HOLDFAST_PYTHON": sys.executable}
    done = subprocess.run([os.environ["HOLDFAST_BIN"], "--as", HUMAN, *words], env=env, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    return done.stderr
