// The pizza order in JavaScript: the same steps as pizza-order.yaml.
//
//   holdfast flow worker examples/pizza-order.mjs
//   holdfast flow start PizzaOrder margherita --id PizzaOrder-128
//   holdfast flow history PizzaOrder-128

import { flow } from "@holdfast/client/flow";

// Each line is run again after a crash; each step happens once.
flow(async function PizzaOrder(ctx, pizza) {
  const order = await ctx.run("TakeOrder", `echo ORDER-${ctx.quote(pizza)} | tr a-z A-Z`, { undo: "echo cancelled {{ output }}" });
  await ctx.run("PreparePizza", `sleep 1; echo PIZZA-${ctx.quote(order)}`, { retries: 3, backoff: "1s" });
  await ctx.sleep("5s");
  await ctx.run("DeliverPizza", "echo DELIVERED");
  return await ctx.run("SendReceipt", "echo RECEIPT SENT");
});
