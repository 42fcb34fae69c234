"""Sessions that outlive their clients, from Python.

`holdfast.connect()` gives a client that waits; `holdfast.aio` has the same for `async` code, by the same names.
"""

from . import aio, errors, types
from ._client import Lost
from ._files import FileEvent
from ._session import Paint, Piece, RunOutput, Screen
from ._sync import Client, Files, Run, Session, Turn, connect
from .errors import Fault, HoldfastError, Interrupted, TimedOut, Unreachable, Untrusted
from .types import Event, Gap

__version__ = "0.1.0"

__all__ = [
    "Client",
    "Event",
    "Fault",
    "FileEvent",
    "Files",
    "Gap",
    "HoldfastError",
    "Interrupted",
    "Lost",
    "Paint",
    "Piece",
    "Run",
    "RunOutput",
    "Screen",
    "Session",
    "TimedOut",
    "Turn",
    "Unreachable",
    "Untrusted",
    "aio",
    "connect",
    "errors",
    "types",
]
