"""Durable flows: ordinary async functions whose every step survives crashes.

```python
from holdfast.flow import flow, Context, Failed

@flow
async def PizzaOrder(ctx: Context, pizza: str) -> str:
    order = await ctx.run("TakeOrder", f"./take-order {ctx.quote(pizza)}", undo="./cancel-order {{ output }}")
    await ctx.sleep("5d")
    if await ctx.ask("Deliver?", options=["yes", "no"]) != "yes":
        raise Failed("refused")
    return await ctx.run("Deliver", f"./deliver {ctx.quote(order)}")
```

`holdfast flow worker FILE.py` decides about such flows, `holdfast flow start PizzaOrder margherita` starts one. The function
is run again from its beginning whenever something new is known; what it already asked for is answered from the history. So
nothing but `ctx` may be awaited in it, and time, chance and the environment come from `ctx` too.
"""

from ._context import Context, Failed, Nondeterministic, Step, flow
from ._lint import Finding, lint
from ._worker import Worker

__all__ = ["Context", "Failed", "Finding", "Nondeterministic", "Step", "Worker", "flow", "lint"]
