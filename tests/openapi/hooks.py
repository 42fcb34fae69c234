"""Nothing waits for long: whatever is asked to wait is asked to wait for a moment."""

import schemathesis
from schemathesis.core import NotSet

WAITS = {"wait": 0.05, "wait_ms": 50, "timeout_ms": 50, "grace_ms": 50}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path.endswith("/wait"):
        # Without a limit it waits for as long as the session lives.
        if isinstance(case.body, NotSet):
            case.body = {}
        if isinstance(case.body, dict):
            case.body.setdefault("timeout_ms", WAITS["timeout_ms"])
            case.body["timeout_ms"] = case.body["timeout_ms"] or 0
    for part in (case.query, case.body):
        if isinstance(part, dict):
            for name, short in WAITS.items():
                if isinstance(part.get(name), (int, float)) and part[name] > short:
                    part[name] = short
