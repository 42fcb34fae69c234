"""A worker: asks the flow service for flows to decide about, and answers with commands. It may die at any time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .._fault import HoldfastError, Unreachable
from ..home import Home, program
from ..identity import DEFAULT_ACTOR, Identity, fields
from ._context import FLOWS, Function, Replay

VERSION = 1
HELD_MAX = 1_000
"""Flows whose functions are kept where they are: for these the service sends only what is new."""
WAIT_MS = 300_000
KEPT_WAIT_MS = 60_000
"""How long a worker that the service started waits for something to do before it ends."""
READY_S = 15.0


class Trouble(HoldfastError):
    """The flow service refuses."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")), hint=str(error.get("hint", "")))
        self.code = str(error.get("code", "internal"))


@dataclass(frozen=True)
class Ticket:
    """What the service gives to a worker that it starts: it decides about the flows of one actor and one file."""

    actor: str
    ticket: str


class Connection:
    """A connection to the flow service that has proven who speaks."""

    def __init__(self, home: Home, who: Identity | Ticket) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(home.run / "flows.sock"))
        self._reader = self._socket.makefile("rb")
        hello = self._line()
        if hello.get("flows") != VERSION:
            raise Unreachable(f"the flow service speaks version {hello.get('flows')}, this client version {VERSION}")
        if isinstance(who, Ticket):
            self._say({"actor": {"id": "00" * 32, "handle": who.actor}, "ticket": who.ticket})
        else:
            challenge, public = bytes.fromhex(hello["challenge"]), bytes.fromhex(who.id)
            signed = fields("holdfast connect v1", challenge, b"flows", public, who.handle.encode())
            self._say({"actor": who.actor, "signature": who.sign(signed)})
        self._next = 0

    def _say(self, what: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(what, ensure_ascii=False).encode() + b"\n")

    def _line(self) -> dict[str, Any]:
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the flow service went away")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, do: str, **params: Any) -> Any:
        """Asks and waits for the answer."""
        self._next += 1
        # A service that refuses us is gone by now, and what it said still waits to be read.
        with contextlib.suppress(BrokenPipeError):
            self._say({"id": self._next, "do": do, **params})
        while True:
            answer = self._line()
            if answer["id"] in (0, self._next):
                if "error" in answer:
                    raise Trouble(answer["error"])
                if answer["id"]:
                    return answer.get("ok")

    def close(self) -> None:
        """Leaves."""
        self._reader.close()
        self._socket.close()


