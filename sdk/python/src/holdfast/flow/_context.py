"""What a flow can do, and how its function is replayed against a history: history in, commands out."""

from __future__ import annotations

import datetime
import json
import random
import re
import shlex
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast

T = TypeVar("T")
Function = Callable[..., Coroutine[Any, Any, Any]]
FLOWS: dict[str, Function] = {}
"""The flows of the files that were loaded, by name."""
_UNSAID: dict[str, Any] = {"retries": 0, "backoff_ms": 0, "on_lost": "ask"}
_AGENTS = {"claude": "claude -p", "codex": "codex exec", "gemini": "gemini -p", "opencode": "opencode run"}
"""How coding agents are given a task that they do without asking, to its end."""
_AT_ONCE = ("step", "undo")
"""What is known as soon as it is asked for: the code does not wait for the service."""
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def flow(function: Function) -> Function:
    """Makes an async function a flow, under its own name."""
    FLOWS[function.__name__] = function
    return function


class Failed(Exception):
    """A step failed for good, or the flow itself says that it failed. What was done is undone, the last first."""

    def __init__(self, what: str, value: Any = None) -> None:
        super().__init__(what)
        self.value = value
        """What is known of it: of a run its `state`, `exit_code`, `output`, `session`."""


class Nondeterministic(BaseException):
    """The code asks for something else than the history has. No `Exception`, so that no flow catches it by accident."""


class _Continues(BaseException):
    """The flow goes on with a new history. No `Exception`, so that no flow catches it by accident."""

    def __init__(self, value: Any) -> None:
        super().__init__("ctx.continue_as_new")
        self.value = value


def milliseconds(duration: str | float | datetime.timedelta) -> int:
    """`"5d"`, seconds, or a timedelta."""
    if isinstance(duration, datetime.timedelta):
        return int(duration.total_seconds() * 1000)
    if isinstance(duration, (int, float)):
        return int(duration * 1000)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", duration)
    if not found:
        raise ValueError(f"invalid duration {duration!r}; expected a number and ms, s, m, h, d or w, for example '5d'")
    return int(float(found[1]) * _UNITS[found[2]])


class Step(Generic[T]):
    """Something that was asked for. Awaiting it gives what came of it; several can be open at once."""

    def __init__(self, context: Context, n: int, name: str, convert: Callable[[Any], T]) -> None:
        self._context, self._n, self._name, self._convert = context, n, name, convert

    @property
    def done(self) -> bool:
        """Whether its outcome is known."""
        return self._n in self._context._outcomes

    @property
    def failed(self) -> bool:
        """Whether it is known that it failed."""
        return self.done and not self._context._outcomes[self._n][1]

    def result(self) -> T:
        """What came of it; raises `Failed` where it failed."""
        _, ok, value = self._context._outcomes[self._n]
        if ok:
            return self._convert(value)
        raise Failed(f"{self._name}: {_why(value)}", value)

    def __await__(self) -> Generator[Any, None, T]:
        while not self.done:
            yield self
        return self.result()


