"""Flows without a service: history in, commands out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.flow import Context, Failed, lint
from holdfast.flow._context import Function, Replay, milliseconds

STARTED = {"event": "started", "input": "margherita"}


class Story:
    """A flow whose history a test tells."""

    def __init__(self, function: Function) -> None:
        self.function, self.history = function, [dict[str, Any](STARTED)]
        self.replay = Replay("F-1")
        self.replay.feed(self.history, function)

    def decide(self) -> dict[str, Any]:
        """Decides twice: where the function stands, and from its beginning. Both must say the same."""
        again = Replay("F-1")
        again.feed(self.history, self.function)
        anew, answer = again.decide(), self.replay.decide()
        again.close()
        assert anew == answer or "uuid" in str(answer)
        for n, command in answer.get("commands", []):
            if command["do"] != "end":
                self.add({"event": "asked", "n": n, "command": command}, to_both=False)
            if command["do"] == "step":
                self.add({"event": "done", "n": n, "ok": command["ok"], "value": command["value"]}, to_both=False)
        return answer

    def add(self, event: dict[str, Any], to_both: bool = True) -> None:
        self.history.append(event)
        self.replay.feed([event], self.function)

    def done(self, n: int, value: Any = None, ok: bool = True) -> None:
        self.add({"event": "done", "n": n, "ok": ok, "value": value})


def words(answer: dict[str, Any]) -> list[str]:
    return [f"{n} {command['do']}" for n, command in answer["commands"]]


async def pizza(ctx: Context, kind: str) -> str:
    order = await ctx.run("Take", f"take {kind}", retries=2)
    left, right = ctx.run("Bake", f"bake {order}"), ctx.sleep("5s")
    await ctx.all(left, right)
    first = await ctx.race(ctx.signal("manager"), ctx.ask("Deliver?", options=["yes", "no"]))
    return f"{order} {first.result()}"


def test_the_same_history_gives_the_same_commands() -> None:
    story = Story(pizza)
    assert words(story.decide()) == ["0 run"]
    story.done(0, {"output": "ORDER\r\n"})
    assert words(story.decide()) == ["1 run", "2 sleep"]
    story.done(2)
    assert story.decide() == {"commands": []}
    story.done(1, {"output": ""})
    assert words(story.decide()) == ["3 signal", "4 ask"]
    story.done(4, {"answer": "yes", "by": "human:ann"})
    assert story.decide() == {"commands": [(5, {"do": "end", "ok": True, "value": "ORDER yes"})]}


def test_code_that_differs_is_blocked_with_the_difference() -> None:
    story = Story(pizza)
    story.decide()

    async def other(ctx: Context, kind: str) -> None:
        await ctx.run("Take", "take something else")

    changed = Replay("F-1")
    changed.feed(story.history, other)
    blocked = changed.decide()["blocked"]
    assert blocked.startswith("step 1: the history has") and "something else" in blocked

    async def shorter(ctx: Context, kind: str) -> None:
        return None

    ends = Replay("F-1")
    ends.feed(story.history, shorter)
    assert ends.decide() == {"blocked": "the code ends before step 1 of the history"}


def test_a_failure_is_an_exception_and_ends_the_flow() -> None:
    async def failing(ctx: Context, _: str) -> str:
        try:
            await ctx.run("Oven", "oven")
        except Failed as failed:
            assert failed.value["exit_code"] == 7
            raise
        return "never"

    story = Story(failing)
    story.decide()
    story.done(0, {"state": "ended", "exit_code": 7}, ok=False)
    assert story.decide() == {"commands": [(1, {"do": "end", "ok": False, "value": "Oven: exit 7"})]}


def test_nothing_but_ctx_can_be_awaited() -> None:
    async def sleeps(ctx: Context, _: str) -> None:
        await asyncio.sleep(1)

    async def waits(ctx: Context, _: str) -> None:
        class Odd:
            def __await__(self) -> Any:
                yield "something"

        await Odd()

    assert "a flow awaits only what ctx gives" in Story(sleeps).decide()["blocked"]
    assert "a flow awaits only what ctx gives" in Story(waits).decide()["blocked"]


def test_recorded_values_stay_the_same() -> None:
    async def chancy(ctx: Context, _: str) -> list[Any]:
        return [await ctx.uuid(), await ctx.now(), await ctx.random()]

    story = Story(chancy)
    first = story.decide()["commands"][-1][1]["value"]
    again = Replay("F-1")
    again.feed(story.history, chancy)
    assert again.decide() == {"commands": [(3, {"do": "end", "ok": True, "value": first})]}


def test_a_version_marks_changed_code() -> None:
    async def new(ctx: Context, _: str) -> int:
        version = ctx.version("oven", 2)
        await ctx.run("Bake", "bake")
        return version

    old = Replay("F-1")
    bake = {"do": "run", "name": "Bake", "command": "bake"}
    old.feed([STARTED, {"event": "asked", "n": 0, "command": bake}, {"event": "done", "n": 0, "ok": True, "value": {}}], new)
    assert old.decide()["commands"][0][1]["value"] == 0
    story = Story(new)
    assert words(story.decide()) == ["0 step", "1 run"]
    story.done(1, {})
    assert story.decide()["commands"][0][1]["value"] == 2


def test_the_lint_names_line_and_remedy() -> None:
    source = """
import random, time, os
from holdfast.flow import flow

def helper():
    return time.time()

@flow
async def order(ctx, pizza):
    if random.random() < 0.5:
        time.sleep(1)
    value = await ctx.step("read", lambda: open("x").read())
    return os.environ["HOME"], time.time()
"""
    found = [str(finding) for finding in lint(source)]
    assert [one.split(":")[0] for one in found] == ["line 10", "line 11", "line 13", "line 13"]
    assert "use ctx.random()" in found[0] and "use ctx.sleep()" in found[1]


@pytest.mark.parametrize("text, ms", [("5s", 5_000), ("1.5h", 5_400_000), (2, 2_000)])
def test_durations(text: str | float, ms: int) -> None:
    assert milliseconds(text) == ms
    with pytest.raises(ValueError, match="invalid duration"):
        milliseconds("5 parsecs")