def connect(home: Home | None = None, actor: str | None = None) -> Connection:
    """Connects to the flow service, and starts it where it does not run."""
    home = home or Home.from_env()
    home.must_be_ours()
    who = Identity.load_or_make(home, actor or os.environ.get("HOLDFAST_ACTOR") or DEFAULT_ACTOR)
    deadline, start_at = time.monotonic() + READY_S, 0.0
    while True:
        try:
            return Connection(home, who)
        except (FileNotFoundError, ConnectionError):
            if time.monotonic() > deadline:
                raise Unreachable(f"the flow service does not answer; its log is {home.state / 'flows.log'}") from None
        if time.monotonic() >= start_at:
            subprocess.run([program(), "flow", "spawn"], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            start_at = time.monotonic() + 0.5
        time.sleep(0.02)


def test_histories(
    flows: Mapping[str, Function], *, home: Home | None = None, actor: str | None = None
) -> list[tuple[str, str | None]]:
    """Replays the recorded histories of these flows against their code: each flow's id, and what would block it."""
    connection = connect(home, actor)
    try:
        found: list[tuple[str, str | None]] = []
        for view in connection.ask("list", all=True):
            if view["name"] in flows:
                replay = Replay(view["id"])
                replay.feed(connection.ask("get", flow=view["id"])["history"], flows[view["name"]])
                found.append((view["id"], replay.decide().get("blocked")))
                replay.close()
        return found
    finally:
        connection.close()


def load(text: str, file: Path, code: str) -> Mapping[str, Function]:
    """The flows of a text that lay in this file. What it imports is what is there now: only the file itself was kept."""
    own = dict(FLOWS)
    FLOWS.clear()
    try:
        module = ModuleType(f"__flows_{code[:12]}__")
        module.__file__ = str(file)
        # What looks its own module up by name, as a dataclass does, finds it.
        sys.modules[module.__name__] = module
        exec(compile(text, f"{file}@{code[:12]}", "exec"), module.__dict__)
        return dict(FLOWS)
    finally:
        FLOWS.clear()
        FLOWS.update(own)


class Unloadable(Exception):
    """The file that a flow goes on with does not load, or has no such flow."""


class Shelf:
    """Files of flows by their digests: flows go on with the one they began with, whatever the worker's own says by now."""

    def __init__(self, flows: Mapping[str, Function], file: Path | None, kept: str) -> None:
        self.flows, self.file, self.code = flows, file, kept
        # What is kept already is not read from where it lay.
        self.text = file.read_text() if file is not None and not kept else ""
        self._older: dict[str, Mapping[str, Function]] = {}

    def register(self, connection: Connection) -> None:
        """Has the service keep the worker's own file, where it does not have it."""
        if self.file is not None and not self.code:
            self.code = connection.ask("keep", text=self.text, file=self.file.name)["code"]

    def function(self, connection: Connection, name: str, code: str) -> Function:
        """The function that decides about a flow of this name and code."""
        flows = self.flows if code in ("", self.code) or self.file is None else self._old(connection, code)
        if name not in flows:
            raise Unloadable(f"the file that it began with (digest {code[:12]}) has no flow {name}")
        return flows[name]

    def _old(self, connection: Connection, code: str) -> Mapping[str, Function]:
        if code not in self._older:
            try:
                text = connection.ask("code", code=code)["text"]
            except Trouble as trouble:
                raise Unloadable(str(trouble)) from trouble
            assert self.file is not None
            try:
                self._older[code] = load(text, self.file, code)
            except Exception as error:
                raise Unloadable(f"the file that it began with (digest {code[:12]}) does not load: {error}") from error
        return self._older[code]


class Worker:
    """Decides about flows of its own actor. `flows` are functions by name; by default those that `@flow` marked.

    With `file`, where they come from, the service keeps that file, and flows that began with an older one go on with that;
    `kept` is its digest where the service has it already.
    """

    def __init__(
        self, flows: Mapping[str, Function] | None = None, *, home: Home | None = None, actor: str | None = None,
        log: Callable[[str], None] | None = None, file: Path | None = None, kept: str = "",
    ) -> None:  # fmt: skip
        self.flows = FLOWS if flows is None else flows
        self._home, self._actor, self._log = home, actor, log or (lambda _: None)
        self._shelf = Shelf(self.flows, file, kept)

    def run(self) -> None:
        """Works until it is interrupted; a service that dies is found again."""
        while True:
            connection = connect(self._home, self._actor)
            try:
                self._serve(connection)
            except (OSError, ValueError):
                self._log("the flow service went away; looking for it again")
                time.sleep(0.05)
            finally:
                connection.close()

    def run_kept(self, connection: Connection) -> None:
        """Works with a file that the service keeps, as long as there is something to do: the service started us."""
        # Where the service goes away, the next one starts another worker.
        with contextlib.suppress(OSError, ValueError):
            self._serve(connection, KEPT_WAIT_MS)

    def _serve(self, connection: Connection, only_ms: int = 0) -> None:
        held: OrderedDict[str, Replay] = OrderedDict()
        shelf = self._shelf
        if not only_ms:
            shelf.code = ""
        shelf.register(connection)
        ours = {"code": shelf.code} if shelf.code else {}
        while True:
            wait_ms = only_ms or WAIT_MS
            tasks = connection.ask("tasks", names=sorted(self.flows), max=32, wait_ms=wait_ms, **ours)
            if only_ms and not tasks:
                return
            for task in tasks:
                self._decide(connection, task, held)

    def _decide(self, connection: Connection, task: Mapping[str, Any], held: OrderedDict[str, Replay]) -> None:
        flow, code = task["flow"], task.get("code") or self._shelf.code
        try:
            function = self._shelf.function(connection, task["name"], code)
        except Unloadable as why:
            self._log(f"{flow} is blocked: {why}")
            self._turn(connection, task, {"blocked": str(why)})
            return
        replay = self._taken(connection, task, held.pop(flow, None), function, code)
        answer = replay.decide()
        if "blocked" in answer:
            self._log(f"{flow} is blocked: {answer['blocked']}")
        taken = self._turn(connection, task, {**answer, **({"code": code} if code else {})})
        is_over = "blocked" in answer or any(command["do"] in ("end", "continue") for _, command in answer["commands"])
        if not taken or is_over:
            replay.close()
            return
        held[flow] = replay
        if len(held) > HELD_MAX:
            held.popitem(last=False)[1].close()

    def _taken(
        self, connection: Connection, task: Mapping[str, Any], held: Replay | None, function: Function, code: str
    ) -> Replay:
        """The flow's function where it was, or anew, with everything that this task knows."""
        if held is not None and held.code == code and task["from"]:
            held.feed(task["history"], function)
            return held
        if held is not None:
            held.close()
        history = task["history"]
        if task["from"]:
            # Held no longer: all of its history again, as far as this task knows it.
            history = connection.ask("get", flow=task["flow"])["history"][: task["at"]]
        replay = Replay(task["flow"])
        replay.code = code
        replay.feed(history, function)
        return replay

    def _turn(self, connection: Connection, task: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
        """Answers a task; whether the answer was taken."""
        try:
            connection.ask("turn", flow=task["flow"], at=task["at"], **answer)
        except Trouble as trouble:
            # Somebody else was faster, or it has ended: whatever is next comes as a task.
            self._log(f"{task['flow']}: {trouble}")
            return False
        return True
