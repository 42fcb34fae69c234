"""The same flows on Temporal: for work that must go on beyond one machine.

```sh
pip install 'holdfast[temporal]'
python -m holdfast.temporal pizza_order.py --address localhost:7233
temporal workflow start --task-queue holdfast --type PizzaOrder --workflow-id PizzaOrder-1 --input '"margherita"'
```

A flow file stays as it is. Its function is decided about by the code that decides on the embedded engine, inside a
Temporal workflow of its name; each command it asks for becomes Temporal's own: a timer, a signal, a child workflow, an
activity. A run is an activity that creates or finds a run on a Holdfast host, under a key made of workflow, run and step:
an activity that Temporal tries again attaches to the process that still runs, and starts nothing twice.

- Signals are Temporal's, by their name; the second argument, if there is one, is an id that counts once.
- A question waits for the update `holdfast_answer` (`text`, and `step` and `by` if you like).
- What only a human can decide (a lost step, an undo that fails) waits for the update `holdfast_retry` (`again`, `failed`,
  or `done` and a value).
- The query `holdfast_status` says what a flow waits for.
- Cancelling the workflow stops what runs and undoes what was done.
- Code that cannot go on fails the workflow task, not the workflow: mend it, restart the worker, and it goes on.
"""

from ._activities import Sessions
from ._worker import QUEUE, worker
from ._workflow import Flow

__all__ = ["QUEUE", "Flow", "Sessions", "worker"]
