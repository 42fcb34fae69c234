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
    """The host refused, or failed. Each code has its own subclass; an unknown code of a newer host is a plain `Fault`."""


class Unreachable(HoldfastError):
    """Cannot reach a host."""

    code = "unreachable"


class Untrusted(Unreachable):
    """Somebody else decides what lies in this home."""

    code = "untrusted_home"


class Interrupted(HoldfastError):
    """The connection broke before the answer, and repeating the request is not safe: it may have been performed."""

    code = "interrupted"


class TimedOut(HoldfastError, TimeoutError):
    """The wait timed out. Nothing was stopped."""

    code = "timed_out"
