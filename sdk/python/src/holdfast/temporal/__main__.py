"""`python -m holdfast.temporal FILE.py…`: a Temporal worker for the flows of these files."""

from __future__ import annotations

import argparse
import asyncio
import runpy
import sys
from pathlib import Path

from temporalio.client import Client

from ..flow import lint
from ..flow._context import FLOWS
from ._worker import QUEUE, worker


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m holdfast.temporal", description="A Temporal worker for flows.")
    parser.add_argument("files", nargs="+", metavar="FILE.py", type=Path, help="files with functions that @flow marks")
    parser.add_argument("--address", default="localhost:7233", help="Temporal's address (default: %(default)s)")
    parser.add_argument("--namespace", default="default", help="Temporal's namespace (default: %(default)s)")
    parser.add_argument("--queue", default=QUEUE, help="the task queue (default: %(default)s)")
    return parser.parse_args()


async def _work(args: argparse.Namespace) -> None:
    while True:
        try:
            client = await Client.connect(args.address, namespace=args.namespace)
            break
        except RuntimeError as error:
            print(f"waiting for Temporal at {args.address}: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(1)
    print(f"worker for {', '.join(sorted(FLOWS))}", file=sys.stderr, flush=True)
    await worker(client, queue=args.queue).run()


def main() -> int:
    """Loads the files and works until it is interrupted."""
    args = _arguments()
    for path in args.files:
        if not path.is_file():
            print(f"error: cannot read {path}", file=sys.stderr)
            return 2
        for finding in lint(path.read_text()):
            print(f"warning: {path}: {finding}", file=sys.stderr)
        sys.path.insert(0, str(path.resolve().parent))
        runpy.run_path(str(path), run_name="__flows__")
    if not FLOWS:
        print("error: no function in these files is marked with @flow", file=sys.stderr)
        return 2
    try:
        asyncio.run(_work(args))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
