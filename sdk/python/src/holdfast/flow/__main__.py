"""`python -m holdfast.flow FILE.py`: a worker for the flows of a file. `holdfast flow worker` and `flow test` start it.

With `--test` it replays every recorded history of these flows against the file and says what would diverge; with
`--names` it prints the names of the file's flows.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from ..home import Home
from ._context import FLOWS
from ._lint import lint
from ._worker import Connection, Ticket, Worker, load, test_histories


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _test() -> int:
    found = test_histories(FLOWS)
    for flow, blocked in found:
        print(f"{flow}: {'fine' if blocked is None else f'would be blocked: {blocked}'}")
    diverging = sum(blocked is not None for _, blocked in found)
    print(f"{len(found)} histories, {diverging} would be blocked")
    return 1 if diverging else 0


def _kept(code: str, path: Path) -> int:
    """A worker that the flow service started, with the ticket that it was given."""
    home = Home.from_env()
    ticket = Ticket(os.environ.get("HOLDFAST_FLOW_ACTOR", ""), os.environ.pop("HOLDFAST_FLOW_TICKET", ""))
    connection = Connection(home, ticket)
    sys.path.insert(0, str(path.parent))
    flows = load(connection.ask("code", code=code)["text"], path, code)
    _say(f"worker for {', '.join(sorted(flows))}, with the file {code[:12]}")
    Worker(flows, log=_say, file=path, kept=code).run_kept(connection)
    return 0


def main() -> int:
    """Loads the file, says what is not deterministic in it, and works, or tests it."""
    words = sys.argv[1:]
    if words[:1] == ["--kept"] and len(words) == 3:
        return _kept(words[1], Path(words[2]))
    option = words.pop(0) if words[:1] in (["--test"], ["--names"]) else None
    if len(words) != 1:
        _say("usage: python -m holdfast.flow [--test | --names] FILE.py")
        return 2
    path = Path(words[0])
    if not path.is_file():
        _say(f"error: cannot read {path}")
        return 2
    for finding in lint(path.read_text()):
        _say(f"warning: {path}: {finding}")
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(str(path), run_name="__flows__")
    if not FLOWS:
        _say(f"error: {path} has no function that is marked with @flow")
        return 2
    if option == "--names":
        print("\n".join(sorted(FLOWS)))
        return 0
    if option == "--test":
        return _test()
    _say(f"worker for {', '.join(sorted(FLOWS))}")
    try:
        Worker(log=_say, file=path.resolve()).run()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
