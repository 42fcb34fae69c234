"""`holdfast prove` counts this SDK among the clients of one live execution."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from conftest import PROGRAM


def test_the_sdk_is_one_of_the_kinds_of_client_that_are_proved() -> None:
    """It reads the same bytes at the same offsets as the others."""
    done = subprocess.run(
        [PROGRAM, "prove", "--only", "any-client", "--json"],
        env={**os.environ, "HOLDFAST_PROVE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    [finding] = json.loads(done.stdout)["findings"]
    assert finding["outcome"] == "held", finding
    assert "the Python SDK gives the same bytes" in [step["saw"] for step in finding["steps"]], finding
