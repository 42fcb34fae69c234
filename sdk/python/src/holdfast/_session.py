"""Sessions, runs and the turn, for `async` code. What is asked is named in the table of operations."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from . import keys as key_names
from ._command import with_own
from ._deadline import WAIT_MS, Deadline, InLine
from ._fault import TimedOut
from ._files import Files
from ._link import PAUSE_MIN_S, Params, read
from ._turn import Turn
from ._wire import Broken
from .errors import Ended, ShellBusy
from .identity import recorded
from .types import (
    Contract,
    DetectPrompt,
    DetectQuiet,
    Gap,
    GraphAnswer,
    Listener,
    OutputEvent,
    Painted,
    PortView,
    QuestionView,
    ReadAnswer,
    RecoverAnswer,
    RunAnswer,
    RunOutputAnswer,
    ScreenAnswer,
    SendAnswer,
    SessionView,
    StateView,
    TraceView,
    WaitAnswer,
)

if TYPE_CHECKING:
    from ._client import Client

Piece: TypeAlias = tuple[int, bytes | Gap]
"""An offset, and what stands there: bytes, or that they are gone."""

READ_WAIT_MS = 2_000
"""The same for output: a host that misses a reader's turn to be woken delays it by no more than this."""
SEQ_BYTES = 4096
"""A message to type takes one number for each so many bytes begun."""
SEND_BYTES_MAX = 1024 * 1024
TEXT_BYTES_MAX = 1024 * 1024
"""So much output is looked through at once for a text."""
SETTLE_S = 0.02
"""How long to wait for a host that has just begun to find its sessions."""
READY_S = 10.0
"""How long a shell that is busy with no run is waited for. One that still reads its own files has as long as its caller."""

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[P^_X][^\x1b]*(?:\x1b\\)?"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)


def draw_id(prefix: str) -> str:
    """A fresh identity: 128 random bits in 26 characters."""
    bits = secrets.randbits(128)
    return prefix + "_" + "".join(_DIGITS[bits >> shift & 31] for shift in range(125, -1, -5))


def text_of(data: bytes) -> str:
    """Output without escape sequences and control characters, lines ended by a newline."""
    return _ESCAPES.sub("", data.decode(errors="replace")).replace("\r\n", "\n").replace("\r", "")


class Screen(ScreenAnswer):
    """The screen, with its text."""

    @property
    def text(self) -> str:
        """The history that was asked for and the rows, without empty ones at the end."""
        return "\n".join([*self.history, *self.rows]).rstrip()


@dataclass(frozen=True)
class Paint:
    """Brings a cleared terminal of this size into the session's state at an offset."""

    offset: int
    size: str
    data: bytes


@dataclass(frozen=True)
class RunOutput:
    """What a run printed, and what of it is gone."""

    data: bytes
    gaps: list[Gap]

    @property
    def text(self) -> str:
        """Without escape sequences."""
        return text_of(self.data)


