"""The same on Temporal: with local activities, and with activities."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

SOON = timedelta(seconds=30)


@activity.defn
async def step(n: int) -> int:
    return n


@workflow.defn
class FiveLocal:
    @workflow.run
    async def run(self) -> str:
        for n in range(5):
            await workflow.execute_local_activity(step, n, start_to_close_timeout=SOON)
        return "done"


@workflow.defn
class Five:
    @workflow.run
    async def run(self) -> str:
        for n in range(5):
            await workflow.execute_activity(step, n, start_to_close_timeout=SOON)
        return "done"


async def main() -> None:
    client = await Client.connect(sys.argv[1])
    runner = UnsandboxedWorkflowRunner()
    await Worker(client, task_queue="five", workflows=[Five, FiveLocal], activities=[step], workflow_runner=runner).run()


asyncio.run(main())
