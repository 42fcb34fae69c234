"""Workers against the real flow service: killed in the middle, a flow goes on with the next one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_S, TestHome

from holdfast._fault import Unreachable
from holdfast.flow._worker import connect
from holdfast.home import Home

EXAMPLE = Path(__file__).parents[3] / "examples/pizza_order.py"
SAGA = '''
from holdfast.flow import Context, Failed, flow

@flow
async def Saga(ctx: Context, ledger: str) -> str:
    def effect(what: str, rest: str = "true") -> str:
        return f"echo {ctx.id} {what} >> {ctx.quote(ledger)}; {rest}"
    await ctx.run("Take", effect("take"), undo=effect("untake"))
    left = ctx.run("Bake", effect("bake", "sleep 0.2"))
    right = ctx.run("Box", effect("box"))
    await ctx.all(left, right)
    await ctx.sleep("0.2s")
    if await ctx.signal("manager") != "yes":
        raise Failed("refused")
    return "delivered"
'''


CHANGING = '''
from holdfast.flow import flow

@flow
async def Changing(ctx, _):
    await ctx.run("A", "echo a")
    await ctx.signal("go")
    return "done"
'''


class Workshop:
    """A home with workers."""

    def __init__(self, home: TestHome) -> None:
        self.home = home
        self.workers: list[subprocess.Popen[bytes]] = []

    def work(self, file: Path) -> subprocess.Popen[bytes]:
        env = {**self.home.env, "HOLDFAST_PYTHON": sys.executable}
        words = [os.environ["HOLDFAST_BIN"], "flow", "worker", str(file)]
        self.workers.append(subprocess.Popen(words, env=env, cwd=self.home.path, stderr=subprocess.PIPE))
        return self.workers[-1]

    def show(self, flow: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.home.program("--json", "flow", "show", flow))
        return found

    def until(self, flow: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(view := self.show(flow)):
            assert time.monotonic() < deadline, view
            time.sleep(0.01)
        return view

    def until_status(self, flow: str, status: str) -> dict[str, Any]:
        return self.until(flow, lambda view: view["status"] == status)


@pytest.fixture
def workshop(home: TestHome) -> Iterator[Workshop]:
    shop = Workshop(home)
    yield shop
    for worker in shop.workers:
        worker.kill()
        worker.wait()


def test_the_pizza_order_prints_its_history_whatever_worker_decides(workshop: Workshop) -> None:
    home = workshop.home
    home.program("flow", "start", "PizzaOrder", "margherita", "--id", "PizzaOrder-128")
    assert workshop.show("PizzaOrder-128")["status"] == "WAITING_FOR(worker)"
    first = workshop.work(EXAMPLE)
    workshop.until_status("PizzaOrder-128", "WAITING_FOR(PreparePizza)")
    first.send_signal(signal.SIGKILL)
    first.wait()
    workshop.work(EXAMPLE)
    workshop.until_status("PizzaOrder-128", "COMPLETED")
    assert home.program("flow", "history", "PizzaOrder-128").splitlines() == [
        "1. TakeOrder → ORDER-MARGHERITA",
        "2. PreparePizza → PIZZA-ORDER-MARGHERITA",
        "3. Timer → 5s elapsed",
        "4. DeliverPizza → DELIVERED",
        "5. SendReceipt → RECEIPT SENT",
    ]


def test_each_effect_happens_once_while_worker_and_service_are_killed(workshop: Workshop, tmp_path: Path) -> None:
    home, ledger, file = workshop.home, tmp_path / "ledger", tmp_path / "saga.py"
    file.write_text(SAGA)
    for number, answer in enumerate(["yes", "no"]):
        flow = f"Saga-{number}"
        home.program("flow", "start", "Saga", str(ledger), "--id", flow)
        worker = workshop.work(file)
        for status in ("WAITING_FOR(Bake)", "WAITING_FOR(Timer)", "WAITING_FOR(manager)"):
            workshop.until(flow, lambda view, status=status: status in view["status"] or "manager" in view["status"])  # type: ignore[misc]
            worker.kill()
            worker.wait()
            os.kill(json.loads(home.program("--json", "flow", "status"))["pid"], signal.SIGKILL)
            worker = workshop.work(file)
        workshop.until_status(flow, "WAITING_FOR(manager)")
        home.program("flow", "signal", flow, "manager", answer)
        end = workshop.until_status(flow, "COMPLETED" if answer == "yes" else "FAILED")
        assert end["value"] == ("delivered" if answer == "yes" else "refused")
        worker.kill()
        worker.wait()
    lines = sorted(ledger.read_text().splitlines())
    each = ["bake", "box", "take"]
    assert lines == sorted([f"Saga-0 {what}" for what in each] + [f"Saga-1 {what}" for what in [*each, "untake"]])


def test_a_flow_goes_on_with_its_code_and_the_newest_is_blocked_where_it_differs(workshop: Workshop, tmp_path: Path) -> None:
    home, file = workshop.home, tmp_path / "changing.py"
    text = CHANGING
    file.write_text(text)
    worker = workshop.work(file)
    for flow in ("C-1", "C-2"):
        home.program("flow", "start", "Changing", "--id", flow)
        workshop.until_status(flow, "WAITING_FOR(go)")
    worker.kill()
    worker.wait()
    file.write_text(text.replace("echo a", "echo b"))
    # It says so before it is deployed.
    env = {**home.env, "HOLDFAST_PYTHON": sys.executable}
    words = [os.environ["HOLDFAST_BIN"], "flow", "test", str(file)]
    tested = subprocess.run(words, env=env, capture_output=True, text=True)
    assert tested.returncode == 1 and "C-1: would be blocked: step 1: the history has" in tested.stdout, tested
    worker = workshop.work(file)
    home.program("flow", "signal", "C-1", "go")
    assert workshop.until_status("C-1", "COMPLETED")["value"] == "done"
    home.program("flow", "start", "Changing", "--id", "C-3")
    workshop.until_status("C-3", "WAITING_FOR(go)")
    assert home.program("flow", "history", "C-3") == "1. A → b\n"
    home.program("flow", "cancel", "C-3")
    home.program("flow", "retry", "C-2", "--new-code")
    blocked = workshop.until_status("C-2", "BLOCKED")
    assert "step 1: the history has" in blocked["why"] and "echo b" in blocked["why"]
    worker.kill()
    worker.wait()
    file.write_text(text)
    workshop.work(file)
    home.program("flow", "retry", "C-2")
    home.program("flow", "signal", "C-2", "go")
    assert workshop.until_status("C-2", "COMPLETED")["value"] == "done"
    tested = subprocess.run(words, env=env, capture_output=True, text=True)
    assert tested.stdout.splitlines()[1:] == ["C-2: fine", "C-1: fine", "3 histories, 1 would be blocked"], tested


FAMILY = '''
from holdfast.flow import Context, flow

@flow
async def Bakery(ctx: Context, round: int) -> str:
    loaf = await ctx.child("Loaf", {"round": round})
    order = await ctx.signal("order")
    if order != "last":
        ctx.continue_as_new(round + 1)
    return f"{loaf} {order}"

@flow
async def Loaf(ctx: Context, what: dict) -> str:
    return await ctx.run("Bake", f"echo {ctx.id} >> ledger; echo loaf {what['round']}")
'''


def test_a_flow_with_children_continues_as_new_whatever_dies(workshop: Workshop, tmp_path: Path) -> None:
    home, file = workshop.home, tmp_path / "family.py"
    file.write_text(FAMILY)
    home.program("flow", "start", "Bakery", "--data", "1", "--id", "B-1", "--cwd", str(tmp_path))
    worker = workshop.work(file)
    # Both come early: the second is kept across the histories.
    home.program("flow", "signal", "B-1", "order", "rye", "--id", "s1")
    home.program("flow", "signal", "B-1", "order", "wheat", "--id", "s2")
    workshop.until("B-1", lambda view: view.get("generation") == 3 and "order" in view["status"])
    worker.kill()
    worker.wait()
    os.kill(json.loads(home.program("--json", "flow", "status"))["pid"], signal.SIGKILL)
    workshop.work(file)
    home.program("flow", "signal", "B-1", "order", "rye", "--id", "s1")
    home.program("flow", "signal", "B-1", "order", "last", "--id", "s3")
    assert workshop.until_status("B-1", "COMPLETED")["value"] == "loaf 3 last"
    assert sorted((tmp_path / "ledger").read_text().splitlines()) == ["B-1.1", "B-1.1g2", "B-1.1g3"]
    assert home.program("flow", "history", "B-1", "--generation", "1").splitlines() == [
        "1. Loaf → loaf 1",
        "2. order → rye",
        "   goes on in a new history",
    ]
    assert home.program("flow", "watch", "B-1").splitlines()[-1] == "COMPLETED loaf 3 last"


def test_a_service_of_another_version_is_refused_by_name(home: TestHome) -> None:
    run = home.path / "run"
    run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(run / "flows.sock"))
        service.listen()

        def newer() -> None:
            accepted, _ = service.accept()
            with accepted:
                accepted.sendall(b'{"flows": 2, "program": "x", "pid": 1, "challenge": "00"}\n')

        threading.Thread(target=newer, daemon=True).start()
        with pytest.raises(Unreachable, match="speaks version 2, this client version 1"):
            connect(Home.under(home.path), "agent:old")