class _Any:
    """Waits for the first of several."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self.steps = steps

    @property
    def done(self) -> bool:
        return any(step.done for step in self.steps)

    def __await__(self) -> Generator[Any, None, None]:
        while not self.done:
            yield self


def computed(local: Callable[[], Any]) -> tuple[bool, Any]:
    """Calls a function: whether it succeeded, and what it gave, which must be JSON."""
    try:
        value = local()
    except Failed as failed:
        return False, str(failed)
    json.dumps(value)
    return True, value


def _why(value: Any) -> str:
    if isinstance(value, dict):
        if value.get("why"):
            return str(value["why"])
        if value.get("expired"):
            return "nobody answered in time"
        if value.get("exit_code") is not None:
            return f"exit {value['exit_code']}"
        return str(value.get("state", "failed"))
    return str(value)


def _text(value: Any) -> str:
    return str((value or {}).get("output", "")).rstrip("\r\n")


class Context:
    """What a flow can do. Each call asks for a numbered step; the same code asks for the same steps each time."""

    def __init__(self, flow_id: str) -> None:
        self.id = flow_id
        """The flow's id."""
        self._asked: dict[int, dict[str, Any]] = {}
        self._outcomes: dict[int, tuple[int, bool, Any]] = {}
        self._queue: deque[tuple[int, bool, Any]] = deque()
        self._recorded: dict[int, tuple[bool, Any]] = {}
        self._n = 0
        self._new: list[tuple[int, dict[str, Any]]] = []

    def _feed(self, event: dict[str, Any]) -> None:
        # What undoes something is the engine's own, behind everything that the code asked for.
        if event["event"] == "asked" and event["command"].get("undoes") is None:
            self._asked[event["n"]] = event["command"]
        elif event["event"] == "done":
            n, ok, value = event["n"], event["ok"], event["value"]
            if self._asked.get(n, {}).get("do") in _AT_ONCE:
                self._recorded[n] = (ok, value)
            else:
                self._queue.append((n, ok, value))

    def _know(self, n: int, ok: bool, value: Any) -> None:
        self._outcomes[n] = (len(self._outcomes), ok, value)

    def _release(self) -> bool:
        # One by one, in the order of the history: what the code does between two of them is the same in each replay, however
        # much of the history a worker got at once.
        if not self._queue:
            return False
        self._know(*self._queue.popleft())
        return True

    def _ask(
        self, name: str, command: dict[str, Any], convert: Callable[[Any], T], local: Callable[[], Any] | None = None
    ) -> Step[T]:
        # As the history has it: what is left at its default is not written.
        said = (one for one in command.items() if one[0] == "input" or one[1] != _UNSAID.get(one[0], []))
        command = {key: value for key, value in said if value is not None}
        n, self._n = self._n, self._n + 1
        was = self._asked.get(n)
        if was is not None:
            self._must_be(n, was, command)
            if n in self._recorded:
                self._know(n, *self._recorded[n])
            return Step(self, n, name, convert)
        if command["do"] == "undo":
            self._know(n, True, None)
        if local is not None:
            command |= self._compute(n, local)
        self._asked[n] = command
        self._new.append((n, command))
        return Step(self, n, name, convert)

    def _compute(self, n: int, local: Callable[[], Any]) -> dict[str, Any]:
        # It runs here, at least once; what it gave is recorded, and a replay does not run it again.
        ok, value = computed(local)
        self._know(n, ok, value)
        return {"ok": ok, "value": value}

    @staticmethod
    def _must_be(n: int, was: dict[str, Any], wanted: dict[str, Any]) -> None:
        given = ("ok", "value")
        was = {key: value for key, value in was.items() if not (was["do"] == "step" and key in given)}
        if was != wanted:
            texts = [json.dumps(one, ensure_ascii=False, sort_keys=True) for one in (was, wanted)]
            raise Nondeterministic(f"step {n + 1}: the history has {texts[0]}, the code asks for {texts[1]}")

    def run(
        self,
        name: str,
        command: str,
        *,
        session: str | None = None,
        retries: int = 0,
        backoff: str | float = 0,
        timeout: str | float | None = None,
        undo: str | None = None,
        on_lost: str = "ask",
    ) -> Step[str]:
        """Runs a command in a session's shell, or in a new session, once; gives its output.

        It has failed unless it ends with status 0. `undo` runs if the flow fails later; `{{ output }}` in it is this step's
        output. If nobody can know what became of it, a human decides, or `on_lost` does: `again` or `fail`.
        """
        asked = {
            "do": "run", "name": name, "command": command, "session": session, "retries": retries,
            "backoff_ms": milliseconds(backoff), "timeout_ms": None if timeout is None else milliseconds(timeout),
            "undo": undo, "on_lost": on_lost,
        }  # fmt: skip
        return self._ask(name, asked, _text)

    def agent(
        self, session: str | None, task: str, *, agent: str = "claude", name: str = "Agent",
        timeout: str | float | None = None, undo: str | None = None, on_lost: str = "ask",
    ) -> Step[str]:  # fmt: skip
        """Gives a coding agent a task and waits for its end; gives what it printed.

        `agent` is `claude`, `codex`, `gemini`, `opencode`, or the beginning of a command whose last word is the task.
        """
        begins = _AGENTS.get(agent, agent)
        command = f"{begins} {self.quote(task)}"
        return self.run(name, command, session=session, timeout=timeout, undo=undo, on_lost=on_lost)

    def wait(
        self, session: str, until: str = "exit", *, port: int | None = None, timeout: str | float | None = None,
        name: str = "Wait",
    ) -> Step[int | None]:  # fmt: skip
        """Waits for something in a session: `exit` of its command (gives the status), `idle`, `waiting` for input, or a
        `port` that takes connections. Has failed if it does not come in time, or the session ends first."""
        if until not in ("exit", "idle", "waiting"):
            raise ValueError(f"invalid wait {until!r}; expected 'exit', 'idle', 'waiting' or port=N")
        asked = {"do": "wait", "name": name, "session": session, "until": until if port is None else {"port": port},
                 "timeout_ms": None if timeout is None else milliseconds(timeout)}  # fmt: skip
        return self._ask(name, asked, lambda value: cast("int | None", (value or {}).get("exit_code")))

    def sleep(self, duration: str | float | datetime.timedelta, name: str = "Timer") -> Step[None]:
        """Waits for so much elapsed time, whatever dies meanwhile. Setting the clock does not change it."""
        return self._ask(name, {"do": "sleep", "name": name, "ms": milliseconds(duration)}, lambda _: None)

    def until(self, moment: datetime.datetime, name: str = "Timer") -> Step[None]:
        """Waits for a moment of the wall clock."""
        if moment.tzinfo is None:
            raise ValueError("the moment needs a time zone, for example datetime.timezone.utc")
        return self._ask(name, {"do": "until", "name": name, "at_ms": int(moment.timestamp() * 1000)}, lambda _: None)

    def ask(
        self, text: str, options: Sequence[str] = (), expires: str | float | None = None, name: str = "Ask"
    ) -> Step[str]:
        """Asks the humans (`holdfast flow answer`); has failed if nobody answers before it expires."""
        asked = {"do": "ask", "name": name, "text": text, "options": list(options),
                 "expires_ms": None if expires is None else milliseconds(expires)}  # fmt: skip
        return self._ask(name, asked, lambda value: str(value["answer"]))

    def approve(self, text: str, expires: str | float | None = None, name: str = "Approve") -> Step[bool]:
        """Asks the humans for a yes: whether somebody approved. Has failed if nobody answers before it expires."""
        asked = {"do": "ask", "name": name, "text": text, "options": ["approve", "deny"],
                 "expires_ms": None if expires is None else milliseconds(expires)}  # fmt: skip
        return self._ask(name, asked, lambda value: value["answer"] == "approve")

    def signal(self, name: str, timeout: str | float | None = None) -> Step[Any]:
        """Waits for a signal; one that came early is there already."""
        asked = {"do": "signal", "name": name, "timeout_ms": None if timeout is None else milliseconds(timeout)}
        return self._ask(name, asked, lambda value: value)

    def child(self, flow: str, input: Any = None, *, name: str | None = None) -> Step[Any]:
        """Starts another flow and waits for its end; gives what it gave.

        Has failed if that flow fails or is cancelled. It acts as the actor of this one, and is cancelled with it.
        """
        name = flow if name is None else name
        return self._ask(name, {"do": "child", "name": name, "flow": flow, "input": input}, lambda value: value)

    def continue_as_new(self, input: Any = None) -> NoReturn:
        """Ends this history and begins a new one under the same id, with this input: for flows that go on for ever.

        Signals that no step has taken come along. What was done so far counts as done: it is not undone later.
        """
        json.dumps(input)
        raise _Continues(input)

    def step(self, name: str, function: Callable[[], T]) -> Step[T]:
        """Calls a function here and records what it gave (as JSON). It may run twice if the worker dies meanwhile."""
        return self._ask(name, {"do": "step", "name": name}, lambda value: cast(T, value), local=function)

    def now(self) -> Step[float]:
        """Seconds since the epoch, the same in each replay."""
        return self.step("now", time.time)

    def random(self) -> Step[float]:
        """A number from 0 up to 1, the same in each replay."""
        return self.step("random", random.random)

    def uuid(self) -> Step[str]:
        """A random UUID, the same in each replay."""
        return self.step("uuid", lambda: str(uuid.uuid4()))

    def compensate(self, name: str, command: str, session: str | None = None) -> Step[None]:
        """Registers a command that runs if the flow fails or is cancelled later; the last one first."""
        return self._ask(name, {"do": "undo", "name": name, "command": command, "session": session}, lambda _: None)

    def version(self, name: str, latest: int = 1) -> int:
        """A marker for changed code: 0 for flows that passed here before the change, else `latest` as it was then."""
        was, marker = self._asked.get(self._n), f"version {name}"
        if was is not None and not (was["do"] == "step" and was["name"] == marker):
            return 0
        return self.step(marker, lambda: latest).result()

    async def all(self, *steps: Step[Any]) -> list[Any]:
        """What came of each, once all are done; raises as soon as one has failed."""
        while True:
            for step in steps:
                if step.failed:
                    step.result()
            waiting = [step for step in steps if not step.done]
            if not waiting:
                return [step.result() for step in steps]
            await _Any(waiting)

    async def race(self, *steps: Step[T]) -> Step[T]:
        """The step that was done first."""
        await _Any(steps)
        return min((step for step in steps if step.done), key=lambda step: self._outcomes[step._n][0])

    @staticmethod
    def quote(text: str) -> str:
        """A text as one word of the shell."""
        return shlex.quote(text)


