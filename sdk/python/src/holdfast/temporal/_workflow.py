"""A flow as a Temporal workflow: its function decides as on the embedded engine, and Temporal does what it asks for."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError

from ..flow._context import FLOWS, Context, Replay
from ._activities import LOCALS, Sessions, compute
from ._context import TemporalContext

KEY_BYTES_MAX = 120
UNDO_RETRIES, UNDO_BACKOFF_MS, PAUSE_MS_MAX = 3, 1_000, 3_600_000
"""As the embedded engine has them."""
EVER = timedelta(days=3_650)
BEAT = timedelta(seconds=5)
"""A worker that says nothing for so long is dead, and its activities are tried elsewhere."""
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5))
"""For ever: a failure of the machinery is no outcome of a step."""


def key_of(namespace: str, flow: str, run: str, n: int, attempt: int) -> str:
    """The same key runs once, whatever dies in between."""
    key = f"temporal/{namespace}/{flow}/{run}/{n}/{attempt}"
    if len(key.encode()) <= KEY_BYTES_MAX:
        return key
    return f"temporal/{hashlib.sha256(f'{namespace}/{flow}'.encode()).hexdigest()[:32]}/{run}/{n}/{attempt}"


def filled(command: str, output: str) -> str:
    """An undo's command with the output of what it undoes, as one word."""
    return re.sub(r"\{\{\s*output\s*\}\}", lambda _: Context.quote(output), command)


def _words(outcome: dict[str, Any]) -> str:
    if outcome["state"] == "lost":
        return "lost: it may have run"
    return str(outcome.get("why") or (f"exit {outcome['exit_code']}" if outcome["state"] == "ended" else "interrupted"))


