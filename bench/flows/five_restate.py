"""The same on Restate."""

import restate

five = restate.Service("Five")


@five.handler()
async def run(ctx: restate.Context, _: str) -> str:
    for n in range(5):
        await ctx.run_typed(f"step {n}", lambda n=n: n)
    return "done"


app = restate.app([five])
