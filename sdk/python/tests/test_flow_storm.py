"""Worker, flow service and host killed in turns and together, over flows with everything: each effect happens once.

`HOLDFAST_FLOW_KILLS` says how often (9 by default), `HOLDFAST_FLOW_SEED` with which chance. A ledger outside counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from conftest import TestHome

from holdfast.home import Home
from holdfast.identity import Identity

HUMAN = "human:tester"
KILLS = int(os.environ.get("HOLDFAST_FLOW_KILLS") or 9)
"""Read before a home takes such names out of the environment."""
SEED = int(os.environ.get("HOLDFAST_FLOW_SEED") or time.time_ns() % 100_000)
STORM = '''
from holdfast.flow import Context, Failed, flow

@flow
async def Storm(ctx: Context, ledger: str) -> str:
    def effect(what: str, rest: str = "true") -> str:
        return f"echo {ctx.id} {what} >> {ctx.quote(ledger)}; {rest}"
    await ctx.run("Take", effect("take", "sleep 0.1"), undo=effect("untake"))
    third = f"[ $(grep -c '^{ctx.id} bake$' {ctx.quote(ledger)}) -ge 3 ]"
    bake = ctx.run("Bake", effect("bake", third), retries=5, backoff=0.02, undo=effect("unbake"))
    box = ctx.run("Box", effect("box", "sleep 0.2"))
    await ctx.all(bake, box, ctx.sleep(0.3), ctx.child("Loaf", ledger))
    await ctx.signal("manager")
    if await ctx.ask("Deliver?", options=["yes", "no"], name="Deliver") != "yes":
        raise Failed("refused")
    await ctx.run("Go", effect("go"))
    return "delivered"

@flow
async def Loaf(ctx: Context, ledger: str) -> None:
    await ctx.run("Knead", f"echo {ctx.id} knead >> {ctx.quote(ledger)}")
    await ctx.sleep(0.05)
'''
STEPS = {"bake": 3, "take": 1, "box": 1, "go": 1, "knead": 1, "untake": 1, "unbake": 1}


class Storm:
    """A home in which everything may be killed at any time."""

    def __init__(self, home: TestHome, file: Path, ledger: Path) -> None:
        self.home, self.file, self.ledger = home, file, ledger
        self.worker: subprocess.Popen[bytes] | None = None
        self.lost = 0

    def work(self) -> None:
        """Starts a worker where none runs."""
        if self.worker is None or self.worker.poll() is not None:
            env = {**self.home.env, "HOLDFAST_PYTHON": sys.executable}
            words = [os.environ["HOLDFAST_BIN"], "--as", HUMAN, "flow", "worker", str(self.file)]
            self.worker = subprocess.Popen(words, env=env, cwd=self.home.path, stderr=subprocess.DEVNULL)

    def human(self, *words: str) -> str:
        return self.home.program("--as", HUMAN, *words, check=False)

    def show(self, flow: str) -> dict[str, Any]:
        with contextlib.suppress(ValueError):
            found: dict[str, Any] = json.loads(self.human("--json", "flow", "show", flow))
            return found
        return {"status": ""}

    def kill(self, whom: str) -> None:
        if whom in ("worker", "all") and self.worker is not None:
            self.worker.kill()
            self.worker.wait()
        if whom in ("service", "all"):
            self._kill_pid("flow", "status")
        if whom in ("host", "all"):
            self._kill_pid("host", "status")

    def _kill_pid(self, *words: str) -> None:
        with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
            os.kill(json.loads(self.human("--json", *words))["pid"], signal.SIGKILL)

    def counted(self) -> Counter[str]:
        return Counter(self.ledger.read_text().splitlines() if self.ledger.exists() else [])

    def decide(self, flow: str, view: dict[str, Any]) -> None:
        """What a person does about a lost step: looks into the ledger, and says whether it happened."""
        stuck = next(one for one in view["waits_for"] if one.get("stuck"))
        name = stuck["name"].lower().replace("undo ", "un")
        happened = self.counted()[f"{flow} {name}"] >= STEPS[name]
        self.lost += 1
        self.human("flow", "retry", flow, *(["--done", ""] if happened else []))

    def tend(self, flow: str, delivered: bool) -> bool:
        """Does what people do about a flow; whether it has ended."""
        view = self.show(flow)
        status = view["status"]
        if status == "WAITING_FOR(manager)":
            self.human("flow", "signal", flow, "manager", "go", "--id", "only")
        if status == "WAITING_FOR(Deliver)":
            self.human("flow", "answer", flow, "yes" if delivered else "no")
        if status.startswith("STUCK"):
            self.decide(flow, view)
        for child in view.get("children", []):
            if child["status"].startswith("STUCK"):
                self.decide(child["id"], self.show(child["id"]))
        return status in ("COMPLETED", "FAILED")


def effects(flow: str, is_delivered: bool) -> dict[str, int]:
    """What a flow leaves in the ledger, and how often."""
    wanted = {"go": is_delivered, "untake": not is_delivered, "unbake": not is_delivered}
    # One step is that of a child.
    names = {what: f"{flow}.5 {what}" if what == "knead" else f"{flow} {what}" for what in STEPS}
    return {names[what]: count if wanted.get(what, True) else 0 for what, count in STEPS.items()}


def test_a_storm_of_kills_of_worker_service_and_host_and_every_effect_happens_once(home: TestHome, tmp_path: Path) -> None:
    kills, seed = KILLS, SEED
    chance = random.Random(seed)
    Identity.load_or_make(Home.under(home.path), HUMAN)
    file, ledger = tmp_path / "storm.py", tmp_path / "ledger"
    file.write_text(STORM)
    storm = Storm(home, file, ledger)
    flows = max(3, min(200, kills // 4))
    started: list[str] = []
    open_flows: list[str] = []
    killed: Counter[str] = Counter()
    victims: list[str] = []
    deadline = time.monotonic() + 60 + 5 * kills

    def delivered(flow: str) -> bool:
        return int(flow.removeprefix("Storm-")) % 3 != 2

    try:
        while killed.total() < kills or open_flows or len(started) < flows:
            assert time.monotonic() < deadline, (seed, killed, open_flows, storm.human("flow", "ls"))
            storm.work()
            if len(started) < flows and len(open_flows) < 4:
                flow = f"Storm-{len(started)}"
                storm.human("flow", "start", "Storm", str(ledger), "--id", flow)
                started.append(flow)
                open_flows.append(flow)
            if killed.total() < kills:
                # Each in its turn, in another order each time.
                victims = victims or chance.sample(["worker", "service", "host", "all"], 4)
                whom = victims.pop()
                storm.kill(whom)
                killed[whom] += 1
            for flow in list(open_flows):
                # A start that was killed with its service is asked again.
                if storm.show(flow)["status"] == "":
                    storm.human("flow", "start", "Storm", str(ledger), "--id", flow)
                elif storm.tend(flow, delivered(flow)):
                    open_flows.remove(flow)
            time.sleep(chance.random() * 0.15)
    finally:
        storm.kill("worker")
    counted = storm.counted()
    for flow in started:
        for effect, count in effects(flow, delivered(flow)).items():
            assert counted.pop(effect, 0) == count, (seed, effect, storm.show(flow))
    assert not counted, (seed, counted)
    assert kills < 4 or all(killed[whom] for whom in ("worker", "service", "host", "all"))
    print(f"seed {seed}: {len(started)} flows, kills {dict(killed)}, {storm.lost} lost")
