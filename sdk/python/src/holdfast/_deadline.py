"""When to give up, and who waits for whom until then."""

from __future__ import annotations

import asyncio

from ._fault import TimedOut

WAIT_MS = 20_000
"""How long one question waits; then it is asked anew. Short enough for what stands between us and a host."""


class Deadline:
    """When to give up, if ever."""

    def __init__(self, timeout: float | None) -> None:
        self._at = None if timeout is None else asyncio.get_running_loop().time() + timeout

    def left_ms(self, most: int = WAIT_MS) -> int:
        """Milliseconds that one question may still take."""
        if self._at is None:
            return most
        return max(0, min(most, int((self._at - asyncio.get_running_loop().time()) * 1000)))

    @property
    def left_s(self) -> float | None:
        """Seconds that are left; none: as many as it takes."""
        return None if self._at is None else max(0.0, self._at - asyncio.get_running_loop().time())

    @property
    def is_over(self) -> bool:
        return self._at is not None and asyncio.get_running_loop().time() >= self._at


class InLine:
    """A place in the line of those who run something in one session."""

    def __init__(self, lock: asyncio.Lock, deadline: Deadline, command: str) -> None:
        self._lock, self._deadline, self._command = lock, deadline, command

    async def __aenter__(self) -> None:
        try:
            await asyncio.wait_for(self._lock.acquire(), self._deadline.left_s)
        except asyncio.TimeoutError:
            raise TimedOut(f"{self._command!r} has not begun", hint="nothing was run: others ran before it") from None

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