class Session:
    """A live process tree with its terminal. Held by its id: a name may go to another."""

    def __init__(self, client: Client, view: SessionView) -> None:
        self.client = client
        self.view = view
        self.turn = Turn(self)
        self.files = Files(self)
        self._mark: int | None = None
        """Where the output stood when we last wrote: what came of it is behind."""

    def __repr__(self) -> str:
        return f"<Session {self.name} {self.id}>"

    @property
    def id(self) -> str:
        return self.view.id

    @property
    def name(self) -> str:
        return self.view.name

    async def _ask(self, method: str, params: dict[str, Any] | None = None, data: bytes = b"", answer: Any = Any) -> Any:
        found, _ = await self.client._ask(method, {"session": self.id, **(params or {})}, data, answer)
        return found

    async def _act(self, method: str, params: dict[str, Any], ask: Any, answer: Any) -> Any:
        """Something discrete, signed where we have the key. Each attempt has a nonce of its own."""
        found, _ = await self.client._ask(method, self._signed({"session": self.id, **params}, ask), b"", answer)
        return found

    def _signed(self, params: dict[str, Any], ask: Any) -> Params:
        who = self.client.identity
        return params if who is None else lambda: {**params, "proof": who.prove(self.id, ask)}

    async def refresh(self) -> SessionView:
        """Gets its current state."""
        self.view = await self._ask("session.get", answer=SessionView)
        return self.view

    # Runs.

    async def start(
        self,
        command: str,
        *,
        key: str | None = None,
        shared: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | None = None,
        detect: DetectQuiet | DetectPrompt | None = None,
        intent: str | None = None,
        contract: Contract | dict[str, Any] | None = None,
        ready: float | None = None,
    ) -> Run:
        """Enters a command into the session's shell and does not wait for its end. The same `key` runs once.

        Keys are each actor's own, unless they are `shared`. With `cwd`, `env` or `stdin` the command runs in a child of the
        shell, and the shell's own directory and variables stay as they are; people see them in the terminal.
        A shell that still reads its own files is waited for, up to `ready` seconds where said. One that is busy with a run
        is not. With a `contract` its effects are measured and held against it: see `Run.trace`.
        """
        text = with_own(command, cwd=cwd, env=env, stdin=stdin)
        async with self._line(Deadline(ready), text):
            return await self._enter(text, key, shared, detect, ready, intent, contract)

    async def _enter(
        self,
        command: str,
        key: str | None,
        shared: bool,
        detect: DetectQuiet | DetectPrompt | None,
        ready: float | None,
        intent: str | None = None,
        contract: Contract | dict[str, Any] | None = None,
    ) -> Run:
        params = {"session": self.id, "command": command, "run": draw_id("run"), "wait_ms": 0, "detect": detect}
        params |= {"key": key, "shared": shared or None, "intent": intent, "contract": contract}
        ask = {"run": {"key": key or "", "command": recorded(command)}}
        patience, short = Deadline(ready), Deadline(READY_S if ready is None else min(ready, READY_S))
        while True:
            try:
                answer, _ = await self.client._ask("run.start", self._signed(params, ask), b"", RunAnswer)
                self._mark = answer.from_
                return Run(self.client, answer)
            except ShellBusy as busy:
                details = busy.details if isinstance(busy.details, dict) else {}
                deadline = patience if details.get("starting") else short
                if details.get("run") is not None or deadline.is_over:
                    raise
                await self._waited("idle", deadline, give_up=False, once=True)

    def _line(self, deadline: Deadline, command: str) -> InLine:
        """Runs of one client in one session wait for each other, in order."""
        return InLine(self.client._lines.setdefault(self.id, asyncio.Lock()), deadline, command)

    async def run(
        self,
        command: str,
        *,
        key: str | None = None,
        shared: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
        detect: DetectQuiet | DetectPrompt | None = None,
        intent: str | None = None,
        contract: Contract | dict[str, Any] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> RunAnswer:
        """Runs a command in the session's shell and waits for its end. A timeout stops nothing: the run continues.

        Several at once run one after the other. `on_output` gets what is printed, as it comes; for the rest see `start`.
        """
        text, deadline = with_own(command, cwd=cwd, env=env, stdin=stdin), Deadline(timeout)
        async with self._line(deadline, text):
            run = await self._enter(text, key, shared, detect, deadline.left_s, intent, contract)
            return await run._told(on_output, deadline.left_s)

    async def runs(self) -> list[Run]:
        """Its runs."""
        from .types import RunView

        views = await self._ask("run.list", answer=list[RunView])
        return [Run(self.client, RunAnswer(**view.model_dump(by_alias=True), output="", truncated=True)) for view in views]

    # Waiting.

    @overload
    async def wait_for(self, *, port: int, timeout: float | None = None) -> Listener: ...

    @overload
    async def wait_for(
        self, *, text: str | re.Pattern[str], from_: int | None = None, timeout: float | None = None
    ) -> re.Match[str]: ...

    @overload
    async def wait_for(self, *, state: Literal["idle", "waiting"], timeout: float | None = None) -> StateView: ...

    @overload
    async def wait_for(self, *, state: Literal["exit"], timeout: float | None = None) -> WaitAnswer: ...

    async def wait_for(
        self,
        *,
        port: int | None = None,
        text: str | re.Pattern[str] | None = None,
        state: Literal["idle", "waiting", "exit"] | None = None,
        from_: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Waits for a listening port, a text in the output, or a state of the session.

        A text is a regular expression, looked for in the output without escape sequences, from `from_` on: unless said, from
        where this object last wrote, else from now. Raises `TimedOut`, or `Ended` where the session ended first.
        """
        if (port is not None) + (text is not None) + (state is not None) != 1:
            raise TypeError("give exactly one of port, text and state")
        deadline = Deadline(timeout)
        if text is not None:
            return await self._text(re.compile(text), from_, deadline)
        answer = await self._waited(state if port is None else {"port": port}, deadline)
        assert answer is not None
        return answer if state == "exit" else answer.listener if port is not None else answer.state

    async def _waited(
        self, until: Any, deadline: Deadline, give_up: bool = True, once: bool = False
    ) -> WaitAnswer | None:
        while True:
            asked: Callable[[], dict[str, Any]] = lambda: {  # noqa: E731
                "session": self.id, "until": until, "timeout_ms": deadline.left_ms(),
            }  # fmt: skip
            found: tuple[WaitAnswer, bytes] = await self.client._ask("session.wait", asked, b"", WaitAnswer)
            answer = found[0]
            if answer.state is not None or answer.listener is not None or (until == "exit" and answer.exit is not None):
                return answer
            if answer.exit is not None:
                raise Ended(f"session {self.name} ended first", code="ended", details={"exit": answer.exit})
            if once or (deadline.is_over and not give_up):
                return None
            if deadline.is_over:
                raise TimedOut(f"timed out waiting for {until} in session {self.name}")

    async def _text(self, pattern: re.Pattern[str], from_: int | None, deadline: Deadline) -> re.Match[str]:
        if from_ is None:
            from_ = self._mark if self._mark is not None else (await self.refresh()).head
        offset, seen = from_, b""
        while True:
            answer, data = await self._read(offset, deadline.left_ms(READ_WAIT_MS))
            seen = (b"" if answer.gap else seen) + data
            if found := pattern.search(text_of(seen)):
                return found
            seen = seen[-TEXT_BYTES_MAX:]
            offset = answer.to
            if answer.end:
                raise Ended(f"session {self.name} ended first", code="ended", details={"seen": text_of(seen)[-1000:]})
            if deadline.is_over:
                raise TimedOut(f"timed out waiting for {pattern.pattern!r} in session {self.name}")

    # Input.

    async def send(
        self, text: str | bytes, *, enter: bool = False, secret: bool = False, force: bool = False, fence: int | None = None
    ) -> SendAnswer:
        """Types text into the session, exactly once, in our turn, which is taken if it is free."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        data += b"\r" if enter else b""
        stream, seq, answer = secrets.randbits(64), 1, None
        for start in range(0, max(len(data), 1), SEND_BYTES_MAX):
            part = data[start : start + SEND_BYTES_MAX]
            params = {"stream": stream, "seq": seq, "fence": fence, "secret": secret or None, "force": force or None}
            last: SendAnswer = await self._ask("session.send", params, part, SendAnswer)
            self._mark = last.at if answer is None else self._mark
            answer = last
            seq += max(1, -(-len(part) // SEQ_BYTES))
        assert answer is not None
        return answer

    async def keys(self, *names: str) -> SendAnswer:
        """Types keys by their names: `"C-c"`, `"Up"`, `"Enter"`."""
        application = False
        if any(key_names.has_two_forms(name) for name in names):
            application = (await self.screen()).application_cursor
        return await self.send(b"".join(key_names.key(name, application) for name in names))

    # Output.

    async def screen(self, *, history: int = 0, ansi: bool = False) -> Screen:
        """Get the screen as text."""
        found: Screen = await self._ask("session.screen", {"history": history, "ansi": ansi}, answer=Screen)
        return found

    async def tail(self, lines: int = 10) -> str:
        """The last lines of its output, as the screen shows them."""
        return "\n".join((await self.screen(history=lines)).text.split("\n")[-lines:])

    async def _read(self, offset: int | None, wait_ms: int) -> tuple[ReadAnswer, bytes]:
        params = {"session": self.id, "from": offset, "wait_ms": wait_ms}
        found: tuple[ReadAnswer, bytes] = await self.client._ask("session.read", params, b"", ReadAnswer)
        answer, data = found
        # A host that has not reached the session's keeper yet takes it for ended.
        if answer.end and (await self.refresh()).life == "running":
            answer.end = False
            if not data:
                await asyncio.sleep(SETTLE_S)
        return answer, data

    async def output(self, from_: int | None = None, *, follow: bool = True) -> AsyncIterator[Piece]:
        """Output from an offset on (the oldest there is, unless said): each byte once, in order, whatever host answers.

        Output that is no longer kept is a `Gap`. With `follow` it continues until the session ends.
        """
        if follow:
            async for piece in self._follow(from_):
                yield piece
            return
        offset = from_
        while True:
            answer, data = await self._read(offset, 0)
            if answer.gap is not None:
                yield answer.gap.from_, answer.gap
            if data:
                yield answer.from_, data
            offset = answer.to
            if answer.end or offset >= answer.head:
                return

    async def _follow(self, offset: int | None) -> AsyncIterator[Piece]:
        """Output as the host pushes it, over whatever connection there is."""
        while True:
            connection = await self.client._link.connection()
            try:
                output = await connection.follow(self.id, offset)
                try:
                    end = False
                    while not end:
                        told, data = await output.next()
                        event: OutputEvent = read(OutputEvent, told)
                        if event.gap is not None:
                            yield event.gap.from_, event.gap
                        if data:
                            yield event.from_, data
                        offset, end = event.to, event.end
                        await output.done(len(data))
                finally:
                    await output.stop()
            except Broken:
                await asyncio.sleep(PAUSE_MIN_S)
                continue
            # A host that has not reached the session's keeper yet takes it for ended.
            if (await self.refresh()).life != "running":
                return
            await asyncio.sleep(SETTLE_S)

    async def attach(self, *, history: bool = False) -> AsyncIterator[Paint | Piece]:
        """Yields a repaint for a terminal of the session's size, then output. After a gap it repaints.

        It is not listed among the session's clients, and does not write.
        """
        while True:
            size = (await self.refresh()).size
            params = {"session": self.id, "size": size, "history": history}
            painted, data = await self.client._ask("session.paint", params, b"", Painted)
            if painted.form != "repaint":
                continue  # another size since then
            yield Paint(painted.offset, painted.size, data)
            async for offset, piece in self.output(painted.offset):
                if isinstance(piece, Gap):
                    break
                yield offset, piece
            else:
                return

    # Looking at it.

    async def state(self) -> StateView:
        """Gets what it is doing."""
        found: StateView = await self._ask("session.state", answer=StateView)
        return found

    async def graph(self, depth: Literal["processes", "sockets", "full"] = "full") -> GraphAnswer:
        """Gets its processes, their files and sockets, and the act that started each."""
        found: GraphAnswer = await self._ask("graph.get", {"depth": depth}, answer=GraphAnswer)
        return found

    async def ports(self) -> list[PortView]:
        """Lists its listening ports."""
        found: list[PortView] = await self._ask("graph.ports", answer=list[PortView])
        return found

    # Acting on it.

    async def ask(
        self,
        text: str,
        *,
        options: list[str] | None = None,
        key: str | None = None,
        timeout: float | None = None,
        expires: float | None = None,
    ) -> QuestionView:
        """Asks the humans of the session and waits for the answer."""
        how: dict[str, Any] = {"options": options, "key": key, "timeout": timeout, "expires": expires}
        return await self.client.ask_human(text, session=self, **how)

    async def resize(self, columns: int, rows: int) -> None:
        """Resizes the terminal."""
        size = f"{columns}x{rows}"
        await self._act("session.resize", {"size": size}, {"resize": {"size": size}}, Any)

    async def signal(self, number: int, target: Literal["foreground", "command", "tree"] = "foreground") -> None:
        """Sends a signal."""
        params = {"number": int(number), "target": ("foreground", "command", "tree").index(target)}
        await self._act("session.signal", params, {"signal": params}, Any)

    async def end(self, grace: float = 5.0) -> SessionView:
        """Ends the session and its whole process tree: SIGHUP, then SIGKILL after a grace period."""
        params = {"grace_ms": int(grace * 1000)}
        self.view = await self._act("session.end", params, {"end": params}, SessionView)
        return self.view

    async def keep(self, seconds: float | None = None, *, off: bool = False) -> SessionView:
        """Keeps the session from being reaped, for a time or until further notice; with `off` no longer."""
        for_ms = None if seconds is None or off else int(seconds * 1000)
        detail = "off" if off else "until further notice" if for_ms is None else f"for {for_ms} ms"
        ask = {"operation": {"name": "session.keep", "right": "configure", "turn": "ignores", "detail": detail}}
        self.view = await self._act("session.keep", {"for_ms": for_ms, "off": off}, ask, SessionView)
        return self.view

    async def recover(self, *, run: bool = False) -> bool:
        """Gives a lost session another life; with `run` its command is run again. False: it was running already."""
        params = {"run": run}
        answer = await self._act("session.recover", params, {"recover": params}, RecoverAnswer)
        self.view = answer.session
        return bool(answer.began)


class Run:
    """One command with a beginning, an end and a status."""

    def __init__(self, client: Client, view: RunAnswer) -> None:
        self.client = client
        self.view = view

    def __repr__(self) -> str:
        return f"<Run {self.view.command!r} {self.view.state} {self.id}>"

    @property
    def id(self) -> str:
        return self.view.id

    @property
    def is_over(self) -> bool:
        """True if the run is finished, as far as the client knows."""
        return self.view.state not in ("starting", "running")

    async def refresh(self) -> RunAnswer:
        """Gets its current state."""
        return await self._get(0)

    async def _get(self, wait_ms: int) -> RunAnswer:
        self.view, _ = await self.client._ask("run.get", {"run": self.id, "wait_ms": wait_ms}, b"", RunAnswer)
        return self.view

    async def wait(self, timeout: float | None = None) -> RunAnswer:
        """Waits for its end. Raises `TimedOut` on a timeout; the run continues."""
        deadline = Deadline(timeout)
        # One that is over may be known by its key alone: its session is gone, and nobody finds it by its id.
        while not self.is_over:
            answer = await self._get(deadline.left_ms())
            if not self.is_over and deadline.is_over:
                raise TimedOut(f"{answer.command!r} has not ended", hint="it is running: wait for it again", details=answer)
        return self.view

    async def _told(self, on_output: Callable[[str], None] | None, timeout: float | None = None) -> RunAnswer:
        """Waits for its end, and gives what it prints to `on_output` as it comes."""
        if on_output is None:
            return await self.wait(timeout)
        deadline = Deadline(timeout)

        async def tell() -> None:
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            async for _, piece in self.follow():
                if isinstance(piece, bytes) and (text := decoder.decode(piece)):
                    on_output(text)

        # What became of it is said below.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(tell(), deadline.left_s)
        return await self.wait(deadline.left_s)

    async def trace(self) -> TraceView:
        """Everything that is known of it: contract, decision, attempts, effects, outcome."""
        answer: TraceView
        answer, _ = await self.client._ask("run.trace", {"run": self.id}, b"", TraceView)
        return answer

    async def output(self) -> RunOutput:
        """All it has printed so far, as bytes."""
        offset: int | None = None
        parts: list[bytes] = []
        gaps: list[Gap] = []
        while True:
            params = {"run": self.id, "from": offset}
            answer, data = await self.client._ask("run.output", params, b"", RunOutputAnswer)
            if answer.gap is not None:
                gaps.append(answer.gap)
            parts.append(data)
            if answer.end or not data:
                return RunOutput(b"".join(parts), gaps)
            offset = answer.to

    async def follow(self) -> AsyncIterator[Piece]:
        """Its output until it is over: each byte once, in order. What is no longer kept is told as a `Gap`."""
        offset: int | None = None
        while True:
            params = {"run": self.id, "from": offset, "wait_ms": WAIT_MS}
            answer, data = await self.client._ask("run.output", params, b"", RunOutputAnswer)
            if answer.gap is not None:
                yield answer.gap.from_, answer.gap
            if data:
                yield answer.from_, data
            offset = answer.to
            if answer.end:
                return

    def __aiter__(self) -> AsyncIterator[Piece]:
        """Its output until it is over, as `follow` gives it."""
        return self.follow()

    async def cancel(self, timeout: float = 5.0) -> RunAnswer:
        """Interrupts the run and waits for its end."""
        params = {"run": self.id, "wait_ms": int(timeout * 1000)}
        self.view, _ = await self.client._ask("run.cancel", params, b"", RunAnswer)
        return self.view
