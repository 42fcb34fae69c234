"""The host is killed again and again while clients read, type, run and watch: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import pytest
from conftest import PATIENCE_S, TestHome

from holdfast import aio, errors
from holdfast.types import Gap

LINES = 40_000
WRITER = (
    "import sys,time\n"
    f"for i in range({LINES}):\n"
    "    sys.stdout.write(f'{i:07d} the quick brown fox\\n')\n"
    "    if i % 500 == 499: sys.stdout.flush(); time.sleep(0.05)\n"
)


class Killer:
    """Kills the host whenever one is there, and counts."""

    def __init__(self, client: aio.Client) -> None:
        self._client = client
        self.kills = 0

    async def once(self) -> None:
        pid = (await self._client.status()).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    async def again_and_again(self, enough: asyncio.Event, most: int, every: float) -> None:
        while not enough.is_set() and self.kills < most:
            await self.once()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(enough.wait(), every)


@contextlib.asynccontextmanager
async def killing(most: int, every: float) -> AsyncIterator[Killer]:
    """Kills hosts while the body runs, in the middle of whatever it does."""
    async with aio.connect(actor="agent:killer") as client:
        killer, enough = Killer(client), asyncio.Event()
        task = asyncio.create_task(killer.again_and_again(enough, most, every))
        try:
            yield killer
        finally:
            enough.set()
            await asyncio.wait_for(task, PATIENCE_S)


async def test_output_is_read_whole_while_hosts_die(client: aio.Client, home: TestHome) -> None:
    around = [f"{key}={value}" for key, value in home.env.items()]
    # The ring holds all of it, so that nothing is gone however slow the machine is.
    made = await client.call.session_new(command=["python3", "-u", "-c", WRITER], cwd="/", env=around, ring_bytes=4 << 20)
    session = await client.session(made.id)
    expected = "".join(f"{i:07d} the quick brown fox\r\n" for i in range(LINES)).encode()
    got = bytearray()
    async with killing(most=12, every=0.15) as killer:
        async for offset, piece in session.output(0):
            assert not isinstance(piece, Gap), piece
            assert offset == len(got)
            got += piece
    assert bytes(got) == expected
    assert killer.kills >= 3, killer.kills
    assert client.connects > 3


async def test_no_run_happens_twice_while_hosts_die(client: aio.Client, home: TestHome) -> None:
    session = await client.open("work")
    await session.wait_for(state="idle", timeout=PATIENCE_S)
    answers = []
    async with killing(most=10, every=0.03) as killer:
        while killer.kills < 10:
            i = len(answers)
            answers.append(await session.run(f"echo {i} >> ran; echo out {i}; (exit {i % 100})", timeout=PATIENCE_S))
        i = len(answers)
        answers.append(await session.run(f"echo {i} >> ran; echo out {i}; (exit {i % 100})", timeout=PATIENCE_S))
    ran = [int(line) for line in (home.path / "ran").read_text().split()]
    assert ran == sorted(set(ran)), "one ran twice"
    for i, answer in enumerate(answers):
        if answer.state == "lost":
            continue  # its host died before anybody saw it start: it may have run, or not
        assert (answer.exit_code, answer.output, i in ran) == (i % 100, f"out {i}\n", True)
    assert answers[-1].state == "ended"


async def test_a_run_that_is_waited_for_outlives_the_host(client: aio.Client, home: TestHome) -> None:
    run = await client.start(["/bin/sh", "-c", "echo begun; read line; echo got $line; exit 5"])
    session = await client.session(run.view.session)
    waiting = asyncio.create_task(run.wait(PATIENCE_S))
    killer = Killer(client)
    await session.wait_for(text="begun", from_=0, timeout=PATIENCE_S)
    for _ in range(3):
        await killer.once()
        await session.wait_for(state="waiting", timeout=PATIENCE_S)
    assert not waiting.done()
    await session.send("it", enter=True)
    assert (await waiting).exit_code == 5
    assert b"got it\r\n" in (await run.output()).data


async def test_what_is_typed_arrives_once_and_in_order_while_hosts_die(client: aio.Client, home: TestHome) -> None:
    script = "stty -echo; echo ready; while read line; do echo $line >> typed; [ $line = last ] && exit 0; done"
    session = await client.open("typing", ["/bin/sh", "-c", script])
    await session.wait_for(text="ready", from_=0, timeout=PATIENCE_S)
    words: list[str] = []
    async with killing(most=10, every=0.03) as killer:
        while killer.kills < 10:
            words.append(f"word{len(words)}")
            await session.send(words[-1], enter=True)
    words.append("last")
    await session.send("last", enter=True)
    await session.wait_for(state="exit", timeout=PATIENCE_S)
    assert (home.path / "typed").read_text().split() == words


async def test_events_go_on_behind_their_number_while_hosts_die(client: aio.Client) -> None:
    begun = await client.call.session_watch()
    names = [f"s{i}" for i in range(6)]
    exits: list[str] = []
    numbers: list[int] = []

    async def watch() -> None:
        async for event in client.events(after=begun.to):
            if isinstance(event, aio.Lost):
                continue
            numbers.append(event.seq)
            if event.event == "exit":
                exits.append(event.name)
            if event.name == "last" and event.event == "started":
                return

    watching = asyncio.create_task(watch())
    killer = Killer(client)
    for i, name in enumerate(names):
        session = await client.open(name, "sleep 1000")
        await session.end(grace=0)
        if i % 2:
            await killer.once()
    await client.open("last", "sleep 1000")
    await asyncio.wait_for(watching, PATIENCE_S)
    assert numbers == sorted(set(numbers)), "an event came twice or out of order"
    assert set(exits) <= set(names)


async def test_what_may_not_be_asked_twice_is_interrupted(client: aio.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = await client._link.connection()
    answered = connection._wire.receive

    async def deaf() -> object:
        await answered()
        raise ConnectionResetError("cut before the answer")

    monkeypatch.setattr(connection._wire, "receive", deaf)
    # The reader waits for one answer already: this one is it.
    first = await client.status()
    assert first.pid > 0
    with pytest.raises(errors.Interrupted) as interrupted:
        await client.call.session_new(command=["sleep", "1000"], cwd="/", name="maybe")
    assert interrupted.value.hint
    # It did happen; who gave a name can find out.
    again = await client.open("maybe", ["sleep", "1000"])
    assert [session.id for session in await client.sessions()] == [again.id]
    assert client.connects == 2


async def test_nobody_there_is_told_in_time(home: TestHome) -> None:
    with pytest.raises(aio.Unreachable) as nobody:
        await aio.connect(start=False, patience=0.1)
    assert nobody.value.hint and "host.sock" in str(nobody.value)
