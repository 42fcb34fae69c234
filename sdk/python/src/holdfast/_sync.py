"""The same for code that waits: calls go to an event loop in a thread of its own. What each does stands in `aio`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, cast, overload

from . import _client, _files, _session, _turn, aio
from ._client import Lost
from ._files import Changes, Entries, FileEvent
from ._link import PATIENCE_S
from ._session import Paint, Piece, RunOutput, Screen
from .calls import Calls
from .identity import Identity
from .types import (
    Contract,
    DetectPrompt,
    DetectQuiet,
    Event,
    FileChange,
    FilesEditAnswer,
    GraphAnswer,
    HostStatus,
    Listener,
    PortView,
    QuestionView,
    RunAnswer,
    SeizeAnswer,
    SendAnswer,
    SessionView,
    StateView,
    TraceView,
    TurnAnswer,
    TurnView,
    WaitAnswer,
)

T = TypeVar("T")


class Portal:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: who forgets to close a client can still end.
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for it. Ctrl-C here ends it there."""
        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run_telling(
        self, work: Callable[[Callable[[str], None]], Coroutine[Any, Any, T]], on_output: Callable[[str], None]
    ) -> T:
        """Waits for it, and calls `on_output` here with what it tells meanwhile."""
        told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work(told.put), self._loop)
        future.add_done_callback(lambda _: told.put(None))
        try:
            while (text := told.get()) is not None:
                on_output(text)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """One after the other, as they come."""

        nothing = object()

        async def step() -> T | object:
            async for item in items:
                return item
            return nothing

        async def close() -> None:
            closing = getattr(items, "aclose", None)
            if closing is not None:
                await closing()

        try:
            while True:
                item = self.run(step())
                if item is nothing:
                    return
                yield cast(T, item)
        finally:
            if not self._loop.is_closed():
                self.run(close())

    def close(self) -> None:
        """Ends the thread, and what still waits there."""

        async def settle() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            await self._loop.shutdown_asyncgens()

        self.run(settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Client:
    """A connection to a host. It reconnects by itself and continues where it was."""

    def __init__(self, portal: Portal, inner: _client.Client) -> None:
        self._portal, self._inner, self._is_far = portal, inner, False
        self.call = Calls(lambda method, params, data, answer: portal.run(inner._ask(method, params, data, answer)))
        """Every operation of the table, by its name."""

    @property
    def identity(self) -> Identity | None:
        return self._inner.identity

    @property
    def is_local(self) -> bool:
        return self._inner.is_local

    @property
    def connects(self) -> int:
        return self._inner.connects

    def ask(self, method: str, params: dict[str, Any] | None = None, data: bytes = b"") -> tuple[Any, bytes]:
        """Any operation by its name on the wire: its answer as JSON, and its bytes."""
        return self._portal.run(self._inner.ask(method, params, data))

    def close(self) -> None:
        """Closes the connection; sessions keep running."""
        if self._is_far:
            return  # with the one that it is from
        self._portal.run(self._inner.close())
        self._portal.close()

    def at(self, host: str) -> Client:
        """A client of another machine, by the name that `holdfast hosts` has for it. It is closed with this one."""
        far = Client(self._portal, self._portal.run(self._inner.at(host)))
        far._is_far = True
        return far

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def status(self) -> HostStatus:
        """Get the host's version and status."""
        return self._portal.run(self._inner.status())

    def sessions(self, *, all: bool = False) -> list[Session]:
        """Lists the sessions you may observe; `all` includes ended ones."""
        return [Session(self, found) for found in self._portal.run(self._inner.sessions(all=all))]

    def session(self, name: str) -> Session:
        """One session by its name or id."""
        return Session(self, self._portal.run(self._inner.session(name)))

    def open(
        self,
        name: str | None = None,
        command: str | Sequence[str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        size: str | None = None,
    ) -> Session:
        """Returns the live session of this name, or a new one. Without a command it is a shell."""
        return Session(self, self._portal.run(self._inner.open(name, command, cwd=cwd, env=env, size=size)))

    def start(
        self,
        command: str | Sequence[str],
        *,
        name: str | None = None,
        key: str | None = None,
        shared: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        separate_stderr: bool = False,
        keep: bool = False,
        host: str | None = None,
    ) -> Run:
        """Starts a command in a session made for it. The same `key` runs once."""
        how: dict[str, Any] = {"name": name, "key": key, "shared": shared, "cwd": cwd, "env": env, "stdin": stdin}
        how |= {"separate_stderr": separate_stderr, "keep": keep, "host": host}
        return Run(self._portal, self._portal.run(self._inner.start(command, **how)))

    def run(
        self,
        command: str | Sequence[str],
        *,
        name: str | None = None,
        key: str | None = None,
        shared: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        separate_stderr: bool = False,
        keep: bool = False,
        host: str | None = None,
        timeout: float | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> RunAnswer:
        """Runs a command in a session made for it, and waits for its end. `on_output` gets what is printed, as it comes."""
        how: dict[str, Any] = {"name": name, "key": key, "shared": shared, "cwd": cwd, "env": env, "stdin": stdin}
        how |= {"separate_stderr": separate_stderr, "keep": keep, "host": host, "timeout": timeout}
        if on_output is None:
            return self._portal.run(self._inner.run(command, **how))
        return self._portal.run_telling(lambda tell: self._inner.run(command, **how, on_output=tell), on_output)

    def get_run(self, run: str) -> Run:
        """A run by its id, or by its key."""
        return Run(self._portal, self._portal.run(self._inner.get_run(run)))

    def events(self, session: str | None = None, after: int | None = None) -> Iterator[Event | Lost]:
        """Yields events of a session, or of all sessions you may observe, after a number; by default from now on."""
        return self._portal.each(self._inner.events(session, after))

    def ask_human(
        self,
        text: str,
        *,
        session: str | Session,
        options: list[str] | None = None,
        key: str | None = None,
        timeout: float | None = None,
        expires: float | None = None,
    ) -> QuestionView:
        """Asks the humans of a session and waits for the answer; returns the question in its current state."""
        of = session.id if isinstance(session, Session) else session
        how: dict[str, Any] = {"options": options, "key": key, "timeout": timeout, "expires": expires}
        return self._portal.run(self._inner.ask_human(text, session=of, **how))


class Session:
    """A live process tree with its terminal. Held by its id: a name may go to another."""

    def __init__(self, client: Client, inner: _session.Session) -> None:
        self.client, self._inner, self._portal = client, inner, client._portal
        self.turn = Turn(client._portal, inner.turn)
        self.files = Files(client._portal, inner.files)

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def view(self) -> SessionView:
        return self._inner.view

    def refresh(self) -> SessionView:
        """Gets its current state."""
        return self._portal.run(self._inner.refresh())

    def start(
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
        """Enters a command into the session's shell and does not wait for its end. The same `key` runs once."""
        how: dict[str, Any] = {"key": key, "shared": shared, "cwd": cwd, "env": env, "stdin": stdin}
        inner = self._inner.start(command, **how, detect=detect, intent=intent, contract=contract, ready=ready)
        return Run(self._portal, self._portal.run(inner))

    def run(
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
        """Runs a command in the session's shell and waits for its end. A timeout stops nothing: the run continues."""
        how: dict[str, Any] = {"key": key, "shared": shared, "cwd": cwd, "env": env, "stdin": stdin}
        how |= {"timeout": timeout, "detect": detect, "intent": intent, "contract": contract}
        if on_output is None:
            return self._portal.run(self._inner.run(command, **how))
        return self._portal.run_telling(lambda tell: self._inner.run(command, **how, on_output=tell), on_output)

    def runs(self) -> list[Run]:
        """Its runs."""
        return [Run(self._portal, run) for run in self._portal.run(self._inner.runs())]

    @overload
    def wait_for(self, *, port: int, timeout: float | None = None) -> Listener: ...

    @overload
    def wait_for(
        self, *, text: str | re.Pattern[str], from_: int | None = None, timeout: float | None = None
    ) -> re.Match[str]: ...

    @overload
    def wait_for(self, *, state: Literal["idle", "waiting"], timeout: float | None = None) -> StateView: ...

    @overload
    def wait_for(self, *, state: Literal["exit"], timeout: float | None = None) -> WaitAnswer: ...

    def wait_for(
        self,
        *,
        port: int | None = None,
        text: str | re.Pattern[str] | None = None,
        state: Literal["idle", "waiting", "exit"] | None = None,
        from_: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Waits for a listening port, a text in the output, or a state of the session."""
        given: dict[str, Any] = {"port": port, "text": text, "state": state, "from_": from_, "timeout": timeout}
        return self._portal.run(self._inner.wait_for(**given))

    def send(
        self, text: str | bytes, *, enter: bool = False, secret: bool = False, force: bool = False, fence: int | None = None
    ) -> SendAnswer:
        """Types text into the session, exactly once, in our turn, which is taken if it is free."""
        return self._portal.run(self._inner.send(text, enter=enter, secret=secret, force=force, fence=fence))

    def keys(self, *names: str) -> SendAnswer:
        """Types keys by their names: `"C-c"`, `"Up"`, `"Enter"`."""
        return self._portal.run(self._inner.keys(*names))

    def screen(self, *, history: int = 0, ansi: bool = False) -> Screen:
        """Get the screen as text."""
        return self._portal.run(self._inner.screen(history=history, ansi=ansi))

    def tail(self, lines: int = 10) -> str:
        """The last lines of its output, as the screen shows them."""
        return self._portal.run(self._inner.tail(lines))

    def output(self, from_: int | None = None, *, follow: bool = True) -> Iterator[Piece]:
        """Output from an offset on: each byte once, in order, whatever host answers. Output that is gone is a `Gap`."""
        return self._portal.each(self._inner.output(from_, follow=follow))

    def attach(self, *, history: bool = False) -> Iterator[Paint | Piece]:
        """Yields a repaint for a terminal of the session's size, then output."""
        return self._portal.each(self._inner.attach(history=history))

    def state(self) -> StateView:
        """Gets what it is doing."""
        return self._portal.run(self._inner.state())

    def graph(self, depth: Literal["processes", "sockets", "full"] = "full") -> GraphAnswer:
        """Gets its processes, their files and sockets, and the act that started each."""
        return self._portal.run(self._inner.graph(depth))

    def ports(self) -> list[PortView]:
        """Lists its listening ports."""
        return self._portal.run(self._inner.ports())

    def ask(
        self,
        text: str,
        *,
        options: list[str] | None = None,
        key: str | None = None,
        timeout: float | None = None,
        expires: float | None = None,
    ) -> QuestionView:
        """Asks the humans of the session and waits for the answer."""
        return self._portal.run(self._inner.ask(text, options=options, key=key, timeout=timeout, expires=expires))

    def resize(self, columns: int, rows: int) -> None:
        """Resizes the terminal."""
        self._portal.run(self._inner.resize(columns, rows))

    def signal(self, number: int, target: Literal["foreground", "command", "tree"] = "foreground") -> None:
        """Sends a signal."""
        self._portal.run(self._inner.signal(number, target))

    def end(self, grace: float = 5.0) -> SessionView:
        """Ends the session and its whole process tree: SIGHUP, then SIGKILL after a grace period."""
        return self._portal.run(self._inner.end(grace))

    def keep(self, seconds: float | None = None, *, off: bool = False) -> SessionView:
        """Keeps the session from being reaped, for a time or until further notice; with `off` no longer."""
        return self._portal.run(self._inner.keep(seconds, off=off))

    def recover(self, *, run: bool = False) -> bool:
        """Gives a lost session another life; with `run` its command is run again. False: it was running already."""
        return self._portal.run(self._inner.recover(run=run))


class Run:
    """One command with a beginning, an end and a status."""

    def __init__(self, portal: Portal, inner: _session.Run) -> None:
        self._portal, self._inner = portal, inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def view(self) -> RunAnswer:
        return self._inner.view

    @property
    def is_over(self) -> bool:
        return self._inner.is_over

    def refresh(self) -> RunAnswer:
        """Gets its current state."""
        return self._portal.run(self._inner.refresh())

    def wait(self, timeout: float | None = None) -> RunAnswer:
        """Waits for its end. Raises `TimedOut` on a timeout; the run continues."""
        return self._portal.run(self._inner.wait(timeout))

    def trace(self) -> TraceView:
        """Everything that is known of it: contract, decision, attempts, effects, outcome."""
        return self._portal.run(self._inner.trace())

    def output(self) -> RunOutput:
        """All it has printed so far, as bytes."""
        return self._portal.run(self._inner.output())

    def follow(self) -> Iterator[Piece]:
        """Its output until it is over: each byte once, in order."""
        return self._portal.each(self._inner.follow())

    def __iter__(self) -> Iterator[Piece]:
        """Its output until it is over, as `follow` gives it."""
        return self.follow()

    def cancel(self, timeout: float = 5.0) -> RunAnswer:
        """Interrupts the run and waits for its end."""
        return self._portal.run(self._inner.cancel(timeout))


class Files:
    """Files of a session. Paths are from its live working directory on, and do not leave its working tree."""

    def __init__(self, portal: Portal, inner: _files.Files) -> None:
        self._portal, self._inner = portal, inner

    def list(self, path: str | None = None) -> Entries:
        """Lists a directory; of a file, its own entry."""
        return self._portal.run(self._inner.list(path))

    def read(self, path: str) -> bytes:
        """Reads a whole file. Raises `FileChanged` where somebody writes it meanwhile."""
        return self._portal.run(self._inner.read(path))

    def read_text(self, path: str) -> str:
        """Reads a whole file as UTF-8."""
        return self._portal.run(self._inner.read_text(path))

    def write(self, path: str, data: str | bytes, *, new: bool = False, mode: int | None = None) -> FileChange:
        """Writes a whole file at once. With `new` it must not exist yet."""
        return self._portal.run(self._inner.write(path, data, new=new, mode=mode))

    def edit(self, path: str, old: str, new: str) -> FilesEditAnswer:
        """Replaces a text that is in the file exactly once."""
        return self._portal.run(self._inner.edit(path, old, new))

    def undo(self, path: str | None = None) -> FileChange:
        """Undoes your last write, where the bytes before it are kept."""
        return self._portal.run(self._inner.undo(path))

    def changes(self) -> Changes:
        """The last writes through the host, newest first."""
        return self._portal.run(self._inner.changes())

    def diff(self, change: FileChange | int) -> str | None:
        """What a write changed, where the bytes are kept."""
        return self._portal.run(self._inner.diff(change))

    def watch(self, path: str | None = None, *, interval: float = 1.0) -> Iterator[FileEvent]:
        """What happens to the entries of a directory from now on. It is looked at every `interval` seconds."""
        return self._portal.each(self._inner.watch(path, interval=interval))


class Turn:
    """The exclusive right to write into a session."""

    def __init__(self, portal: Portal, inner: _turn.Turn) -> None:
        self._portal, self._inner = portal, inner

    def get(self) -> TurnView:
        """Gets who has the turn, and who waits for it."""
        return self._portal.run(self._inner.get())

    def take(self) -> TurnAnswer:
        """Takes the turn if it is free."""
        return self._portal.run(self._inner.take())

    def request(self) -> TurnAnswer:
        """Requests the turn: you get it when its holder releases it or is idle."""
        return self._portal.run(self._inner.request())

    def withdraw(self) -> TurnAnswer:
        """Withdraws the request for the turn."""
        return self._portal.run(self._inner.withdraw())

    def release(self) -> TurnAnswer:
        """Releases the turn."""
        return self._portal.run(self._inner.release())

    def give(self, to: str) -> TurnAnswer:
        """Gives the turn to an actor by its handle: `human:ann`."""
        return self._portal.run(self._inner.give(to))

    def seize(self, reason: str, *, freeze: bool = False) -> SeizeAnswer:
        """Seizes the turn, whatever its holder does; can freeze the process tree."""
        return self._portal.run(self._inner.seize(reason, freeze=freeze))

    def thaw(self) -> TurnAnswer:
        """Resumes a frozen process tree."""
        return self._portal.run(self._inner.thaw())


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    home: str | os.PathLike[str] | None = None,
    actor: str | None = None,
    start: bool = True,
    patience: float = PATIENCE_S,
) -> Client:
    """Connects to a host, as `holdfast.aio.connect` does."""
    connecting = aio.connect(url, token=token, home=home, actor=actor, start=start, patience=patience)

    async def opened() -> _client.Client:
        return await connecting

    portal = Portal()
    try:
        return Client(portal, portal.run(opened()))
    except BaseException:
        portal.close()
        raise
