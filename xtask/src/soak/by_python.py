"""An operator of the soak by the Python client: a request a line on standard input, an answer a line on standard output.

The client goes on across killed hosts by itself; what it cannot know it says by its code.
"""

import json
import sys

import holdfast


def done(client: holdfast.Client, asked: dict[str, str]) -> dict[str, object]:
    """Does what is asked for."""
    session = client.session(asked["session"])
    if asked["do"] == "look":
        return {"state": session.state().state, "tail": session.tail(3), "ports": len(session.ports())}
    if asked["do"] == "type":
        return {"written": session.send(asked["text"], enter=True).written}
    run = session.run(asked["command"], key=asked["key"], timeout=20)
    return {"exit_code": run.exit_code, "state": run.state}


with holdfast.connect() as client:
    for line in sys.stdin:
        try:
            answer = done(client, json.loads(line))
        except holdfast.HoldfastError as error:
            answer = {"error": {"code": error.code}}
        print(json.dumps(answer), flush=True)
