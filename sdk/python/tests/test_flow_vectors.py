"""The recorded histories that workers of all languages replay alike: spec/vectors/flows.json."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.flow import Context, Failed
from holdfast.flow._context import Function, Replay

STORIES = json.loads((Path(__file__).parents[3] / "spec/vectors/flows.json").read_text())["stories"]


async def pizza(ctx: Context, kind: str) -> str:
    take = ctx.run("Take", f"take {ctx.quote(kind)}", retries=2, backoff="1s", undo="untake {{ output }}")
    order = await take
    bake, timer = ctx.run("Bake", f"bake {ctx.quote(order)}", session="kitchen", timeout="1m"), ctx.sleep("5s")
    await ctx.all(bake, timer)
    manager = ctx.signal("manager", timeout="1d")
    first = await ctx.race(manager, ctx.ask("Deliver?", options=["yes", "no"], expires="7d"))
    return f"{order} {first.result()}"


async def both(ctx: Context, _: None) -> str:
    left, right = ctx.run("Left", "left"), ctx.run("Right", "right")
    try:
        await ctx.all(left, right)
    except Failed as failed:
        return str(failed)
    return "fine"


async def peeks(ctx: Context, _: None) -> str:
    a, b = ctx.run("A", "a"), ctx.run("B", "b")
    await b
    return await ctx.run("Then", "both" if a.done else "only b")


async def saga(ctx: Context, _: None) -> str:
    await ctx.compensate("Door", "close door", session="hall")
    picked = await ctx.step("pick", lambda: 7)
    return await ctx.run("Fail", f"exit {picked}", on_lost="fail")


async def versioned(ctx: Context, _: None) -> int:
    version = ctx.version("oven", 2)
    await ctx.run("Bake", "bake")
    return version


async def expires(ctx: Context, _: None) -> str:
    try:
        return await ctx.ask("Deliver?", expires=1)
    except Failed as failed:
        return str(failed)


async def ships(ctx: Context, _: None) -> str:
    await ctx.wait("web", port=3000, timeout="1m", name="Up")
    status = await ctx.wait("build")
    if not await ctx.approve("Ship it?", expires="7d"):
        raise Failed("refused")
    return f"{status} {await ctx.agent('work', 'fix the tests', timeout='1h')}"


async def noon(ctx: Context, _: None) -> None:
    await ctx.until(datetime.datetime.fromtimestamp(1_800_000_000, datetime.timezone.utc), name="Noon")


async def family(ctx: Context, kind: str) -> str:
    first = await ctx.child("Bake", {"kind": kind})
    second, rest = ctx.child("Bake", [], name="Second"), ctx.child("Rest")
    try:
        await ctx.all(second, rest)
    except Failed as failed:
        return f"{first['loaves']} {failed}"
    return "fine"


async def loops(ctx: Context, count: int) -> int:
    await ctx.sleep("1s")
    if count < 3:
        ctx.continue_as_new(count + 1)
    return count


async def other(ctx: Context, _: str) -> str:
    return await ctx.run("Take", "take something else")


async def shorter(ctx: Context, _: str) -> None:
    return None


FLOWS: dict[str, Function] = {
    one.__name__: one for one in (pizza, both, peeks, saga, versioned, expires, ships, noon, family, loops, other, shorter)
}


@pytest.mark.parametrize("story", STORIES, ids=[story["claim"] for story in STORIES])
def test_a_recorded_history_is_replayed_as_in_every_language(story: dict[str, Any]) -> None:
    function = FLOWS[story["flow"]]
    held, known = Replay("F-1"), list[dict[str, Any]]()
    for turn in story["turns"]:
        known += turn["events"]
        held.feed(turn["events"], function)
        # Where the function stands, and from its beginning with everything at once.
        anew = Replay("F-1")
        anew.feed(known, function)
        for replay in (held, anew):
            assert json.loads(json.dumps(replay.decide())) == turn["answer"]
        anew.close()
    held.close()
