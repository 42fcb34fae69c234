"""Machines elsewhere: the program `holdfast` joins a socket of this machine with a host there, by ssh or through a relay."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._fault import Unreachable
from ._wire import Connection, NoHost, UnixWire, hello, open_unix
from .home import Home, program
from .identity import Identity

JOIN_S = 60.0
"""How long ssh may take to get in."""


class FarDialer:
    """Connects to the host of another machine, under the name that the actor has there."""

    pause_max = 1.0

    def __init__(self, home: Home, who: Identity, host: str) -> None:
        self.home, self.who, self.host = home, who, host
        self.on_event: Callable[[str, Any], None] | None = None
        self._joins: asyncio.subprocess.Process | None = None
        self._socket: Path | None = None
        self._mine = who.handle
        self._was_there = False

    async def dial(self) -> Connection:
        """One attempt; `NoHost` says that another may do."""
        if self._joins is None or self._joins.returncode is not None:
            await self._join()
        assert self._socket is not None
        try:
            wire = UnixWire(*await open_unix(self._socket))
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NoHost(f"the way to {self.host} is closed") from error
        connection = await hello(wire, self.who, self.on_event)
        self._was_there = True
        return connection

    async def _join(self) -> None:
        self.home.must_be_ours()
        socket = self.home.run / f"far-{secrets.token_hex(4)}.sock"
        words = ["--as", self._mine, "--json", "connect", self.host]
        env = dict(os.environ)
        if self.home == Home.under(self.home.state):
            env["HOLDFAST_HOME"] = str(self.home.state)
        pipe = asyncio.subprocess.PIPE
        # It ends with its standard input, and so with this process however that ends.
        joins = await asyncio.create_subprocess_exec(
            program(), *words, "--socket", str(socket), "--while-stdin", env=env, stdin=pipe, stdout=pipe, stderr=pipe
        )
        assert joins.stdout is not None and joins.stderr is not None
        try:
            line = await asyncio.wait_for(joins.stdout.readline(), JOIN_S)
        except asyncio.TimeoutError:
            line = b""
        if not line:
            with contextlib.suppress(ProcessLookupError):
                joins.kill()
            told = await joins.stderr.read()
            await joins.wait()
            raise self._failed(told)
        self._joins, self._socket = joins, socket
        self.who = self.who.called(json.loads(line)["actor"]["handle"])

    def _failed(self, told: bytes) -> Exception:
        try:
            error = json.loads(told)["error"]
            message, hint = str(error["message"]), str(error.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            message, hint = told.decode(errors="replace").strip() or "it did not answer in time", ""
        # One that was there may come back.
        return NoHost(message) if self._was_there else Unreachable(f"cannot reach {self.host}: {message}", hint=hint)

    async def close(self) -> None:
        """Lets the way go."""
        joins, self._joins = self._joins, None
        if joins is not None and joins.stdin is not None:
            joins.stdin.close()
            await joins.wait()
