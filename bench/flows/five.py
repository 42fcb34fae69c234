"""Five no-op steps."""

from holdfast.flow import Context, flow


@flow
async def Five(ctx: Context, _: None) -> str:
    for n in range(5):
        await ctx.step(f"step {n}", lambda n=n: n)  # type: ignore[misc]
    return "done"