class Replay:
    """One flow's function, as far as it has come."""

    def __init__(self, flow_id: str, context: Context | None = None) -> None:
        self.context = context or Context(flow_id)
        self.code = ""
        """The digest of the file that its function is from."""
        self._function: Function | None = None
        self._running: Coroutine[Any, Any, Any] | None = None

    def feed(self, events: Sequence[dict[str, Any]], function: Function) -> None:
        """Takes in what is new in the history."""
        for event in events:
            self.context._feed(event)
            if event["event"] == "started":
                self._function = function
                self._running = function(self.context, event["input"])

    def close(self) -> None:
        """Forgets where the function is."""
        if self._running is not None:
            self._running.close()

    def decide(self) -> dict[str, Any]:
        """Runs the function as far as it goes: its new commands, or why it cannot go on."""
        self.context._new = []
        if self._running is None:
            return {"blocked": "the history has no beginning"}
        try:
            return self._advance(self._running)
        except StopIteration as end:
            return self._end(True, end.value)
        except Failed as failed:
            return self._end(False, str(failed))
        except _Continues as new:
            return self._append({"do": "continue", "input": new.value})
        except Nondeterministic as differs:
            return {"blocked": str(differs)}
        except Exception as error:
            hint = "; a flow awaits only what ctx gives" if "event loop" in str(error) else ""
            return {"blocked": f"{type(error).__name__}: {error}{hint}"}

    def _advance(self, running: Coroutine[Any, Any, Any]) -> dict[str, Any]:
        """Runs it until it waits for something that has not happened; what ends it is raised."""
        while True:
            awaited: Awaitable[Any] = running.send(None)
            if not isinstance(awaited, (Step, _Any)):
                running.close()
                return {"blocked": f"a flow awaits only what ctx gives, not {awaited!r}; put it into ctx.step"}
            while not awaited.done:
                if not self.context._release():
                    return {"commands": self.context._new}

    def _append(self, command: dict[str, Any]) -> dict[str, Any]:
        context = self.context
        left = [n for n in context._asked if n >= context._n]
        if left:
            return {"blocked": f"the code ends before step {min(left) + 1} of the history"}
        context._new.append((context._n, command))
        return {"commands": context._new}

    def _end(self, ok: bool, value: Any) -> dict[str, Any]:
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            return {"blocked": f"what the flow returns is not JSON: {error}"}
        return self._append({"do": "end", "ok": ok, "value": value})
