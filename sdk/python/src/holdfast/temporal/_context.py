"""`ctx` inside a Temporal workflow: what is recorded is recorded by Temporal, and time and chance are its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from temporalio import workflow

from ..flow._context import Context, Step

T = TypeVar("T")


class TemporalContext(Context):
    """The same steps under the same numbers. What a step computes here becomes known once Temporal has it."""

    def __init__(self, flow_id: str) -> None:
        super().__init__(flow_id)
        self.computes: dict[int, Callable[[], Any]] = {}
        """Functions of `ctx.step` that are to be called, by their step."""

    def _ask(
        self, name: str, command: dict[str, Any], convert: Callable[[Any], T], local: Callable[[], Any] | None = None
    ) -> Step[T]:
        if local is not None:
            self.computes[self._n] = local
        return super()._ask(name, command, convert)

    def _feed(self, event: dict[str, Any]) -> None:
        if event["event"] == "done":
            self._queue.append((event["n"], event["ok"], event["value"]))

    def _known(self, name: str, value: T) -> Step[T]:
        # The same in each replay by itself: nothing is recorded.
        n, self._n = self._n, self._n + 1
        self._asked[n] = {"do": "step", "name": name}
        self._know(n, True, value)
        return Step(self, n, name, lambda _: value)

    def now(self) -> Step[float]:
        return self._known("now", workflow.time())

    def random(self) -> Step[float]:
        return self._known("random", workflow.random().random())

    def uuid(self) -> Step[str]:
        return self._known("uuid", str(workflow.uuid4()))

    def version(self, name: str, latest: int = 1) -> int:
        for version in range(latest, 0, -1):
            if workflow.patched(f"{name} {version}"):
                return self._known(f"version {name}", version).result()
        return 0
