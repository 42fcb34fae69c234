"""The same over a WebSocket, with a token."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from conftest import PATIENCE_S, TestHome
from test_sessions import free_port

import holdfast
from holdfast import aio, errors
from holdfast._wire import WebSocketDialer
from holdfast.home import Home
from holdfast.identity import Identity
from holdfast.types import Gap

PART, PARTS = 5_000, 4
# Each part waits for its word, so that the host dies between any two.
WRITER = f"""
import os, sys, time
for part in range({PARTS}):
    while not os.path.exists(f"go{{part}}"):
        time.sleep(0.005)
    for i in range({PART}):
        print(f"{{part * {PART} + i:07d}} the quick brown fox")
"""


class Served:
    """A host that listens for HTTP, and a token for it."""

    def __init__(self, home: TestHome) -> None:
        self.home = home
        Identity.load_or_make(Home.under(home.path), "human:tester")
        self.url = f"http://127.0.0.1:{free_port()}"
        self.start()
        self.token = self.token_of("agent:remote")

    def start(self) -> None:
        self.home.program("--as", "human:tester", "host", "start", "--http", self.url.removeprefix("http://"))

    def token_of(self, actor: str, *more: str) -> str:
        Identity.load_or_make(Home.under(self.home.path), actor)
        told = json.loads(self.home.program("--json", "--as", actor, "token", "new", *more))
        return str(told["text"])

    def kill(self) -> None:
        told = json.loads(self.home.program("--json", "host", "status"))
        os.kill(told["pid"], signal.SIGKILL)


@pytest.fixture
def served(home: TestHome) -> Served:
    return Served(home)


async def test_a_session_is_used_over_a_websocket(served: Served) -> None:
    async with aio.connect(served.url, token=served.token) as client:
        assert client.identity is None and not client.is_local
        session = await client.open("work", ["/bin/bash"], cwd=served.home.path, env={"PS1": "$ "})
        answer = await session.run("echo over the wire; (exit 4)", key="once", timeout=PATIENCE_S)
        assert (answer.exit_code, answer.output) == (4, "over the wire\n")
        assert answer.actor.handle == "agent:remote"
        # A line that nobody can read is not entered for a program; its bytes pass otherwise.
        with pytest.raises(errors.Denied):
            await session.send(b"echo \xff\r")
        await session.send(b"echo \xff\x03")
        await session.wait_for(state="idle", timeout=PATIENCE_S)
        assert (await session.turn.take()).fence is not None
        painted = await session.attach().__anext__()
        assert isinstance(painted, aio.Paint)
        with pytest.raises(errors.NotFound):
            await client.session("other")


async def test_what_is_not_said_the_host_fills_in(served: Served) -> None:
    async with aio.connect(served.url, token=served.token) as client:
        session = await client.open("bare", env={"COLOUR": "green"})
        assert session.view.cwd == str(served.home.path)
        answer = await session.run("echo $COLOUR", timeout=PATIENCE_S)
        assert answer.output == "green\n"
        assert (await client.run("echo $((6 * 7))", timeout=PATIENCE_S)).output == "42\n"


async def test_a_wrong_token_is_refused_at_once(served: Served) -> None:
    with pytest.raises(errors.Unidentified) as refused:
        await aio.connect(served.url, token="nonsense")
    assert "token" in refused.value.hint
    narrow = served.token_of("agent:narrow", "--can", "observe")
    async with aio.connect(served.url, token=served.token) as client, aio.connect(served.url, token=narrow) as other:
        await client.open("mine", ["cat"], cwd="/")
        with pytest.raises(errors.Denied):
            await (await other.session("mine")).send("x")


def test_the_environment_names_host_and_token(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", served.url)
    monkeypatch.setenv("HOLDFAST_TOKEN", served.token)
    with holdfast.connect() as client:
        assert not client.is_local
        assert client.open("sync", ["cat"], cwd="/").name == "sync"
    # A home that is named wins.
    with holdfast.connect(home=served.home.path) as client:
        assert client.is_local


async def test_output_goes_on_behind_a_host_that_died(served: Served) -> None:
    expected = "".join(f"{i:07d} the quick brown fox\r\n" for i in range(PART * PARTS)).encode()
    got = bytearray()
    async with aio.connect(served.url, token=served.token) as client:
        session = await client.open("stream", ["python3", "-c", WRITER], cwd=served.home.path)
        (served.home.path / "go0").touch()
        told = 1
        async for offset, piece in session.output(0):
            assert not isinstance(piece, Gap), piece
            assert offset == len(got)
            got += piece
            if len(got) == len(expected) * told // PARTS and told < PARTS:
                await asyncio.to_thread(served.kill)
                await asyncio.to_thread(served.start)
                (served.home.path / f"go{told}").touch()
                told += 1
        assert (told, client.connects) == (PARTS, PARTS)
    assert bytes(got) == expected


async def test_a_host_that_is_not_there_is_told_in_time() -> None:
    with pytest.raises(aio.Unreachable):
        await aio.connect(f"http://127.0.0.1:{free_port()}", token="x", patience=0.1)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:7433", "ws://127.0.0.1:7433/v1/connect"),
        ("https://host.example/", "wss://host.example/v1/connect"),
        ("127.0.0.1:7433", "ws://127.0.0.1:7433/v1/connect"),
        ("https://host.example/below/v1", "wss://host.example/below/v1/connect"),
    ],
)
def test_addresses_become_those_of_the_websocket(given: str, used: str) -> None:
    assert WebSocketDialer(given, None).url == used
    with pytest.raises(ValueError):
        WebSocketDialer("ftp://x", None)
