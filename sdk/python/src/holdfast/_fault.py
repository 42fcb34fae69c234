"""What can go wrong, in one family."""

from __future__ import annotations

from typing import Any


class HoldfastError(Exception):
    """Something went wrong. `code` is a stable word, `hint` says what to do, `details` is what belongs to the code."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "", details: Any = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Fault(HoldfastError):
    """The host refused, or failed. Each code has a class of its own below this one; a newer host's is a plain `Fault`."""


class Unreachable(HoldfastError):
    """No host can be reached."""

    code = "unreachable"


class Interrupted(HoldfastError):
    """The connection broke before the answer came, and asking again is not safe: it may have happened, or not."""

    code = "interrupted"


class TimedOut(HoldfastError, TimeoutError):
    """What was waited for did not come in time. Nothing was ended by it."""

    code = "timed_out"
