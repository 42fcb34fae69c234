"""Carriers of messages: a unix socket, or a WebSocket. Each says hello, and who speaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import websockets.asyncio.client
import websockets.exceptions
from websockets.typing import Subprotocol

from . import frames
from ._fault import Fault, HoldfastError, Unreachable
from .errors import BY_CODE
from .frames import Message
from .home import Home, program
from .identity import Identity

VERSIONS = [1]
PROGRAM = "holdfast-python 0.1.0"
READY_S = 15.0
"""How long a host may take until it answers: it reads every session's files first, on a machine that may be busy."""
START_AGAIN_S = 0.5
"""How long after a host was started and still none answers another one is started."""
SOCKET_PATH_MAX = 107
WINDOW_BYTES = 256 * 1024
"""Bytes that may be on their way to who follows output: enough for a fast line to be full, and a moment's work."""


class NoHost(ConnectionError):
    """No host listens yet; one may soon."""


class Broken(ConnectionError):
    """The connection is gone. `sent`: the host may have got the request."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Wire(Protocol):
    """Carries messages."""

    async def send(self, message: Message) -> None: ...

    async def receive(self) -> Message: ...

    async def close(self) -> None: ...


class UnixWire:
    """A unix socket: each frame has its length in front."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: Message) -> None:
        self._writer.write(frames.encode_stream(message))
        await self._writer.drain()

    async def receive(self) -> Message:
        # With the kind: what is no frame is known by it, before its "length" has arrived.
        head = await self._reader.readexactly(5)
        whole = frames.decode_stream(head)
        if whole is None:
            rest = await self._reader.readexactly(int.from_bytes(head[:4], "little") - 1)
            whole = frames.decode_stream(head + rest)
        if whole is None:
            raise frames.FrameError("malformed", "malformed frame")
        return whole[0]

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class WebSocketWire:
    """A WebSocket: each binary message is a frame, without its length."""

    def __init__(self, socket: websockets.asyncio.client.ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: Message) -> None:
        await self._socket.send(frames.encode(message))

    async def receive(self) -> Message:
        content = await self._socket.recv()
        if isinstance(content, str):
            raise frames.FrameError("malformed", "a text where a frame should be")
        return frames.decode(content)

    async def close(self) -> None:
        await self._socket.close()


def fault_of(error: dict[str, Any]) -> Fault:
    """The exception for an error as it is sent."""
    data = error.get("data") or {"code": "internal", "message": error.get("message", "")}
    code = str(data.get("code", "internal"))
    kind = BY_CODE.get(code, Fault)
    return kind(str(data.get("message", "")), hint=str(data.get("hint", "")), details=data.get("details"), code=code)


class Follow:
    """Output that a host pushes over one connection: as much as was granted, and no more."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._pieces: asyncio.Queue[tuple[Any, bytes] | Exception] = asyncio.Queue()
        self._owed = 0

    def put(self, piece: tuple[Any, bytes] | Exception) -> None:
        """What came, or why nothing more will."""
        self._pieces.put_nowait(piece)

    async def next(self) -> tuple[Any, bytes]:
        """The next event's parameters and its bytes."""
        piece = await self._pieces.get()
        if isinstance(piece, Exception):
            raise piece
        if piece[0].get("fault") is not None:
            raise fault_of({"data": piece[0]["fault"]})
        return piece

    async def done(self, count: int) -> None:
        """So many bytes were dealt with: as many more may come."""
        self._owed += count
        if self._owed >= WINDOW_BYTES // 2:
            owed, self._owed = self._owed, 0
            # One that has ended needs none.
            with contextlib.suppress(Fault):
                await self._connection.request("session.credit", {"follow": self.number, "bytes": owed})

    async def stop(self) -> None:
        """No more is wanted."""
        if self._connection.forget(self.number):
            with contextlib.suppress(Fault, Broken):
                await self._connection.request("session.unfollow", {"follow": self.number})