@workflow.defn(dynamic=True)
class Flow:
    """Every flow of the files that were loaded, by the workflow's type."""

    def __init__(self) -> None:
        self._mail: dict[str, deque[Any]] = {}
        self._seen: set[str] = set()
        self._questions: dict[int, dict[str, Any]] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._stuck: dict[int, str] = {}
        self._verdicts: dict[int, tuple[str, Any]] = {}
        self._open: dict[int, asyncio.Task[None]] = {}
        self._waits: dict[int, dict[str, Any]] = {}
        self._outcomes: deque[tuple[int, bool, Any]] = deque()
        self._undos: list[tuple[str, str, str | None]] = []
        self._undone = 0
        self._is_stopping = False

    # What comes from outside.

    @workflow.signal(dynamic=True)
    def any_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """A signal by its name: its value, and an id that counts once."""
        said = [workflow.payload_converter().from_payload(arg.payload) for arg in args[:2]]
        if len(said) > 1 and said[1]:
            if str(said[1]) in self._seen:
                return
            self._seen.add(str(said[1]))
        self._mail.setdefault(name, deque()).append(said[0] if said else None)

    @workflow.update(name="holdfast_answer")
    def answer(self, text: str, step: int | None = None, by: str = "") -> str:
        """Answers a question: the only open one, or that of a step, from 1."""
        n = self._asking(step)
        self._answers[n] = {"answer": text, "by": by}
        return text

    @answer.validator
    def _may_answer(self, text: str, step: int | None = None, by: str = "") -> None:
        options = self._questions[self._asking(step)].get("options") or [text]
        if text not in options:
            raise ValueError(f"answer one of: {', '.join(options)}")

    def _asking(self, step: int | None) -> int:
        asking = [n for n in self._questions if n not in self._answers and step in (None, n + 1)]
        if len(asking) != 1:
            raise ValueError("it asks nothing" if not asking else "several questions are open: name the step")
        return asking[0]

    @workflow.update(name="holdfast_retry")
    def retry(self, verdict: str = "again", value: Any = None) -> None:
        """Decides about what is stuck."""
        for n in self._stuck:
            self._verdicts[n] = (verdict, value)

    @retry.validator
    def _may_retry(self, verdict: str = "again", value: Any = None) -> None:
        if verdict not in ("again", "failed", "done"):
            raise ValueError("the verdict is again, failed or done")
        if not self._stuck:
            raise ValueError("nothing is stuck")

    @workflow.query(name="holdfast_status")
    def status(self) -> dict[str, Any]:
        """What it waits for."""
        waits = [
            {"step": n + 1, "name": one["name"], "kind": one["do"], "stuck": self._stuck.get(n)}
            for n, one in self._waits.items()
        ]
        names = ", ".join(str(one["name"]) for one in waits)
        return {
            "status": f"{'STUCK' if self._stuck else 'WAITING_FOR'}({names})" if waits else "RUNNING",
            "waits_for": waits,
        }

    # The flow itself.

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> Any:
        """Decides, does what was decided, and decides again."""
        info = workflow.info()
        given = [workflow.payload_converter().from_payload(arg.payload) for arg in args]
        if len(given) > 1:
            # What came to the history before, and no step had taken.
            for name, values in given[1]["mail"].items():
                self._mail[name] = deque([*values, *self._mail.get(name, ())])
            self._seen.update(given[1]["seen"])
        context = TemporalContext(info.workflow_id)
        replay = Replay(info.workflow_id, context)
        if info.workflow_type not in FLOWS:
            raise RuntimeError(f"no file of this worker has a flow {info.workflow_type}")
        replay.feed([{"event": "started", "input": given[0] if given else None}], FLOWS[info.workflow_type])
        try:
            ok, value = await self._go(replay, context)
        except asyncio.CancelledError:
            await self._stop()
            await self._undo(context._n)
            raise
        finally:
            replay.close()
            for n in context.computes:
                LOCALS.pop((info.run_id, n), None)
        await self._stop()
        if ok:
            return value
        await self._undo(context._n)
        raise ApplicationError(str(value), type="Failed", non_retryable=True)

    async def _go(self, replay: Replay, context: TemporalContext) -> tuple[bool, Any]:
        while True:
            answer = replay.decide()
            if "blocked" in answer:
                raise RuntimeError(answer["blocked"])
            for n, command in answer["commands"]:
                if command["do"] == "end":
                    return command["ok"], command["value"]
                if command["do"] == "continue":
                    self._continue(command["input"])
                if command["do"] == "undo":
                    self._undos.append((command["name"], command["command"], command.get("session")))
                    continue
                self._waits[n] = command
                self._open[n] = asyncio.create_task(self._perform(n, command, context))
            await workflow.wait_condition(lambda: bool(self._outcomes))
            while self._outcomes:
                n, ok, value = self._outcomes.popleft()
                context._feed({"event": "done", "n": n, "ok": ok, "value": value})

    def _continue(self, input: Any) -> None:
        running = [one["name"] for one in self._waits.values() if one["do"] in ("run", "child")]
        if running:
            raise RuntimeError(f"ctx.continue_as_new while {', '.join(running)} runs: wait for it first")
        carried = {
            "mail": {name: list(mail) for name, mail in self._mail.items() if mail},
            "seen": sorted(self._seen)[-1_000:],
        }
        workflow.continue_as_new(args=[input, carried])

    async def _perform(self, n: int, command: dict[str, Any], context: TemporalContext) -> None:
        does: dict[str, Callable[[int, dict[str, Any]], Any]] = {
            "run": self._run, "sleep": self._sleep, "until": self._sleep, "ask": self._ask, "signal": self._signal,
            "wait": self._wait, "child": self._child,
        }  # fmt: skip
        try:
            if command["do"] == "step":
                LOCALS[workflow.info().run_id, n] = context.computes[n]
                ok, value = await workflow.execute_local_activity(
                    compute, args=[workflow.info().run_id, n], start_to_close_timeout=timedelta(hours=1), retry_policy=RETRY
                )
            else:
                ok, value = await does[command["do"]](n, command)
        finally:
            self._waits.pop(n, None)
            self._questions.pop(n, None)
        self._outcomes.append((n, ok, value))

    async def _stop(self) -> None:
        """Stops what still runs, and waits for its end."""
        self._is_stopping = True
        for task in self._open.values():
            task.cancel()
        for task in self._open.values():
            with contextlib.suppress(asyncio.CancelledError, ActivityError, ChildWorkflowError, CancelledError):
                await task

    async def _undo(self, n: int) -> None:
        """What was done, the last first. One that fails stays, loudly."""
        while self._undos:
            name, command, session = self._undos[-1]
            undo = {"do": "run", "name": f"undo {name}", "command": command, "session": session,
                    "retries": UNDO_RETRIES, "backoff_ms": UNDO_BACKOFF_MS}  # fmt: skip
            number = n + self._undone
            self._waits[number] = undo
            await self._run(number, undo, is_undo=True)
            self._waits.pop(number, None)
            self._undos.pop()
            self._undone += 1

    # What a step does.

    async def _run(self, n: int, command: dict[str, Any], is_undo: bool = False) -> tuple[bool, Any]:
        info, attempt, failures = workflow.info(), 0, 0
        while True:
            timeout_ms = command.get("timeout_ms")
            asked = {
                "key": key_of(info.namespace, info.workflow_id, info.run_id, n, attempt), "name": command["name"],
                "command": command["command"], "session": command.get("session"),
                "deadline": None if timeout_ms is None else workflow.time() + timeout_ms / 1000,
            }  # fmt: skip
            outcome: dict[str, Any] = await workflow.execute_activity_method(
                Sessions.run, asked, start_to_close_timeout=EVER, heartbeat_timeout=BEAT, retry_policy=RETRY,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED, summary=command["name"],
            )  # fmt: skip
            attempt += 1
            if outcome["state"] == "ended" and outcome.get("exit_code") == 0:
                if command.get("undo"):
                    output = str(outcome.get("output", "")).rstrip("\r\n")
                    self._undos.append((command["name"], filled(command["undo"], output), command.get("session")))
                return True, outcome
            if outcome["state"] == "lost" and outcome.get("not_started"):
                continue
            lost = command.get("on_lost", "ask") if outcome["state"] == "lost" else None
            if lost == "again" and not is_undo:
                failures += 1
                continue
            if lost is None and failures < command.get("retries", 0):
                await workflow.sleep(min(command.get("backoff_ms", 0) * 2**failures, PAUSE_MS_MAX) / 1000)
                failures += 1
                continue
            if lost != "ask" and not is_undo:
                return False, outcome
            verdict, value = await self._decided(n, _words(outcome))
            if verdict == "again":
                failures = 0
                continue
            return verdict == "done", value if verdict == "done" else outcome

    async def _decided(self, n: int, why: str) -> tuple[str, Any]:
        self._stuck[n] = why
        workflow.set_current_details(f"stuck: {why}. Decide with the update holdfast_retry.")
        try:
            await workflow.wait_condition(lambda: n in self._verdicts)
        finally:
            self._stuck.pop(n, None)
            workflow.set_current_details("")
        return self._verdicts.pop(n)

    async def _sleep(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        ms = command["ms"] if command["do"] == "sleep" else command["at_ms"] - workflow.time() * 1000
        if ms > 0:
            await workflow.sleep(ms / 1000)
        return True, None

    async def _ask(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        self._questions[n] = command
        if not await self._came(lambda: n in self._answers, command.get("expires_ms")):
            return False, {"expired": True}
        return True, self._answers.pop(n)

    async def _signal(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        mail = self._mail.setdefault(command["name"], deque())
        taken: list[Any] = []

        def take() -> bool:
            # The first that waits takes it.
            if mail and not taken:
                taken.append(mail.popleft())
            return bool(taken)

        if not await self._came(take, command.get("timeout_ms")):
            return False, {"expired": True}
        return True, taken[0]

    @staticmethod
    async def _came(holds: Callable[[], bool], ms: int | None) -> bool:
        try:
            await workflow.wait_condition(holds, timeout=None if ms is None else ms / 1000)
        except asyncio.TimeoutError:
            return False
        return True

    async def _wait(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        timeout_ms = command.get("timeout_ms")
        asked = {"session": command["session"], "until": command["until"],
                 "deadline": None if timeout_ms is None else workflow.time() + timeout_ms / 1000}  # fmt: skip
        came: list[Any] = await workflow.execute_activity_method(
            Sessions.wait,
            asked,
            start_to_close_timeout=EVER,
            heartbeat_timeout=BEAT,
            retry_policy=RETRY,
            summary=command["name"],
        )
        return bool(came[0]), came[1]

    async def _child(self, n: int, command: dict[str, Any]) -> tuple[bool, Any]:
        child = f"{workflow.info().workflow_id}.{n + 1}"
        try:
            args = [command.get("input")]
            return True, await workflow.execute_child_workflow(
                command["flow"], args=args, id=child, parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL
            )
        except ChildWorkflowError as error:
            if self._is_stopping:
                raise
            why = str(error.cause or error)
            return False, {"flow": child, "state": "failed", "why": why}
