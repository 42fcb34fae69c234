"""The same flows on Temporal: `pip install holdfast[temporal]`.

A flow file does not change. Temporal keeps the history and the timers, on as many machines as it runs on. Each step is an
activity that starts a run on this machine's host, or finds it, under a key made of workflow, run, step and attempt: a step
that Temporal tries again after a crash is the same process.

`python -m holdfast.flow.temporal worker FILE.py` decides and acts. `start NAME [INPUT]`, `signal ID NAME [VALUE]`,
`answer ID TEXT`, `status ID` and `result ID` in place of `worker` are for people; `start`, `signal` and `answer` of this
module are for programs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import runpy
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from .. import aio
from .._fault import TimedOut
from ..errors import BadRequest, CannotStart, Ended, NotFound
from ._context import FLOWS, Context, Replay, computed

QUEUE = "holdfast"
ADDRESS = "localhost:7233"
_FOREVER = timedelta(days=3650)
_HEARTBEAT = timedelta(seconds=5)
"""A worker that is silent for so long is dead, and its activities go to another one."""
_BEAT_S = 1.0
_STICKY = timedelta(seconds=2)
"""What a dead worker had in its memory is decided by another one after so long."""
_AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5))
"""A broken connection, a busy shell, a refusal: asked again under the same key until it is mended."""
_UNDO_RETRIES = 3
_LOCALS: dict[str, Callable[[], Any]] = {}
"""What steps compute, by workflow and number, between their asking and their local activity in this process."""


def _key(info: activity.Info, n: int, attempt: int) -> str:
    # Bounded, because ids on Temporal are longer than a run's key.
    whole = f"{info.workflow_namespace}/{info.workflow_id}/{info.workflow_run_id}/{n}/{attempt}"
    return f"temporal/{hashlib.sha256(whole.encode()).hexdigest()[:40]}/{n}/{attempt}"


@contextlib.asynccontextmanager
async def _alive() -> AsyncIterator[None]:
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(_BEAT_S)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


@activity.defn(name="holdfast_run")
async def _run(asked: dict[str, Any]) -> dict[str, Any]:
    """Starts a run, or finds it, and waits for its end."""
    key = _key(activity.info(), asked["n"], asked["attempt"])
    limit = asked["timeout_ms"] / 1000 if asked.get("timeout_ms") else None
    async with _alive(), aio.connect() as client:
        try:
            if asked.get("session"):
                run = await (await client.open(asked["session"])).start(asked["command"], key=key)
            else:
                run = await client.start(asked["command"], key=key)
        except (BadRequest, CannotStart) as refused:
            return {"state": "refused", "why": str(refused)}
        try:
            answer = await run.wait(limit)
        except TimedOut:
            answer = await run.cancel()
        except asyncio.CancelledError:
            # The flow is cancelled, or this worker ends: only the first is to stop the command.
            if activity.is_cancelled() and not activity.is_worker_shutdown():
                with contextlib.suppress(Exception):
                    await asyncio.shield(run.cancel())
            raise
    output = answer.output.replace("\r\n", "\n")[: 32 * 1024]
    found = {"state": answer.state, "exit_code": answer.exit_code, "output": output, "run": answer.id}
    return {**found, "session": answer.session, "not_started": answer.end == "not_started"}


@activity.defn(name="holdfast_wait")
async def _wait(asked: dict[str, Any]) -> dict[str, Any]:
    """Waits for something in a session."""
    until = asked["until"]
    async with _alive(), aio.connect() as client:
        try:
            session = await client.session(asked["session"])
        except NotFound as gone:
            return {"ok": False, "value": {"why": str(gone)}}
        try:
            if isinstance(until, dict):
                return {"ok": True, "value": {"address": str((await session.wait_for(port=until["port"])).address)}}
            if until == "exit":
                return {"ok": True, "value": {"exit_code": _status((await session.wait_for(state="exit")).exit)}}
            await session.wait_for(state=until)
        except Ended as ended:
            return {"ok": False, "value": {"why": str(ended)}}
        return {"ok": True, "value": {}}


def _status(exit: Any) -> int | None:
    told = exit.model_dump() if hasattr(exit, "model_dump") else exit
    if isinstance(told, dict):
        return int(told["code"]) if "code" in told else 128 + int(told["signal"])
    return None if told is None else 1


@activity.defn(name="holdfast_step")
def _step(key: str) -> list[Any]:
    """Computes what a step computes, in the process that decides."""
    return list(computed(_LOCALS[key]))


class _Context(Context):
    """`ctx` on Temporal: what is computed here is a local activity, because Temporal has the history."""

    def _feed(self, event: dict[str, Any]) -> None:
        if event["event"] == "done":
            self._queue.append((event["n"], event["ok"], event["value"]))

    def _compute(self, n: int, local: Callable[[], Any]) -> dict[str, Any]:
        _LOCALS[f"{workflow.info().run_id}/{n}"] = local
        return {}

    def version(self, name: str, latest: int = 1) -> int:
        """A marker for changed code, kept by Temporal: a patch for each number."""
        return next((number for number in range(latest, 0, -1) if workflow.patched(f"{name} {number}")), 0)


@workflow.defn(name="HoldfastFlow", sandboxed=False)
class HoldfastFlow:
    """One flow. Its function is decided about as everywhere; what it asks for is done by Temporal."""

    def __init__(self) -> None:
        self._mail: list[tuple[str, Any]] = []
        self._ids: set[str] = set()
        self._answers: dict[int, dict[str, str]] = {}
        self._verdicts: dict[int, dict[str, Any]] = {}
        self._open: dict[int, dict[str, Any]] = {}
        self._stuck: set[int] = set()
        self._finished: list[tuple[int, bool, Any]] = []

    @workflow.run
    async def run(self, name: str, given: Any) -> Any:
        """Replays the function with each outcome, and does what it asks for."""
        function = FLOWS.get(name)
        if function is None:
            raise RuntimeError(f"this worker has no flow {name}")
        flow_id = workflow.info().workflow_id
        replay, tasks = Replay(flow_id, _Context(flow_id)), list[asyncio.Task[None]]()
        undos: list[tuple[int, dict[str, Any]]] = []
        replay.feed([{"event": "started", "input": given}], function)
        try:
            while True:
                answer = replay.decide()
                if "blocked" in answer:
                    # Fails the task and not the workflow: mended code goes on.
                    raise RuntimeError(answer["blocked"])
                for n, command in answer["commands"]:
                    if command["do"] == "end":
                        return await self._end(command, tasks, undos)
                    if command["do"] == "undo":
                        undos.append((n, command))
                    else:
                        self._open[n] = command
                        tasks.append(asyncio.create_task(self._do(n, command)))
                await workflow.wait_condition(lambda: bool(self._finished))
                n, ok, value = self._finished.pop(0)
                command = self._open.pop(n)
                if ok and command.get("undo"):
                    quoted = Context.quote(str((value or {}).get("output", "")).rstrip("\r\n"))
                    undos.append((n, {**command, "command": command["undo"].replace("{{ output }}", quoted)}))
                replay.feed([{"event": "done", "n": n, "ok": ok, "value": value}], function)
        except asyncio.CancelledError:
            await asyncio.shield(self._undo(tasks, undos))
            raise
        finally:
            replay.close()

    async def _end(
        self, end: dict[str, Any], tasks: list[asyncio.Task[None]], undos: list[tuple[int, dict[str, Any]]]
    ) -> Any:
        await self._undo(tasks, [] if end["ok"] else undos)
        if end["ok"]:
            return end["value"]
        raise ApplicationError(str(end["value"]), type="Failed", non_retryable=True)

    async def _undo(self, tasks: list[asyncio.Task[None]], undos: list[tuple[int, dict[str, Any]]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for n, undo in reversed(undos):
            # Numbers of their own, behind all that code can ask for.
            number = 1_000_000 + n
            asked = {"name": f"undo {undo['name']}", "command": undo["command"], "session": undo.get("session")}
            while not (await self._attempts(number, {**asked, "retries": _UNDO_RETRIES, "backoff_ms": 1_000}))[0]:
                await self._verdict(number)

    async def _do(self, n: int, command: dict[str, Any]) -> None:
        ok, value = await self._outcome(n, command)
        self._finished.append((n, ok, value))

    async def _outcome(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        limit = command.get("timeout_ms") or command.get("expires_ms")
        in_time = timedelta(milliseconds=limit) if limit else None
        match command["do"]:
            case "run":
                return await self._attempts(n, command)
            case "sleep":
                await workflow.sleep(timedelta(milliseconds=command["ms"]))
                return True, None
            case "until":
                left = command["at_ms"] / 1000 - workflow.time()
                await workflow.sleep(max(left, 0))
                return True, None
            case "step":
                key = f"{workflow.info().run_id}/{n}"
                ok, value = await workflow.execute_local_activity(_step, key, start_to_close_timeout=_FOREVER)
                _LOCALS.pop(key, None)
                return ok, value
            case "wait":
                try:
                    came = await asyncio.wait_for(
                        workflow.execute_activity(
                            _wait, command, start_to_close_timeout=_FOREVER, heartbeat_timeout=_HEARTBEAT,
                            retry_policy=_AGAIN, summary=command["name"],
                        ), limit / 1000 if limit else None,
                    )  # fmt: skip
                except asyncio.TimeoutError:
                    return False, {"expired": True, "why": "it did not come in time"}
                return came["ok"], came["value"]
            case _:
                return await self._told(n, command, in_time)

    async def _told(self, n: int, command: dict[str, Any], in_time: timedelta | None) -> tuple[bool, Any]:
        """What people and signals say."""
        is_ask = command["do"] == "ask"

        def came() -> bool:
            return n in self._answers if is_ask else any(name == command["name"] for name, _ in self._mail)

        try:
            await workflow.wait_condition(came, timeout=in_time)
        except asyncio.TimeoutError:
            return False, {"expired": True}
        if is_ask:
            return True, self._answers[n]
        first = next(at for at, (name, _) in enumerate(self._mail) if name == command["name"])
        return True, self._mail.pop(first)[1]

    async def _attempts(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        attempt = failures = 0
        while True:
            # A retry of the flow is a new activity, so a new key; one of Temporal is not.
            outcome = await workflow.execute_activity(
                _run, {**command, "n": n, "attempt": attempt}, start_to_close_timeout=_FOREVER,
                heartbeat_timeout=_HEARTBEAT, retry_policy=_AGAIN, summary=command["name"],
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )  # fmt: skip
            attempt += 1
            if outcome["state"] == "ended" and outcome["exit_code"] == 0:
                return True, outcome
            if outcome["state"] == "lost" and not outcome.get("not_started"):
                match command.get("on_lost", "ask"):
                    case "fail":
                        return False, outcome
                    case "ask":
                        verdict = await self._verdict(n)
                        if verdict["verdict"] != "again":
                            return verdict["verdict"] == "done", verdict.get("value") or outcome
            elif outcome["state"] != "lost":
                failures += 1
                if failures > command.get("retries", 0):
                    return False, outcome
                await workflow.sleep(timedelta(milliseconds=command.get("backoff_ms", 0) * 2 ** (failures - 1)))

    async def _verdict(self, n: int) -> dict[str, Any]:
        """A human decides about a step whose outcome is lost, or an undo that failed."""
        self._stuck.add(n)
        await workflow.wait_condition(lambda: n in self._verdicts)
        self._stuck.discard(n)
        return self._verdicts.pop(n)

    @workflow.signal
    def signal(self, name: str, value: Any, id: str) -> None:
        """A signal; the same id counts once."""
        if id not in self._ids:
            self._ids.add(id)
            self._mail.append((name, value))

    @workflow.signal
    def answer(self, text: str, by: str) -> None:
        """Answers the question that is open; another answer than its options is dropped."""
        for n, command in self._open.items():
            if command["do"] == "ask" and n not in self._answers and text in (command.get("options") or [text]):
                self._answers[n] = {"answer": text, "by": by}
                return

    @workflow.signal
    def retry(self, verdict: str, value: Any) -> None:
        """Decides about what is stuck: `again`, `failed` or `done`."""
        for n in self._stuck:
            self._verdicts[n] = {"verdict": verdict, "value": value}

    @workflow.query
    def status(self) -> dict[str, Any]:
        """What it waits for."""
        shown = ("do", "name", "text", "options")
        waits = [{"n": n, **{key: command.get(key) for key in shown}} for n, command in self._open.items()]
        return {"waits_for": waits, "stuck": sorted(self._stuck)}


async def start(
    client: Client, name: str, given: Any = None, *, id: str | None = None, queue: str = QUEUE
) -> WorkflowHandle[Any, Any]:
    """Starts a flow; the same id while it runs finds it."""
    return await client.start_workflow(
        HoldfastFlow.run, args=[name, given], id=id or f"{name}-{uuid.uuid4().hex[:8]}", task_queue=queue,
    )  # fmt: skip


async def signal(client: Client, id: str, name: str, value: Any = None, *, once: str | None = None) -> None:
    """Sends a signal; the same `once` counts once."""
    await client.get_workflow_handle(id).signal(HoldfastFlow.signal, args=[name, value, once or uuid.uuid4().hex])


async def answer(client: Client, id: str, text: str, *, by: str) -> None:
    """Answers a flow's question."""
    await client.get_workflow_handle(id).signal(HoldfastFlow.answer, args=[text, by])