class Connection:
    """Requests out, answers in, in any order."""

    def __init__(self, wire: Wire, on_event: Callable[[str, Any], None] | None = None) -> None:
        self._wire = wire
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._next = 1
        self._sending = asyncio.Lock()
        self._gone: str | None = None
        self._on_event = on_event
        self._follows: dict[int, Follow] = {}
        self._next_follow = 1
        self._reading = asyncio.create_task(self._read(), name="holdfast connection")

    @property
    def alive(self) -> bool:
        """It is not known to be gone."""
        return self._gone is None

    async def _read(self) -> None:
        why = "the connection to the host broke"
        try:
            while True:
                self._take(await self._wire.receive())
        except frames.FrameError as error:
            why = f"cannot read the host's answer: {error}"
        except (OSError, EOFError, websockets.exceptions.WebSocketException) as error:
            why = f"the connection to the host broke: {error}"
        finally:
            self._gone = why
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Broken(why, sent=True))
            self._waiting.clear()
            for follow in self._follows.values():
                follow.put(Broken(why, sent=True))
            self._follows.clear()

    def _take(self, message: Message) -> None:
        if message.is_answer:
            future = self._waiting.pop(message.id or 0, None)
            # Nobody waits any more: the caller was cancelled.
            if future and not future.done():
                future.set_result(message)
        elif message.id is None and message.method == "output":
            self._pushed(message)
        elif message.id is None and self._on_event:
            self._on_event(message.method or "", message.params)

    def _pushed(self, message: Message) -> None:
        number = message.params["follow"]
        if follow := self._follows.get(number):
            follow.put((message.params, message.data))
            if message.params["end"] or message.params.get("fault") is not None:
                self.forget(number)

    def forget(self, number: int) -> bool:
        """Whether it was followed until now."""
        return self._follows.pop(number, None) is not None

    async def follow(self, session: str, from_: int | None) -> Follow:
        """Follows a session's output from an offset on. It ends with the connection."""
        number, self._next_follow = self._next_follow, self._next_follow + 1
        follow = self._follows[number] = Follow(self, number)
        params = {"session": session, "follow": number, "from": from_, "credit": WINDOW_BYTES}
        try:
            await self.request("session.follow", params)
        except BaseException:
            self.forget(number)
            raise
        return follow

    async def request(self, method: str, params: Any, data: bytes = b"") -> tuple[Any, bytes]:
        """Asks, and waits for the answer."""
        if self._gone is not None:
            raise Broken(self._gone, sent=False)
        number, self._next = self._next, self._next + 1
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            async with self._sending:
                await self._wire.send(Message(id=number, method=method, params=params, data=data))
            answer = await future
        except (OSError, websockets.exceptions.WebSocketException) as error:
            if isinstance(error, Broken):
                raise
            raise Broken(str(error), sent=True) from None
        finally:
            self._waiting.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # looked at, or the loop complains
        if answer.error is not None:
            raise fault_of(answer.error)
        return answer.result, answer.data

    async def close(self) -> None:
        """Lets go."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        await self._wire.close()


async def hello(wire: Wire, who: Identity | None, on_event: Callable[[str, Any], None] | None) -> Connection:
    connection = Connection(wire, on_event)
    try:
        greeting = {"versions": VERSIONS, "program": PROGRAM}
        said, _ = await asyncio.wait_for(connection.request("hello", greeting), READY_S)
        if who is not None:
            signature = who.sign(who.challenge_bytes(said["challenge"]))
            proof = {"actor": who.actor, "signature": signature}
            await asyncio.wait_for(connection.request("identify", proof), READY_S)
        return connection
    except Broken as broken:
        # It died, or yielded to another, between our connect and its hello.
        await connection.close()
        raise NoHost(str(broken)) from None
    except asyncio.TimeoutError:
        await connection.close()
        raise Unreachable("the host does not answer; its process may be stopped or stuck") from None
    except BaseException:
        await connection.close()
        raise


class UnixDialer:
    """Connects to the host of a home, and starts it where none listens."""

    pause_max = 0.05

    def __init__(self, home: Home, who: Identity, start: bool) -> None:
        self.home, self.who, self.start = home, who, start
        self.on_event: Callable[[str, Any], None] | None = None
        self._start_at = 0.0

    async def dial(self) -> Connection:
        """One attempt; `NoHost` says that another may do."""
        # Again: what was not there when it was looked at may be somebody else's now.
        self.home.must_be_ours()
        try:
            wire = UnixWire(*await open_unix(self.home.socket))
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if self.start and time.monotonic() >= self._start_at:
                # Again after a while: the one we started may have yielded to another that died since.
                self._start_at = time.monotonic() + START_AGAIN_S
                await asyncio.to_thread(self._spawn)
            raise NoHost(f"no host is running (its socket would be {self.home.socket})") from error
        connection = await hello(wire, self.who, self.on_event)
        # There was one: when it dies the next is started at once.
        self._start_at = 0.0
        return connection

    async def close(self) -> None:
        """There is nothing to let go."""

    def _spawn(self) -> None:
        name = program()
        self.home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        env = dict(os.environ)
        if self.home == Home.under(self.home.state):
            env["HOLDFAST_HOME"] = str(self.home.state)
        # `host spawn` forks away and returns at once: no zombie is left to us.
        with open(os.open(self.home.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "wb") as log:
            quiet = subprocess.DEVNULL
            done = subprocess.run([name, "host", "spawn"], cwd="/", env=env, stdin=quiet, stdout=quiet, stderr=log)
        if done.returncode != 0:
            raise Unreachable(f"cannot start the host from {name}", hint=f"see {self.home.log}")


async def open_unix(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
        return await asyncio.open_unix_connection(path)
    # A longer path does not fit an address: the directory is named by a descriptor.
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


class WebSocketDialer:
    """Connects to a host over HTTP; the token says who speaks."""

    pause_max = 1.0

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        schemes = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
        if parts.scheme not in schemes:
            raise ValueError(f"invalid address {url!r}; expected http://HOST:PORT or https://HOST:PORT")
        path = parts.path.rstrip("/")
        path = path if path.endswith("/v1/connect") else path.removesuffix("/v1") + "/v1/connect"
        self.url = urlunsplit((schemes[parts.scheme], parts.netloc, path, "", ""))
        self.token = token
        self.who: Identity | None = None
        self.on_event: Callable[[str, Any], None] | None = None

    async def dial(self) -> Connection:
        """One attempt; `NoHost` says that another may do."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            socket = await websockets.asyncio.client.connect(
                self.url,
                subprotocols=[Subprotocol("holdfast.v1")],
                additional_headers=headers,
                max_size=frames.FRAME_BYTES_MAX,
                compression=None,
                open_timeout=READY_S,
            )
        except websockets.exceptions.InvalidStatus as error:
            status = error.response.status_code
            if status in (429, 502, 503, 504):
                raise NoHost(f"the host at {self.url} answers {status}") from None
            raise _refused(self.url, status, bytes(error.response.body or b"")) from None
        except (OSError, EOFError, websockets.exceptions.WebSocketException) as error:
            raise NoHost(f"no host answers at {self.url}: {error}") from None
        return await hello(WebSocketWire(socket), None, self.on_event)

    async def close(self) -> None:
        """There is nothing to let go."""


def _refused(url: str, status: int, body: bytes) -> HoldfastError:
    """What a host said in place of opening a WebSocket."""
    try:
        told = json.loads(body)
        return fault_of({"data": {**told, "code": told["code"]}})
    except (ValueError, TypeError, KeyError):
        hint = "is it a Holdfast host's address?"
        return Unreachable(f"{url} refuses the connection with status {status}", hint=hint)


class Dialer(Protocol):
    """Opens connections to one host."""

    @property
    def who(self) -> Identity | None: ...

    @property
    def pause_max(self) -> float: ...

    async def dial(self) -> Connection: ...

    async def close(self) -> None: ...
