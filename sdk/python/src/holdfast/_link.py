"""A connection that comes back: finds the host again, and asks again where that is safe."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, TypeAdapter

from . import frames
from ._fault import HoldfastError, Interrupted, Unreachable
from ._wire import Broken, Connection, Dialer, NoHost

Params = dict[str, Any] | Callable[[], dict[str, Any]]

PATIENCE_S = 60.0
"""How long a host may be away."""
PAUSE_MIN_S = 0.005
"""The first pause before another attempt; the next are longer, up to the dialer's longest."""
BREAKS_MAX = 100
"""So often may one question be asked again: what breaks every host shall not be asked for ever."""

SAFE = frozenset(
    {
        "actor.list", "actor.me", "actor.record", "approval.get", "approval.list", "checkpoint.check", "checkpoint.list",
        "device.list", "files.changes", "files.diff", "files.list", "files.read", "files.upload",
        "flow.get", "flow.list", "fork.diff", "grant.list", "graph.get", "graph.ports", "graph.watch", "host.metrics",
        "host.status", "invite.list", "page.get", "policy.get", "policy.may",
        "question.get", "question.list", "relay.list", "run.cancel", "run.get", "run.list", "run.output", "run.trace",
        "session.cost", "session.env", "session.get", "session.handover", "session.journal", "session.list",
        "session.paint",
        "session.read", "session.resize", "session.screen", "session.state", "session.wait", "session.watch",
        "token.list", "turn.get", "turn.request", "turn.take",
    }
)  # fmt: skip
"""Operations that may be asked twice: they look, or the second time changes nothing."""


def is_safe(method: str, params: dict[str, Any]) -> bool:
    """Whether a request may be asked again when its answer was lost."""
    # These carry what tells a repeat from another one.
    drawn = {"run.start": "run", "question.ask": "key", "session.send": "stream"}
    return method in SAFE or (method in drawn and params.get(drawn[method]) is not None)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@functools.cache
def _adapter(answer: Any) -> TypeAdapter[Any]:
    return TypeAdapter(answer)


def read(answer: Any, value: Any) -> Any:
    """A value from the wire as its type."""
    return _adapter(answer).validate_python(value)


class Link:
    """Asks a host that may go away and come back."""

    def __init__(self, dialer: Dialer, patience: float = PATIENCE_S) -> None:
        self.dialer = dialer
        self.patience = patience
        self.connects = 0
        """How often a host was found."""
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def connection(self) -> Connection:
        """The live connection; a new one where there is none."""
        async with self._lock:
            if self._closed:
                raise HoldfastError("this client is closed", code="closed")
            if self._connection is None or not self._connection.alive:
                if self._connection is not None:
                    await self._connection.close()
                    self._connection = None
                self._connection = await self._find()
                self.connects += 1
            return self._connection

    async def _find(self) -> Connection:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self.patience, PAUSE_MIN_S
        while True:
            try:
                return await self.dialer.dial()
            except NoHost as error:
                if loop.time() >= deadline:
                    raise Unreachable(str(error), hint="start one with `holdfast host start`") from None
            await asyncio.sleep(pause)
            pause = min(pause * 2, self.dialer.pause_max)

    async def ask(self, method: str, params: Params, data: bytes = b"", answer: Any = Any) -> tuple[Any, bytes]:
        """Asks until there is an answer; `params` may be made anew for each attempt."""
        if len(data) > frames.REQUEST_BYTES_MAX - 4096:
            raise ValueError(f"{len(data)} bytes are more than a host accepts at once")
        breaks, pause = 0, PAUSE_MIN_S
        while True:
            connection = await self.connection()
            asked = plain(params() if callable(params) else params)
            try:
                result, more = await connection.request(method, asked, data)
                return read(answer, result), more
            except Broken as broken:
                if broken.sent and not is_safe(method, asked):
                    raise Interrupted(
                        f"the connection broke before {method} was answered: it may have happened, or not",
                        hint="check whether it was performed before you try again",
                    ) from None
                breaks += 1
                if breaks > BREAKS_MAX:
                    raise Unreachable(f"{method}: {broken}") from None
            await asyncio.sleep(pause)
            pause = min(pause * 2, self.dialer.pause_max)

    async def close(self) -> None:
        """Closes the connection."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        await self.dialer.close()