async def work(client: Client, *, queue: str = QUEUE) -> None:
    """Decides about the flows of the files that were loaded, and acts for them, until it is cancelled."""
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        worker = Worker(
            client, task_queue=queue, workflows=[HoldfastFlow], activities=[_run, _wait, _step], activity_executor=threads,
            workflow_runner=UnsandboxedWorkflowRunner(), sticky_queue_schedule_to_start_timeout=_STICKY,
        )  # fmt: skip
        await worker.run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m holdfast.flow.temporal", description="Flows on Temporal")
    parser.add_argument("--address", default=ADDRESS, help="Temporal's frontend")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--queue", default=QUEUE)
    commands = parser.add_subparsers(dest="do", required=True)
    commands.add_parser("worker").add_argument("file")
    words = {"start": "name input?", "signal": "id name value?", "answer": "id text", "result": "id", "status": "id"}
    for name, each in words.items():
        command = commands.add_parser(name)
        for word in each.split():
            command.add_argument(word.rstrip("?"), nargs="?" if word.endswith("?") else None)
        if name == "start":
            command.add_argument("--id")
    return parser.parse_args()


def _load(file: str) -> None:
    sys.path.insert(0, str(Path(file).resolve().parent))
    runpy.run_path(file, run_name="__flows__")
    print(f"worker for {', '.join(sorted(FLOWS))}", file=sys.stderr, flush=True)


async def _main(words: argparse.Namespace) -> None:
    client = await Client.connect(words.address, namespace=words.namespace)
    match words.do:
        case "worker":
            _load(words.file)
            await work(client, queue=words.queue)
        case "start":
            print((await start(client, words.name, words.input, id=words.id, queue=words.queue)).id)
        case "signal":
            await signal(client, words.id, words.name, words.value)
        case "answer":
            await answer(client, words.id, words.text, by="a person at Temporal")
        case "result":
            print(json.dumps(await client.get_workflow_handle(words.id).result()))
        case "status":
            print(json.dumps(await client.get_workflow_handle(words.id).query(HoldfastFlow.status)))


if __name__ == "__main__":
    # Under its own name: what it defines is known to the files that it loads only there.
    from holdfast.flow import temporal

    asyncio.run(temporal._main(temporal._arguments()))
