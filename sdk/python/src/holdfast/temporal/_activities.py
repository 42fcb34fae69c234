"""Sessions as activities: what a step runs, on a Holdfast host. An activity that is tried again finds what it started."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from .. import aio, errors
from .._session import Run, Session
from ..flow._context import computed
from ..types import RunAnswer

BEAT_S = 1.0
"""How often an activity says that its worker lives."""
KEY_TRUST_S = 5 * 86_400
"""How long a key counts as known to the host: it keeps keys for a week by default."""
PAUSE_S, PAUSE_MAX_S = 0.1, 3.0
"""Pauses before what cannot be done now, a busy shell for example, is tried again."""
OUTPUT_CHARS_MAX = 32 * 1024
_REFUSED = (errors.CannotStart, errors.BadRequest, errors.TooLarge, errors.UnknownKeeper, errors.Ambiguous)
_DENIED = (errors.Denied, errors.Unidentified, errors.Unconfirmed, errors.NoSuchActor, errors.KeyConflict)
_ABSENT = (errors.NoSuchRun, errors.NotFound)

LOCALS: dict[tuple[str, int], Callable[[], Any]] = {}
"""Functions of `ctx.step` in workflows of this process, by run and step."""


@activity.defn(name="holdfast_step")
async def compute(run_id: str, n: int) -> list[Any]:
    """Calls a function of a flow here. A local activity: it runs in the process that has the workflow."""
    return list(await asyncio.to_thread(computed, LOCALS[run_id, n]))


@contextlib.asynccontextmanager
async def _beating() -> AsyncIterator[None]:
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_S)

    beats = asyncio.create_task(beat())
    try:
        yield
    finally:
        beats.cancel()


def outcome_of(answer: RunAnswer) -> dict[str, Any]:
    """What the flow's history has of a run."""
    output = answer.output.replace("\r\n", "\n")
    return {
        "state": answer.state, "exit_code": answer.exit_code, "run": answer.id, "session": answer.session,
        "not_started": answer.state == "lost" and answer.end == "not_started",
        "output": output[:OUTPUT_CHARS_MAX], "truncated": answer.truncated or len(output) > OUTPUT_CHARS_MAX,
        "from": answer.from_, "to": answer.to,
    }  # fmt: skip


class Sessions:
    """The activities of one worker. `client` is one of the host; by default what the environment names."""

    def __init__(self, client: aio.Client | None = None) -> None:
        self._client, self._opening = client, asyncio.Lock()

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """For Temporal's `Worker`."""
        return [self.run, self.wait, compute]

    async def _host(self) -> aio.Client:
        async with self._opening:
            if self._client is None:
                self._client = await aio.connect()
        return self._client

    @activity.defn(name="holdfast_run")
    async def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Runs a command in a session, or finds it under its key, and waits for its end."""
        async with _beating():
            pause = PAUSE_S
            while True:
                try:
                    run = await self._begin(asked)
                    return {"state": "lost"} if run is None else outcome_of(await self._end(run, asked.get("deadline")))
                except _DENIED as denied:
                    # Tried again and told meanwhile: it goes on once the right is there.
                    raise ApplicationError(f"the host refuses it: {denied}", type="denied") from denied
                except _REFUSED as refused:
                    return {"state": "refused", "why": refused.message}
                except errors.Fault as fault:
                    activity.logger.info("%s waits: %s", asked["name"], fault)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, PAUSE_MAX_S)

    async def _begin(self, asked: dict[str, Any]) -> Run | None:
        """The run, started or found; none: nobody knows whether it ran."""
        host, info = await self._host(), activity.info()
        if info.attempt > 1:
            with contextlib.suppress(errors.NoSuchRun):
                return await host.get_run(asked["key"])
            if time.time() - info.scheduled_time.timestamp() > KEY_TRUST_S:
                return None
        name = asked.get("session")
        if name is None:
            return await host.start(asked["command"], key=asked["key"])
        session: Session = await (host.session(name) if name.startswith("ses_") else host.open(name))
        return await session.start(asked["command"], key=asked["key"])

    async def _end(self, run: Run, deadline: float | None) -> RunAnswer:
        left = None if deadline is None else max(0.0, deadline - time.time())
        try:
            return await run.wait(left)
        except TimeoutError:
            return await self._stopped(run)
        except asyncio.CancelledError:
            # A worker that is stopped leaves the run alone: the next one finds it.
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                return await self._stopped(run)
            raise

    async def _stopped(self, run: Run) -> RunAnswer:
        with contextlib.suppress(*_ABSENT):
            await run.cancel()
        return await run.wait()

    @activity.defn(name="holdfast_wait")
    async def wait(self, asked: dict[str, Any]) -> list[Any]:
        """Waits for something in a session: whether it came, and what is known of it."""
        until, deadline = asked["until"], asked.get("deadline")
        async with _beating():
            left = None if deadline is None else max(0.0, deadline - time.time())
            try:
                session = await (await self._host()).session(asked["session"])
                if isinstance(until, dict):
                    listener = await session.wait_for(port=until["port"], timeout=left)
                    return [True, {"address": listener.address}]
                found = await session.wait_for(state=until, timeout=left)
                return [True, {"exit_code": _status(found.exit)} if until == "exit" else {"address": None}]
            except TimeoutError:
                return [False, {"expired": True, "why": "it did not come in time"}]
            except _DENIED as denied:
                raise ApplicationError(f"the host refuses it: {denied}", type="denied") from denied
            except (errors.NotFound, errors.Ambiguous, errors.BadRequest, errors.Ended) as fault:
                return [False, {"why": fault.message}]


def _status(exit: Any) -> int | None:
    told = exit.model_dump() if hasattr(exit, "model_dump") else exit
    if isinstance(told, dict):
        return told["code"] if told.get("code") is not None else 128 + int(told.get("signal") or 0)
    return None
