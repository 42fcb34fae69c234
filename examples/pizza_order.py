"""The pizza order in Python: the same steps as pizza-order.yaml.

holdfast flow worker examples/pizza_order.py
holdfast flow start PizzaOrder margherita --id PizzaOrder-128
holdfast flow history PizzaOrder-128
"""

from holdfast.flow import Context, flow


@flow
async def PizzaOrder(ctx: Context, pizza: str) -> str:
    """Each line is run again after a crash; each step happens once."""
    order = await ctx.run(
        "TakeOrder", f"echo ORDER-{ctx.quote(pizza)} | tr a-z A-Z", undo="echo cancelled {{ output }}"
    )
    await ctx.run("PreparePizza", f"sleep 1; echo PIZZA-{ctx.quote(order)}", retries=3, backoff="1s")
    await ctx.sleep("5s")
    await ctx.run("DeliverPizza", "echo DELIVERED")
    return await ctx.run("SendReceipt", "echo RECEIPT SENT")
