"""`python -m holdfast.flow FILE.py`: a worker for the flows of a file. `holdfast flow worker` starts it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from ._context import FLOWS
from ._lint import lint
from ._worker import Worker


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Loads the file, says what is not deterministic in it, and works."""
    if len(sys.argv) != 2:
        _say("usage: python -m holdfast.flow FILE.py")
        return 2
    path = Path(sys.argv[1])
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
    _say(f"worker for {', '.join(sorted(FLOWS))}")
    try:
        Worker(log=_say).run()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
