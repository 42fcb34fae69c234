"""A client that openapi-python-client made from the document, used against the host that serves it.

    python use.py ADDRESS TOKEN DIRECTORY
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path


def generate(address: str, directory: Path) -> None:
    """Makes the package `generated`; a warning means that an operation or a type is missing from it."""
    with urllib.request.urlopen(f"{address}/v1/openapi.json") as answer:
        document = json.load(answer)
    at = directory / "openapi.json"
    at.write_text(json.dumps(document))
    maker = Path(sys.executable).with_name("openapi-python-client")
    settings = directory / "settings.json"
    settings.write_text(json.dumps({"post_hooks": []}))
    words = ["generate", "--path", at, "--output-path", directory / "generated", "--meta", "none", "--config", settings]
    done = subprocess.run([maker, *words, "--overwrite", "--fail-on-warning"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "arning" not in said, said
    made = {path.stem for path in (directory / "generated/api").rglob("*.py")}
    named = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict) and "operationId" in operation
    }
    assert named <= made, f"operations that were not made: {sorted(named - made)}"


def use(address: str, token: str) -> None:
    """Starts a session, runs something once in it by its key, and looks at both."""
    from generated import AuthenticatedClient
    from generated.api.run import run_get, run_start_put
    from generated.api.session import session_end, session_get, session_list, session_new
    from generated.models import NewParams, RunStartPutBody

    client = AuthenticatedClient(base_url=address, token=token, raise_on_unexpected_status=True)
    session = session_new.sync(client=client, body=NewParams(name="generated-py", command=["bash"]))
    assert session is not None and session.name == "generated-py", session
    body = RunStartPutBody(session=session.id, command="echo from python", wait_ms=20_000)
    first = run_start_put.sync("once-python", client=client, body=body)
    again = run_start_put.sync("once-python", client=client, body=body)
    assert (first.exit_code, first.output) == (0, "from python\n"), first
    assert (again.id, again.existing) == (first.id, True), again
    assert run_get.sync(first.id, client=client).command == first.command
    assert session.id in [one.id for one in session_list.sync(client=client)]
    session_end.sync(session.id, client=client)
    missing = session_get.sync_detailed("no-such-session", client=client)
    assert missing.status_code == 404 and missing.parsed.code == "not_found", missing


if __name__ == "__main__":
    given, secret, place = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    generate(given, place)
    sys.path.insert(0, str(place))
    use(given, secret)
    print("openapi-python-client: made and used")
