"""A client of a host, for `async` code."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from ._command import as_text, with_own
from ._deadline import WAIT_MS, Deadline
from ._far import FarDialer
from ._fault import Interrupted, TimedOut, Unreachable
from ._link import PATIENCE_S, Link, Params
from ._session import Run, Session, draw_id
from ._wire import Dialer, UnixDialer, WebSocketDialer
from .calls import AsyncCalls
from .errors import NameTaken, NotFound
from .home import Home
from .identity import DEFAULT_ACTOR, Identity
from .types import Event, HostStatus, QuestionView, RunAnswer, SessionView, WatchAnswer

OUTER = (
    "HOLDFAST_SESSION", "HOLDFAST_SESSION_NAME", "HOLDFAST_ENV", "HOLDFAST_LIFE",
    "HOLDFAST_ACTOR", "HOLDFAST_TOKEN", "HOLDFAST_URL",
)  # fmt: skip
"""Variables that belong to the caller alone: what runs inside a session is somebody else."""


@dataclass(frozen=True)
class Lost:
    """This many events were dropped."""

    count: int


class Client:
    """A connection to a host. It reconnects by itself and continues where it was."""

    def __init__(self, dialer: Dialer, patience: float = PATIENCE_S) -> None:
        self._link = Link(dialer, patience)
        self.identity: Identity | None = dialer.who
        self._far: dict[str, Client] = {}
        self._reaching = asyncio.Lock()
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session: who runs something there, one after the other."""
        self.call = AsyncCalls(self._ask)
        """Every operation of the table, by its name."""

    async def _ask(self, method: str, params: Params, data: bytes = b"", answer: Any = Any) -> tuple[Any, bytes]:
        return await self._link.ask(method, params, data, answer)

    @property
    def is_local(self) -> bool:
        """The host is on this machine, reached by its socket."""
        return isinstance(self._link.dialer, UnixDialer)

    @property
    def connects(self) -> int:
        """Number of connections so far: one, plus one for each reconnect."""
        return self._link.connects

    async def ask(self, method: str, params: dict[str, Any] | None = None, data: bytes = b"") -> tuple[Any, bytes]:
        """Any operation by its name on the wire: its answer as JSON, and its bytes."""
        return await self._ask(method, params or {}, data)

    async def close(self) -> None:
        """Closes the connection; sessions keep running."""
        for far in self._far.values():
            await far.close()
        await self._link.close()

    async def at(self, host: str) -> Client:
        """A client of another machine, by the name that `holdfast hosts` has for it. It is closed with this one.

        You are another actor there; the answers of `whoami` and the journal have its name.
        """
        dialer = self._link.dialer
        if not isinstance(dialer, UnixDialer):
            hint = "machines are known to a host of this machine: connect() without a URL"
            raise Unreachable(f"cannot reach {host} from here", hint=hint)
        async with self._reaching:
            if host not in self._far:
                far = Client(FarDialer(dialer.home, dialer.who, host), self._link.patience)
                try:
                    await far._link.connection()
                except BaseException:
                    await asyncio.shield(far.close())
                    raise
                self._far[host] = far
            return self._far[host]

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def status(self) -> HostStatus:
        """Get the host's version and status."""
        return await self.call.host_status()

    # Sessions.

    async def sessions(self, *, all: bool = False) -> list[Session]:
        """Lists the sessions you may observe; `all` includes ended ones."""
        return [Session(self, view) for view in await self.call.session_list(all=all)]

    async def session(self, name: str) -> Session:
        """One session by its name or id."""
        return Session(self, await self.call.session_get(session=name))

    async def open(
        self,
        name: str | None = None,
        command: str | Sequence[str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        size: str | None = None,
    ) -> Session:
        """Returns the live session of this name, or a new one. Without a command it is a shell; a text is
        split into words.

        `env` is laid over our own environment where the host is on this machine.
        """
        params = self._new(name, command, cwd, env, size)
        for _ in range(5):
            if name is not None:
                try:
                    found = await self.session(name)
                    if found.view.life == "running":
                        return found
                except NotFound:
                    pass
            try:
                view, _ = await self._ask("session.new", params, b"", SessionView)
                return Session(self, view)
            except NameTaken:
                continue  # somebody else was faster, or we were: the answer was lost
            except Interrupted:
                if name is None:
                    raise
        raise Interrupted(f"session {name} could not be opened: the host stopped repeatedly")

    def _new(
        self,
        name: str | None,
        command: str | Sequence[str] | None,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        size: str | None,
    ) -> dict[str, Any]:
        argv = shlex.split(command) if isinstance(command, str) else list(command or [])
        params: dict[str, Any] = {"name": name, "size": size}
        if not self.is_local:
            # The host's own shell, directory and environment stand in for what is not said.
            params["command"] = argv or None
            params["cwd"] = None if cwd is None else os.fspath(cwd)
            params["env_add"] = [f"{key}={value}" for key, value in (env or {}).items()] or None
            return params
        around = {key: value for key, value in os.environ.items() if key not in OUTER}
        if around.get("TERM", "dumb") == "dumb":
            # What we have is not what the session will be attached to.
            around["TERM"] = "xterm-256color"
        if cwd is not None:
            around["PWD"] = str(Path(cwd).absolute())
        around.update(env or {})
        params["command"] = argv or [os.environ.get("SHELL") or "/bin/sh"]
        params["cwd"] = str(Path(cwd).absolute() if cwd is not None else Path.cwd())
        params["env"] = [f"{key}={value}" for key, value in around.items()]
        return params

    # Runs in sessions of their own.

    async def start(
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
        """Starts a command in a session made for it: a text by the shell of the host's user, a list as it is.

        The same `key` runs once. Keys are each actor's own, unless they are `shared`. `stdin` is a text that the
        command reads in place of the terminal. With `separate_stderr` what it writes to its standard error is not in its
        output, but in `stderr` of the answer. `host` names another machine, see `at`.
        """
        if host is not None:
            far = await self.at(host)
            return await far.start(
                command, name=name, key=key, shared=shared, cwd=cwd, env=env, stdin=stdin,
                separate_stderr=separate_stderr, keep=keep,
            )  # fmt: skip
        if stdin is not None:
            command = with_own(as_text(command), stdin=stdin)
        new = self._new(name, None if isinstance(command, str) else command, cwd, env, None)
        if isinstance(command, str):
            new.pop("command")
        params: dict[str, Any] = {"new": new, "key": key, "shared": shared or None, "run": draw_id("run"), "wait_ms": 0}
        # A list is the command of the session, and the host calls the run by it.
        params |= {"command": command if isinstance(command, str) else None, "keep": keep or None}
        params["separate_stderr"] = separate_stderr or None
        answer, _ = await self._ask("run.start", params, b"", RunAnswer)
        return Run(self, answer)

    async def run(
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
        run = await self.start(
            command, name=name, key=key, shared=shared, cwd=cwd, env=env, stdin=stdin,
            separate_stderr=separate_stderr, keep=keep, host=host,
        )  # fmt: skip
        return await run._told(on_output, timeout)

    async def get_run(self, run: str) -> Run:
        """A run by its id, or by its key."""
        answer, _ = await self._ask("run.get", {"run": run}, b"", RunAnswer)
        return Run(self, answer)

    # What happens.

    async def events(self, session: str | None = None, after: int | None = None) -> AsyncIterator[Event | Lost]:
        """Yields events of a session, or of all sessions you may observe, after a number; by default from now on.

        It begins when the first one is asked for, with what each session is doing and which ports are open.
        """
        first = after is None
        while True:
            params = {"session": session, "after": after, "wait_ms": 0 if first else WAIT_MS}
            answer, _ = await self._ask("session.watch", params, b"", WatchAnswer)
            if answer.lost:
                yield Lost(answer.lost)
            for event in answer.events:
                yield event
            after, first = answer.to, False

    async def ask_human(
        self,
        text: str,
        *,
        session: str | Session,
        options: list[str] | None = None,
        key: str | None = None,
        timeout: float | None = None,
        expires: float | None = None,
    ) -> QuestionView:
        """Asks the humans of a session and waits for the answer; returns the question in its current state. With a `key`
        of your own it is asked once, also by a program that was started again.

        Raises `TimedOut` without an answer in time; the question then stays open, unless `expires` seconds are over.
        """
        params: dict[str, Any] = {
            "session": session.id if isinstance(session, Session) else session,
            "text": text,
            "options": options,
            "key": key or draw_id("key"),
            "expires_ms": None if expires is None else int(expires * 1000),
            "wait_ms": 0,
        }
        view: QuestionView
        view, _ = await self._ask("question.ask", params, b"", QuestionView)
        deadline = Deadline(timeout)
        while view.state == "open":
            if deadline.is_over:
                raise TimedOut("no answer yet", hint="the question is still open", details=view)
            again = {"question": view.id, "wait_ms": deadline.left_ms()}
            view, _ = await self._ask("question.get", again, b"", QuestionView)
        return view


class Connecting:
    """A client to be: `await` it, or enter it with `async with`."""

    def __init__(self, dialer: Dialer, patience: float) -> None:
        self._dialer, self._patience = dialer, patience
        self._client: Client | None = None

    async def _open(self) -> Client:
        client = Client(self._dialer, self._patience)
        try:
            await client._link.connection()
        except BaseException:
            await asyncio.shield(client.close())
            raise
        return client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    home: str | os.PathLike[str] | None = None,
    actor: str | None = None,
    start: bool = True,
    patience: float = PATIENCE_S,
) -> Connecting:
    """Connects to a host: over HTTP if there is a `url` (or `HOLDFAST_URL`) with a `token` (`HOLDFAST_TOKEN`), else to
    the one of this user by its socket, which is started if need be. There `actor` (`HOLDFAST_ACTOR`, else `agent:python`)
    says who speaks; its key is made where there is none. `patience` is how many seconds a host may be away.
    """
    dialer: Dialer
    url = url if url is not None or home is not None else os.environ.get("HOLDFAST_URL")
    if url:
        dialer = WebSocketDialer(url, token if token is not None else os.environ.get("HOLDFAST_TOKEN"))
    else:
        place = Home.from_env() if home is None else Home.under(home)
        place.must_be_ours()
        who = Identity.load_or_make(place, actor or os.environ.get("HOLDFAST_ACTOR") or DEFAULT_ACTOR)
        dialer = UnixDialer(place, who, start)
    return Connecting(dialer, patience)
