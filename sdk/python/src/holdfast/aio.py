"""Holdfast for `async` code: `async with holdfast.aio.connect() as client: …`."""

from ._client import Client, Connecting, Lost, connect
from ._files import FileEvent, Files
from ._session import Paint, Piece, Run, RunOutput, Screen, Session
from ._turn import Turn
from .errors import Fault, HoldfastError, Interrupted, TimedOut, Unreachable
from .types import Event, Gap

__all__ = [
    "Client",
    "Connecting",
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
    "connect",
]
