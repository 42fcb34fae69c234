"""A Temporal worker for the flows of files that were loaded."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from .. import aio
from ._activities import Sessions
from ._workflow import Flow

QUEUE = "holdfast"
"""The task queue, where none is named."""
RUNS_MAX = 1_000
"""Runs that one worker waits for at once."""


def worker(client: Client, *, queue: str = QUEUE, host: aio.Client | None = None) -> Worker:
    """A worker for every flow that `@flow` marked. It needs no sandbox: nothing but `ctx` is awaited in a flow."""
    return Worker(
        client, task_queue=queue, workflows=[Flow], activities=Sessions(host).activities,
        workflow_runner=UnsandboxedWorkflowRunner(), max_concurrent_activities=RUNS_MAX,
        # A worker that died is not waited for longer.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
    )  # fmt: skip
